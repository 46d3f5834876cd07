//! How long the answers took that a client sees together.
//!
//! In: the first packet of each. Out: latencies and counts, added once for all that were made together. Not here: where
//! packets come from and go to.

use weir_sys::clock::Scale;

use crate::counts::ThreadCounts;
use crate::frame::{PacketHeader, ticks_since};
use crate::outstanding::Outstanding;
use crate::pool::{PacketBuffer, Pool};

/// How long answers took that were seen together: messages that were made together have one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerTimes {
    seen: u64,
    scale: Scale,
    stamp: u64,
    messages: u64,
}

impl AnswerTimes {
    pub(super) fn new(seen: u64, scale: Scale) -> Self {
        Self {
            seen,
            scale,
            stamp: 0,
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
        if outstanding.end(header.message) {
            if self.stamp != header.stamp {
                self.record(counts);
                self.stamp = header.stamp;
            }
            self.messages += 1;
        } else {
            counts.late += 1;
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
