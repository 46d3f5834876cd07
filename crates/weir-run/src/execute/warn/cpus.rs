//! Warnings about workers that lacked CPU time: others had their CPUs, the hypervisor took them, or
//! there are more workers than CPUs.
//!
//! In: a result, and the counters of the CPUs at both ends of the run. Out: at most one warning of
//! each kind per job. Not here: limits of control groups.

use weir_schema::thresholds::{MOST_STEAL, MOST_SWITCHES, MOST_WAITING};
use weir_schema::{Job, JobResult, RunResult, Span, Warning, WorkerResult};
use weir_sys::cpu_time::CpuTimes;
use weir_units::Nanos;

/// A fraction of a second says little about a rate per second.
const LEAST_SECONDS: f64 = 0.5;

/// Begin and end of the workers of a run, each in order of time: the number that ran at the same
/// time as one of them is then a matter of two searches, however many there are.
pub(super) struct WorkerTimes {
    starts: Vec<Nanos>,
    ends: Vec<Nanos>,
}

impl WorkerTimes {
    pub(super) fn of(result: &RunResult) -> Self {
        let workers = result.jobs().flat_map(JobResult::workers);
        let spans: Vec<Span> = workers.filter_map(|worker| worker.span).collect();
        let sorted = |of: fn(&Span) -> Nanos| {
            let mut all: Vec<Nanos> = spans.iter().map(of).collect();
            all.sort_unstable();
            all
        };
        Self {
            starts: sorted(|span| span.start_ns),
            ends: sorted(|span| span.end_ns),
        }
    }

    /// Workers that ran at some time of a span.
    fn beside(&self, span: Span) -> usize {
        let begun = self.starts.partition_point(|start| *start < span.end_ns);
        let ended = self.ends.partition_point(|end| *end <= span.start_ns);
        begun.saturating_sub(ended)
    }
}

/// CPUs that others had, or that too many workers share.
pub(super) fn shared(
    (result, times): (&RunResult, &WorkerTimes),
    planned: &Job,
    job: &JobResult,
    never_sleeps: bool,
) -> Option<Warning> {
    let workers = job.workers().iter();
    let worst = workers.filter_map(Shortage::of).max_by(Shortage::cmp);
    if worst.is_none() && !never_sleeps {
        return None;
    }
    let pinned = planned.placement.cpus.as_ref();
    let cpus = match pinned {
        Some(list) => u32::try_from(list.len()).ok(),
        None => result.host.cpus,
    };
    let name = Some(job.name.as_str());
    let beside = match pinned {
        // Those that may go elsewhere do.
        Some(_) => workers_beside(result, planned, job),
        None => job.span.map_or(0, |span| times.beside(span)),
    };
    if let Some(cpus) = cpus.filter(|cpus| beside > *cpus as usize) {
        let plural = if cpus == 1 { "" } else { "s" };
        let cause = match &worst {
            Some(worst) => format!(
                "{beside} workers share {cpus} CPU{plural}: worker {} {worst}.",
                worst.clone
            ),
            None => format!("{beside} workers that never sleep share {cpus} CPU{plural}."),
        };
        return Some(Warning::new("oversubscribed", name, cause));
    }
    let worst = worst?;
    let cause = format!("Worker {} {worst}.", worst.clone);
    let warning = Warning::new("cpu-shared", name, cause);
    Some(if pinned.is_some() || planned.placement.nodes.is_some() {
        warning.with_remedy("Keep other load off the CPUs that it is pinned to.")
    } else {
        warning
    })
}

/// Workers that ran while this pinned job did, on CPUs that may be its own: its own among them.
fn workers_beside(result: &RunResult, planned: &Job, job: &JobResult) -> usize {
    let meets = |other: &Job| match (&planned.placement.cpus, &other.placement.cpus) {
        (Some(mine), Some(theirs)) => mine.iter().any(|cpu| theirs.contains(cpu)),
        _ => false,
    };
    let overlap = |a: Span, b: Span| a.start_ns < b.end_ns && b.start_ns < a.end_ns;
    let jobs = result.jobs().zip(result.plan.jobs());
    let workers = jobs.filter(|(_, (_, plan))| meets(plan));
    let spans = workers.flat_map(|(other, _)| other.workers().iter().filter_map(|w| w.span));
    spans
        .filter(|span| job.span.is_some_and(|mine| overlap(mine, *span)))
        .count()
}

