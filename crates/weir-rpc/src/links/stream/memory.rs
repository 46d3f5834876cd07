//! The memory of a stream's payloads: regions that frames are read into and written from.
//!
//! In: sizes. Out: bytes by region. A region that a frame still refers to is kept until the frame
//! is through, so that its number never means other memory meanwhile.

use weir_sys::buffer::{AlignedBuf, Backing, BufferSpec, footprint};
use weir_units::Bytes;

use crate::links::{MemoryRange, RegionId};
use crate::{DerCode, RpcError};

/// Room to move the address of a buffer by.
const SPARE: usize = 256;

/// Memory of one mapping, in which several regions may lie.
#[derive(Debug)]
struct Slab {
    memory: AlignedBuf,
    regions: u32,
}

#[derive(Debug)]
struct HeldRegion {
    slab: u32,
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
    slabs: Vec<Option<Slab>>,
    free_slabs: Vec<u32>,
}

/// Distance of regions that lie in one slab: their addresses end alike.
fn region_distance(bytes: usize, low_byte: Option<u8>) -> Option<usize> {
    let spare = usize::from(low_byte.unwrap_or(0));
    bytes
        .max(1)
        .checked_add(spare)?
        .checked_next_multiple_of(SPARE)
}

fn slab_spec(count: usize, bytes: usize, low_byte: Option<u8>) -> Option<BufferSpec> {
    let whole = region_distance(bytes, low_byte)?.checked_mul(count)? as u64;
    let huge = BufferSpec {
        backing: Backing::Transparent,
        ..BufferSpec::private(Bytes(whole))
    };
    // Huge pages that would be empty for the most part are memory that nobody asked for.
    let waste = footprint(&huge)? - whole;
    if waste <= whole / 8 {
        return Some(huge);
    }
    Some(BufferSpec::private(Bytes(whole)))
}

impl RegionTable {
    /// New memory, zeroed and present.
    pub(crate) fn allocate(
        &mut self,
        bytes: usize,
        low_byte: Option<u8>,
    ) -> Result<RegionId, RpcError> {
        let regions = self.allocate_many(1, bytes, low_byte)?;
        let none = || RpcError::new(DerCode::NoMemory, "no buffer");
        regions.into_iter().next().ok_or_else(none)
    }

    /// As many regions of one size, in one mapping.
    pub(crate) fn allocate_many(
        &mut self,
        count: usize,
        bytes: usize,
        low_byte: Option<u8>,
    ) -> Result<Vec<RegionId>, RpcError> {
        let no_memory = |why: &dyn ToString| RpcError::new(DerCode::NoMemory, why.to_string());
        let (Some(distance), Some(spec)) = (
            region_distance(bytes, low_byte),
            slab_spec(count, bytes, low_byte),
        ) else {
            return Err(no_memory(&"more than the address space"));
        };
        let last = self
            .regions
            .len()
            .max(self.slabs.len())
            .saturating_add(count);
        u32::try_from(last).map_err(|_| no_memory(&"too many buffers"))?;
        let slab = Slab {
            memory: AlignedBuf::new(&spec).map_err(|error| no_memory(&error))?,
            regions: u32::try_from(count).unwrap_or(u32::MAX),
        };
        let slab = put(&mut self.slabs, &mut self.free_slabs, slab);
        let regions = (0..count).map(|number| {
            let region = HeldRegion {
                slab,
                // The memory begins at a page.
                offset: number * distance + usize::from(low_byte.unwrap_or(0)),
                length: bytes,
                pins: 0,
                released: false,
            };
            RegionId(put(&mut self.regions, &mut self.free, region))
        });
        Ok(regions.collect())
    }

    /// Bytes that so many regions take of the machine: whole pages, and huge ones where those are asked for.
    pub(crate) fn footprint(count: usize, bytes: usize, low_byte: Option<u8>) -> Option<u64> {
        footprint(&slab_spec(count, bytes, low_byte)?)
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
        let Some(held) = self.regions[region.0 as usize].take() else {
            return;
        };
        self.free.push(region.0);
        let place = &mut self.slabs[held.slab as usize];
        if let Some(slab) = place {
            slab.regions -= 1;
            if slab.regions == 0 {
                *place = None;
                self.free_slabs.push(held.slab);
            }
        }
    }

    /// All of a region; empty for none.
    #[inline]
    pub(crate) fn bytes(&mut self, region: RegionId) -> &mut [u8] {
        match self.regions.get_mut(region.0 as usize) {
            Some(Some(held)) => match &mut self.slabs[held.slab as usize] {
                Some(slab) => slab.memory.slot_mut(held.offset, held.length),
                None => &mut [],
            },
            _ => &mut [],
        }
    }

    /// A part of a region; empty where it does not lie within.
    #[inline]
    pub(crate) fn part(&self, range: MemoryRange) -> &[u8] {
        let Some(Some(held)) = self.regions.get(range.region.0 as usize) else {
            return &[];
        };
        let Some(slab) = &self.slabs[held.slab as usize] else {
            return &[];
        };
        let bytes = slab.memory.slot(held.offset, held.length);
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

/// A free place, and the value in it.
fn put<T>(places: &mut Vec<Option<T>>, free: &mut Vec<u32>, value: T) -> u32 {
    if let Some(place) = free.pop() {
        places[place as usize] = Some(value);
        return place;
    }
    places.push(Some(value));
    u32::try_from(places.len() - 1).unwrap_or(u32::MAX)
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
    fn regions_of_one_mapping_end_alike_and_lie_apart() {
        let mut table = RegionTable::default();
        let regions = table.allocate_many(3, 300, Some(7)).unwrap();
        for (fill, region) in (1..).zip(&regions) {
            assert_eq!(table.bytes(*region).as_ptr().addr() & 255, 7);
            table.bytes(*region).fill(fill);
        }
        for (fill, region) in (1..).zip(&regions) {
            assert_eq!(table.bytes(*region), [fill; 300]);
        }
        let page = RegionTable::footprint(3, 300, Some(7)).unwrap();
        assert_eq!(page, 4096);
        for region in regions {
            table.release(region);
        }
        assert!(table.slabs.iter().all(Option::is_none));
        assert!(RegionTable::footprint(usize::MAX, 300, None).is_none());
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
