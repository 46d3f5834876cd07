//! Warnings about a schedule that was not kept, and about a pace that the tool itself set.
//!
//! In: a job of the plan and its result. Out: warnings. Not here: pacing itself.

use weir_schema::{Job, JobResult, KindName, KindResult, Schedule, Stage, Warning};
use weir_units::{BytesPerSec, Iops};

use crate::loop_plan::is_open_loop;

/// Share of its schedule that an open loop has to do.
const LEAST_DONE: f64 = 0.99;
/// Share of the median latency that the loop may cost.
const MOST_OF_MEDIAN: f64 = 0.05;
/// Share of the time per operation that the loop may cost.
const MOST_OF_TIME: f64 = 0.1;
/// From this share on the loop's own cost is what limits the rate.
const LIMITING: f64 = 0.5;
/// From this share of its depth in flight on, it is the target that a job waits for.
const NEARLY_FULL: f64 = 0.75;

/// An open loop behind its schedule, and whether it was the loop itself that could not keep it.
pub(super) fn kept(planned: &Job, job: &JobResult) -> Vec<Warning> {
    let mut found = Vec::new();
    let name = Some(job.name.as_str());
    let missed = missed(planned, job);
    let late: u64 = job.workers().iter().filter_map(|w| w.late_issues).sum();
    let all: u64 = kinds(job).map(|k| k.issued).sum();
    if let Some(missed) = &missed {
        let share = missed.did / missed.asked * 100.0;
        let (asked, did) = (missed.print(missed.asked), missed.print(missed.did));
        let cause = format!("The schedule asks for {asked}, and {did} were done: {share:.1} %.");
        found.push(Warning::new("rate-not-reached", name, cause));
    }
    let cost = own_share(job).filter(|share| missed.is_some() && *share > LIMITING);
    if late * 100 > all && !waits_for_target(planned, job) {
        let cause = format!(
            "{late} of {all} operations were issued late although a slot was free: the tool was \
             measured, not the target."
        );
        found.push(Warning::new("generator-limited", name, cause));
    } else if let Some(share) = cost {
        let share = share.min(1.0) * 100.0;
        let cause = format!(
            "The loop's own cost is {share:.0} % of the time: the tool was measured, not the target."
        );
        let remedy = "Lower the rate, or use more workers.";
        found.push(Warning::new("generator-limited", name, cause).with_remedy(remedy));
    }
    found
}

/// A packet path that began fewer messages than its rate asked for, and one that lost some.
pub(super) fn of_path(job: &JobResult) -> Vec<Warning> {
    let share = |name: &str| Some(job.metrics.iter().find(|one| one.name == name)?.value);
    let warning = |id, cause| Warning::new(id, Some(&job.name), cause);
    let begun = share("begun of the rate").filter(|share| *share < LEAST_DONE);
    let begun = begun.map(|share| {
        let cause = format!("{:.1} % of the messages that the rate asks for were begun.", 100.0 * share);
        warning("generator-limited", cause).with_remedy(
            "Lower the rate, use more workers, or let any number be in flight: lost messages fill a window.",
        )
    });
    let lost = share("loss").filter(|share| *share > 0.0).map(|share| {
        let cause = format!(
            "{:.2} % of the messages had no answer in time.",
            100.0 * share
        );
        warning("messages-lost", cause)
    });
    begun.into_iter().chain(lost).collect()
}

/// The queues were nearly full: what was late then had waited for the target before it waited for a
/// harvest to be issued anew.
fn waits_for_target(planned: &Job, job: &JobResult) -> bool {
    let depth = f64::from(planned.load().depth.queue_depth.0.max(1));
    let room = depth * job.workers().len() as f64;
    let means = job.workers().iter().filter_map(|w| w.depth.mean_in_flight);
    means.sum::<f64>() >= NEARLY_FULL * room
}

/// A schedule that was not kept, per second.
struct Missed {
    asked: f64,
    did: f64,
    in_bytes: bool,
}

impl Missed {
    fn print(&self, rate: f64) -> String {
        if self.in_bytes {
            BytesPerSec(rate).to_string()
        } else {
            Iops(rate).to_string()
        }
    }
}

