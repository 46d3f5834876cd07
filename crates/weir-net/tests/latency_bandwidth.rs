//! Ping-pongs and rings over every transport that has them, with two to five ranks on threads.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod ranks;

use std::collections::BTreeSet;
use std::time::Duration;

use ranks::{engine, interrupted_after};
use weir_net::{NetError, latency_bandwidth};
use weir_run::execute::Signals;
use weir_schema::{
    EngineChoice, Job, LatencyBandwidthResult, LatencyBandwidthWorkload, MessageTestResult,
    Workload, latency_bandwidth_figures,
};
use weir_sys::clock::Clock;
use weir_units::{Bytes, Nanos};
use weir_world::on_threads;

/// Of transports that can do it here.
const MOVERS: &[&str] = &["shm"];

fn small() -> LatencyBandwidthWorkload {
    let mut work = LatencyBandwidthWorkload::default();
    work.bandwidth.bytes = Bytes(50_001);
    work.timeout_ns = Nanos::from_secs(30);
    work.latency.random_rings = 4;
    work.bandwidth.random_rings = 3;
    work
}

fn run_with(
    engine: EngineChoice,
    ranks: u32,
    work: &LatencyBandwidthWorkload,
    signals: &Signals,
) -> Result<LatencyBandwidthResult, NetError> {
    let (clock, _) = Clock::detect();
    let workload = Workload::LatencyBandwidth(Box::new(work.clone()));
    let job = Job::alone("test", engine, workload);
    let answers = on_threads(ranks, |world| {
        latency_bandwidth::run(&job, work, &world, &clock, signals, None).whole()
    });
    let mut answers = answers.unwrap().into_iter();
    let first = answers.next().unwrap()?;
    for other in answers {
        assert!(other.unwrap().is_none(), "only rank 0 has a result");
    }
    Ok(first.unwrap())
}

fn run(
    name: &str,
    ranks: u32,
    work: &LatencyBandwidthWorkload,
) -> Result<LatencyBandwidthResult, NetError> {
    run_with(engine(name, &[]), ranks, work, &Signals::default())
}

fn is_whole(test: &MessageTestResult, ranks: u32, rings: usize, measurements: usize) {
    // Up to five ranks, all are in pairs.
    assert_eq!(test.stride, Some(1));
    let pairs: Vec<_> = test.pairs.iter().map(|p| (p.client, p.server)).collect();
    let all = (0..ranks).flat_map(|a| (0..ranks).map(move |b| (a, b)));
    assert_eq!(pairs, all.filter(|(a, b)| a != b).collect::<Vec<_>>());
    let natural = test.natural.as_ref().unwrap();
    assert_eq!(natural.order, (0..ranks).collect::<Vec<_>>());
    assert_eq!(test.random.len(), rings);
    for ring in test.random.iter().chain([natural]) {
        let each: BTreeSet<_> = ring.order.iter().copied().collect();
        assert_eq!(
            (each.len(), ring.order.len()),
            (ranks as usize, ranks as usize)
        );
        for times in [&ring.sendrecv_ns, &ring.nonblocking_ns] {
            assert_eq!(times.len(), measurements);
            // Ten ticks of a microsecond.
            assert!(times.iter().all(|t| *t >= Nanos(10_000)), "{times:?}");
        }
    }
}

#[test]
fn every_message_arrives_and_every_pair_and_ring_is_measured() {
    for name in MOVERS {
        for ranks in 2..=5 {
            let work = small();
            let result = run(name, ranks, &work).unwrap();
            assert_eq!(result.wrong_bytes, 0, "{name}, {ranks} ranks");
            assert_eq!(result.ranks.len(), ranks as usize);
            is_whole(&result.latency, ranks, 4, 5);
            is_whole(&result.bandwidth, ranks, 3, 2);
            let figures = latency_bandwidth_figures(&result).unwrap();
            assert!(figures.pair_latency_s.min <= figures.pair_latency_s.max);
            assert!(figures.random_bytes_per_s > 0.0);
        }
    }
}

