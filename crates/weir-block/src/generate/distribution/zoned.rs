//! zoned — shares of the accesses to parts of the region.
//!
//! In: zones in order from the start of the region, each with its share of the
//! accesses and its length (percent of the region, or blocks). Out: block
//! indices, uniform within the zone that was drawn. Zones that lie behind the
//! end or that round to nothing are left out, and the others keep their
//! proportions; blocks behind the last zone are never touched. That the shares
//! add up to 100 is for the parser to demand.

use core::num::NonZeroU64;

use weir_run::generate::rng::Rng;

use crate::generate::GenerateError;

/// One zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone {
    /// Share of the accesses, relative to the other zones' shares.
    pub accesses: u32,
    /// Length: percent of the region, or blocks.
    pub length: u64,
}

/// The zoned distribution over the blocks of a region.
#[derive(Debug, Clone)]
pub struct Zoned {
    zones: Box<[ZoneOfBlocks]>,
    shares: u64,
}

/// A zone that exists: where it lies, and the sum of shares up to its end.
#[derive(Debug, Clone, Copy)]
struct ZoneOfBlocks {
    shares_to: u64,
    start: u64,
    blocks: u64,
}

impl Zoned {
    /// Zones whose lengths are percentages of the region: ends are rounded down
    /// to blocks, so that 100 percent cover the region without a gap.
    ///
    /// # Errors
    /// [`GenerateError::NoZone`].
    pub fn by_percent(blocks: NonZeroU64, zones: &[Zone]) -> Result<Self, GenerateError> {
        let share = |percent: u64| {
            let end = u128::from(blocks.get()) * u128::from(percent) / 100;
            u64::try_from(end).unwrap_or(u64::MAX)
        };
        Self::new(blocks, zones, share)
    }

    /// Zones whose lengths are numbers of blocks.
    ///
    /// # Errors
    /// [`GenerateError::NoZone`].
    pub fn by_blocks(blocks: NonZeroU64, zones: &[Zone]) -> Result<Self, GenerateError> {
        Self::new(blocks, zones, |end| end)
    }

    fn new(
        blocks: NonZeroU64,
        zones: &[Zone],
        block_of: impl Fn(u64) -> u64,
    ) -> Result<Self, GenerateError> {
        let mut parts = Vec::with_capacity(zones.len());
        let (mut reached, mut start, mut shares) = (0_u64, 0, 0);
        for zone in zones {
            reached = reached.saturating_add(zone.length);
            let end = block_of(reached).min(blocks.get());
            if end > start && zone.accesses > 0 {
                shares += u64::from(zone.accesses);
                parts.push(ZoneOfBlocks {
                    shares_to: shares,
                    start,
                    blocks: end - start,
                });
            }
            start = end;
        }
        if parts.is_empty() {
            return Err(GenerateError::NoZone);
        }
        Ok(Self {
            zones: parts.into_boxed_slice(),
            shares,
        })
    }

    /// The next block.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let share = rng.below(self.shares);
        let part = self.zones.partition_point(|part| part.shares_to <= share);
        let part = &self.zones[part];
        part.start + rng.below(part.blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zones(list: &[(u32, u64)]) -> Vec<Zone> {
        list.iter()
            .map(|&(accesses, length)| Zone { accesses, length })
            .collect()
    }

    fn counts(zoned: &Zoned, ends: &[u64]) -> Vec<f64> {
        let mut rng = Rng::new(11);
        let mut counts = vec![0.0; ends.len()];
        for _ in 0..100_000 {
            let block = zoned.draw(&mut rng);
            counts[ends.partition_point(|&end| end <= block)] += 1e-5;
        }
        counts
    }

    #[test]
    fn zones_by_percent_get_their_shares_of_the_accesses() {
        let n = NonZeroU64::new(1000).unwrap();
        let list = zones(&[(60, 10), (30, 20), (8, 30), (2, 40)]);
        let zoned = Zoned::by_percent(n, &list).unwrap();
        let got = counts(&zoned, &[100, 300, 600, 1000]);
        for (got, asked) in got.iter().zip([0.60, 0.30, 0.08, 0.02]) {
            assert!((got - asked).abs() < 0.008, "{got} for {asked}");
        }
    }

    #[test]
    fn zones_by_blocks_leave_gaps_and_the_rest_alone() {
        let n = NonZeroU64::new(1000).unwrap();
        let list = zones(&[(60, 100), (0, 50), (40, 50)]);
        let zoned = Zoned::by_blocks(n, &list).unwrap();
        let got = counts(&zoned, &[100, 150, 200, 1000]);
        assert!((got[0] - 0.6).abs() < 0.008);
        assert_eq!((got[1], got[3]), (0.0, 0.0));
    }

    #[test]
    fn zones_behind_the_end_are_left_out_and_the_last_one_is_cut() {
        let n = NonZeroU64::new(10).unwrap();
        let zoned = Zoned::by_blocks(n, &zones(&[(50, 8), (25, 8), (25, 8)])).unwrap();
        let got = counts(&zoned, &[8, 10]);
        assert!((got[0] - 2.0 / 3.0).abs() < 0.008);
    }

    #[test]
    fn no_zone_at_all_is_refused() {
        for list in [zones(&[]), zones(&[(0, 10)]), zones(&[(100, 0)])] {
            let refused = Zoned::by_percent(NonZeroU64::MIN, &list).unwrap_err();
            assert_eq!(refused, GenerateError::NoZone);
        }
    }
}
