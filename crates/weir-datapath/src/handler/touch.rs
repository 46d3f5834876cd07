//! Writes all over a region of memory: for each packet so many bytes of it, 8 at a time, from where the
//! last packet's ended.

use std::hint::black_box;

use super::{AnswerSource, HandlerStart, HandlerVerdict, MessageWork, Scan, same_payload};
use crate::pool::{PacketBuffer, PacketMemory};

/// The region of a thread.
#[derive(Debug)]
pub(crate) struct Touch {
    scan: Scan,
    words: Vec<u64>,
    per_packet: usize,
    next: usize,
    /// Written: another number for each packet.
    round: u64,
}

impl MessageWork for Touch {
    fn new(start: &HandlerStart<'_>) -> Self {
        let words = |bytes: u64| usize::try_from(bytes / 8).unwrap_or(1).max(1);
        Self {
            scan: Scan::new(start.work),
            words: vec![0; words(start.work.region_bytes.0)],
            per_packet: words(start.work.touch_bytes.0),
            next: 0,
            round: 0,
        }
    }

    #[inline]
    fn take(&mut self, memory: &PacketMemory, packets: &[PacketBuffer]) -> HandlerVerdict {
        self.scan.packets(memory, packets);
        for _ in packets {
            self.round += 1;
            for _ in 0..self.per_packet {
                self.words[self.next] = self.round;
                self.next += 1;
                if self.next == self.words.len() {
                    self.next = 0;
                }
            }
        }
        black_box(&mut self.words);
        HandlerVerdict::Answer
    }

    #[inline]
    fn answer(&mut self, _: u32, request: AnswerSource<'_>, payload: &mut [u8]) {
        same_payload(request, payload);
    }
}

#[cfg(test)]
impl Touch {
    /// Words that were written so far, and where the next go.
    pub(super) fn written(&self) -> (usize, usize) {
        let written = self.words.iter().filter(|word| **word != 0).count();
        (written, self.next)
    }
}
