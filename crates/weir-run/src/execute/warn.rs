//! Warnings about conditions that spoil the numbers, as far as counters and results show them.
//!
//! In: a result, and counters of the machine at both ends of the run. Out: warnings. Not here: what
//! each means and what helps (the table of weir-schema).

mod cpus;
mod pace;

use weir_schema::thresholds::{GOVERNOR, MOST_CLOCK_NS, MOST_CLOCK_PPM};
use weir_schema::{
    ClockSource, Confidence, DiskCounters, Job, JobResult, Kind, Recording, RunResult, Warning,
};
use weir_stats::NoInterval;
use weir_sys::Tree;
use weir_sys::cpu_time::{CpuTimes, cpu_times};
use weir_units::Nanos;

use crate::execute::running::Worker;
use crate::runner::Prepared;

/// Share of what was read that makes about all of it.
const DELIVERED: f64 = 0.98;

/// Counters of the machine at one end of the run.
#[derive(Debug)]
pub(super) struct MachineCounters {
    cpus: Vec<(u32, CpuTimes)>,
    throttling: weir_sys::cgroup::Throttling,
}

impl MachineCounters {
    pub(super) fn read(tree: &Tree) -> Self {
        Self {
            cpus: cpu_times(tree),
            throttling: weir_sys::cgroup::throttling(tree),
        }
    }
}

/// Warnings about a job's targets.
pub(super) fn of_job_targets(job: &str, prepared: &dyn Prepared) -> Vec<Warning> {
    let all = prepared.warnings().into_iter();
    all.map(|warning| Warning {
        job: Some(job.to_owned()),
        ..warning
    })
    .collect()
}

/// Warnings about incomplete traces and logs.
pub(super) fn of_logs(job: Option<&str>, causes: &[String]) -> Vec<Warning> {
    causes
        .iter()
        .map(|cause| Warning::new("log", job, cause.clone()))
        .collect()
}

/// Warning that the process was stopped for longer than a thread may wait for a CPU anyway.
pub(super) fn of_stop(stopped: Nanos) -> Option<Warning> {
    (stopped > Nanos::from_millis(100)).then(|| {
        let cause = format!("The process was stopped for {stopped}: rates count that time too.");
        Warning::new("stopped", None, cause)
    })
}

/// The run was ended at this time by who watched it; so many jobs did not start.
pub(super) fn of_early_end(at: Nanos, waiting: usize) -> Warning {
    let jobs = match waiting {
        0 => String::new(),
        1 => ", before 1 job had started".to_owned(),
        _ => format!(", before {waiting} jobs had started"),
    };
    let cause = format!("It was ended after {at}{jobs}: its figures are those until then.");
    Warning::new("ended-early", None, cause)
}

/// Warning that a job came to its end before its ramp did, so that nothing was forgotten.
pub(super) fn of_ramp(job: &Job, workers: &[Worker]) -> Option<Warning> {
    let ramp = job.load().bounds.ramp_ns;
    let in_ramp = |w: &Worker| w.live.started.get() > 0 && w.live.resets() == 0;
    (ramp > Nanos::ZERO && workers.iter().any(in_ramp)).then(|| {
        Warning::new(
            "ramp",
            Some(&job.name),
            format!("It ended within its ramp of {ramp}: the figures are those of the ramp."),
        )
    })
}

/// Properties of the prepared jobs of a run.
#[derive(Debug, Default)]
pub(super) struct PreparedJobs {
    /// Every job was prepared, and moves its data past all caches.
    pub(super) all_bypass_caches: bool,
    /// Numbers of the jobs whose workers use a CPU all the time.
    pub(super) never_sleep: Vec<usize>,
    /// Numbers of the jobs that find no block in a cache that they have read themselves.
    pub(super) read_blocks_once: Vec<usize>,
}

/// Keeps with each worker what the hypervisor took of its CPU.
pub(super) fn keep_stolen(
    result: &mut RunResult,
    before: &MachineCounters,
    after: &MachineCounters,
) {
    let jobs = result.groups.iter_mut().flat_map(|group| &mut group.jobs);
    jobs.for_each(|job| cpus::keep_stolen(job, [&before.cpus, &after.cpus]));
}

