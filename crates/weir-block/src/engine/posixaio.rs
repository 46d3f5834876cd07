//! The C library's asynchronous I/O: `aio_read`, `aio_write`, `aio_suspend`.
//!
//! In: operations; each becomes the control block of its slot. Out: results. The library carries
//! them out with threads of its own, one at a time for each file.

#![expect(unsafe_code, reason = "the C library's calls and their control blocks")]

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;

use weir_run::{Completed, Engine, Submit, Wait};
use weir_schema::catalogue::{ActsOn, EngineInfo};
use weir_sys::Availability;

use super::calls::other;
use super::{EngineEntry, EngineSetup, OpenTarget, Opens, run_engine};
use crate::op::{BlockOp, Verb};

pub(super) const ENTRY: EngineEntry = EngineEntry {
    info: EngineInfo {
        name: "posixaio",
        summary: "aio_read, aio_write and aio_suspend of the C library, with its threads",
        settings: &[],
        synchronous: false,
        acts_on: ActsOn::Data,
    },
    availability: || Availability::Ready,
    is_inline: |_| false,
    opens: Opens::AsNeeded,
    drive: run_engine::<PosixAio>,
};

/// A control block. Between hand-over and completion it belongs to the library, which changes it
/// from other threads.
struct Block(UnsafeCell<libc::aiocb>);

impl Block {
    fn new() -> Self {
        // SAFETY: all-zero bytes are a valid control block: file 0, no memory, no notification.
        let mut block: libc::aiocb = unsafe { std::mem::zeroed() };
        block.aio_sigevent.sigev_notify = libc::SIGEV_NONE;
        Self(UnsafeCell::new(block))
    }

    fn address(&self) -> *mut libc::aiocb {
        self.0.get()
    }

    /// Its error; `EINPROGRESS` while it runs.
    fn error(&self) -> i32 {
        // SAFETY: the address is that of a control block which was handed over and not returned.
        unsafe { libc::aio_error(self.address()) }
    }

    /// The result of a finished operation, once.
    fn take(&self, error: i32) -> i64 {
        // SAFETY: as in `error`; the operation is over, so it may be returned.
        let moved = unsafe { libc::aio_return(self.address()) };
        if error == 0 {
            i64::try_from(moved).unwrap_or(i64::MAX)
        } else {
            -i64::from(error)
        }
    }
}

/// An operation in a slot, until it is over.
#[derive(Clone, Copy, Debug)]
struct Fresh {
    slot: u32,
    verb: Verb,
}

/// The C library's asynchronous I/O.
pub(super) struct PosixAio {
    targets: Vec<OpenTarget>,
    /// By slot; they never move.
    blocks: Box<[Block]>,
    fresh: VecDeque<Fresh>,
    flying: Vec<u32>,
    /// Refused at the hand-over.
    refused: Vec<Completed>,
    /// Of those in flight, while they are waited for; keeps its room.
    waited_for: Vec<*const libc::aiocb>,
}

