//! The loop that is timed, and what may go on inside it.

use crate::error::Halt;
use crate::transport::Transport;
use weir_world::Watchdog;

/// Check of every message inside the loop.
trait MessageCheck {
    /// True if there is anything to check.
    const CHECKS: bool;

    /// True if the next message is another one than before.
    fn is_due(&self, replication: usize) -> bool;

    /// Before such a message goes out.
    fn stamp(&self, replication: usize, message: &mut [u8]);

    /// After it came in.
    fn check(&mut self, replication: usize, message: &[u8]);
}

/// Nothing.
struct NoCheck;

impl MessageCheck for NoCheck {
    const CHECKS: bool = false;

    fn is_due(&self, _: usize) -> bool {
        false
    }

    fn stamp(&self, _: usize, _: &mut [u8]) {}

    fn check(&mut self, _: usize, _: &[u8]) {}
}

/// First and last byte of each message, looked at where it came in.
///
/// Their content is made of channel and sender, and changes with every [`SAME`]th message: that one
/// cannot be taken for an older one. Were it so with each, the receiver would have to fetch two
/// lines from the sender's cache that it otherwise still has: a tenth of the time of 4 KiB through
/// shared memory. Blotting them out before each message costs as much, since a large copy leaves
/// its lines outside of the nearest cache.
#[derive(Debug, Default)]
pub(super) struct EndsCheck {
    channels: Vec<Channel>,
    /// Bytes that were not what was to come.
    pub(super) wrong: u64,
}

/// Number of messages with the same content; a power of two, so that the test costs nothing.
const SAME: u64 = 16;

#[derive(Clone, Copy, Debug)]
struct Channel {
    /// Content of the first messages, there and back.
    out: u8,
    coming: u8,
    /// Messages so far, each way.
    number: u64,
}

/// Content of message `number`, where the first one holds `first`.
#[inline]
fn ends(first: u8, number: u64) -> u8 {
    let [low, ..] = (number / SAME).to_le_bytes();
    first.wrapping_add(low)
}

#[inline]
fn put(byte: u8, message: &mut [u8]) {
    if let [first, ..] = message {
        *first = byte;
    }
    if let [.., last] = message {
        *last = byte;
    }
}

#[inline]
fn ends_other_than(wanted: u8, message: &[u8]) -> u64 {
    match message {
        [only] => u64::from(*only != wanted),
        [first, .., last] => u64::from(*first != wanted) + u64::from(*last != wanted),
        [] => 0,
    }
}

impl EndsCheck {
    /// For channels between this rank and these senders.
    pub(super) fn new(rank: u32, senders: impl Iterator<Item = u32>) -> Self {
        let first = |rank: u32, channel: usize| rank.to_le_bytes()[0] ^ (channel.to_le_bytes()[0]);
        let channel = |(i, sender): (usize, u32)| Channel {
            out: first(rank, i),
            coming: first(sender, i),
            number: 0,
        };
        Self {
            channels: senders.enumerate().map(channel).collect(),
            wrong: 0,
        }
    }

    /// Before the first message: its ends have to come.
    pub(super) fn blot(&self, replication: usize, message: &mut [u8]) {
        put(!self.channels[replication].coming, message);
    }

    /// Of the last message: ends that are not what came.
    pub(super) fn recheck(&self, replication: usize, message: &[u8]) -> u64 {
        let channel = &self.channels[replication];
        let last = ends(channel.coming, channel.number.saturating_sub(1));
        ends_other_than(last, message)
    }
}

impl MessageCheck for EndsCheck {
    const CHECKS: bool = true;

    #[inline]
    fn is_due(&self, replication: usize) -> bool {
        self.channels[replication].number.is_multiple_of(SAME)
    }

    fn stamp(&self, replication: usize, message: &mut [u8]) {
        let channel = &self.channels[replication];
        put(ends(channel.out, channel.number), message);
    }

    #[inline]
    fn check(&mut self, replication: usize, message: &[u8]) {
        let channel = &mut self.channels[replication];
        let wanted = ends(channel.coming, channel.number);
        self.wrong += ends_other_than(wanted, message);
        channel.number += 1;
    }
}

