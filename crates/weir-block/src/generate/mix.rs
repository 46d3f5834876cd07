//! The mix: whether the next operation reads, writes or trims.
//!
//! In: percentages (or any weights) and a random stream, or a rate of each kind. Out: kinds, drawn
//! independently per operation; where each has a rate, the one whose turn it is by these rates, so
//! that none waits for another. A workload of one kind draws nothing.

use weir_run::generate::arrivals::{Even, Rate};
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

/// Chooses kinds.
#[derive(Debug, Clone)]
pub struct KindMix {
    only: Option<DataKind>,
    choice: Choice,
}

/// Choice between several kinds of operation.
#[derive(Debug, Clone)]
enum Choice {
    Drawn(Weights),
    /// Schedules of the kinds that occur.
    ByRates([Option<Even>; 3]),
}

/// Draws kinds by weight.
#[derive(Debug, Clone)]
struct Weights {
    /// Weight of reads, and of reads and writes together.
    to_read: u64,
    to_write: u64,
    total: u64,
    rng: Rng,
}

impl KindMix {
    /// `weights` by [`DataKind::index`], normally percentages.
    ///
    /// # Errors
    /// [`GenerateError::EmptyMix`] when all are 0.
    pub fn new(weights: [u32; 3], rng: Rng) -> Result<Self, GenerateError> {
        let [read, write, trim] = weights.map(u64::from);
        Ok(Self {
            only: only(weights.map(|weight| weight > 0))?,
            choice: Choice::Drawn(Weights {
                to_read: read,
                to_write: read + write,
                total: read + write + trim,
                rng,
            }),
        })
    }

    /// `rates` by [`DataKind::index`]; kinds without one do not occur.
    ///
    /// # Errors
    /// [`GenerateError::EmptyMix`] when none has one.
    pub fn by_rates(rates: [Option<Rate>; 3]) -> Result<Self, GenerateError> {
        Ok(Self {
            only: only(rates.map(|rate| rate.is_some()))?,
            choice: Choice::ByRates(rates.map(|rate| rate.map(Even::new))),
        })
    }

    /// The kind of the next operation.
    #[inline(always)]
    pub fn next_kind(&mut self) -> DataKind {
        if let Some(kind) = self.only {
            return kind;
        }
        match &mut self.choice {
            Choice::Drawn(weights) => weights.draw(),
            Choice::ByRates(schedules) => earliest(schedules),
        }
    }

    /// An operation of this kind takes so many bytes.
    #[inline(always)]
    pub fn took(&mut self, kind: DataKind, bytes: u64) {
        if let Choice::ByRates(schedules) = &mut self.choice
            && let Some(schedule) = &mut schedules[kind.index()]
        {
            schedule.next_start_ns(bytes);
        }
    }
}

impl Weights {
    #[inline(always)]
    const fn draw(&mut self) -> DataKind {
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

/// The kind that is due first; of several the first.
fn earliest(schedules: &[Option<Even>; 3]) -> DataKind {
    let due = |kind: &DataKind| schedules[kind.index()].as_ref().map(Even::due_ns);
    let occurring = DataKind::ALL.into_iter().filter(|kind| due(kind).is_some());
    occurring.min_by_key(due).unwrap_or(DataKind::Read)
}

/// The only kind of those that occur, if there are no others.
fn only(occurs: [bool; 3]) -> Result<Option<DataKind>, GenerateError> {
    let mut wanted = DataKind::ALL
        .into_iter()
        .filter(|kind| occurs[kind.index()]);
    let first = wanted.next().ok_or(GenerateError::EmptyMix)?;
    Ok(wanted.next().is_none().then_some(first))
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU64;

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
        let Choice::Drawn(weights) = mix.choice else {
            panic!("nothing is drawn by a rate");
        };
        assert_eq!(weights.rng, Rng::new(1));
    }

    #[test]
    fn with_a_rate_of_each_kind_none_waits_for_another() {
        let operations = |rate| NonZeroU64::new(rate).map(Rate::Operations);
        let mut mix = KindMix::by_rates([operations(300), operations(100), None]).unwrap();
        let mut counts = [0_u32; 3];
        for n in 1..=400 {
            let kind = mix.next_kind();
            mix.took(kind, 4096);
            counts[kind.index()] += 1;
            assert!(counts[0].abs_diff(n * 3 / 4) <= 1, "{n}: {counts:?}");
        }
        assert_eq!(counts, [300, 100, 0]);
        // Of bytes, kinds of larger operations have fewer of them.
        let bytes = |rate| NonZeroU64::new(rate).map(Rate::Bytes);
        let mut mix = KindMix::by_rates([bytes(1 << 20), bytes(1 << 20), None]).unwrap();
        let mut moved = [0_u64; 3];
        for _ in 0..400 {
            let kind = mix.next_kind();
            let length = if kind == DataKind::Read { 4096 } else { 16384 };
            mix.took(kind, length);
            moved[kind.index()] += length;
            assert!(moved[0].abs_diff(moved[1]) <= 16384, "{moved:?}");
        }
    }

    #[test]
    fn a_mix_of_nothing_is_refused() {
        assert_eq!(
            KindMix::new([0; 3], Rng::new(1)).unwrap_err(),
            GenerateError::EmptyMix
        );
    }
}
