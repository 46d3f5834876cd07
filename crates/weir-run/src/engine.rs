//! The engine: what carries operations out. The worker loop is generic over it, so that every
//! engine gets a loop of its own without a virtual call.
//!
//! In: operations, each in a slot. Out: completions by slot. Not here: clocks, statistics, the
//! choice of operations.

use std::io;

/// An operation as the loop sees it: everything else is between source and engine.
pub trait Operation: Copy + Default {
    /// The place of its kind among those that the workload declares.
    fn kind_index(&self) -> usize;

    /// Bytes that shall move. An operation whose result is this number is whole.
    fn length(&self) -> u32;

    /// Class that sets it apart from others of its kind, as a priority does; 0 for none. Latencies
    /// are kept by class where that is asked for.
    #[inline]
    fn class(&self) -> u16 {
        0
    }

    /// Target that it acts on, for messages, traces and logs.
    #[inline]
    fn acts_on(&self) -> OpTarget {
        OpTarget::default()
    }

    /// The rest of the operation after `done` bytes moved; nothing where it has no parts, so that
    /// one that moved less has failed.
    fn rest(&self, done: u32) -> Option<Self> {
        (done == 0).then_some(*self)
    }

    /// True if it touches bytes that the other one touches, which a workload may ask to keep apart.
    fn overlaps(&self, _other: &Self) -> bool {
        false
    }
}

/// Target of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpTarget {
    /// Number of the worker's target.
    pub number: u32,
    /// The first byte, where targets have offsets.
    pub offset: Option<u64>,
}

/// The answer to [`Engine::submit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submit {
    /// Taken; a completion will follow.
    Queued,
    /// Finished inside the call: bytes moved, or the negative errno.
    Done(i64),
    /// No room: commit or reap first.
    Full,
    /// Not carried out, and nothing will be any more: there is no more work, as when a peer has
    /// closed its connection.
    Over,
}

/// A finished operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The slot it was submitted with.
    pub slot: u32,
    /// Bytes moved, or the negative errno.
    pub result: i64,
}

/// Limits of a wait by [`Engine::reap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Completions to wait for; 0 only looks.
    pub at_least: u32,
    /// Completions to take.
    pub at_most: u32,
    /// Longest wait in nanoseconds; `None` waits until a completion or a signal.
    pub timeout_ns: Option<u64>,
}

/// Engine that carries operations out.
pub trait Engine: Sized {
    /// Operations that it can carry out.
    type Op: Operation;
    /// Parts that it is attached to.
    type Setup;

    /// `submit` always completes: slots and reaping compile away.
    const INLINE: bool = false;

    /// A call takes less than a microsecond, so that the loop's own cost shows: plain jobs get a
    /// loop without rare features, and each source a loop of its own.
    const QUICK: bool = false;

    /// Prepares the engine. Runs on the worker's own thread.
    ///
    /// # Errors
    /// The error of the kernel or library.
    fn attach(setup: Self::Setup) -> io::Result<Self>;

    /// Takes an operation. Makes no system call if it can queue, reads no clock.
    fn submit(&mut self, slot: u32, op: &Self::Op) -> Submit;

    /// Hands over what was queued; may take fewer, the rest stays queued.
    ///
    /// # Errors
    /// The hand-over failed as a whole.
    #[inline]
    fn commit(&mut self) -> io::Result<u32> {
        Ok(0)
    }

    /// Waits, then calls `done` for each completion, from one place only, so that it inlines: the
    /// first call reads the clock for all of them. An interruption by a signal is `Ok(0)`.
    ///
    /// # Errors
    /// Completions cannot be had any more.
    #[inline]
    fn reap(&mut self, _wait: Wait, _done: impl FnMut(Completed)) -> io::Result<u32> {
        Ok(0)
    }

    /// Ends the engine after the last completion.
    ///
    /// # Errors
    /// The error of closing.
    fn finish(self) -> io::Result<()> {
        Ok(())
    }
}
