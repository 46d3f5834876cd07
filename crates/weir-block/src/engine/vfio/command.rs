//! Entries of an NVMe drive's queues.
//!
//! In: fields. Out: words of memory. Not here: queues.

pub(super) use crate::engine::io_uring::command::{
    FLUSH, GIVES_UP, LASTS, MANAGE, READ, WRITE, halves,
};

/// Words of an entry of a submission queue.
pub(super) const WORDS: usize = 8;

pub(super) const DELETE_SUBMISSION: u8 = 0;
pub(super) const CREATE_SUBMISSION: u8 = 1;
pub(super) const DELETE_COMPLETION: u8 = 4;
pub(super) const CREATE_COMPLETION: u8 = 5;
pub(super) const IDENTIFY: u8 = 6;
pub(super) const SET_FEATURE: u8 = 9;
/// Number of the feature that says how many queues there are.
pub(super) const QUEUES: u32 = 7;

/// A command.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Command {
    pub(super) opcode: u8,
    pub(super) namespace: u32,
    /// Addresses of its data: the first, and the second page or a list of the further ones.
    pub(super) data: [u64; 2],
    pub(super) words10: [u32; 4],
}

const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

impl Command {
    /// The words of its entry, with the number by which its end is known.
    #[inline]
    pub(super) fn words(&self, number: u16) -> [u64; WORDS] {
        let [w10, w11, w12, w13] = self.words10;
        [
            pair(
                u32::from(self.opcode) | u32::from(number) << 16,
                self.namespace,
            ),
            0,
            0,
            self.data[0],
            self.data[1],
            pair(w10, w11),
            pair(w12, w13),
            0,
        ]
    }
}

/// End of a command, the last word of its entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended(pub(super) u64);

impl Ended {
    /// Changes with each round of the queue.
    #[inline]
    pub(super) fn phase(self) -> bool {
        self.0 & 1 << 48 != 0
    }

    /// Number of the command.
    #[inline]
    pub(super) fn number(self) -> u16 {
        #[expect(clippy::cast_possible_truncation, reason = "a field")]
        let number = (self.0 >> 32) as u16;
        number
    }

    /// Status, 0 where it is good.
    #[inline]
    pub(super) fn status(self) -> u16 {
        (self.0 >> 49) as u16
    }
}
