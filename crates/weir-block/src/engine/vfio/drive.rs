//! A drive that this process has for itself: switched on, asked about itself, its queues made.
//!
//! In: a board. Out: pairs of queues, facts of namespaces. Not here: reads and writes.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use weir_sys::nvme::status_text;
use weir_sys::shared_memory::{SharedMemory, SharedWords};

use super::board::{Addresses, Board, DriveMemory, PAGE, PAGE_LENGTH};
use super::command::{
    CREATE_COMPLETION, CREATE_SUBMISSION, Command, DELETE_COMPLETION, DELETE_SUBMISSION, IDENTIFY,
    QUEUES, SET_FEATURE,
};
use super::queue::QueuePair;

/// Registers, as numbers of their words.
const ABLE: usize = 0;
const SWITCH: usize = 5;
const STATE: usize = 7;
const ADMIN_LENGTHS: usize = 9;
const ADMIN_COMMANDS: usize = 10;
const ADMIN_ENDS: usize = 12;
/// Words of registers that are used.
const WORDS: usize = 16;
/// On; commands of 64 bytes, ends of 16.
const ON: u32 = 1 | 6 << 16 | 4 << 20;
const GOES_OFF: u32 = 1 << 14;
const READY: u32 = 1;
const FATAL: u32 = 1 << 1;
const WENT_OFF: u32 = 2 << 2;
const ADMIN_ENTRIES: u32 = 32;
/// Longest wait for a command that is not a read or write.
const LONGEST: Duration = Duration::from_secs(10);
/// Pairs of queues that are asked for.
const PAIRS: u32 = 128;
/// The longest transfer whose pages stand in a list of one page.
const MOST_BYTES: u64 = 256 * PAGE;

/// A drive.
#[derive(Debug)]
pub(super) struct Drive {
    registers: SharedWords<AtomicU32>,
    bells: Arc<SharedMemory>,
    /// Bytes between doorbells.
    distance: usize,
    /// Most entries of a queue.
    entries: u32,
    patience: Duration,
    admin: Mutex<Admin>,
    /// Nothing more is to be had from it.
    is_lost: AtomicBool,
    pub(super) addresses: Addresses,
    pub(super) board: Arc<Board>,
}

#[derive(Debug)]
struct Admin {
    queues: QueuePair,
    answer: DriveMemory,
    /// Pairs that there may be.
    pairs: u16,
    /// By number less one.
    used: Vec<bool>,
    /// Bytes of the longest command.
    most: u64,
}

/// Facts of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Namespace {
    pub(super) number: u32,
    /// Power of two of the bytes of a block.
    pub(super) shift: u32,
    pub(super) blocks: u64,
    /// Bytes of the longest command.
    pub(super) most: u32,
}

/// A pair of queues with its number, unmade when dropped.
#[derive(Debug)]
pub(super) struct OwnQueues {
    pub(super) queues: QueuePair,
    number: u16,
    drive: Arc<Drive>,
}

impl Drive {
    /// Switches a drive on.
    ///
    /// # Errors
    /// It does not come up, or cannot do what is needed.
    pub(super) fn start(board: Board) -> io::Result<Self> {
        let (board, addresses) = (Arc::new(board), Addresses::default());
        let bells = board.registers()?;
        if bells.len() < 0x1000 {
            return Err(io::Error::other("the drive has too few registers"));
        }
        let registers: SharedWords<AtomicU32> = SharedWords::at(&bells, 0, WORDS);
        let read = |word: usize| registers[word].load(Ordering::Acquire);
        let (low, high) = (read(ABLE), read(ABLE + 1));
        if low == u32::MAX {
            return Err(io::Error::other("the drive does not answer"));
        }
        if high >> 16 & 0xF != 0 {
            return Err(io::Error::other("the drive takes no pages of 4 KiB"));
        }
        let patience = Duration::from_millis(u64::from(low >> 24).max(1) * 500);
        let distance = 4_usize << (high & 0xF);
        let parts = (&board, &addresses);
        let queues = QueuePair::new(parts, &bells, (0, distance), ADMIN_ENTRIES)?;
        let answer = DriveMemory::new(&board, &addresses, PAGE_LENGTH)?;
        let admin = Admin {
            queues,
            answer,
            pairs: 0,
            used: Vec::new(),
            most: MOST_BYTES,
        };
        let drive = Self {
            registers,
            bells,
            distance,
            entries: (low & 0xFFFF) + 1,
            patience,
            admin: Mutex::new(admin),
            is_lost: AtomicBool::new(false),
            addresses,
            board,
        };
        drive.switch_on()?;
        Ok(drive)
    }

