//! State that both loops share: the next event on the clock, faults, the conversion to nanoseconds.
//!
//! Everything here that is not inlined is off the hot path.

use crate::live::KIND_MASK;
use std::sync::atomic::Ordering;

use weir_sys::clock::{Scale, Tick};
use weir_units::Nanos;

use crate::clock::RunClock;
use crate::engine::Operation;
use crate::live::{LiveKind, WorkerLive};
use crate::pacer::Pacer;
use crate::source::Source;
use crate::trace::Traced;
use crate::worker::{LoopContext, LoopPlan, LoopStop, OpFailure, OpFault};

const EIO: i32 = 5;
const EINTR: i32 = 4;
const ENOSPC: i32 = 28;
const ETIMEDOUT: i32 = 110;
/// An issue later than this after its intended start, with a slot free, is the generator's fault.
const LATE_NS: u64 = 10_000;
/// A worker whose operations wait to be written down looks for room this often.
const ROOM_CHECK: Nanos = Nanos(50_000);
/// A worker takes over the scale of the last anchor this often.
const RESCALE: Nanos = Nanos(100_000_000);

/// The state of a running loop that changes rarely.
pub(super) struct LoopState<'a, C> {
    worker: LoopContext<'a, C>,
    plan: &'a LoopPlan,
    pub(super) scale: Scale,
    pub(super) pacer: Pacer,
    /// The next tick at which [`LoopState::event`] wants to be called.
    pub(super) event_at: Tick,
    ramp_end: Option<Tick>,
    end: Tick,
    rescale_at: Tick,
    /// The latency from which an operation is too slow.
    pub(super) slowest_ns: u64,
    pub(super) ended: Option<LoopStop>,
    untimed: u32,
    traced: bool,
}

impl<'a, C: RunClock> LoopState<'a, C> {
    pub(super) fn new(plan: &'a LoopPlan, mut worker: LoopContext<'a, C>) -> Self {
        let scale = worker.scale.load();
        let release = worker.release;
        let pacing = std::mem::take(&mut worker.pacing);
        let ramp = scale.to_ticks(plan.ramp);
        let end = plan.runtime.map_or(Tick(u64::MAX), |t| {
            release.after(ramp).after(scale.to_ticks(t))
        });
        // A later pass of the worker goes on with the time of the first.
        if worker.live.started.get() == 0 {
            worker.live.started.set(release.0);
        }
        let mut state = Self {
            pacer: Pacer::new(pacing, release, scale),
            ramp_end: (plan.ramp.0 > 0).then(|| release.after(ramp)),
            end,
            rescale_at: release.after(scale.to_ticks(RESCALE)),
            event_at: release,
            slowest_ns: plan.max_latency.map_or(u64::MAX, |n| n.0),
            ended: None,
            untimed: 0,
            traced: worker.live.is_seen_alone(),
            scale,
            plan,
            worker,
        };
        state.set_event();
        state
    }

