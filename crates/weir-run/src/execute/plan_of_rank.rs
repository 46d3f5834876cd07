//! The part of a plan that one rank of several runs, and figures of all ranks' parts together.
//!
//! In: the plan of all, a rank and how many there are. Out: that rank's plan. Names of jobs and
//! their number stay the same, so that results can be merged. Not here: what a rank does with the
//! targets of a job, which its runner knows.

use weir_schema::{Failure, Plan, RunResult};

use crate::execute::runner_of;
use crate::runner::{RankPart, Runner};

/// Makes the plan of all the plan of one rank; else the job that has no part for it, and why.
///
/// # Errors
/// A job that cannot be had per rank.
pub fn reduce_to_rank(
    plan: &mut Plan,
    runners: &[&dyn Runner],
    part: RankPart,
) -> Result<(), (String, Failure)> {
    if part.ranks < 2 {
        return Ok(());
    }
    for job in plan.groups.iter_mut().flat_map(|g| &mut g.jobs) {
        if part.rank > 0 {
            let load = job.workload.load_mut();
            let logs = load.into_iter().flat_map(|load| &mut load.recording.logs);
            logs.for_each(|log| append(&mut log.path, part.rank));
        }
        let adjusted = runner_of(runners, job).and_then(|runner| runner.part(job, part));
        adjusted.map_err(|failure| (job.name.clone(), failure))?;
    }
    if part.rank > 0
        && let Some(log) = &mut plan.total_log
    {
        for path in log.paths.values_mut() {
            append(path, part.rank);
        }
    }
    Ok(())
}

/// Adds the figures of each job that only its runner knows.
pub fn add_metrics(result: &mut RunResult, runners: &[&dyn Runner]) {
    let jobs = result.groups.iter_mut().flat_map(|g| &mut g.jobs);
    for ((_, job), done) in result.plan.jobs().zip(jobs) {
        if let Ok(runner) = runner_of(runners, job) {
            let own = runner.metrics(job, done);
            // Of several ranks one may have brought its own.
            done.metrics
                .retain(|known| own.iter().all(|new| new.name != known.name));
            done.metrics.extend(own);
        }
    }
}

fn append(path: &mut String, rank: u32) {
    path.push('.');
    path.push_str(&rank.to_string());
}
