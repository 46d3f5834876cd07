//! The header of a frame: 24 bytes.
//!
//! In: a header, or 24 bytes. Out: the other. Not here: the body; whether a kind may come now.

use crc_fast::{CrcAlgorithm, checksum};

use super::codec::WireError;

/// Bytes of a header.
pub const HEADER: usize = 24;
/// As many words of 64 bits.
pub(crate) const HEADER_WORDS: usize = HEADER / size_of::<u64>();
/// Number of bytes that the sum covers.
const SUMMED: usize = 20;

/// A call's name: its slot at the caller, and which of the slot's calls it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RpcId {
    /// The caller's slot.
    pub slot: u32,
    /// Counts the slot's calls.
    pub generation: u32,
}

/// Bits of a frame's flags.
pub mod flag {
    /// More fragments of this body follow; the first says the whole length (u64) first.
    pub const MORE: u8 = 1;
    /// Before the payload (behind a descriptor) stands the sum (CRC32C, 4 bytes) of the payload that
    /// belongs to this direction of the call, inline or bulk. A request with a sum, which may be
    /// that of nothing, asks for an answer with one.
    pub const CHECKSUM: u8 = 1 << 1;
    /// A request's body begins with a descriptor of bulk memory.
    pub const BULK: u8 = 1 << 2;
    /// A fragment that is not the first of its body.
    pub const CONTINUED: u8 = 1 << 3;
    /// Bulk data of the request follow it without being asked for.
    pub const EAGER: u8 = 1 << 4;
    /// Payloads follow the pattern of the call's name, and are compared with it.
    pub const PATTERN: u8 = 1 << 5;
    /// An answer whose request had to wait for a buffer.
    pub const WAITED: u8 = 1 << 6;
    /// Every bit with a meaning.
    pub const KNOWN: u8 = MORE | CHECKSUM | BULK | CONTINUED | EAGER | PATTERN | WAITED;
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal;)*) => {
        /// Kind of a frame.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum FrameKind {
            $($(#[$doc])* $name = $number,)*
        }

        impl FrameKind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            #[inline]
            fn of(number: u8) -> Option<Self> {
                match number { $($number => Some(Self::$name),)* _ => None }
            }
        }
    };
}

kinds! {
    /// The first frame of a client.
    Hello = 0x01;
    /// The server's answer to it.
    HelloAck = 0x02;
    /// Proof of knowing the token, both ways.
    Auth = 0x03;
    /// Asks for a session.
    Open = 0x04;
    /// The answer to it.
    OpenAck = 0x05;
    /// Ends a session.
    Close = 0x06;
    /// The answer to it.
    CloseAck = 0x07;
    /// A call.
    Request = 0x10;
    /// Its answer.
    Response = 0x11;
    /// The caller waits no longer.
    Cancel = 0x12;
    /// The server asks for a range of the caller's memory.
    BulkPull = 0x18;
    /// The caller's data.
    BulkData = 0x19;
    /// The server's data, for the caller's memory.
    BulkPush = 0x1a;
    /// Kept for flow control of pushes; nobody sends it.
    BulkAck = 0x1b;
    /// Orders a test.
    Start = 0x20;
    /// Answer to it: it runs.
    StartAck = 0x21;
    /// Progress of it.
    Progress = 0x22;
    /// Result of it.
    Result = 0x23;
    /// Ends it early.
    Stop = 0x24;
    /// Its sessions are open: it waits for `Go`.
    Ready = 0x25;
    /// When its first call goes out.
    Go = 0x26;
    /// Is anybody there?
    Ping = 0x30;
    /// Yes.
    Pong = 0x31;
    /// The server is about to leave: no new calls.
    GoAway = 0x3e;
    /// Why the connection will be closed.
    Error = 0x3f;
}

impl FrameKind {
    /// True if it travels on the data plane: calls and what belongs to them.
    #[inline]
    pub fn is_data(self) -> bool {
        matches!(self as u8, 0x10..=0x1b)
    }
}

/// A frame's header, without the length, which its sender's link adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Its kind.
    pub kind: FrameKind,
    /// Bits of [`flag`].
    pub flags: u8,
    /// Of requests the operation, of answers the status.
    pub word: u16,
    /// Which call.
    pub rpc: RpcId,
    /// Which session; 0 for none.
    pub session: u32,
}

impl FrameHeader {
    /// A header without flags, call or session.
    pub fn plain(kind: FrameKind) -> Self {
        Self {
            kind,
            flags: 0,
            word: 0,
            rpc: RpcId::default(),
            session: 0,
        }
    }

