//! One thread's part of a master: it warms up, then calls until there is nothing left to call.
//!
//! In: what is to be done, a transport whose sessions are open, a loop to do it in. Out: why the loop
//! ended, what was learnt beside what the loop records. Not here: what is recorded (the loop), who else calls.

use std::io;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use weir_run::{Engine, LoopPlan, LoopStop, Source, WorkerContext};
use weir_schema::{RpcFirst, RpcServerUse, RpcSpread, RpcWorkload};

use crate::master::call_list::CallList;
use crate::master::engine::{EndSigns, RpcEngine};
use crate::master::first_calls::time_first_calls;
use crate::master::sample_log::{SampledCall, SampledSource};
use crate::master::spread::{EntryStates, RpcSource, SpreadPlan};
use crate::master::warm_up::{FailedWarmUp, WarmUp};
use crate::transport::{ConnectionTrouble, RpcCounters, RpcTransport};
use crate::{RpcError, machine_memory};

/// The part of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Calling<'a> {
    /// Work of its master.
    pub work: &'a RpcWorkload,
    /// Whom that calls.
    pub list: &'a CallList,
    /// Which thread, from 0.
    pub thread: u32,
    /// Of how many.
    pub threads: u32,
    /// Of its random choices.
    pub seed: u64,
    /// Signs that ask it to end.
    pub signs: EndSigns<'a>,
}

/// Result of a thread's calls, beside the recorders of the loop.
#[derive(Clone, Debug)]
pub struct CallsMade {
    /// Why the loop ended.
    pub stop: LoopStop,
    /// Counters of the transport meanwhile.
    pub counters: RpcCounters,
    /// CPU use of servers meanwhile, each by its endpoint.
    pub servers: Vec<RpcServerUse>,
    /// Time for which each entry was called alone; zeros where they have no turns.
    pub turns: Vec<Duration>,
    /// The first call to each entry, where those are timed.
    pub first: Vec<Option<RpcFirst>>,
    /// Calls of the warm-up that failed.
    pub failed: Vec<FailedWarmUp>,
    /// Troubles of its connections, each with its time before the end of the loop.
    pub troubles: Vec<(ConnectionTrouble, Duration)>,
    /// CPU time that the thread spent looking for answers while there were none, where that is known.
    pub looked: Option<Duration>,
    /// Every call, where they are kept.
    pub samples: Vec<SampledCall>,
}

/// The loop that calls are made in.
pub trait CallLoop {
    /// Runs it with so many slots; `change` makes the plan that of calls.
    fn run<E, S>(
        &mut self,
        engine: &mut E,
        source: &mut S,
        slots: u32,
        change: impl FnOnce(&mut LoopPlan),
    ) -> LoopStop
    where
        E: Engine,
        S: Source<Op = E::Op>;
}

impl CallLoop for WorkerContext<'_> {
    fn run<E, S>(
        &mut self,
        engine: &mut E,
        source: &mut S,
        slots: u32,
        change: impl FnOnce(&mut LoopPlan),
    ) -> LoopStop
    where
        E: Engine,
        S: Source<Op = E::Op>,
    {
        let mut plan = self.loop_plan(slots);
        change(&mut plan);
        self.drive(engine, source, &plan)
    }
}

/// A thread's part of a number.
pub fn part(whole: u64, thread: u32, threads: u32) -> u64 {
    let (threads, thread) = (u64::from(threads.max(1)), u64::from(thread));
    whole / threads + u64::from(thread < whole % threads)
}

/// Memory of a call in flight beside its payload, in bytes: of the loop, of its transport, of what measures
/// the loop itself before.
pub(super) const SLOT: u64 = 256;

/// Checks that there is memory for so many calls in flight.
///
/// # Errors
/// There is not.
pub fn check_slots(work: &RpcWorkload) -> Result<(), RpcError> {
    let slots = work.in_flight();
    machine_memory::check(slots.saturating_mul(SLOT), || {
        format!("{slots} RPCs at once")
    })
}

/// Calls in flight of a thread, which a quota may limit.
pub fn slots_of(work: &RpcWorkload, thread: u32, threads: u32) -> u32 {
    let quota = NonZeroU32::new(work.quota).map_or(u32::MAX, NonZeroU32::get);
    let slots = part(work.in_flight(), thread, threads);
    u32::try_from(slots).unwrap_or(u32::MAX).min(quota)
}

/// Calls of a thread, where their number is bounded: of those that have any in flight.
pub fn calls_of(work: &RpcWorkload, thread: u32, threads: u32) -> Option<u64> {
    let callers = work.in_flight().min(threads.into()).max(1);
    let callers = u32::try_from(callers).unwrap_or(threads);
    let calls = work.load.bounds.operations?;
    Some(if thread < callers {
        part(calls, thread, callers)
    } else {
        0
    })
}

