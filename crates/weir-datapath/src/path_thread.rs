//! A thread of a packet path: pass after pass over its stages, iteration after iteration, to the end.
//!
//! In: its parts, wired. Out: what it counted, per iteration ([`PathShared`]). At the end clients make no
//! more messages and all go on until the answers have come or are lost, or until they are asked to end; then
//! each frees what it holds, and says how many of its buffers never came home (`drain`).

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use weir_run::{LoopStop, WorkerContext, failure};
use weir_schema::{Failure, IdlePolicy, PacketPathWorkload, PathSide, PathStage, PathThread};
use weir_sys::clock::{Clock, Scale, Tick};
use weir_units::Nanos;

use crate::application::Application;
use crate::counts::{StepClock, ThreadCounts};
use crate::dispatcher::Dispatcher;
use crate::handler::MessageWork;
use crate::link::PacketLink;
use crate::peer::PathPeer;
use crate::pool::Pool;
use crate::shared::PathShared;

mod drain;
mod peer_step;
mod progress;

use progress::AnswerProgress;

/// Passes for nothing before a thread lets others have the CPU.
const PATIENCE: u32 = 64;
/// Time that a thread then sleeps, where it does.
const NAP: std::time::Duration = std::time::Duration::from_micros(50);
/// Delay that a client that kept a rate may have at the end, where a hundredth of the run is less.
const SHORT_DELAY: Nanos = Nanos(50_000_000);
/// Passes between reads of the clock where none is timed.
const PASSES_PER_READ: u64 = 8;
/// Passes between looks at the pool, and between what others see.
const PASSES_PER_LOOK: u64 = 256;

/// A thread and all that it owns.
#[derive(Debug)]
pub(crate) struct PathThreadParts<W, L> {
    pub(crate) side: PathSide,
    pub(crate) thread: u8,
    pub(crate) pool: Pool,
    pub(crate) application: Option<Application<W>>,
    pub(crate) dispatcher: Option<Dispatcher<L>>,
    /// Stages of a pass, in this order.
    pub(crate) stages: Vec<PathStage>,
    /// The other side, where it is a run of its own and this thread speaks for its side.
    pub(crate) peer: Option<PathPeer>,
}

/// Ticks of the plan.
#[derive(Clone, Copy, Debug)]
struct PathTimes {
    /// Of an iteration, and of all.
    duration: u64,
    whole: u64,
    stall: u64,
    drain: u64,
    interval: u64,
    /// Pause that a server has yet to make.
    pause: u64,
    /// Time that a thread that was asked to end waits yet: for answers, and a client for what its server counted.
    last_answers: u64,
    last_counts: u64,
    /// Time after the end in which a client may begin what was due before it.
    catch_up: u64,
    /// Between looks at the other side.
    hearing: u64,
    /// Between signs of life of a client, and how long its server waits for one.
    alive: u64,
    silence: u64,
    /// Time that a word takes over a wire that loses it a few times.
    resent: u64,
}

impl PathTimes {
    fn of(work: &PacketPathWorkload, side: PathSide, scale: Scale) -> Self {
        let ticks = |span: Nanos| scale.to_ticks(span);
        let duration = ticks(work.duration_ns).max(1);
        let whole = duration.saturating_mul(work.iterations.into());
        Self {
            duration,
            whole,
            stall: ticks(work.stall_timeout_ns),
            drain: ticks(work.message_timeout_ns).saturating_mul(2),
            interval: ticks(work.pass_interval_ns),
            pause: match side {
                PathSide::Server => ticks(work.pause_ns),
                PathSide::Client => 0,
            },
            last_answers: ticks(drain::LAST_ANSWERS),
            last_counts: ticks(drain::LAST_COUNTS),
            catch_up: (whole / 100).max(ticks(SHORT_DELAY)),
            hearing: ticks(Nanos(5_000_000)),
            alive: ticks(peer_step::ALIVE),
            silence: ticks(work.stall_timeout_ns.max(peer_step::LEAST_SILENCE)),
            resent: ticks(peer_step::RESENT),
        }
    }
}

