//! Text of a result: that of `self_test`, and weir's lines below each block.
//!
//! In: a result, how it is shown. Out: text. Spec: RPC self-test, 4. Not here: JSON (`cart`), rows
//! (`rows`), weir's own JSON (`weir-report`), the exit code.

use weir_schema::{
    ErrorCode, Job, JobResult, LatencyFigures, PairFigure, PairMatrix, Plan, RpcEndpointResult,
    RpcMaster, RpcOutcome, RpcWorkload, RunResult, State, UNKNOWN_RPC_ERROR, Workload,
    rpc_error_code, value_at,
};
use weir_stats::Histogram;
use weir_units::Nanos;

use super::sizes::MessagePair;
use super::{
    SelfTestFormat, SelfTestOptions, TimeUnit, cart, further, head, rate_table, rows, sweep,
};
use crate::pair_table;

/// Below this median, in nanoseconds, whole microseconds say too little.
const SHORT: u64 = 20_000;
const MIB: f64 = 1_048_576.0;

/// The first RPC work of a plan, which has what all of them have.
pub(super) fn first_work(plan: &Plan) -> Option<&RpcWorkload> {
    works(plan).next()
}

/// The RPC works of a plan.
pub(super) fn works(plan: &Plan) -> impl Iterator<Item = &RpcWorkload> {
    plan.jobs().filter_map(|(_, job)| work_of(job))
}

/// Masters of a result that measured something, with their work.
pub(super) fn good_masters(result: &RunResult) -> impl Iterator<Item = (&RpcWorkload, &RpcMaster)> {
    measured(result).flat_map(|(work, done)| {
        let good = done.masters.iter().filter(|one| one.failure.is_none());
        good.map(move |master| (work, master))
    })
}

/// Jobs of a result that are RPCs: their work, what their masters did.
pub(super) fn measured(result: &RunResult) -> impl Iterator<Item = (&RpcWorkload, &RpcOutcome)> {
    let jobs = result.plan.jobs().zip(result.jobs());
    jobs.filter_map(|((_, job), done)| Some((work_of(job)?, done.rpc()?)))
}

/// The RPC work of a job.
pub(super) fn work_of(job: &Job) -> Option<&RpcWorkload> {
    match &job.workload {
        Workload::Rpc(work) => Some(work),
        _ => None,
    }
}

/// Every line before the results; nothing in other forms than text.
pub fn head(plan: &Plan, options: &SelfTestOptions) -> String {
    match options.format {
        SelfTestFormat::Text => head::head(plan, &options.head),
        _ => String::new(),
    }
}

/// The whole of what is printed of a result; nothing in the form that is weir's own.
pub fn text(result: &RunResult, options: &SelfTestOptions) -> String {
    match options.format {
        SelfTestFormat::Json => String::new(),
        SelfTestFormat::CartJson => cart::json(result),
        SelfTestFormat::Csv => rows::csv(result),
        SelfTestFormat::Prometheus => rows::prometheus(result),
        SelfTestFormat::Text if options.goal.is_some() => ending(result, options),
        SelfTestFormat::Text => {
            let groups = 0..result.groups.len();
            let blocks: String = groups.map(|group| block(result, group, options)).collect();
            blocks + &ending(result, options)
        }
    }
}

/// The block of one pair of sizes, by its place in the plan; in other forms than text nothing.
pub fn block(result: &RunResult, group: usize, options: &SelfTestOptions) -> String {
    let mut out = String::new();
    let planned = result.plan.groups.get(group);
    let done = result.groups.get(group);
    if let (SelfTestFormat::Text, Some(planned), Some(done)) = (options.format, planned, done) {
        for (job, done) in planned.jobs.iter().zip(&done.jobs) {
            of_job(&mut out, job, done, options);
        }
    }
    out
}

/// Lines below the last block: the table of a sweep; that a run was ended early.
pub fn ending(result: &RunResult, options: &SelfTestOptions) -> String {
    if !has_blocks(options) {
        return String::new();
    }
    let mut out = match &options.goal {
        Some(goal) => rate_table::text(result, goal, options),
        None => sweep::tables(result),
    };
    if let Some(load) = result.host.load_average.filter(|_| options.is_verbose) {
        push!(out, "+ Load average before the run: {load:.2}\n");
    }
    if let Some(end) = result.ended_by {
        push!(
            out,
            "+ Interrupted by signal {}: not all was measured\n",
            end.signal
        );
    }
    out
}

/// True if the output comes in blocks.
pub fn has_blocks(options: &SelfTestOptions) -> bool {
    options.format == SelfTestFormat::Text
}

