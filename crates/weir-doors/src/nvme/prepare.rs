//! Preparation of targets, and the state of drives: writes before the measurement, blocks that hold nothing, a
//! steady rate, heat.
//!
//! In: arguments, targets. Out: groups of jobs before the measured one, bounds, warnings. Not here: the measured
//! jobs (`plan`), looking at temperatures while the run goes on.

use weir_schema::{
    BlockSizes, BlockWorkload, Generator, Group, Job, JobResult, Kind, Mix, Plan, RunResult, Size,
    Steady, SteadyMeasure, SteadyRate, Warning,
};
use weir_units::{Bytes, Nanos, QueueDepth, parse};

use super::cores::Context;
use super::plan::Asked;
use super::targets::Target;
use super::values::duration;
use crate::given::Given;
use crate::machine::Machine;
use crate::refusal::Refusal;
use crate::request::{HeatLimit, Request};
use crate::takes::Takes;

/// Bytes of a sequential write.
const LARGE: u64 = 1 << 20;
/// Samples of a rate that have to be steady, one a second, unless a time is given.
const ROUNDS: Nanos = Nanos::from_secs(5);

/// Passes over the target, as `seq:1x,rand:2x`.
pub(super) const PASSES: Takes = Takes::Grammar(|text| passes(text).map(drop));
/// Limit of a steady rate, as `iops:3%:60`.
pub(super) const STEADY: Takes = Takes::Grammar(|text| steady(text).map(drop));

/// Writes over the whole of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pass {
    is_random: bool,
    times: u64,
}

fn passes(text: &str) -> Result<Vec<Pass>, String> {
    let one = |word: &str| {
        let (order, times) = word.split_once(':')?;
        let times = parse::whole(times.strip_suffix('x')?, (1_u64, 100)).ok()?;
        let is_random = order == "rand";
        (is_random || order == "seq").then_some(Pass { is_random, times })
    };
    let all = text.split(',').map(one).collect::<Option<Vec<Pass>>>();
    all.ok_or_else(|| "it takes passes over the target, as seq:1x, rand:2x or both".to_owned())
}

/// Groups of the plan before the measured one.
fn stages(given: &Given) -> Vec<Pass> {
    let all = given.all("precondition").flat_map(passes);
    all.flatten().collect()
}

/// Number of groups before the measured one.
pub(super) fn groups_before(given: &Given) -> usize {
    stages(given).len()
}

/// Puts the writes of `--precondition` before the measured group.
///
/// # Errors
/// The engine cannot write a target.
pub(super) fn precede(
    plan: &mut Plan,
    asked: &Asked<'_>,
    contexts: &[Context],
    all: &[Target],
) -> Result<(), Refusal> {
    let mut before = Vec::new();
    for pass in stages(asked.given) {
        let mut jobs = Vec::new();
        for (at, target) in all.iter().enumerate() {
            let first = contexts.iter().find(|context| context.target == at);
            let core = first.map(|context| vec![context.core]);
            for (begin, size, count) in ranges(pass, asked.size, target.facts.bytes) {
                let mut job = write_job(asked, target, pass, (begin, size, count))?;
                job.placement.cpus.clone_from(&core);
                jobs.push(job);
            }
        }
        before.push(Group { jobs });
    }
    for group in before.iter_mut().skip(1).chain(&mut plan.groups) {
        let first = group.jobs.first_mut().filter(|_| asked.destroys_before());
        if let Some(job) = first {
            job.start.barrier = true;
        }
    }
    plan.groups.splice(0..0, before);
    Ok(())
}

/// Places that a pass writes: where they begin, their size, how many. Sequential writes are large, and one of
/// another size reaches the end of the target.
fn ranges(pass: Pass, size: u64, bytes: u64) -> Vec<(u64, u64, u64)> {
    if pass.is_random {
        return vec![(0, size, bytes / size)];
    }
    let end = bytes / LARGE * LARGE;
    let all = [(0, LARGE, bytes / LARGE), (end, bytes - end, 1)];
    let all = all.into_iter().filter(|(_, size, count)| size * count > 0);
    all.collect()
}

fn write_job(
    asked: &Asked<'_>,
    target: &Target,
    pass: Pass,
    (begin, size, count): (u64, u64, u64),
) -> Result<Job, Refusal> {
    let mut work = BlockWorkload {
        mix: Mix::only(Kind::Write),
        sizes: BlockSizes::fixed(Bytes(size)),
        ..BlockWorkload::default()
    };
    work.access.random = pass.is_random;
    // Each place once, without memory for which of them were written.
    work.access.generator = Generator::Lfsr;
    work.access.map = false;
    work.access.seed = asked.given.number("seed");
    work.region.offset = Some(Size::Bytes(Bytes(begin)));
    work.region.size = Some(Size::Bytes(Bytes(size * count)));
    work.passes.loops = pass.times;
    work.load.depth.queue_depth = QueueDepth(asked.depth);
    // The first engine writes for all.
    let engine = asked.engines.first().copied().unwrap_or("io_uring");
    asked.aim(&mut work, engine, target)?;
    let (order, times) = (if pass.is_random { "rand" } else { "seq" }, pass.times);
    let name = format!("precondition {order}:{times}x {}", target.path);
    Ok(Job::of_blocks(&name, asked.engine(engine, target)?, work))
}

