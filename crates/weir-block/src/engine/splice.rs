//! Through a pipe inside the kernel: `splice` between file and pipe, `vmsplice` of the memory to
//! write.
//!
//! In: operations. Out: their results. What is read is spliced into the pipe and copied from
//! there; what is written is lent to the pipe page by page and spliced into the file.

#![expect(unsafe_code, reason = "vmsplice lends memory to the kernel")]

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::pipe::{IoSliceRaw, PipeFlags, SpliceFlags, pipe_with, splice, vmsplice};
use weir_run::{Engine, Submit};
use weir_schema::catalogue::{ActsOn, EngineInfo};
use weir_sys::Availability;

use super::calls::{answer, memory, other};
use super::{EngineEntry, EngineSetup, OpenTarget, Opens, run_engine};
use crate::op::{BlockOp, Verb};

pub(super) const ENTRY: EngineEntry = EngineEntry {
    info: EngineInfo {
        name: "splice",
        summary: "moves data between file and memory through a pipe in the kernel",
        settings: &[],
        synchronous: true,
        acts_on: ActsOn::Data,
    },
    availability: || Availability::Ready,
    is_inline: |_| true,
    opens: Opens::AsNeeded,
    drive: run_engine::<Splice>,
};

/// A pipe, empty between operations.
#[derive(Debug)]
struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
}

impl Pipe {
    fn new() -> Result<Self, Errno> {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Self { out, into })
    }
}

/// `splice` and `vmsplice`.
#[derive(Debug)]
pub(super) struct Splice {
    targets: Vec<OpenTarget>,
    pipe: Pipe,
}

impl Splice {
    fn read(&self, target: &OpenTarget, op: BlockOp) -> Result<usize, Errno> {
        let mut rest = memory(op);
        let mut at = op.offset;
        while !rest.is_empty() {
            let flags = SpliceFlags::empty();
            let spliced = splice(
                &target.file,
                Some(&mut at),
                &self.pipe.into,
                None,
                rest.len(),
                flags,
            );
            let mut inside = match spliced {
                Ok(0) => break,
                Ok(bytes) => bytes,
                Err(errno) if rest.len() == op.length as usize => return Err(errno),
                Err(_) => break,
            };
            while inside > 0 {
                let copied = rustix::io::read(&self.pipe.out, &mut rest[..inside])?;
                inside -= copied;
                rest = &mut rest[copied..];
            }
        }
        Ok(op.length as usize - rest.len())
    }

    fn write(&self, target: &OpenTarget, op: BlockOp) -> Result<usize, Errno> {
        let mut rest: &[u8] = memory(op);
        let mut at = op.offset;
        while !rest.is_empty() {
            let pieces = [IoSliceRaw::from_slice(rest)];
            // SAFETY: the pages belong to the slot of this operation, which stays mapped and
            // unchanged until they have been spliced into the file below, or the pipe is dropped.
            let lent = unsafe { vmsplice(&self.pipe.into, &pieces, SpliceFlags::NONBLOCK) };
            let mut inside = lent?;
            rest = &rest[inside..];
            while inside > 0 {
                let flags = SpliceFlags::empty();
                let end = Some(&mut at);
                let spliced = splice(&self.pipe.out, None, &target.file, end, inside, flags)?;
                if spliced == 0 {
                    return Err(Errno::IO);
                }
                inside -= spliced;
            }
        }
        Ok(op.length as usize)
    }
}

impl Engine for Splice {
    type Op = BlockOp;
    type Setup = EngineSetup;
    const INLINE: bool = true;

    fn attach(setup: EngineSetup) -> io::Result<Self> {
        Ok(Self {
            targets: setup.targets,
            pipe: Pipe::new()?,
        })
    }

    fn submit(&mut self, _slot: u32, op: &BlockOp) -> Submit {
        let Some(target) = self.targets.get(op.target as usize) else {
            return Submit::Done(-i64::from(libc::EBADF));
        };
        let done = match op.verb {
            Verb::Read => self.read(target, *op),
            Verb::Write => self.write(target, *op),
            _ => return Submit::Done(other(target, *op)),
        };
        if done.is_err() {
            // What a failed call left in the pipe must not come out with the next operation.
            match Pipe::new() {
                Ok(pipe) => self.pipe = pipe,
                Err(errno) => return Submit::Done(-i64::from(errno.raw_os_error())),
            }
        }
        Submit::Done(answer(done))
    }
}