fn of_job(out: &mut String, job: &Job, result: &JobResult, options: &SelfTestOptions) {
    let (Some(work), Some(done)) = (work_of(job), result.rpc()) else {
        return;
    };
    let pair = MessagePair::of(work);
    push!(out, "{}\n", "#".repeat(50));
    push!(
        out,
        "Results for message size {} (max_inflight_rpcs = {}):\n\n",
        pair.words(),
        work.in_flight()
    );
    for master in &done.masters {
        if let Some(failure) = &master.failure {
            let why = &failure.message;
            push!(out, "Master Endpoint {} FAILED: {why}\n\n", master.endpoint);
            continue;
        }
        of_master(out, work, (master, result), options);
        let more = further::lines(job, work, master, options);
        for line in &more {
            push!(out, "\t+ {line}\n");
        }
        if !more.is_empty() {
            out.push('\n');
        }
    }
    if work.matrix {
        for matrix in PairMatrix::of_rpcs(work, done) {
            out.push_str(&pair_table::table(
                &matrix,
                "+ ",
                pair_unit(&matrix, options),
            ));
            out.push('\n');
        }
    } else if done.masters.len() > 1 && done.masters.iter().any(|one| one.failure.is_none()) {
        further::together(out, work, done, options);
    }
}

fn of_master(
    out: &mut String,
    work: &RpcWorkload,
    (master, job): (&RpcMaster, &JobResult),
    options: &SelfTestOptions,
) {
    let title = format!("Master Endpoint {}", master.endpoint);
    push!(out, "{title}\n{}\n", "-".repeat(title.len()));
    let (label, bandwidth) = bandwidth(work, master.rate(), options);
    push!(out, "\tRPC Bandwidth ({label}): {bandwidth:.2}\n");
    push!(out, "\tRPC Throughput (RPCs/sec): {:.0}\n", master.rate());
    match &master.figures {
        None if master.failed > 0 => {
            out.push_str("\tAll RPCs for this message size failed\n");
            for line in failed_endpoints(master) {
                push!(out, "\t+ {line}\n");
            }
        }
        None => {
            let why = why_nothing(job);
            push!(out, "\tNo RPC for this message size was sent: {why}\n");
        }
        Some(figures) => {
            let scale = Scale::of(options.unit, figures);
            latencies(out, master, figures, scale);
            endpoints(out, master, scale);
        }
    }
}

/// Endpoints that are named where every RPC has failed; the result has them all.
const MOST_FAILED: usize = 16;

/// Which codes came from which endpoints.
fn failed_endpoints(master: &RpcMaster) -> Vec<String> {
    let failed = || master.endpoints.iter().filter(|one| one.failures() > 0);
    let line = |one: &RpcEndpointResult| {
        let codes = by_code(one).into_iter();
        let codes = codes.map(|(number, name, count)| format!("{count} -{name} ({number})"));
        let codes: Vec<String> = codes.collect();
        format!("Failures of {}: {}", one.endpoint, codes.join(", "))
    };
    let more = failed().count().saturating_sub(MOST_FAILED);
    let more = (more > 0).then(|| format!("Failures of {more} more endpoints"));
    failed().take(MOST_FAILED).map(line).chain(more).collect()
}

/// Why a job has sent nothing.
pub(super) fn why_nothing(job: &JobResult) -> String {
    match (&job.failure, job.state) {
        (Some(failure), _) => failure.message.clone(),
        (None, State::Stopped) => "the run was interrupted before".to_owned(),
        (None, State::NotStarted) => "the run ended before".to_owned(),
        (None, _) => "its time was over before".to_owned(),
    }
}

/// The same units as in the block.
fn pair_unit(matrix: &PairMatrix, options: &SelfTestOptions) -> (&'static str, f64) {
    match matrix.figure {
        PairFigure::Latency if options.unit == TimeUnit::Nanos => ("ns", 1e-9),
        PairFigure::Latency => ("us", 1e-6),
        PairFigure::Bandwidth if options.is_mbits => ("Mbits/sec", 1e6 / 8.0),
        PairFigure::Bandwidth => ("MB/sec", MIB),
        PairFigure::Throughput => ("RPCs/sec", 1.0),
    }
}

/// Its unit and its figure.
pub(super) fn bandwidth(
    work: &RpcWorkload,
    rate: f64,
    options: &SelfTestOptions,
) -> (&'static str, f64) {
    let bytes = f64::from(work.request.bytes) + f64::from(work.reply.bytes);
    if options.is_mbits {
        ("Mbits/sec", rate * bytes * 8.0 / 1e6)
    } else {
        ("MB/sec", rate * bytes / MIB)
    }
}

/// A percentile of the latencies of a master, by the rule of its median: of n sorted ones that at n·p/100,
/// counted from 0.
pub(super) fn percentile(master: &RpcMaster, percent: f64) -> Option<Nanos> {
    let is = |quarter: f64| (percent - quarter).abs() < f64::EPSILON;
    match &master.figures {
        // They may be known more exactly than the histogram has them.
        Some(figures) if is(25.0) => Some(figures.p25_ns),
        Some(figures) if is(50.0) => Some(figures.median_ns),
        Some(figures) if is(75.0) => Some(figures.p75_ns),
        _ => percentile_of(&master.latency, percent),
    }
}

