//! The loop that is timed, and what may go on inside it.

use crate::error::Halt;
use crate::transport::Transport;
use crate::watch::Watch;

/// What is done to every message inside the loop.
pub(super) trait Look {
    /// Whether there is anything to do.
    const LOOKS: bool;

    /// Before it goes out.
    fn stamp(&mut self, replication: usize, message: &mut [u8]);

    /// After it came in.
    fn look(&mut self, replication: usize, message: &[u8]);
}

/// Nothing.
pub(super) struct Blind;

impl Look for Blind {
    const LOOKS: bool = false;

    fn stamp(&mut self, _: usize, _: &mut [u8]) {}

    fn look(&mut self, _: usize, _: &[u8]) {}
}

/// First and last byte: each message has its own, made of its number and its sender.
#[derive(Debug, Default)]
pub(super) struct Sample {
    channels: Vec<Channel>,
    /// Bytes that were not what was to come.
    pub(super) wrong: u64,
}

#[derive(Clone, Copy, Debug)]
struct Channel {
    /// What goes out next.
    out: u8,
    /// What comes in next.
    coming: u8,
}

impl Sample {
    /// For channels between this rank and these senders.
    pub(super) fn new(rank: u32, senders: impl Iterator<Item = u32>) -> Self {
        let first = |rank: u32, channel: usize| rank.to_le_bytes()[0] ^ (channel.to_le_bytes()[0]);
        let channel = |(i, sender): (usize, u32)| Channel {
            out: first(rank, i),
            coming: first(sender, i),
        };
        Self {
            channels: senders.enumerate().map(channel).collect(),
            wrong: 0,
        }
    }

    /// Of the last message: ends that are not what came.
    pub(super) fn recheck(&self, replication: usize, message: &[u8]) -> u64 {
        let last = self.channels[replication].coming.wrapping_sub(1);
        ends_other_than(last, message)
    }
}

fn ends_other_than(wanted: u8, message: &[u8]) -> u64 {
    match message {
        [only] => u64::from(*only != wanted),
        [first, .., last] => u64::from(*first != wanted) + u64::from(*last != wanted),
        [] => 0,
    }
}

impl Look for Sample {
    const LOOKS: bool = true;

    #[inline]
    fn stamp(&mut self, replication: usize, message: &mut [u8]) {
        let channel = &mut self.channels[replication];
        if let [first, ..] = message {
            *first = channel.out;
        }
        if let [.., last] = message {
            *last = channel.out;
        }
        channel.out = channel.out.wrapping_add(1);
    }

    #[inline]
    fn look(&mut self, replication: usize, message: &[u8]) {
        let channel = &mut self.channels[replication];
        self.wrong += ends_other_than(channel.coming, message);
        channel.coming = channel.coming.wrapping_add(1);
    }
}

/// Exchanges on one replication, or on the first `replication + 1` at the same time where the
/// transport's channels work together.
#[inline(never)]
pub(super) fn exchanges<T: Transport, L: Look>(
    transport: &mut T,
    replication: usize,
    loops: u64,
    look: &mut L,
    watch: &Watch,
) -> Result<(), Halt> {
    let first = if T::TOGETHER { 0 } else { replication };
    for _ in 0..loops {
        if L::LOOKS {
            for each in first..=replication {
                look.stamp(each, transport.outgoing(each));
            }
        }
        if T::TOGETHER {
            transport.exchange_all(replication + 1, watch)?;
        } else {
            transport.exchange(replication, watch)?;
        }
        watch.beat();
        watch.check()?;
        if L::LOOKS {
            for each in first..=replication {
                look.look(each, transport.incoming(each));
            }
        }
    }
    transport.complete(replication)
}
