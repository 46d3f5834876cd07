//! What can be known to fail before a run: targets, log files, the number of workers.
//!
//! In: a plan. Out: failures by job. Touches nothing. Not here: what is done about them.

use weir_schema::{Failure, Plan};
use weir_sys::Tree;

use crate::execute::{RunControl, family_of, numbered, record, total};
use crate::family::failure;

/// Everything about a plan that can be known to fail before the run, by job name. Touches
/// nothing.
pub fn check(plan: &Plan, control: &RunControl<'_>) -> Vec<(String, Failure)> {
    let mut found = Vec::new();
    let entries = numbered(plan, 0);
    let contexts: Vec<_> = entries.iter().map(|e| e.context(control)).collect();
    for (entry, context) in entries.iter().zip(&contexts) {
        let failures = match family_of(control.families, entry.job) {
            Some(family) => family.check(context),
            None => vec![failure(
                "plan",
                None,
                "no engine of this build knows this workload",
            )],
        };
        let unwritable = record::unwritable(entry.job, entry.first_worker);
        let failures = failures.into_iter().chain(unwritable);
        found.extend(failures.map(|f| (entry.job.name.clone(), f)));
    }
    let total = plan.total_log.iter().flat_map(total::paths);
    found.extend(
        total
            .filter_map(record::check)
            .map(|f| (plan.name.clone(), f)),
    );
    for family in control.families {
        let of_job = |(index, failure): (u32, Failure)| {
            let entry = entries.iter().find(|e| e.index == index);
            (
                entry.map_or_else(String::new, |e| e.job.name.clone()),
                failure,
            )
        };
        found.extend(family.check_together(&contexts).into_iter().map(of_job));
    }
    found.extend(too_many_workers(plan));
    found
}

/// Memory mappings that a worker's thread takes: its stack, the stack for signals, their guards,
/// its buffers, and one to spare.
const MAPPINGS_PER_WORKER: u64 = 6;

/// More workers at a time than the kernel lets one process have mappings for: where they run
/// out, threads die instead of failing.
fn too_many_workers(plan: &Plan) -> Option<(String, Failure)> {
    let mappings: u64 = Tree::real().number("proc/sys/vm/max_map_count")?;
    let most = mappings / MAPPINGS_PER_WORKER;
    let mut together = 0_u64;
    for (_, job) in plan.jobs() {
        together = if job.start.barrier { 0 } else { together } + u64::from(job.clones);
        if together > most {
            let message = format!(
                "{together} workers at a time need more memory mappings than the {mappings} that \
                 the kernel allows a process: at most {most} workers (raise vm.max_map_count)"
            );
            return Some((job.name.clone(), failure("missing", None, message)));
        }
    }
    None
}
