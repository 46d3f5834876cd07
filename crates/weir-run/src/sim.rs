//! A simulated device on a simulated clock, for tests whose statistics are worked out by hand.
//!
//! In: a script that gives each operation its latency and fate. Out: completions at exactly the
//! simulated instants. The device serves every operation at once unless `servers` says otherwise;
//! then operations queue in front of it, first come, first served.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use weir_sys::clock::{SimClock, Tick, Ticks};
use weir_units::Nanos;

use crate::engine::{Completed, Engine, OpTarget, Operation, Submit, Wait};

/// An operation on the simulated device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimOp {
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
    /// Index of its kind.
    pub kind: usize,
}

impl Operation for SimOp {
    fn kind_index(&self) -> usize {
        self.kind
    }

    fn length(&self) -> u32 {
        self.length
    }

    fn acts_on(&self) -> OpTarget {
        OpTarget {
            number: 0,
            offset: Some(self.offset),
        }
    }

    fn rest(&self, done: u32) -> Option<Self> {
        let done = done.min(self.length);
        Some(Self {
            offset: self.offset + u64::from(done),
            length: self.length - done,
            ..*self
        })
    }

    fn overlaps(&self, other: &Self) -> bool {
        let end = |op: &Self| op.offset.saturating_add(u64::from(op.length));
        self.offset < end(other) && other.offset < end(self)
    }
}

/// Result of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimResult {
    /// Time of service.
    pub service: Nanos,
    /// Bytes moved or the negative errno; `None`: all of it.
    pub result: Option<i64>,
}

impl SimResult {
    /// Succeeds after this time.
    pub const fn after(service: Nanos) -> Self {
        Self {
            service,
            result: None,
        }
    }
}

/// Gives the fate of the operation with this number (from 0) and start.
pub type Script = Box<dyn FnMut(u64, Tick) -> SimResult + Send>;

/// A simulated device.
pub struct SimDevice<O> {
    clock: SimClock,
    script: Script,
    /// Times at which each server is free again; empty: as many as needed.
    servers: Vec<Tick>,
    served: u64,
    queued: Vec<(u32, O)>,
    pending: BinaryHeap<Reverse<(Tick, u64, u32, i64)>>,
}

impl<O> std::fmt::Debug for SimDevice<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimDevice")
            .field("served", &self.served)
            .finish_non_exhaustive()
    }
}

/// Parts of a simulated device.
pub struct SimSetup {
    /// The clock it moves.
    pub clock: SimClock,
    /// Operations served at the same time; 0: all.
    pub servers: usize,
    /// Fates.
    pub script: Script,
}

impl std::fmt::Debug for SimSetup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimSetup")
            .field("servers", &self.servers)
            .finish_non_exhaustive()
    }
}

impl<O: Operation> SimDevice<O> {
    fn new(setup: SimSetup) -> Self {
        Self {
            clock: setup.clock,
            script: setup.script,
            servers: vec![Tick(0); setup.servers],
            served: 0,
            queued: Vec::new(),
            pending: BinaryHeap::new(),
        }
    }

    /// The instant an operation that arrives now is done, and its result.
    fn serve(&mut self, op: &O) -> (Tick, i64) {
        let now = self.clock.now();
        let fate = (self.script)(self.served, now);
        self.served += 1;
        let start = match self.servers.iter_mut().min() {
            None => now.after(fate.service.0),
            Some(server) => {
                *server = (*server).max(now).after(fate.service.0);
                *server
            }
        };
        (start, fate.result.unwrap_or_else(|| i64::from(op.length())))
    }
}

/// The device behind a call that returns when the operation is done.
#[derive(Debug)]
pub struct SimInline<O>(SimDevice<O>);

impl<O: Operation> Engine for SimInline<O> {
    type Op = O;
    type Setup = SimSetup;
    const INLINE: bool = true;

    fn attach(setup: SimSetup) -> io::Result<Self> {
        Ok(Self(SimDevice::new(setup)))
    }

    fn submit(&mut self, _slot: u32, op: &O) -> Submit {
        let (done, result) = self.0.serve(op);
        self.0.clock.advance_to(done);
        Submit::Done(result)
    }
}

/// The device behind a queue. Its calls are cheap, so that plain jobs get the loop without rare
/// features.
#[derive(Debug)]
pub struct SimQueued<O>(SimDevice<O>);

impl<O: Operation> Engine for SimQueued<O> {
    type Op = O;
    type Setup = SimSetup;
    const QUICK: bool = true;

    fn attach(setup: SimSetup) -> io::Result<Self> {
        Ok(Self(SimDevice::new(setup)))
    }

    fn submit(&mut self, slot: u32, op: &O) -> Submit {
        self.0.queued.push((slot, *op));
        Submit::Queued
    }

    fn commit(&mut self) -> io::Result<u32> {
        let queued = std::mem::take(&mut self.0.queued);
        let taken = u32::try_from(queued.len()).unwrap_or(u32::MAX);
        for (slot, op) in queued {
            let (done, result) = self.0.serve(&op);
            self.0
                .pending
                .push(Reverse((done, self.0.served, slot, result)));
        }
        Ok(taken)
    }

    fn reap(&mut self, wait: Wait, mut done: impl FnMut(Completed)) -> io::Result<u32> {
        let device = &mut self.0;
        let limit = wait.timeout_ns.map(|t| device.clock.now().after(t));
        if wait.at_least > 0
            && let Some(Reverse((first, ..))) = device.pending.peek()
        {
            device
                .clock
                .advance_to(limit.map_or(*first, |l| l.min(*first)));
        } else if let Some(limit) = limit {
            device.clock.advance_to(limit);
        }
        let mut taken = 0;
        while taken < wait.at_most
            && let Some(Reverse((at, ..))) = device.pending.peek()
            && *at <= device.clock.now()
        {
            let Some(Reverse((_, _, slot, result))) = device.pending.pop() else {
                break;
            };
            done(Completed { slot, result });
            taken += 1;
        }
        Ok(taken)
    }
}
