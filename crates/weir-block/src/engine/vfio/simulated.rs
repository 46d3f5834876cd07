//! A drive that a thread plays in memory, for tests and to count what the way to a drive costs.
//!
//! In: what is written into its registers and queues. Out: what a drive of one namespace answers. Not here: time:
//! it answers at once.

#![expect(unsafe_code, reason = "memory given by address, as a drive reaches it")]

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use weir_sys::shared_memory::{SharedMemory, SharedWords};

use super::board::{PAGE, PAGE_LENGTH};
use super::command::{
    CREATE_COMPLETION, CREATE_SUBMISSION, DELETE_COMPLETION, DELETE_SUBMISSION, FLUSH, IDENTIFY,
    MANAGE, QUEUES, READ, SET_FEATURE, WORDS, WRITE,
};

/// Bytes of its namespace.
const SIZE: usize = 64 << 20;
const BLOCK: u64 = 512;
const BLOCK_LENGTH: usize = 512;
/// Registers, doorbells behind them.
const REGISTERS: usize = 0x2000;
const BELL: usize = 0x1000 / 4;
const MOST_PAIRS: u32 = 16;

/// A drive.
#[derive(Debug)]
pub(super) struct SimulatedDrive {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    registers: Arc<SharedMemory>,
    /// Memory that it reaches: its own address, the first byte, the length.
    reached: Mutex<Vec<(u64, usize, u64)>>,
    is_over: AtomicBool,
    /// It answers reads and writes no more.
    hangs: AtomicBool,
}

impl SimulatedDrive {
    /// # Errors
    /// There is no memory, or no thread.
    pub(super) fn start() -> io::Result<Self> {
        let (registers, _) =
            SharedMemory::create("weir-drive", REGISTERS).map_err(io::Error::other)?;
        let shared = Arc::new(Shared {
            registers: Arc::new(registers),
            reached: Mutex::default(),
            is_over: AtomicBool::new(false),
            hangs: AtomicBool::new(false),
        });
        // 4096 entries, half a second to come up.
        let able = 4095 | 1 << 16 | 1 << 24;
        shared.registers.word(0).store(able, Ordering::Release);
        let played = Arc::clone(&shared);
        let thread = thread::Builder::new().name("drive".to_owned());
        let thread = thread.spawn(move || Player::new(played).run())?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Its registers.
    pub(super) fn registers(&self) -> Arc<SharedMemory> {
        Arc::clone(&self.shared.registers)
    }

    pub(super) fn map(&self, memory: *mut u8, bytes: u64, at: u64) {
        self.shared
            .reached()
            .push((at, memory.expose_provenance(), bytes));
    }

    pub(super) fn unmap(&self, at: u64) {
        self.shared.reached().retain(|(own, ..)| *own != at);
    }

    #[cfg(test)]
    pub(super) fn hang(&self) {
        self.shared.hangs.store(true, Ordering::Release);
    }
}

impl Drop for SimulatedDrive {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Nobody panics while holding it.
    fn reached(&self) -> MutexGuard<'_, Vec<(u64, usize, u64)>> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out `with` on so many bytes that lie at an address of the drive's, while they stay there.
    fn at<T>(&self, address: u64, bytes: u64, with: impl FnOnce(*mut u8) -> T) -> Option<T> {
        let reached = self.reached();
        let holds =
            |(at, _, length): &&(u64, usize, u64)| *at <= address && address + bytes <= at + length;
        let (at, first, _) = reached.iter().find(holds)?;
        let within = usize::try_from(address - at).ok()?;
        Some(with(std::ptr::with_exposed_provenance_mut(first + within)))
    }

    fn word(&self, address: u64) -> Option<u64> {
        let aligned = address.is_multiple_of(8).then_some(address)?;
        self.at(aligned, 8, |place| {
            // SAFETY: eight bytes of memory that was mapped for the drive, aligned.
            unsafe { AtomicU64::from_ptr(place.cast()) }.load(Ordering::Acquire)
        })
    }

