//! A loop outside of any run, as a server's that was asked to make calls itself: the same loop with the
//! same recorders, on the caller's thread.
//!
//! In: a job, an engine, a source. Out: counters and histograms, what the thread used, why it ended.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use weir_schema::{CpuUse, Job};
use weir_sys::clock::{Clock, SharedScale, Tick};
use weir_units::Nanos;

use crate::engine::Engine;
use crate::live::WorkerLive;
use crate::loop_plan;
use crate::source::Source;
use crate::worker::{LoopContext, LoopPlan, LoopStop, drive};

/// A loop that no run knows of.
#[derive(Clone, Copy, Debug)]
pub struct LoneLoop<'a> {
    /// Its bounds, its pace, what it records.
    pub job: &'a Job,
    /// Of its arrivals.
    pub seed: u64,
    /// The clock.
    pub clock: &'a Clock,
    /// Non-zero: end.
    pub stop: &'a AtomicU32,
    /// Recorders of the loop.
    pub live: &'a WorkerLive,
}

impl LoneLoop<'_> {
    /// Runs it with so many slots from now on, by its plan after a change.
    pub fn drive<E, S>(
        &self,
        engine: &mut E,
        source: &mut S,
        slots: u32,
        change: impl FnOnce(&mut LoopPlan),
    ) -> LoopStop
    where
        E: Engine,
        S: Source<Op = E::Op>,
    {
        let mut plan = loop_plan::loop_plan(self.job, slots);
        change(&mut plan);
        let scale = self.clock.scale();
        let worker = LoopContext {
            clock: self.clock,
            scale: Arc::new(SharedScale::new(scale)),
            stop: self.stop,
            live: self.live,
            release: self.clock.now(),
            pacing: loop_plan::pacing(self.job, self.seed, 0, scale),
        };
        self.live.begin_use();
        drive(engine, source, &plan, worker)
    }

    /// From the first operation that counts to the end of the last.
    pub fn duration(&self) -> Nanos {
        let [began, ended] = [&self.live.started, &self.live.last_done].map(|at| Tick(at.get()));
        Nanos(self.clock.scale().to_nanos(ended.since(began)))
    }

    /// Use of the calling thread, which is the loop's, since its start.
    pub fn cpu(&self) -> CpuUse {
        self.live.cpu_use().unwrap_or_default()
    }
}
