//! The loop of engines that keep operations in flight: fill the queue, hand over, harvest.
//!
//! Clock reads are chained: the read that closes the hand-over of one batch (its `t_accept`) is the
//! `t_issue` of the next operation; one read stamps a harvest.

#![expect(
    clippy::inline_always,
    reason = "parts of one loop, split for the reader only"
)]

mod given_up;

use crate::live::KIND_MASK;
use std::sync::atomic::Ordering::Relaxed;

use weir_sys::clock::Tick;

use crate::clock::RunClock;
use crate::engine::{Completed, Engine, Operation, Submit, Wait};
use crate::live::{batch_level, depth_level};
use crate::source::Source;
use crate::worker::slots::Queue;
use crate::worker::state::{LoopState, Rest};
use crate::worker::{LoopContext, LoopPlan, LoopStop};

/// State that one iteration works on.
struct Loop<'a, 'b, E, S, C> {
    engine: &'b mut E,
    source: &'b mut S,
    plan: &'a LoopPlan,
    state: LoopState<'a, C>,
    paced: bool,
    /// A drawn operation may have to wait, for its time or for others.
    held: bool,
    timed_prepare: bool,
    last_done: Tick,
}

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
    let state = LoopState::new(plan, worker);
    let mut now = state.now();
    let paced = !state.pacer.is_free();
    let timed_prepare = source.prepare_is_timed();
    let mut queue = Queue::new(plan.depth, now);
    let mut this = Loop {
        engine,
        source,
        plan,
        state,
        paced,
        held: paced || plan.no_overlap,
        timed_prepare,
        last_done: now,
    };
    loop {
        if this.state.stop_asked() && this.state.ended.is_none() {
            this.state.event(now);
        }
        if this.state.ended.is_none() {
            now = this.fill(&mut queue, now);
        } else {
            now = this.hand_over_issued(&mut queue, now);
        }
        if queue.in_flight == 0 {
            if this.state.ended.is_some() {
                break;
            }
            match queue.due() {
                Some(due) => {
                    now = this.state.wait_until(due);
                    if this.state.is_over(now) {
                        break;
                    }
                }
                None if queue.exhausted => break,
                None => {}
            }
            continue;
        }
        now = this.harvest(&mut queue, now);
    }
    let end = this.state.end_of(this.last_done, now);
    this.state.live().last_done.set(end.0);
    this.state.stop()
}

