//! Verification of data: how blocks are marked when they are written, how they are checked when
//! they are read, and what a check found.

use serde::{Deserialize, Serialize};
use weir_units::{Bytes, JsonSchema};

use crate::kind::Kind;

/// Marks and checks of written blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct Verify {
    /// Method of the check.
    pub method: VerifyMethod,
    /// Fields are made and checked by the private rules of fio 3.33 where these differ from the
    /// method's true value (sha256, sha512).
    pub peer_rules: bool,
    /// A header every so many bytes; the block size when absent. Cut down to a divisor of every
    /// block size.
    pub interval_bytes: Option<Bytes>,
    /// Offset of the header in its interval.
    pub header_at_bytes: Bytes,
    /// Pattern of the data; random bytes from the seed when absent.
    pub pattern: Option<VerifyPattern>,
    /// After its writes a job reads everything back.
    pub read_back: bool,
    /// The first mismatch ends the job even where errors do not.
    pub fatal: bool,
    /// Damaged intervals are stored beside what they should hold.
    pub dump: bool,
    /// Directory of dumps and states; the working directory when absent.
    pub directory: Option<String>,
    /// Threads that check beside the worker; 0: the worker checks.
    pub threads: u32,
    /// Their CPUs; all when absent.
    pub cpus: Option<Vec<u32>>,
    /// Written blocks are read back after so many writes; 0: after all of them.
    pub backlog: u64,
    /// Blocks that are read back at a time; 0: the whole backlog.
    pub backlog_batch: u64,
    /// Nothing is written: the job's sequence is drawn again and checked.
    pub only: bool,
    /// Tells this run's data from an earlier run's.
    pub run_identity: RunIdentity,
    /// Cases in which the state of a job is saved at its end.
    pub save_state: SaveState,
    /// Checking starts from a saved state.
    pub load_state: bool,
}

impl Verify {
    /// By this method, with nothing else asked for: written blocks are read back after the writes.
    pub const fn by(method: VerifyMethod) -> Self {
        Self {
            method,
            peer_rules: false,
            interval_bytes: None,
            header_at_bytes: Bytes(0),
            pattern: None,
            read_back: true,
            fatal: false,
            dump: false,
            directory: None,
            threads: 0,
            cpus: None,
            backlog: 0,
            backlog_batch: 0,
            only: false,
            run_identity: RunIdentity::Off,
            save_state: SaveState::Interrupted,
            load_state: false,
        }
    }
}

/// Cases in which a job saves its written and unchecked blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SaveState {
    /// Never.
    Never,
    /// After an interruption.
    #[default]
    Interrupted,
    /// At each end.
    Always,
}

/// Bytes that are repeated through an interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifyPattern {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Places in them that hold the block's offset, 8 bytes little-endian each.
    pub offsets_at: Vec<u32>,
}

/// Marks the data of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum RunIdentity {
    /// Drawn from the run's start; a reader that waits for a writer of the same run requires it.
    #[default]
    FromStart,
    /// This one, written and required.
    Given {
        /// 1 to 65535.
        id: u16,
    },
    /// None: data of any run is good.
    Off,
}

/// Method of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerifyMethod {
    /// MD5.
    Md5,
    /// CRC-64 (Jones).
    Crc64,
    /// CRC-32, most significant bit first.
    Crc32,
    /// CRC-32C.
    Crc32c,
    /// CRC-16 (ARC).
    Crc16,
    /// CRC-7.
    Crc7,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
    /// SHA-1.
    Sha1,
    /// SHA3-224.
    Sha3_224,
    /// SHA3-256.
    Sha3_256,
    /// SHA3-384.
    Sha3_384,
    /// SHA3-512.
    Sha3_512,
    /// XXH32 with seed 1.
    Xxhash,
    /// The header alone.
    Meta,
    /// The pattern alone, without a header.
    Pattern,
    /// The pattern behind a header.
    PatternHeader,
    /// Nothing is checked.
    Null,
}

/// An interval that does not hold what it should.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mismatch {
    /// The job's method.
    pub method: VerifyMethod,
    /// The check that failed, the first in order.
    pub check: FailedCheck,
    /// Expected value: a number in the peer's base, a checksum in hexadecimal.
    pub wanted: String,
    /// Value found.
    pub found: String,
    /// Probable kind of damage.
    pub damage: Damage,
    /// Name of the target.
    pub target: String,
    /// Offset of the interval on the target.
    pub offset_bytes: Bytes,
    /// Its length.
    pub length_bytes: Bytes,
    /// Offset of the operation that read it.
    pub request_offset_bytes: Bytes,
    /// The operation's length.
    pub request_length_bytes: Bytes,
    /// The operation was a read of the job, or one that checks its own writes.
    pub kind: Kind,
    /// The number of the method that the header names, where it is not the job's.
    #[serde(default)]
    pub media_method: Option<u16>,
    /// The first byte that is not the pattern's.
    #[serde(default)]
    pub bad_byte: Option<BadByte>,
    /// Files that the interval, and what it should be, were stored in.
    #[serde(default)]
    pub dumps: Vec<String>,
}

/// A byte that is not the pattern's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BadByte {
    /// Offset in the interval's data.
    pub at_bytes: Bytes,
    /// Bits in it that differ.
    pub bits: u32,
}

