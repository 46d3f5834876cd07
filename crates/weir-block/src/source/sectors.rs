//! Data that is made of its place: each sector of 512 bytes of its number, a seed and a generation, so
//! that whoever knows these can check what anybody wrote, be it the kernel's module.
//!
//! In: a buffer and where it lies. Out: its content, or the first byte that is not as it was made. Not
//! here: marks of writes ([`crate::verify`]).

use weir_run::generate::rng::{GOLDEN, mix64};
use weir_schema::SectorData;

/// Bytes of a sector.
pub(crate) const SECTOR: u64 = 512;
/// Words of a sector.
const WORDS: usize = 64;
/// The first word of every sector.
const MAGIC: u64 = 0x314F_494B_5249_4557;

/// A byte that is not as it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrongWord {
    /// Offset in the buffer.
    pub(crate) at: u64,
    /// The word it is part of.
    pub(crate) wanted: u64,
    /// As it is.
    pub(crate) found: u64,
}

/// A word of a sector.
fn word(data: SectorData, sector: u64, index: usize) -> u64 {
    match index {
        0 => MAGIC,
        1 => sector,
        2 => data.generation,
        _ => {
            let place = data
                .generation
                .wrapping_mul(WORDS as u64)
                .wrapping_add(index as u64);
            let key = data.seed ^ sector.wrapping_mul(GOLDEN) ^ place;
            mix64(key.wrapping_add(GOLDEN))
        }
    }
}

/// Fills a buffer that goes to this offset.
pub(crate) fn fill(data: SectorData, buffer: &mut [u8], offset: u64) {
    for (sector, bytes) in (offset / SECTOR..).zip(buffer.chunks_mut(WORDS * 8)) {
        for (index, place) in bytes.chunks_exact_mut(8).enumerate() {
            place.copy_from_slice(&word(data, sector, index).to_le_bytes());
        }
    }
}

/// The first byte of a buffer from this offset that is not as it was made.
pub(crate) fn check(data: SectorData, buffer: &[u8], offset: u64) -> Option<WrongWord> {
    let first = offset / SECTOR;
    for (number, bytes) in buffer.chunks_exact(8).enumerate() {
        let sector = first + (number / WORDS) as u64;
        let wanted = word(data, sector, number % WORDS);
        let found = bytes.try_into().map_or(0, u64::from_le_bytes);
        if wanted != found {
            let within = u64::from((wanted ^ found).trailing_zeros() / 8);
            return Some(WrongWord {
                at: number as u64 * 8 + within,
                wanted,
                found,
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: SectorData = SectorData {
        seed: 0x5EED,
        generation: 3,
    };

    #[test]
    fn a_sector_begins_with_magic_number_and_generation() {
        let mut buffer = vec![0; 1024];
        fill(DATA, &mut buffer, 4096);
        assert_eq!(&buffer[..8], b"WEIRKIO1");
        assert_eq!(buffer[8..16], 8_u64.to_le_bytes());
        assert_eq!(buffer[16..24], 3_u64.to_le_bytes());
        assert_eq!(buffer[520..528], 9_u64.to_le_bytes());
        // The rule of the specification, by hand.
        let key = 0x5EED ^ 8_u64.wrapping_mul(GOLDEN) ^ (3 * 64 + 5);
        let expected = mix64(key.wrapping_add(GOLDEN));
        assert_eq!(buffer[40..48], expected.to_le_bytes());
    }

    #[test]
    fn the_first_wrong_byte_is_found() {
        let mut buffer = vec![0; 4096];
        fill(DATA, &mut buffer, 8192);
        assert_eq!(check(DATA, &buffer, 8192), None);
        assert!(check(DATA, &buffer, 4096).is_some_and(|wrong| wrong.at == 8));
        buffer[100] ^= 1;
        let wrong = check(DATA, &buffer, 8192).unwrap();
        assert_eq!(wrong.at, 100);
        assert_eq!(wrong.wanted ^ wrong.found, 1 << 32);
        let other = SectorData {
            generation: 4,
            ..DATA
        };
        assert!(check(other, &buffer, 8192).is_some_and(|wrong| wrong.at == 16));
    }
}
