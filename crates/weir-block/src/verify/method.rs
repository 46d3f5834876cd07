//! Stored fields of each method: its number, and the length and content of its field.
//!
//! In: a method and the data of an interval in pieces. Out: the field.

use weir_schema::VerifyMethod;

use super::interval_layout::Pieces;
use super::{crc, digest, md5};

/// The longest field.
const LONGEST: usize = 128;

/// A method, by its own rule or the peer's.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoreRule {
    pub(super) method: VerifyMethod,
    /// sha256 and sha512 by the private rules of fio 3.33.
    pub(super) peer: bool,
}

/// A field: what was worked out over the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoredField {
    bytes: [u8; LONGEST],
    len: usize,
}

impl StoredField {
    /// The stored bytes.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl StoreRule {
    /// Its number in headers; `None` where no header is written.
    pub(super) const fn number(self) -> Option<u16> {
        if self.method.has_header() {
            Some(self.method.number())
        } else {
            None
        }
    }

    /// Bytes of its field.
    pub(super) const fn field_bytes(self) -> usize {
        match self.method {
            VerifyMethod::Crc7 => 1,
            VerifyMethod::Crc16 => 2,
            VerifyMethod::Crc32 | VerifyMethod::Crc32c | VerifyMethod::Xxhash => 4,
            VerifyMethod::Crc64 => 8,
            VerifyMethod::Md5 => 16,
            VerifyMethod::Sha1 => 20,
            VerifyMethod::Sha3_224 => 28,
            VerifyMethod::Sha3_256 => 32,
            VerifyMethod::Sha3_384 => 48,
            VerifyMethod::Sha256 | VerifyMethod::Sha3_512 => 64,
            VerifyMethod::Sha512 => LONGEST,
            VerifyMethod::Meta
            | VerifyMethod::Pattern
            | VerifyMethod::PatternHeader
            | VerifyMethod::Null => 0,
        }
    }

    /// The data is the pattern, byte for byte, where there is one.
    pub(super) const fn compares_pattern(self) -> bool {
        matches!(
            self.method,
            VerifyMethod::Pattern | VerifyMethod::PatternHeader | VerifyMethod::Meta
        )
    }

    /// Without a pattern there is nothing to check.
    pub(super) const fn needs_pattern(self) -> bool {
        matches!(
            self.method,
            VerifyMethod::Pattern | VerifyMethod::PatternHeader
        )
    }

    /// The field over `data`.
    pub(super) fn field(self, data: &Pieces) -> StoredField {
        let mut bytes = [0; LONGEST];
        match self.method {
            VerifyMethod::Crc7 => bytes[0] = crc::crc7(data),
            VerifyMethod::Crc16 => put(&mut bytes, crc::crc16(data).to_le_bytes()),
            VerifyMethod::Crc32 => put(&mut bytes, crc::crc32(data).to_le_bytes()),
            VerifyMethod::Crc32c => put(&mut bytes, crc::crc32c(data).to_le_bytes()),
            VerifyMethod::Crc64 => put(&mut bytes, crc::crc64(data).to_le_bytes()),
            VerifyMethod::Xxhash => put(&mut bytes, digest::xxh32(data).to_le_bytes()),
            VerifyMethod::Md5 => put(&mut bytes, md5::md5(data)),
            VerifyMethod::Sha1 => digest::sha1(data, &mut bytes),
            VerifyMethod::Sha256 if self.peer => put(&mut bytes, digest::peer_sha256(data)),
            VerifyMethod::Sha256 => digest::sha256(data, &mut bytes),
            VerifyMethod::Sha512 if self.peer => bytes = digest::peer_sha512(data),
            VerifyMethod::Sha512 => digest::sha512(data, &mut bytes),
            VerifyMethod::Sha3_224 => digest::sha3_224(data, &mut bytes),
            VerifyMethod::Sha3_256 => digest::sha3_256(data, &mut bytes),
            VerifyMethod::Sha3_384 => digest::sha3_384(data, &mut bytes),
            VerifyMethod::Sha3_512 => digest::sha3_512(data, &mut bytes),
            VerifyMethod::Meta
            | VerifyMethod::Pattern
            | VerifyMethod::PatternHeader
            | VerifyMethod::Null => {}
        }
        StoredField {
            bytes,
            len: self.field_bytes(),
        }
    }
}

/// Checksum that a method stores for this data, by its own rule; empty for methods
/// without one.
pub fn checksum(method: VerifyMethod, data: &[u8]) -> Vec<u8> {
    let rule = StoreRule {
        method,
        peer: false,
    };
    rule.field(&[data, &[], &[]]).as_bytes().to_vec()
}

fn put<const N: usize>(bytes: &mut [u8; LONGEST], value: [u8; N]) {
    bytes[..N].copy_from_slice(&value);
}