/// A transport with the loop that is timed, which is compiled for each.
pub(super) trait TimedTransport: Transport {
    /// Makes exchanges, looking at each message where there is a check.
    fn exchanges(
        &mut self,
        replication: usize,
        loops: u64,
        sample: Option<&mut EndsCheck>,
        watchdog: &Watchdog,
    ) -> Result<(), Halt>;
}

impl<T: Transport> TimedTransport for T {
    fn exchanges(
        &mut self,
        replication: usize,
        loops: u64,
        sample: Option<&mut EndsCheck>,
        watchdog: &Watchdog,
    ) -> Result<(), Halt> {
        match sample {
            Some(sample) => exchanges(self, replication, loops, sample, watchdog),
            None => exchanges(self, replication, loops, &mut NoCheck, watchdog),
        }
    }
}

/// Exchanges on one replication, or on the first `replication + 1` at the same time where the
/// transport's channels work together.
#[inline(never)]
fn exchanges<T: Transport, L: MessageCheck>(
    transport: &mut T,
    replication: usize,
    loops: u64,
    checker: &mut L,
    watchdog: &Watchdog,
) -> Result<(), Halt> {
    if !L::CHECKS && !T::together() {
        transport.exchange_often(replication, loops, watchdog)?;
        return transport.complete(replication);
    }
    let first = if T::together() { 0 } else { replication };
    for _ in 0..loops {
        if L::CHECKS {
            for each in (first..=replication).filter(|each| checker.is_due(*each)) {
                checker.stamp(each, transport.outgoing(each));
            }
        }
        if T::together() {
            transport.exchange_all(replication + 1, watchdog)?;
        } else {
            transport.exchange(replication, watchdog)?;
        }
        watchdog.progress();
        watchdog.check()?;
        if L::CHECKS {
            for each in first..=replication {
                checker.check(each, transport.incoming(each));
            }
        }
    }
    transport.complete(replication)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two ranks' views of one channel.
    fn two() -> (EndsCheck, EndsCheck) {
        let of = |rank, other| EndsCheck::new(rank, std::iter::once(other));
        (of(0, 1), of(1, 0))
    }

    #[test]
    fn messages_that_come_as_they_were_sent_are_right() {
        let (mut sender, mut receiver) = two();
        let mut message = [7; 4];
        for number in 0..3 * SAME {
            if sender.is_due(0) {
                sender.stamp(0, &mut message);
            }
            receiver.check(0, &message);
            sender.check(0, &message);
            assert_eq!(receiver.wrong, 0, "message {number}");
        }
        assert_eq!(receiver.recheck(0, &message), 0);
        message[3] = !message[3];
        assert_eq!(receiver.recheck(0, &message), 1);
    }

    #[test]
    fn messages_that_do_not_come_leave_wrong_bytes() {
        let (mut sender, mut receiver) = two();
        let mut message = [0; 4];
        receiver.blot(0, &mut message);
        receiver.check(0, &message);
        assert_eq!(receiver.wrong, 2);
        sender.stamp(0, &mut message);
        for _ in 1..SAME {
            receiver.check(0, &message);
        }
        assert_eq!(receiver.wrong, 2);
        // From here on there should be another.
        receiver.check(0, &message);
        assert_eq!(receiver.wrong, 4);
        let mut one = [0];
        sender.blot(0, &mut one);
        sender.check(0, &one);
        assert_eq!(sender.wrong, 1);
    }

    #[test]
    fn a_channel_that_is_one_message_late_is_found() {
        let (mut sender, mut receiver) = two();
        let mut message = [0; 4];
        sender.stamp(0, &mut message);
        let mut late = message;
        for _ in 0..=SAME {
            receiver.check(0, &late);
            late = message;
            sender.check(0, &message);
            if sender.is_due(0) {
                sender.stamp(0, &mut message);
            }
        }
        assert!(receiver.wrong > 0);
    }
}