/// A thread at work.
#[derive(Debug)]
pub(crate) struct Pipeline<'a, W, L> {
    parts: PathThreadParts<W, L>,
    shared: Arc<PathShared>,
    clock: Clock,
    scale: Scale,
    times: PathTimes,
    idle: IdlePolicy,
    work: &'a PacketPathWorkload,
    /// Non-zero: end.
    stop: &'a AtomicU32,
    /// When it first saw at the end that it is asked to, and whether it waited then for what had not come.
    asked: Cell<Option<u64>>,
    is_cut_short: bool,
    counts: ThreadCounts,
    /// Messages that came back in earlier iterations, and that were given up.
    answered: u64,
    lost: u64,
    /// Messages that the rate asked for, and packets that the link dropped, in these.
    intended: u64,
    link_drops: u64,
    /// The tick of the next look at the other side.
    next_hearing: u64,
    /// When the other side was last heard, or was said that this one goes on.
    last_sign: u64,
    /// The iteration under way, and when it began.
    iteration: u32,
    since: u64,
    /// Clients make messages.
    is_making: bool,
    /// When a message last came back, or none was waited for.
    progress: AnswerProgress,
    /// Figures of the last iteration.
    last: Option<PathThread>,
}

impl<'a, W: MessageWork, L: PacketLink> Pipeline<'a, W, L> {
    pub(crate) fn new(
        parts: PathThreadParts<W, L>,
        work: &'a PacketPathWorkload,
        idle: IdlePolicy,
        shared: Arc<PathShared>,
        worker: &WorkerContext<'a>,
    ) -> Self {
        let scale = worker.scale.load();
        let times = PathTimes::of(work, parts.side, scale);
        Self {
            parts,
            shared,
            clock: worker.clock,
            scale,
            times,
            idle,
            work,
            stop: worker.stop,
            asked: Cell::new(None),
            is_cut_short: false,
            counts: ThreadCounts::default(),
            answered: 0,
            intended: 0,
            link_drops: 0,
            next_hearing: 0,
            last_sign: 0,
            iteration: 0,
            since: 0,
            is_making: true,
            lost: 0,
            progress: AnswerProgress::default(),
            last: None,
        }
    }

    /// Runs to the end of the last iteration, or until it is asked to end.
    pub(crate) fn run(mut self, worker: &mut WorkerContext<'_>) -> Result<LoopStop, Failure> {
        let can_begin = self.wait_for_other_side(worker);
        let began = self.shared.begin(self.clock.now().0);
        worker.begin_elsewhere(Tick(began));
        self.since = began;
        self.progress.at = began;
        self.last_sign = began;
        if let Some(part) = &mut self.parts.application {
            // What is due at the end itself is due too late.
            part.begin(began, began.saturating_add(self.times.whole) - 1);
        }
        let is_whole = can_begin && self.measure(began, worker);
        worker.end_now();
        self.drain();
        self.close(worker);
        if let Some(failure) = self.shared.take_failure() {
            return Err(failure);
        }
        Ok(if is_whole && !self.is_cut_short {
            LoopStop::WorkDone
        } else {
            LoopStop::Asked
        })
    }

    /// All iterations; whether they came to their end.
    fn measure(&mut self, began: u64, worker: &WorkerContext<'_>) -> bool {
        let mut now = self.clock.now().0;
        let mut for_nothing = 0_u32;
        loop {
            let pass_began = now;
            let moved = self.pass(&mut now);
            if self.counts.sums.passes.is_multiple_of(PASSES_PER_LOOK) {
                self.show(worker);
                self.watch_progress(now);
                self.hear_other_side(now);
            }
            if self.shared.other_ended.load(Ordering::Relaxed) {
                self.conclude(now, worker, true);
                return true;
            }
            if worker.stop.load(Ordering::Relaxed) != 0 || self.shared.ends.load(Ordering::Relaxed)
            {
                self.conclude(now, worker, true);
                return false;
            }
            self.pause_once(began, now);
            let end = self.iteration_end(began);
            let is_last = self.iteration + 1 == self.work.iterations;
            if now >= end && !(is_last && self.may_catch_up(end, now)) {
                self.conclude(now, worker, is_last);
                if is_last {
                    return true;
                }
            }
            for_nothing = if moved > 0 {
                0
            } else {
                for_nothing.saturating_add(1)
            };
            if for_nothing > 0 && self.rest(for_nothing) {
                now = self.clock.now().0;
                self.watch_progress(now);
            }
            let next = pass_began.saturating_add(self.times.interval);
            let next = next.min(self.iteration_end(began));
            while now < next && worker.stop.load(Ordering::Relaxed) == 0 {
                std::hint::spin_loop();
                now = self.clock.now().0;
            }
        }
    }