    fn switch_on(&self) -> io::Result<()> {
        self.write(SWITCH, 0);
        self.wait_until(READY, 0)?;
        let mut admin = self.admin();
        let lengths = (ADMIN_ENTRIES - 1) << 16 | (ADMIN_ENTRIES - 1);
        self.write(ADMIN_LENGTHS, lengths);
        self.write_long(ADMIN_COMMANDS, admin.queues.commands.at());
        self.write_long(ADMIN_ENDS, admin.queues.ends.at());
        self.write(SWITCH, ON);
        self.wait_until(READY, READY)?;
        let identify = Command {
            opcode: IDENTIFY,
            words10: [1, 0, 0, 0],
            ..Command::default()
        };
        admin.ask(identify)?;
        // A power of two of pages; 0: no bound.
        let [power] = admin.bytes(77);
        if power > 0 {
            let bound = PAGE.checked_shl(power.into()).unwrap_or(u64::MAX);
            admin.most = admin.most.min(bound.max(PAGE));
        }
        let feature = Command {
            opcode: SET_FEATURE,
            words10: [QUEUES, (PAIRS - 1) << 16 | (PAIRS - 1), 0, 0],
            ..Command::default()
        };
        let given = admin.ask(feature)?;
        let pairs = (given & 0xFFFF).min(given >> 16).min(PAIRS - 1) + 1;
        admin.pairs = u16::try_from(pairs).unwrap_or(1);
        Ok(())
    }

    fn write(&self, word: usize, value: u32) {
        self.registers[word].store(value, Ordering::Release);
    }

    fn write_long(&self, word: usize, value: u64) {
        #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
        self.write(word, value as u32);
        self.write(word + 1, u32::try_from(value >> 32).unwrap_or(0));
    }

    fn state(&self) -> u32 {
        self.registers[STATE].load(Ordering::Acquire)
    }

