//! Jobs in a few numbers, and results built from them.

use weir_schema::sample::{self, JobSample, random_job};
use weir_schema::{
    CpuUse, DepthUse, FileNames, Instrument, Job, JobResult, Kind, KindResult, PerKind, Rates,
    RunResult, Schedule, Span, Stage, WorkerResult,
};
use weir_stats::{Estimate, Histogram};
use weir_units::{Bytes, Iops, Nanos};

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
        let kinds: Vec<Kind> = self.kinds.iter().map(|k| k.0).collect();
        let rate = self.kinds.first().map(|k| Iops(real(k.1)));
        let schedule = self.open_loop.then_some(Schedule::OpsPerSecond {
            limit_per_s: PerKind::only(Kind::Read, rate).given_by_name(),
            poisson: true,
            open_loop: true,
            ignore_thinktime: false,
        });
        let mut job = random_job(&self.name, &kinds, self.block)
            .over("io_uring")
            .deep(self.depth)
            .blocks(|work| {
                work.targets.files = FileNames::of("/dev/nvme0n1");
                work.targets.open.direct = true;
            })
            .bounded(|bounds| bounds.runtime_ns = Some(Nanos::from_secs(30)));
        job.clones = self.workers.max(1);
        job.load_mut().pacing.schedule = schedule;
        job
    }

    fn kind(&self, kind: Kind, per_s: u64, share: u64) -> KindResult {
        // A little up and down, the same in every run.
        let counts = (0..self.tenths).map(|i| {
            let stalled = (self.stall.0..self.stall.1).contains(&i);
            let percent = if stalled { 0 } else { 97 + (i * 37) % 7 };
            per_s * share * percent / 100_000
        });
        let counts: Vec<u64> = counts.collect();
        let operations = counts.iter().sum();
        let mut stages = vec![(Stage::Slat, 910), (Stage::Lat, self.p50_ns)];
        if self.open_loop {
            stages.push((Stage::Rlat, self.p50_ns * 3));
        }
        let stages: Vec<(Stage, Histogram)> = stages
            .into_iter()
            .map(|(stage, p50)| (stage, histogram(operations, p50)))
            .collect();
        let moved = if kind == Kind::Sync { 0 } else { self.block };
        KindResult {
            bytes: Bytes(operations * moved),
            series: sample::series(INTERVAL, &counts, self.block),
            ..sample::kind(kind, operations, self.span().length(), &stages)
        }
    }

    /// The latencies of each half second, which go up and down with a period of two.
    fn intervals(&self, per_s: u64) -> Vec<(Nanos, Histogram)> {
        let halves = (0..self.tenths / 5).map(|i| {
            let stalled = (self.stall.0..self.stall.1).contains(&(5 * i));
            let done = if stalled { 0 } else { per_s / 2 };
            let p50_ns = self.p50_ns * (100 + 10 * (i % 4)) / 100;
            (INTERVAL.saturating_mul(5), histogram(done, p50_ns))
        });
        halves.collect()
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
        let time = self.span().length();
        WorkerResult {
            clone,
            thread_id: Some(4242 + clone),
            span: Some(span),
            cpu: CpuUse {
                user_ns: Nanos(time.0 / 100 * 22),
                system_ns: Nanos(time.0 / 100 * 49),
                ..CpuUse::default()
            },
            depth: DepthUse {
                mean_in_flight: Some(f64::from(self.depth) * 0.997),
                ..DepthUse::default()
            },
            ..sample::worker(clone, time, kinds.collect())
        }
    }

    fn result(&self) -> JobResult {
        let confidence = self.kinds.iter().map(|(kind, rate)| {
            let rate = real(*rate);
            let mean = real(self.p50_ns) * 1.044;
            let rate = Estimate::within(rate, rate * 0.994, rate * 1.006);
            let mean = Estimate::within(mean, mean - 503.0, mean + 503.0);
            sample::confidence(*kind, rate, mean)
        });
        let workers = (0..self.workers).map(|clone| self.worker(clone));
        let result = sample::job_result(&self.name, workers.collect());
        let over_time = self.kinds.iter().map(|(kind, rate)| {
            let mut over_time = sample::latency_over_time(*kind, &self.intervals(*rate));
            if self.open_loop {
                over_time.stage = Stage::Rlat;
            }
            over_time
        });
        let result = sample::over_time(result, over_time.collect());
        JobResult {
            span: Some(self.span()),
            ..sample::sure(result, confidence.collect())
        }
    }
}

fn rates(jobs: &[JobResult]) -> Vec<Rates> {
    let spans = || {
        jobs.iter()
            .flat_map(JobResult::workers)
            .filter_map(|w| w.span)
    };
    let start = |s: Span| s.start_ns;
    let end = |s: Span| s.end_ns;
    let (Some(first), Some(last)) = (spans().map(start).min(), spans().map(end).max()) else {
        return Vec::new();
    };
    let together = spans().map(end).min() > spans().map(start).max();
    let time = last.saturating_sub(first);
    let kinds = || {
        jobs.iter()
            .flat_map(JobResult::workers)
            .flat_map(|w| &w.kinds)
    };
    let mut rates = Vec::new();
    for kind in [Kind::Read, Kind::Write, Kind::Trim, Kind::Sync] {
        let of_kind = || kinds().filter(|k| k.kind == kind);
        if of_kind().next().is_none() {
            continue;
        }
        let operations: u64 = of_kind().map(|k| k.operations).sum();
        let bytes: Bytes = of_kind().map(|k| k.bytes).sum();
        let mut found = sample::rates(kind, operations, bytes, time);
        if !together {
            (found.overlap_bytes_per_s, found.overlap_ops_per_s) = (None, None);
        }
        rates.push(found);
    }
    rates
}

/// A complete run of these jobs, all in one group.
pub(crate) fn run(shapes: &[Shape]) -> RunResult {
    let jobs: Vec<(Job, JobResult)> = shapes.iter().map(|s| (s.plan(), s.result())).collect();
    let ends = jobs
        .iter()
        .filter_map(|(_, job)| job.span)
        .map(|s| s.end_ns);
    let mut result = RunResult {
        weir_version: "1.0.0".into(),
        history: None,
        started_unix_ns: 1_795_239_012_345_678_901,
        duration_ns: ends.max().unwrap_or_default(),
        clock: sample::clock(),
        instrument: Instrument {
            ns_per_op: Some(17.23),
            ..Instrument::default()
        },
        host: sample::host(),
        ..sample::run(vec![jobs])
    };
    result.groups[0].rates = rates(&result.groups[0].jobs);
    result.plan.name = "first.fio".into();
    result
}
