//! Rare events in the loop of plain jobs: operations that come back short, that the engine refuses
//! or finishes at once, hand-overs that fail, events of the clock.
//!
//! In and out: what the loop keeps in registers, by value. All of it is cold.

use weir_sys::clock::Tick;

use super::recording::record;
use super::{Hot, Parts, Slot};
use crate::clock::RunClock;
use crate::engine::{Completed, Engine, Operation, Submit};
use crate::live::depth_level;
use crate::worker::state::{LoopState, Rest};

/// No operation has this result: the one in the slot is the rest of another.
const IS_REST: i64 = i64::MIN;

/// Operations that moved less than they should, and one that the engine had no room for.
pub(super) struct Rests {
    /// By slot.
    parts: Box<[RestOf]>,
    /// Slots of those that wait to be submitted again. They do not count as in flight.
    waiting: Vec<u32>,
    /// The slot of the operation that was drawn and found no room.
    drawn: Option<u32>,
    /// The engine takes nothing any more.
    given_up: bool,
}

/// State of an operation whose rest is in flight.
#[derive(Clone, Copy, Default)]
struct RestOf {
    moved: u32,
    /// Time at which its first part was accepted: its rests make its clat longer, not its slat.
    accepted: Tick,
}

impl Rests {
    pub(super) fn new(depth: u32) -> Self {
        Self {
            parts: vec![RestOf::default(); depth as usize].into(),
            waiting: Vec::with_capacity(depth as usize),
            drawn: None,
            given_up: false,
        }
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.drawn.is_none()
    }
}

/// Makes the slots submitted since the last hand-over lead to the free ones again.
#[cold]
#[inline(never)]
pub(super) fn relink<O>(slots: &mut [Slot<O>], hot: Hot) {
    if let Some(last) = last_fresh(slots, hot) {
        slots[last as usize].next = hot.free;
    }
}

/// The last of the slots submitted since the last hand-over.
fn last_fresh<O>(slots: &[Slot<O>], hot: Hot) -> Option<u32> {
    let follow = |at: u32| slots.get(at as usize).map(|slot| slot.next);
    let mut fresh = std::iter::successors(Some(hot.first), |&at| follow(at));
    fresh.nth(hot.fresh.checked_sub(1)? as usize)
}

/// Appends a slot that is not free to those submitted since the last hand-over.
fn append<O>(slots: &mut [Slot<O>], mut hot: Hot, number: u32) -> Hot {
    match last_fresh(slots, hot) {
        Some(last) => slots[last as usize].next = number,
        None => hot.first = number,
    }
    slots[number as usize].next = hot.free;
    hot.fresh += 1;
    hot.in_flight += 1;
    hot
}

/// Takes the first free slot out of the list.
fn take_free<O>(slots: &mut [Slot<O>], mut hot: Hot) -> Hot {
    hot.free = slots[hot.free as usize].next;
    if hot.fresh == 0 {
        hot.first = hot.free;
    }
    relink(slots, hot);
    hot
}

/// Gives a slot back.
fn free<O>(slots: &mut [Slot<O>], mut hot: Hot, number: u32) -> Hot {
    slots[number as usize].next = hot.free;
    hot.free = number;
    if hot.fresh == 0 {
        hot.first = hot.free;
    }
    relink(slots, hot);
    hot
}

/// End of ramp, end of time, a new scale, a stop.
#[cold]
#[inline(never)]
pub(super) fn event<C: RunClock>(state: &mut LoopState<'_, C>, mut hot: Hot) -> Hot {
    state.event(hot.now);
    hot.event_at = state.event_at;
    hot.scale = state.scale;
    hot.is_ended = state.ended.is_some();
    hot
}

