//! Content of messages, and the number of bytes of one that are wrong.
//!
//! In: the size's exponent, for `full` also seed, sender and replication. Out: filled buffers,
//! counts of wrong bytes. A receive buffer starts as the complement of the size's own byte, so
//! that nothing counts as received that never came.

use weir_schema::{MessageSize, Validation};

/// Content of the messages of one sender on one channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pattern {
    /// Method of their check.
    pub(crate) validation: Validation,
    /// Of this size.
    pub(crate) size: MessageSize,
    /// Of the plan.
    pub(crate) seed: u64,
    /// The sender.
    pub(crate) sender: u32,
    /// On which channel.
    pub(crate) replication: u32,
}

impl Pattern {
    /// Fills an outgoing message.
    pub(crate) fn fill(&self, message: &mut [u8]) {
        if self.validation == Validation::Full {
            let mut words = self.words();
            for piece in message.chunks_mut(8) {
                let word = words.next().to_le_bytes();
                piece.copy_from_slice(&word[..piece.len()]);
            }
        } else {
            message.fill(self.size.exponent);
        }
    }

    /// Fills a receive buffer before anything came: no byte of it is right.
    pub(crate) fn blank(&self, message: &mut [u8]) {
        if self.validation == Validation::Full {
            self.fill(message);
            for byte in message {
                *byte = !*byte;
            }
        } else {
            message.fill(!self.size.exponent);
        }
    }

    /// Bytes of a message that came in which are not what was sent.
    pub(crate) fn wrong(&self, message: &[u8]) -> u64 {
        match self.validation {
            Validation::None | Validation::Sample => 0,
            Validation::Const => count(message, |byte| byte != self.size.exponent),
            Validation::Full => {
                let mut words = self.words();
                let differing = |piece: &[u8]| {
                    let word = words.next().to_le_bytes();
                    piece.iter().zip(word).filter(|(a, b)| *a != b).count() as u64
                };
                message.chunks(8).map(differing).sum()
            }
        }
    }

    fn words(&self) -> Words {
        let origin = u64::from(self.sender) << 32 | u64::from(self.replication);
        Words(mix(
            self.seed ^ mix(origin ^ mix(u64::from(self.size.exponent)))
        ))
    }
}

fn count(message: &[u8], is_wrong: impl Fn(u8) -> bool) -> u64 {
    message.iter().map(|byte| u64::from(is_wrong(*byte))).sum()
}

/// `SplitMix64`: eight bytes per step, each step a function of seed and place.
struct Words(u64);

impl Words {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }
}

/// The finaliser of `SplitMix64`.
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(validation: Validation, exponent: u8, sender: u32) -> Pattern {
        let size = MessageSize {
            exponent,
            loop_length: 1,
        };
        Pattern {
            validation,
            size,
            seed: 7,
            sender,
            replication: 1,
        }
    }

    proptest! {
        #[test]
        fn every_byte_of_a_blank_is_wrong_and_of_a_message_right(
            full: bool, exponent in 0u8..12, sender in 0u32..9, at: usize
        ) {
            let validation = if full { Validation::Full } else { Validation::Const };
            let pattern = pattern(validation, exponent, sender);
            let mut message = vec![0; 1 << exponent];
            pattern.blank(&mut message);
            prop_assert_eq!(pattern.wrong(&message), 1 << exponent);
            pattern.fill(&mut message);
            prop_assert_eq!(pattern.wrong(&message), 0);
            let at = at % message.len();
            message[at] ^= 0x10;
            prop_assert_eq!(pattern.wrong(&message), 1);
        }
    }

    #[test]
    fn another_senders_message_is_wrong_in_full_and_right_in_const() {
        for (validation, is_right) in [(Validation::Full, false), (Validation::Const, true)] {
            let mut message = vec![0; 4096];
            pattern(validation, 12, 0).fill(&mut message);
            let wrong = pattern(validation, 12, 1).wrong(&message);
            assert_eq!(wrong == 0, is_right, "{validation:?}: {wrong}");
        }
    }
}