    fn set_word(&self, address: u64, value: u64) {
        self.at(address & !7, 8, |place| {
            // SAFETY: as in `word`.
            unsafe { AtomicU64::from_ptr(place.cast()) }.store(value, Ordering::Release);
        });
    }
}

/// A queue pair from the drive's side.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    commands: u64,
    ends: u64,
    entries: u32,
    head: u32,
    tail: u32,
    round: u32,
}

struct Player {
    shared: Arc<Shared>,
    registers: SharedWords<AtomicU32>,
    pairs: Vec<Pair>,
    data: Vec<u8>,
    is_on: bool,
}

/// Status of a field that is not understood.
const INVALID: u16 = 2;
const OUT_OF_RANGE: u16 = 0x80;

impl Player {
    fn new(shared: Arc<Shared>) -> Self {
        Self {
            registers: SharedWords::at(&shared.registers, 0, REGISTERS / 4),
            shared,
            pairs: Vec::new(),
            data: vec![0; SIZE],
            is_on: false,
        }
    }

    fn run(mut self) {
        while !self.shared.is_over.load(Ordering::Acquire) {
            self.switch();
            for number in 0..self.pairs.len() {
                self.serve(number);
            }
            std::hint::spin_loop();
        }
    }

    fn long(&self, word: usize) -> u64 {
        let half = |word: usize| u64::from(self.registers[word].load(Ordering::Acquire));
        half(word) | half(word + 1) << 32
    }

    /// Follows the switch.
    fn switch(&mut self) {
        let switch = self.registers[5].load(Ordering::Acquire);
        let is_on = switch & 1 != 0;
        if is_on != self.is_on {
            self.is_on = is_on;
            self.pairs.clear();
            for bell in &self.registers[BELL..] {
                bell.store(0, Ordering::Release);
            }
            if is_on {
                self.pairs.push(Pair {
                    commands: self.long(10),
                    ends: self.long(12),
                    entries: (self.registers[9].load(Ordering::Acquire) & 0xFFF) + 1,
                    ..Pair::default()
                });
            }
        }
        let went_off = if switch >> 14 & 3 == 1 { 2 << 2 } else { 0 };
        self.registers[7].store(u32::from(is_on) | went_off, Ordering::Release);
    }

    /// Carries out what is in a queue.
    fn serve(&mut self, number: usize) {
        let tail = self.registers[BELL + 2 * number].load(Ordering::Acquire);
        while let Some(mut pair) = self.pairs.get(number).copied() {
            if pair.head == tail || pair.entries == 0 {
                return;
            }
            if number > 0 && self.shared.hangs.load(Ordering::Acquire) {
                return;
            }
            let at = pair.commands + u64::from(pair.head) * WORDS as u64 * 8;
            let words: [u64; WORDS] =
                std::array::from_fn(|word| self.shared.word(at + word as u64 * 8).unwrap_or(0));
            pair.head = (pair.head + 1) % pair.entries;
            let (result, status) = if number == 0 {
                self.manage(&words)
            } else {
                (0, self.transfer(&words))
            };
            let phase = u64::from(pair.round.is_multiple_of(2));
            let end = pair.ends + u64::from(pair.tail) * 16;
            let command = words[0] >> 16 & 0xFFFF;
            self.shared.set_word(end, result.into());
            let last = u64::from(pair.head) | command << 32 | phase << 48 | u64::from(status) << 49;
            self.shared.set_word(end + 8, last);
            pair.tail = (pair.tail + 1) % pair.entries;
            pair.round += u32::from(pair.tail == 0);
            if let Some(own) = self.pairs.get_mut(number) {
                *own = pair;
            }
        }
    }

