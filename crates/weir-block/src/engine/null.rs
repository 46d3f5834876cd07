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
    queue: Box<[Completed]>,
    queued: usize,
    handed_over: usize,
}

impl Engine for NullQueued {
    type Op = BlockOp;
    type Setup = EngineSetup;
    const QUICK: bool = true;

    fn attach(setup: EngineSetup) -> io::Result<Self> {
        let nothing = Completed { slot: 0, result: 0 };
        Ok(Self {
            queue: vec![nothing; setup.depth as usize].into(),
            queued: 0,
            handed_over: 0,
        })
    }

    #[inline]
    fn submit(&mut self, slot: u32, op: &BlockOp) -> Submit {
        let Some(place) = self.queue.get_mut(self.queued) else {
            return Submit::Full;
        };
        *place = Completed {
            slot,
            result: i64::from(op.length),
        };
        self.queued += 1;
        Submit::Queued
    }

    #[inline]
    fn commit(&mut self) -> io::Result<u32> {
        let taken = self.queued - self.handed_over;
        self.handed_over = self.queued;
        Ok(u32::try_from(taken).unwrap_or(u32::MAX))
    }

    #[inline]
    fn reap(&mut self, wait: Wait, done: impl FnMut(Completed)) -> io::Result<u32> {
        let count = self.handed_over.min(wait.at_most as usize);
        let (over, left) = (self.queue.iter().take(count), count..self.queued);
        over.copied().for_each(done);
        self.queue.copy_within(left, 0);
        self.queued -= count;
        self.handed_over -= count;
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }
}