/// Part of its schedule that an open loop kept, if it is too little. Kinds wait for each other, so
/// that the one that is nearest to its own schedule counts.
fn missed(planned: &Job, job: &JobResult) -> Option<Missed> {
    // Pauses are part of the schedule that its rates do not know.
    let pacing = &planned.load().pacing;
    let pauses = pacing.thinktime.is_some() || !pacing.pause_after_ns.is_empty();
    if !is_open_loop(planned) || pauses {
        return None;
    }
    let schedule = planned.load().pacing.schedule.as_ref()?;
    let depth = f64::from(planned.load().depth.queue_depth.0);
    let seconds: f64 = job
        .workers()
        .iter()
        .filter_map(|w| Some(w.span?.length().as_secs_f64()))
        .sum();
    let workers = job.workers().len() as f64;
    let kinds = planned.workload.kinds().iter().map(KindName::from);
    let done = kinds.filter_map(|kind| {
        let all = || kinds_named(job, &kind);
        let issued: u64 = all().map(|k| k.issued).sum();
        let (asked, did, size, in_bytes, poisson) = match schedule {
            Schedule::OpsPerSecond {
                limit_per_s,
                poisson,
                ..
            } => {
                let asked = limit_per_s.get(&kind)?.0;
                (asked, issued as f64, 1.0, false, *poisson)
            }
            Schedule::BytesPerSecond {
                limit_bytes_per_s,
                poisson,
                ..
            } => {
                let bytes = all().map(|k| k.bytes.0).sum::<u64>() as f64;
                let size = bytes / (issued as f64).max(1.0);
                let asked = limit_bytes_per_s.get(&kind)?.0;
                (asked, bytes, size, true, *poisson)
            }
        };
        let scheduled = asked * seconds;
        // What was in flight at the end made the time longer; random arrivals are that uncertain.
        let luck = if poisson {
            3.0 * (scheduled / size).sqrt()
        } else {
            0.0
        };
        let slack = (workers * (depth + 1.0) + luck) * size;
        (issued > 0).then_some(((did + slack) / scheduled, asked * workers, did, in_bytes))
    });
    let (share, asked, did, in_bytes) = done.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (seconds > 0.0 && share < LEAST_DONE).then(|| Missed {
        asked,
        did: did / seconds * workers,
        in_bytes,
    })
}

/// Warning about the cost of the loop itself, against the latency it measured.
pub(super) fn instrument_cost(planned: &Job, job: &JobResult) -> Option<Warning> {
    let cost = job.loop_ns_per_op()?;
    // The empty engine is there to show this cost.
    if planned.engine.name == "null" {
        return None;
    }
    let medians = kinds(job)
        .filter_map(|k| k.stage(Stage::Lat))
        .filter_map(|h| h.percentile(50.0));
    let of_median = medians.min().map(|ns| cost / (ns as f64).max(1.0));
    let (share, whole) = match (of_median, own_share(job)) {
        (Some(share), _) if share > MOST_OF_MEDIAN => (share, "median latency"),
        (_, Some(share)) if share > MOST_OF_TIME => (share, "time per operation"),
        _ => return None,
    };
    let share = share * 100.0;
    let cause = format!("The loop's own {cost:.0} ns are {share:.0} % of the {whole}.");
    Some(Warning::new("instrument-cost", Some(&job.name), cause))
}

/// The share of the time in which its workers had a CPU that the loop itself needs for what they
/// did.
fn own_share(job: &JobResult) -> Option<f64> {
    let cost = job.loop_ns_per_op()?;
    let times = job.workers().iter().filter_map(|w| {
        let waited = w.cpu.run_delay_ns.unwrap_or_default();
        Some(w.span?.length().0.saturating_sub(waited.0))
    });
    let time: u64 = times.sum();
    let issued: u64 = kinds(job).map(|k| k.issued).sum();
    (time > 0).then(|| cost * issued as f64 / time as f64)
}

fn kinds(job: &JobResult) -> impl Iterator<Item = &KindResult> {
    job.workers().iter().flat_map(|w| &w.kinds)
}

fn kinds_named<'a>(job: &'a JobResult, kind: &'a KindName) -> impl Iterator<Item = &'a KindResult> {
    job.workers().iter().filter_map(move |w| w.kind(kind))
}
