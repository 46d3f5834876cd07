//! Jobs in a few numbers, and results built from them.

use weir_schema::{
    Access, BlockSize, BlockSizes, BlockWorkload, Bounds, ClockFacts, ClockSource, Confidence,
    Content, CpuUse, CreatePolicy, Depth, DepthUse, DeviceFacts, Distribution, EngineChoice,
    ErrorPolicy, FileNames, Flush, Generator, Group, GroupResult, HostFacts, Instrument, Job,
    JobResult, Kind, KindResult, Memory, Mix, OpenMode, PLAN_SCHEMA, Pacing, PerKind, Placement,
    Plan, Preallocate, RESULT_SCHEMA, Rates, Recording, Region, RunResult, Schedule, SequencerStep,
    Span, Stage, StageHistogram, Start, State, Targets, WorkerResult, Workload,
};
use weir_stats::{Estimate, Histogram, Series};
use weir_units::{Bytes, BytesPerSec, Iops, Nanos, QueueDepth};

const INTERVAL: Nanos = Nanos::from_millis(100);

/// A job in a few numbers.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) name: String,
    pub(crate) kinds: Vec<(Kind, u64)>,
    pub(crate) workers: u32,
    pub(crate) depth: u32,
    pub(crate) block: u64,
    pub(crate) p50_ns: u64,
    pub(crate) start_s: u64,
    pub(crate) tenths: u64,
    pub(crate) open_loop: bool,
    /// Lower rate of the last worker, in percent.
    pub(crate) slowest: u64,
    /// Tenths of a second without completions, from to.
    pub(crate) stall: (u64, u64),
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            name: "rand-read".into(),
            kinds: vec![(Kind::Read, 412_345)],
            workers: 1,
            depth: 32,
            block: 4096,
            p50_ns: 74_200,
            start_s: 0,
            tenths: 300,
            open_loop: false,
            slowest: 100,
            stall: (0, 0),
        }
    }
}

/// A distribution with a long tail: (share up to here in millionths, value in percent of p50).
const SHAPE: [(u64, u64); 8] = [
    (1_000, 69),
    (250_000, 90),
    (550_000, 100),
    (850_000, 112),
    (980_000, 123),
    (995_000, 178),
    (999_900, 294),
    (1_000_000, 900),
];

fn histogram(count: u64, p50_ns: u64) -> Histogram {
    let mut histogram = Histogram::new();
    let mut done = 0;
    for (share, percent) in SHAPE {
        let until = u64::try_from(u128::from(count) * u128::from(share) / 1_000_000).unwrap();
        histogram.record_n(p50_ns * percent / 100, until - done);
        done = until;
    }
    histogram
}

#[expect(clippy::cast_precision_loss, reason = "small numbers of tests")]
fn real(value: u64) -> f64 {
    value as f64
}

impl Shape {
    fn span(&self) -> Span {
        let start_ns = Nanos::from_secs(self.start_s);
        let length = INTERVAL.saturating_mul(self.tenths);
        Span {
            start_ns,
            end_ns: start_ns.saturating_add(length),
        }
    }

    fn plan(&self) -> Job {
        let mut mix = Mix::only(self.kinds.first().map_or(Kind::Read, |k| k.0));
        if self.kinds.iter().any(|k| k.0 == Kind::Read) && self.kinds.len() > 1 {
            mix = Mix {
                read_percent: 70,
                write_percent: 30,
                ..mix
            };
        }
        let rate = self.kinds.first().map(|k| Iops(real(k.1)));
        let schedule = self.open_loop.then_some(Schedule::OpsPerSecond {
            limit_per_s: PerKind {
                read: rate,
                ..PerKind::default()
            },
            poisson: true,
            open_loop: true,
            ignore_thinktime: false,
        });
        Job {
            name: self.name.clone(),
            description: None,
            clones: self.workers.max(1),
            merge: false,
            hidden: false,
            start: Start::default(),
            workload: Workload::Block(Box::new(workload(mix, self.block))),
            engine: EngineChoice {
                name: "io_uring".into(),
                settings: [].into(),
            },
            depth: Depth {
                queue_depth: QueueDepth(self.depth),
                ..Depth::default()
            },
            bounds: Bounds {
                runtime_ns: Some(Nanos::from_secs(30)),
                ..Bounds::default()
            },
            pacing: Pacing {
                schedule,
                ..Pacing::default()
            },
            minimum_rate: None,
            placement: Placement::default(),
            memory: Memory::default(),
            recording: Recording::default(),
            errors: ErrorPolicy::default(),
            exit_all: None,
            words: Vec::new(),
        }
    }

