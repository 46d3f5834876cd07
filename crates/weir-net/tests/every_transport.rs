//! Every transport, with one to four ranks on threads: what arrives is what was sent, damage is
//! found, and nobody waits for ever.

mod ranks;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ranks::{exponents, fault, interrupted_after, run, run_all, workload};
use weir_run::execute::Signals;
use weir_schema::{FaultKind, Pairing, Validation};
use weir_units::Nanos;

/// Ways to check what arrives that a transport has.
fn checks(name: &str) -> impl Iterator<Item = Validation> {
    let samples = weir_net::find(name).is_some_and(|t| t.samples);
    let all = [Validation::Const, Validation::Sample, Validation::Full];
    all.into_iter()
        .filter(move |v| samples || *v != Validation::Sample)
}

/// Transports that this machine can use and that move data between threads; ranks that
/// a launcher starts are no threads.
fn movers() -> impl Iterator<Item = &'static str> {
    let all = weir_net::transports().iter();
    all.filter(|t| t.moves_data && !t.needs_launcher && (t.availability)().is_ready())
        .map(|t| t.name)
}

#[test]
fn every_transport_brings_every_byte_with_one_to_four_ranks() {
    for name in movers() {
        for ranks in 1..=4 {
            for validation in checks(name) {
                let mut plan = workload(exponents([0, 1, 5, 6, 10, 11, 13, 17], 20));
                plan.validation = validation;
                let result = run(name, ranks, &plan).unwrap();
                assert_eq!(result.wrong_bytes(), 0, "{name}, {ranks}, {validation:?}");
                assert_eq!(result.lost(), 0, "{name}, {ranks}, {validation:?}");
                assert_eq!(result.sizes.len(), 8);
                for size in &result.sizes {
                    assert_eq!(size.ranks.len(), ranks as usize);
                    assert!(size.ranks.iter().all(|r| r.times_ns.len() == 3));
                    assert!(
                        size.ranks
                            .iter()
                            .flat_map(|r| &r.times_ns)
                            .all(|t| t.raw() > 0)
                    );
                }
                assert_eq!(result.loopback, ranks == 1);
            }
        }
    }
}

#[test]
fn more_replications_than_neighbours_work() {
    for name in movers() {
        for (ranks, replications) in [(1, 1), (1, 3), (3, 5), (4, 4)] {
            let mut plan = workload(exponents([0, 7, 12], 8));
            plan.replications = replications;
            plan.validation = Validation::Full;
            let result = run(name, ranks, &plan).unwrap();
            assert_eq!(result.wrong_bytes(), 0, "{name}, {ranks}, {replications}");
        }
    }
}

#[test]
fn a_flipped_byte_is_counted_at_its_rank_and_size() {
    for name in movers() {
        let cases = [
            (Validation::Const, 3, 1),
            (Validation::Full, 3, 1),
            (Validation::Sample, 255, 1),
        ];
        for (validation, at, found) in cases {
            if !checks(name).any(|v| v == validation) {
                continue;
            }
            let mut plan = workload(exponents([4, 8], 5));
            plan.validation = validation;
            plan.faults = vec![fault(FaultKind::Flip, 1, 8, at)];
            let result = run(name, 2, &plan).unwrap();
            let wrong: Vec<Vec<u64>> = result
                .sizes
                .iter()
                .map(|size| size.ranks.iter().map(|r| r.wrong_bytes).collect())
                .collect();
            assert_eq!(wrong, [[0, 0], [0, found]], "{name}, {validation:?}, {at}");
        }
    }
}

#[test]
fn a_flip_that_nothing_looks_for_is_refused() {
    let mut plan = workload(exponents([4], 5));
    plan.validation = Validation::None;
    plan.faults = vec![fault(FaultKind::Flip, 0, 4, 3)];
    let error = run("shm", 1, &plan).unwrap_err().to_string();
    assert!(
        error.contains("not noticed with validation `none`"),
        "{error}"
    );
}

#[test]
fn a_rank_that_stalls_ends_the_run_everywhere_and_is_named() {
    for name in movers() {
        let mut plan = workload(exponents([3, 12], 1000));
        plan.timeout_ns = Nanos::from_millis(300);
        plan.faults = vec![fault(FaultKind::Stall, 1, 12, 5)];
        let answers = run_all(name, 3, &plan);
        for (rank, answer) in answers.iter().enumerate() {
            let error = answer.as_ref().unwrap_err().to_string();
            assert!(
                error.contains("messages of 4096 B, replication "),
                "{name}: {error}"
            );
            if rank < 2 {
                assert!(error.starts_with("rank 1, "), "{name}: {error}");
                assert!(
                    error.ends_with("stalled on purpose at exchange 5"),
                    "{name}: {error}"
                );
            }
        }
    }
}

