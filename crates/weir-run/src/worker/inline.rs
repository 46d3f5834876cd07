//! The loop of engines that complete inside the call: no slots, no reaping, one clock read per
//! operation. The end of one operation is the start of the next.

#![expect(
    clippy::inline_always,
    reason = "parts of one loop, split for the reader only"
)]

use weir_sys::clock::Tick;

use crate::clock::RunClock;
use crate::engine::{Engine, Operation, Submit};
use crate::live::{LiveKind, WorkerLive};
use crate::source::Source;
use crate::worker::state::{LoopState, Rest};
use crate::worker::{LoopContext, LoopPlan, LoopStop};

#[inline(never)]
pub(super) fn run<E, S, C>(
    engine: &mut E,
    source: &mut S,
    plan: &LoopPlan,
    worker: LoopContext<'_, C>,
) -> LoopStop
where
    E: Engine,
    S: Source<Op = E::Op>,
    C: RunClock,
{
    let mut state = LoopState::new(plan, worker);
    let live = state.live();
    let only = live.kind(source.only_kind());
    let (is_held, is_watched) = (
        state.is_paced() || source.prepare_is_timed(),
        state.is_watched(),
    );
    let mut now = state.now();
    let mut last_done = now;
    while state.ended.is_none()
        && let Some(op) = source.next(0)
    {
        if source.has_paused() {
            now = state.account_preparation(now);
        }
        let mut intended = now;
        if is_held {
            let is_due;
            (now, intended, is_due) = make_ready_when_due(&mut state, source, op, now);
            if !is_due {
                break;
            }
        } else {
            source.prepare(0, &op);
        }
        let kind = kind_of::<S>(live, only, &op);
        live.last_issued.set(op.acts_on());
        kind.issued.add(1);
        let started = now;
        let Submit::Done(result) = engine.submit(0, &op) else {
            kind.issued.take_back();
            break;
        };
        let done = if plan.timed {
            state.now()
        } else {
            state.now_and_then(now)
        };
        // Before the operation is recorded: one that straddles the end of ramp belongs to the
        // side on which it completes.
        if done >= state.event_at || state.stop_asked() {
            state.event(done);
        }
        let mut whole = result == i64::from(op.length());
        if whole {
            record(&mut state, (kind, is_watched), &op, (now, intended, done));
            now = done;
        } else {
            (now, whole) = finish_rest(&mut state, engine, op, result, (now, intended));
        }
        last_done = now;
        if S::CHECKS {
            now = state.look_at(source, &op, (started, now), whole);
        }
        if is_watched {
            now = state.settle(pause_behind(source, &op), started, now);
        }
    }
    live.last_done.set(state.end_of(last_done, now).0);
    state.stop()
}

/// The kind of an operation, `only` where the source has one.
#[inline]
fn kind_of<'a, S: Source>(live: &'a WorkerLive, only: &'a LiveKind, op: &S::Op) -> &'a LiveKind {
    if S::ONE_KIND {
        only
    } else {
        live.kind(op.kind_index())
    }
}

/// The kind whose pause follows an operation, unless another one belongs to it.
fn pause_behind<S: Source>(source: &S, op: &S::Op) -> Option<usize> {
    (!source.is_amid()).then(|| op.kind_index())
}

/// Counts an operation that moved everything.
#[inline(always)]
fn record<O: Operation, C: RunClock>(
    state: &mut LoopState<'_, C>,
    (kind, is_watched): (&LiveKind, bool),
    op: &O,
    (started, intended, done): (Tick, Tick, Tick),
) {
    let lat_ns = state.nanos(started, done);
    kind.completed.add(1);
    kind.bytes.add(u64::from(op.length()));
    kind.lat.record(lat_ns);
    if is_watched {
        // By value: an operation whose address is taken would lie in memory.
        state.watch(kind, *op, (started, intended, done), lat_ns);
    }
}

/// Waits until the operation is due, and fills its buffer; the instant it is then, and the
/// intended one. False where the time is up before.
#[cold]
#[inline(never)]
fn make_ready_when_due<C: RunClock, S: Source>(
    state: &mut LoopState<'_, C>,
    source: &mut S,
    op: S::Op,
    free_since: Tick,
) -> (Tick, Tick, bool) {
    let (mut now, mut intended) = (free_since, free_since);
    if state.is_paced() {
        (now, intended) = wait_for_start(state, source, op, now);
        if state.is_over(now) {
            return (now, intended, false);
        }
    }
    source.prepare(0, &op);
    if source.prepare_is_timed() {
        now = state.account_preparation(now);
    }
    if state.is_paced() {
        state.count_lateness(state.nanos(intended.max(free_since), now));
    }
    (now, intended, true)
}

/// Waits for the intended start of an operation that has one, and for the worker's turn; the
/// instant it is then, and the intended one.
fn wait_for_start<C: RunClock, S: Source>(
    state: &mut LoopState<'_, C>,
    source: &S,
    op: S::Op,
    now: Tick,
) -> (Tick, Tick) {
    let mut intended = if S::CHECKS && source.is_unscheduled() {
        now
    } else {
        state.pacer.intended(op.kind_index(), op.length())
    };
    let mut at = if intended <= now {
        now
    } else {
        state.wait_until(intended)
    };
    while !state.is_over(at) {
        let (may_go, later) = state.begin(at);
        if may_go {
            break;
        }
        // Who waits for others is not late.
        (at, intended) = (later, later);
    }
    (at, intended)
}

/// A short or failed operation: continues it until it is whole or over; when that was, and
/// whether it is whole.
#[cold]
#[inline(never)]
fn finish_rest<E: Engine, C: RunClock>(
    state: &mut LoopState<'_, C>,
    engine: &mut E,
    op: E::Op,
    mut result: i64,
    (started, intended): (Tick, Tick),
) -> (Tick, bool) {
    let kind = state.live().kind(op.kind_index());
    let mut rest = op;
    loop {
        let now = state.now();
        if result == i64::from(rest.length()) {
            let times = (started, intended, now);
            record(state, (kind, state.is_watched()), &op, times);
            return (now, true);
        }
        let lat = state.nanos(started, now);
        let before = op.length() - rest.length();
        let Rest::GoOn(moved) = state.incomplete(&op, before, result, (started, lat)) else {
            return (now, false);
        };
        let Some(next) = rest.rest(moved) else {
            return (now, false);
        };
        rest = next;
        let Submit::Done(next) = engine.submit(0, &rest) else {
            return (now, false);
        };
        result = next;
    }
}