    pub(super) fn live(&self) -> &'a WorkerLive {
        self.worker.live
    }

    #[inline]
    pub(super) fn response(&self) -> bool {
        self.plan.response
    }

    #[inline]
    pub(super) fn now(&self) -> Tick {
        self.worker.clock.now()
    }

    /// The instant where every operation is timed; otherwise a read every 64 calls.
    #[inline]
    pub(super) fn now_and_then(&mut self, last: Tick) -> Tick {
        self.untimed = self.untimed.wrapping_add(1);
        if self.untimed.is_multiple_of(64) {
            self.now()
        } else {
            last
        }
    }

    #[inline]
    pub(super) fn stop_asked(&self) -> bool {
        self.worker.stop.load(Ordering::Relaxed) != 0
    }

    #[inline]
    pub(super) fn nanos(&self, from: Tick, to: Tick) -> u64 {
        self.scale.to_nanos(to.since(from))
    }

    /// Has an operation looked at that was in flight between two instants; the instant after.
    #[inline]
    pub(super) fn look_at<S: Source>(
        &self,
        source: &mut S,
        op: &S::Op,
        (started, done): (Tick, Tick),
        whole: bool,
    ) -> Tick {
        self.worker.live.kinds[op.kind_index() & KIND_MASK].note_active(started, done);
        source.completed(0, op, whole);
        self.account_preparation(done)
    }

    /// Accounts the time since then, in which buffers were filled or checked, or a pause
    /// between passes was made; the instant it is.
    #[inline(never)]
    pub(super) fn account_preparation(&self, since: Tick) -> Tick {
        let now = self.now();
        self.worker.live.prepare_ns.add(self.nanos(since, now));
        now
    }

    fn set_event(&mut self) {
        let ramp = self.ramp_end.unwrap_or(Tick(u64::MAX));
        self.event_at = self.end.min(ramp).min(self.rescale_at);
    }

    /// End of ramp, end of time, a new scale, a stop.
    #[cold]
    #[inline(never)]
    pub(super) fn event(&mut self, now: Tick) {
        if let Some(ramp_end) = self.ramp_end.filter(|&r| now >= r) {
            self.worker.live.reset();
            self.worker.live.started.set(ramp_end.0);
            self.ramp_end = None;
        }
        if self.worker.live.anew.swap(false, Ordering::Relaxed) {
            self.worker.live.reset();
            self.worker.live.started.set(now.0);
        }
        if now >= self.rescale_at {
            self.scale = self.worker.scale.load();
            self.rescale_at = now.after(self.scale.to_ticks(RESCALE));
        }
        self.set_event();
        if self.ended.is_none() {
            if self.stop_asked() {
                self.ended = Some(LoopStop::Asked);
            } else if now >= self.end {
                self.ended = Some(LoopStop::TimeUp);
            }
        }
    }

    /// Looks at the clock's events and stops where there is time for it.
    pub(super) fn is_over(&mut self, now: Tick) -> bool {
        if now >= self.event_at || self.stop_asked() {
            self.event(now);
        }
        self.ended.is_some()
    }

    /// Waits until an intended start, a stop or the end of time; the instant it is then.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_until(&mut self, due: Tick) -> Tick {
        loop {
            let now = self.now();
            if now >= due || self.stop_asked() || now >= self.end {
                return now;
            }
            if now < self.pacer.spin_until() {
                std::hint::spin_loop();
            } else {
                self.worker.clock.wait_towards(due.min(self.end));
            }
            if now >= self.event_at {
                self.event(now);
            }
        }
    }

    /// Begins an operation in the worker's flow, if it is in one; waits a little where it is
    /// ahead of the others. Whether it may go, and the instant it is.
    #[inline(never)]
    pub(super) fn begin(&mut self, now: Tick) -> (bool, Tick) {
        match self.pacer.begin() {
            Ok(()) => (true, now),
            Err(0) => {
                std::thread::yield_now();
                (false, self.now())
            }
            Err(pause) => (false, self.wait_until(now.after(pause))),
        }
    }

    /// Waits while operations are noted faster than they are written down; the instant it is then.
    /// The time counts as preparation.
    #[cold]
    #[inline(never)]
    pub(super) fn await_room(&mut self, now: Tick) -> Tick {
        let live = self.worker.live;
        let is_filling = || live.trace.as_ref().is_some_and(|queue| queue.is_filling());
        if !is_filling() {
            return now;
        }
        let mut at = now;
        while is_filling() && !self.is_over(at) {
            at = self.wait_until(at.after(self.scale.to_ticks(ROOM_CHECK)));
        }
        self.account_preparation(now)
    }

    /// Notes how late an operation was issued although a slot was free.
    pub(super) fn count_lateness(&self, lag_ns: u64) {
        if lag_ns > LATE_NS {
            self.worker.live.late.add(1);
        }
    }

    /// Longest wait of a reap for the next intended start.
    pub(super) fn wait_limit(&self, now: Tick, due: Tick) -> u64 {
        self.scale.to_nanos(due.min(self.end).since(now))
    }

    /// An operation of which so much had moved, and that again moved less than it should: go on
    /// with it, or a fault.
    #[cold]
    #[inline(never)]
    pub(super) fn incomplete<O: Operation>(
        &mut self,
        op: &O,
        moved: u32,
        result: i64,
        (started, lat_ns): (Tick, u64),
    ) -> Rest {
        let kind = op.kind_index();
        let live = &self.worker.live.kinds[kind];
        let mut moved = moved;
        if result > 0 {
            live.short.add(1);
            let more = u32::try_from(result).unwrap_or(u32::MAX);
            moved = moved.saturating_add(more);
            if op.rest(moved).is_some() {
                return Rest::GoOn(more);
            }
        }
        let errno = i32::try_from(-result.min(0)).unwrap_or(EIO);
        if errno == EINTR && !self.stop_asked() {
            return Rest::GoOn(0);
        }
        let full = errno == ENOSPC && self.plan.until_full;
        let fault = if errno == 0 {
            OpFault::EndOfTarget
        } else {
            OpFault::Errno(errno)
        };
        let counted = if errno == 0 { EIO } else { errno };
        live.fail(counted, lat_ns, op.acts_on());
        if self.traced {
            self.trace(*op, started, (0, lat_ns), counted);
        }
        if full || errno == EINTR {
            let why = if full {
                LoopStop::WorkDone
            } else {
                LoopStop::Asked
            };
            self.ended.get_or_insert(why);
            return Rest::Over;
        }
        let at = failure_of(op, moved, fault);
        let is_failure = !self.plan.ignore[kind].contains(&errno);
        let findings = &self.worker.live.findings;
        if is_failure && (!self.plan.go_on[kind] || findings.is_too_many()) {
            self.ended.get_or_insert(LoopStop::Failed(at));
        } else if self.plan.report_errors {
            findings.add_failed(at);
        }
        Rest::Over
    }

    #[inline]
    pub(super) fn is_traced(&self) -> bool {
        self.traced
    }

    /// True if operations have times to start at.
    pub(super) fn is_paced(&self) -> bool {
        !self.pacer.is_free()
    }

    /// True if more is done about each operation of an inline engine than to count it.
    pub(super) fn is_watched(&self) -> bool {
        let has_targets = || {
            self.worker
                .live
                .kinds
                .iter()
                .any(|kind| !kind.targets.is_empty())
        };
        let looks_closer = self.traced || self.plan.response || self.plan.max_latency.is_some();
        looks_closer || self.is_paced() || has_targets()
    }

    /// Notes an operation that an inline engine carried out as a whole, where that is asked for.
    #[cold]
    #[inline(never)]
    pub(super) fn watch<O: Operation>(
        &mut self,
        kind: &LiveKind,
        op: O,
        (started, intended, done): (Tick, Tick, Tick),
        lat_ns: u64,
    ) {
        let target = kind.target(op.acts_on());
        if let Some(target) = target {
            target.record(lat_ns);
        }
        if self.plan.response {
            let rlat = self.nanos(intended, done);
            kind.rlat.record(rlat);
            if let Some(target) = target {
                target.record_response(rlat);
            }
        }
        if self.traced {
            self.trace(op, started, (0, lat_ns), 0);
        }
        if lat_ns >= self.slowest_ns {
            self.too_slow(op, lat_ns);
        }
    }

    /// Settles an operation of an inline engine before the next one, with the kind whose pause
    /// comes; the instant after it.
    #[cold]
    #[inline(never)]
    pub(super) fn settle(&mut self, pause: Option<usize>, began: Tick, mut now: Tick) -> Tick {
        if self.traced {
            now = self.await_room(now);
        }
        if self.is_paced() {
            self.pacer.count(now, 0);
            if let Some(kind) = pause {
                self.pacer.pause_behind(kind, began);
            }
        }
        now
    }

    /// Notes an operation in the trace and in its class, with its submission and total latency.
    #[cold]
    #[inline(never)]
    pub(super) fn trace<O: Operation>(
        &self,
        op: O,
        issued: Tick,
        (slat_ns, lat_ns): (u64, u64),
        errno: i32,
    ) {
        let kind = &self.worker.live.kinds[op.kind_index() & KIND_MASK];
        if errno == 0 {
            kind.record_class(op.class(), (lat_ns - slat_ns, lat_ns));
        }
        if let Some(queue) = &self.worker.live.trace {
            queue.push(Traced {
                issued,
                lat_ns,
                slat_ns,
                acts_on: op.acts_on(),
                length: op.length(),
                kind: u8::try_from(op.kind_index()).unwrap_or(u8::MAX),
                class: op.class(),
                errno,
            });
        }
    }

    /// An operation took longer than the plan allows.
    #[cold]
    #[inline(never)]
    pub(super) fn too_slow<O: Operation>(&mut self, op: O, took: u64) {
        let limit = Nanos(self.slowest_ns);
        self.fail(
            &op,
            op.length(),
            OpFault::TooSlow {
                took: Nanos(took),
                limit,
            },
        );
    }

    /// The engine itself failed.
    #[cold]
    pub(super) fn engine_failed(&mut self, error: &std::io::Error) {
        let fault = OpFault::Engine(error.raw_os_error().unwrap_or(EIO));
        let live = self.worker.live;
        let at = OpFailure {
            fault,
            kind: 0,
            acts_on: live.last_issued.get(),
            length: 0,
            moved: 0,
        };
        self.ended.get_or_insert(LoopStop::Failed(at));
    }

    fn fail<O: Operation>(&mut self, op: &O, moved: u32, fault: OpFault) {
        let at = failure_of(op, moved, fault);
        self.ended.get_or_insert(LoopStop::Failed(at));
    }

    /// End of the loop's time: its last completion. A paced loop that was ended from outside was
    /// waiting for a start, and that is part of its rate.
    pub(super) fn end_of(&self, last_done: Tick, now: Tick) -> Tick {
        let from_outside = matches!(self.ended, Some(LoopStop::TimeUp | LoopStop::Asked));
        if from_outside && !self.pacer.is_free() {
            now.max(last_done)
        } else {
            last_done
        }
    }

    pub(super) fn stop(self) -> LoopStop {
        self.ended.unwrap_or(LoopStop::WorkDone)
    }
}

/// A failed operation, of which `moved` bytes had moved before.
#[cold]
fn failure_of<O: Operation>(op: &O, moved: u32, fault: OpFault) -> OpFailure {
    OpFailure {
        fault,
        kind: op.kind_index(),
        acts_on: op.acts_on(),
        length: op.length(),
        moved,
    }
}

/// Rest of an operation that moved less than it should.
pub(super) enum Rest {
    /// Bytes moved so far; the rest is to be done.
    GoOn(u32),
    /// It is over.
    Over,
}

impl OpFault {
    /// The errno that reports print.
    pub fn errno(self) -> i32 {
        match self {
            Self::Errno(e) | Self::Engine(e) => e,
            Self::EndOfTarget => EIO,
            Self::TooSlow { .. } => ETIMEDOUT,
        }
    }
}
