//! A linear feedback shift register: every block once per pass without memory.
//!
//! In: the number of blocks and a start. Out: block indices, each exactly once,
//! then the end of the pass. A maximal-length Galois register of w bits runs
//! through every number from 1 to 2^w − 1; w is the smallest width with 2^w >= n,
//! and numbers outside the region are skipped (less than one per draw on
//! average). A region of exactly 2^w blocks is one number short: its last block
//! ends the pass. Cheaper than the random map and without its memory, but a poorer
//! random: about every other value is half its predecessor, and every pass runs
//! through the same circle, entered at another place.

use core::num::NonZeroU64;

use weir_run::generate::rng::Rng;

/// The narrowest register of the table.
const NARROWEST: u32 = 3;

/// Feedback masks of maximal-length registers of 3 to 64 bits, from the usual
/// table of taps (Alfke, Xilinx application note XAPP 052).
#[rustfmt::skip]
const MASKS: [u64; 62] = [
    mask(&[3, 2]),
    mask(&[4, 3]),
    mask(&[5, 3]),
    mask(&[6, 5]),
    mask(&[7, 6]),
    mask(&[8, 6, 5, 4]),
    mask(&[9, 5]),
    mask(&[10, 7]),
    mask(&[11, 9]),
    mask(&[12, 6, 4, 1]),
    mask(&[13, 4, 3, 1]),
    mask(&[14, 5, 3, 1]),
    mask(&[15, 14]),
    mask(&[16, 15, 13, 4]),
    mask(&[17, 14]),
    mask(&[18, 11]),
    mask(&[19, 6, 2, 1]),
    mask(&[20, 17]),
    mask(&[21, 19]),
    mask(&[22, 21]),
    mask(&[23, 18]),
    mask(&[24, 23, 22, 17]),
    mask(&[25, 22]),
    mask(&[26, 6, 2, 1]),
    mask(&[27, 5, 2, 1]),
    mask(&[28, 25]),
    mask(&[29, 27]),
    mask(&[30, 6, 4, 1]),
    mask(&[31, 28]),
    mask(&[32, 22, 2, 1]),
    mask(&[33, 20]),
    mask(&[34, 27, 2, 1]),
    mask(&[35, 33]),
    mask(&[36, 25]),
    mask(&[37, 5, 4, 3, 2, 1]),
    mask(&[38, 6, 5, 1]),
    mask(&[39, 35]),
    mask(&[40, 38, 21, 19]),
    mask(&[41, 38]),
    mask(&[42, 41, 20, 19]),
    mask(&[43, 42, 38, 37]),
    mask(&[44, 43, 18, 17]),
    mask(&[45, 44, 42, 41]),
    mask(&[46, 45, 26, 25]),
    mask(&[47, 42]),
    mask(&[48, 47, 21, 20]),
    mask(&[49, 40]),
    mask(&[50, 49, 24, 23]),
    mask(&[51, 50, 36, 35]),
    mask(&[52, 49]),
    mask(&[53, 52, 38, 37]),
    mask(&[54, 53, 18, 17]),
    mask(&[55, 31]),
    mask(&[56, 55, 35, 34]),
    mask(&[57, 50]),
    mask(&[58, 39]),
    mask(&[59, 58, 38, 37]),
    mask(&[60, 59]),
    mask(&[61, 60, 46, 45]),
    mask(&[62, 61, 6, 5]),
    mask(&[63, 62]),
    mask(&[64, 63, 61, 60]),
];

/// The mask with the given taps, counted from 1.
const fn mask(taps: &[u32]) -> u64 {
    let mut mask = 0;
    let mut i = 0;
    while i < taps.len() {
        mask |= 1 << (taps[i] - 1);
        i += 1;
    }
    mask
}

/// A register that runs over [0, n).
#[derive(Debug, Clone)]
pub struct Lfsr {
    blocks: u64,
    mask: u64,
    state: u64,
    left: u64,
    /// The register is one number short of the region.
    short: bool,
    rng: Rng,
}

impl Lfsr {
    /// A register for `blocks` blocks; `rng` says where each pass starts.
    pub fn new(blocks: NonZeroU64, rng: Rng) -> Self {
        let blocks = blocks.get();
        let width = (u64::BITS - (blocks - 1).leading_zeros()).max(NARROWEST);
        let mut lfsr = Self {
            blocks,
            mask: MASKS[(width - NARROWEST) as usize],
            state: 1,
            left: blocks,
            short: blocks.checked_shr(width) == Some(1),
            rng,
        };
        lfsr.restart();
        lfsr
    }

    /// The next block of this pass.
    #[inline(always)]
    pub fn next_block(&mut self) -> Option<u64> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        if self.left == 0 && self.short {
            return Some(self.blocks - 1);
        }
        loop {
            self.state = step(self.state, self.mask);
            let block = self.state - 1;
            if block < self.blocks {
                return Some(block);
            }
        }
    }

    /// Begins the next pass at another place of the circle.
    pub fn restart(&mut self) {
        self.left = self.blocks;
        // One of the register's own numbers: at most 2^w - 1, which is n - 1 if short.
        self.state = 1 + self.rng.below(self.blocks - u64::from(self.short));
    }
}

