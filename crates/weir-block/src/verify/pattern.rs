//! A pattern: bytes repeated through a block, from its start.
//!
//! In: a block's offset. Out: filled blocks, and the first byte that is not the
//! pattern's. Places in the pattern may hold the block's offset.

use weir_schema::VerifyPattern;

use crate::generate::payload::extend;

/// Bytes of an offset in a pattern.
const OFFSET: usize = 8;

/// A pattern that is not empty.
#[derive(Debug, Clone)]
pub(super) struct DataPattern {
    bytes: Box<[u8]>,
    offsets_at: Box<[usize]>,
}

impl DataPattern {
    /// `None` for a pattern without bytes.
    pub(super) fn new(pattern: &VerifyPattern) -> Option<Self> {
        (!pattern.bytes.is_empty()).then(|| Self {
            bytes: pattern.bytes.as_slice().into(),
            offsets_at: pattern
                .offsets_at
                .iter()
                .filter_map(|&at| usize::try_from(at).ok())
                .collect(),
        })
    }

    /// Fills a block that lies at `offset`.
    pub(super) fn fill(&self, block: &mut [u8], offset: u64) {
        let first = self.bytes.len().min(block.len());
        for (index, place) in block[..first].iter_mut().enumerate() {
            *place = self.byte(index, offset);
        }
        extend(block, first);
    }

    /// The byte `index` bytes into a block that lies at `offset`.
    pub(super) fn byte(&self, index: usize, offset: u64) -> u8 {
        let index = index % self.bytes.len();
        self.offsets_at
            .iter()
            .rev()
            .find_map(|&at| offset.to_le_bytes().get(index.wrapping_sub(at)).copied())
            .unwrap_or(self.bytes[index])
    }

    /// The first byte of `data` that is wrong, where `data` begins `position`
    /// bytes into the block that lies at `offset`.
    pub(super) fn first_bad(&self, data: &[u8], position: usize, offset: u64) -> Option<usize> {
        let unit = self.bytes.len().min(data.len());
        let wrong = |index: &usize| data[*index] != self.byte(position + index, offset);
        // A first unit that is right and a rest that repeats it are right.
        if let Some(bad) = (0..unit).find(wrong) {
            return Some(bad);
        }
        if data[unit..] == data[..data.len() - unit] {
            return None;
        }
        (unit..data.len()).find(wrong)
    }

    /// The offset that the block would have which `data`, `position` bytes into
    /// it, was made for.
    pub(super) fn offset_in(&self, data: &[u8], position: usize) -> Option<u64> {
        let unit = self.bytes.len();
        let at = *self.offsets_at.first()?;
        let start = (at + unit - position % unit) % unit;
        let bytes = data.get(start..start + OFFSET)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}