    /// A header without flags and word, of a call in a session.
    pub fn of_call(kind: FrameKind, rpc: RpcId, session: u32) -> Self {
        Self {
            rpc,
            session,
            ..Self::plain(kind)
        }
    }

    /// The same with an operation, or a status.
    #[must_use]
    pub fn with_word(self, word: u16) -> Self {
        Self { word, ..self }
    }

    /// For frames whose data may go straight to memory: bytes before the data.
    #[inline]
    pub fn head_length(&self) -> Option<usize> {
        match self.kind {
            FrameKind::BulkData | FrameKind::BulkPush => Some(super::PushHead::LENGTH),
            FrameKind::Response if self.flags & (flag::MORE | flag::CONTINUED) != 0 => None,
            FrameKind::Response if self.flags & flag::CHECKSUM != 0 => Some(4),
            FrameKind::Response => Some(0),
            _ => None,
        }
    }

    /// True if it may be refused for lack of room: there may be so many of its kind, or so long ones,
    /// that they have to wait for a slow reader. The others are bounded by what they answer, and are
    /// needed to come to an end.
    #[inline]
    pub(crate) fn waits_for_room(&self) -> bool {
        match self.kind {
            FrameKind::Request => self.flags & flag::CONTINUED == 0,
            FrameKind::BulkData | FrameKind::BulkPush => true,
            _ => false,
        }
    }

    /// As bytes, for a body of this length; the sum is 0 where there shall be none.
    #[inline]
    pub fn encode(&self, length: u32, summed: bool) -> [u8; HEADER] {
        let mut words = self.to_words(length);
        if summed {
            let bytes = words.map(u64::to_le_bytes);
            words[2] |= u64::from(sum(&bytes.as_flattened()[..SUMMED])) << 32;
        }
        let mut bytes = [0; HEADER];
        for (at, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *at = word.to_le_bytes();
        }
        bytes
    }

    /// As little-endian words without a sum, for memory that is written word by word: bytes that
    /// were written apart are slow to read together.
    #[inline]
    pub(crate) fn to_words(self, length: u32) -> [u64; HEADER_WORDS] {
        let kind = u64::from(self.kind as u8) << 32 | u64::from(self.flags) << 40;
        [
            u64::from(length) | kind | u64::from(self.word) << 48,
            u64::from(self.rpc.slot) | u64::from(self.rpc.generation) << 32,
            u64::from(self.session),
        ]
    }

    /// The header and its body's length.
    ///
    /// # Errors
    /// A wrong sum, an unknown kind or flag.
    #[inline]
    pub fn decode(bytes: &[u8; HEADER], summed: bool) -> Result<(Self, u32), WireError> {
        let (chunks, _) = bytes.as_chunks();
        let mut words = std::array::from_fn(|word| u64::from_le_bytes(chunks[word]));
        if summed {
            let [.., found] = halves(words);
            if found != sum(&bytes[..SUMMED]) {
                return Err(WireError::Checksum);
            }
            words[2] &= u64::from(u32::MAX);
        }
        Self::from_words(words)
    }

    /// The same from words without a sum.
    #[inline]
    pub(crate) fn from_words(words: [u64; HEADER_WORDS]) -> Result<(Self, u32), WireError> {
        let [length, _, slot, generation, session, sum] = halves(words);
        if sum != 0 {
            return Err(WireError::Checksum);
        }
        let [.., kind, flags, low, high] = words[0].to_le_bytes();
        let kind = FrameKind::of(kind).ok_or(WireError::Field("kind"))?;
        if flags & !flag::KNOWN != 0 {
            return Err(WireError::Field("flags"));
        }
        let header = Self {
            kind,
            flags,
            word: u16::from_le_bytes([low, high]),
            rpc: RpcId { slot, generation },
            session,
        };
        Ok((header, length))
    }
}

/// The lower and the upper half of each word.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a half of it")]
fn halves([first, second, third]: [u64; HEADER_WORDS]) -> [u32; 2 * HEADER_WORDS] {
    [
        first as u32,
        (first >> 32) as u32,
        second as u32,
        (second >> 32) as u32,
        third as u32,
        (third >> 32) as u32,
    ]
}

/// The sum of a header, or of a payload.
#[inline]
pub(crate) fn sum(bytes: &[u8]) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "a sum of 32 bits")]
    {
        checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
    }
}
