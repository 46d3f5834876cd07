//! Beginning of a connection: preamble, HELLO, AUTH.
//!
//! In: who calls whom. Out: bytes, or the other way. Not here: the conversation (`stream`), the
//! proof (`auth`).

use super::codec::{WireError, WireField, WireReader, message};
use super::{MAX_FRAME, MIN_FRAME};

/// Bytes of the preamble and of its answer.
pub const PREAMBLE: usize = 16;
/// The version of the wire format; another major one is another language.
pub const MAJOR: u16 = 1;
/// Grows with what old peers can leave out.
pub const MINOR: u16 = 0;

const MAGIC: [u8; 8] = *b"WEIRRPC\0";
/// Longest name of a group, in bytes.
const GROUP: usize = 64;
/// Longest list of transports.
const TRANSPORTS: usize = 256;
/// Longest address of a fabric.
const ADDRESS: usize = 1024;

/// The first bytes of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preamble {
    /// Its version.
    pub major: u16,
    /// Its version.
    pub minor: u16,
    /// Bit 0: wants TLS. Bit 1: may pass descriptors.
    pub flags: u16,
}

impl Preamble {
    /// As bytes.
    pub fn encode(&self) -> [u8; PREAMBLE] {
        sixteen([self.major, self.minor, self.flags, 0])
    }

    /// A client's first bytes; any version is fine here.
    ///
    /// # Errors
    /// This is another language altogether.
    pub fn decode(bytes: &[u8; PREAMBLE]) -> Result<Self, WireError> {
        let [major, minor, flags, zero] = words(bytes)?;
        if zero != 0 {
            return Err(WireError::Field("preamble"));
        }
        Ok(Self {
            major,
            minor,
            flags,
        })
    }
}

/// The server's answer to a preamble that it cannot go on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreambleReply {
    /// The server's version.
    pub major: u16,
    /// The server's version.
    pub minor: u16,
    /// 1: the versions do not fit.
    pub reason: u16,
}

impl PreambleReply {
    /// As bytes.
    pub fn encode(&self) -> [u8; PREAMBLE] {
        sixteen([self.major, self.minor, self.reason, 0])
    }

    /// The answer; `None` where the bytes begin with a frame.
    pub fn decode(bytes: &[u8; PREAMBLE]) -> Option<Self> {
        let [major, minor, reason, _] = words(bytes).ok()?;
        Some(Self {
            major,
            minor,
            reason,
        })
    }
}

fn sixteen(words: [u16; 4]) -> [u8; PREAMBLE] {
    let mut bytes = [0; PREAMBLE];
    bytes[..8].copy_from_slice(&MAGIC);
    for (place, word) in bytes[8..].chunks_exact_mut(2).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

fn words(bytes: &[u8; PREAMBLE]) -> Result<[u16; 4], WireError> {
    let mut body = WireReader::new(bytes);
    if body.array::<8>("magic")? != MAGIC {
        return Err(WireError::Field("magic"));
    }
    let mut words = [0; 4];
    for word in &mut words {
        *word = body.u16("preamble")?;
    }
    Ok(words)
}

/// True if no frame may be so long, or none that long is enough.
fn is_no_limit(max_frame: u32) -> bool {
    !(MIN_FRAME..=MAX_FRAME).contains(&max_frame)
}

message! {
    /// A client names itself and whom it wants.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ClientHello {
        /// Never the same twice.
        pub nonce: [u8; 16],
        /// Of the group.
        pub rank: u32,
        /// Of the rank.
        pub tag: u32,
        /// Bits of `features`.
        pub features: u64,
        /// Largest body that it takes, in bytes.
        pub max_frame: u32,
        /// Its process.
        pub process: u32,
        /// Identity of the machine.
        pub boot: u64,
        /// The group that it looks for.
        pub group: String [GROUP],
        /// Which links it can use, best first, with commas between.
        pub transports: String [TRANSPORTS],
        /// Its address on a fabric; empty where it has none.
        pub address: Vec<u8> [ADDRESS],
        /// The address that it has called.
        pub called: String [TRANSPORTS],
    }
    "max_frame" if |hello| is_no_limit(hello.max_frame)
}

message! {
    /// The server's answer to HELLO.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct HelloReply {
        /// Never the same twice.
        pub nonce: [u8; 16],
        /// The run of the server; the group table has it too.
        pub run: [u8; 16],
        /// Who answers.
        pub rank: u32,
        /// Number of tags of this rank.
        pub tags: u32,
        /// Bits that both sides have.
        pub features: u64,
        /// The smaller of both limits, in bytes.
        pub max_frame: u32,
        /// Largest inline payload, in bytes.
        pub max_message: u64,
        /// Most calls that a session may have out.
        pub credits: u32,
        /// AUTH has to follow.
        pub authenticate: bool,
        /// The link that was chosen.
        pub transport: String [TRANSPORTS],
        /// The tag's address on a fabric; empty where it has none.
        pub address: Vec<u8> [ADDRESS],
    }
    "max_frame" if |reply| is_no_limit(reply.max_frame)
}

message! {
    /// Proof of knowing the token.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Auth {
        /// HMAC-SHA256 over both greetings and the side.
        pub proof: [u8; 32],
    }
}
