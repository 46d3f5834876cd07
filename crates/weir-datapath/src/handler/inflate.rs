//! Inflates messages of packed text, and checks length and checksum of what comes out.
//!
//! A message's payload is the length of its packed data, that of the text, the text's CRC-32, each 4 bytes
//! little-endian, then the packed data (raw deflate). What would become longer than it says, or than
//! sixteen times the message, is cut there and counts as wrong.

use flate2::{Compress, Compression, Crc, Decompress, FlushCompress, FlushDecompress, Status};

use weir_schema::{MESSAGE_HEADER_BYTES, PacketPathWorkload};

use super::{AnswerSource, HandlerStart, HandlerVerdict, MessageWork, payload_of};
use crate::frame::fill;
use crate::pool::{PacketBuffer, PacketMemory};

const HEAD: usize = 12;
/// Text is no longer than so many times its message.
const MOST_EXPANSION: usize = 16;

/// A thread's memory: the message put together, the text that comes out, what requests hold.
#[derive(Debug)]
pub(crate) struct Inflate {
    packed: Vec<u8>,
    text: Vec<u8>,
    content: Vec<u8>,
    /// Bytes of the content that the request under way holds already.
    sent: usize,
    inflater: Decompress,
}

impl MessageWork for Inflate {
    fn content(work: &PacketPathWorkload) -> Vec<u8> {
        let packets = u64::from(work.packets(work.request_bytes));
        let headers = u64::from(MESSAGE_HEADER_BYTES) * packets;
        let room = work.request_bytes.0.saturating_sub(headers);
        packed_text(usize::try_from(room).unwrap_or(0))
    }

    fn new(start: &HandlerStart<'_>) -> Self {
        let message = usize::try_from(start.work.request_bytes.0).unwrap_or(0);
        Self {
            packed: Vec::with_capacity(message),
            text: vec![0; message.saturating_mul(MOST_EXPANSION).max(1)],
            content: start.content.to_vec(),
            sent: 0,
            inflater: Decompress::new(false),
        }
    }

    #[inline]
    fn request(&mut self, segment: u32, payload: &mut [u8]) {
        if segment == 0 {
            self.sent = 0;
        }
        let left = self.content.get(self.sent..).unwrap_or_default();
        let length = left.len().min(payload.len());
        payload[..length].copy_from_slice(&left[..length]);
        payload[length..].fill(0);
        self.sent += length;
    }

    fn take(&mut self, memory: &PacketMemory, packets: &[PacketBuffer]) -> HandlerVerdict {
        self.packed.clear();
        for packet in packets {
            self.packed.extend_from_slice(payload_of(memory, packet));
        }
        if self.is_sound() {
            HandlerVerdict::Answer
        } else {
            HandlerVerdict::Wrong
        }
    }

    #[inline]
    fn answer(&mut self, _: u32, _: AnswerSource<'_>, payload: &mut [u8]) {
        fill(payload);
    }
}

impl Inflate {
    /// True if the message holds what it says.
    fn is_sound(&mut self) -> bool {
        let Some((head, rest)) = self.packed.split_at_checked(HEAD) else {
            return false;
        };
        let [packed, text, check] = [0, 4, 8].map(|at| word(head, at));
        let (packed, text) = (packed as usize, text as usize);
        let (Some(data), Some(room)) = (rest.get(..packed), self.text.get_mut(..text)) else {
            return false;
        };
        self.inflater.reset(false);
        let end = self
            .inflater
            .decompress(data, room, FlushDecompress::Finish);
        if !matches!(end, Ok(Status::StreamEnd)) || self.inflater.total_out() != text as u64 {
            return false;
        }
        let mut crc = Crc::new();
        crc.update(room);
        crc.sum() == check
    }
}

fn word(head: &[u8], at: usize) -> u32 {
    let bytes = head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u32::from_le_bytes)
}

/// Text of a language of its own, packed with its head, in no more than so many bytes.
pub(super) fn packed_text(bytes: usize) -> Vec<u8> {
    let room = bytes.saturating_sub(HEAD);
    let mut length = room.saturating_mul(3);
    let text = text(length);
    let mut packed = vec![0; room];
    loop {
        let part = &text[..length];
        let mut packer = Compress::new(Compression::fast(), false);
        let end = packer.compress(part, &mut packed, FlushCompress::Finish);
        if matches!(end, Ok(Status::StreamEnd)) || length == 0 {
            let whole = usize::try_from(packer.total_out()).unwrap_or(0);
            return with_head(part, &packed[..whole]);
        }
        length -= length.div_ceil(16);
    }
}

fn with_head(text: &[u8], packed: &[u8]) -> Vec<u8> {
    let mut crc = Crc::new();
    crc.update(text);
    let lengths = [packed.len(), text.len()].map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    let head = [lengths[0], lengths[1], crc.sum()].map(u32::to_le_bytes);
    [head.concat().as_slice(), packed].concat()
}

/// Words of letters that a plain sequence of numbers chooses: packs to about a third.
fn text(length: usize) -> Vec<u8> {
    const LETTERS: &[u8] = b"etaoinshrdlucmfwypvbgkqjxz     ";
    let mut state = 1_u32;
    let mut letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // The lower of two makes the first ones more frequent.
        let draw = |shift: u32| (state >> shift) as usize % LETTERS.len();
        LETTERS[draw(8).min(draw(16)).min(draw(24))]
    };
    (0..length).map(|_| letter()).collect()
}
