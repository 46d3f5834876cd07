//! Each warning at its bound: raised above it, silent below, with a remedy that fits.

use weir_schema::sample::{self, JobSample};
use weir_schema::{
    Confidence, DiskCounters, Kind, LatencyPercentile, LatencyTarget, Outcome, Schedule, Stage,
    State, WorkerResult,
};
use weir_stats::{Estimate, Histogram};
use weir_units::{Bytes, Iops, Nanos, Percent, QueueDepth};

use super::*;

const TEN: Nanos = Nanos(10_000_000_000);

/// Reads of one worker over ten seconds, each of this latency.
fn reads(number: u32, operations: u64, lat_ns: u64) -> WorkerResult {
    let mut histogram = Histogram::new();
    histogram.record_n(lat_ns, operations);
    let kind = sample::kind(Kind::Read, operations, TEN, &[(Stage::Lat, histogram)]);
    sample::worker(number, TEN, vec![kind])
}

fn job_of(name: &str, workers: Vec<WorkerResult>) -> JobResult {
    let mut job = sample::job_result(name, workers);
    job.span = Some(sample::span(Nanos::ZERO, TEN));
    job
}

fn counters(cpus: &[(u32, CpuTimes)]) -> MachineCounters {
    MachineCounters {
        cpus: cpus.to_vec(),
        throttling: weir_sys::cgroup::Throttling::default(),
    }
}

/// The warnings of a run on two CPUs.
fn raised(jobs: Vec<(Job, JobResult)>, change: impl FnOnce(&mut RunResult)) -> Vec<Warning> {
    let mut result = sample::run(vec![jobs]);
    result.host.cpus = Some(2);
    result.clock = sample::clock();
    change(&mut result);
    let (before, seen) = (counters(&[]), PreparedJobs::default());
    let mut all = of_run(&result, &before, &counters(&[]), &seen);
    all.retain(|w| !["short-run", "correlated", "slow"].contains(&w.id.as_str()));
    all
}

fn ids(warnings: &[Warning]) -> Vec<&str> {
    warnings.iter().map(|w| w.id.as_str()).collect()
}

fn at_rate(per_s: f64, poisson: bool) -> Job {
    let mut job = sample::block_job("a").over("psync");
    job.load_mut().pacing.schedule = Some(Schedule::OpsPerSecond {
        limit_per_s: [(Kind::Read.into(), Iops(per_s))].into(),
        poisson,
        open_loop: true,
        ignore_thinktime: false,
    });
    job
}

#[test]
fn an_open_loop_below_99_percent_of_its_schedule_is_said_to_be_behind() {
    let did = |operations, poisson| {
        let job = job_of("a", vec![reads(0, operations, 1_000_000)]);
        raised(vec![(at_rate(2000.0, poisson), job)], |_| ())
    };
    let behind = did(5_490, false);
    assert_eq!(ids(&behind), ["rate-not-reached"]);
    let cause = "The schedule asks for 2.00 k ops/s, and 549 ops/s were done: 27.5 %.";
    assert_eq!(behind[0].cause, cause);
    assert_eq!(ids(&did(19_700, false)), ["rate-not-reached"]);
    assert!(did(19_900, false).is_empty());
    // Random arrivals are that uncertain.
    assert!(did(19_700, true).is_empty());
    assert_eq!(ids(&did(19_000, true)), ["rate-not-reached"]);
}

#[test]
fn kinds_that_wait_for_each_other_are_behind_only_together() {
    let mut planned = at_rate(1000.0, false).blocks(|work| {
        (work.mix.read_percent, work.mix.write_percent) = (90, 10);
    });
    if let Some(Schedule::OpsPerSecond { limit_per_s, .. }) =
        &mut planned.load_mut().pacing.schedule
    {
        limit_per_s.insert(Kind::Write.into(), Iops(1000.0));
    }
    let mut worker = reads(0, 10_000, 1_000_000);
    worker
        .kinds
        .push(sample::kind(Kind::Write, 1_100, TEN, &[]));
    assert!(raised(vec![(planned, job_of("a", vec![worker]))], |_| ()).is_empty());
}

