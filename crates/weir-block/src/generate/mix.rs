//! The mix: whether the next operation reads, writes or trims.
//!
//! In: percentages (or any weights) and a random stream. Out: kinds, drawn
//! independently per operation; a workload of one kind draws nothing.

use weir_run::generate::rng::Rng;

use super::GenerateError;

/// A kind of block operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DataKind {
    /// Data from the target.
    Read,
    /// Data to the target.
    Write,
    /// Data given up.
    Trim,
}

impl DataKind {
    /// All kinds, in the order of [`index`](Self::index).
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Trim];

    /// 0, 1 or 2: a place in an array of per-kind things.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Draws kinds by weight.
#[derive(Debug, Clone)]
pub struct KindMix {
    /// Weight of reads, and of reads and writes together.
    to_read: u64,
    to_write: u64,
    total: u64,
    only: Option<DataKind>,
    rng: Rng,
}

impl KindMix {
    /// `weights` by [`DataKind::index`], normally percentages.
    ///
    /// # Errors
    /// [`GenerateError::EmptyMix`] when all are 0.
    pub fn new(weights: [u32; 3], rng: Rng) -> Result<Self, GenerateError> {
        let [read, write, trim] = weights.map(u64::from);
        let mut wanted = DataKind::ALL
            .into_iter()
            .filter(|kind| weights[kind.index()] > 0);
        let first = wanted.next().ok_or(GenerateError::EmptyMix)?;
        Ok(Self {
            to_read: read,
            to_write: read + write,
            total: read + write + trim,
            only: wanted.next().is_none().then_some(first),
            rng,
        })
    }

    /// The kind of the next operation.
    #[inline(always)]
    pub const fn next_kind(&mut self) -> DataKind {
        if let Some(kind) = self.only {
            return kind;
        }
        let draw = self.rng.below(self.total);
        if draw < self.to_read {
            DataKind::Read
        } else if draw < self.to_write {
            DataKind::Write
        } else {
            DataKind::Trim
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_come_in_their_shares() {
        let mut mix = KindMix::new([70, 25, 5], Rng::new(1)).unwrap();
        let mut counts = [0_u32; 3];
        for _ in 0..100_000 {
            counts[mix.next_kind().index()] += 1;
        }
        for (count, share) in counts.into_iter().zip([70_000.0_f64, 25_000.0, 5_000.0]) {
            assert!((f64::from(count) - share).abs() < 5.0 * share.sqrt());
        }
    }

    #[test]
    fn a_single_kind_draws_nothing() {
        let mut mix = KindMix::new([0, 100, 0], Rng::new(1)).unwrap();
        assert!((0..100).all(|_| mix.next_kind() == DataKind::Write));
        assert_eq!(mix.rng, Rng::new(1));
    }

    #[test]
    fn a_mix_of_nothing_is_refused() {
        assert_eq!(
            KindMix::new([0; 3], Rng::new(1)).unwrap_err(),
            GenerateError::EmptyMix
        );
    }
}