    /// When the iteration under way is over.
    fn iteration_end(&self, began: u64) -> u64 {
        let ended = u64::from(self.iteration) + 1;
        began.saturating_add(self.times.duration.saturating_mul(ended))
    }

    /// A server stands still for as long as the plan says, once, in the middle of the run.
    fn pause_once(&mut self, began: u64, now: u64) {
        if self.times.pause > 0 && now >= began.saturating_add(self.times.whole / 2) {
            let until = now.saturating_add(std::mem::take(&mut self.times.pause));
            while self.clock.now().0 < until && self.stop.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
        }
    }

    /// A client that kept a rate and was not given the CPU at the end may begin what was due before it.
    fn may_catch_up(&self, end: u64, now: u64) -> bool {
        let is_behind = |part: &Application<W>| part.is_behind(now);
        now < end.saturating_add(self.times.catch_up)
            && self.parts.application.as_ref().is_some_and(is_behind)
    }

    /// One pass over the stages, timed or not as the plan has it; packets that moved.
    #[inline]
    fn pass(&mut self, now: &mut u64) -> usize {
        let number = self.counts.sums.passes;
        self.counts.sums.passes += 1;
        let every = u64::from(self.work.timed_pass);
        let moved = if every > 0 && number.is_multiple_of(every) {
            if every > 1 {
                *now = self.clock.now().0;
            }
            let start = *now;
            let mut steps = StepClock::<true>::new(self.clock, start);
            let moved = self.stages(start, &mut steps);
            if steps.last() == start {
                // None of its stages read the clock, which has to go on all the same.
                steps.step();
            }
            *now = steps.last();
            self.counts.sums.timed_passes += 1;
            self.counts.timed += now.saturating_sub(start);
            moved
        } else {
            if number.is_multiple_of(PASSES_PER_READ) || self.times.interval > 0 {
                *now = self.clock.now().0;
            }
            let mut steps = StepClock::<false>::new(self.clock, *now);
            self.stages(*now, &mut steps)
        };
        self.counts.sums.empty_passes += u64::from(moved == 0);
        moved
    }

    #[inline]
    fn stages<const TIMED: bool>(&mut self, now: u64, steps: &mut StepClock<TIMED>) -> usize {
        let PathThreadParts {
            pool,
            application,
            dispatcher,
            stages,
            ..
        } = &mut self.parts;
        let counts = &mut self.counts;
        let mut moved = 0;
        for stage in stages.iter() {
            // Where nothing is timed this stays what it was.
            let now = now.max(steps.last());
            moved += match (stage, &mut *application, &mut *dispatcher) {
                (PathStage::ApplicationTx, Some(part), _) if self.is_making => {
                    part.transmit(pool, now, steps, counts)
                }
                (PathStage::ApplicationRx, Some(part), _) => {
                    part.receive(pool, now, &self.clock, steps, counts, self.stop)
                }
                (PathStage::DispatchTx, _, Some(part)) => part.transmit(pool, now, steps, counts),
                (PathStage::DispatchRx, _, Some(part)) => part.receive(pool, now, steps, counts),
                _ => 0,
            };
        }
        pool.publish();
        moved
    }

