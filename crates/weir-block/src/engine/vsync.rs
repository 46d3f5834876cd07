//! `lseek` with `readv` and `writev`: neighbours in the queue become one call.
//!
//! In: operations, kept in a queue. Out: completions. The calls are made when completions are
//! asked for: operations of one kind that follow each other without a gap on one target go
//! together, so a sequential job with a queue depth of 8, handed over 8 at a time, makes one call
//! for 8 operations.

use std::collections::VecDeque;
use std::io;

use weir_run::{Completed, Engine, Submit, Wait};
use weir_schema::catalogue::{ActsOn, EngineInfo};
use weir_sys::Availability;

use super::calls::other;
use super::sync::Seeker;
use super::transfer_calls::{Pieces, readv, writev};
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
    pieces: Pieces,
}

impl Vsync {
    /// Number of neighbouring operations at the head of the queue.
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
        let Some(&(_, first)) = self.queue.front().filter(|_| count > 0) else {
            return;
        };
        let ops = self.queue.iter().take(count).map(|(_, op)| op);
        self.pieces.set(ops);
        let pieces = &self.pieces;
        let result = match self.seekers.get_mut(first.target as usize) {
            None => -i64::from(libc::EBADF),
            Some(seeker) if first.verb == Verb::Read => {
                seeker.at(first.offset, |target| readv(target, pieces))
            }
            Some(seeker) => seeker.at(first.offset, |target| writev(target, pieces)),
        };
        if result <= 0 {
            // Nothing moved: the first one says so, the others get a call of their own.
            return self.complete(result);
        }
        let mut moved = result;
        for _ in 0..count {
            let length = self.queue.front().map_or(0, |(_, op)| i64::from(op.length));
            let part = moved.min(length);
            if part == 0 {
                break;
            }
            self.complete(part);
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
            pieces: Pieces::with_room(depth.min(MOST_PIECES)),
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
        Submit::Done(target.map_or(-i64::from(libc::EBADF), |target| other(target, *op)))
    }

    fn commit(&mut self) -> io::Result<u32> {
        let taken = self.queue.len() - self.handed_over;
        self.handed_over = self.queue.len();
        Ok(u32::try_from(taken).unwrap_or(u32::MAX))
    }

    fn reap(&mut self, wait: Wait, done: impl FnMut(Completed)) -> io::Result<u32> {
        let wanted = wait.at_least.max(1).min(wait.at_most) as usize;
        while self.done.len() < wanted && self.handed_over > 0 {
            self.carry_out();
        }
        let count = self.done.len().min(wait.at_most as usize);
        self.done.drain(..count).for_each(done);
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }
}
