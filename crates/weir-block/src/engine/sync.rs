//! `lseek` with `read` and `write`: what programs did before `pread`.
//!
//! In: operations. Out: their results. The position is set only where the file does not stand
//! there already, so sequential jobs make one system call per operation.

use std::io;

use weir_run::{Engine, Submit};
use weir_schema::catalogue::{ActsOn, EngineInfo};
use weir_sys::Availability;

use super::calls::other;
use super::transfer_calls::{read, seek, write};
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
    drive: run_engine::<SyncFile>,
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
    pub(super) fn at(&mut self, offset: u64, call: impl FnOnce(&OpenTarget) -> i64) -> i64 {
        if self.position.take() != Some(offset) {
            let at = seek(&self.target, offset);
            if at < 0 {
                return at;
            }
        }
        let moved = call(&self.target);
        // Nothing is known after a failed call.
        self.position = u64::try_from(moved)
            .ok()
            .and_then(|moved| offset.checked_add(moved));
        moved
    }
}

/// `lseek`, `read` and `write`.
#[derive(Debug)]
pub(super) struct SyncFile {
    seekers: Vec<Seeker>,
}

impl Engine for SyncFile {
    type Op = BlockOp;
    type Setup = EngineSetup;
    const INLINE: bool = true;
    const QUICK: bool = true;

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
            Verb::Read => seeker.at(op.offset, |target| read(target, op)),
            Verb::Write => seeker.at(op.offset, |target| write(target, op)),
            _ => other(&seeker.target, *op),
        })
    }
}
