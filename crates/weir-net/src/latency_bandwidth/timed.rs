//! The loops that are timed: ping, pong and ring. The clock is read at their ends only, after one
//! iteration that does not count.
//!
//! Every message carries its own first and last byte, made of its sender and the number of its
//! iteration, which the receiver looks at.

use weir_sys::clock::{Clock, Tick};

use crate::error::Halt;
use crate::transport::messages::{Messages, Neighbours, RingDirection};
use weir_world::Watchdog;

/// Number that an answer adds to the bytes of its question.
const PONG: u8 = 13;
/// Number that distinguishes messages to the left from those to the right.
const TO_LEFT: u8 = 2;

/// Parts that a loop works with.
pub(super) struct Bench<'a, T> {
    pub(super) transport: T,
    pub(super) clock: &'a Clock,
    pub(super) watchdog: &'a Watchdog,
    /// Bytes that were not what was sent.
    pub(super) wrong: u64,
}

/// Method by which messages go round a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RingMethod {
    /// A combined call to the right, then one to the left.
    Sendrecv,
    /// Both ways at once.
    Nonblocking,
}

/// Of a rank's message in an iteration; the untimed one is number 0.
#[inline]
fn base(rank: u32, iteration: u64) -> u8 {
    let low = u64::from(rank).wrapping_add(iteration) & 127;
    low.to_le_bytes()[0]
}

#[inline]
fn stamp(message: &mut [u8], first: u8) {
    if let [.., last] = message {
        *last = first.wrapping_add(1);
    }
    if let [byte, ..] = message {
        *byte = first;
    }
}

#[inline]
fn differing(message: &[u8], first: u8) -> u64 {
    match message {
        [] => 0,
        [only] => u64::from(*only != first),
        [byte, .., last] => u64::from(*byte != first) + u64::from(*last != first.wrapping_add(1)),
    }
}

impl<T: Messages> Bench<'_, T> {
    /// The client's side of a pair: the ticks that the loop took.
    #[inline(never)]
    pub(super) fn ping(&mut self, rank: u32, server: u32, loops: u64) -> Result<u64, Halt> {
        self.timed(loops, |bench, iteration| {
            let first = base(rank, iteration);
            stamp(bench.transport.outgoing(RingDirection::Right), first);
            bench
                .transport
                .send(RingDirection::Right, server, bench.watchdog)?;
            bench
                .transport
                .receive(RingDirection::Left, server, bench.watchdog)?;
            let came = bench.transport.incoming(RingDirection::Left);
            bench.wrong += differing(came, first.wrapping_add(PONG));
            Ok(())
        })
    }

    /// The server's side of a pair.
    #[inline(never)]
    pub(super) fn pong(&mut self, client: u32, loops: u64) -> Result<u64, Halt> {
        self.timed(loops, |bench, iteration| {
            let first = base(client, iteration);
            bench
                .transport
                .receive(RingDirection::Right, client, bench.watchdog)?;
            bench.wrong += differing(bench.transport.incoming(RingDirection::Right), first);
            stamp(
                bench.transport.outgoing(RingDirection::Left),
                first.wrapping_add(PONG),
            );
            bench
                .transport
                .send(RingDirection::Left, client, bench.watchdog)
        })
    }

    /// A rank's part of a ring: the ticks that the loop took.
    pub(super) fn time_ring(
        &mut self,
        round: RingMethod,
        rank: u32,
        ring: Neighbours,
        loops: u64,
    ) -> Result<u64, Halt> {
        match round {
            RingMethod::Sendrecv => self.one_way_after_the_other(rank, ring, loops),
            RingMethod::Nonblocking => self.both_ways(rank, ring, loops),
        }
    }

    #[inline(never)]
    fn one_way_after_the_other(
        &mut self,
        rank: u32,
        ring: Neighbours,
        loops: u64,
    ) -> Result<u64, Halt> {
        self.timed(loops, |bench, iteration| {
            for direction in RingDirection::BOTH {
                bench.stamp_ring(direction, rank, iteration);
                bench.transport.sendrecv(direction, ring, bench.watchdog)?;
                bench.check_ring(direction, ring, iteration);
            }
            Ok(())
        })
    }

    #[inline(never)]
    fn both_ways(&mut self, rank: u32, ring: Neighbours, loops: u64) -> Result<u64, Halt> {
        self.timed(loops, |bench, iteration| {
            for direction in RingDirection::BOTH {
                bench.stamp_ring(direction, rank, iteration);
            }
            bench.transport.both_ways(ring, bench.watchdog)?;
            for direction in RingDirection::BOTH {
                bench.check_ring(direction, ring, iteration);
            }
            Ok(())
        })
    }

    #[inline]
    fn stamp_ring(&mut self, direction: RingDirection, rank: u32, iteration: u64) {
        stamp(
            self.transport.outgoing(direction),
            in_ring(direction, rank, iteration),
        );
    }

    #[inline]
    fn check_ring(&mut self, direction: RingDirection, ring: Neighbours, iteration: u64) {
        let (_, from) = ring.along(direction);
        let wanted = in_ring(direction, from, iteration);
        self.wrong += differing(self.transport.incoming(direction), wanted);
    }

    /// Iterations 0 to `loops`, of which the first is not timed.
    #[inline]
    fn timed(
        &mut self,
        loops: u64,
        mut iterate: impl FnMut(&mut Self, u64) -> Result<(), Halt>,
    ) -> Result<u64, Halt> {
        let mut begun: Tick = self.clock.now();
        for iteration in 0..=loops {
            if iteration == 1 {
                begun = self.clock.now();
            }
            iterate(self, iteration)?;
            self.watchdog.progress();
            self.watchdog.check()?;
        }
        Ok(self.clock.now().since(begun))
    }
}

#[inline]
fn in_ring(direction: RingDirection, sender: u32, iteration: u64) -> u8 {
    let first = base(sender, iteration);
    match direction {
        RingDirection::Right => first,
        RingDirection::Left => first.wrapping_add(TO_LEFT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_carry_their_sender_and_iteration_at_both_ends() {
        let mut message = [0; 4];
        stamp(&mut message, in_ring(RingDirection::Right, 3, 1));
        assert_eq!(message, [4, 0, 0, 5]);
        stamp(&mut message, in_ring(RingDirection::Left, 3, 1));
        assert_eq!(message, [6, 0, 0, 7]);
        assert_eq!(base(120, 9), 1);
        assert_eq!(differing(&message, 6), 0);
        assert_eq!(differing(&message, 7), 2);
        assert_eq!(differing(&[6, 0, 0, 8], 6), 1);
        let mut one = [0];
        stamp(&mut one, 9);
        assert_eq!((one, differing(&one, 9), differing(&one, 8)), ([9], 0, 1));
    }
}
