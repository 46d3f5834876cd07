//! `preadv2` and `pwritev2`: one system call per operation, with the kernel's per-call flags.

use std::io;

use rustix::io::ReadWriteFlags;
use weir_run::generate::rng::Rng;
use weir_run::{Engine, Submit};
use weir_schema::EngineChoice;
use weir_schema::catalogue::{ActsOn, EngineInfo};
use weir_sys::Availability;

use super::calls::other;
use super::transfer_calls::{preadv2, pwritev2};
use super::{EngineEntry, EngineSetup, OpenTarget, Opens, number, run_engine, switch};
use crate::op::{BlockOp, Verb};

pub(super) const ENTRY: EngineEntry = EngineEntry {
    info: EngineInfo {
        name: "pvsync2",
        summary: "preadv2 and pwritev2: one system call per operation, with flags for each call",
        settings: &[
            switch(
                "polled",
                "false",
                "the kernel polls the device for the completion",
            ),
            number(
                "polled_percent",
                (0, 100),
                "100",
                "share of the operations that are polled",
            ),
            switch(
                "no_wait",
                "false",
                "an operation that would wait fails with EAGAIN instead",
            ),
            switch(
                "uncached",
                "false",
                "data leaves the page cache when the operation is over",
            ),
        ],
        synchronous: true,
        acts_on: ActsOn::Data,
    },
    availability: || Availability::Ready,
    is_inline: |_| true,
    opens: Opens::AsNeeded,
    drive: run_engine::<Pvsync2>,
};

/// `RWF_DONTCACHE`, since Linux 6.14.
pub(super) const DONT_CACHE: u32 = 0x80;

/// Flags of each read and write that do not change over a run.
pub(super) fn call_flags(choice: &EngineChoice) -> ReadWriteFlags {
    let mut flags = ReadWriteFlags::empty();
    flags.set(ReadWriteFlags::NOWAIT, choice.flag("no_wait", false));
    flags.set(
        ReadWriteFlags::from_bits_retain(DONT_CACHE),
        choice.flag("uncached", false),
    );
    flags
}

/// `preadv2` and `pwritev2`.
#[derive(Debug)]
pub(super) struct Pvsync2 {
    targets: Vec<OpenTarget>,
    flags: ReadWriteFlags,
    /// Share of polled operations, in percent; 0: none.
    polled_percent: u64,
    rng: Rng,
}

impl Pvsync2 {
    /// True if the next operation is polled for.
    #[inline]
    pub(super) fn is_next_polled(&mut self) -> bool {
        match self.polled_percent {
            0 => false,
            100 => true,
            share => self.rng.below(100) < share,
        }
    }

    #[inline]
    fn flags(&mut self) -> libc::c_int {
        let polling = if self.is_next_polled() {
            ReadWriteFlags::HIPRI
        } else {
            ReadWriteFlags::empty()
        };
        (self.flags | polling).bits().cast_signed()
    }
}

impl Engine for Pvsync2 {
    type Op = BlockOp;
    type Setup = EngineSetup;
    const INLINE: bool = true;
    const QUICK: bool = true;

    fn attach(setup: EngineSetup) -> io::Result<Self> {
        let share = setup.choice.number("polled_percent").unwrap_or(100);
        let polled = setup.choice.flag("polled", false);
        Ok(Self {
            flags: call_flags(&setup.choice),
            polled_percent: if polled {
                u64::try_from(share).unwrap_or(0).min(100)
            } else {
                0
            },
            rng: setup.streams.polls(),
            targets: setup.targets,
        })
    }

    #[inline]
    fn submit(&mut self, _slot: u32, op: &BlockOp) -> Submit {
        let flags = self.flags();
        let Some(target) = self.targets.get(op.target as usize) else {
            return Submit::Done(-i64::from(libc::EBADF));
        };
        Submit::Done(match op.verb {
            Verb::Read => preadv2(target, op, flags),
            Verb::Write => pwritev2(target, op, flags),
            _ => other(target, *op),
        })
    }
}
