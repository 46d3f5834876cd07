//! Commands to an NVMe namespace through the kernel's rings, past its block layer (`/dev/ng0n1`).
//!
//! In: operations; each becomes a command of the drive, or several where it is longer than one may be. Out: their
//! ends: an operation is over with its last command. Not here: the rings ([`super::rings`]).

use std::io;
use std::os::fd::AsRawFd;

use rustix::io::Errno;
use rustix::io_uring::{IoringOp, IoringSetupFlags, IoringSqeFlags};
use weir_run::{Completed, Engine, Submit, Wait};
use weir_schema::Setting;
use weir_schema::catalogue::{ActsOn, EngineInfo, SettingInfo, SettingKind};
use weir_sys::device::generic_namespace;
use weir_sys::mounts::DevId;
use weir_sys::{Tree, nvme};

use super::rings::{EntryHead, RingEvent, Rings};
use super::{MOST_ENTRIES, availability, build, not_taken, not_waited, register};
use crate::engine::{
    EngineEntry, EngineSetup, OpenTarget, Opens, Refused, Warnings, run_engine, switch,
};
use crate::op::{BlockOp, Verb};

/// Name of the engine.
pub(crate) const NAME: &str = "io_uring_cmd";

pub(in crate::engine) const ENTRY: EngineEntry = EngineEntry {
    info: EngineInfo {
        name: NAME,
        summary: "commands to an NVMe drive through the kernel's rings, past its block layer",
        settings: &[
            switch(
                "registered_buffers",
                "true",
                "the kernel maps the buffers once",
            ),
            switch(
                "registered_files",
                "true",
                "the kernel looks the targets up once",
            ),
            switch(
                "polled",
                "false",
                "the drive is polled; its driver needs queues for that",
            ),
            SettingInfo {
                name: "command_type",
                value: SettingKind::Word(&["nvme"]),
                default: "nvme",
                help: "the language of the commands",
            },
        ],
        synchronous: false,
        acts_on: ActsOn::Data,
    },
    availability,
    is_inline: |_| false,
    opens: Opens::AsNeeded,
    drive: run_engine::<CommandRing>,
};

/// A submission entry of twice the usual size, with a command behind it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CommandEntry {
    head: EntryHead,
    /// Number of the call that would carry the command out.
    call: u32,
    unused: [u32; 4],
    flags: u32,
    data: u64,
    buffer: u16,
    personality: u16,
    other_file: u32,
    command: Command,
    rest: u64,
}

/// A command, `struct nvme_uring_cmd` of the kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Command {
    opcode: u8,
    flags: u8,
    unused: u16,
    namespace: u32,
    words2: [u32; 2],
    metadata: u64,
    memory: u64,
    metadata_length: u32,
    length: u32,
    words10: [u32; 6],
    timeout_ms: u32,
    unused_end: u32,
}

/// A completion entry of twice the usual size.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandEvent {
    event: RingEvent,
    result: [u64; 2],
}

const _: () = assert!(size_of::<Command>() == 72);
const _: () = assert!(size_of::<CommandEntry>() == 128);
const _: () = assert!(size_of::<CommandEvent>() == 32);

/// `NVME_URING_CMD_IO`.
const CALL: u32 = 0xC048_4E80;
/// `IORING_URING_CMD_FIXED`.
const FIXED: u32 = 1;
/// Setup flags of entries and events of twice the usual size.
const WIDE: IoringSetupFlags = IoringSetupFlags::SQE128.union(IoringSetupFlags::CQE32);
pub(in crate::engine) const FLUSH: u8 = 0;
pub(in crate::engine) const WRITE: u8 = 1;
pub(in crate::engine) const READ: u8 = 2;
pub(in crate::engine) const MANAGE: u8 = 9;
/// Bit of a write that lasts when it ends.
pub(in crate::engine) const LASTS: u32 = 1 << 30;
/// Bit of blocks whose content is given up.
pub(in crate::engine) const GIVES_UP: u32 = 1 << 2;

/// A namespace, and what a command to it may be.
#[derive(Clone, Copy, Debug)]
struct Namespace {
    number: u32,
    /// Bytes of a block.
    block: u64,
    /// Bytes of the longest command.
    most: u32,
    /// Writes last when they end.
    lasts: bool,
}

impl Namespace {
    fn of(target: &OpenTarget, name: &str, polled: bool) -> io::Result<Self> {
        let device = DevId::from_raw(rustix::fs::fstat(&target.file)?.st_rdev);
        let Some(facts) = generic_namespace(&Tree::real(), device) else {
            let what = "takes no NVMe commands: name a drive's generic device, as /dev/ng0n1";
            return Err(Refused::error(
                &Errno::INVAL.into(),
                &format!("{name} {what}"),
            ));
        };
        if polled && facts.has_polling == Some(false) {
            let what = "has no queues to poll: load its driver with some, as nvme.poll_queues=1";
            return Err(Refused::error(
                &Errno::OPNOTSUPP.into(),
                &format!("{name} {what}"),
            ));
        }
        let number = nvme::namespace_number(&target.file)
            .map_err(|errno| Refused::error(&errno.into(), "cannot ask for the namespace"))?;
        let block = facts.logical_block.map_or(512, |bytes| bytes.0.max(1));
        let most = facts.max_request.map_or(128 << 10, |bytes| bytes.0);
        let flags = rustix::fs::fcntl_getfl(&target.file)?;
        Ok(Self {
            number,
            block,
            most: u32::try_from((most / block * block).max(block)).unwrap_or(u32::MAX),
            lasts: flags.bits() & libc::O_DSYNC.cast_unsigned() != 0,
        })
    }
}

