//! The queued loop of jobs without rare features, for engines whose calls cost so little that the
//! loop itself shows: the same steps as the general one ([`super::queued`]), without pacing, kept
//! order, refill mark, trace, classes and limits of latency.
//!
//! In: what [`fits`] accepts. Out: the same counters and histograms as from the general loop. What
//! every operation changes ([`Hot`]) stays in registers: it goes into functions that are not
//! inlined by value and comes back from them. Not here: operations that come back short, that the
//! engine refuses or finishes at once ([`cold_path`]).

#![expect(
    clippy::inline_always,
    reason = "parts of one loop, split for the reader only"
)]

mod cold_path;
mod recording;

use std::sync::atomic::Ordering::Relaxed;

use weir_sys::clock::{Scale, Tick};

use crate::clock::RunClock;
use crate::engine::{Completed, Engine, Operation, Submit, Wait};
use crate::live::{WorkerLive, batch_level, depth_level};
use crate::source::Source;
use crate::worker::state::LoopState;
use crate::worker::{LoopContext, LoopPlan, LoopStop};
use cold_path::Rests;
use recording::{HarvestRun, Harvested, KindSink, Sinks};

/// An operation in flight, in a line of memory of its own.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Slot<O> {
    op: O,
    started: Tick,
    accepted: Tick,
    /// The result of an operation that moved everything.
    whole: i64,
    /// The next one in the list of free slots; kept while the operation is in flight.
    next: u32,
}

/// State that changes with every operation.
///
/// Taking a slot from the free list leaves the slot's `next` as it is. So the slots submitted
/// since the last hand-over are a list themselves, from `first`, whose last one leads to `free`.
/// Only functions off the hot path break that, and they end with [`cold_path::relink`].
#[derive(Clone, Copy)]
struct Hot {
    /// The first free slot.
    free: u32,
    /// Submitted and not yet back.
    in_flight: u32,
    /// Submitted since the last hand-over.
    fresh: u32,
    /// The first of those.
    first: u32,
    now: Tick,
    last_done: Tick,
    event_at: Tick,
    scale: Scale,
    is_ended: bool,
    is_exhausted: bool,
    /// Operations wait to be submitted (again).
    has_rests: bool,
}

/// Parts that the loop works on beside engine and source. Functions that are not inlined get one of
/// their own ([`Parts::lend`]), so that this one's address is never taken.
struct Parts<'r, 'a, O, C> {
    state: &'r mut LoopState<'a, C>,
    slots: &'r mut [Slot<O>],
    rests: &'r mut Rests,
    sinks: &'r Sinks<'a>,
    /// Of the only kind, where the source has one.
    only: &'r KindSink<'a>,
    live: &'a WorkerLive,
    plan: &'a LoopPlan,
}

impl<'a, O, C> Parts<'_, 'a, O, C> {
    /// The same, for a function that is not inlined.
    #[inline(always)]
    fn lend(&mut self) -> Parts<'_, 'a, O, C> {
        Parts {
            state: self.state,
            slots: self.slots,
            rests: self.rests,
            sinks: self.sinks,
            only: self.only,
            live: self.live,
            plan: self.plan,
        }
    }
}

/// Sinks of a job's operations, if it uses nothing that this loop has not.
pub(super) fn fits<'a, S: Source, C>(
    source: &S,
    plan: &LoopPlan,
    worker: &LoopContext<'a, C>,
) -> Option<Sinks<'a>> {
    let keeps_order = plan.no_overlap || plan.refill_below < plan.depth;
    let looks_closer = plan.response || plan.max_latency.is_some() || worker.live.is_seen_alone();
    let waits = worker.pacing.is_paced() || source.prepare_is_timed();
    if S::CHECKS || keeps_order || looks_closer || waits {
        return None;
    }
    Sinks::of(worker.live)
}

/// Runs the loop of a job that fits. `BATCHED`: operations are handed over several at a time, so
/// that many of those that come back together took equally long.
#[inline(never)]
pub(super) fn run<E, S, C, const BATCHED: bool>(
    engine: &mut E,
    source: &mut S,
    plan: &LoopPlan,
    worker: LoopContext<'_, C>,
    sinks: &Sinks<'_>,
) -> LoopStop
where
    E: Engine,
    S: Source<Op = E::Op>,
    C: RunClock,
{
    let (live, stop) = (worker.live, worker.stop);
    let mut state = LoopState::new(plan, worker);
    let mut hot = Hot::new(&state);
    let mut parts = Parts {
        state: &mut state,
        slots: &mut free_slots(plan.depth),
        rests: &mut Rests::new(plan.depth),
        sinks,
        only: sinks.of_kind(source.only_kind()),
        live,
        plan,
    };
    let mut harvested = Harvested::new(parts.only, live.resets());
    loop {
        if stop.load(Relaxed) != 0 && !hot.is_ended {
            hot = cold_path::event(parts.state, hot);
        }
        fill::<E, S, C, BATCHED>(engine, source, &mut parts, &mut hot);
        if hot.in_flight == 0 {
            if (hot.is_ended || hot.is_exhausted) && !hot.has_rests {
                break;
            }
            continue;
        }
        if !harvest::<E, S, C, BATCHED>(engine, &mut parts, &mut harvested, &mut hot) {
            break;
        }
    }
    let end = state.end_of(hot.last_done, hot.now);
    live.last_done.set(end.0);
    state.stop()
}

