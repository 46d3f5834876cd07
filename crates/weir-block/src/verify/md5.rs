//! MD5 (RFC 1321) for one long message.
//!
//! In: bytes in pieces. Out: the digest. MD5 is a chain in which each step waits
//! for the one before, so its speed is the length of that chain: the sums below
//! take what the step before has made last, and the constants come out of
//! memory, since a compiler that sees them regroups the sums. A quarter faster
//! than the crates; nothing of the rest of verification is slower than it.

use std::hint::black_box;

use super::digest::chain;
use super::interval_layout::Pieces;

/// First state.
const START: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
/// The sines of 1 to 64, by rounds.
static SINES: [[u32; 16]; 4] = [
    [
        0xd76a_a478,
        0xe8c7_b756,
        0x2420_70db,
        0xc1bd_ceee,
        0xf57c_0faf,
        0x4787_c62a,
        0xa830_4613,
        0xfd46_9501,
        0x6980_98d8,
        0x8b44_f7af,
        0xffff_5bb1,
        0x895c_d7be,
        0x6b90_1122,
        0xfd98_7193,
        0xa679_438e,
        0x49b4_0821,
    ],
    [
        0xf61e_2562,
        0xc040_b340,
        0x265e_5a51,
        0xe9b6_c7aa,
        0xd62f_105d,
        0x0244_1453,
        0xd8a1_e681,
        0xe7d3_fbc8,
        0x21e1_cde6,
        0xc337_07d6,
        0xf4d5_0d87,
        0x455a_14ed,
        0xa9e3_e905,
        0xfcef_a3f8,
        0x676f_02d9,
        0x8d2a_4c8a,
    ],
    [
        0xfffa_3942,
        0x8771_f681,
        0x6d9d_6122,
        0xfde5_380c,
        0xa4be_ea44,
        0x4bde_cfa9,
        0xf6bb_4b60,
        0xbebf_bc70,
        0x289b_7ec6,
        0xeaa1_27fa,
        0xd4ef_3085,
        0x0488_1d05,
        0xd9d4_d039,
        0xe6db_99e5,
        0x1fa2_7cf8,
        0xc4ac_5665,
    ],
    [
        0xf429_2244,
        0x432a_ff97,
        0xab94_23a7,
        0xfc93_a039,
        0x655b_59c3,
        0x8f0c_cc92,
        0xffef_f47d,
        0x8584_5dd1,
        0x6fa8_7e4f,
        0xfe2c_e6e0,
        0xa301_4314,
        0x4e08_11a1,
        0xf753_7e82,
        0xbd3a_f235,
        0x2ad7_d2bb,
        0xeb86_d391,
    ],
];

/// Constants of a round: its first word, the step to the next word, and the rotations.
struct Round {
    first: usize,
    stride: usize,
    rotations: [u32; 4],
}

/// The digest of `data`.
pub(super) fn md5(data: &Pieces) -> [u8; 16] {
    let mut state = START;
    chain(data, |blocks| compress(&mut state, blocks));
    let mut out = [0; 16];
    for (place, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *place = word.to_le_bytes();
    }
    out
}

#[rustfmt::skip]
fn compress(state: &mut [u32; 4], blocks: &[[u8; 64]]) {
    let sines = black_box(&SINES);
    for block in blocks {
        let mut words = [0; 16];
        for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        let mut next = *state;
        let step = Round { first: 0, stride: 1, rotations: [7, 12, 17, 22] };
        step.apply(&mut next, &words, &sines[0], |sum, x, y, z| sum.wrapping_add(z ^ (x & (y ^ z))));
        let step = Round { first: 1, stride: 5, rotations: [5, 9, 14, 20] };
        step.apply(&mut next, &words, &sines[1], |sum, x, y, z| sum.wrapping_add(y & !z).wrapping_add(x & z));
        let step = Round { first: 5, stride: 3, rotations: [4, 11, 16, 23] };
        step.apply(&mut next, &words, &sines[2], |sum, x, y, z| sum.wrapping_add(x ^ (y ^ z)));
        let step = Round { first: 0, stride: 7, rotations: [6, 10, 15, 21] };
        step.apply(&mut next, &words, &sines[3], |sum, x, y, z| sum.wrapping_add(y ^ (x | !z)));
        for (word, new) in state.iter_mut().zip(next) {
            *word = word.wrapping_add(new);
        }
    }
}

impl Round {
    #[inline]
    fn apply(
        &self,
        state: &mut [u32; 4],
        words: &[u32; 16],
        sines: &[u32; 16],
        mix: impl Fn(u32, u32, u32, u32) -> u32,
    ) {
        let [mut a, mut b, mut c, mut d] = *state;
        for step in 0..16 {
            let word = words[(self.first + self.stride * step) % 16];
            let sum = a.wrapping_add(word).wrapping_add(sines[step]);
            let turned = mix(sum, b, c, d).rotate_left(self.rotations[step % 4]);
            (a, b, c, d) = (d, turned.wrapping_add(b), b, c);
        }
        *state = [a, b, c, d];
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::hex;
    use super::*;

    fn digest(data: &[u8]) -> String {
        let (a, b) = data.split_at(data.len() / 3);
        hex(&md5(&[a, &[], b]))
    }

    #[test]
    fn the_published_digests_come_out() {
        assert_eq!(digest(b""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(digest(b"abc"), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(
            digest(b"abcdefghijklmnopqrstuvwxyz"),
            "c3fcd3d76192e4007dfb496cca67e13b"
        );
        let digits = b"1234567890".repeat(8);
        assert_eq!(digest(&digits), "57edf4a22be3c955ac49da2e2107b67a");
    }
}
