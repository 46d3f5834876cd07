//! Plans and results for tests, built by hand: each figure in them is chosen, none is measured.
//!
//! In: names and numbers. Out: a small plan or result that is right, which a test changes where it
//! looks. Not here: what a door makes of its words, the cases of one renderer.

mod everything;
mod transports;

use weir_stats::{Batch, Estimate, Histogram, Series};
use weir_units::{Bytes, BytesPerSec, Iops, Nanos, QueueDepth};

pub use everything::everything;
pub use transports::transports;

use crate::block_workload::{BlockSizes, BlockWorkload, Mix};
use crate::exchange::ExchangeResult;
use crate::facts::{ClockFacts, ClockSource, DeviceFacts, HostFacts};
use crate::kind::Kind;
use crate::latency_bandwidth::LatencyBandwidthResult;
use crate::latency_over_time::{LatencyInterval, LatencyOverTime};
use crate::load_of_loop::{Bounds, Load};
use crate::outcome::Outcome;
use crate::plan::{EngineChoice, Group, Job, Plan, Word};
use crate::recording::Recording;
use crate::result::{
    Confidence, Failure, GroupResult, JobResult, KindResult, Rates, RunResult, Span, Stage,
    StageHistogram, State, WorkerResult,
};
use crate::workload::Workload;

/// Bytes of an operation.
const BLOCK: u64 = 4096;

/// A job that a test changes, wherever the plan keeps what it changes.
pub trait JobSample: Sized {
    /// Over another engine.
    #[must_use]
    fn over(self, engine: &str) -> Self;
    /// With other block I/O.
    #[must_use]
    fn blocks(self, change: impl FnOnce(&mut BlockWorkload)) -> Self;
    /// Sets the operations in flight.
    #[must_use]
    fn deep(self, queue_depth: u32) -> Self;
    /// With other bounds.
    #[must_use]
    fn bounded(self, change: impl FnOnce(&mut Bounds)) -> Self;
    /// With something else recorded.
    #[must_use]
    fn recorded(self, change: impl FnOnce(&mut Recording)) -> Self;
    /// As if these options had been given.
    #[must_use]
    fn worded(self, words: &[(&str, &str)]) -> Self;
    /// Its block I/O.
    fn block_work(&mut self) -> &mut BlockWorkload;
    /// The load of its loop.
    fn load_mut(&mut self) -> &mut Load {
        &mut self.block_work().load
    }
}

impl JobSample for Job {
    fn over(mut self, engine: &str) -> Self {
        engine.clone_into(&mut self.engine.name);
        self
    }

    fn blocks(mut self, change: impl FnOnce(&mut BlockWorkload)) -> Self {
        change(self.block_work());
        self
    }

    fn deep(mut self, queue_depth: u32) -> Self {
        self.load_mut().depth.queue_depth = QueueDepth(queue_depth);
        self
    }

    fn bounded(mut self, change: impl FnOnce(&mut Bounds)) -> Self {
        change(&mut self.load_mut().bounds);
        self
    }

    fn recorded(mut self, change: impl FnOnce(&mut Recording)) -> Self {
        change(&mut self.load_mut().recording);
        self
    }

    fn worded(mut self, words: &[(&str, &str)]) -> Self {
        let word = |(key, value): &(&str, &str)| Word {
            key: (*key).to_owned(),
            value: Some((*value).to_owned()),
        };
        self.words = words.iter().map(word).collect();
        self
    }

    #[expect(clippy::panic, reason = "a test that asks for it has a block job")]
    fn block_work(&mut self) -> &mut BlockWorkload {
        match &mut self.workload {
            Workload::Block(work) => work,
            other => panic!("no block I/O: {other:?}"),
        }
    }
}

/// Reads of 4 KiB one after the other, over the null engine.
pub fn block_job(name: &str) -> Job {
    let mut work = BlockWorkload::default();
    work.access.seed = 7;
    Job::of_blocks(name, EngineChoice::new("null"), work)
}

/// Random operations of this size; the first kind's alone, or 70 % of them.
pub fn random_job(name: &str, kinds: &[Kind], block: u64) -> Job {
    block_job(name).blocks(|work| {
        work.access.random = true;
        work.sizes = BlockSizes::fixed(Bytes(block));
        work.mix = Mix::only(kinds.first().copied().unwrap_or(Kind::Read));
        if kinds.contains(&Kind::Read) && kinds.len() > 1 {
            (work.mix.read_percent, work.mix.write_percent) = (70, 30);
        }
    })
}