/// The engine did not queue the operation in the first free slot; and whether another one may
/// follow now.
#[cold]
#[inline(never)]
pub(super) fn not_queued<O: Operation, C: RunClock>(
    mut parts: Parts<'_, '_, O, C>,
    mut hot: Hot,
    answer: Submit,
) -> (Hot, bool) {
    let number = hot.free;
    match answer {
        Submit::Queued | Submit::Over => {
            hot.is_exhausted = true;
            (hot, false)
        }
        Submit::Full => {
            parts.rests.drawn = Some(number);
            hot.has_rests = true;
            (take_free(parts.slots, hot), false)
        }
        Submit::Done(result) => {
            hot = take_free(parts.slots, hot);
            hot.in_flight += 1;
            count_issue(&parts, number, hot.in_flight);
            hot = done_inside(&mut parts, hot, number, result);
            (hot, !hot.has_rests && !hot.is_ended)
        }
    }
}

/// Counts the issue of the operation in a slot.
fn count_issue<O: Operation, C>(parts: &Parts<'_, '_, O, C>, number: u32, in_flight: u32) {
    let op = &parts.slots[number as usize].op;
    parts.live.kind(op.kind_index()).issued.add(1);
    parts.live.depth[depth_level(in_flight)].add(1);
    parts.live.last_issued.set(op.acts_on());
}

/// An engine that usually queues finished the operation in a slot at once.
fn done_inside<O: Operation, C: RunClock>(
    parts: &mut Parts<'_, '_, O, C>,
    mut hot: Hot,
    number: u32,
    result: i64,
) -> Hot {
    hot.now = parts.state.now();
    hot.last_done = hot.now;
    if hot.now >= hot.event_at || parts.state.stop_asked() {
        hot = event(parts.state, hot);
    }
    let slot = &mut parts.slots[number as usize];
    slot.accepted = hot.now;
    if slot.whole == result {
        record(
            parts.sinks.of_kind(slot.op.kind_index()),
            slot,
            hot.now,
            hot.scale,
        );
        hot.in_flight -= 1;
        return free(parts.slots, hot, number);
    }
    let completed = Completed {
        slot: number,
        result,
    };
    incomplete(parts.lend(), hot, completed)
}

/// An operation came back that moved less than it should, or the rest of one.
#[cold]
#[inline(never)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the address of the loop's own would keep it in memory"
)]
pub(super) fn incomplete<O: Operation, C: RunClock>(
    parts: Parts<'_, '_, O, C>,
    mut hot: Hot,
    completed: Completed,
) -> Hot {
    let number = completed.slot;
    let slot = &mut parts.slots[number as usize];
    let rest = &mut parts.rests.parts[number as usize];
    if slot.whole == IS_REST {
        slot.accepted = rest.accepted;
    } else {
        *rest = RestOf {
            moved: 0,
            accepted: slot.accepted,
        };
    }
    hot.in_flight -= 1;
    let op = slot.op;
    if completed.result == i64::from(op.length() - rest.moved) {
        record(
            parts.sinks.of_kind(op.kind_index()),
            slot,
            hot.now,
            hot.scale,
        );
        return free(parts.slots, hot, number);
    }
    let slat = hot.scale.to_nanos(slot.accepted.since(slot.started));
    let clat = hot.scale.to_nanos(hot.now.since(slot.accepted));
    let since = (slot.started, slat + clat);
    match parts
        .state
        .incomplete(&op, rest.moved, completed.result, since)
    {
        Rest::GoOn(moved) => {
            rest.moved = rest.moved.saturating_add(moved).min(op.length());
            slot.whole = IS_REST;
            parts.rests.waiting.push(number);
            hot.has_rests = true;
        }
        Rest::Over => hot = free(parts.slots, hot, number),
    }
    hot.is_ended = parts.state.ended.is_some();
    hot
}

