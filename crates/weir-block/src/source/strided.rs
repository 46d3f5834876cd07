//! A walk over zones: a share of each zone, then the next one, around at the end of the target.
//!
//! In: a walk over one zone. Out: its places, moved to the zone whose turn it is.

use std::num::NonZeroU64;

use weir_schema::Zones;

use crate::source::block_order::BlockOrder;

/// A walk that is repeated in zone after zone.
#[derive(Debug)]
pub(super) struct Strided {
    inner: BlockOrder,
    /// Start of the zone.
    base: u64,
    /// Bytes moved in it.
    moved: u64,
    zones: Zones,
    stride: NonZeroU64,
    length: u64,
}

impl Strided {
    /// `inner` walks over the first zone of a target of `length` bytes.
    pub(super) fn new(inner: BlockOrder, zones: Zones, length: u64) -> Self {
        let stride = zones.range.0.saturating_add(zones.skip.0);
        Self {
            inner,
            base: 0,
            moved: 0,
            zones,
            stride: NonZeroU64::new(stride).unwrap_or(NonZeroU64::MIN),
            length,
        }
    }

    /// Offset and length of the next operation. It never ends by itself.
    pub(super) fn next(
        &mut self,
        kind: usize,
        choose: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Option<(u64, u64)> {
        if self.moved >= self.zones.bytes.0 {
            self.next_zone();
        }
        // A zone that is cut off by the target's end may have no room any more: two more tries
        // reach the first zone.
        for _ in 0..3 {
            let room = self.length - self.base;
            let mut within = |inner_room: u64| choose(inner_room.min(room));
            if let Some((offset, length)) = self.inner.next(kind, &mut within)
                && offset + length <= room
            {
                self.moved += length;
                return Some((self.base + offset, length));
            }
            self.inner.restart();
            if self.length - self.base < self.zones.range.0 {
                self.next_zone();
            }
        }
        None
    }

    fn next_zone(&mut self) {
        self.moved = 0;
        self.base = self.base.saturating_add(self.stride.get());
        if self.base >= self.length {
            self.base = 0;
        }
        self.inner.restart();
    }

    pub(super) fn restart(&mut self) {
        self.base = 0;
        self.moved = 0;
        self.inner.restart();
    }
}