impl Calling<'_> {
    /// Calls in flight.
    pub fn slots(&self) -> u32 {
        slots_of(self.work, self.thread, self.threads)
    }

    /// Makes the calls before those that count: the first ones, timed, or a warm-up, of which some may fail.
    fn begin(
        &self,
        transport: &mut impl RpcTransport,
        calls: u64,
    ) -> io::Result<(Vec<Option<RpcFirst>>, Vec<FailedWarmUp>)> {
        let is_over = || self.signs.stop.load(Ordering::Relaxed) != 0;
        if self.work.first {
            let first = time_first_calls(transport, self.list.len(), is_over)?;
            return Ok((first, Vec::new()));
        }
        let warm_up = WarmUp {
            asked: self.work.warmup,
            slots: self.slots(),
            entries: self.list.len(),
            threads: self.threads,
            calls,
        };
        Ok((Vec::new(), warm_up.run(transport, is_over)?))
    }

    /// Makes the calls.
    ///
    /// # Errors
    /// The transport is broken, or could not be closed in order.
    pub fn run(
        &self,
        mut transport: impl RpcTransport,
        calls: &mut impl CallLoop,
    ) -> io::Result<CallsMade> {
        let (slots, work) = (self.slots(), self.work);
        let calls_due = calls_of(work, self.thread, self.threads).unwrap_or(u64::MAX);
        let (first, failed) = self.begin(&mut transport, calls_due)?;
        let (servers, counted) = (transport.server_use()?, transport.counters());
        // A call that lacks a credit is not made yet: its latency begins when it can go out.
        let granted = work.in_flight_per_endpoint.into_iter();
        let limit = granted.chain(counted.fewer_credits).min();
        let of_rank = Some(work.credits_per_rank).filter(|most| (1..slots).contains(most));
        let is_limited = limit.or(of_rank).is_some() || work.matrix;
        let counts = is_limited || work.spread == RpcSpread::Least;
        let waits = is_limited || transport.may_return();
        let ranks = self.list.entries.iter().map(|entry| entry.rank);
        let all: Vec<_> = self.list.targets.iter().copied().zip(ranks).collect();
        let entries = EntryStates::of_ranks(&all, of_rank, counts);
        let bytes = work.bytes().0;
        let spread = SpreadPlan {
            spread: work.spread,
            limit,
            // Those of the warm-up that failed are among them.
            calls: calls_due.saturating_sub(failed.len() as u64),
            first: self.list.len() / self.threads.max(1) * self.thread,
            seed: self.seed,
            bytes,
            has_turns: work.matrix,
        };
        let all = (slots, bytes);
        let states = Rc::clone(&entries);
        let mut engine = RpcEngine::new(transport, Rc::clone(&entries), all, self.signs);
        let change = |plan: &mut LoopPlan| {
            // What an answer has released goes out together, and began with that answer.
            (plan.batch, plan.stamp_each) = (slots, false);
            plan.go_on[0] = true;
        };
        let mut samples = Vec::new();
        let stop = if work.samples {
            let mut source = SampledSource::new(RpcSource::new(entries, &spread));
            let stop = calls.run(&mut engine, &mut source, slots, change);
            samples = source.into_kept();
            stop
        } else if waits {
            let mut source = RpcSource::<true>::new(entries, &spread);
            calls.run(&mut engine, &mut source, slots, change)
        } else {
            let mut source = RpcSource::<false>::new(entries, &spread);
            calls.run(&mut engine, &mut source, slots, change)
        };
        let ended = Instant::now();
        let turns = states.turns();
        let looked = engine.looked_for_nothing();
        let mut transport = engine.into_transport();
        let troubles = before_end(transport.troubles(), ended);
        let servers = used_since(&servers, transport.server_use()?);
        Ok(CallsMade {
            stop,
            turns,
            first,
            failed,
            troubles,
            samples,
            looked,
            servers,
            counters: transport.close()?.since(counted),
        })
    }
}

/// Time of each before the end of a loop.
fn before_end(
    troubles: Vec<ConnectionTrouble>,
    end: Instant,
) -> Vec<(ConnectionTrouble, Duration)> {
    let placed = troubles.into_iter().map(|one| {
        let before = end.saturating_duration_since(one.when);
        (one, before)
    });
    placed.collect()
}

/// CPU use between two readings, of servers that answered both.
fn used_since(before: &[RpcServerUse], after: Vec<RpcServerUse>) -> Vec<RpcServerUse> {
    let since = |mut now: RpcServerUse| {
        let then = before.iter().find(|one| one.endpoint == now.endpoint)?;
        let (cpu, then) = (&mut now.cpu, &then.cpu);
        cpu.user_ns = cpu.user_ns.saturating_sub(then.user_ns);
        cpu.system_ns = cpu.system_ns.saturating_sub(then.system_ns);
        for (now, then) in [
            (&mut cpu.voluntary_switches, then.voluntary_switches),
            (&mut cpu.involuntary_switches, then.involuntary_switches),
        ] {
            *now = now.saturating_sub(then);
        }
        Some(now)
    };
    after.into_iter().filter_map(since).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_a_number_and_none_is_lost() {
        let parts =
            |whole, threads| -> Vec<_> { (0..threads).map(|t| part(whole, t, threads)).collect() };
        assert_eq!(parts(10, 3), [4, 3, 3]);
        assert_eq!(parts(2, 4), [1, 1, 0, 0]);
    }

    #[test]
    fn threads_without_a_call_in_flight_have_no_calls() {
        let mut work = RpcWorkload::default();
        work.load.depth.queue_depth = weir_units::QueueDepth(3);
        work.load.bounds.operations = Some(10);
        let of =
            |threads| -> Vec<_> { (0..threads).map(|t| calls_of(&work, t, threads)).collect() };
        assert_eq!(of(2), [Some(5), Some(5)]);
        assert_eq!(of(5), [Some(4), Some(3), Some(3), Some(0), Some(0)]);
    }
}
