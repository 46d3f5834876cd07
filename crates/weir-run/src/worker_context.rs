//! Parts that a worker's thread gets from the run, and its entry into the loop.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::mpsc::Sender;

use weir_schema::{CpuUse, Failure, Job};
use weir_sys::clock::{Clock, SharedScale, Tick};
use weir_units::Nanos;

use crate::engine::Engine;
use crate::execute::{Event, PhaseShare};
use crate::flow::{FlowShare, SharedFlow};
use crate::gate::Gate;
use crate::live::WorkerLive;
use crate::loop_plan;
use crate::pacer::RecordedStarts;
use crate::source::Source;
use crate::worker::{LoopContext, LoopPlan, LoopStop, drive};

/// Parts that a worker's thread has.
#[derive(Debug)]
pub struct WorkerContext<'a> {
    /// The job.
    pub job: &'a Job,
    /// Clone number within the job.
    pub clone: u32,
    /// Number over the whole run, from 0.
    pub number: u32,
    /// Seed of the job.
    pub seed: u64,
    /// The clock.
    pub clock: Clock,
    /// Length of a tick.
    pub scale: Arc<SharedScale>,
    /// Non-zero: end.
    pub stop: &'a AtomicU32,
    /// Recorders of the loop.
    pub live: &'a WorkerLive,
    pub(crate) flow: Option<Arc<SharedFlow>>,
    /// Recorded starts that the worker keeps to.
    pub recorded_starts: Option<RecordedStarts>,
    pub(crate) gate: &'a Gate,
    pub(crate) events: Sender<Event>,
    pub(crate) cpu: Option<CpuUse>,
    /// Begin of the present pass, where others came before it.
    pub(crate) pass_began: Option<Tick>,
    /// Begin of the worker's time.
    pub(crate) released: Option<Tick>,
    pub(crate) phase: Option<&'a PhaseShare>,
}

impl WorkerContext<'_> {
    /// The bounds and shape of the loop, for a source of `slots` slots.
    pub fn loop_plan(&self, slots: u32) -> LoopPlan {
        let plan = loop_plan::loop_plan(self.job, slots);
        match self.pass_began.zip(self.released) {
            Some((now, release)) => {
                plan.later(Nanos(self.scale.load().to_nanos(now.since(release))))
            }
            None => plan,
        }
    }

    /// Another pass over the targets begins, with another source and engine: its schedule begins
    /// anew, its time is what is left of the worker's.
    pub fn begin_pass(&mut self) {
        self.pass_began = Some(self.clock.now());
        // The end of the last pass was not that of the worker.
        self.live.last_done.set(0);
    }

    /// Says that the worker is ready and waits for the common release; false if there will be
    /// none. [`WorkerContext::drive`] does so by itself, unless it was done before.
    pub fn wait_for_release(&mut self) -> bool {
        if self.released.is_none() {
            // The run may have given up on the start; then nobody listens and the gate says so.
            let _ = self.events.send(Event::Ready(self.number));
            self.released = self.gate.wait();
        }
        self.released.is_some()
    }

    /// Lets the worker's time begin now: what it waited for since the release is none of its own.
    pub fn begin_now(&mut self) {
        self.released = Some(self.clock.now());
    }

    /// Does a part of a phase, whose begin and end stand in the result by its name: `open`, `transfer`,
    /// `close`. Waits for the release first. The loop of a phase that counts from its own begin calls
    /// [`WorkerContext::begin_now`] in there.
    pub fn part<T>(&mut self, name: &'static str, work: impl FnOnce(&mut Self) -> T) -> T {
        self.wait_for_release();
        let begin = self.clock.now();
        let done = work(self);
        if let Some(phase) = self.phase {
            phase.add_part(name, begin, self.clock.now());
        }
        done
    }

    /// Waits in the middle of a phase until every worker of every rank does. All of them meet equally
    /// often.
    ///
    /// # Errors
    /// Another one has failed, or all is to end.
    pub fn meet(&mut self) -> Result<(), Failure> {
        self.wait_for_release();
        let events = &self.events;
        // Who ran the phase may have left this worker behind.
        let wake = || drop(events.send(Event::Waits));
        self.phase.map_or(Ok(()), |phase| phase.meet(wake))
    }

    /// Waits for the release and does work that is timed as one span alone, a walk over many things; it
    /// answers the operations done, of this kind, and the bytes that they moved.
    ///
    /// # Errors
    /// That of the work.
    pub fn walk(
        &mut self,
        kind: usize,
        work: impl FnOnce() -> Result<(u64, u64), Failure>,
    ) -> Result<LoopStop, Failure> {
        if !self.wait_for_release() {
            return Ok(LoopStop::Asked);
        }
        self.begin_elsewhere(self.clock.now());
        let done = work();
        if let Ok((operations, bytes)) = done {
            let live = self.live.kind(kind);
            live.issued.add(operations);
            live.completed.add(operations);
            live.bytes.add(bytes);
        }
        self.end_now();
        done.map(|_| LoopStop::WorkDone)
    }

    /// Sets the end of the worker to now: work after the loop counts as its time.
    pub fn end_now(&mut self) {
        self.live.last_done.set(self.clock.now().0);
        self.cpu = self.live.cpu_use();
    }

    /// The worker's loop is none of the run's, as one in the kernel: its time begins now. What it does
    /// is put into the live counters by whoever calls this.
    pub fn begin_elsewhere(&mut self, began: Tick) {
        self.live.started.set(began.0);
        self.live.begin_use();
    }

    /// Such a loop has ended, and its thread has used so much.
    pub fn end_elsewhere(&mut self, end: Tick, used: CpuUse) {
        self.live.last_done.set(end.0);
        self.cpu = Some(used);
    }

    /// Says that the worker is ready, waits for the common release, runs the loop and takes the
    /// thread's CPU time over it. A release that never comes counts as a stop.
    pub fn drive<E, S>(&mut self, engine: &mut E, source: &mut S, plan: &LoopPlan) -> LoopStop
    where
        E: Engine,
        S: Source<Op = E::Op>,
    {
        self.wait_for_release();
        let Some(release) = self.released else {
            return LoopStop::Asked;
        };
        let scale = self.scale.load();
        let mut pacing = loop_plan::pacing(self.job, self.seed, self.number, scale);
        pacing.flow = self
            .job
            .load()
            .pacing
            .flow
            .zip(self.flow.clone())
            .map(|(f, flow)| FlowShare::join(flow, f.weight, scale.to_ticks(f.pause_ns)));
        pacing.recorded = self.recorded_starts.take();
        let worker = LoopContext {
            clock: &self.clock,
            scale: Arc::clone(&self.scale),
            stop: self.stop,
            live: self.live,
            release: self.pass_began.unwrap_or(release),
            pacing,
        };
        if worker.pacing.is_paced() {
            // Without it the kernel may let a wait end 50 µs late; where it is refused, lateness
            // is counted all the same.
            let _ = weir_sys::pin::set_timer_slack(Nanos(1));
        }
        self.live.begin_use();
        let stop = drive(engine, source, plan, worker);
        self.cpu = self.live.cpu_use();
        stop
    }
}