/// A plan of groups of jobs.
pub fn plan(groups: Vec<Vec<Job>>) -> Plan {
    Plan {
        groups: groups.into_iter().map(|jobs| Group { jobs }).collect(),
        ..Plan::new("sample", "test", Vec::new())
    }
}

/// The result of a plan that was carried out, in which no worker did anything.
pub fn result(plan: Plan) -> RunResult {
    let mut result = RunResult {
        weir_version: "1.2.3".to_owned(),
        started_unix_ns: 1_795_242_338_250_000_000,
        run_id: 1,
        duration_ns: Nanos::from_millis(2000),
        complete: true,
        ..RunResult::of(plan)
    };
    for job in result.groups.iter_mut().flat_map(|g| &mut g.jobs) {
        job.state = State::Done;
    }
    result
}

/// A result and its plan, of groups of jobs with what came of each.
pub fn run(groups: Vec<Vec<(Job, JobResult)>>) -> RunResult {
    let (mut planned, mut done) = (Vec::new(), Vec::new());
    for group in groups {
        let (jobs, results) = group.into_iter().unzip();
        planned.push(jobs);
        done.push(GroupResult {
            jobs: results,
            ..GroupResult::default()
        });
    }
    RunResult {
        groups: done,
        ..result(plan(planned))
    }
}

/// A job that came to its end with these workers.
pub fn job_result(name: &str, workers: Vec<WorkerResult>) -> JobResult {
    measured(name, Outcome::of_workers(workers))
}

/// A job that exchanged messages.
pub fn exchange_result(name: &str, exchange: ExchangeResult) -> JobResult {
    measured(name, Outcome::Exchange(Box::new(exchange)))
}

/// A job that measured latency and bandwidth.
pub fn latency_bandwidth_result(name: &str, found: LatencyBandwidthResult) -> JobResult {
    measured(name, Outcome::LatencyBandwidth(Box::new(found)))
}

/// A job that came to its end with this outcome.
fn measured(name: &str, outcome: Outcome) -> JobResult {
    JobResult {
        state: State::Done,
        outcome,
        ..JobResult::not_started(name)
    }
}

/// The same job, with how sure its figures are.
#[must_use]
pub fn sure(mut job: JobResult, confidence: Vec<Confidence>) -> JobResult {
    if let Outcome::Loop(done) = &mut job.outcome {
        done.confidence = confidence;
    }
    job
}

/// The latencies of a kind in intervals of these lengths.
pub fn latency_over_time(kind: Kind, intervals: &[(Nanos, Histogram)]) -> LatencyOverTime {
    let mut end = Nanos::ZERO;
    let intervals = intervals.iter().map(|(length_ns, histogram)| {
        end = end.saturating_add(*length_ns);
        let batch = Batch {
            histogram: histogram.clone(),
            ..Batch::default()
        };
        LatencyInterval::of(&batch, end)
    });
    LatencyOverTime {
        kind: kind.into(),
        stage: Stage::Lat,
        intervals: intervals.collect(),
    }
}

/// The same job, with how its latencies went over time.
#[must_use]
pub fn over_time(mut job: JobResult, kinds: Vec<LatencyOverTime>) -> JobResult {
    if let Outcome::Loop(done) = &mut job.outcome {
        done.latency_over_time = kinds;
    }
    job
}

/// Result of a job's exchange.
#[expect(clippy::panic, reason = "a test that asks for it has an exchange")]
pub fn exchange_of(job: &mut JobResult) -> &mut ExchangeResult {
    match &mut job.outcome {
        Outcome::Exchange(done) => done,
        other => panic!("no exchange: {other:?}"),
    }
}

/// The latencies and bandwidths that a job measured.
#[expect(clippy::panic, reason = "a test that asks for it has them")]
pub fn latency_bandwidth_of(job: &mut JobResult) -> &mut LatencyBandwidthResult {
    match &mut job.outcome {
        Outcome::LatencyBandwidth(done) => done,
        other => panic!("no latencies and bandwidths: {other:?}"),
    }
}

/// Figures of a job with their intervals, per kind.
pub fn confidence_of(job: &mut JobResult) -> &mut [Confidence] {
    match &mut job.outcome {
        Outcome::Loop(done) => &mut done.confidence,
        _ => &mut [],
    }
}

