//! Copies messages into slots of a region, a packet after the other, and answers shortly. A packet that is
//! longer than a slot is cut, and its message counts as wrong.

use std::hint::black_box;

use super::{AnswerSource, HandlerStart, HandlerVerdict, MessageWork, payload_of, region};
use crate::frame::fill;
use crate::pool::{PacketBuffer, PacketMemory};

/// Bytes of a slot.
const SLOT: usize = 2048;

/// The region of a thread.
#[derive(Debug)]
pub(crate) struct FileWrite {
    region: Vec<u8>,
    next: usize,
}

impl MessageWork for FileWrite {
    fn new(start: &HandlerStart<'_>) -> Self {
        Self {
            region: region(start.work, SLOT),
            next: 0,
        }
    }

    #[inline]
    fn take(&mut self, memory: &PacketMemory, packets: &[PacketBuffer]) -> HandlerVerdict {
        let mut verdict = HandlerVerdict::Answer;
        for packet in packets {
            let mut payload = payload_of(memory, packet);
            if payload.len() > SLOT {
                payload = &payload[..SLOT];
                verdict = HandlerVerdict::Wrong;
            }
            let slots = self.region.len() / SLOT;
            let at = self.next % slots * SLOT;
            self.region[at..at + payload.len()].copy_from_slice(payload);
            self.next += 1;
        }
        black_box(&mut self.region);
        verdict
    }

    #[inline]
    fn answer(&mut self, _: u32, _: AnswerSource<'_>, payload: &mut [u8]) {
        fill(payload);
    }
}

#[cfg(test)]
impl FileWrite {
    pub(super) fn region(&self) -> &[u8] {
        &self.region
    }
}
