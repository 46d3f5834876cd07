//! Stalled RPCs: a message, once for each stall.
//!
//! In: what the run shows of itself. Out: a note for standard error. Not here: the progress line, which
//! shows a stall while it lasts.

use std::cell::Cell;

use weir_run::execute::{LiveJob, LiveView};
use weir_schema::{Plan, Workload};
use weir_units::Nanos;

/// The run is looked at this often.
const LOOK: Nanos = Nanos(100_000_000);

/// Looks for stalls.
#[derive(Debug)]
pub(crate) struct StallWatch {
    /// Shortest time without a finished call that is a stall.
    limit: Nanos,
    plan: Plan,
    looked: Cell<Nanos>,
    /// Number of RPCs that have ended, and the time since it last changed.
    last: Cell<(u64, Nanos)>,
    is_reported: Cell<bool>,
}

impl StallWatch {
    pub(crate) fn new(limit: Nanos, plan: &Plan) -> Self {
        Self {
            limit,
            plan: plan.clone(),
            looked: Cell::default(),
            last: Cell::default(),
            is_reported: Cell::default(),
        }
    }

    /// Message about a stall, if one is due.
    pub(crate) fn look(&self, view: &LiveView<'_>) -> Option<String> {
        let now = view.elapsed_ns;
        if now.saturating_sub(self.looked.get()) < LOOK {
            return None;
        }
        self.looked.set(now);
        let jobs = view.jobs();
        let jobs: Vec<&LiveJob> = jobs.iter().filter(|job| job.gone < job.workers).collect();
        let ended = jobs.iter().map(|job| job.operations + job.errors).sum();
        let (before, since) = self.last.get();
        if jobs.is_empty() || ended != before {
            self.last.set((ended, now));
            self.is_reported.set(false);
            return None;
        }
        let still = now.saturating_sub(since);
        if still < self.limit || self.is_reported.replace(true) {
            return None;
        }
        Some(note(jobs.first()?, &self.plan, self.limit))
    }
}

fn note(job: &LiveJob, plan: &Plan, limit: Nanos) -> String {
    let name = &job.name;
    let planned = plan.jobs().nth(job.index);
    let work = planned.and_then(|(_, job)| match &job.workload {
        Workload::Rpc(work) => Some(work),
        _ => None,
    });
    let timeout = work.map(|work| work.timeout_ns);
    let timeout = timeout.map_or_else(String::new, |time| format!(", and RPCs fail after {time}"));
    if !job.released {
        return format!(
            "note: {name}: still connecting, or in its warm-up, after {limit}{timeout}\n"
        );
    }
    if let Some(work) = work.filter(|work| !work.masters.is_empty()) {
        let most = work.in_flight();
        return format!(
            "note: {name}: no RPC of the masters has ended for {limit}; each has up to {most} out{timeout}\n"
        );
    }
    let out = job.in_flight;
    format!("note: {name}: no RPC has ended for {limit}; {out} are out{timeout}\n")
}