    fn kind(&self, kind: Kind, per_s: u64, share: u64) -> KindResult {
        let mut series = Series::new(INTERVAL);
        let mut operations = 0;
        for i in 0..self.tenths {
            // A little up and down, the same in every run.
            let stalled = (self.stall.0..self.stall.1).contains(&i);
            let percent = if stalled { 0 } else { 97 + (i * 37) % 7 };
            let n = per_s * share * percent / 100_000;
            operations += n;
            series.push(n, Bytes(n * self.block)).unwrap();
        }
        let stage = |stage, p50| StageHistogram {
            stage,
            histogram: histogram(operations, p50),
        };
        let mut stages = vec![stage(Stage::Slat, 910), stage(Stage::Lat, self.p50_ns)];
        if self.open_loop {
            stages.push(stage(Stage::Rlat, self.p50_ns * 3));
        }
        let moves = if kind == Kind::Sync { 0 } else { self.block };
        KindResult {
            kind,
            issued: operations,
            operations,
            bytes: Bytes(operations * moves),
            short: 0,
            dropped: 0,
            lost: 0,
            errors: [].into(),
            runtime_ns: self.span().length(),
            stages,
            series,
            bandwidth_samples: None,
            iops_samples: None,
        }
    }

    fn worker(&self, clone: u32) -> WorkerResult {
        let is_last = clone + 1 == self.workers && self.workers > 1;
        let share = if is_last { self.slowest } else { 100 };
        let per_worker = u64::from(self.workers.max(1));
        let mut span = self.span();
        if is_last && self.slowest < 100 {
            span.start_ns = span.start_ns.saturating_add(Nanos::from_millis(1400));
        }
        let kinds = self
            .kinds
            .iter()
            .map(|(k, rate)| self.kind(*k, rate / per_worker, share));
        let time = self.span().length().0;
        WorkerResult {
            clone,
            number: clone,
            thread_id: Some(4242 + clone),
            span: Some(span),
            setup_ns: Some(Nanos(1_200_000)),
            state: State::Done,
            failure: None,
            kinds: kinds.collect(),
            cpu: CpuUse {
                user_ns: Nanos(time / 100 * 22),
                system_ns: Nanos(time / 100 * 49),
                ..CpuUse::default()
            },
            depth: DepthUse {
                mean_in_flight: Some(f64::from(self.depth) * 0.997),
                ..DepthUse::default()
            },
            prepare_ns: None,
            late_issues: None,
            mismatches: Vec::new(),
            told: Vec::new(),
            steadiness: None,
            depth_found: None,
        }
    }

    fn result(&self) -> JobResult {
        let confidence = self.kinds.iter().map(|(kind, rate)| {
            let rate = real(*rate);
            let mean = real(self.p50_ns) * 1.044;
            Confidence {
                kind: *kind,
                ops_per_s: Estimate::within(rate, rate * 0.994, rate * 1.006),
                mean_latency_ns: Some(Estimate::within(mean, mean - 503.0, mean + 503.0)),
                percentiles: Vec::new(),
            }
        });
        JobResult {
            name: self.name.clone(),
            state: State::Done,
            span: Some(self.span()),
            failure: None,
            workers: (0..self.workers).map(|clone| self.worker(clone)).collect(),
            confidence: confidence.collect(),
            logs: Vec::new(),
            exchange: None,
            latency_bandwidth: None,
        }
    }
}

fn workload(mix: Mix, block: u64) -> BlockWorkload {
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
            size: PerKind::all(BlockSize::Fixed {
                bytes: Bytes(block),
            }),
            by_pattern: false,
        },
        targets: Targets {
            files: FileNames::Listed {
                paths: vec!["/dev/nvme0n1".into()],
                directories: Vec::new(),
            },
            create: CreatePolicy {
                allow: None,
                overwrite: false,
                preallocate: Preallocate::Native,
                sync: false,
                on_open: false,
                only: false,
            },
            open: OpenMode {
                direct: true,
                ..OpenMode::default()
            },
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
            compress_chunk_bytes: Bytes(4096),
            dedupe_percent: 0,
            dedupe_set_percent: None,
        },
        flush: Flush::default(),
        verify: None,
    }
}