/// A list of one range of blocks, for commands that manage them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Range {
    attributes: u32,
    blocks: u32,
    first: u64,
}

/// An operation in flight.
#[derive(Clone, Copy, Debug, Default)]
struct InFlight {
    /// Commands that have not ended.
    left: u32,
    result: i64,
    range: Range,
}

/// Rings of commands.
pub(super) struct CommandRing {
    rings: Rings<CommandEntry, CommandEvent>,
    targets: Vec<(OpenTarget, Namespace)>,
    fixed_buffers: bool,
    fixed_files: bool,
    polled: bool,
    /// By slot.
    slots: Box<[InFlight]>,
    /// Operations that were not handed over.
    fresh: u32,
    warnings: Warnings,
}

impl std::fmt::Debug for CommandRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommandRing").finish_non_exhaustive()
    }
}

impl CommandRing {
    /// Waits for the ends of commands, a signal or the end of the time.
    fn wait(&self, at_least: u32, timeout_ns: Option<u64>) -> io::Result<()> {
        let waited = match timeout_ns {
            None => self.rings.wait(at_least),
            // A polled ring cannot wait for a time.
            Some(_) if self.polled => self.rings.wait(0),
            Some(nanos) => self.rings.wait_timed(at_least, nanos),
        };
        if waited < 0 {
            return not_waited(waited);
        }
        Ok(())
    }

    fn offer(&mut self, slot: u32, target: u32, command: Command) {
        let (file, flags) = if self.fixed_files {
            (target.cast_signed(), IoringSqeFlags::FIXED_FILE.bits())
        } else {
            (self.targets[target as usize].0.file.as_raw_fd(), 0)
        };
        let is_fixed = self.fixed_buffers && matches!(command.opcode, READ | WRITE);
        let place = self.rings.next_place();
        *self.rings.entry(place) = CommandEntry {
            head: EntryHead {
                opcode: IoringOp::UringCmd as u8,
                flags,
                priority: 0,
                file,
            },
            call: CALL,
            flags: if is_fixed { FIXED } else { 0 },
            data: slot.into(),
            buffer: if is_fixed {
                u16::try_from(slot).unwrap_or(u16::MAX)
            } else {
                0
            },
            command,
            ..CommandEntry::default()
        };
        self.rings.offer(place);
    }

    /// Offers the commands of a transfer.
    fn transfer(&mut self, slot: u32, op: &BlockOp, to: Namespace) {
        let opcode = if op.verb == Verb::Read { READ } else { WRITE };
        let memory = op.buffer.0.expose_provenance() as u64;
        let mut at = 0;
        while at < op.length {
            let length = (op.length - at).min(to.most);
            let [low, high] = halves((op.offset + u64::from(at)) / to.block);
            let blocks = u32::try_from(u64::from(length) / to.block).unwrap_or(u32::MAX);
            let lasts = if to.lasts && opcode == WRITE {
                LASTS
            } else {
                0
            };
            let command = Command {
                opcode,
                namespace: to.number,
                memory: memory + u64::from(at),
                length,
                words10: [low, high, (blocks - 1) | lasts, 0, 0, 0],
                ..Command::default()
            };
            self.offer(slot, op.target, command);
            at += length;
        }
    }

    /// Takes the end of a command; that of its operation, if it was the last one.
    fn end(&mut self, event: RingEvent) -> Option<Completed> {
        let slot = u32::try_from(event.data).unwrap_or(u32::MAX);
        let in_flight = self.slots.get_mut(slot as usize)?;
        in_flight.left = in_flight.left.saturating_sub(1);
        if event.result != 0 && in_flight.result >= 0 {
            in_flight.result = event.result.min(0).into();
            if let Ok(status) = u16::try_from(event.result) {
                in_flight.result = -i64::from(libc::EIO);
                let cause = format!(
                    "The drive ended commands with {}.",
                    nvme::status_text(status)
                );
                self.warnings.add("drive-status", cause);
            }
        }
        let in_flight = self.slots.get(slot as usize)?;
        (in_flight.left == 0).then_some(Completed {
            slot,
            result: in_flight.result,
        })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "both halves are taken")]