/// The same of any latencies.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts far below 2^53, and no percentile is negative"
)]
pub(super) fn percentile_of(latency: &Histogram, percent: f64) -> Option<Nanos> {
    let last = latency.count().checked_sub(1)?;
    // 1000 · 99.9 / 100 is 999.
    let at = (latency.count() as f64 * percent / 100.0 + 1e-6) as u64;
    value_at(latency, at.min(last)).map(Nanos)
}

/// `90th`, `99.9th`, `91st`.
pub(super) fn ordinal(percent: f64) -> String {
    let text = percent.to_string();
    let is_odd = text.contains('.') || ["11", "12", "13"].contains(&text.as_str());
    let ending = match text.chars().last().filter(|_| !is_odd) {
        Some('1') => "st",
        Some('2') => "nd",
        Some('3') => "rd",
        _ => "th",
    };
    text + ending
}

/// Form of latencies.
#[derive(Clone, Copy)]
pub(super) enum Scale {
    /// Microseconds, cut off.
    Micros,
    /// Microseconds with three decimals.
    FineMicros,
    /// Nanoseconds.
    Nanos,
}

impl Scale {
    pub(super) fn of(unit: TimeUnit, figures: &LatencyFigures) -> Self {
        match unit {
            TimeUnit::Nanos => Self::Nanos,
            TimeUnit::Auto if figures.median_ns.0 < SHORT => Self::FineMicros,
            TimeUnit::Micros | TimeUnit::Auto => Self::Micros,
        }
    }

    pub(super) const fn unit(self) -> &'static str {
        match self {
            Self::Nanos => "ns",
            Self::Micros | Self::FineMicros => "us",
        }
    }

    pub(super) fn text(self, time: Nanos) -> String {
        match self {
            Self::Micros => (time.0 / 1000).to_string(),
            Self::FineMicros => format!("{}.{:03}", time.0 / 1000, time.0 % 1000),
            Self::Nanos => time.0.to_string(),
        }
    }

    /// A mean, which need not be whole.
    fn mean(self, ns: f64) -> String {
        match self {
            Self::Micros => format!("{:.0}", (ns / 1000.0).floor()),
            Self::FineMicros => format!("{:.3}", ns / 1000.0),
            Self::Nanos => format!("{:.0}", ns.floor()),
        }
    }

    fn deviation(self, ns: f64) -> String {
        match self {
            Self::Micros | Self::FineMicros => format!("{:.2}", ns / 1000.0),
            Self::Nanos => format!("{ns:.2}"),
        }
    }
}

fn latencies(out: &mut String, master: &RpcMaster, figures: &LatencyFigures, scale: Scale) {
    push!(out, "\tRPC Latencies ({}):\n", scale.unit());
    for (label, time) in [
        ("Min    ", figures.min_ns),
        ("25th  %", figures.p25_ns),
        ("Median ", figures.median_ns),
        ("75th  %", figures.p75_ns),
        ("Max    ", figures.max_ns),
    ] {
        push!(out, "\t\t{label}: {}\n", scale.text(time));
    }
    push!(out, "\t\tAverage: {}\n", scale.mean(figures.mean_ns));
    push!(
        out,
        "\t\tStd Dev: {}\n",
        scale.deviation(figures.deviation_ns)
    );
    push!(out, "\tRPC Failures: {}\n\n", master.failed);
}

fn endpoints(out: &mut String, master: &RpcMaster, scale: Scale) {
    push!(
        out,
        "\tEndpoint results (rank:tag - Median Latency ({})):\n",
        scale.unit()
    );
    for one in &master.endpoints {
        let median = one.median_ns.map(|time| scale.text(time));
        let median = median.unwrap_or_else(|| "NA".to_owned());
        push!(out, "\t\t{} - {median}\n", one.endpoint);
        failures(out, one);
    }
    out.push('\n');
}

fn failures(out: &mut String, one: &RpcEndpointResult) {
    let failures = one.failures();
    if failures == 0 {
        return;
    }
    push!(out, "\t\t\tFailures: {failures}/{}\n", one.sent());
    for (number, name, count) in by_code(one) {
        push!(out, "\t\t\t{count}: -{name} ({number})\n");
    }
}

/// Codes in ascending order, each with its name and how often it came.
fn by_code(one: &RpcEndpointResult) -> Vec<(i64, &str, u64)> {
    let mut all: Vec<(i64, &str, u64)> = Vec::new();
    for (code, count) in &one.failed {
        let (number, name) = match code {
            ErrorCode::Errno(number) => (i64::from(*number), UNKNOWN_RPC_ERROR),
            ErrorCode::Named(name) => (rpc_error_code(name).map_or(0, i64::from), name.as_str()),
        };
        all.push((number, name, *count));
    }
    all.sort_unstable();
    all
}
