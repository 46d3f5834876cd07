//! The empty engines: they complete at once and touch no data. What a loop takes with one of them is
//! its own cost.
//!
//! In: operations of any kind. Out: completions of their full length, inside the call or by way of a
//! queue. Not here: what is measured with them.

use std::io;
use std::marker::PhantomData;

use crate::engine::{Completed, Engine, Operation, Submit, Wait};

/// Set-up of an empty engine.
pub trait Slots {
    /// Most operations in flight.
    fn slots(&self) -> u32;
}

impl Slots for u32 {
    fn slots(&self) -> u32 {
        *self
    }
}

/// Completes inside the call.
#[derive(Debug)]
pub struct NullInline<O, S>(PhantomData<fn(O, S)>);

impl<O: Operation, S: Slots> Engine for NullInline<O, S> {
    type Op = O;
    type Setup = S;
    const INLINE: bool = true;
    const QUICK: bool = true;

    fn attach(_setup: S) -> io::Result<Self> {
        Ok(Self(PhantomData))
    }

    #[inline]
    fn submit(&mut self, _slot: u32, op: &O) -> Submit {
        Submit::Done(i64::from(op.length()))
    }
}

/// Keeps operations until they are reaped.
#[derive(Debug)]
pub struct NullQueued<O, S> {
    /// First those handed over, then those submitted since.
    queue: Box<[Completed]>,
    queued: u32,
    handed_over: u32,
    of: PhantomData<fn(O, S)>,
}

impl<O: Operation, S: Slots> Engine for NullQueued<O, S> {
    type Op = O;
    type Setup = S;
    const QUICK: bool = true;

    fn attach(setup: S) -> io::Result<Self> {
        let nothing = Completed { slot: 0, result: 0 };
        Ok(Self {
            queue: vec![nothing; setup.slots() as usize].into(),
            queued: 0,
            handed_over: 0,
            of: PhantomData,
        })
    }

    #[inline]
    fn submit(&mut self, slot: u32, op: &O) -> Submit {
        let Some(place) = self.queue.get_mut(self.queued as usize) else {
            return Submit::Full;
        };
        *place = Completed {
            slot,
            result: i64::from(op.length()),
        };
        self.queued += 1;
        Submit::Queued
    }

    #[inline]
    fn commit(&mut self) -> io::Result<u32> {
        let taken = self.queued - self.handed_over;
        self.handed_over = self.queued;
        Ok(taken)
    }

    #[inline]
    fn reap(&mut self, wait: Wait, done: impl FnMut(Completed)) -> io::Result<u32> {
        let count = self.handed_over.min(wait.at_most);
        let over = self.queue.iter().take(count as usize);
        over.copied().for_each(done);
        let left = count as usize..self.queued as usize;
        self.queue.copy_within(left, 0);
        self.queued -= count;
        self.handed_over -= count;
        Ok(count)
    }
}
