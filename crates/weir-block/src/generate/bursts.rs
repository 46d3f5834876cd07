//! Bursts: reads and writes in runs, over one sequence of offsets that both share.
//!
//! In: a share of reads, lengths of bursts, a region, two random streams. Out: the kind and the offset
//! of one operation after the other, without an end. The kernel engine draws the same sequence from
//! the same seed, so the order of draws is part of the contract: one of the mix per burst where both
//! kinds occur, one of the offsets per operation where they are random. Not here: pauses, what is
//! carried out.

use weir_run::generate::rng::Rng;

use super::mix::DataKind;

/// Chooses kinds burst by burst.
#[derive(Debug, Clone)]
pub struct BurstMix {
    /// The only kind, where there is one.
    only: Option<DataKind>,
    read_percent: u64,
    /// Operations of a burst of reads, and of writes.
    lengths: [u32; 2],
    kind: DataKind,
    left: u32,
    rng: Rng,
}

impl BurstMix {
    /// Bursts of reads and writes of these lengths, 0 as 1; of one kind alone where `only` says so.
    pub fn new(only: Option<DataKind>, read_percent: u8, lengths: [u32; 2], rng: Rng) -> Self {
        Self {
            only,
            read_percent: u64::from(read_percent),
            lengths: lengths.map(|length| length.max(1)),
            kind: only.unwrap_or(DataKind::Read),
            left: 0,
            rng,
        }
    }

    /// The next operation begins a burst.
    #[inline]
    pub const fn is_at_start(&self) -> bool {
        self.left == 0
    }

    /// Bursts of both kinds are drawn.
    pub const fn has_both(&self) -> bool {
        self.only.is_none()
    }

    /// The kind of the next operation.
    #[inline]
    pub const fn next_kind(&mut self) -> DataKind {
        if self.left == 0 {
            self.draw();
        }
        self.left -= 1;
        self.kind
    }

    const fn draw(&mut self) {
        if self.only.is_none() {
            self.kind = if self.rng.below(100) < self.read_percent {
                DataKind::Read
            } else {
                DataKind::Write
            };
        }
        self.left = match self.kind {
            DataKind::Read => self.lengths[0],
            DataKind::Write | DataKind::Trim => self.lengths[1],
        };
    }
}

/// A walk over a region that has no end.
#[derive(Debug, Clone)]
pub enum EndlessWalk {
    /// Multiples of a unit, all alike.
    Random {
        /// Number of places.
        places: u64,
        /// Their distance.
        unit: u64,
        /// Random numbers that places are drawn from.
        rng: Rng,
    },
    /// One after the other, and back to the start where the next operation has no room.
    Stride {
        /// Added after each operation.
        stride: i64,
        /// The last offset with room for an operation.
        last: u64,
        /// Place at which it begins, and begins again.
        first: u64,
        /// The next one.
        at: u64,
    },
}

impl EndlessWalk {
    /// Random multiples of `unit` in a region with room for a block.
    pub const fn random(region: u64, block: u64, unit: u64, rng: Rng) -> Self {
        let unit = if unit == 0 { 1 } else { unit };
        Self::Random {
            places: region.saturating_sub(block) / unit + 1,
            unit,
            rng,
        }
    }

    /// Forwards from the start of the region, or backwards from the highest place that is a whole
    /// number of strides behind it.
    pub const fn strided(region: u64, block: u64, stride: i64) -> Self {
        let last = region.saturating_sub(block);
        let first = match stride {
            0.. => 0,
            _ => last - last % stride.unsigned_abs(),
        };
        Self::Stride {
            stride,
            last,
            first,
            at: first,
        }
    }

    /// The offset of the next operation within the region.
    #[inline]
    pub const fn next_offset(&mut self) -> u64 {
        match self {
            Self::Random { places, unit, rng } => rng.below(*places) * *unit,
            Self::Stride {
                stride,
                last,
                first,
                at,
            } => {
                let offset = *at;
                *at = match offset.checked_add_signed(*stride) {
                    Some(next) if next <= *last => next,
                    _ => *first,
                };
                offset
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_run::generate::Streams;

    use super::*;

    fn kinds(percent: u8, lengths: [u32; 2], count: usize) -> Vec<DataKind> {
        let mut mix = BurstMix::new(None, percent, lengths, Streams::new(7, 0).mix());
        (0..count).map(|_| mix.next_kind()).collect()
    }

    #[test]
    fn bursts_of_one_draw_what_the_plain_mix_draws() {
        let streams = Streams::new(7, 0);
        let mut plain = super::super::mix::KindMix::new([70, 30, 0], streams.mix()).unwrap();
        let drawn: Vec<_> = (0..1000).map(|_| plain.next_kind()).collect();
        assert_eq!(kinds(70, [1, 1], 1000), drawn);
        assert_eq!(kinds(70, [0, 0], 1000), drawn);
    }

    #[test]
    fn a_burst_goes_to_its_end_before_another_is_drawn() {
        let all = kinds(50, [30, 10], 100_000);
        for run in all.chunk_by(|a, b| a == b).rev().skip(1) {
            let length = if run[0] == DataKind::Read { 30 } else { 10 };
            assert_eq!(run.len() % length, 0, "{:?}", run[0]);
        }
        let reads = all.iter().filter(|kind| **kind == DataKind::Read).count();
        // 30 of 40 operations.
        assert!((73_000..77_000).contains(&reads), "{reads}");
    }

    #[test]
    fn one_kind_alone_draws_nothing() {
        let rng = Streams::new(7, 0).mix();
        let mut mix = BurstMix::new(Some(DataKind::Trim), 0, [3, 5], rng.clone());
        assert!((0..100).all(|_| mix.next_kind() == DataKind::Trim));
        assert_eq!(mix.rng, rng);
    }

    #[test]
    fn random_places_are_those_of_the_plain_generator() {
        let streams = Streams::new(7, 0);
        let mut walk = EndlessWalk::random(1 << 20, 4096, 4096, streams.offsets());
        let mut plain = streams.offsets();
        for _ in 0..1000 {
            assert_eq!(walk.next_offset(), plain.below(256) * 4096);
        }
        let mut fine = EndlessWalk::random(8192, 4096, 512, streams.offsets());
        let offsets: Vec<u64> = (0..1000).map(|_| fine.next_offset()).collect();
        assert_eq!(offsets.iter().max(), Some(&4096));
        assert!(offsets.iter().all(|offset| offset.is_multiple_of(512)));
    }

    fn strided(region: u64, block: u64, stride: i64) -> Vec<u64> {
        let mut walk = EndlessWalk::strided(region, block, stride);
        (0..6).map(|_| walk.next_offset()).collect()
    }

    #[test]
    fn a_stride_begins_again_where_the_next_block_has_no_room() {
        assert_eq!(strided(4, 1, 1), [0, 1, 2, 3, 0, 1]);
        assert_eq!(strided(10, 4, 3), [0, 3, 6, 0, 3, 6]);
        assert_eq!(strided(10, 4, 4), [0, 4, 0, 4, 0, 4]);
        assert_eq!(strided(4, 4, 4), [0; 6]);
        assert_eq!(strided(10, 4, i64::MAX), [0; 6]);
    }

    #[test]
    fn a_negative_stride_comes_down_from_the_end() {
        assert_eq!(strided(4, 1, -1), [3, 2, 1, 0, 3, 2]);
        assert_eq!(strided(10, 4, -4), [4, 0, 4, 0, 4, 0]);
        assert_eq!(strided(10, 4, i64::MIN), [0; 6]);
    }
}