impl Hot {
    fn new<C: RunClock>(state: &LoopState<'_, C>) -> Self {
        let now = state.now();
        Self {
            free: 0,
            in_flight: 0,
            fresh: 0,
            first: 0,
            now,
            last_done: now,
            event_at: state.event_at,
            scale: state.scale,
            is_ended: false,
            is_exhausted: false,
            has_rests: false,
        }
    }
}

/// Every slot, each leading to the next.
fn free_slots<O: Operation>(depth: u32) -> Box<[Slot<O>]> {
    let slot = |number: u32| Slot {
        next: number + 1,
        ..Slot::default()
    };
    (0..depth).map(slot).collect()
}

/// Issues operations until the queue is full or work is over, and hands them over.
#[inline(always)]
fn fill<E, S, C, const BATCHED: bool>(
    engine: &mut E,
    source: &mut S,
    parts: &mut Parts<'_, '_, E::Op, C>,
    hot: &mut Hot,
) where
    E: Engine,
    S: Source<Op = E::Op>,
    C: RunClock,
{
    let mut top = parts.live.depth_limit.load(Relaxed).min(parts.plan.depth);
    if hot.has_rests {
        *hot = cold_path::submit_rests(engine, parts.lend(), *hot);
    }
    if hot.has_rests || hot.is_ended || hot.is_exhausted {
        top = 0;
    }
    loop {
        // One after the other is no loop: the compiler need not ask a second time.
        if BATCHED {
            while hot.fresh < parts.plan.batch && hot.in_flight < top {
                if !issue::<E, S, C, BATCHED>(engine, source, parts, hot) {
                    top = 0;
                }
            }
        } else if hot.fresh == 0
            && hot.in_flight < top
            && !issue::<E, S, C, BATCHED>(engine, source, parts, hot)
        {
            top = 0;
        }
        if hot.fresh == 0 {
            return;
        }
        hand_over(engine, parts, hot);
        if hot.is_ended {
            top = 0;
        }
        if hot.fresh > 0 || hot.in_flight >= top {
            return;
        }
    }
}

/// Draws and submits an operation; false where no other one can follow now.
#[inline(always)]
fn issue<E, S, C, const BATCHED: bool>(
    engine: &mut E,
    source: &mut S,
    parts: &mut Parts<'_, '_, E::Op, C>,
    hot: &mut Hot,
) -> bool
where
    E: Engine,
    S: Source<Op = E::Op>,
    C: RunClock,
{
    let number = hot.free;
    let Some(op) = source.next(number) else {
        hot.is_exhausted = true;
        return false;
    };
    if source.has_paused() {
        hot.now = parts.state.account_preparation(hot.now);
    }
    source.prepare(number, &op);
    // With fewer in flight than slots, one is free.
    let Some(slot) = parts.slots.get_mut(number as usize) else {
        return false;
    };
    if BATCHED && parts.plan.stamp_each {
        hot.now = parts.state.now();
    }
    slot.op = op;
    slot.started = hot.now;
    slot.whole = i64::from(op.length());
    match engine.submit(number, &slot.op) {
        Submit::Queued => {
            hot.free = slot.next;
            hot.fresh += 1;
            hot.in_flight += 1;
            let kind = if S::ONE_KIND {
                parts.only.live
            } else {
                parts.live.kind(op.kind_index())
            };
            kind.issued.add(1);
            parts.live.depth[depth_level(hot.in_flight)].add(1);
            parts.live.last_issued.set(op.acts_on());
            true
        }
        answer => {
            let goes_on;
            (*hot, goes_on) = cold_path::not_queued(parts.lend(), *hot, answer);
            goes_on
        }
    }
}

/// Hands over what was submitted; one clock read closes its slat.
#[inline(always)]
fn hand_over<E, C>(engine: &mut E, parts: &mut Parts<'_, '_, E::Op, C>, hot: &mut Hot)
where
    E: Engine,
    C: RunClock,
{
    let taken = match engine.commit() {
        Ok(taken) => taken.min(hot.fresh),
        Err(error) => {
            *hot = cold_path::give_up(parts.lend(), *hot, &error);
            0
        }
    };
    read_clock(parts, hot);
    parts.live.submitted[batch_level(taken)].add(1);
    for _ in 0..taken {
        let Some(slot) = parts.slots.get_mut(hot.first as usize) else {
            break;
        };
        slot.accepted = hot.now;
        hot.first = slot.next;
    }
    hot.fresh -= taken;
    if hot.now >= hot.event_at {
        *hot = cold_path::event(parts.state, *hot);
    }
}

#[inline(always)]
fn read_clock<O, C: RunClock>(parts: &mut Parts<'_, '_, O, C>, hot: &mut Hot) {
    hot.now = if parts.plan.timed {
        parts.state.now()
    } else {
        parts.state.now_and_then(hot.now)
    };
}