    /// Lets others have the CPU, where the plan says so; true if it did.
    fn rest(&self, passes_for_nothing: u32) -> bool {
        match self.idle {
            IdlePolicy::Pause => std::hint::spin_loop(),
            IdlePolicy::Yield if passes_for_nothing >= PATIENCE => {
                std::thread::yield_now();
                return true;
            }
            IdlePolicy::Sleep if passes_for_nothing >= PATIENCE => {
                std::thread::sleep(NAP);
                return true;
            }
            _ => {}
        }
        false
    }

    /// Sets what others may see while it goes on.
    fn show(&mut self, worker: &WorkerContext<'_>) {
        let (sum, looks) = &mut self.counts.pool_use;
        *sum += self.parts.pool.in_use();
        *looks += 1;
        let dispatcher = self.parts.dispatcher.as_mut();
        if let Some(why) = dispatcher.and_then(Dispatcher::trouble) {
            self.shared.fail(failure("link", None, why));
        }
        if self.work.only_stage.is_some() {
            // No message goes anywhere.
            return;
        }
        let messages = &worker.live.kinds[0];
        let done = self.answered + self.counts.answered;
        messages.completed.set(done);
        messages.issued.set(done);
        let bytes = done.saturating_mul(self.work.request_bytes.0);
        messages.bytes.set(bytes);
    }

    /// A client without any answer for too long ends the run.
    fn watch_progress(&mut self, now: u64) {
        let done = self.answered + self.counts.answered;
        let lost = self.lost + self.counts.sums.lost;
        let AnswerProgress {
            answered,
            lost: lost_before,
            ..
        } = self.progress;
        // Between messages that were given up and the next ones nothing is under way.
        let has_unanswered = |part: &Application<W>| {
            (part.outstanding.count() > 0 || lost > lost_before) && !part.supply.is_empty()
        };
        let part = self.parts.application.as_ref();
        let waits = self.parts.side == PathSide::Client && part.is_some_and(has_unanswered);
        if done != answered || !waits || !self.work.is_answered() {
            self.progress = AnswerProgress {
                answered: done,
                lost,
                at: now,
                overdue: None,
            };
        } else if self.progress.has_stalled(now, self.times.stall) {
            self.stall(self.work.stall_timeout_ns, done);
        }
    }

    /// Fails the run, as this client had no answer for so long after so many.
    fn stall(&self, span: Nanos, before: u64) {
        let why = format!(
            "no message of client {} was answered for {span}; {before} were answered before",
            self.parts.thread
        );
        self.shared.fail(failure("stalled", None, why));
    }

    /// Ends an iteration and begins the next; the last waits for what becomes known after it.
    fn conclude(&mut self, now: u64, worker: &WorkerContext<'_>, is_last: bool) {
        self.show(worker);
        self.count_up(now);
        let counts = std::mem::take(&mut self.counts);
        worker.live.kinds[0].lat.add(&counts.latency);
        self.answered += counts.answered;
        self.lost += counts.sums.lost;
        let figures = PathThread {
            side: self.parts.side,
            thread: self.parts.thread,
            is_application: self.parts.application.is_some(),
            is_dispatcher: self.parts.dispatcher.is_some(),
            ..counts.figures(now.saturating_sub(self.since), self.scale)
        };
        if is_last {
            self.last = Some(figures);
            return;
        }
        self.shared.count(self.iteration as usize, figures);
        self.since = now;
        self.iteration += 1;
    }

    /// Turns what is counted from the beginning into that of an iteration.
    fn count_up(&mut self, now: u64) {
        if let Some(part) = &mut self.parts.application {
            self.counts.sums.request_sizes = part.supply.take_counts();
            let intended = part.intended(now);
            self.counts.sums.intended = intended - std::mem::replace(&mut self.intended, intended);
            self.counts.sums.begun =
                self.counts.application_tx.packets() / u64::from(part.form.packets);
        }
        let dispatcher = self.parts.dispatcher.as_ref();
        if let Some(drops) = dispatcher.and_then(Dispatcher::link_drops) {
            let before = std::mem::replace(&mut self.link_drops, drops);
            self.counts.sums.link_drops = Some(drops.saturating_sub(before));
        }
    }
}