pub(in crate::engine) fn halves(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

impl Engine for CommandRing {
    type Op = BlockOp;
    type Setup = EngineSetup;
    const QUICK: bool = true;

    fn attach(setup: EngineSetup) -> io::Result<Self> {
        let EngineSetup {
            targets,
            names,
            depth,
            memory,
            mut choice,
            warnings,
            ..
        } = setup;
        let polled = choice.flag("polled", false);
        let mut all = Vec::new();
        for (number, target) in targets.iter().enumerate() {
            let name = names.get(number).map_or("the target", String::as_str);
            all.push(Namespace::of(target, name, polled)?);
        }
        let least = all.iter().map(|one| one.most).min().unwrap_or(1).max(1);
        let each = memory.stride.div_ceil(least as usize).max(1);
        let entries = u32::try_from(each).ok();
        let entries = entries.and_then(|each| each.checked_mul(depth));
        let Some(entries) = entries.filter(|entries| *entries <= MOST_ENTRIES) else {
            let reason = format!(
                "{depth} operations of {each} commands: a ring keeps {MOST_ENTRIES} commands at most"
            );
            return Err(Refused::error(&Errno::INVAL.into(), &reason));
        };
        let rings = build(&choice, entries.max(1), WIDE).map_err(|e| {
            let reason = "cannot set a ring of commands up, which Linux 5.19 has";
            Refused::error(&e.into(), reason)
        })?;
        if each > 1 {
            // The kernel counts all pages of a registered buffer as those of the command.
            let off = Setting::Bool(false);
            choice.settings.insert("registered_buffers".to_owned(), off);
        }
        let (fixed_buffers, fixed_files) = register(&rings, &choice, &targets, memory, &warnings);
        Ok(Self {
            rings,
            targets: targets.into_iter().zip(all).collect(),
            fixed_buffers,
            fixed_files,
            polled,
            slots: vec![InFlight::default(); depth as usize].into(),
            fresh: 0,
            warnings,
        })
    }

    fn submit(&mut self, slot: u32, op: &BlockOp) -> Submit {
        let Some(&(_, to)) = self.targets.get(op.target as usize) else {
            return Submit::Done(-i64::from(libc::EBADF));
        };
        let is_whole = |number: u64| number.is_multiple_of(to.block);
        let length = u64::from(op.length);
        let commands = match op.verb {
            Verb::Read | Verb::Write | Verb::Trim
                if length == 0 || !is_whole(op.offset) || !is_whole(length) =>
            {
                return Submit::Done(-i64::from(libc::EINVAL));
            }
            Verb::Read | Verb::Write => op.length.div_ceil(to.most),
            Verb::Trim | Verb::Sync | Verb::DataSync if !self.polled => 1,
            _ => return Submit::Done(-i64::from(libc::EOPNOTSUPP)),
        };
        if self.rings.room() < commands {
            return Submit::Full;
        }
        let Some(in_flight) = self.slots.get_mut(slot as usize) else {
            return Submit::Done(-i64::from(libc::EBADF));
        };
        *in_flight = InFlight {
            left: commands,
            result: length.cast_signed(),
            range: Range {
                attributes: 0,
                blocks: u32::try_from(length / to.block).unwrap_or(u32::MAX),
                first: op.offset / to.block,
            },
        };
        let list = std::ptr::from_ref(&in_flight.range).expose_provenance() as u64;
        let other = Command {
            opcode: FLUSH,
            namespace: to.number,
            ..Command::default()
        };
        match op.verb {
            Verb::Read | Verb::Write => self.transfer(slot, op, to),
            Verb::Trim => {
                let command = Command {
                    opcode: MANAGE,
                    memory: list,
                    length: 16,
                    words10: [0, GIVES_UP, 0, 0, 0, 0],
                    ..other
                };
                self.offer(slot, op.target, command);
            }
            _ => self.offer(slot, op.target, other),
        }
        self.fresh += 1;
        Submit::Queued
    }

    fn commit(&mut self) -> io::Result<u32> {
        // The loop counts operations: those are handed over whose commands all are.
        while self.rings.offered() > 0 {
            let taken = self.rings.hand_over();
            if taken <= 0 {
                return not_taken(taken);
            }
        }
        Ok(std::mem::take(&mut self.fresh))
    }

    fn reap(&mut self, wait: Wait, mut done: impl FnMut(Completed)) -> io::Result<u32> {
        let at_least = wait.at_least.min(wait.at_most);
        let mut ready = self.rings.ready();
        loop {
            if ready < at_least.max(1) {
                self.wait(at_least, wait.timeout_ns)?;
                ready = self.rings.ready();
            }
            let (mut taken, mut ended) = (0, 0);
            while taken < ready && ended < wait.at_most {
                let event = self.rings.event(taken).event;
                taken += 1;
                if let Some(end) = self.end(event) {
                    ended += 1;
                    done(end);
                }
            }
            self.rings.take_events(taken);
            // Commands of operations that have others are the end of none. Without any command it was a
            // signal, or the end of the time.
            if ended > 0 || taken == 0 || at_least == 0 {
                return Ok(ended);
            }
            ready = self.rings.ready();
        }
    }
}

impl Drop for CommandRing {
    /// Waits for what is in flight: the drive must not write into memory that is given back.
    fn drop(&mut self) {
        while self.rings.in_flight() > 0 {
            let wait = Wait {
                at_least: 1,
                at_most: u32::MAX,
                timeout_ns: None,
            };
            if self.reap(wait, |_| ()).is_err() {
                break;
            }
        }
    }
}
