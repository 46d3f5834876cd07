//! Results for tests, built by hand: each figure in them is chosen, none is measured.

use std::collections::BTreeMap;

use weir_schema::*;
use weir_stats::{Histogram, Series};
use weir_units::{Bytes, BytesPerSec, Iops, Nanos, Percent, QueueDepth};

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

/// What one worker did of one kind: `operations` of 4 KiB in `ms`, each stage as given.
pub(crate) fn kind(
    kind: Kind,
    operations: u64,
    ms: u64,
    stages: &[(Stage, Histogram)],
) -> KindResult {
    KindResult {
        kind,
        issued: operations,
        operations,
        bytes: Bytes(if kind == Kind::Sync {
            0
        } else {
            operations * 4096
        }),
        short: 0,
        dropped: 0,
        lost: 0,
        errors: BTreeMap::new(),
        runtime_ns: Nanos::from_millis(ms),
        stages: stages
            .iter()
            .map(|(stage, h)| StageHistogram {
                stage: *stage,
                histogram: h.clone(),
            })
            .collect(),
        series: Series::new(Nanos::from_millis(100)),
        bandwidth_samples: None,
        iops_samples: None,
    }
}

/// A worker with these kinds, on the CPU for half of its time.
pub(crate) fn worker(number: u32, ms: u64, kinds: Vec<KindResult>) -> WorkerResult {
    let operations = kinds
        .iter()
        .filter(|k| k.kind != Kind::Sync)
        .map(|k| k.operations)
        .sum();
    WorkerResult {
        clone: 0,
        number,
        thread_id: Some(4000 + number),
        span: Some(Span {
            start_ns: Nanos(0),
            end_ns: Nanos::from_millis(ms),
        }),
        state: State::Done,
        kinds,
        cpu: CpuUse {
            user_ns: Nanos(ms * 375_000),
            system_ns: Nanos(ms * 125_000),
            voluntary_switches: 7,
            involuntary_switches: 3,
            minor_faults: 11,
            major_faults: 1,
            run_delay_ns: None,
        },
        depth: DepthUse {
            in_flight: [1, 0, 0, 0, operations - 1, 0, 0],
            submitted: [0, operations, 0, 0, 0, 0, 0],
            completed: [0, operations, 0, 0, 0, 0, 0],
            mean_in_flight: None,
        },
        ..WorkerResult::default()
    }
}

fn word(key: &str, value: &str) -> Word {
    Word {
        key: key.to_owned(),
        value: Some(value.to_owned()),
        ..Word::default()
    }
}

/// Random blocks of 4 KiB on no file.
fn workload(mix: Mix) -> BlockWorkload {
    let size = PerKind::all(BlockSize::Fixed { bytes: Bytes(4096) });
    BlockWorkload {
        mix,
        access: Access {
            random: true,
            distribution: Distribution::Uniform,
            generator: Generator::Xoshiro,
            map: true,
            random_percent: PerKind::all(100),
            skip_bytes: 0,
            step: SequencerStep::Sequential,
            steps: 1,
            align_bytes: None,
            seed: 1,
            zones: None,
            replay: None,
        },
        sizes: BlockSizes {
            size,
            by_pattern: false,
        },
        targets: Targets {
            files: FileNames::None,
            create: CreatePolicy {
                allow: None,
                overwrite: false,
                preallocate: Preallocate::Native,
                sync: true,
                on_open: false,
                only: false,
            },
            open: OpenMode::default(),
            remove_after: false,
            renew_each_pass: false,
            allow_mounted_write: false,
            service: weir_schema::FileService::default(),
            append: false,
        },
        region: Region::default(),
        content: Content {
            zero: false,
            refill: false,
            scramble: true,
            pattern: None,
            compress_percent: 0,
            compress_chunk_bytes: Bytes(512),
            dedupe_percent: 0,
            dedupe_set_percent: None,
        },
        flush: Flush::default(),
        verify: None,
    }
}

/// A job of these words, with fio's percentiles.
pub(crate) fn job(name: &str, mix: Mix, words: &[(&str, &str)]) -> Job {
    Job {
        name: name.to_owned(),
        description: None,
        clones: 1,
        merge: false,
        hidden: false,
        start: Start::default(),
        workload: Workload::Block(Box::new(workload(mix))),
        engine: EngineChoice {
            name: "null".to_owned(),
            settings: BTreeMap::new(),
        },
        depth: Depth {
            queue_depth: QueueDepth(16),
            ..Depth::default()
        },
        bounds: Bounds::default(),
        pacing: Pacing::default(),
        minimum_rate: None,
        placement: Placement::default(),
        memory: Memory::default(),
        recording: Recording {
            percentiles: FIO_PERCENTILES.map(Percent).to_vec(),
            ..Recording::default()
        },
        errors: ErrorPolicy::default(),
        exit_all: None,
        words: words.iter().map(|(k, v)| word(k, v)).collect(),
    }
}

/// A result: groups of jobs with their workers.
pub(crate) fn result(groups: Vec<Vec<(Job, Vec<WorkerResult>)>>) -> RunResult {
    let mut planned = Vec::new();
    let mut done = Vec::new();
    for group in groups {
        let (mut jobs, mut results) = (Vec::new(), Vec::new());
        for (job, workers) in group {
            results.push(JobResult {
                name: job.name.clone(),
                state: State::Done,
                span: None,
                failure: None,
                workers,
                confidence: Vec::new(),
                logs: Vec::new(),
                exchange: None,
                latency_bandwidth: None,
            });
            jobs.push(job);
        }
        planned.push(Group { jobs });
        done.push(GroupResult {
            jobs: results,
            ..GroupResult::default()
        });
    }
    RunResult {
        schema: RESULT_SCHEMA.to_owned(),
        weir_version: "1.2.3".to_owned(),
        started_unix_ns: 1_795_242_338_250_000_000,
        run_id: 1,
        duration_ns: Nanos::from_millis(2000),
        complete: true,
        ended_by: None,
        groups: done,
        ranks: Vec::new(),
        warnings: Vec::new(),
        disks: Vec::new(),
        clock: ClockFacts::default(),
        instrument: Instrument::default(),
        host: HostFacts::default(),
        program: None,
        plan: Plan {
            schema: PLAN_SCHEMA.to_owned(),
            name: "sample".to_owned(),
            door: "fio".to_owned(),
            command: Vec::new(),
            global_words: Vec::new(),
            groups: planned,
            total_log: None,
            ranks: None,
        },
    }
}

/// One worker of an asynchronous engine that reads and writes, with samples and a group rate.
pub(crate) fn mixed() -> RunResult {
    let stages = [
        (Stage::Slat, latencies(900, 1, 2000)),
        (Stage::Clat, latencies(50_000, 100, 2000)),
        (Stage::Lat, latencies(50_900, 101, 2000)),
    ];
    let mut read = kind(Kind::Read, 2000, 2001, &stages);
    let samples = |scale: f64| Moments {
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
        kind: Kind::Read,
        operations: 2000,
        bytes: Bytes(2000 * 4096),
        ops_per_s: Iops(999.5),
        bytes_per_s: BytesPerSec(4_093_953.0),
        overlap_bytes_per_s: Some(BytesPerSec(4_100_000.0)),
        overlap_ops_per_s: None,
    }];
    result
}