impl<E, S, C> Loop<'_, '_, E, S, C>
where
    E: Engine,
    S: Source<Op = E::Op>,
    C: RunClock,
{
    /// Issues operations until the queue is full, the next one is not due, or work is over.
    #[inline(always)]
    fn fill(&mut self, queue: &mut Queue<E::Op>, mut now: Tick) -> Tick {
        if queue.sinking && queue.in_flight > self.plan.refill_below {
            return self.hand_over_issued(queue, now);
        }
        queue.sinking = false;
        queue.blocked = false;
        queue.limit = self.state.live().depth_limit.load(Relaxed);
        if !queue.again.is_empty() {
            self.submit_rests(queue);
        }
        while !queue.blocked {
            let Some(slot) = self.draw(queue, &mut now) else {
                break;
            };
            if self.plan.stamp_each {
                now = self.state.now();
            }
            let drawn = &mut queue.slots[slot as usize];
            drawn.started = now;
            drawn.accepted = now;
            match self.engine.submit(slot, &drawn.op) {
                Submit::Queued => {
                    self.count_issue(queue, slot);
                    if self.paced {
                        self.count_pace(queue, slot, now);
                    }
                    if queue.fresh.len() >= self.plan.batch {
                        now = self.commit(queue, now);
                    }
                }
                Submit::Done(result) => now = self.done_inside(queue, slot, result),
                Submit::Full => {
                    queue.pending = Some(slot);
                    queue.blocked = true;
                }
                Submit::Over => {
                    queue.free.push(slot);
                    queue.exhausted = true;
                }
            }
        }
        if queue.fresh.is_empty() {
            now
        } else {
            self.commit(queue, now)
        }
    }

    /// The slot of the next operation that may be issued now.
    #[inline(always)]
    fn draw(&mut self, queue: &mut Queue<E::Op>, now: &mut Tick) -> Option<u32> {
        if queue.pending.is_some() {
            return self.draw_pending(queue, now);
        }
        if queue.exhausted || queue.in_flight >= queue.limit {
            return None;
        }
        let Some(slot) = queue.free.last() else {
            queue.sinking = self.plan.refill_below < self.plan.depth;
            return None;
        };
        let Some(op) = self.source.next(slot) else {
            queue.exhausted = !(S::CHECKS && self.source.is_waiting());
            return None;
        };
        if self.source.has_paused() {
            *now = self.state.account_preparation(*now);
        }
        queue.free.pop();
        self.source.prepare(slot, &op);
        if self.timed_prepare {
            *now = self.state.account_preparation(*now);
        }
        let drawn = &mut queue.slots[slot as usize];
        drawn.op = op;
        drawn.moved = 0;
        drawn.is_continued = false;
        drawn.intended = *now;
        if self.held {
            if self.paced && !(S::CHECKS && self.source.is_unscheduled()) {
                drawn.intended = self.state.pacer.intended(op.kind_index(), op.length());
            }
            queue.pending = Some(slot);
            return self.draw_pending(queue, now);
        }
        Some(slot)
    }

    /// The operation that was drawn before it could be issued, if it can be now.
    #[inline(never)]
    fn draw_pending(&mut self, queue: &mut Queue<E::Op>, now: &mut Tick) -> Option<u32> {
        let due = queue.due()?;
        if due > *now {
            *now = self.state.now();
            if due > *now {
                return None;
            }
        }
        if self.plan.no_overlap && queue.overlaps_pending() {
            // Only a completion can change that.
            queue.blocked = true;
            return None;
        }
        let (may_go, later) = self.state.begin(*now);
        *now = later;
        if !may_go {
            // Who waits for others is not late.
            queue.hold(later);
            return None;
        }
        queue.pending.take()
    }

    /// Notes how late a paced operation was issued although a slot was free.
    #[inline(never)]
    fn count_pace(&mut self, queue: &Queue<E::Op>, slot: u32, now: Tick) {
        let ready = queue.slots[slot as usize].intended.max(queue.free_since);
        self.state.count_lateness(self.state.nanos(ready, now));
        let in_flight = u64::from(queue.in_flight);
        self.state.pacer.count(now, in_flight);
        if !self.source.is_amid() {
            let kind = queue.slots[slot as usize].op.kind_index();
            self.state.pacer.pause_behind(kind, now);
        }
    }

    #[inline(always)]
    fn count_issue(&mut self, queue: &mut Queue<E::Op>, slot: u32) {
        let op = &queue.slots[slot as usize].op;
        let live = self.state.live();
        queue.in_flight += 1;
        live.kinds[op.kind_index() & KIND_MASK].issued.add(1);
        live.depth[depth_level(queue.in_flight)].add(1);
        live.last_issued.set(op.acts_on());
        queue.fresh.push(slot);
    }

    /// Hands over what was submitted; one clock read closes its slat.
    #[inline(always)]
    fn commit(&mut self, queue: &mut Queue<E::Op>, now: Tick) -> Tick {
        let taken = match self.engine.commit() {
            Ok(taken) => taken.min(queue.fresh.len()),
            Err(error) => self.give_up(queue, &error),
        };
        let now = if self.plan.timed {
            self.state.now()
        } else {
            self.state.now_and_then(now)
        };
        self.state.live().submitted[batch_level(taken)].add(1);
        for &slot in queue.fresh.first(taken) {
            let slot = &mut queue.slots[slot as usize];
            if !slot.is_continued {
                slot.accepted = now;
            }
        }
        if taken == queue.fresh.len() {
            queue.fresh.clear();
        } else {
            queue.blocked = true;
            queue.fresh.drop_first(taken);
        }
        if now >= self.state.event_at {
            self.state.event(now);
            queue.blocked |= self.state.ended.is_some();
        }
        now
    }

    /// Issues nothing new, but hands over what was issued: the queue shall sink, or end.
    #[inline(never)]
    fn hand_over_issued(&mut self, queue: &mut Queue<E::Op>, now: Tick) -> Tick {
        if queue.given_up {
            self.take_back_all(queue);
        } else if !queue.again.is_empty() {
            self.submit_rests(queue);
        }
        if queue.fresh.is_empty() {
            now
        } else {
            self.commit(queue, now)
        }
    }

    /// Waits for completions and records them.
    #[inline(always)]
    fn harvest(&mut self, queue: &mut Queue<E::Op>, mut now: Tick) -> Tick {
        let wait = self.wait(queue, now);
        let mut taken = 0;
        let Self {
            engine,
            source,
            state,
            plan,
            last_done,
            ..
        } = self;
        let outcome = engine.reap(wait, |completed| {
            if taken == 0 {
                now = if plan.timed {
                    state.now()
                } else {
                    state.now_and_then(now)
                };
                if now >= state.event_at {
                    state.event(now);
                }
            }
            taken += 1;
            complete(state, *source, queue, completed, now);
        });
        if let Err(error) = outcome {
            state.engine_failed(&error);
            // Nothing will come back any more.
            queue.in_flight = 0;
            queue.exhausted = true;
        }
        if taken > 0 {
            *last_done = now;
            if S::CHECKS {
                now = state.account_preparation(now);
            }
            if state.is_traced() {
                now = state.await_room(now);
            }
        } else {
            now = state.now();
            if now >= state.event_at {
                state.event(now);
            }
        }
        state.live().harvested[batch_level(taken)].add(1);
        now
    }

    #[inline(always)]
    fn wait(&self, queue: &Queue<E::Op>, now: Tick) -> Wait {
        let accepted = queue.in_flight - queue.fresh.len() - queue.waiting_again();
        let mut timeout_ns = None;
        let mut at_least = self.plan.reap_min;
        if self.state.ended.is_some() || queue.exhausted {
            at_least = 1;
        } else if let Some(due) = queue.due()
            && !queue.blocked
        {
            at_least = 1;
            timeout_ns = Some(self.state.wait_limit(now, due));
        }
        Wait {
            at_least: at_least.min(accepted),
            at_most: self.plan.reap_max,
            timeout_ns,
        }
    }

    /// An engine that usually queues finished this one at once.
    #[cold]
    #[inline(never)]
    fn done_inside(&mut self, queue: &mut Queue<E::Op>, slot: u32, result: i64) -> Tick {
        self.count_issue(queue, slot);
        queue.fresh.pop();
        let now = self.state.now();
        self.last_done = now;
        queue.blocked |= self.state.is_over(now);
        queue.slots[slot as usize].accepted = now;
        complete(
            &mut self.state,
            self.source,
            queue,
            Completed { slot, result },
            now,
        );
        now
    }

    /// Submits what short completions left over.
    #[cold]
    #[inline(never)]
    fn submit_rests(&mut self, queue: &mut Queue<E::Op>) {
        while let Some(slot) = queue.again.pop() {
            let waiting = &queue.slots[slot as usize];
            // It was looked at before it came to wait here.
            let Some(rest) = waiting.op.rest(waiting.moved) else {
                continue;
            };
            match self.engine.submit(slot, &rest) {
                Submit::Queued => queue.fresh.push(slot),
                answer @ (Submit::Done(_) | Submit::Over) => {
                    let result = if let Submit::Done(result) = answer {
                        result
                    } else {
                        0
                    };
                    let now = self.state.now();
                    self.last_done = now;
                    complete(
                        &mut self.state,
                        self.source,
                        queue,
                        Completed { slot, result },
                        now,
                    );
                }
                Submit::Full => {
                    queue.again.push(slot);
                    queue.blocked = true;
                    return;
                }
            }
        }
    }
}

