//! `preadv` and `pwritev`: one system call per operation, with a list of one piece of memory.

use std::io;

use weir_run::{Engine, Submit};
use weir_schema::catalogue::{ActsOn, EngineInfo};
use weir_sys::Availability;

use super::calls::other;
use super::transfer_calls::{preadv, pwritev};
use super::{EngineEntry, EngineSetup, OpenTarget, Opens, run_engine};
use crate::op::{BlockOp, Verb};

pub(super) const ENTRY: EngineEntry = EngineEntry {
    info: EngineInfo {
        name: "pvsync",
        summary: "preadv and pwritev: one system call per operation",
        settings: &[],
        synchronous: true,
        acts_on: ActsOn::Data,
    },
    availability: || Availability::Ready,
    is_inline: |_| true,
    opens: Opens::AsNeeded,
    drive: run_engine::<Pvsync>,
};

/// `preadv` and `pwritev`.
#[derive(Debug)]
pub(super) struct Pvsync {
    targets: Vec<OpenTarget>,
}

impl Engine for Pvsync {
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
            Verb::Read => preadv(target, op),
            Verb::Write => pwritev(target, op),
            _ => other(target, op),
        })
    }
}
