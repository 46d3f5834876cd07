//! The header of an interval: forty bytes in front of checksum and data.
//!
//! In and out: bytes. Layout, little-endian, as fio 3.33 has it: magic, number
//! of the method, length of the interval, seed of its data, its offset on the
//! target, time of the write in seconds and nanoseconds, worker, number of the
//! write, CRC-32C of all that. The run that wrote it lies in the seed's upper
//! sixteen bits.

use super::crc::crc32c;

/// Bytes of a header.
pub(super) const HEADER: usize = 40;
/// First word of every header.
pub(super) const MAGIC: u16 = 0xacca;
/// Bits of the seed that are not the run's.
pub(super) const SEED_BITS: u64 = (1 << 48) - 1;

/// A header's fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BlockHeader {
    pub(super) magic: u16,
    pub(super) method: u16,
    pub(super) length: u32,
    pub(super) seed: u64,
    pub(super) offset: u64,
    pub(super) seconds: u32,
    pub(super) nanos: u32,
    pub(super) worker: u16,
    pub(super) count: u16,
    pub(super) checksum: u32,
}

impl BlockHeader {
    /// Reads the fields; bytes that are missing count as zero.
    pub(super) fn read(stored: &[u8]) -> Self {
        Self {
            magic: u16::from_le_bytes(field(stored, 0)),
            method: u16::from_le_bytes(field(stored, 2)),
            length: u32::from_le_bytes(field(stored, 4)),
            seed: u64::from_le_bytes(field(stored, 8)),
            offset: u64::from_le_bytes(field(stored, 16)),
            seconds: u32::from_le_bytes(field(stored, 24)),
            nanos: u32::from_le_bytes(field(stored, 28)),
            worker: u16::from_le_bytes(field(stored, 32)),
            count: u16::from_le_bytes(field(stored, 34)),
            checksum: u32::from_le_bytes(field(stored, 36)),
        }
    }

    /// The fields as they are stored.
    pub(super) fn bytes(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[0..2].copy_from_slice(&self.magic.to_le_bytes());
        out[2..4].copy_from_slice(&self.method.to_le_bytes());
        out[4..8].copy_from_slice(&self.length.to_le_bytes());
        out[8..16].copy_from_slice(&self.seed.to_le_bytes());
        out[16..24].copy_from_slice(&self.offset.to_le_bytes());
        out[24..28].copy_from_slice(&self.seconds.to_le_bytes());
        out[28..32].copy_from_slice(&self.nanos.to_le_bytes());
        out[32..34].copy_from_slice(&self.worker.to_le_bytes());
        out[34..36].copy_from_slice(&self.count.to_le_bytes());
        out[36..40].copy_from_slice(&self.checksum.to_le_bytes());
        out
    }

    /// The checksum that these fields should have.
    pub(super) fn calculated(&self) -> u32 {
        crc32c(&[&self.bytes()[..HEADER - 4], &[], &[]])
    }

    /// The same fields with the checksum that belongs to them.
    pub(super) fn signed(mut self) -> Self {
        self.checksum = self.calculated();
        self
    }

    /// It is a header, and undamaged.
    pub(super) fn is_good(&self) -> bool {
        self.magic == MAGIC && self.checksum == self.calculated()
    }

    /// The run that wrote it; 0 where none is named.
    pub(super) const fn run(&self) -> u16 {
        (self.seed >> 48) as u16
    }

    /// The undamaged header that this one was before one byte changed, or its
    /// magic, method, length and offset, which `wanted` tells.
    pub(super) fn repaired(&self, wanted: &Self) -> Option<Self> {
        let mut bytes = Self {
            magic: wanted.magic,
            method: wanted.method,
            length: wanted.length,
            offset: wanted.offset,
            ..*self
        }
        .bytes();
        if Self::read(&bytes).is_good() {
            return Some(Self::read(&bytes));
        }
        for at in 0..HEADER {
            let stored = bytes[at];
            for change in 1..=u8::MAX {
                bytes[at] = stored ^ change;
                let header = Self::read(&bytes);
                if header.is_good() {
                    return Some(header);
                }
            }
            bytes[at] = stored;
        }
        None
    }
}

fn field<const N: usize>(stored: &[u8], at: usize) -> [u8; N] {
    stored
        .get(at..at + N)
        .and_then(|bytes| bytes.try_into().ok())
        .unwrap_or([0; N])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As fio 3.33 wrote it: `--verify=crc32c --verify_interval=4k`, second interval.
    const PEER: [u8; HEADER] = [
        0xca, 0xac, 0x05, 0x00, 0x00, 0x10, 0x00, 0x00, 0x3c, 0x54, 0x09, 0xc5, 0x01, 0xcc, 0xa4,
        0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x63, 0x2f, 0x00, 0x00, 0x9e, 0x0b,
        0x2e, 0x35, 0x01, 0x00, 0x00, 0x00, 0x4a, 0x3c, 0x38, 0x07,
    ];

    #[test]
    fn a_header_of_the_peer_is_read_and_written_back() {
        let header = BlockHeader::read(&PEER);
        assert_eq!(
            (header.magic, header.method, header.length),
            (MAGIC, 5, 4096)
        );
        assert_eq!((header.offset, header.worker, header.count), (4096, 1, 0));
        assert_eq!((header.run(), header.seconds), (0x00a4, 0x2f63));
        assert!(header.is_good());
        assert_eq!(header.bytes(), PEER);
        assert_eq!(
            BlockHeader {
                checksum: 0,
                ..header
            }
            .signed(),
            header
        );
    }

    #[test]
    fn any_flipped_bit_is_found_and_put_right() {
        let good = BlockHeader::read(&PEER);
        for bit in 0..8 * HEADER {
            let mut bytes = PEER;
            bytes[bit / 8] ^= 1 << (bit % 8);
            let damaged = BlockHeader::read(&bytes);
            assert!(!damaged.is_good(), "{bit}");
            assert_eq!(damaged.repaired(&good), Some(good), "{bit}");
        }
        let mut bytes = PEER;
        bytes[26] ^= 0xff;
        assert_eq!(BlockHeader::read(&bytes).repaired(&good), Some(good));
        assert_eq!(BlockHeader::default().repaired(&good), None);
    }
}
