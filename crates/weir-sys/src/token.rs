//! A secret that two programs share, and the proof that both know it, without saying it.
//!
//! In: a file, or bytes; both greetings of a connection. Out: a proof (HMAC-SHA256), whether two are the same,
//! numbers that make each proof another one, whether an address may try once more. Not here: when it is asked
//! for, the words of a greeting.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest, Sha256};

use crate::SysError;

/// Bytes that HMAC works on at once.
const BLOCK: usize = 64;
/// Longest token file.
const LONGEST: u64 = 4096;
/// Fewest bytes of a token: who hears a handshake can try all that are shorter.
const SHORTEST: usize = 16;
/// Wrong proofs that an address may send within a second.
const TRIES: u32 = 10;
/// Time that a wrong proof counts.
const WATCH: Duration = Duration::from_secs(1);
/// Addresses that are remembered for their wrong proofs.
const REMEMBERED: usize = 4096;

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
    /// It cannot be read, has fewer than 16 bytes, or others than its owner may read it:
    /// [`SysError::Invalid`].
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
            short if short.len() < SHORTEST => Err(refuse(format!(
                "{} bytes; a token has at least {SHORTEST} (`head -c 24 /dev/urandom | base64` makes one)",
                short.len()
            ))),
            token => Ok(Self(token.to_vec())),
        }
    }

    /// The proof of one side of a connection: of both greetings as they were sent, with all that they say,
    /// each with a [`nonce`] of its own.
    pub fn proof(
        &self,
        protocol: Protocol,
        [client, server]: [&[u8]; 2],
        side: ProvingSide,
    ) -> [u8; 32] {
        let length = (client.len() as u64).to_le_bytes();
        let words = [b"weir-auth", [protocol as u8, side as u8].as_slice()].concat();
        hmac(&self.0, &[&words, &length, client, server])
    }
}

/// Protocol that a connection speaks: a proof of one is none of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RPCs.
    Rpc = 1,
    /// Both sides of a packet path agree on a run.
    PacketPath,
    /// Messages between ranks.
    Ranks,
}

/// Side of a connection that proves that it knows the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProvingSide {
    /// It called.
    Client = 1,
    /// It was called.
    Server,
}

/// Limit of guesses: the wrong proofs of each address within a second.
#[derive(Debug, Default)]
pub struct GuessLimit {
    wrong: HashMap<IpAddr, (u32, Instant)>,
    /// Moment at which those whose time was over were forgotten, as there were too many.
    swept: Option<Instant>,
}

impl GuessLimit {
    /// True if a proof of this address is looked at.
    pub fn may_try(&self, address: IpAddr, now: Instant) -> bool {
        let wrong = self.wrong.get(&address);
        wrong.is_none_or(|(count, since)| *count < TRIES || is_over(*since, now))
    }

    /// Counts a wrong proof. Whoever has thousands of addresses is not stopped by counting them: beyond
    /// 4096 they are not remembered.
    pub fn wrong(&mut self, address: IpAddr, now: Instant) {
        if self.wrong.len() >= REMEMBERED && !self.wrong.contains_key(&address) {
            if self.swept.is_none_or(|swept| is_over(swept, now)) {
                self.wrong.retain(|_, (_, since)| !is_over(*since, now));
                self.swept = Some(now);
            }
            if self.wrong.len() >= REMEMBERED {
                return;
            }
        }
        let (count, since) = self.wrong.entry(address).or_insert((0, now));
        if is_over(*since, now) {
            (*count, *since) = (0, now);
        }
        *count += 1;
    }
}

fn is_over(since: Instant, now: Instant) -> bool {
    now.saturating_duration_since(since) > WATCH
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
    fn a_proof_depends_on_token_protocol_greetings_and_side() {
        let of = |token: &[u8], protocol, greetings: [&[u8]; 2], side| {
            Token::new(token.to_vec()).proof(protocol, greetings, side)
        };
        let (rpc, client) = (Protocol::Rpc, ProvingSide::Client);
        let expected = of(b"secret", rpc, [b"ab", b"c"], client);
        let others = [
            of(b"secreT", rpc, [b"ab", b"c"], client),
            of(b"secret", Protocol::Ranks, [b"ab", b"c"], client),
            of(b"secret", rpc, [b"aB", b"c"], client),
            of(b"secret", rpc, [b"a", b"bc"], client),
            of(b"secret", rpc, [b"ab", b"C"], client),
            of(b"secret", rpc, [b"ab", b"c"], ProvingSide::Server),
        ];
        assert!(same(&expected, &of(b"secret", rpc, [b"ab", b"c"], client)));
        assert!(others.iter().all(|other| !same(&expected, other)));
    }

    #[test]
    fn an_address_guesses_ten_times_a_second_and_few_addresses_are_remembered() {
        let mut limit = GuessLimit::default();
        let address = |number: usize| IpAddr::from(u32::try_from(number).unwrap().to_be_bytes());
        let now = Instant::now();
        for _ in 0..TRIES {
            assert!(limit.may_try(address(1), now));
            limit.wrong(address(1), now);
        }
        assert!(!limit.may_try(address(1), now));
        assert!(limit.may_try(address(2), now));
        (0..2 * REMEMBERED).for_each(|number| limit.wrong(address(number), now));
        assert_eq!(limit.wrong.len(), REMEMBERED);
        let later = now + 2 * WATCH;
        assert!(limit.may_try(address(1), later));
        limit.wrong(address(REMEMBERED * 3), later);
        assert_eq!(limit.wrong.len(), 1);
    }

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
