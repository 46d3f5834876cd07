//! The identity that marks what a run writes, and which readers may rely on it.

use weir_schema::{Job, Kind, Plan, RunIdentity, Verify, Workload};

use crate::generate::rng::mix64;
use crate::runner::RunMark;

/// The identity of the run that started then; 1 to 65535.
pub(super) fn of_run(started_unix_ns: u64) -> u16 {
    let drawn = mix64(started_unix_ns) % u64::from(u16::MAX);
    u16::try_from(drawn).unwrap_or(0) + 1
}

/// The identity that a job writes, and the one that it requires of what it reads.
pub(super) fn of_job(plan: &Plan, job: &Job, index: u32, run: u16) -> RunMark {
    match job
        .blocks()
        .and_then(|work| work.verify.as_ref())
        .map(|v| v.run_identity)
    {
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

/// Whether the job waits, through others or not, for one of this run that marks what it writes.
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
    let Workload::Block(workload) = &job.workload else {
        return false;
    };
    let from_start = |v: &Verify| v.run_identity == RunIdentity::FromStart;
    workload.carries_out(Kind::Write) && workload.verify.as_ref().is_some_and(from_start)
}
