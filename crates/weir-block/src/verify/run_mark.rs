//! Mark of the run that data comes from: the one that a job writes, and the one that its data has
//! to have.
//!
//! In: a job of a plan and the number of its run. Out: a [`RunMark`]. Not here: where marks stand
//! ([`super::block_mark`]).

use weir_run::JobContext;
use weir_schema::{BlockWorkload, Job, Kind, Plan, RunIdentity, Verify};

/// Mark of the run that data comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunMark {
    /// Mark that a job puts into the data it writes.
    pub written: Option<u16>,
    /// Mark that data must have which a job reads without having written it.
    pub required: Option<u16>,
}

/// The identity that a job writes, and the one that it requires of what it reads.
pub(crate) fn of_job(context: &JobContext<'_>, workload: &BlockWorkload) -> RunMark {
    let (plan, job, index) = (context.plan, context.job, context.index);
    let run = context.run_id;
    match workload.verify.as_ref().map(|v| v.run_identity) {
        Some(RunIdentity::FromStart) => RunMark {
            written: Some(run),
            required: follows_writer(plan, job, index).then_some(run),
        },
        Some(RunIdentity::Given { id }) => RunMark {
            written: Some(id),
            required: Some(id),
        },
        Some(RunIdentity::Off) | None => RunMark::default(),
    }
}

/// True if the job waits, directly or through others, for a job of this run that marks its data.
fn follows_writer(plan: &Plan, job: &Job, index: u32) -> bool {
    let mut awaited = job.start.wait_for.as_deref();
    let earlier: Vec<&Job> = plan.jobs().take(index as usize).map(|(_, j)| j).collect();
    let mut before = earlier.as_slice();
    while let Some(name) = awaited {
        let Some(at) = before.iter().rposition(|j| j.name == name) else {
            return false;
        };
        if marks(before[at]) {
            return true;
        }
        awaited = before[at].start.wait_for.as_deref();
        before = &before[..at];
    }
    false
}

fn marks(job: &Job) -> bool {
    let Some(workload) = job.blocks() else {
        return false;
    };
    let from_start = |v: &Verify| v.run_identity == RunIdentity::FromStart;
    workload.carries_out(Kind::Write) && workload.verify.as_ref().is_some_and(from_start)
}
