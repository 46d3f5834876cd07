//! The simplest load: operations that are calls of a function, one after the other.
//!
//! In: an iterator over [`Call`]s and a function that carries one out. Out: a [`Source`] and an
//! [`Engine`] for the worker loop. Not here: operations in flight, targets, operations in parts.

use std::io;

use crate::engine::{Engine, Operation, Submit};
use crate::source::Source;

/// An operation that is one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The place of its kind among those that the workload declares.
    pub kind: usize,
    /// Bytes that it moves.
    pub length: u32,
}

impl Operation for Call {
    #[inline]
    fn kind_index(&self) -> usize {
        self.kind
    }

    #[inline]
    fn length(&self) -> u32 {
        self.length
    }
}

/// Operations from an iterator.
#[derive(Clone, Debug)]
pub struct Calls<I>(pub I);

impl<I: Iterator<Item = Call>> Source for Calls<I> {
    type Op = Call;

    #[inline]
    fn next(&mut self, _slot: u32) -> Option<Call> {
        self.0.next()
    }
}

/// A function that carries operations out. It answers the bytes that it moved, or an errno.
#[derive(Clone, Debug)]
pub struct Caller<F>(pub F);

impl<F: FnMut(&Call) -> Result<u32, i32>> Engine for Caller<F> {
    type Op = Call;
    type Setup = F;
    const INLINE: bool = true;

    fn attach(function: F) -> io::Result<Self> {
        Ok(Self(function))
    }

    #[inline]
    fn submit(&mut self, _slot: u32, call: &Call) -> Submit {
        let answer = (self.0)(call);
        Submit::Done(answer.map_or_else(|errno| -i64::from(errno), i64::from))
    }
}
