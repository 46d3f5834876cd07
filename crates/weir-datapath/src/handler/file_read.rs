//! Answers with pieces of a region, one packet's after the other's.

use super::{AnswerSource, HandlerStart, HandlerVerdict, MessageWork, region};
use crate::pool::{PacketBuffer, PacketMemory};

/// The region of a thread.
#[derive(Debug)]
pub(crate) struct FileRead {
    region: Vec<u8>,
    next: usize,
}

impl MessageWork for FileRead {
    fn new(start: &HandlerStart<'_>) -> Self {
        let mut region = region(start.work, 4096);
        for (byte, value) in region.iter_mut().zip((b'a'..=b'z').cycle()) {
            *byte = value;
        }
        Self { region, next: 0 }
    }

    #[inline]
    fn take(&mut self, _: &PacketMemory, _: &[PacketBuffer]) -> HandlerVerdict {
        HandlerVerdict::Answer
    }

    #[inline]
    fn answer(&mut self, _: u32, _: AnswerSource<'_>, payload: &mut [u8]) {
        if self.next + payload.len() > self.region.len() {
            self.next = 0;
        }
        let end = self.next + payload.len();
        if let Some(piece) = self.region.get(self.next..end) {
            payload.copy_from_slice(piece);
        }
        self.next = end;
    }
}
