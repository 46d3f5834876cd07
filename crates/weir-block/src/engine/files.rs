//! Files as a whole: an operation makes one, looks at one or removes one, by its name.
//!
//! In: operations; each names a file, and its offset and length only say how often a file comes
//! round. Out: their length once the call succeeded, so that reports count operations as they
//! count blocks. Not here: making the files that are looked at or removed (layout).

use std::io;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, lstat, open, stat, statx, unlink};
use rustix::io::Errno;
use weir_run::{Engine, Submit};
use weir_schema::EngineChoice;
use weir_schema::catalogue::{ActsOn, EngineInfo, NameUse, SettingInfo, SettingKind};
use weir_sys::Availability;

use super::calls::answer;
use super::{EngineEntry, EngineSetup, FileName, Opens, run_engine};
use crate::op::BlockOp;

/// Mode of files that the engine makes, before the umask.
const NEW_FILE: u32 = 0o600;

const fn info(
    name: &'static str,
    summary: &'static str,
    settings: &'static [SettingInfo],
    usage: NameUse,
) -> EngineInfo {
    EngineInfo {
        name,
        summary,
        settings,
        synchronous: true,
        acts_on: ActsOn::Names(usage),
    }
}

pub(super) const CREATE: EngineEntry = EngineEntry {
    info: info(
        "filecreate",
        "an operation makes a file, opens and closes it",
        &[],
        NameUse::Makes,
    ),
    availability: || Availability::Ready,
    is_inline: |_| true,
    opens: Opens::AsNeeded,
    drive: run_engine::<WholeFiles<Create>>,
};

pub(super) const STAT: EngineEntry = EngineEntry {
    info: info(
        "filestat",
        "an operation asks for the status of a file",
        &[SettingInfo {
            name: "call",
            value: SettingKind::Word(&["stat", "lstat", "statx"]),
            default: "stat",
            help: "the system call",
        }],
        NameUse::LooksAt,
    ),
    availability: || Availability::Ready,
    is_inline: |_| true,
    opens: Opens::AsNeeded,
    drive: run_engine::<WholeFiles<Stat>>,
};

pub(super) const DELETE: EngineEntry = EngineEntry {
    info: info(
        "filedelete",
        "an operation removes a file",
        &[],
        NameUse::Removes,
    ),
    availability: || Availability::Ready,
    is_inline: |_| true,
    opens: Opens::AsNeeded,
    drive: run_engine::<WholeFiles<Delete>>,
};

/// The system call that an engine makes on a file.
pub(super) trait Act {
    /// From the engine's settings.
    fn chosen(choice: &EngineChoice) -> Self;

    /// Does it, for the block at this offset of the file.
    fn act(&self, file: &FileName, offset: u64) -> Result<(), Errno>;
}

/// `open` with `O_CREAT`, and `close`.
#[derive(Debug)]
pub(super) struct Create;

impl Act for Create {
    fn chosen(_: &EngineChoice) -> Self {
        Self
    }

    fn act(&self, file: &FileName, _: u64) -> Result<(), Errno> {
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC;
        open(&file.path, flags, Mode::from_raw_mode(NEW_FILE)).map(drop)
    }
}

/// `stat`, `lstat` or `statx`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stat {
    Follow,
    Link,
    Extended,
}

impl Act for Stat {
    fn chosen(choice: &EngineChoice) -> Self {
        match choice.text("call") {
            Some("lstat") => Self::Link,
            Some("statx") => Self::Extended,
            _ => Self::Follow,
        }
    }

    fn act(&self, file: &FileName, _: u64) -> Result<(), Errno> {
        match self {
            Self::Follow => stat(&file.path).map(drop),
            Self::Link => lstat(&file.path).map(drop),
            Self::Extended => statx(CWD, &file.path, AtFlags::empty(), StatxFlags::ALL).map(drop),
        }
    }
}

/// `unlink`.
#[derive(Debug)]
pub(super) struct Delete;

impl Act for Delete {
    fn chosen(_: &EngineChoice) -> Self {
        Self
    }

    fn act(&self, file: &FileName, offset: u64) -> Result<(), Errno> {
        // A file of several blocks is gone with the first.
        if offset == file.start {
            unlink(&file.path)
        } else {
            Ok(())
        }
    }
}

/// Does the same to one file after the other.
#[derive(Debug)]
pub(super) struct WholeFiles<A> {
    files: Vec<FileName>,
    act: A,
}

impl<A: Act> Engine for WholeFiles<A> {
    type Op = BlockOp;
    type Setup = EngineSetup;
    const INLINE: bool = true;

    fn attach(setup: EngineSetup) -> io::Result<Self> {
        Ok(Self {
            files: setup.files,
            act: A::chosen(&setup.choice),
        })
    }

    fn submit(&mut self, _slot: u32, op: &BlockOp) -> Submit {
        let done = match self.files.get(op.target as usize) {
            Some(file) => self.act.act(file, op.offset),
            None => Err(Errno::BADF),
        };
        Submit::Done(answer(done.map(|()| op.length as usize)))
    }
}