/// A worker that did this from the start of the run.
pub fn worker(number: u32, time: Nanos, kinds: Vec<KindResult>) -> WorkerResult {
    WorkerResult {
        number,
        thread_id: Some(4000 + number),
        span: Some(span(Nanos::ZERO, time)),
        state: State::Done,
        kinds,
        ..WorkerResult::default()
    }
}

/// Operations of a kind by a worker: of 4 KiB, with these latencies.
pub fn kind(kind: Kind, operations: u64, time: Nanos, stages: &[(Stage, Histogram)]) -> KindResult {
    let moved = if kind == Kind::Sync { 0 } else { BLOCK };
    let stage = |(stage, histogram): &(Stage, Histogram)| StageHistogram {
        stage: *stage,
        histogram: histogram.clone(),
    };
    KindResult {
        issued: operations,
        operations,
        bytes: Bytes(operations * moved),
        runtime_ns: time,
        stages: stages.iter().map(stage).collect(),
        ..KindResult::new(kind)
    }
}

/// Operations of so many bytes in each interval.
#[expect(clippy::expect_used, reason = "whole intervals alone are pushed")]
pub fn series(interval: Nanos, operations: &[u64], block: u64) -> Series {
    let mut series = Series::new(interval);
    for n in operations {
        let pushed = series.push(*n, Bytes(n * block));
        pushed.expect("invariant: an interval follows whole ones");
    }
    series
}

/// From this time of the run to that.
pub fn span(start_ns: Nanos, end_ns: Nanos) -> Span {
    Span { start_ns, end_ns }
}

/// A read that the device failed.
pub fn failure() -> Failure {
    Failure {
        errno: Some(5),
        target: Some("/dev/nvme0n1".to_owned()),
        kind: Some(Kind::Read.into()),
        offset_bytes: Some(Bytes(32_755_712)),
        length_bytes: Some(Bytes(BLOCK)),
        ..Failure::new(
            "io",
            "read of 4096 bytes at offset 32755712 of /dev/nvme0n1 failed: Input/output error; \
             see the kernel's log",
        )
    }
}

/// The counter of a CPU, calibrated.
pub fn clock() -> ClockFacts {
    ClockFacts {
        source: ClockSource::Tsc,
        reason: "constant, nonstop, and the kernel's own".to_owned(),
        frequency_hz: 3.25e9,
        read_ns: 9.1,
        residual_ns: Some(40.0),
        residual_ppm: Some(0.1),
        anchors: 31,
    }
}

/// A server with one device.
pub fn host() -> HostFacts {
    HostFacts {
        hostname: Some("host7".to_owned()),
        kernel: Some("Linux 6.12".to_owned()),
        os: Some("Debian 12".to_owned()),
        cpu_model: Some("EPYC 9354".to_owned()),
        cpus: Some(32),
        governor: Some("performance".to_owned()),
        memory_bytes: Some(Bytes(256 << 30)),
        numa_nodes: Some(2),
        load_average: Some(0.4),
        devices: vec![DeviceFacts {
            target: "/dev/nvme0n1".to_owned(),
            kind: "block device".to_owned(),
            size_bytes: Some(Bytes(3_840_755_982_336)),
            device: Some("nvme0n1".to_owned()),
            scheduler: Some("none".to_owned()),
            logical_block_bytes: Some(Bytes(512)),
            numa_node: Some(0),
            ..DeviceFacts::default()
        }],
    }
}

/// Rates of a kind in a group, two clients of it together a little faster.
pub fn rates(kind: Kind, operations: u64, bytes: Bytes, time: Nanos) -> Rates {
    let ops_per_s = Iops::of(operations, time).unwrap_or_default();
    let bytes_per_s = BytesPerSec::of(bytes, time).unwrap_or_default();
    Rates {
        kind: kind.into(),
        operations,
        bytes,
        ops_per_s,
        bytes_per_s,
        overlap_bytes_per_s: Some(BytesPerSec(bytes_per_s.0 * 1.04)),
        overlap_ops_per_s: Some(Iops(ops_per_s.0 * 1.04)),
    }
}

/// A rate with an interval, and the mean latency with one.
pub fn confidence(kind: Kind, ops_per_s: Estimate, mean_latency_ns: Estimate) -> Confidence {
    Confidence {
        kind: kind.into(),
        ops_per_s,
        bytes_per_s: None,
        slow: false,
        latency_stage: Some(Stage::Lat),
        mean_latency_ns: Some(mean_latency_ns),
        percentiles: Vec::new(),
    }
}
