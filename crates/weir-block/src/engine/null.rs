//! The empty engine: completes at once and touches no data. It measures the loop itself.
//!
//! In: operations. Out: completions of their full length. One type completes inside the call (for
//! a queue depth of 1), the other passes operations through a queue.

use std::io;

use weir_run::{Completed, Engine, LoopStop, Submit, Wait};
use weir_schema::Failure;
use weir_schema::catalogue::{ActsOn, EngineInfo};
use weir_sys::Availability;

use super::{EngineEntry, EngineRun, EngineSetup, Opens, run_engine};
use crate::op::BlockOp;

pub(super) const ENTRY: EngineEntry = EngineEntry {
    info: EngineInfo {
        name: "null",
        summary: "completes at once and moves no data: the cost of the loop itself",
        settings: &[],
        synchronous: false,
        acts_on: ActsOn::Size,
    },
    availability: || Availability::Ready,
    is_inline: |depth| depth == 1,
    opens: Opens::AsNeeded,
    drive,
};

fn drive(ride: EngineRun<'_, '_>) -> Result<LoopStop, Failure> {
    if ride.setup.depth == 1 {
        run_engine::<NullInline>(ride)
    } else {
        run_engine::<NullQueued>(ride)
    }
}

/// Completes inside the call.
#[derive(Debug)]
pub(super) struct NullInline;

impl Engine for NullInline {
    type Op = BlockOp;
    type Setup = EngineSetup;
    const INLINE: bool = true;
    const QUICK: bool = true;

    fn attach(_setup: EngineSetup) -> io::Result<Self> {
        Ok(Self)
    }

    #[inline]
    fn submit(&mut self, _slot: u32, op: &BlockOp) -> Submit {
        Submit::Done(i64::from(op.length))
    }
}

/// Keeps operations until they are reaped.
#[derive(Debug)]
pub(super) struct NullQueued {
    /// First those handed over, then those submitted since.
    queue: Vec<Completed>,
    handed_over: usize,
}

impl Engine for NullQueued {
    type Op = BlockOp;
    type Setup = EngineSetup;
    const QUICK: bool = true;

    fn attach(setup: EngineSetup) -> io::Result<Self> {
        Ok(Self {
            queue: Vec::with_capacity(setup.depth as usize),
            handed_over: 0,
        })
    }

    #[inline]
    fn submit(&mut self, slot: u32, op: &BlockOp) -> Submit {
        if self.queue.len() == self.queue.capacity() {
            return Submit::Full;
        }
        self.queue.push(Completed {
            slot,
            result: i64::from(op.length),
        });
        Submit::Queued
    }

    #[inline]
    fn commit(&mut self) -> io::Result<u32> {
        let taken = self.queue.len() - self.handed_over;
        self.handed_over = self.queue.len();
        Ok(u32::try_from(taken).unwrap_or(u32::MAX))
    }

    #[inline]
    fn reap(&mut self, wait: Wait, mut done: impl FnMut(Completed)) -> io::Result<u32> {
        let count = self.handed_over.min(wait.at_most as usize);
        for completed in self.queue.drain(..count) {
            done(completed);
        }
        self.handed_over -= count;
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }
}
