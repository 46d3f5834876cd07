//! `lseek` with `read` and `write`: what programs did before `pread`.
//!
//! In: operations. Out: their results. The position is set only where the file does not stand
//! there already, so sequential jobs make one system call per operation.

use std::io;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use weir_run::{Engine, Submit};
use weir_schema::catalogue::{ActsOn, EngineInfo};
use weir_sys::Availability;

use super::calls::{answer, memory, other};
use super::{EngineEntry, EngineSetup, OpenTarget, Opens, run_engine};
use crate::op::{BlockOp, Verb};

pub(super) const ENTRY: EngineEntry = EngineEntry {
    info: EngineInfo {
        name: "sync",
        summary: "lseek, then read or write",
        settings: &[],
        synchronous: true,
        acts_on: ActsOn::Data,
    },
    availability: || Availability::Ready,
    is_inline: |_| true,
    opens: Opens::AsNeeded,
    drive: run_engine::<Sync>,
};

/// An open target and where it stands.
#[derive(Debug)]
pub(super) struct Seeker {
    pub(super) target: OpenTarget,
    /// `None`: not known, as after a failed call.
    position: Option<u64>,
}

impl Seeker {
    pub(super) fn all(targets: Vec<OpenTarget>) -> Vec<Self> {
        let at_start = |target| Self {
            target,
            position: Some(0),
        };
        targets.into_iter().map(at_start).collect()
    }

    /// Carries a call out at an offset.
    #[inline]
    pub(super) fn at(
        &mut self,
        offset: u64,
        call: impl FnOnce(&OpenTarget) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        if self.position.take() != Some(offset) {
            seek(&self.target.file, SeekFrom::Start(offset))?;
        }
        let moved = call(&self.target)?;
        self.position = offset.checked_add(moved as u64);
        Ok(moved)
    }
}

/// `lseek`, `read` and `write`.
#[derive(Debug)]
pub(super) struct Sync {
    seekers: Vec<Seeker>,
}

impl Engine for Sync {
    type Op = BlockOp;
    type Setup = EngineSetup;
    const INLINE: bool = true;

    fn attach(setup: EngineSetup) -> io::Result<Self> {
        Ok(Self {
            seekers: Seeker::all(setup.targets),
        })
    }

    #[inline]
    fn submit(&mut self, _slot: u32, op: &BlockOp) -> Submit {
        let Some(seeker) = self.seekers.get_mut(op.target as usize) else {
            return Submit::Done(-i64::from(libc::EBADF));
        };
        Submit::Done(match op.verb {
            Verb::Read => answer(seeker.at(op.offset, |t| rustix::io::read(&t.file, memory(*op)))),
            Verb::Write => {
                answer(seeker.at(op.offset, |t| rustix::io::write(&t.file, memory(*op))))
            }
            _ => other(&seeker.target, op),
        })
    }
}
