//! Pacing: decides *when* the next operation may be issued, never *which*.
//!
//! In: a schedule of intended starts per kind, pauses, the clock. Out: the earliest tick at which
//! an operation may be issued. Latency counted from there hides no queueing delay of a stalled
//! device. Not here: choosing offsets, limiting depth.
//! Cost: one branch for an unpaced job; for a paced one an addition and a compare.

use weir_sys::clock::{Scale, Tick};
use weir_units::Nanos;

use crate::flow::FlowShare;
use crate::generate::arrivals::Arrivals;

/// Pauses of a job, in ticks.
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    /// The whole pause.
    pub pause: u64,
    /// The first part of it that keeps the CPU busy.
    pub spin: u64,
    /// Operations between pauses.
    pub every: u64,
    /// Operations count when they complete, not when they are issued.
    pub completed: bool,
    /// Ticks of work between pauses, instead of operations.
    pub after: Option<u64>,
}

/// Intended starts of one operation after the other, counted from the first one's, as a recording
/// has them. Each is read from a recording, which takes longer than the call through a pointer.
pub struct RecordedStarts(pub Box<dyn Iterator<Item = Nanos>>);

impl std::fmt::Debug for RecordedStarts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RecordedStarts").finish_non_exhaustive()
    }
}

/// Initial values of a worker's pacing.
#[derive(Debug, Default)]
pub struct PacerPlan {
    /// Intended starts by kind; `None`, or none at all: free.
    pub arrivals: Vec<Option<Arrivals>>,
    /// Pauses.
    pub pause: Option<Pause>,
    /// Ticks of the pause after an operation, by kind; none at all: no such pauses.
    pub pause_after: Vec<u64>,
    /// Starts missed during a pause are not made up for.
    pub skip_pauses: bool,
    /// The worker's part in a flow.
    pub flow: Option<FlowShare>,
    /// Starts of a recorded pattern, one for each operation.
    pub recorded: Option<RecordedStarts>,
}

impl PacerPlan {
    /// There is something to pace.
    pub fn is_paced(&self) -> bool {
        let scheduled = self.recorded.is_some() || self.arrivals.iter().any(Option::is_some);
        let pauses = self.pause.is_some() || !self.pause_after.is_empty();
        pauses || self.flow.is_some() || scheduled
    }
}

/// Pacer of a worker: the time at which the next operation may be issued.
#[derive(Debug)]
pub struct Pacer {
    plan: PacerPlan,
    release: Tick,
    scale: Scale,
    shift: u64,
    issued: u64,
    /// Operations that counted up to the last pause.
    paused_at: u64,
    work_began: Tick,
    resume: Tick,
    spin_until: Tick,
}

impl Pacer {
    /// Starts the schedules at the release.
    pub fn new(plan: PacerPlan, release: Tick, scale: Scale) -> Self {
        Self {
            plan,
            release,
            scale,
            shift: 0,
            issued: 0,
            paused_at: 0,
            work_began: release,
            resume: release,
            spin_until: release,
        }
    }

    /// Nothing to pace.
    pub fn is_free(&self) -> bool {
        !self.plan.is_paced()
    }

    /// The intended start of the next operation of this kind and length. Each call takes one slot
    /// of the schedule.
    pub fn intended(&mut self, kind: usize, length: u32) -> Tick {
        if let Some(recorded) = &mut self.plan.recorded {
            let nanos = recorded.0.next().unwrap_or_default();
            return self
                .release
                .after(self.scale.to_ticks(nanos))
                .max(self.resume);
        }
        let Some(Some(arrivals)) = self.plan.arrivals.get_mut(kind) else {
            return self.resume;
        };
        let nanos = arrivals.next_start_ns(u64::from(length));
        let tick = self
            .release
            .after(self.scale.to_ticks(Nanos(nanos)) + self.shift);
        tick.max(self.resume)
    }

    /// Begins an operation in the worker's flow.
    ///
    /// # Errors
    /// It is ahead of the others: how many ticks to wait before asking again.
    pub fn begin(&mut self) -> Result<(), u64> {
        match &mut self.plan.flow {
            Some(flow) => flow.begin().then_some(()).ok_or(flow.pause),
            None => Ok(()),
        }
    }

    /// Until then a pause keeps the CPU busy instead of sleeping.
    pub fn spin_until(&self) -> Tick {
        self.spin_until
    }

    /// Begins the pause that follows an operation of this kind, if there is one.
    pub fn pause_behind(&mut self, kind: usize, now: Tick) {
        let pause = self.plan.pause_after.get(kind).copied().unwrap_or(0);
        if pause > 0 {
            self.resume = now.after(pause);
            self.spin_until = now;
        }
    }

    /// Counts an issued operation towards the next pause; so many are in flight with it.
    pub fn count(&mut self, now: Tick, in_flight: u64) {
        let Some(pause) = self.plan.pause else { return };
        self.issued += 1;
        let waiting = if pause.completed { in_flight } else { 0 };
        let counted = self.issued - waiting;
        let due = match pause.after {
            Some(work) => now.since(self.work_began) >= work,
            None => counted >= self.paused_at + pause.every.max(1),
        };
        if due {
            self.paused_at = counted;
            self.resume = now.after(pause.pause);
            self.spin_until = now.after(pause.spin);
            self.work_began = self.resume;
            if self.plan.skip_pauses {
                self.shift += pause.pause;
            }
        }
    }
}
