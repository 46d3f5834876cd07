//! Commands to an NVMe drive that this process has for itself, by queues in memory that are polled.
//!
//! In: operations on namespaces, named by the drive's PCI address and their number (`0000:01:00.0/1`); no file is
//! touched. Out: their ends. The drive is taken from the kernel for the run, where that was allowed, and given back.

mod board;
mod command;
mod drive;
mod keeper;
mod queue;
mod simulated;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use weir_run::{Completed, Engine, Submit, Wait};
use weir_schema::catalogue::{ActsOn, EngineInfo};
use weir_sys::{Availability, nvme, vfio::VfioDevice};

use super::{EngineEntry, EngineSetup, Opens, Refused, SlotMemory, Warnings, run_engine, switch};
use crate::op::{BlockOp, Verb};
use board::{Board, DriveMemory, PAGE, PAGE_LENGTH, Reached};
use command::{Command, Ended, FLUSH, GIVES_UP, LASTS, MANAGE, READ, WRITE, halves};
use drive::{Drive, Namespace, OwnQueues};
use keeper::Keeper;
pub use keeper::{KEEPER, keep_drive};
use simulated::SimulatedDrive;

pub(super) const ENTRY: EngineEntry = EngineEntry {
    info: EngineInfo {
        name: "vfio",
        summary: "commands to an NVMe drive that this process has for itself, polled",
        settings: &[
            switch(
                "takeover",
                "false",
                "the drive may be taken from the kernel for the run",
            ),
            switch(
                "write_through",
                "false",
                "a write is over when it is on the medium",
            ),
            switch(
                "simulated",
                "false",
                "a drive of 64 MiB that a thread plays in memory",
            ),
        ],
        synchronous: false,
        acts_on: ActsOn::Memory,
    },
    availability: || Availability::Ready,
    is_inline: |_| false,
    opens: Opens::AsNeeded,
    drive: run_engine::<UserQueue>,
};

/// A queue without an end for so long is given up, with its drive.
const PATIENCE: Duration = Duration::from_secs(30);
/// Looks at a queue, before the loop has its turn.
const LOOKS: u32 = 64;
/// Looks between two looks at the clock.
const CLOCK: u32 = 1 << 14;
/// Words of a list of pages.
const LIST: usize = PAGE_LENGTH / 8;
/// Words of a range of blocks.
const RANGE: usize = 2;

/// Drives that this process has for itself, by their addresses.
static DRIVES: Mutex<Vec<(String, Weak<Drive>)>> = Mutex::new(Vec::new());

/// The drive of an address, taken for the run by whoever comes first.
fn drive(address: &str, simulated: bool) -> io::Result<Arc<Drive>> {
    let mut drives = DRIVES.lock().unwrap_or_else(PoisonError::into_inner);
    drives.retain(|(_, drive)| drive.strong_count() > 0);
    let known = drives.iter().find(|(name, _)| name == address);
    if let Some(drive) = known.and_then(|(_, drive)| drive.upgrade()) {
        return Ok(drive);
    }
    let board = if simulated {
        Board::Simulated(SimulatedDrive::start()?)
    } else {
        let (keeper, group) = Keeper::take(address)?;
        Board::Real {
            device: VfioDevice::open(group, address)?,
            _keeper: keeper,
        }
    };
    let drive = Arc::new(Drive::start(board)?);
    drives.push((address.to_owned(), Arc::downgrade(&drive)));
    Ok(drive)
}

/// Address of a drive and number of its namespace.
fn parts(name: &str) -> Option<(&str, u32)> {
    let (address, number) = name.rsplit_once('/')?;
    Some((address, number.parse().ok()?))
}

/// An operation in flight.
#[derive(Clone, Copy, Debug, Default)]
struct InFlight {
    /// Commands that have not ended.
    left: u32,
    result: i64,
}

/// A worker's queues to a drive.
#[derive(Debug)]
pub(super) struct UserQueue {
    // Queues end before the memory that their commands name.
    own: OwnQueues,
    /// Lists of pages and ranges of blocks, so many words for each command.
    lists: DriveMemory,
    list_words: usize,
    _slots: Reached,
    /// First byte of the slots, for this process and for the drive.
    base: (usize, u64),
    drive: Arc<Drive>,
    namespaces: Vec<Namespace>,
    /// Power of two of the commands of an operation.
    shift: u32,
    lasts: bool,
    in_flight: Box<[InFlight]>,
    fresh: u32,
    looks: u32,
    heard: Instant,
    patience: Duration,
    warnings: Warnings,
}