    fn wait_until(&self, mask: u32, wanted: u32) -> io::Result<()> {
        let begin = Instant::now();
        loop {
            let state = self.state();
            if state == u32::MAX {
                return Err(io::Error::other("the drive is gone"));
            }
            if state & mask == wanted {
                return Ok(());
            }
            if state & FATAL != 0 {
                return Err(io::Error::other("the drive has failed (CSTS.CFS)"));
            }
            if begin.elapsed() > self.patience {
                return Err(io::Error::other(
                    "the drive does not come up in its own time",
                ));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Nobody panics while holding it.
    fn admin(&self) -> MutexGuard<'_, Admin> {
        self.admin.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Facts of a namespace.
    ///
    /// # Errors
    /// There is none of this number, or its blocks carry metadata.
    pub(super) fn namespace(&self, number: u32) -> io::Result<Namespace> {
        let mut admin = self.admin();
        let identify = Command {
            opcode: IDENTIFY,
            namespace: number,
            ..Command::default()
        };
        admin.ask(identify)?;
        let blocks = u64::from_le_bytes(admin.bytes(0));
        let [format] = admin.bytes(26);
        let [low, high, power, _] = admin.bytes(128 + 4 * usize::from(format & 0xF));
        let why = match (blocks, u16::from_le_bytes([low, high]), power) {
            (0, ..) => "has no blocks: the drive has no active namespace of this number",
            (_, 1.., _) => "is formatted with metadata, which is not passed here",
            (.., 0..9 | 17..) => "has blocks of a size that is not taken here",
            _ => {
                let most = u32::try_from(admin.most).unwrap_or(u32::MAX);
                return Ok(Namespace {
                    number,
                    shift: power.into(),
                    blocks,
                    most: most.max(1 << power),
                });
            }
        };
        Err(io::Error::other(format!("namespace {number} {why}")))
    }

    /// A pair of queues of at least so many entries.
    ///
    /// # Errors
    /// The drive has no more, or none so long.
    pub(super) fn queues(self: &Arc<Self>, entries: u32) -> io::Result<OwnQueues> {
        let entries = entries.max(2);
        if entries > self.entries {
            let why = format!(
                "a queue of the drive has {} entries, and {entries} are needed",
                self.entries
            );
            return Err(io::Error::other(why));
        }
        let mut admin = self.admin();
        let free = admin.used.iter().position(|used| !used);
        let index = free.unwrap_or(admin.used.len());
        let number = u16::try_from(index + 1).unwrap_or(u16::MAX);
        if number > admin.pairs {
            let why = format!("the drive has {} pairs of queues, and no more", admin.pairs);
            return Err(io::Error::other(why));
        }
        let parts = (&self.board, &self.addresses);
        let queues = QueuePair::new(parts, &self.bells, (number, self.distance), entries)?;
        let length = (entries - 1) << 16 | u32::from(number);
        let create = |opcode, at, flags| Command {
            opcode,
            data: [at, 0],
            words10: [length, flags, 0, 0],
            ..Command::default()
        };
        // In one piece, without interrupts.
        admin.order(create(CREATE_COMPLETION, queues.ends.at(), 1))?;
        let flags = u32::from(number) << 16 | 1;
        if let Err(error) = admin.order(create(CREATE_SUBMISSION, queues.commands.at(), flags)) {
            // The error that came first is told; the number is not given out as used.
            let _ = admin.order(delete(DELETE_COMPLETION, number));
            return Err(error);
        }
        if index == admin.used.len() {
            admin.used.push(true);
        } else {
            admin.used[index] = true;
        }
        drop(admin);
        Ok(OwnQueues {
            queues,
            number,
            drive: Arc::clone(self),
        })
    }

    /// Gives it up: it is switched off hard, so that it reaches no memory any more.
    pub(super) fn lose(&self) {
        if !self.is_lost.swap(true, Ordering::AcqRel) {
            self.write(SWITCH, 0);
            // A drive that does not go off is gone, or behind the IOMMU all the same.
            let _ = self.wait_until(READY, 0);
        }
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        if !self.is_lost() {
            self.write(SWITCH, ON | GOES_OFF);
            // One that takes too long is switched off hard.
            let _ = self.wait_until(3 << 2, WENT_OFF);
            self.lose();
        }
    }
}

const fn delete(opcode: u8, number: u16) -> Command {
    Command {
        opcode,
        namespace: 0,
        data: [0; 2],
        words10: [number as u32, 0, 0, 0],
    }
}

impl Drop for OwnQueues {
    fn drop(&mut self) {
        if self.drive.is_lost() {
            return;
        }
        let mut admin = self.drive.admin();
        let gone = [DELETE_SUBMISSION, DELETE_COMPLETION]
            .map(|opcode| admin.order(delete(opcode, self.number)).is_ok());
        if gone == [true; 2] {
            admin.used[usize::from(self.number) - 1] = false;
            return;
        }
        drop(admin);
        // The drive may still write into memory that goes now.
        self.drive.lose();
    }
}

impl Admin {
    /// Carries out a command that answers with a page.
    fn ask(&mut self, mut command: Command) -> io::Result<u32> {
        command.data = [self.answer.at(), 0];
        self.order(command)
    }

    /// Carries out a command; its result.
    fn order(&mut self, command: Command) -> io::Result<u32> {
        self.queues.put(&command, 0);
        self.queues.ring();
        let begin = Instant::now();
        loop {
            if let Some(ended) = self.queues.take() {
                self.queues.ring_taken();
                return match ended.status() & 0x7FF {
                    0 => Ok(self.queues.result()),
                    status => {
                        let why = format!("the drive refused: {}", status_text(status));
                        Err(io::Error::other(why))
                    }
                };
            }
            if begin.elapsed() > LONGEST {
                return Err(io::Error::other("the drive does not answer a command"));
            }
            std::hint::spin_loop();
        }
    }

    /// Bytes of the answer.
    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        std::array::from_fn(|number| {
            let at = at + number;
            self.answer.words[at / 8]
                .load(Ordering::Relaxed)
                .to_le_bytes()[at % 8]
        })
    }
}
