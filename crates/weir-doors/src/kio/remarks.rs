//! Remarks about threads beside their figures: the mix that was achieved, a depth that was not, the planned
//! operations on each target.
//!
//! In: jobs of a plan, with what they did. Out: lines. Not here: where they are printed.

use weir_schema::{BlockWorkload, Job, JobResult, Kind, Plan, read_share};

use crate::house::planned_work;

/// Share of its depth by which the mean in flight may be off.
const SLACK: f64 = 0.05;

/// The remarks about a thread.
pub(super) fn of(planned: &Job, done: &JobResult) -> Vec<String> {
    let Some(work) = planned.blocks() else {
        return Vec::new();
    };
    [mix(work, done), in_flight(work, done), checked(work, done)]
        .into_iter()
        .flatten()
        .collect()
}

/// `would read and write F with io_uring`: a line for each thing that is done to a target.
pub(super) fn planned(plan: &Plan) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (_, job) in plan.jobs() {
        for (work, path) in planned_work(job) {
            let line = format!("would {work} {path} with {}", job.engine.name);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}

/// `reads 74.9 % of I/Os (75.0 % asked)`, where both kinds are drawn.
fn mix(work: &BlockWorkload, done: &JobResult) -> Option<String> {
    let is_mixed = work.mix.has(Kind::Read) && work.mix.has(Kind::Write);
    let bursts = work.bursts.filter(|_| is_mixed)?;
    let share = read_share(done.workers())? * 100.0;
    let asked = bursts.read_share(work.mix.read_percent) * 100.0;
    Some(format!("reads {share:.1} % of I/Os ({asked:.1} % asked)"))
}

/// `256 blocks read back are what was written`, where reads are compared and none failed.
fn checked(work: &BlockWorkload, done: &JobResult) -> Option<String> {
    let compares =
        work.content.sectors.is_some() && !work.mix.has(Kind::Write) && work.mix.has(Kind::Read);
    let reads = || done.workers().iter().filter_map(|w| w.kind(Kind::Read));
    let compared: u64 = reads().map(|reads| reads.operations).sum();
    let is_good = compares && compared > 0 && reads().all(|reads| reads.errors.is_empty());
    is_good.then(|| format!("{compared} blocks read back are what was written"))
}

/// `7.2 in flight of 10 (rate x latency)`, where these are not about the same: by Little's law they are
/// as long as nothing but the target is waited for.
fn in_flight(work: &BlockWorkload, done: &JobResult) -> Option<String> {
    let means = done.workers().iter();
    let means: Vec<f64> = means.filter_map(|w| w.depth.mean_in_flight).collect();
    let mean: f64 = means.iter().sum();
    let depth = f64::from(work.load.depth.queue_depth.0);
    let is_off = !means.is_empty() && (mean / depth - 1.0).abs() > SLACK;
    is_off.then(|| format!("{mean:.2} in flight of {depth} (rate x latency)"))
}