impl UserQueue {
    fn new(
        drive: Arc<Drive>,
        namespaces: Vec<Namespace>,
        (depth, memory): (u32, SlotMemory),
        lasts: bool,
        warnings: Warnings,
    ) -> io::Result<Self> {
        let least = namespaces.iter().map(|one| one.most).min();
        let least = least.unwrap_or(1) as usize;
        let each = memory.stride.div_ceil(least).max(1).next_power_of_two();
        let shift = each.trailing_zeros();
        let commands = u64::from(depth) << shift;
        let commands = u32::try_from(commands).unwrap_or(u32::MAX);
        let own = drive.queues(commands.saturating_add(1))?;
        let list_words = if memory.stride > PAGE_LENGTH {
            LIST
        } else {
            RANGE
        };
        let bytes = commands as usize * list_words * size_of::<u64>();
        let (slots, at) = Reached::slots(&drive.board, &drive.addresses, memory)?;
        Ok(Self {
            own,
            lists: DriveMemory::new(&drive.board, &drive.addresses, bytes)?,
            list_words,
            _slots: slots,
            base: (memory.base.addr(), at),
            drive,
            namespaces,
            shift,
            lasts,
            in_flight: vec![InFlight::default(); depth as usize].into(),
            fresh: 0,
            looks: 0,
            heard: Instant::now(),
            patience: PATIENCE,
            warnings,
        })
    }

    fn number(&self, slot: u32, piece: u32) -> u16 {
        u16::try_from(slot << self.shift | piece).unwrap_or(u16::MAX)
    }

    /// Words of a command for what does not fit into it, and their address for the drive.
    fn list(&self, number: u16) -> (&[AtomicU64], u64) {
        let first = usize::from(number) * self.list_words;
        let words = self.lists.words.get(first..first + self.list_words);
        (
            words.unwrap_or_default(),
            self.lists.at() + first as u64 * 8,
        )
    }

    /// Addresses of data for a command.
    #[inline]
    fn data(&self, at: u64, length: u32, number: u16) -> [u64; 2] {
        let next = (at / PAGE + 1) * PAGE;
        let end = at + u64::from(length);
        if end <= next {
            return [at, 0];
        }
        if end <= next + PAGE {
            return [at, next];
        }
        let (words, list) = self.list(number);
        let pages = (next..end).step_by(PAGE_LENGTH);
        for (word, page) in words.iter().zip(pages) {
            word.store(page, Ordering::Relaxed);
        }
        [at, list]
    }

    /// Puts the commands of a transfer into the queue.
    #[inline]
    fn transfer(&mut self, slot: u32, op: &BlockOp, to: Namespace) {
        let opcode = if op.verb == Verb::Read { READ } else { WRITE };
        let flags = if self.lasts && opcode == WRITE {
            LASTS
        } else {
            0
        };
        let memory = self.base.1 + (op.buffer.0.addr() - self.base.0) as u64;
        let (mut done, mut piece) = (0, 0);
        while done < op.length {
            let length = (op.length - done).min(to.most);
            let number = self.number(slot, piece);
            let [low, high] = halves((op.offset + u64::from(done)) >> to.shift);
            let command = Command {
                opcode,
                namespace: to.number,
                data: self.data(memory + u64::from(done), length, number),
                words10: [low, high, ((length >> to.shift) - 1) | flags, 0],
            };
            self.own.queues.put(&command, number);
            done += length;
            piece += 1;
        }
    }

    /// Takes the end of a command; that of its operation, if it was the last one.
    #[inline]
    fn end(&mut self, ended: Ended) -> Option<Completed> {
        let slot = u32::from(ended.number()) >> self.shift;
        let in_flight = self.in_flight.get_mut(slot as usize)?;
        in_flight.left = in_flight.left.saturating_sub(1);
        if ended.status() != 0 {
            in_flight.result = -i64::from(libc::EIO);
            let words = nvme::status_text(ended.status() & 0x7FF);
            let cause = format!("The drive ended commands with {words}.");
            self.warnings.add("drive-status", cause);
        }
        (in_flight.left == 0).then_some(Completed {
            slot,
            result: in_flight.result,
        })
    }

    /// Nothing has ended. Now and then the clock says whether that has been for too long.
    fn look_at_clock(&mut self) -> io::Result<()> {
        if matches!(*self.drive.board, Board::Simulated(_)) {
            // Its thread may need this CPU.
            std::thread::yield_now();
        }
        self.looks += 1;
        if !self.looks.is_multiple_of(CLOCK / LOOKS) {
            return Ok(());
        }
        if self.own.queues.in_flight() == 0 || self.looks == CLOCK / LOOKS {
            self.looks = CLOCK / LOOKS;
            self.heard = Instant::now();
        }
        if self.heard.elapsed() < self.patience {
            return Ok(());
        }
        self.drive.lose();
        let why = format!(
            "the drive has ended no command for {} s and is given up",
            self.patience.as_secs()
        );
        Err(Refused::error(&Errno::TIMEDOUT.into(), &why))
    }
}