/// Records a completion and frees its slot.
#[inline(always)]
fn complete<S: Source, C: RunClock>(
    state: &mut LoopState<'_, C>,
    source: &mut S,
    queue: &mut Queue<S::Op>,
    completed: Completed,
    now: Tick,
) {
    let Some(slot) = queue.slots.get(completed.slot as usize) else {
        return;
    };
    let slat = state.nanos(slot.started, slot.accepted);
    let clat = state.nanos(slot.accepted, now);
    let lat = slat + clat;
    if completed.result == i64::from(slot.op.length() - slot.moved) {
        let kind = &state.live().kinds[slot.op.kind_index() & KIND_MASK];
        kind.completed.add(1);
        kind.bytes.add(u64::from(slot.op.length()));
        kind.slat.record(slat);
        kind.clat.record(clat);
        kind.lat.record(lat);
        let target = kind.target(slot.op.acts_on());
        if let Some(target) = target {
            target.record(lat);
        }
        if state.response() {
            let rlat = state.nanos(slot.intended, now);
            kind.rlat.record(rlat);
            if let Some(target) = target {
                target.record_response(rlat);
            }
        }
        if state.is_traced() {
            state.trace(slot.op, slot.started, (slat, lat), 0);
        }
        if lat >= state.slowest_ns {
            state.too_slow(slot.op, lat);
        }
        if S::CHECKS {
            kind.note_active(slot.started, now);
            let op = slot.op;
            source.timed(&op, slot.started, lat, completed.result);
            source.completed(completed.slot, &op, true);
        }
        queue.release(completed.slot, now);
    } else {
        incomplete(state, source, queue, completed, lat, now);
    }
}

#[cold]
#[inline(never)]
fn incomplete<S: Source, C: RunClock>(
    state: &mut LoopState<'_, C>,
    source: &mut S,
    queue: &mut Queue<S::Op>,
    completed: Completed,
    lat: u64,
    now: Tick,
) {
    let slot = &mut queue.slots[completed.slot as usize];
    let (op, before) = (slot.op, slot.moved);
    match state.incomplete(&op, before, completed.result, (slot.started, lat)) {
        Rest::GoOn(moved) => {
            slot.moved = slot.moved.saturating_add(moved).min(slot.op.length());
            slot.is_continued = true;
            queue.again.push(completed.slot);
        }
        Rest::Over => {
            if S::CHECKS {
                source.timed(&slot.op, slot.started, lat, completed.result);
                source.completed(completed.slot, &slot.op, false);
            }
            queue.release(completed.slot, now);
        }
    }
}