/// The end of a line that says what will be done.
pub(super) fn summary(given: &Given) -> String {
    let words = |pass: Pass| {
        let order = if pass.is_random {
            "at random"
        } else {
            "in order"
        };
        format!("{} x {order}", pass.times)
    };
    let all: Vec<String> = stages(given).into_iter().map(words).collect();
    if all.is_empty() {
        return String::new();
    }
    format!(
        "; before that the targets are written whole, {}",
        all.join(", then ")
    )
}

fn steady(text: &str) -> Result<Steady, String> {
    let words = || {
        "it takes iops, iops_slope, bw or bw_slope, a limit in percent of the mean, and at will the time that has \
         to be steady, as iops:3% or bw_slope:0.1%:5m"
            .to_owned()
    };
    let mut parts = text.splitn(3, ':');
    let what = parts.next().unwrap_or_default();
    let limit = parts.next().and_then(|limit| limit.strip_suffix('%'));
    let limit = limit.and_then(|limit| limit.parse::<f64>().ok());
    let limit = limit.filter(|limit| *limit > 0.0 && *limit <= 100.0);
    let window_ns = parts.next().map_or(Ok(ROUNDS), duration)?;
    let rate = match what.trim_end_matches("_slope") {
        "iops" => SteadyRate::Operations,
        "bw" => SteadyRate::Bytes,
        _ => return Err(words()),
    };
    if window_ns < Nanos::from_secs(2) {
        return Err("a steady time has 2 s or more, of which each is a sample".to_owned());
    }
    Ok(Steady {
        rate,
        measure: if what.ends_with("_slope") {
            SteadyMeasure::Slope
        } else {
            SteadyMeasure::Deviation
        },
        limit: limit.ok_or_else(words)?,
        in_percent: true,
        window_ns,
        ramp_ns: Nanos(0),
    })
}

/// Has a measured job end with the others once their rate is steady.
pub(super) fn bound(job: &mut Job, given: &Given, warm_up: Nanos) {
    let Some(steady) = given.parsed("steady-state", steady) else {
        return;
    };
    job.report.merge = true;
    if let Some(work) = job.workload.blocks_mut() {
        work.load.bounds.steady = Some(Steady {
            ramp_ns: warm_up,
            ..steady
        });
    }
}

/// Blocks of a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamespaceUse {
    /// All of them.
    pub blocks: u64,
    /// Those that hold something.
    pub used: u64,
    /// The others are read as this byte, where the drive says so.
    pub empty_reads_as: Option<u8>,
}

/// Adds the limit of heat, and warnings about reads that may not reach the medium.
///
/// # Errors
/// A target has no temperature.
pub(super) fn watch(
    request: &mut Request,
    asked: &Asked<'_>,
    all: &[Target],
    machine: &dyn Machine,
) -> Result<(), Refusal> {
    let reads = asked.mix.has(Kind::Read) && !asked.destroys_before();
    for target in all.iter().filter(|_| reads) {
        let Some(found) = target
            .generic_node()
            .and(machine.namespace_use(&target.path))
        else {
            continue;
        };
        if let Some(warning) = unwritten(&target.path, found) {
            request
                .notes
                .push(format!("{} {}", warning.cause, warning.remedy));
            request.warnings.push(warning);
        }
    }
    let Some(celsius) = asked.given.whole("max-temp") else {
        return Ok(());
    };
    let nodes: Vec<String> = all.iter().map(|target| target.path.clone()).collect();
    if let Some(cold) = nodes
        .iter()
        .find(|node| machine.drive_health(node).is_none())
    {
        return Err(Refusal::lacks(format!(
            "--max-temp: {cold} has no temperature that can be read\n  help: NVMe drives have one, for root alone; \
             or leave it out"
        )));
    }
    request.trigger.heat = Some(HeatLimit { celsius, nodes });
    Ok(())
}

fn unwritten(path: &str, found: NamespaceUse) -> Option<Warning> {
    let NamespaceUse { blocks, used, .. } = found;
    let reads_as = match found.empty_reads_as {
        Some(byte) => format!(", and others are read as {byte:02x}h"),
        None => String::new(),
    };
    (used < blocks).then(|| {
        let percent = u128::from(used) * 100 / u128::from(blocks);
        let cause = format!(
            "{path}: reads may hit deallocated blocks: {used} of {blocks} blocks are in use ({percent} %){reads_as}."
        );
        let remedy = format!("Write it first, if its data may be lost: --precondition seq:1x --destroy {path}");
        Warning::new("never-written", None, cause).with_remedy(remedy)
    })
}

/// Lines about how a run went that the peer has no place for.
pub(super) fn remarks(result: &RunResult) -> String {
    let mut out = String::new();
    let hot = result
        .warnings
        .iter()
        .filter(|warning| warning.id == "too-hot");
    hot.for_each(|warning| push!(out, "WARNING: {}\n", warning.cause));
    let mut workers = result.jobs().flat_map(JobResult::workers);
    if let Some(found) = workers.find_map(|worker| worker.steadiness.as_ref()) {
        let word = if found.attained { "" } else { "not " };
        push!(out, "The rate was {word}steady at the end of the run\n");
    }
    out
}
