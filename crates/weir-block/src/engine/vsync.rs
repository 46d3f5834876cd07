//! `lseek` with `readv` and `writev`: neighbours in the queue become one call.
//!
//! In: operations, kept in a queue. Out: completions. The calls are made when completions are
//! asked for: operations of one kind that follow each other without a gap on one target go
//! together, so a sequential job with a queue depth of 8, handed over 8 at a time, makes one call
//! for 8 operations.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};

use rustix::io::Errno;
use weir_run::{Completed, Engine, Submit, Wait};
use weir_schema::catalogue::{ActsOn, EngineInfo};
use weir_sys::Availability;

use super::calls::{memory, other};
use super::sync::Seeker;
use super::{EngineEntry, EngineSetup, Opens, run_engine};
use crate::op::{BlockOp, Verb};

pub(super) const ENTRY: EngineEntry = EngineEntry {
    info: EngineInfo {
        name: "vsync",
        summary: "lseek, then readv or writev of all neighbours in the queue",
        settings: &[],
        synchronous: false,
        acts_on: ActsOn::Data,
    },
    availability: || Availability::Ready,
    is_inline: |_| false,
    opens: Opens::AsNeeded,
    drive: run_engine::<Vsync>,
};

/// Pieces of memory that one call takes.
const MOST_PIECES: usize = 1024;

/// `readv` and `writev`.
#[derive(Debug)]
pub(super) struct Vsync {
    seekers: Vec<Seeker>,
    depth: usize,
    /// First those handed over, then those submitted since.
    queue: VecDeque<(u32, BlockOp)>,
    handed_over: usize,
    done: VecDeque<Completed>,
}

impl Vsync {
    /// How many operations at the head of the queue are neighbours.
    fn neighbours(&self) -> usize {
        let handed = self.queue.iter().take(self.handed_over.min(MOST_PIECES));
        let mut expected: Option<BlockOp> = None;
        let follows = |(_, op): &&(u32, BlockOp)| {
            let joins = expected
                .is_none_or(|e| (e.verb, e.target, e.offset) == (op.verb, op.target, op.offset));
            expected = op
                .offset
                .checked_add(op.length.into())
                .map(|offset| BlockOp { offset, ..*op });
            joins
        };
        handed.take_while(follows).count()
    }

    /// Carries the neighbours at the head of the queue out. What a short call left over stays in
    /// the queue for the next one.
    fn carry_out(&mut self) {
        let count = self.neighbours();
        let ops: Vec<BlockOp> = self.queue.iter().take(count).map(|(_, op)| *op).collect();
        let Some(first) = ops.first() else { return };
        let result = match self.seekers.get_mut(first.target as usize) {
            None => Err(Errno::BADF),
            Some(seeker) if first.verb == Verb::Read => {
                let mut pieces: Vec<_> =
                    ops.iter().map(|op| IoSliceMut::new(memory(*op))).collect();
                seeker.at(first.offset, |t| rustix::io::readv(&t.file, &mut pieces))
            }
            Some(seeker) => {
                let pieces: Vec<_> = ops.iter().map(|op| IoSlice::new(memory(*op))).collect();
                seeker.at(first.offset, |t| rustix::io::writev(&t.file, &pieces))
            }
        };
        let mut moved = match result {
            Ok(moved) if moved > 0 => moved,
            // Nothing moved: the first one says so, the others get a call of their own.
            Ok(_) => return self.complete(0),
            Err(errno) => return self.complete(-i64::from(errno.raw_os_error())),
        };
        for op in ops {
            let part = moved.min(op.length as usize);
            if part == 0 {
                break;
            }
            self.complete(i64::try_from(part).unwrap_or(i64::MAX));
            moved -= part;
        }
    }

    fn complete(&mut self, result: i64) {
        if let Some((slot, _)) = self.queue.pop_front() {
            self.handed_over -= 1;
            self.done.push_back(Completed { slot, result });
        }
    }
}

impl Engine for Vsync {
    type Op = BlockOp;
    type Setup = EngineSetup;

    fn attach(setup: EngineSetup) -> io::Result<Self> {
        let depth = setup.depth as usize;
        Ok(Self {
            seekers: Seeker::all(setup.targets),
            depth,
            queue: VecDeque::with_capacity(depth),
            handed_over: 0,
            done: VecDeque::with_capacity(depth),
        })
    }

    fn submit(&mut self, slot: u32, op: &BlockOp) -> Submit {
        let is_data = matches!(op.verb, Verb::Read | Verb::Write);
        // A flush is for what was written before it.
        let waits = !is_data && !self.queue.is_empty();
        if waits || self.queue.len() + self.done.len() >= self.depth {
            return Submit::Full;
        }
        if is_data {
            self.queue.push_back((slot, *op));
            return Submit::Queued;
        }
        let target = self.seekers.get(op.target as usize).map(|s| &s.target);
        Submit::Done(target.map_or(-i64::from(libc::EBADF), |target| other(target, op)))
    }

    fn commit(&mut self) -> io::Result<u32> {
        let taken = self.queue.len() - self.handed_over;
        self.handed_over = self.queue.len();
        Ok(u32::try_from(taken).unwrap_or(u32::MAX))
    }

    fn reap(&mut self, wait: Wait, mut done: impl FnMut(Completed)) -> io::Result<u32> {
        let mut count = 0;
        while count < wait.at_most {
            if self.done.is_empty() && (count == 0 || count < wait.at_least) {
                self.carry_out();
            }
            let Some(completed) = self.done.pop_front() else {
                break;
            };
            done(completed);
            count += 1;
        }
        Ok(count)
    }
}