#[test]
fn a_loop_that_spends_its_time_on_itself_is_the_limit() {
    let mut job = job_of("a", vec![reads(0, 47_600_000, 20)]);
    if let Outcome::Loop(done) = &mut job.outcome {
        done.loop_ns_per_op = Some(200.0);
    }
    let fast = at_rate(105e6, false).over("null");
    let found = raised(vec![(fast, job)], |_| ());
    assert_eq!(ids(&found), ["rate-not-reached", "generator-limited"]);
    assert!(found[1].cause.contains("95 % of the time"), "{found:?}");
}

#[test]
fn a_full_queue_is_the_targets_doing_however_late_operations_are() {
    let late = |in_flight| {
        let mut worker = reads(0, 717_000, 400_000);
        worker.late_issues = Some(700_000);
        worker.depth.mean_in_flight = Some(in_flight);
        let mut planned = at_rate(1e6, false).over("libaio");
        planned.load_mut().depth.queue_depth = QueueDepth(32);
        raised(vec![(planned, job_of("a", vec![worker]))], |_| ())
    };
    assert_eq!(ids(&late(28.4)), ["rate-not-reached"]);
    let (behind, room) = ("rate-not-reached", "generator-limited");
    assert_eq!(ids(&late(16.0)), [behind, room]);
}

#[test]
fn the_loops_own_cost_counts_by_latency_and_by_rate() {
    let cost = |operations, lat, ns| {
        let mut job = job_of("a", vec![reads(0, operations, lat)]);
        if let Outcome::Loop(done) = &mut job.outcome {
            done.loop_ns_per_op = Some(ns);
        }
        raised(vec![(sample::block_job("a").over("psync"), job)], |_| ())
    };
    let median = cost(5_000_000, 800, 45.0);
    assert!(
        median[0].cause.contains("of the median latency"),
        "{median:?}"
    );
    // 32 in flight: 3 % of the latency, half of the time per operation.
    let rate = cost(111_000_000, 1_500, 45.0);
    assert!(
        rate[0].cause.contains("50 % of the time per operation"),
        "{rate:?}"
    );
    assert!(cost(5_000_000, 1_000, 45.0).is_empty());
}

fn waiting(number: u32, share: f64, switches: u64) -> WorkerResult {
    let mut worker = reads(number, 1000, 1_000_000);
    worker.clone = number;
    worker.cpu.run_delay_ns = Nanos::from_secs_f64(share * 10.0);
    worker.cpu.involuntary_switches = switches;
    worker
}

#[test]
fn a_shared_cpu_is_one_warning_whose_remedy_fits() {
    let alone = |share, switches| {
        let job = job_of("a", vec![waiting(0, share, switches)]);
        raised(vec![(sample::block_job("a").over("psync"), job)], |_| ())
    };
    let both = alone(0.12, 300);
    assert_eq!(ids(&both), ["cpu-shared"]);
    assert_eq!(
        both[0].cause,
        "Worker 0 waited 12 % of its time for a CPU and was switched out 30 times per second."
    );
    assert!(both[0].remedy.contains("pin"));
    assert_eq!(ids(&alone(0.01, 300)), ["cpu-shared"]);
    assert!(alone(0.04, 90).is_empty());
    let mut pinned = sample::block_job("a").over("psync");
    pinned.placement.cpus = Some(vec![1]);
    let job = job_of("a", vec![waiting(0, 0.5, 0)]);
    let found = raised(vec![(pinned, job)], |_| ());
    assert_eq!(
        found[0].remedy,
        "Keep other load off the CPUs that it is pinned to."
    );
}

#[test]
fn more_workers_than_cpus_are_oversubscribed_whoever_they_belong_to() {
    let eight = (0..8).map(|n| waiting(n, 0.7, 5000)).collect();
    let planned = sample::block_job("a").over("psync");
    let found = raised(vec![(planned.clone(), job_of("a", eight))], |_| ());
    assert_eq!(ids(&found), ["oversubscribed"]);
    assert!(
        found[0]
            .cause
            .starts_with("8 workers share 2 CPUs: worker ")
    );
    let two = |name: &str| {
        let workers = vec![waiting(0, 0.4, 0), waiting(1, 0.4, 0)];
        (sample::block_job(name).over("psync"), job_of(name, workers))
    };
    let found = raised(vec![two("a"), two("b")], |_| ());
    assert_eq!(ids(&found), ["oversubscribed"; 2]);
    // One after the other they have a CPU each.
    let found = raised(vec![two("a"), two("b")], |result| {
        let later = &mut result.groups[0].jobs[1];
        let span = sample::span(TEN, Nanos(2 * TEN.0));
        later.span = Some(span);
        later
            .workers_mut()
            .iter_mut()
            .for_each(|w| w.span = Some(span));
    });
    assert_eq!(ids(&found), ["cpu-shared"; 2]);
}