    /// Carries out a command of the management.
    fn manage(&mut self, words: &[u64; WORDS]) -> (u32, u16) {
        let [opcode, ..] = words[0].to_le_bytes();
        #[expect(clippy::cast_possible_truncation, reason = "halves")]
        let [first, second] = [words[5] as u32, (words[5] >> 32) as u32];
        let pair = (first & 0xFFFF) as usize;
        match opcode {
            IDENTIFY => (0, self.identify(words[3], first & 0xFF)),
            SET_FEATURE if first & 0xFF == QUEUES => ((MOST_PAIRS - 1) << 16 | (MOST_PAIRS - 1), 0),
            CREATE_COMPLETION if pair > 0 && pair <= MOST_PAIRS as usize => {
                let pairs = self.pairs.len().max(pair + 1);
                self.pairs.resize(pairs, Pair::default());
                self.pairs[pair] = Pair {
                    ends: words[3],
                    ..Pair::default()
                };
                (0, 0)
            }
            CREATE_SUBMISSION if self.pairs.get(pair).is_some_and(|one| one.ends != 0) => {
                if (second >> 16) as usize != pair {
                    return (0, INVALID);
                }
                self.registers[BELL + 2 * pair].store(0, Ordering::Release);
                let own = &mut self.pairs[pair];
                own.commands = words[3];
                own.entries = (first >> 16) + 1;
                (0, 0)
            }
            DELETE_SUBMISSION if pair < self.pairs.len() => {
                self.pairs[pair].entries = 0;
                (0, 0)
            }
            DELETE_COMPLETION if pair < self.pairs.len() => {
                self.pairs[pair] = Pair::default();
                (0, 0)
            }
            _ => (0, INVALID),
        }
    }

    fn identify(&self, to: u64, which: u32) -> u16 {
        for word in 0..PAGE / 8 {
            self.shared.set_word(to + word * 8, 0);
        }
        let blocks = SIZE as u64 / BLOCK;
        match which {
            // Blocks of 2^9 bytes.
            0 => {
                [(0, blocks), (128, 9 << 16)].map(|(at, word)| self.shared.set_word(to + at, word))
            }
            // 2^5 pages in a command, byte 77.
            _ => [(72, 5 << 40), (0, 0)].map(|(at, word)| self.shared.set_word(to + at, word)),
        };
        0
    }

    /// Carries out a read or a write.
    fn transfer(&mut self, words: &[u64; WORDS]) -> u16 {
        let [opcode, ..] = words[0].to_le_bytes();
        if [FLUSH, MANAGE].contains(&opcode) {
            return 0;
        }
        let begin = usize::try_from(words[5] * BLOCK).unwrap_or(SIZE);
        let bytes = (usize::try_from(words[6] & 0xFFFF).unwrap_or(0) + 1) * BLOCK_LENGTH;
        let Some(data) = self.data.get_mut(begin..begin + bytes) else {
            return OUT_OF_RANGE;
        };
        let page = PAGE_LENGTH;
        let within = usize::try_from(words[3] % PAGE).unwrap_or(0);
        let pages = (within + bytes).div_ceil(page);
        let mut done = 0;
        for number in 0..pages {
            let address = match number {
                0 => Some(words[3]),
                1 if pages == 2 => Some(words[4]),
                _ => self.shared.word(words[4] + (number as u64 - 1) * 8),
            };
            let length = (page - if number == 0 { within } else { 0 }).min(bytes - done);
            let part = &mut data[done..done + length];
            let moved = address.and_then(|address| {
                self.shared.at(address, length as u64, |place| {
                    if opcode == READ {
                        // SAFETY: memory that was mapped for the drive, which a command names for its data.
                        unsafe { place.copy_from_nonoverlapping(part.as_ptr(), length) };
                    } else {
                        // SAFETY: as above.
                        unsafe { place.copy_to_nonoverlapping(part.as_mut_ptr(), length) };
                    }
                })
            });
            if moved.is_none() || ![READ, WRITE].contains(&opcode) {
                return INVALID;
            }
            done += length;
        }
        0
    }
}
