//! Digests, each by the rule of its method, and the private rules of fio 3.33.
//!
//! In: bytes in pieces. Out: the method's field.

use sha1::Sha1;
use sha2::{Sha256, Sha512, block_api};
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512, digest::Digest};
use xxhash_rust::xxh32::Xxh32;

use super::interval_layout::Pieces;

/// The seed fio starts XXH32 from.
const XXH32_SEED: u32 = 1;
/// First state of SHA-256.
const SHA256_START: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];
/// Block of SHA-256.
const BLOCK: usize = 64;

/// XXH32.
pub(super) fn xxh32(data: &Pieces) -> u32 {
    match data {
        // One stretch needs no state.
        [whole, [], []] => xxhash_rust::xxh32::xxh32(whole, XXH32_SEED),
        pieces => {
            let mut state = Xxh32::new(XXH32_SEED);
            for piece in pieces {
                state.update(piece);
            }
            state.digest()
        }
    }
}

/// SHA-1, each word with its bytes turned round.
pub(super) fn sha1(data: &Pieces, field: &mut [u8]) {
    digest::<Sha1>(data, field);
    let (words, _) = field[..20].as_chunks_mut::<4>();
    for word in words {
        word.reverse();
    }
}

/// SHA-256 into the first bytes of `field`.
pub(super) fn sha256(data: &Pieces, field: &mut [u8]) {
    digest::<Sha256>(data, field);
}

/// SHA-512 into the first bytes of `field`.
pub(super) fn sha512(data: &Pieces, field: &mut [u8]) {
    digest::<Sha512>(data, field);
}

/// SHA3 with 224 bits.
pub(super) fn sha3_224(data: &Pieces, field: &mut [u8]) {
    digest::<Sha3_224>(data, field);
}

/// SHA3 with 256 bits.
pub(super) fn sha3_256(data: &Pieces, field: &mut [u8]) {
    digest::<Sha3_256>(data, field);
}

/// SHA3 with 384 bits.
pub(super) fn sha3_384(data: &Pieces, field: &mut [u8]) {
    digest::<Sha3_384>(data, field);
}

/// SHA3 with 512 bits.
pub(super) fn sha3_512(data: &Pieces, field: &mut [u8]) {
    digest::<Sha3_512>(data, field);
}

fn digest<D: Digest>(data: &Pieces, field: &mut [u8]) {
    let mut state = D::new();
    for piece in data {
        state.update(piece);
    }
    let out = state.finalize();
    field[..out.len()].copy_from_slice(&out);
}

/// The bytes that fio 3.33 stores for sha256: the low byte of each state word, with
/// the length in bits appended little-endian, and then the rest of the last block.
pub(super) fn peer_sha256(data: &Pieces) -> [u8; BLOCK] {
    let mut state = SHA256_START;
    let mut field = chain(data, |blocks| block_api::compress256(&mut state, blocks));
    for (place, word) in field.iter_mut().zip(state) {
        [*place, ..] = word.to_le_bytes();
    }
    field
}

/// Gives all blocks of `data` to `compress`, padded with a one, zeros and the
/// length in bits, little-endian; the last of them comes back.
pub(super) fn chain(data: &Pieces, mut compress: impl FnMut(&[[u8; BLOCK]])) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut held = 0;
    let mut length = 0_u64;
    for mut piece in data.iter().copied() {
        length += piece.len() as u64;
        if held > 0 {
            let more = piece.len().min(BLOCK - held);
            block[held..held + more].copy_from_slice(&piece[..more]);
            piece = &piece[more..];
            held += more;
            if held < BLOCK {
                continue;
            }
            compress(&[block]);
        }
        let (blocks, rest) = piece.as_chunks::<BLOCK>();
        compress(blocks);
        block[..rest.len()].copy_from_slice(rest);
        held = rest.len();
    }
    block[held] = 0x80;
    block[held + 1..].fill(0);
    if held + 1 > BLOCK - 8 {
        compress(&[block]);
        block.fill(0);
    }
    block[BLOCK - 8..].copy_from_slice(&(length * 8).to_le_bytes());
    compress(&[block]);
    block
}

/// The bytes that fio 3.33 stores for sha512. They are no digest: with r the length's rest by 128,
/// the last r bytes and then the bytes from r to 127.
pub(super) fn peer_sha512(data: &Pieces) -> [u8; 128] {
    let mut field = [0; 128];
    let length: usize = data.iter().map(|piece| piece.len()).sum();
    let rest = length % field.len();
    for (index, place) in field.iter_mut().enumerate() {
        let from = if index < rest {
            length - rest + index
        } else {
            index
        };
        *place = byte(data, from);
    }
    field
}

/// The byte at `index`; zero behind the end.
fn byte(data: &Pieces, mut index: usize) -> u8 {
    for piece in data {
        match piece.get(index) {
            Some(&byte) => return byte,
            None => index -= piece.len(),
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::super::check::hex;
    use super::*;

    const ABC: Pieces = [b"", b"ab", b"c"];

    fn of(digest: fn(&Pieces, &mut [u8])) -> String {
        let mut field = [0; 128];
        digest(&ABC, &mut field);
        hex(&field[..20])
    }

    #[test]
    fn the_published_digests_come_out() {
        assert_eq!(of(sha1), "363e99a96a81064771253eba6cc250789dd8d09c");
        assert_eq!(of(sha256), "ba7816bf8f01cfea414140de5dae2223b00361a3");
        assert_eq!(of(sha512), "ddaf35a193617abacc417349ae20413112e6fa4e");
        assert_eq!(of(sha3_224), "e642824c3f8cf24ad09234ee7d3c766fc9a3a516");
        assert_eq!(of(sha3_256), "3a985da74fe225b2045c172d6bd390bd855f086e");
        assert_eq!(of(sha3_384), "ec01498288516fc926459f58e2c6ad8df9b473cb");
        assert_eq!(of(sha3_512), "b751850b1a57168a5693cd924b6b096e08f62182");
        assert_eq!(xxh32(&[b"", b"", b""]), 0x0b2c_b792);
        assert_eq!(xxh32(&ABC), xxh32(&[b"abc", b"", b""]));
    }

    #[test]
    fn the_peers_sha512_is_made_of_head_and_tail() {
        let data: Vec<u8> = (0..=199).collect();
        let field = peer_sha512(&[&data[..50], &data[50..150], &data[150..]]);
        assert_eq!(field[..72], data[128..]);
        assert_eq!(field[72..], data[72..128]);
    }
}