/// Everything else.
pub(super) fn of_run(
    result: &RunResult,
    before: &MachineCounters,
    after: &MachineCounters,
    seen: &PreparedJobs,
) -> Vec<Warning> {
    let mut found = Vec::new();
    found.extend(clock(result));
    found.extend(machine(result, before, after));
    found.extend(device_shared(result, seen.all_bypass_caches));
    let times = cpus::WorkerTimes::of(result);
    for (index, (job, (_, planned))) in result.jobs().zip(result.plan.jobs()).enumerate() {
        let never_sleeps = seen.never_sleep.contains(&index);
        found.extend(pace::kept(planned, job));
        found.extend(pace::of_path(job));
        found.extend(cpus::shared((result, &times), planned, job, never_sleeps));
        found.extend(cpus::stolen(job, [&before.cpus, &after.cpus]));
        found.extend(pace::instrument_cost(planned, job));
        found.extend(few_samples(planned, job));
        found.extend(of_job(job));
        found.extend(not_steady(job, planned.load().bounds.ramp_ns));
    }
    found
}

fn clock(result: &RunResult) -> Option<Warning> {
    let clock = &result.clock;
    if clock.source == ClockSource::Monotonic {
        let cause = format!("The kernel's clock is used: {}.", clock.reason);
        return Some(Warning::new("clock-fallback", None, cause));
    }
    let (nanos, ppm) = (clock.residual_ns?, clock.residual_ppm?);
    (nanos > MOST_CLOCK_NS || ppm > MOST_CLOCK_PPM).then(|| {
        let cause = format!("The clock strayed by {nanos:.0} ns ({ppm:.1} ppm) between anchors.");
        Warning::new("clock-residual", None, cause)
    })
}

fn machine(result: &RunResult, before: &MachineCounters, after: &MachineCounters) -> Vec<Warning> {
    let mut found = Vec::new();
    if after.throttling.cpu_periods > before.throttling.cpu_periods {
        let cause = "The control group's CPU limit throttled the run.";
        found.push(Warning::new("cgroup-limit", None, cause));
    }
    if let Some(governor) = result.host.governor.as_deref().filter(|g| *g != GOVERNOR) {
        let cause = format!("The CPU frequency governor is {governor}.");
        found.push(Warning::new("cpu-frequency", None, cause));
    }
    found
}

fn of_job(job: &JobResult) -> Vec<Warning> {
    // The kinds of which it is true, in one warning.
    let kinds = |is_true: fn(&Confidence) -> bool| {
        let all = job.confidence().iter().filter(|c| is_true(c));
        let all: Vec<&str> = all.map(|c| c.kind.as_str()).collect();
        (!all.is_empty()).then(|| all.join(" and "))
    };
    let is_short = |c: &Confidence| c.ops_per_s.absent == Some(NoInterval::ShortRun);
    let warning = |id, cause| Warning::new(id, Some(&job.name), cause);
    let short = kinds(is_short).map(|kinds| {
        let cause =
            format!("The {kinds} run was too short for an interval (fewer than 10 stretches).");
        warning("short-run", cause)
    });
    let slow = kinds(|c| c.slow).map(|kinds| {
        let cause = format!("The {kinds} rate changes slowly: its ± holds for this run only.");
        warning("slow", cause)
    });
    short.into_iter().chain(slow).collect()
}

/// Percentiles that were asked for; of the usual ones the mark beside the figure is enough.
fn few_samples(planned: &Job, job: &JobResult) -> Option<Warning> {
    let asked = &planned.load().recording.percentiles;
    let is_usual = *asked == Recording::default().percentiles;
    let all = job.confidence().iter();
    let mut marked = all.flat_map(|c| c.percentiles.iter().map(move |p| (p, &c.kind)));
    let (of, kind) = marked.find(|(p, _)| p.few_samples)?;
    (!is_usual).then(|| {
        let cause = format!(
            "Fewer than 10 {kind} operations lie beyond p{}.",
            of.percent.0
        );
        Warning::new("few-samples", Some(&job.name), cause)
    })
}

