//! Results for tests, built by hand: each figure in them is chosen, none is measured.

use weir_schema::sample::{self, JobSample};
use weir_schema::*;
use weir_stats::Histogram;
use weir_units::{Bytes, BytesPerSec, Iops, Nanos, Percent};

/// fio's own list of percentiles.
pub(crate) const FIO_PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// A histogram of evenly spaced values.
pub(crate) fn latencies(from: u64, step: u64, count: u64) -> Histogram {
    let mut h = Histogram::new().with_squares();
    (0..count).for_each(|i| h.record(from + i * step));
    h
}

/// Work of one worker of one kind: `operations` of 4 KiB in `ms`, each stage as given.
pub(crate) fn kind(
    kind: Kind,
    operations: u64,
    ms: u64,
    stages: &[(Stage, Histogram)],
) -> KindResult {
    sample::kind(kind, operations, Nanos::from_millis(ms), stages)
}

/// A worker with these kinds, on the CPU for half of its time.
pub(crate) fn worker(number: u32, ms: u64, kinds: Vec<KindResult>) -> WorkerResult {
    let operations = kinds
        .iter()
        .filter(|k| k.kind != Kind::Sync)
        .map(|k| k.operations)
        .sum();
    WorkerResult {
        cpu: CpuUse {
            user_ns: Nanos(ms * 375_000),
            system_ns: Nanos(ms * 125_000),
            voluntary_switches: 7,
            involuntary_switches: 3,
            minor_faults: 11,
            major_faults: 1,
            ..CpuUse::default()
        },
        depth: DepthUse {
            in_flight: [1, 0, 0, 0, operations - 1, 0, 0],
            submitted: [0, operations, 0, 0, 0, 0, 0],
            completed: [0, operations, 0, 0, 0, 0, 0],
            ..DepthUse::default()
        },
        ..sample::worker(number, Nanos::from_millis(ms), kinds)
    }
}

/// A job of these words with random blocks of 4 KiB, and fio's percentiles.
pub(crate) fn job(name: &str, mix: Mix, words: &[(&str, &str)]) -> Job {
    let work = |work: &mut BlockWorkload| (work.mix, work.access.random) = (mix, true);
    let percentiles = FIO_PERCENTILES.map(Percent);
    let job = sample::block_job(name).blocks(work).deep(16).worded(words);
    job.recorded(|recording| recording.percentiles = percentiles.into())
}

/// A result: groups of jobs with their workers.
pub(crate) fn result(groups: Vec<Vec<(Job, Vec<WorkerResult>)>>) -> RunResult {
    let with_result = |(job, workers): (Job, _)| {
        let result = sample::job_result(&job.name, workers);
        (job, result)
    };
    let group = |group: Vec<_>| group.into_iter().map(with_result).collect();
    sample::run(groups.into_iter().map(group).collect())
}

/// One worker of an asynchronous engine that reads and writes, with samples and a group rate.
pub(crate) fn mixed() -> RunResult {
    let stages = [
        (Stage::Slat, latencies(900, 1, 2000)),
        (Stage::Clat, latencies(50_000, 100, 2000)),
        (Stage::Lat, latencies(50_900, 101, 2000)),
    ];
    let mut read = kind(Kind::Read, 2000, 2001, &stages);
    let samples = |scale: f64| SampleStatistics {
        count: 3,
        min: 100.0 * scale,
        max: 130.9 * scale,
        mean: 120.25 * scale,
        deviation: 12.5 * scale,
    };
    read.bandwidth_samples = Some(samples(40_960.0));
    read.iops_samples = Some(samples(10.0));
    let write = kind(
        Kind::Write,
        1000,
        2001,
        &[(Stage::Lat, latencies(3_000_000, 200_000, 1000))],
    );
    let mut job = job(
        "mix",
        Mix {
            read_percent: 67,
            write_percent: 33,
            ..Mix::only(Kind::Read)
        },
        &[("rw", "randrw"), ("ioengine", "null"), ("iodepth", "16")],
    );
    job.description = Some("two kinds".to_owned());
    let mut result = result(vec![vec![(job, vec![worker(0, 2001, vec![read, write])])]]);
    result.groups[0].rates = vec![Rates {
        kind: Kind::Read.into(),
        operations: 2000,
        bytes: Bytes(2000 * 4096),
        ops_per_s: Iops(999.5),
        bytes_per_s: BytesPerSec(4_093_953.0),
        overlap_bytes_per_s: Some(BytesPerSec(4_100_000.0)),
        overlap_ops_per_s: None,
    }];
    result
}