#[test]
fn steal_counts_on_the_cpus_that_workers_ran_on() {
    let times = |steal, idle| CpuTimes {
        steal: Nanos(steal),
        idle: Nanos(idle),
        ..CpuTimes::default()
    };
    let before: Vec<_> = (0..64).map(|cpu| (cpu, CpuTimes::default())).collect();
    let mut after: Vec<_> = (0..64).map(|cpu| (cpu, times(0, 100))).collect();
    after[5].1 = times(50, 50);
    let mut worker = reads(0, 1000, 1000);
    (worker.cpu.first_cpu, worker.cpu.last_cpu) = (Some(4), Some(5));
    let found = cpus::stolen(&job_of("a", vec![worker.clone()]), [&before, &after]).unwrap();
    assert!(
        found.cause.contains("50.0 % of the time of CPU 5"),
        "{found:?}"
    );
    let mut job = job_of("a", vec![worker.clone()]);
    cpus::keep_stolen(&mut job, [&before, &after]);
    let half = Nanos(worker.span.unwrap().length().0 / 2);
    assert_eq!(job.workers()[0].cpu.stolen_ns, Some(half));
    worker.cpu.last_cpu = Some(6);
    assert_eq!(
        cpus::stolen(&job_of("a", vec![worker]), [&before, &after]),
        None
    );
}

#[test]
fn a_device_is_shared_where_others_move_and_take_a_noticeable_part() {
    let disk_of = |planned: Job, moved, busy| {
        let job = job_of("a", Vec::new());
        let mut result = sample::run(vec![vec![(planned, job)]]);
        result.groups[0].rates = vec![sample::rates(Kind::Read, 100, Bytes(1000), TEN)];
        result.disks = vec![DiskCounters {
            read_bytes: Bytes(moved),
            busy_ns: Nanos(busy),
            elapsed_ns: Nanos(1000),
            ..DiskCounters::default()
        }];
        device_shared(&result, true).map(|w| w.cause)
    };
    let disk = |moved, busy| disk_of(sample::block_job("a"), moved, busy);
    let half = disk(2000, 100).unwrap();
    assert_eq!(
        half,
        "50 % of what the device moved was not this run's, and took 5 % of its time."
    );
    assert_eq!(disk(1010, 1000), None);
    // A job of few operations: most of the little that the device did is a journal's.
    assert_eq!(disk(40_000, 9), None);
    // What is measured is a part of what the device did.
    let mut ramped = sample::block_job("a");
    ramped.load_mut().bounds.ramp_ns = Nanos(1);
    assert_eq!(disk_of(ramped, 2000, 100), None);
    let mut searching = sample::block_job("a");
    searching.load_mut().pacing.latency_target = Some(LatencyTarget {
        target_ns: Nanos(1_000_000),
        window_ns: TEN,
        share: Percent(99.0),
        keep_adjusting: false,
    });
    assert_eq!(disk_of(searching, 2000, 100), None);
}