/// Waits for completions and records them; false where none will come any more.
#[inline(always)]
fn harvest<E, S, C, const BATCHED: bool>(
    engine: &mut E,
    parts: &mut Parts<'_, '_, E::Op, C>,
    harvested: &mut Harvested<'_, '_>,
    hot: &mut Hot,
) -> bool
where
    E: Engine,
    S: Source<Op = E::Op>,
    C: RunClock,
{
    let is_over = hot.is_ended || hot.is_exhausted;
    let at_least = if is_over { 1 } else { parts.plan.reap_min };
    let wait = Wait {
        at_least: at_least.min(hot.in_flight - hot.fresh),
        at_most: parts.plan.reap_max,
        timeout_ns: None,
    };
    let mut taken = 0;
    let mut run = HarvestRun::new(parts.only, parts.plan.stamp_each);
    let adds_up = S::ONE_KIND && parts.plan.depth > 1;
    let outcome = engine.reap(wait, |completed: Completed| {
        if taken == 0 {
            read_clock(parts, hot);
            if hot.now >= hot.event_at {
                *hot = cold_path::event(parts.state, *hot);
            }
            harvested.begin(parts.live.resets());
        }
        taken += 1;
        let Some(slot) = parts.slots.get_mut(completed.slot as usize) else {
            return;
        };
        if completed.result != slot.whole {
            *hot = cold_path::incomplete(parts.lend(), *hot, completed);
            return;
        }
        let sink = if S::ONE_KIND {
            parts.only
        } else {
            parts.sinks.of_kind(slot.op.kind_index())
        };
        if BATCHED {
            run.count(sink, slot, hot);
        } else if adds_up {
            harvested.record(slot, hot.now, hot.scale);
        } else {
            recording::record(sink, slot, hot.now, hot.scale);
        }
        slot.next = hot.free;
        hot.free = completed.slot;
        hot.in_flight -= 1;
    });
    run.end();
    harvested.end();
    end_harvest(parts, hot, taken);
    if let Err(error) = &outcome {
        parts.state.engine_failed(error);
    }
    outcome.is_ok()
}

/// Closes a harvest of so many.
#[inline(always)]
fn end_harvest<O, C: RunClock>(parts: &mut Parts<'_, '_, O, C>, hot: &mut Hot, taken: u32) {
    if hot.fresh > 0 {
        cold_path::relink(parts.slots, *hot);
    } else {
        hot.first = hot.free;
    }
    if taken > 0 {
        hot.last_done = hot.now;
    } else {
        hot.now = parts.state.now();
        if hot.now >= hot.event_at {
            *hot = cold_path::event(parts.state, *hot);
        }
    }
    parts.live.harvested[batch_level(taken)].add(1);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use weir_schema::BLOCK_KINDS;
    use weir_sys::clock::{SharedScale, SimClock};
    use weir_units::Nanos;

    use super::*;
    use crate::live::{KINDS, Measured};
    use crate::pacer::{PacerPlan, Pause};
    use crate::sim::SimOp;

    struct Nothing;

    impl Source for Nothing {
        type Op = SimOp;

        fn next(&mut self, _slot: u32) -> Option<SimOp> {
            None
        }
    }

    /// True if the plain loop can run a job with this change.
    fn fits_with(change: impl FnOnce(&mut LoopPlan, &mut PacerPlan, &mut Measured)) -> bool {
        let mut plan = LoopPlan {
            depth: 4,
            ..LoopPlan::default()
        };
        let mut pacing = PacerPlan::default();
        let mut measured = Measured {
            split: true,
            latency: true,
            ..Measured::default()
        };
        change(&mut plan, &mut pacing, &mut measured);
        let live = WorkerLive::new(BLOCK_KINDS, [Some(measured); KINDS]);
        let worker = LoopContext {
            clock: &SimClock::default(),
            scale: Arc::new(SharedScale::new(Scale::IDENTITY)),
            stop: &std::sync::atomic::AtomicU32::new(0),
            live: &live,
            release: Tick(0),
            pacing,
        };
        fits(&Nothing, &plan, &worker).is_some()
    }

    #[test]
    fn jobs_without_rare_features_fit_and_no_others() {
        assert!(fits_with(|_, _, _| ()));
        assert!(fits_with(|plan, _, _| plan.batch = 4));
        assert!(fits_with(|plan, _, _| plan.timed = false));
        assert!(fits_with(|_, _, measured| measured.squares = true));
        assert!(fits_with(|_, _, measured| *measured = Measured::default()));
        assert!(!fits_with(|_, _, measured| measured.split = false));
        assert!(!fits_with(|plan, _, _| plan.response = true));
        assert!(!fits_with(|plan, _, _| plan.no_overlap = true));
        assert!(!fits_with(|plan, _, _| plan.refill_below = 3));
        assert!(!fits_with(|plan, _, _| plan.max_latency = Some(Nanos(1))));
        assert!(!fits_with(|_, pacing, _| {
            pacing.pause = Some(Pause {
                pause: 1,
                spin: 0,
                every: 1,
                completed: false,
                after: None,
            });
        }));
    }
}
