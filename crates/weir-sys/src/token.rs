//! A secret that two programs share, and the proof that both know it, without saying it.
//!
//! In: a file, or bytes; what a proof is of. Out: a proof (HMAC-SHA256), whether two are the same, numbers that
//! make each proof another one. Not here: when it is asked for.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest, Sha256};

use crate::SysError;

/// Bytes that HMAC works on at once.
const BLOCK: usize = 64;
/// Longest token file.
const LONGEST: u64 = 4096;

/// Secret that both sides have to know.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Vec<u8>);

impl Token {
    /// These bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// A file's contents without the end of its line.
    ///
    /// # Errors
    /// It cannot be read, is empty, or others than its owner may read it: [`SysError::Invalid`].
    pub fn read(path: &Path) -> Result<Self, SysError> {
        let refuse = |why: String| {
            let message = format!("token file {}: {why}", path.display());
            SysError::Invalid(message)
        };
        let facts = std::fs::metadata(path).map_err(|error| refuse(error.to_string()))?;
        if facts.is_dir() {
            return Err(refuse("it is a directory; name the file".to_owned()));
        }
        if facts.permissions().mode() & 0o077 != 0 {
            return Err(refuse("others may read it (chmod 600)".to_owned()));
        }
        if facts.len() > LONGEST {
            return Err(refuse(format!("longer than {LONGEST} bytes")));
        }
        let bytes = std::fs::read(path).map_err(|error| refuse(error.to_string()))?;
        match bytes.trim_ascii_end() {
            [] => Err(refuse("empty".to_owned())),
            token => Ok(Self(token.to_vec())),
        }
    }

    /// The proof of these parts, one after the other. Parts of other protocols begin with other words, and
    /// parts of one have lengths that are known.
    pub fn proof(&self, parts: &[&[u8]]) -> [u8; 32] {
        hmac(&self.0, parts)
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// True if two proofs are the same, in a time that does not depend on where they differ.
pub fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    let differences = a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(differences) == 0
}

fn hmac(key: &[u8], message: &[&[u8]]) -> [u8; 32] {
    let mut block = [0; BLOCK];
    if key.len() > BLOCK {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let padded = |with: u8| block.map(|byte| byte ^ with);
    let mut inner = Sha256::new_with_prefix(padded(0x36));
    for part in message {
        inner.update(part);
    }
    let outer = Sha256::new_with_prefix(padded(0x5c));
    outer.chain_update(inner.finalize()).finalize().into()
}

/// A number that only those know who are given it. It guards against strangers and leftovers, not against
/// who listens on the wire.
pub fn number() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A number that nobody guesses, and that is never used twice. It needs no descriptor.
///
/// # Errors
/// The kernel has no such numbers.
pub fn nonce() -> io::Result<[u8; 16]> {
    let mut nonce = [0; 16];
    let mut had = 0;
    while had < nonce.len() {
        match getrandom(&mut nonce[had..], GetRandomFlags::empty()) {
            Ok(more) => had += more,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_standard() {
        // RFC 4231, case 2.
        let sum = hmac(b"Jefe", &[b"what do ya want ", b"for nothing?"]);
        let number = |half: &[u8]| u128::from_be_bytes(half.try_into().unwrap());
        let expected = [
            0x5bdc_c146_bf60_754e_6a04_2426_0895_75c7,
            0x5a00_3f08_9d27_3983_9dec_58b9_64ec_3843,
        ];
        assert_eq!([number(&sum[..16]), number(&sum[16..])], expected);
    }
}