#[inline(always)]
const fn step(state: u64, mask: u64) -> u64 {
    (state >> 1) ^ (mask & (state & 1).wrapping_neg())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The prime factors of 2^w − 1 for w = 3..=64.
    #[rustfmt::skip]
    const PRIME_FACTORS: [&[u64]; 62] = [
        &[7],
        &[3, 5],
        &[31],
        &[3, 7],
        &[127],
        &[3, 5, 17],
        &[7, 73],
        &[3, 11, 31],
        &[23, 89],
        &[3, 5, 7, 13],
        &[8_191],
        &[3, 43, 127],
        &[7, 31, 151],
        &[3, 5, 17, 257],
        &[131_071],
        &[3, 7, 19, 73],
        &[524_287],
        &[3, 5, 11, 31, 41],
        &[7, 127, 337],
        &[3, 23, 89, 683],
        &[47, 178_481],
        &[3, 5, 7, 13, 17, 241],
        &[31, 601, 1_801],
        &[3, 2_731, 8_191],
        &[7, 73, 262_657],
        &[3, 5, 29, 43, 113, 127],
        &[233, 1_103, 2_089],
        &[3, 7, 11, 31, 151, 331],
        &[2_147_483_647],
        &[3, 5, 17, 257, 65_537],
        &[7, 23, 89, 599_479],
        &[3, 43_691, 131_071],
        &[31, 71, 127, 122_921],
        &[3, 5, 7, 13, 19, 37, 73, 109],
        &[223, 616_318_177],
        &[3, 174_763, 524_287],
        &[7, 79, 8_191, 121_369],
        &[3, 5, 11, 17, 31, 41, 61_681],
        &[13_367, 164_511_353],
        &[3, 7, 43, 127, 337, 5_419],
        &[431, 9_719, 2_099_863],
        &[3, 5, 23, 89, 397, 683, 2_113],
        &[7, 31, 73, 151, 631, 23_311],
        &[3, 47, 178_481, 2_796_203],
        &[2_351, 4_513, 13_264_529],
        &[3, 5, 7, 13, 17, 97, 241, 257, 673],
        &[127, 4_432_676_798_593],
        &[3, 11, 31, 251, 601, 1_801, 4_051],
        &[7, 103, 2_143, 11_119, 131_071],
        &[3, 5, 53, 157, 1_613, 2_731, 8_191],
        &[6_361, 69_431, 20_394_401],
        &[3, 7, 19, 73, 87_211, 262_657],
        &[23, 31, 89, 881, 3_191, 201_961],
        &[3, 5, 17, 29, 43, 113, 127, 15_790_321],
        &[7, 32_377, 524_287, 1_212_847],
        &[3, 59, 233, 1_103, 2_089, 3_033_169],
        &[179_951, 3_203_431_780_337],
        &[3, 5, 7, 11, 13, 31, 41, 61, 151, 331, 1_321],
        &[2_305_843_009_213_693_951],
        &[3, 715_827_883, 2_147_483_647],
        &[7, 73, 127, 337, 92_737, 649_657],
        &[3, 5, 17, 257, 641, 65_537, 6_700_417],
    ];

    /// The images of the unit vectors under a linear step of the register.
    type Matrix = [u64; 64];

    fn apply(matrix: &Matrix, vector: u64) -> u64 {
        (0..64)
            .filter(|bit| vector >> bit & 1 == 1)
            .fold(0, |sum, bit| sum ^ matrix[bit])
    }

    /// The state `steps` steps after state 1, by repeated squaring.
    fn after(squares: &[Matrix], steps: u64) -> u64 {
        (0..64)
            .filter(|bit| steps >> bit & 1 == 1)
            .fold(1, |state, bit| apply(&squares[bit], state))
    }

    #[test]
    fn registers_of_every_width_have_maximal_length() {
        for (width, (&mask, factors)) in (3..=64).zip(MASKS.iter().zip(PRIME_FACTORS)) {
            let one: Matrix = core::array::from_fn(|bit| step(1 << bit, mask));
            let mut squares = vec![one];
            for k in 0..63 {
                let last = squares[k];
                squares.push(last.map(|image| apply(&last, image)));
            }
            let length = u64::MAX >> (64 - width);
            assert_eq!(after(&squares, length), 1, "width {width}");
            for prime in factors {
                assert_ne!(
                    after(&squares, length / prime),
                    1,
                    "width {width} / {prime}"
                );
            }
        }
    }

    #[test]
    fn small_registers_pass_every_state_once() {
        for width in 3..=16 {
            let mask = MASKS[width - 3];
            let (mut state, mut length) = (step(1, mask), 1);
            while state != 1 {
                state = step(state, mask);
                length += 1;
            }
            assert_eq!(length, (1 << width) - 1);
        }
    }
}