#[test]
fn reads_that_cannot_have_come_from_the_page_cache_are_not_warned_of() {
    let warned = |planned: Job, from_disk: Option<u64>, once: bool| {
        let job = job_of("a", Vec::new());
        let mut result = sample::run(vec![vec![(planned, job)]]);
        let kinds = [(Kind::Read, 1000), (Kind::Write, 9000)];
        let rates = kinds.map(|(kind, bytes)| sample::rates(kind, 100, Bytes(bytes), TEN));
        result.groups[0].rates = rates.to_vec();
        let disk = from_disk.map(|bytes| DiskCounters {
            read_bytes: Bytes(bytes),
            ..DiskCounters::default()
        });
        result.disks = disk.into_iter().collect();
        result.warnings = vec![Warning::new("page-cache", Some("a"), "They may.")];
        let mut seen = PreparedJobs::default();
        seen.read_blocks_once.extend(once.then_some(0));
        refute_page_cache(&mut result, &seen);
        !result.warnings.is_empty()
    };
    let counted = |from_disk, once| warned(sample::block_job("a"), Some(from_disk), once);
    assert!(!counted(1200, false) && !counted(985, false));
    // Counters of disks say more than what was planned.
    assert!(counted(970, true) && counted(0, false));
    let uncounted = |once| warned(sample::block_job("a"), None, once);
    assert!(uncounted(false) && !uncounted(true));
    // They are of the ramp too, which may have filled the cache.
    let ramped = |once| {
        let mut ramped = sample::block_job("a");
        ramped.load_mut().bounds.ramp_ns = Nanos(1);
        warned(ramped, Some(1000), once)
    };
    assert!(ramped(false) && !ramped(true));
}

#[test]
fn either_bound_of_the_clocks_residual_is_enough() {
    let strayed = |nanos, ppm| {
        raised(Vec::new(), |result| {
            result.clock.residual_ns = Some(nanos);
            result.clock.residual_ppm = Some(ppm);
        })
    };
    assert_eq!(ids(&strayed(1_001.0, 0.1)), ["clock-residual"]);
    assert_eq!(ids(&strayed(10.0, 10.1)), ["clock-residual"]);
    assert!(strayed(999.0, 9.9).is_empty());
}

#[test]
fn few_samples_are_warned_of_where_the_percentile_was_asked_for() {
    let found = |percentiles: &[f64]| {
        let list = percentiles.iter().copied().map(Percent).collect();
        let planned = sample::block_job("a").recorded(|r| r.percentiles = list);
        let percentile = |percent: &f64| LatencyPercentile {
            stage: Stage::Lat,
            percent: Percent(*percent),
            value_ns: Estimate::within(1.0, 1.0, 1.0),
            few_samples: *percent > 99.0,
        };
        let sure = Confidence {
            percentiles: percentiles.iter().map(percentile).collect(),
            ..sample::confidence(
                Kind::Read,
                Estimate::within(1.0, 1.0, 1.0),
                Estimate::within(1.0, 1.0, 1.0),
            )
        };
        few_samples(&planned, &sample::sure(job_of("a", Vec::new()), vec![sure]))
    };
    assert_eq!(found(&[50.0, 90.0, 99.0, 99.9]), None);
    let asked = found(&[50.0, 99.99]).unwrap();
    assert_eq!(
        asked.cause,
        "Fewer than 10 read operations lie beyond p99.99."
    );
}

#[test]
fn a_job_that_did_nothing_is_not_warned_of() {
    let mut job = job_of("a", Vec::new());
    job.state = State::NotStarted;
    assert!(raised(vec![(at_rate(2000.0, false), job)], |_| ()).is_empty());
}

#[test]
fn what_is_true_of_several_kinds_is_one_warning() {
    let mut job = job_of("a", vec![reads(0, 100, 1000)]);
    let of = |kind: Kind| Confidence {
        slow: kind == Kind::Write,
        ..sample::confidence(
            kind,
            Estimate::without(1.0, NoInterval::ShortRun),
            Estimate::about(1.0, Ok(0.1)),
        )
    };
    if let Outcome::Loop(done) = &mut job.outcome {
        done.confidence = vec![of(Kind::Read), of(Kind::Write)];
    }
    let all = of_job(&job);
    assert_eq!(ids(&all), ["short-run", "slow"]);
    assert!(
        all[0]
            .cause
            .starts_with("The read and write run was too short")
    );
    assert!(all[1].cause.starts_with("The write rate changes slowly"));
}

#[test]
fn a_stop_is_told_once_it_is_longer_than_a_threads_wait() {
    assert_eq!(of_stop(Nanos::from_millis(100)), None);
    let warning = of_stop(Nanos::from_millis(1500)).unwrap();
    assert_eq!(warning.id, "stopped");
    assert!(warning.cause.contains("1.50 s"), "{}", warning.cause);
}