fn rates(jobs: &[JobResult]) -> Vec<Rates> {
    let spans = || jobs.iter().flat_map(|j| &j.workers).filter_map(|w| w.span);
    let start = |s: Span| s.start_ns;
    let end = |s: Span| s.end_ns;
    let (Some(first), Some(last)) = (spans().map(start).min(), spans().map(end).max()) else {
        return Vec::new();
    };
    let together = spans().map(end).min() > spans().map(start).max();
    let time = last.saturating_sub(first);
    let kinds = || jobs.iter().flat_map(|j| &j.workers).flat_map(|w| &w.kinds);
    let mut rates = Vec::new();
    for kind in [Kind::Read, Kind::Write, Kind::Trim, Kind::Sync] {
        let of_kind = || kinds().filter(|k| k.kind == kind);
        if of_kind().next().is_none() {
            continue;
        }
        let operations: u64 = of_kind().map(|k| k.operations).sum();
        let bytes: Bytes = of_kind().map(|k| k.bytes).sum();
        let ops_per_s = Iops::of(operations, time).unwrap_or_default();
        let bytes_per_s = BytesPerSec::of(bytes, time).unwrap_or_default();
        rates.push(Rates {
            kind,
            operations,
            bytes,
            ops_per_s,
            bytes_per_s,
            overlap_bytes_per_s: together.then_some(BytesPerSec(bytes_per_s.0 * 1.04)),
            overlap_ops_per_s: together.then_some(Iops(ops_per_s.0 * 1.04)),
        });
    }
    rates
}

/// A complete run of these jobs, all in one group.
pub(crate) fn run(shapes: &[Shape]) -> RunResult {
    let jobs: Vec<JobResult> = shapes.iter().map(Shape::result).collect();
    let plan = Plan {
        schema: PLAN_SCHEMA.into(),
        name: "first.fio".into(),
        door: "run".into(),
        command: Vec::new(),
        global_words: Vec::new(),
        groups: vec![Group {
            jobs: shapes.iter().map(Shape::plan).collect(),
        }],
        total_log: None,
        ranks: None,
    };
    let ends = jobs.iter().filter_map(|j| j.span).map(|s| s.end_ns);
    RunResult {
        schema: RESULT_SCHEMA.into(),
        weir_version: "1.0.0".into(),
        started_unix_ns: 1_795_239_012_345_678_901,
        run_id: 1,
        duration_ns: ends.max().unwrap_or_default(),
        complete: true,
        ended_by: None,
        groups: vec![GroupResult {
            rates: rates(&jobs),
            jobs,
            together: None,
        }],
        ranks: Vec::new(),
        warnings: Vec::new(),
        disks: Vec::new(),
        clock: ClockFacts {
            source: ClockSource::Tsc,
            reason: "constant, nonstop, and the kernel's own".into(),
            frequency_hz: 3.25e9,
            read_ns: 9.1,
            residual_ns: Some(40.0),
            residual_ppm: Some(0.1),
            anchors: 31,
        },
        instrument: Instrument {
            ns_per_op: Some(17.23),
            ..Instrument::default()
        },
        host: host(),
        program: None,
        plan,
    }
}

fn host() -> HostFacts {
    HostFacts {
        hostname: Some("host7".into()),
        kernel: Some("Linux 6.12".into()),
        os: Some("Debian 12".into()),
        cpu_model: Some("EPYC 9354".into()),
        cpus: Some(32),
        governor: Some("performance".into()),
        memory_bytes: Some(Bytes(256 << 30)),
        numa_nodes: Some(2),
        devices: vec![DeviceFacts {
            target: "/dev/nvme0n1".into(),
            kind: "block device".into(),
            size_bytes: Some(Bytes(3_840_755_982_336)),
            file_system: None,
            device: Some("nvme0n1".into()),
            model: None,
            scheduler: Some("none".into()),
            logical_block_bytes: Some(Bytes(512)),
            numa_node: Some(0),
            ..DeviceFacts::default()
        }],
    }
}