impl PosixAio {
    /// Hands one over: the errno of a refusal.
    fn hand_over(&self, fresh: Fresh) -> Result<(), i32> {
        let block = self.blocks[fresh.slot as usize].address();
        let result = match fresh.verb {
            // SAFETY: the control block lies in the engine and its memory in the slot; both
            // outlive the operation, for which `drop` waits.
            Verb::Read => unsafe { libc::aio_read(block) },
            // SAFETY: as for a read.
            Verb::Write => unsafe { libc::aio_write(block) },
            // SAFETY: as for a read; there is no memory.
            Verb::DataSync => unsafe { libc::aio_fsync(libc::O_DSYNC, block) },
            // SAFETY: as for a read; there is no memory.
            _ => unsafe { libc::aio_fsync(libc::O_SYNC, block) },
        };
        if result == 0 {
            return Ok(());
        }
        Err(io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EIO))
    }

    /// Waits until one of those not yet over is, a signal comes or the time is up; unless so many
    /// are over.
    fn suspend(&mut self, at_least: u32, timeout_ns: Option<u64>) {
        let blocks = self.flying.iter().map(|slot| &self.blocks[*slot as usize]);
        let running = blocks.filter(|block| block.error() == libc::EINPROGRESS);
        self.waited_for.clear();
        self.waited_for
            .extend(running.map(|block| block.address().cast_const()));
        let list = &self.waited_for;
        let over = self.flying.len() - list.len() + self.refused.len();
        if list.is_empty() || over >= at_least as usize {
            return;
        }
        let limit = timeout_ns.map(|ns| libc::timespec {
            tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap_or(0),
        });
        let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let count = i32::try_from(list.len()).unwrap_or(i32::MAX);
        // SAFETY: the list holds addresses of control blocks in flight, and a limit that lives
        // over the call. Whatever it answers, the blocks are looked at next.
        unsafe { libc::aio_suspend(list.as_ptr(), count, limit) };
    }

    /// Gives what is over; how many.
    fn collect(&mut self, most: u32, done: &mut impl FnMut(Completed)) -> u32 {
        let mut count = 0;
        while count < most
            && let Some(completed) = self.refused.pop()
        {
            done(completed);
            count += 1;
        }
        let blocks = &self.blocks;
        self.flying.retain(|&slot| {
            let block = &blocks[slot as usize];
            let error = if count < most {
                block.error()
            } else {
                libc::EINPROGRESS
            };
            if error == libc::EINPROGRESS {
                return true;
            }
            let result = block.take(error);
            done(Completed { slot, result });
            count += 1;
            false
        });
        count
    }
}

impl Engine for PosixAio {
    type Op = BlockOp;
    type Setup = EngineSetup;

    fn attach(setup: EngineSetup) -> io::Result<Self> {
        let depth = setup.depth as usize;
        Ok(Self {
            targets: setup.targets,
            blocks: (0..depth).map(|_| Block::new()).collect(),
            fresh: VecDeque::with_capacity(depth),
            flying: Vec::with_capacity(depth),
            refused: Vec::with_capacity(depth),
            waited_for: Vec::with_capacity(depth),
        })
    }

    fn submit(&mut self, slot: u32, op: &BlockOp) -> Submit {
        let Some(target) = self.targets.get(op.target as usize) else {
            return Submit::Done(-i64::from(libc::EBADF));
        };
        if matches!(op.verb, Verb::Trim | Verb::RangeSync) {
            return Submit::Done(other(target, op));
        }
        let Some(block) = self.blocks.get_mut(slot as usize) else {
            return Submit::Full;
        };
        let block = block.0.get_mut();
        block.aio_fildes = target.file.as_raw_fd();
        block.aio_buf = op.buffer.0.cast();
        block.aio_nbytes = op.length as usize;
        block.aio_offset = i64::try_from(op.offset).unwrap_or(i64::MAX);
        let verb = op.verb;
        self.fresh.push_back(Fresh { slot, verb });
        Submit::Queued
    }

    fn commit(&mut self) -> io::Result<u32> {
        let mut taken = 0;
        while let Some(fresh) = self.fresh.front().copied() {
            match self.hand_over(fresh) {
                Ok(()) => self.flying.push(fresh.slot),
                // The library has no room: what is in flight has to end first.
                Err(libc::EAGAIN) if !self.flying.is_empty() => break,
                Err(errno) => self.refused.push(Completed {
                    slot: fresh.slot,
                    result: -i64::from(errno),
                }),
            }
            self.fresh.pop_front();
            taken += 1;
        }
        Ok(taken)
    }

    fn reap(&mut self, wait: Wait, mut done: impl FnMut(Completed)) -> io::Result<u32> {
        // One wait: after a signal the loop wants to look around.
        self.suspend(wait.at_least.min(wait.at_most), wait.timeout_ns);
        Ok(self.collect(wait.at_most, &mut done))
    }
}

impl Drop for PosixAio {
    fn drop(&mut self) {
        while !self.flying.is_empty() {
            self.suspend(1, None);
            self.collect(u32::MAX, &mut |_| {});
        }
    }
}
