//! Errors that can be found before a run: targets, log files, the number of workers.
//!
//! In: a plan. Out: failures by job. Touches nothing. Not here: what is done about them.

use weir_schema::{Failure, Job, KindName, Plan, Ranks, Spawn};
use weir_sys::Tree;
use weir_units::Nanos;

use crate::execute::{Entry, RunControl, bandwidth_log, numbered, record, runner_of};
use crate::runner::{Runner, failure};

/// Everything about a plan that can be known to fail before the run, by job name. Touches
/// nothing.
pub fn check(plan: &Plan, control: &RunControl<'_>) -> Vec<(String, Failure)> {
    let mut found = senseless(plan);
    found.extend(too_many_workers(plan));
    if !found.is_empty() {
        // What follows goes over every worker.
        return found;
    }
    let entries = numbered(plan, 0);
    let contexts: Vec<_> = entries.iter().map(|e| e.context(control)).collect();
    for (entry, context) in entries.iter().zip(&contexts) {
        let failures = match runner_of(control.runners, entry.job) {
            Ok(runner) => {
                let phases = Some(entry.job).filter(|_| runner.has_phases());
                let idle = phases.into_iter().flat_map(idle_in_phases);
                idle.chain(runner.check(context)).collect()
            }
            Err(failure) => vec![failure],
        };
        let unwritable = record::unwritable(entry.job, entry.first_worker);
        let failures = unknown_kinds(entry.job)
            .into_iter()
            .chain(failures)
            .chain(unwritable);
        found.extend(failures.map(|f| (entry.job.name.clone(), f)));
    }
    let total = plan.total_log.iter().flat_map(bandwidth_log::paths);
    found.extend(
        total
            .filter_map(record::check)
            .map(|f| (plan.name.clone(), f)),
    );
    for runner in control.runners {
        let of_job = |(index, failure): (u32, Failure)| {
            let entry = entries.iter().find(|e| e.index == index);
            (
                entry.map_or_else(String::new, |e| e.job.name.clone()),
                failure,
            )
        };
        found.extend(runner.check_together(&contexts).into_iter().map(of_job));
    }
    found.extend(world_twice(&entries, control));
    found.extend(threads_apart(&entries, control));
    found
}

/// Settings for kinds of operation that the job's workload does not have.
fn unknown_kinds(job: &Job) -> Vec<Failure> {
    let kinds = job.workload.kinds();
    let named = job.load().named_kinds().into_iter();
    let unknown = named.filter(|(_, kind)| kinds.iter().all(|info| info.name != kind.as_str()));
    let has: Vec<&str> = kinds.iter().map(|info| info.name).collect();
    let refuse = |(setting, kind): (&str, &KindName)| {
        let message = format!(
            "`load.{setting}` names the kind `{kind}`; this workload has {}",
            has.join(", ")
        );
        failure("plan", None, message)
    };
    unknown.map(refuse).collect()
}

/// A setting, whether it says nothing sensible, and why.
type Senseless = (&'static str, bool, &'static str);

/// Settings that make no sense in any job: no worker, waiting for something that never comes.
fn senseless(plan: &Plan) -> Vec<(String, Failure)> {
    let mut found = Vec::new();
    let mut earlier: Vec<&str> = Vec::new();
    for (_, job) in plan.jobs() {
        let mut refuse = |why: String| found.push((job.name.clone(), failure("plan", None, why)));
        let settings = senseless_settings(job);
        for (setting, is_senseless, why) in settings.into_iter().chain(senseless_limits(job)) {
            if is_senseless {
                refuse(format!("`{setting}` {why}"));
            }
        }
        let nice = job.placement.nice;
        if !(-20..=19).contains(&nice) {
            refuse(format!(
                "`placement.nice` is {nice}; niceness goes from -20 to 19"
            ));
        }
        let percentiles = job.load().recording.percentiles.iter();
        if let Some(odd) = percentiles
            .map(|p| p.0)
            .find(|p| !(0.0..=100.0).contains(p))
        {
            refuse(format!(
                "`load.recording.percentiles` has {odd}, which is not from 0 to 100"
            ));
        }
        let awaited = job.start.wait_for.as_deref();
        if let Some(name) = awaited.filter(|name| !earlier.contains(name)) {
            refuse(format!(
                "`start.wait_for` names `{name}`, and no earlier job has this name"
            ));
        }
        earlier.push(&job.name);
    }
    found
}

/// The same of what happens on failures.
fn senseless_limits(job: &Job) -> [Senseless; 2] {
    let errors = &job.load().errors;
    let goes_on = !errors.go_on.is_empty() || errors.go_on_mismatch;
    [
        (
            "load.errors.fail_at",
            errors.fail_at == Some(0),
            "is 0: leave it out where no number of failures ends the job",
        ),
        (
            "load.errors.fail_at",
            errors.fail_at.is_some() && !goes_on,
            "is about failures after which the job goes on, and it goes on after none",
        ),
    ]
}