#[test]
fn a_rank_that_dies_is_missed() {
    for name in movers() {
        for victim in [0, 1] {
            let mut plan = workload(exponents([3, 12], 1000));
            plan.timeout_ns = Nanos::from_millis(500);
            plan.faults = vec![fault(FaultKind::Die, victim, 12, 7)];
            for answer in run_all(name, 2, &plan) {
                let error = answer.unwrap_err().to_string();
                assert!(
                    error.contains("messages of 4096 B, replication 0"),
                    "{name}: {error}"
                );
            }
        }
    }
}

#[test]
fn a_signal_leaves_the_sizes_that_were_done() {
    for name in movers() {
        let mut plan = workload(exponents([2, 14], 1));
        plan.sizes[1].loop_length = 1 << 33;
        let signals = interrupted_after(Duration::from_millis(400));
        let begun = Instant::now();
        let answers = ranks::run_with(name, 2, &plan, &signals);
        assert!(begun.elapsed() < Duration::from_secs(60), "{name} went on");
        assert!(signals.interruptions.load(Ordering::Relaxed) > 0);
        let result = answers.into_iter().next().unwrap().unwrap().unwrap();
        // The second size would take hours.
        assert!(result.sizes.len() < 2, "{name}");
        assert_eq!(result.ranks.len(), 2, "{name}");
    }
}

#[test]
fn three_ranks_take_the_ring_and_two_the_pairs_where_channels_take_turns() {
    let plan = workload(exponents([3], 4));
    assert_eq!(run("shm", 3, &plan).unwrap().pairing, Pairing::Ring);
    assert_eq!(run("shm", 2, &plan).unwrap().pairing, Pairing::Pairs);
}

#[test]
fn a_minimum_time_makes_loops_longer_and_a_maximum_ends_the_sizes() {
    let mut plan = workload(exponents([0, 1, 2], 1));
    plan.min_time_ns = Some(Nanos::from_millis(20));
    plan.max_time_ns = Some(Nanos::from_millis(1));
    for name in ["null", "shm"] {
        if name == "null" {
            plan.validation = Validation::None;
        }
        let result = run(name, 2, &plan).unwrap();
        assert_eq!(
            result.sizes.len(),
            1,
            "{name}: no size begins after the maximum"
        );
        assert!(
            result.sizes[0].loop_length > 1,
            "{name}: {}",
            result.sizes[0].loop_length
        );
        plan.validation = Validation::Const;
    }
}

#[test]
fn what_a_transport_does_not_know_is_refused_by_name() {
    let plan = workload(exponents([3], 4));
    let refused = |name, plan| run(name, 1, plan).unwrap_err().to_string();
    assert!(refused("shn", &plan).contains("no transport `shn` (there are mpi, shm, "));
    assert!(refused("null", &plan).contains("use `none`"));
    let mut pairs = plan.clone();
    pairs.pairing = Pairing::Pairs;
    let error = run("shm", 3, &pairs).unwrap_err().to_string();
    assert!(error.contains("use ring"), "{error}");
    let mut calls = plan.clone();
    calls.method = weir_schema::Method::Alltoallv;
    assert!(refused("shm", &calls).contains("no method `alltoallv` (it has sendrecv)"));
}

#[test]
fn a_rate_holds_a_rank_back() {
    let mut plan = workload(exponents([10], 10));
    plan.repetitions = 1;
    let rate = [("rate_bytes_per_s", weir_schema::Setting::Number(200_000))];
    for name in ["tcp", "udp"] {
        let answers = ranks::run_engine(ranks::engine(name, &rate), 2, &plan, &Signals::default());
        let result = ranks::first(answers).unwrap();
        assert_eq!((result.wrong_bytes(), result.lost()), (0, 0), "{name}");
        // 20 KiB of each rank at 200 kB/s are 102 ms, less what may go at once.
        for rank in &result.sizes[0].ranks {
            let time = rank.times_ns[0].raw();
            assert!(time > 85_000_000, "{name}: {time}");
        }
    }
}
