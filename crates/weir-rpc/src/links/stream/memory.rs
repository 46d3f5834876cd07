//! The memory of a stream's payloads: regions that frames are read into and written from.
//!
//! In: sizes. Out: bytes by region. A region that a frame still refers to is kept until the frame
//! is through, so that its number never means other memory meanwhile.

use weir_sys::buffer::{AlignedBuf, Backing, BufferSpec};
use weir_units::Bytes;

use crate::links::{MemoryRange, RegionId};
use crate::{DerCode, RpcError};

/// Room to move the address of a buffer by.
const SPARE: usize = 256;

#[derive(Debug)]
struct HeldRegion {
    memory: AlignedBuf,
    offset: usize,
    length: usize,
    /// Frames on their way that refer to it.
    pins: u32,
    released: bool,
}

/// Regions by number.
#[derive(Debug, Default)]
pub(crate) struct RegionTable {
    regions: Vec<Option<HeldRegion>>,
    free: Vec<u32>,
}

impl RegionTable {
    /// New memory, zeroed and present.
    pub(crate) fn allocate(
        &mut self,
        bytes: usize,
        low_byte: Option<u8>,
    ) -> Result<RegionId, RpcError> {
        let spare = if low_byte.is_some() { SPARE } else { 0 };
        let whole = bytes.max(1).checked_add(spare);
        let spec = BufferSpec {
            backing: Backing::Transparent,
            ..BufferSpec::private(Bytes(whole.unwrap_or(usize::MAX) as u64))
        };
        let memory = AlignedBuf::new(&spec)
            .map_err(|error| RpcError::new(DerCode::NoMemory, error.to_string()))?;
        let region = HeldRegion {
            memory,
            // The memory begins at a page.
            offset: usize::from(low_byte.unwrap_or(0)),
            length: bytes,
            pins: 0,
            released: false,
        };
        if let Some(index) = self.free.pop() {
            self.regions[index as usize] = Some(region);
            return Ok(RegionId(index));
        }
        let index = u32::try_from(self.regions.len())
            .map_err(|_| RpcError::new(DerCode::NoMemory, "too many buffers"))?;
        self.regions.push(Some(region));
        Ok(RegionId(index))
    }

    /// Gives a region back once nothing refers to it.
    pub(crate) fn release(&mut self, region: RegionId) {
        if let Some(Some(held)) = self.regions.get_mut(region.0 as usize) {
            held.released = true;
            if held.pins == 0 {
                self.drop_region(region);
            }
        }
    }

    fn drop_region(&mut self, region: RegionId) {
        self.regions[region.0 as usize] = None;
        self.free.push(region.0);
    }

    /// All of a region; empty for none.
    #[inline]
    pub(crate) fn bytes(&mut self, region: RegionId) -> &mut [u8] {
        match self.regions.get_mut(region.0 as usize) {
            Some(Some(held)) => held.memory.slot_mut(held.offset, held.length),
            _ => &mut [],
        }
    }

    /// A part of a region; empty where it does not lie within.
    #[inline]
    pub(crate) fn part(&self, range: MemoryRange) -> &[u8] {
        let Some(Some(held)) = self.regions.get(range.region.0 as usize) else {
            return &[];
        };
        let bytes = held.memory.slot(held.offset, held.length);
        let part = range.bounds().and_then(|bounds| bytes.get(bounds));
        part.unwrap_or(&[])
    }

    /// A part of a region, to write; empty where it does not lie within.
    #[inline]
    pub(crate) fn part_mut(&mut self, range: MemoryRange) -> &mut [u8] {
        let bytes = self.bytes(range.region);
        let part = range.bounds().and_then(|bounds| bytes.get_mut(bounds));
        part.unwrap_or(&mut [])
    }

    /// A frame refers to it from now on.
    pub(super) fn pin(&mut self, region: RegionId) {
        if let Some(Some(held)) = self.regions.get_mut(region.0 as usize) {
            held.pins += 1;
        }
    }

    /// A frame on its way refers to it.
    pub(super) fn is_pinned(&self, region: RegionId) -> bool {
        matches!(self.regions.get(region.0 as usize), Some(Some(held)) if held.pins > 0)
    }

    /// The frame is through.
    pub(super) fn unpin(&mut self, region: RegionId) {
        if let Some(Some(held)) = self.regions.get_mut(region.0 as usize) {
            held.pins = held.pins.saturating_sub(1);
            if held.pins == 0 && held.released {
                self.drop_region(region);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_ends_in_the_byte_asked_for_and_outlives_frames() {
        let mut table = RegionTable::default();
        let region = table.allocate(100, Some(3)).unwrap();
        assert_eq!(table.bytes(region).len(), 100);
        assert_eq!(table.bytes(region).as_ptr().addr() & 255, 3);
        table.pin(region);
        table.release(region);
        let other = table.allocate(10, None).unwrap();
        assert_ne!(other, region);
        table.unpin(region);
        assert!(table.bytes(region).is_empty());
        assert_eq!(table.allocate(10, None).unwrap(), region);
    }

    #[test]
    fn a_part_lies_within_its_region() {
        let mut table = RegionTable::default();
        let region = table.allocate(100, None).unwrap();
        let range = |offset, length| MemoryRange {
            region,
            offset,
            length,
        };
        assert_eq!(table.part(range(10, 90)).len(), 90);
        assert!(table.part(range(10, 91)).is_empty());
        assert!(table.part(range(u64::MAX, 2)).is_empty());
    }
}