#[test]
fn messages_of_all_lengths_arrive() {
    for name in MOVERS {
        for bytes in [1, 2, 56, 57, 512, 513, 4096, 4097] {
            let mut work = small();
            (work.latency.bytes, work.bandwidth.bytes) = (Bytes(bytes), Bytes(bytes + 1));
            let result = run(name, 3, &work).unwrap();
            assert_eq!(result.wrong_bytes, 0, "{name}, {bytes} B");
        }
    }
}

#[test]
fn a_seed_has_its_orders_of_rings() {
    let orders = |seed| {
        let work = LatencyBandwidthWorkload { seed, ..small() };
        let result = run("shm", 5, &work).unwrap();
        let tests = [result.latency, result.bandwidth];
        let rings = tests.into_iter().flat_map(|t| t.random);
        rings.map(|ring| ring.order).collect::<Vec<_>>()
    };
    let first = orders(7);
    assert_eq!(first, orders(7));
    assert_ne!(first, orders(8));
}

#[test]
fn where_time_is_short_pairs_of_some_ranks_are_measured() {
    let mut work = small();
    work.latency.ping_pong_limit_ns = Nanos(0);
    let result = run("shm", 7, &work).unwrap();
    // 7 / 5 + 0.9 is 2, which becomes 3.
    assert_eq!(result.latency.stride, Some(3));
    let pairs = result.latency.pairs.iter();
    let pairs: Vec<_> = pairs.map(|p| (p.client, p.server)).collect();
    assert_eq!(pairs, [(0, 3), (0, 6), (3, 0), (3, 6), (6, 0), (6, 3)]);
}

#[test]
fn when_the_time_allowed_is_over_one_random_ring_of_each_size_is_left() {
    let mut work = small();
    work.max_time_ns = Some(Nanos(1));
    let result = run("shm", 3, &work).unwrap();
    is_whole(&result.latency, 3, 1, 5);
    is_whole(&result.bandwidth, 3, 1, 2);
    assert!(latency_bandwidth_figures(&result).is_some());
    work.max_time_ns = Some(Nanos::from_secs(3600));
    let result = run("shm", 3, &work).unwrap();
    is_whole(&result.latency, 3, 4, 5);
}

#[test]
fn a_minimum_time_makes_every_loop_longer() {
    let mut work = small();
    work.min_time_ns = Some(Nanos::from_micros(500));
    let result = run("shm", 2, &work).unwrap();
    for test in [&result.latency, &result.bandwidth] {
        for pair in &test.pairs {
            assert!(pair.times_ns.iter().all(|t| *t >= Nanos::from_micros(500)));
        }
        let rings = test.random.iter().chain(&test.natural);
        let mut times = rings.flat_map(|r| r.sendrecv_ns.iter().chain(&r.nonblocking_ns));
        assert!(times.all(|t| *t >= Nanos::from_micros(500)));
    }
}

#[test]
fn a_signal_leaves_what_was_done() {
    let mut work = small();
    work.latency.ring.loop_length = 1 << 40;
    let signals = interrupted_after(Duration::from_millis(500));
    let result = run_with(engine("shm", &[]), 2, &work, &signals).unwrap();
    // The first ring would take hours.
    assert_eq!(result.latency.natural, None);
    assert_eq!(result.bandwidth, MessageTestResult::default());
    assert_eq!(latency_bandwidth_figures(&result), None);
}

#[test]
fn what_cannot_be_measured_is_refused_by_name() {
    let refused = |name, ranks| match run(name, ranks, &small()) {
        Err(NetError::Plan(message)) => message,
        other => panic!("{other:?}"),
    };
    for name in ["tcp", "udp", "file", "null"] {
        let message = refused(name, 2);
        assert!(
            message.contains(&format!("`{name}` carries no")),
            "{message}"
        );
        assert!(message.contains("(mpi, shm do)"), "{message}");
    }
    assert!(refused("shm", 1).contains("needs at least 2 ranks"));
    assert!(refused("shn", 2).contains("no transport `shn`"));
}