impl Engine for UserQueue {
    type Op = BlockOp;
    type Setup = EngineSetup;
    const QUICK: bool = true;

    fn attach(setup: EngineSetup) -> io::Result<Self> {
        let simulated = setup.choice.flag("simulated", false);
        let refuse = |why: String| Refused::error(&Errno::INVAL.into(), &why);
        if !simulated && !setup.choice.flag("takeover", false) {
            let why = "the drive would be taken from the kernel, which nobody has allowed \
                       (`weir nvme-perf --takeover`)";
            return Err(Refused::error(&Errno::PERM.into(), why));
        }
        let (mut of_all, mut namespaces) = (None, Vec::new());
        for name in &setup.names {
            let (address, number) = parts(name).ok_or_else(|| {
                refuse(format!(
                    "{name} is no namespace of a drive, as 0000:01:00.0/1"
                ))
            })?;
            if of_all.as_ref().is_some_and(|(own, _)| own != address) {
                return Err(refuse("a job has namespaces of one drive".to_owned()));
            }
            let fail = |error: &io::Error| Refused::error(error, &format!("cannot use {name}"));
            let drive = match of_all.take() {
                Some((_, drive)) => drive,
                None => drive(address, simulated).map_err(|e| fail(&e))?,
            };
            namespaces.push(drive.namespace(number).map_err(|e| fail(&e))?);
            of_all = Some((address.to_owned(), drive));
        }
        let Some((address, drive)) = of_all else {
            return Err(refuse("no namespace is named".to_owned()));
        };
        let sizes = (setup.depth, setup.memory);
        let lasts = setup.choice.flag("write_through", false);
        Self::new(drive, namespaces, sizes, lasts, setup.warnings)
            .map_err(|e| Refused::error(&e, &format!("cannot use {address}")))
    }

    #[inline]
    fn submit(&mut self, slot: u32, op: &BlockOp) -> Submit {
        let Some(&to) = self.namespaces.get(op.target as usize) else {
            return Submit::Done(-i64::from(libc::EBADF));
        };
        let length = op.length;
        let odd = (op.offset | u64::from(length)) & ((1 << to.shift) - 1) != 0;
        let commands = match op.verb {
            Verb::Read | Verb::Write | Verb::Trim if length == 0 || odd => {
                return Submit::Done(-i64::from(libc::EINVAL));
            }
            Verb::Read | Verb::Write if length <= to.most => 1,
            Verb::Read | Verb::Write => length.div_ceil(to.most),
            Verb::Trim | Verb::Sync | Verb::DataSync => 1,
            Verb::RangeSync => return Submit::Done(-i64::from(libc::EOPNOTSUPP)),
        };
        if self.own.queues.room() < commands {
            return Submit::Full;
        }
        let Some(in_flight) = self.in_flight.get_mut(slot as usize) else {
            return Submit::Done(-i64::from(libc::EBADF));
        };
        *in_flight = InFlight {
            left: commands,
            result: length.into(),
        };
        let number = self.number(slot, 0);
        let mut other = Command {
            opcode: FLUSH,
            namespace: to.number,
            ..Command::default()
        };
        match op.verb {
            Verb::Read | Verb::Write => {
                self.transfer(slot, op, to);
                self.fresh += 1;
                return Submit::Queued;
            }
            Verb::Trim => {
                let (words, list) = self.list(number);
                let range = [u64::from(length >> to.shift) << 32, op.offset >> to.shift];
                for (word, value) in words.iter().zip(range) {
                    word.store(value, Ordering::Relaxed);
                }
                other.opcode = MANAGE;
                other.data = [list, 0];
                other.words10 = [0, GIVES_UP, 0, 0];
            }
            _ => {}
        }
        self.own.queues.put(&other, number);
        self.fresh += 1;
        Submit::Queued
    }

    #[inline]
    fn commit(&mut self) -> io::Result<u32> {
        self.own.queues.ring();
        Ok(std::mem::take(&mut self.fresh))
    }

    #[inline]
    fn reap(&mut self, wait: Wait, mut done: impl FnMut(Completed)) -> io::Result<u32> {
        let (mut ended, mut taken) = (0, 0);
        let mut looks = LOOKS;
        while ended < wait.at_most {
            if let Some(end) = self.own.queues.take() {
                taken += 1;
                if let Some(completed) = self.end(end) {
                    ended += 1;
                    done(completed);
                }
                continue;
            }
            looks -= 1;
            if ended >= wait.at_least || looks == 0 {
                break;
            }
            std::hint::spin_loop();
        }
        if taken > 0 {
            self.own.queues.ring_taken();
            self.looks = 0;
        } else {
            self.look_at_clock()?;
        }
        Ok(ended)
    }
}
