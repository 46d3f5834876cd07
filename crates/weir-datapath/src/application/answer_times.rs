//! Times of the answers that a client sees together.
//!
//! In: the first packet of each. Out: latencies and counts, added once for all that were made together. Not here: where
//! packets come from and go to, whose they are.

use weir_sys::clock::Scale;

use super::request_origin::RequestOrigin;
use crate::counts::ThreadCounts;
use crate::frame::{PacketHeader, ticks_since};
use crate::outstanding::Outstanding;
use crate::pool::{PacketBuffer, Pool};

/// Times of answers that were seen together: messages that were made together have one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerTimes {
    seen: u64,
    origin: RequestOrigin,
    scale: Scale,
    stamp: u64,
    /// The requests of this stamp were made here.
    is_own: bool,
    messages: u64,
}

impl AnswerTimes {
    pub(super) fn new(seen: u64, origin: RequestOrigin, scale: Scale) -> Self {
        Self {
            seen,
            origin,
            scale,
            stamp: 0,
            is_own: false,
            messages: 0,
        }
    }

    /// An answer by its first packet.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "by itself the compiler makes a call of it for every packet"
    )]
    pub(super) fn hear(
        &mut self,
        first: &PacketBuffer,
        outstanding: &mut Outstanding,
        pool: &Pool,
        counts: &mut ThreadCounts,
    ) {
        let Some(header) = PacketHeader::read(pool.memory.frame(first)) else {
            return;
        };
        if self.stamp != header.stamp {
            self.record(counts);
            self.stamp = header.stamp;
            self.is_own = self.origin.has_made(&header, self.seen);
        }
        if !self.is_own {
            counts.sums.strays += 1;
        } else if outstanding.end(header.message) {
            self.messages += 1;
        } else {
            counts.sums.late += 1;
        }
    }

    /// Records and counts those of a stamp.
    pub(super) fn record(&mut self, counts: &mut ThreadCounts) {
        if self.messages > 0 {
            let ticks = ticks_since(self.stamp, self.seen);
            let nanos = self.scale.to_nanos(ticks);
            counts.latency.record_n(nanos, self.messages);
            counts.answered += self.messages;
            self.messages = 0;
        }
    }
}