/// The first tenth against the remainder, on the series that is in the result.
fn not_steady(job: &JobResult, ramp: Nanos) -> Vec<Warning> {
    let mut found = Vec::new();
    for kind in job.confidence().iter().map(|c| &c.kind) {
        let mut whole: Option<weir_stats::Series> = None;
        for series in job
            .workers()
            .iter()
            .filter_map(|w| w.kind(kind))
            .map(|k| &k.series)
        {
            match &mut whole {
                None => whole = Some(series.clone()),
                // All series of a job have its interval.
                Some(sum) => drop(sum.add(series)),
            }
        }
        let Some(series) = whole else { continue };
        let full = series.len() - usize::from(series.ends_partial());
        let rates: Vec<f64> = series
            .points()
            .take(full)
            .filter_map(|p| p.iops())
            .map(|r| r.0)
            .collect();
        let Ok(test) = weir_stats::warmup::test(&rates, series.interval()) else {
            continue;
        };
        if test.is_steady() {
            continue;
        }
        let remedy = match test.enough_ramp {
            Some(more) => {
                let enough = ramp.saturating_add(more).as_secs_f64();
                format!("Use a ramp of {enough:.1} s.")
            }
            None => "Run longer: it had not settled by half time.".to_owned(),
        };
        let change = (test.first_tenth / test.remainder - 1.0) * 100.0;
        let cause = if change.is_finite() {
            format!("The first tenth of the {kind} run was {change:+.1} % off the rest.")
        } else {
            format!("After the first tenth of the {kind} run nothing was done any more.")
        };
        found.push(Warning::new("not-steady", Some(&job.name), cause).with_remedy(remedy));
    }
    found
}

/// The counters of the disks are of the whole run: with a ramp, or where the last window of a search
/// for a depth is what is measured, the figures are of a part of it.
fn disks_count_what_is_measured(result: &RunResult) -> bool {
    let mut loads = result.plan.jobs().map(|(_, job)| job.load());
    loads.all(|load| load.bounds.ramp_ns == Nanos::ZERO && load.pacing.latency_target.is_none())
}

/// Drops the warning that reads may come from the page cache where they cannot have: the disks
/// delivered about all that was read, or their counters cannot tell and no block was read twice.
pub(super) fn refute_page_cache(result: &mut RunResult, seen: &PreparedJobs) {
    let names: Vec<String> = result.jobs().map(|job| job.name.clone()).collect();
    let can_tell = !result.disks.is_empty() && disks_count_what_is_measured(result);
    let delivered = can_tell && disks_delivered(result);
    let once = |name: &str| {
        let mut jobs = seen.read_blocks_once.iter();
        jobs.any(|index| names.get(*index).is_some_and(|of| of == name))
    };
    let may_be = |job: Option<&str>| !delivered && (can_tell || !job.is_some_and(once));
    result
        .warnings
        .retain(|w| w.id != "page-cache" || may_be(w.job.as_deref()));
}

fn disks_delivered(result: &RunResult) -> bool {
    let rates = result.groups.iter().flat_map(|g| &g.rates);
    let reads = rates.filter(|r| r.kind == Kind::Read);
    let read: u64 = reads.map(|r| r.bytes.0).sum();
    let delivered: u64 = result.disks.iter().map(|d| d.read_bytes.0).sum();
    read > 0 && delivered as f64 >= read as f64 * DELIVERED
}

/// Direct I/O reaches the device one to one, so that what its counters show beyond it is
/// somebody else's.
fn device_shared(result: &RunResult, direct: bool) -> Option<Warning> {
    if !direct || !disks_count_what_is_measured(result) {
        return None;
    }
    let rates = result.groups.iter().flat_map(|g| &g.rates);
    let ours: u64 = rates.map(|r| r.bytes.0).sum();
    let sum = |of: fn(&DiskCounters) -> u64| result.disks.iter().map(of).sum::<u64>();
    let seen = sum(|d| d.read_bytes.0 + d.write_bytes.0);
    let others = seen.saturating_sub(ours) as f64 / seen.max(1) as f64;
    let busy = sum(|d| d.busy_ns.0) as f64 / sum(|d| d.elapsed_ns.0).max(1) as f64;
    (ours > 0 && others > 0.02 && others * busy > 0.01).then(|| {
        let (others, time) = (others * 100.0, others * busy * 100.0);
        let cause = format!(
            "{others:.0} % of what the device moved was not this run's, and took {time:.0} % of \
             its time."
        );
        Warning::new("device-shared", None, cause)
    })
}

#[cfg(test)]
mod tests;