/// Submits what short operations left over, and the operation that the engine had no room for.
#[cold]
#[inline(never)]
pub(super) fn submit_rests<E: Engine, C: RunClock>(
    engine: &mut E,
    mut parts: Parts<'_, '_, E::Op, C>,
    mut hot: Hot,
) -> Hot {
    if parts.rests.given_up {
        return take_back_rests(&mut parts, hot);
    }
    while let Some(number) = parts.rests.waiting.pop() {
        let moved = parts.rests.parts[number as usize].moved;
        // It was looked at before it came to wait here.
        let Some(rest) = parts.slots[number as usize].op.rest(moved) else {
            continue;
        };
        match engine.submit(number, &rest) {
            Submit::Queued => hot = append(parts.slots, hot, number),
            Submit::Full => {
                parts.rests.waiting.push(number);
                return hot;
            }
            answer @ (Submit::Done(_) | Submit::Over) => {
                hot.in_flight += 1;
                let result = match answer {
                    Submit::Done(result) => result,
                    _ => 0,
                };
                hot = done_inside(&mut parts, hot, number, result);
            }
        }
    }
    if let Some(number) = parts.rests.drawn.take() {
        hot = submit_drawn(engine, &mut parts, hot, number);
    }
    hot.has_rests = !parts.rests.is_empty();
    hot
}

/// Submits the operation that the engine had no room for, unless the loop has ended since.
fn submit_drawn<E: Engine, C: RunClock>(
    engine: &mut E,
    parts: &mut Parts<'_, '_, E::Op, C>,
    mut hot: Hot,
    number: u32,
) -> Hot {
    if hot.is_ended {
        return free(parts.slots, hot, number);
    }
    let slot = &mut parts.slots[number as usize];
    slot.started = hot.now;
    match engine.submit(number, &slot.op) {
        Submit::Queued => {
            hot = append(parts.slots, hot, number);
            count_issue(parts, number, hot.in_flight);
            hot
        }
        Submit::Done(result) => {
            hot.in_flight += 1;
            count_issue(parts, number, hot.in_flight);
            done_inside(parts, hot, number, result)
        }
        Submit::Full => {
            parts.rests.drawn = Some(number);
            hot
        }
        Submit::Over => {
            hot.is_exhausted = true;
            free(parts.slots, hot, number)
        }
    }
}

/// Nothing can be handed over any more; the engine may still hold what it was offered, so that it
/// is not asked again. What was not taken will not come back.
#[cold]
#[inline(never)]
pub(super) fn give_up<O: Operation, C: RunClock>(
    mut parts: Parts<'_, '_, O, C>,
    mut hot: Hot,
    error: &std::io::Error,
) -> Hot {
    parts.state.engine_failed(error);
    parts.rests.given_up = true;
    hot.is_ended = true;
    let mut number = hot.first;
    hot.in_flight -= hot.fresh;
    for place in 1..=hot.fresh {
        take_back(&parts, number, hot.in_flight + place);
        number = parts.slots[number as usize].next;
    }
    // They are a list that leads to the free ones.
    hot.free = hot.first;
    hot.fresh = 0;
    take_back_rests(&mut parts, hot)
}

/// Takes back the rests that wait to be submitted and never will be.
fn take_back_rests<O: Operation, C>(parts: &mut Parts<'_, '_, O, C>, mut hot: Hot) -> Hot {
    while let Some(number) = parts.rests.waiting.pop() {
        take_back(parts, number, hot.in_flight + 1);
        hot = free(parts.slots, hot, number);
    }
    if let Some(number) = parts.rests.drawn.take() {
        hot = free(parts.slots, hot, number);
    }
    hot.has_rests = false;
    hot
}

/// An operation that was not taken counts as never issued, or as lost where a part of it has moved.
fn take_back<O: Operation, C>(parts: &Parts<'_, '_, O, C>, number: u32, depth: u32) {
    let slot = &parts.slots[number as usize];
    if slot.whole != IS_REST || parts.rests.parts[number as usize].moved == 0 {
        parts.live.kind(slot.op.kind_index()).issued.take_back();
        parts.live.depth[depth_level(depth)].take_back();
    }
}
