//! A pair of queues of a drive: commands into one, their ends out of the other.
//!
//! In: commands with numbers. Out: ends in the drive's order. Not here: what commands do.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use weir_sys::shared_memory::{SharedMemory, SharedWords};

use super::board::{Addresses, Board, DriveMemory};
use super::command::{Command, Ended, WORDS};

/// Words of an entry of a completion queue.
const END_WORDS: usize = 2;
/// Offset of the first doorbell.
const DOORBELLS: usize = 0x1000;

/// A pair of queues.
#[derive(Debug)]
pub(super) struct QueuePair {
    pub(super) commands: DriveMemory,
    pub(super) ends: DriveMemory,
    /// Tail of the commands, and head of the ends.
    bells: [SharedWords<AtomicU32>; 2],
    entries: u32,
    tail: u32,
    /// Up to where the drive knows of commands.
    announced: u32,
    head: u32,
    phase: bool,
    in_flight: u32,
}

impl QueuePair {
    /// Queues of so many entries, with the doorbells of a number.
    pub(super) fn new(
        (board, addresses): (&Arc<Board>, &Addresses),
        registers: &Arc<SharedMemory>,
        (number, distance): (u16, usize),
        entries: u32,
    ) -> io::Result<Self> {
        let memory = |words| {
            DriveMemory::new(
                board,
                addresses,
                entries as usize * words * size_of::<u64>(),
            )
        };
        let bell = |which: usize| {
            let at = DOORBELLS + (2 * usize::from(number) + which) * distance;
            let has = at + size_of::<u32>() <= registers.len();
            let lacks = || io::Error::other("the drive's registers end before its doorbells");
            has.then(|| SharedWords::at(registers, at, 1))
                .ok_or_else(lacks)
        };
        Ok(Self {
            commands: memory(WORDS)?,
            ends: memory(END_WORDS)?,
            bells: [bell(0)?, bell(1)?],
            entries,
            tail: 0,
            announced: 0,
            head: 0,
            phase: true,
            in_flight: 0,
        })
    }

    /// Commands that it takes more.
    #[inline]
    pub(super) fn room(&self) -> u32 {
        self.entries - 1 - self.in_flight
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Puts a command into the queue, which has room.
    #[inline]
    pub(super) fn put(&mut self, command: &Command, number: u16) {
        let at = self.tail as usize * WORDS;
        if let Some(entry) = self.commands.words.get(at..at + WORDS) {
            for (place, word) in entry.iter().zip(command.words(number)) {
                place.store(word, Ordering::Relaxed);
            }
        }
        self.tail += 1;
        if self.tail == self.entries {
            self.tail = 0;
        }
        self.in_flight += 1;
    }

    /// Rings the doorbell of what was put.
    #[inline]
    pub(super) fn ring(&mut self) {
        if self.announced != self.tail {
            // The entries are in memory before the drive hears of them.
            fence(Ordering::Release);
            self.bells[0][0].store(self.tail, Ordering::Release);
            self.announced = self.tail;
        }
    }

    /// The next end.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Ended> {
        let place = self
            .ends
            .words
            .get(self.head as usize * END_WORDS + END_WORDS - 1)?;
        let end = Ended(place.load(Ordering::Acquire));
        if end.phase() != self.phase || self.in_flight == 0 {
            return None;
        }
        self.head += 1;
        if self.head == self.entries {
            self.head = 0;
            self.phase = !self.phase;
        }
        self.in_flight -= 1;
        Some(end)
    }

    /// Result of the command whose end was taken last.
    pub(super) fn result(&self) -> u32 {
        let last = self.head.checked_sub(1).unwrap_or(self.entries - 1);
        let word = self.ends.words.get(last as usize * END_WORDS);
        #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
        let result = word.map_or(0, |word| word.load(Ordering::Relaxed)) as u32;
        result
    }

    /// Rings the doorbell of the ends that were taken.
    #[inline]
    pub(super) fn ring_taken(&self) {
        self.bells[1][0].store(self.head, Ordering::Release);
    }
}
