//! The empty engines: they complete at once and touch no data. What a loop takes with one of them is
//! its own cost.
//!
//! In: operations of any kind. Out: completions of their full length, inside the call or by way of a
//! queue. Not here: what is measured with them.

use std::io;
use std::marker::PhantomData;

use crate::engine::{Completed, Engine, Operation, Submit, Wait};

/// What an empty engine has to know of its set-up.
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
    queue: Vec<Completed>,
    handed_over: usize,
    of: PhantomData<fn(O, S)>,
}

impl<O: Operation, S: Slots> Engine for NullQueued<O, S> {
    type Op = O;
    type Setup = S;

    fn attach(setup: S) -> io::Result<Self> {
        Ok(Self {
            queue: Vec::with_capacity(setup.slots() as usize),
            handed_over: 0,
            of: PhantomData,
        })
    }

    #[inline]
    fn submit(&mut self, slot: u32, op: &O) -> Submit {
        if self.queue.len() == self.queue.capacity() {
            return Submit::Full;
        }
        self.queue.push(Completed {
            slot,
            result: i64::from(op.length()),
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
