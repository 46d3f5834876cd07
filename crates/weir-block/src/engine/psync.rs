//! `pread` and `pwrite`: one system call per operation.

use std::io;

use weir_run::Engine;
use weir_run::Submit;
use weir_schema::catalogue::{ActsOn, EngineInfo};
use weir_sys::Availability;

use super::calls::other;
use super::transfer_calls::{pread, pwrite};
use super::{EngineEntry, EngineSetup, OpenTarget, Opens, run_engine};
use crate::op::{BlockOp, Verb};

pub(super) const ENTRY: EngineEntry = EngineEntry {
    info: EngineInfo {
        name: "psync",
        summary: "pread and pwrite: one system call per operation",
        settings: &[],
        synchronous: true,
        acts_on: ActsOn::Data,
    },
    availability: || Availability::Ready,
    is_inline: |_| true,
    opens: Opens::AsNeeded,
    drive: run_engine::<Psync>,
};

/// `pread` and `pwrite`.
#[derive(Debug)]
pub(super) struct Psync {
    targets: Vec<OpenTarget>,
}

impl Engine for Psync {
    type Op = BlockOp;
    type Setup = EngineSetup;
    const INLINE: bool = true;
    const QUICK: bool = true;

    fn attach(setup: EngineSetup) -> io::Result<Self> {
        Ok(Self {
            targets: setup.targets,
        })
    }

    #[inline]
    fn submit(&mut self, _slot: u32, op: &BlockOp) -> Submit {
        let Some(target) = self.targets.get(op.target as usize) else {
            return Submit::Done(-i64::from(libc::EBADF));
        };
        Submit::Done(match op.verb {
            Verb::Read => pread(target, op),
            Verb::Write => pwrite(target, op),
            _ => other(target, op),
        })
    }
}
