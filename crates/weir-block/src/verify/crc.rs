//! Cyclic checksums, each by the rule of its method.
//!
//! In: bytes in pieces. Out: the remainder. The catalogued variants differ from
//! what is stored in their last step alone; CRC-7 is worked out as a CRC-32
//! whose polynomial is that of CRC-7 moved up by 25 bits, which leaves the
//! wanted seven bits on top and lets it use the folding of wide checksums.

use std::sync::LazyLock;

use crc_fast::{CrcAlgorithm, CrcParams, Digest};

use super::interval_layout::Pieces;

/// CRC-7 within 32 bits.
static CRC7: LazyLock<CrcParams> =
    LazyLock::new(|| CrcParams::new("CRC-7", 32, 0x09 << 25, 0, false, 0, 0x75 << 25));

/// CRC-32C without the last complement.
pub(super) fn crc32c(data: &Pieces) -> u32 {
    !narrow(sum(CrcAlgorithm::Crc32Iscsi, data))
}

/// CRC-32, most significant bit first, from zero, without a last complement.
pub(super) fn crc32(data: &Pieces) -> u32 {
    !narrow(sum(CrcAlgorithm::Crc32Cksum, data))
}

/// CRC-64 with the polynomial of Jones.
pub(super) fn crc64(data: &Pieces) -> u64 {
    sum(CrcAlgorithm::Crc64Redis, data)
}

/// CRC-16/ARC.
#[expect(clippy::cast_possible_truncation, reason = "a remainder of 16 bits")]
pub(super) fn crc16(data: &Pieces) -> u16 {
    sum(CrcAlgorithm::Crc16Arc, data) as u16
}

/// CRC-7 from zero.
#[expect(clippy::cast_possible_truncation, reason = "the upper 7 of 32 bits")]
pub(super) fn crc7(data: &Pieces) -> u8 {
    (over(Digest::new_with_params(*CRC7), data) >> 25) as u8
}

fn sum(algorithm: CrcAlgorithm, data: &Pieces) -> u64 {
    over(Digest::new(algorithm), data)
}

fn over(mut digest: Digest, data: &Pieces) -> u64 {
    for piece in data {
        digest.update(piece);
    }
    digest.finalize()
}

#[expect(clippy::cast_possible_truncation, reason = "a remainder of 32 bits")]
const fn narrow(remainder: u64) -> u32 {
    remainder as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit by bit, most significant first.
    fn slow(data: &[u8], width: u32, polynomial: u64) -> u64 {
        let mut remainder = 0;
        for &byte in data {
            for bit in (0..8).rev() {
                let top = (remainder >> (width - 1)) & 1;
                remainder = (remainder << 1) & (u64::MAX >> (64 - width));
                if top != u64::from((byte >> bit) & 1) {
                    remainder ^= polynomial;
                }
            }
        }
        remainder
    }

    /// The same of bytes whose bits are turned round.
    fn slow_reflected(data: &[u8], width: u32, polynomial: u64) -> u64 {
        let turned: Vec<u8> = data.iter().map(|byte| byte.reverse_bits()).collect();
        slow(&turned, width, polynomial).reverse_bits() >> (64 - width)
    }

    #[test]
    fn catalogued_check_values_come_out() {
        let nine: Pieces = [b"12345", b"", b"6789"];
        assert_eq!(crc32c(&nine), !0xe306_9283);
        assert_eq!(crc32(&nine), !0x765e_7680);
        assert_eq!(crc64(&nine), 0xe9c6_d914_c4b8_d9ca);
        assert_eq!(crc16(&nine), 0xbb3d);
        assert_eq!(crc7(&nine), 0x75);
    }

    #[test]
    fn every_length_gives_what_the_bitwise_rule_gives() {
        let data: Vec<u8> = (0..700_u32).map(|i| (i * i / 8).to_le_bytes()[0]).collect();
        for len in (0..300).chain([511, 512, 513, 640, 700]) {
            let data = &data[..len];
            let pieces: Pieces = [&data[..len / 3], &data[len / 3..], &[]];
            assert_eq!(u64::from(crc7(&pieces)), slow(data, 7, 0x09), "{len}");
            assert_eq!(
                u64::from(crc32(&pieces)),
                slow(data, 32, 0x04c1_1db7),
                "{len}"
            );
            assert_eq!(
                u64::from(crc16(&pieces)),
                slow_reflected(data, 16, 0x8005),
                "{len}"
            );
            let jones = 0xad93_d235_94c9_35a9;
            assert_eq!(crc64(&pieces), slow_reflected(data, 64, jones), "{len}");
        }
    }
}
