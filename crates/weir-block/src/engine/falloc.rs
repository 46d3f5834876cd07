//! Space without data: `fallocate` of each block, and the length of a file by `ftruncate`.
//!
//! In: operations on ranges. Out: the ranges reserved, given back, or the file as long as an
//! offset says. Of [`Falloc`], a write reserves blocks and extends the file, a read reserves them
//! and keeps its length, a trim punches a hole. Of [`Truncate`], a write sets the length.

use std::io;

use rustix::fs::{FallocateFlags, fallocate, ftruncate};
use weir_run::{Engine, Submit};
use weir_schema::catalogue::{ActsOn, EngineInfo};
use weir_sys::Availability;

use super::calls::{answer, other};
use super::{EngineEntry, EngineSetup, OpenTarget, Opens, run_engine};
use crate::op::{BlockOp, Verb};

pub(super) const FALLOC: EngineEntry = EngineEntry {
    info: EngineInfo {
        name: "falloc",
        summary: "reserves blocks (write, read) or gives them back (trim); moves no data",
        settings: &[],
        synchronous: true,
        acts_on: ActsOn::Space,
    },
    availability: || Availability::Ready,
    is_inline: |_| true,
    opens: Opens::WritingToo,
    drive: run_engine::<Falloc>,
};

pub(super) const TRUNCATE: EngineEntry = EngineEntry {
    info: EngineInfo {
        name: "ftruncate",
        summary: "sets the file's length to each offset; moves no data; writes only",
        settings: &[],
        synchronous: true,
        acts_on: ActsOn::Space,
    },
    availability: || Availability::Ready,
    is_inline: |_| true,
    opens: Opens::AsNeeded,
    drive: run_engine::<Truncate>,
};

/// `fallocate`.
#[derive(Debug)]
pub(super) struct Falloc {
    targets: Vec<OpenTarget>,
}

impl Engine for Falloc {
    type Op = BlockOp;
    type Setup = EngineSetup;
    const INLINE: bool = true;

    fn attach(setup: EngineSetup) -> io::Result<Self> {
        Ok(Self {
            targets: setup.targets,
        })
    }

    fn submit(&mut self, _slot: u32, op: &BlockOp) -> Submit {
        let Some(target) = self.targets.get(op.target as usize) else {
            return Submit::Done(-i64::from(libc::EBADF));
        };
        let flags = match op.verb {
            Verb::Read => FallocateFlags::KEEP_SIZE,
            Verb::Write => FallocateFlags::empty(),
            _ => return Submit::Done(other(target, *op)),
        };
        let reserved = fallocate(&target.file, flags, op.offset, op.length.into());
        Submit::Done(answer(reserved.map(|()| op.length as usize)))
    }
}

/// `ftruncate`.
#[derive(Debug)]
pub(super) struct Truncate {
    targets: Vec<OpenTarget>,
}

impl Engine for Truncate {
    type Op = BlockOp;
    type Setup = EngineSetup;
    const INLINE: bool = true;

    fn attach(setup: EngineSetup) -> io::Result<Self> {
        Ok(Self {
            targets: setup.targets,
        })
    }

    fn submit(&mut self, _slot: u32, op: &BlockOp) -> Submit {
        let target = self.targets.get(op.target as usize);
        Submit::Done(match (target, op.verb) {
            (None, _) => -i64::from(libc::EBADF),
            (Some(target), Verb::Write) => {
                answer(ftruncate(&target.file, op.offset).map(|()| op.length as usize))
            }
            (Some(target), Verb::Sync | Verb::DataSync) => other(target, *op),
            (Some(_), Verb::Read | Verb::Trim | Verb::RangeSync) => -i64::from(libc::EINVAL),
        })
    }
}