/// CPU time that a worker lacked.
struct Shortage {
    clone: u32,
    /// Share of its time that it waited, where that is much.
    waited: Option<f64>,
    /// Switches that it suffered per second, where they are many.
    switches: Option<f64>,
}

impl Shortage {
    fn of(worker: &WorkerResult) -> Option<Self> {
        let seconds = worker.span?.length().as_secs_f64();
        let waited = worker.cpu.run_delay_ns.map(|t| t.as_secs_f64() / seconds);
        let switches = worker.cpu.involuntary_switches as f64 / seconds;
        let shortage = Self {
            clone: worker.clone,
            waited: waited.filter(|share| *share > MOST_WAITING),
            switches: Some(switches).filter(|rate| *rate > MOST_SWITCHES),
        };
        let is_any = shortage.waited.is_some() || shortage.switches.is_some();
        (seconds >= LEAST_SECONDS && is_any).then_some(shortage)
    }

    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |of: &Self| (of.waited.unwrap_or(0.0), of.switches.unwrap_or(0.0));
        let ((waited, switches), (others, theirs)) = (key(self), key(other));
        waited.total_cmp(&others).then(switches.total_cmp(&theirs))
    }
}

/// `waited 12 % of its time for a CPU and was switched out 30 times per second`.
impl std::fmt::Display for Shortage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(share) = self.waited {
            write!(f, "waited {:.0} % of its time for a CPU", share * 100.0)?;
        }
        if self.waited.is_some() && self.switches.is_some() {
            f.write_str(" and ")?;
        }
        if let Some(rate) = self.switches {
            write!(f, "was switched out {rate:.0} times per second")?;
        }
        Ok(())
    }
}

/// The counters of each CPU at both ends of the run.
pub(super) type CpusOfRun<'a> = [&'a [(u32, CpuTimes)]; 2];

/// The share of a worker's CPU that the hypervisor took, and which CPU that is: where it began on
/// another than it ended on, the one of which more was taken.
fn stolen_of(worker: &WorkerResult, [before, after]: CpusOfRun<'_>) -> Option<(f64, u32)> {
    let share = |cpu: u32| {
        let at = |list: &[(u32, CpuTimes)]| Some(list.iter().find(|(id, _)| *id == cpu)?.1);
        let spent = at(after)?.since(&at(before)?);
        let total = spent.total().as_secs_f64();
        (total > 0.0).then(|| spent.steal.as_secs_f64() / total)
    };
    let cpus = [worker.cpu.first_cpu, worker.cpu.last_cpu].into_iter();
    let shares = cpus.flatten().filter_map(|cpu| Some((share(cpu)?, cpu)));
    shares.max_by(|a, b| a.0.total_cmp(&b.0))
}

/// Keeps with each worker of a job how much the hypervisor took.
pub(super) fn keep_stolen(job: &mut JobResult, cpus: CpusOfRun<'_>) {
    for worker in job.workers_mut() {
        let stolen = stolen_of(worker, cpus).zip(worker.span);
        worker.cpu.stolen_ns = stolen.and_then(|((share, _), span)| {
            Nanos::from_secs_f64(share * span.length().as_secs_f64())
        });
    }
}

/// CPUs of its workers that the hypervisor took.
pub(super) fn stolen(job: &JobResult, cpus: CpusOfRun<'_>) -> Option<Warning> {
    let workers = job.workers().iter();
    let shares = workers.filter_map(|worker| stolen_of(worker, cpus));
    let (share, cpu) = shares.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (share > MOST_STEAL).then(|| {
        let share = share * 100.0;
        let cause = format!("The hypervisor took {share:.1} % of the time of CPU {cpu}.");
        Warning::new("cpu-steal", Some(&job.name), cause)
    })
}