/// Settings that every job has, each with whether it says nothing sensible here, and why.
fn senseless_settings(job: &Job) -> [Senseless; 10] {
    let load = job.load();
    let (bounds, depth) = (&load.bounds, &load.depth);
    let is_empty = |list: &Option<Vec<u32>>| list.as_ref().is_some_and(Vec::is_empty);
    let is_high = depth
        .refill_below
        .is_some_and(|low| low >= depth.queue_depth.0);
    let pause = load.pacing.thinktime;
    [
        (
            "clones",
            job.clones == 0,
            "is 0: a job has at least one worker",
        ),
        (
            "placement.cpus",
            is_empty(&job.placement.cpus),
            "names no CPU",
        ),
        (
            "placement.nodes",
            is_empty(&job.placement.nodes),
            "names no memory node",
        ),
        (
            "load.bounds.operations",
            bounds.operations == Some(0),
            "is 0: nothing would be done",
        ),
        (
            "load.bounds.runtime_ns",
            bounds.runtime_ns == Some(Nanos(0)),
            "is 0: nothing would be done",
        ),
        (
            "load.depth.queue_depth",
            depth.queue_depth.0 == 0,
            "is 0: nothing could be in flight",
        ),
        (
            "load.depth.submit_batch",
            depth.submit_batch == 0,
            "is 0: nothing could be handed over",
        ),
        (
            "load.depth.refill_below",
            is_high,
            "is not below the queue depth",
        ),
        (
            "load.pacing.thinktime.every",
            pause.is_some_and(|pause| pause.every == 0),
            "is 0: operations stand between pauses",
        ),
        (
            "load.recording.interval_ns",
            load.recording.interval_ns.0 == 0,
            "is 0: an interval has a length",
        ),
    ]
}

/// Settings that a job of phases has no use for: each phase has workers, bounds and a begin of its own.
fn idle_in_phases(job: &Job) -> Vec<Failure> {
    let (load, recording) = (job.load(), &job.load().recording);
    let settings = [
        ("clones", job.clones != 1),
        ("start.before", job.start.before.is_some()),
        ("start.after", job.start.after.is_some()),
        ("end.until_other_jobs_end", job.end.until_other_jobs_end),
        ("report.merge", job.report.merge),
        ("load.bounds.steady", load.bounds.steady.is_some()),
        ("load.pacing.flow", load.pacing.flow.is_some()),
        ("load.errors.fail_at", load.errors.fail_at.is_some()),
        ("load.recording.logs", !recording.logs.is_empty()),
        ("load.recording.trace", recording.trace.is_some()),
    ];
    let idle = settings.into_iter().filter(|(_, is_set)| *is_set);
    let refuse = |(setting, _)| {
        let message = format!("`{setting}` has no meaning for a series of phases");
        failure("plan", None, message)
    };
    idle.map(refuse).collect()
}

/// Jobs that want all ranks while an earlier one may still have them.
fn world_twice(entries: &[Entry<'_>], control: &RunControl<'_>) -> Vec<(String, Failure)> {
    let mut found = Vec::new();
    let mut holder: Option<&str> = None;
    for entry in entries {
        let job = entry.job;
        if job.start.barrier {
            holder = None;
        }
        if !runner_of(control.runners, job).is_ok_and(Runner::needs_world) {
            continue;
        }
        let waits = |holder: &str| job.start.wait_for.as_deref() == Some(holder);
        if let Some(holder) = holder.filter(|holder| !waits(holder)) {
            let message = format!(
                "all ranks take part in it, and in `{holder}` at the same time (let it wait for \
                 everything before it: `barrier`)"
            );
            found.push((job.name.clone(), failure("plan", None, message)));
        }
        holder = Some(&job.name);
    }
    found
}

/// Jobs whose ranks cannot be threads of one process, where the plan has such ranks.
fn threads_apart(entries: &[Entry<'_>], control: &RunControl<'_>) -> Vec<(String, Failure)> {
    let threads = |entry: &&Entry<'_>| {
        let ranks = entry.plan.ranks.unwrap_or(Ranks::ONE);
        ranks.count > 1 && ranks.spawn == Spawn::Threads
    };
    let refused = |entry: &&Entry<'_>| {
        runner_of(control.runners, entry.job).is_ok_and(|runner| !runner.allows_thread_ranks())
    };
    let why = "its ranks cannot be threads of one process: use processes; for more threads, clones";
    let refused = entries.iter().filter(threads).filter(refused);
    refused
        .map(|entry| (entry.job.name.clone(), failure("plan", None, why)))
        .collect()
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