impl VerifyMethod {
    /// Those that work something out over the data, in the order in which they are listed.
    pub const CHECKSUMS: [Self; 14] = [
        Self::Md5,
        Self::Crc64,
        Self::Crc32,
        Self::Crc32c,
        Self::Crc16,
        Self::Crc7,
        Self::Sha1,
        Self::Sha256,
        Self::Sha512,
        Self::Xxhash,
        Self::Sha3_224,
        Self::Sha3_256,
        Self::Sha3_384,
        Self::Sha3_512,
    ];

    /// The word in reports and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Crc64 => "crc64",
            Self::Crc32 => "crc32",
            Self::Crc32c => "crc32c",
            Self::Crc16 => "crc16",
            Self::Crc7 => "crc7",
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
            Self::Sha1 => "sha1",
            Self::Sha3_224 => "sha3-224",
            Self::Sha3_256 => "sha3-256",
            Self::Sha3_384 => "sha3-384",
            Self::Sha3_512 => "sha3-512",
            Self::Xxhash => "xxhash",
            Self::Meta => "meta",
            Self::Pattern => "pattern",
            Self::PatternHeader => "pattern_hdr",
            Self::Null => "null",
        }
    }

    /// The number in headers and messages.
    pub const fn number(self) -> u16 {
        match self {
            Self::Meta => 1,
            Self::Md5 => 2,
            Self::Crc64 => 3,
            Self::Crc32 => 4,
            Self::Crc32c => 5,
            Self::Crc16 => 7,
            Self::Crc7 => 8,
            Self::Sha256 => 9,
            Self::Sha512 => 10,
            Self::Sha3_224 => 11,
            Self::Sha3_256 => 12,
            Self::Sha3_384 => 13,
            Self::Sha3_512 => 14,
            Self::Xxhash => 15,
            Self::Sha1 => 16,
            Self::PatternHeader => 17,
            Self::Pattern => 18,
            Self::Null => 19,
        }
    }

    /// True if data carries headers.
    pub const fn has_header(self) -> bool {
        !matches!(self, Self::Pattern | Self::Null)
    }
}

/// Property that a check compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailedCheck {
    /// The header's first word.
    Magic,
    /// The method the header names.
    Method,
    /// The length the header names.
    Length,
    /// The seed of the data.
    Seed,
    /// The run that wrote it.
    Run,
    /// The offset the header names.
    Offset,
    /// The number of the write.
    Counter,
    /// The header's own checksum.
    HeaderChecksum,
    /// The data's checksum.
    Data,
    /// A byte of the pattern.
    Pattern,
}

/// Probable kind of damage of a mismatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Damage {
    /// A good block of an earlier write or run.
    Stale,
    /// A good block that belongs elsewhere.
    Misplaced {
        /// Offset at which it belongs.
        from_bytes: Bytes,
    },
    /// Zeros instead of data, from here on within the interval.
    Zeroed {
        /// First of these zeros.
        from_bytes: Bytes,
    },
    /// Two writes, or a write and what was there before, meet within the interval.
    Torn {
        /// First byte, within the interval, that is not of the write its header names.
        at_bytes: Bytes,
    },
    /// A few bits differ.
    BitFlip {
        /// First byte, within the interval, that differs.
        at_bytes: Bytes,
        /// Bits that differ.
        bits: u32,
    },
    /// Something that was not written with this method.
    Foreign,
    /// A good block with headers at another interval than the job checks.
    OtherInterval {
        /// The interval it was written with.
        written_bytes: Bytes,
        /// The interval that the job checks.
        checked_bytes: Bytes,
    },
    /// The bytes differ without a pattern to it.
    Garbled {
        /// First byte, within the interval, that differs, where what was written is known.
        at_bytes: Option<Bytes>,
    },
}

impl Damage {
    /// The damage in a few words.
    pub fn sentence(&self) -> String {
        match self {
            Self::Stale => "stale, a good block of an earlier write".to_owned(),
            Self::Misplaced { from_bytes } => {
                format!("misplaced, this block belongs at offset {}", from_bytes.0)
            }
            Self::Zeroed {
                from_bytes: Bytes(0),
            } => "zeroed, nothing but zeros".to_owned(),
            Self::Zeroed { from_bytes } => {
                format!("zeroed, nothing but zeros from byte {} on", from_bytes.0)
            }
            Self::Torn { at_bytes } => {
                format!(
                    "torn, from byte {} on it is not of the same write",
                    at_bytes.0
                )
            }
            Self::BitFlip { at_bytes, bits } => {
                let s = if *bits == 1 { "" } else { "s" };
                format!("bit flip, {bits} bit{s} from byte {} on", at_bytes.0)
            }
            Self::Foreign => "foreign, no verified write of this method".to_owned(),
            Self::OtherInterval {
                written_bytes: Bytes(written),
                checked_bytes: Bytes(checked),
            } => format!(
                "other interval, the block was written with an interval of {written} bytes, this \
                 job checks {checked}"
            ),
            Self::Garbled { at_bytes: None } => "garbled".to_owned(),
            Self::Garbled { at_bytes: Some(at) } => format!("garbled, from byte {} on", at.0),
        }
    }
}
