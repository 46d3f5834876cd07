//! Sizes: how many bytes the next operation moves.
//!
//! In: a rule per kind of operation, the room left in the region, and a random
//! stream. Out: a size that fits, or `None` when the smallest one does not.
//! A choice is one draw whatever the room, so that the sequence of choices does
//! not depend on where the operations go; a fixed size draws nothing.

use weir_run::generate::rng::Rng;

use super::GenerateError;
use super::mix::DataKind;

/// Rule by which the sizes of one kind of operation are chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SizeRule {
    /// Always this.
    Fixed {
        /// The size.
        bytes: u64,
    },
    /// Uniform between two bounds.
    Range {
        /// The smallest size.
        min_bytes: u64,
        /// No size is larger.
        max_bytes: u64,
        /// Any number of bytes, in place of multiples of the smallest.
        unaligned: bool,
    },
    /// By weight from a list of (bytes, weight).
    Split(Vec<(u64, u32)>),
}

impl SizeRule {
    /// The smallest size of the rule, of those that can be drawn.
    pub fn min_bytes(&self) -> u64 {
        match self {
            Self::Fixed { bytes } => *bytes,
            Self::Range { min_bytes, .. } => *min_bytes,
            Self::Split(list) => weighted(list).min().unwrap_or(0),
        }
    }

    /// The largest size of the rule: what a buffer has to hold.
    pub fn max_bytes(&self) -> u64 {
        match self {
            Self::Fixed { bytes } => *bytes,
            Self::Range { max_bytes, .. } => *max_bytes,
            Self::Split(list) => weighted(list).max().unwrap_or(0),
        }
    }

    fn check(&self) -> Result<(), GenerateError> {
        let (min, max) = (self.min_bytes(), self.max_bytes());
        if min == 0 || max < min {
            return Err(GenerateError::BlockSizes);
        }
        Ok(())
    }

    /// Draws without regard to the room.
    fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Self::Fixed { bytes } => *bytes,
            Self::Range {
                min_bytes,
                max_bytes,
                unaligned: true,
            } => min_bytes + rng.below((max_bytes - min_bytes).saturating_add(1)),
            Self::Range {
                min_bytes,
                max_bytes,
                unaligned: false,
            } => min_bytes * (1 + rng.below(max_bytes / min_bytes)),
            Self::Split(list) => {
                let total = list.iter().map(|&(_, weight)| u64::from(weight)).sum();
                let mut draw = rng.below(total);
                let chosen = list.iter().find(|&&(_, weight)| {
                    let weight = u64::from(weight);
                    let hit = draw < weight;
                    draw = draw.saturating_sub(weight);
                    hit
                });
                chosen.map_or(0, |&(bytes, _)| bytes)
            }
        }
    }

    /// The largest size of the rule that is at most `bytes` and fits the room.
    fn cut(&self, bytes: u64, room_bytes: u64) -> Option<u64> {
        if bytes <= room_bytes {
            return Some(bytes);
        }
        match self {
            Self::Fixed { .. } => None,
            Self::Range {
                min_bytes,
                unaligned,
                ..
            } => {
                let spare = if *unaligned {
                    0
                } else {
                    room_bytes % min_bytes
                };
                (room_bytes >= *min_bytes).then_some(room_bytes - spare)
            }
            Self::Split(list) => weighted(list).filter(|&size| size <= room_bytes).max(),
        }
    }
}

/// The sizes of a split that can be drawn.
fn weighted(list: &[(u64, u32)]) -> impl Iterator<Item = u64> {
    list.iter()
        .filter(|&&(_, weight)| weight > 0)
        .map(|&(bytes, _)| bytes)
}

/// Chooses sizes for each kind of operation.
#[derive(Debug, Clone)]
pub struct SizeDraw {
    rules: [SizeRule; 3],
    rng: Rng,
}

impl SizeDraw {
    /// `rules` by [`DataKind::index`].
    ///
    /// # Errors
    /// [`GenerateError::BlockSizes`] for a size of 0, an empty list, a list
    /// without weights, or bounds in the wrong order.
    pub fn new(rules: [SizeRule; 3], rng: Rng) -> Result<Self, GenerateError> {
        rules.iter().try_for_each(SizeRule::check)?;
        Ok(Self { rules, rng })
    }

    /// The next size for an operation of `kind` with `room_bytes` left before
    /// the region's end: cut down to a size of the rule that fits, or `None`.
    #[inline]
    pub fn choose(&mut self, kind: DataKind, room_bytes: u64) -> Option<u64> {
        let rule = &self.rules[kind.index()];
        if let SizeRule::Fixed { bytes } = *rule {
            return (bytes <= room_bytes).then_some(bytes);
        }
        let bytes = rule.draw(&mut self.rng);
        rule.cut(bytes, room_bytes)
    }

    /// The rule of a kind.
    pub const fn rule(&self, kind: DataKind) -> &SizeRule {
        &self.rules[kind.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(rule: &SizeRule) -> SizeDraw {
        SizeDraw::new([rule.clone(), rule.clone(), rule.clone()], Rng::new(2)).unwrap()
    }

    #[test]
    fn a_range_gives_every_multiple_of_its_minimum_equally_often() {
        let rule = SizeRule::Range {
            min_bytes: 4096,
            max_bytes: 20_000,
            unaligned: false,
        };
        let mut sizes = sizes(&rule);
        let mut counts = [0_u32; 4];
        for _ in 0..40_000 {
            let bytes = sizes.choose(DataKind::Read, u64::MAX).unwrap();
            assert_eq!(bytes % 4096, 0);
            counts[usize::try_from(bytes / 4096).unwrap() - 1] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)));
    }

    #[test]
    fn an_unaligned_range_reaches_both_bounds() {
        let rule = SizeRule::Range {
            min_bytes: 10,
            max_bytes: 13,
            unaligned: true,
        };
        let mut sizes = sizes(&rule);
        let mut seen = [false; 4];
        for _ in 0..200 {
            let bytes = sizes.choose(DataKind::Write, u64::MAX).unwrap();
            seen[usize::try_from(bytes - 10).unwrap()] = true;
        }
        assert_eq!(seen, [true; 4]);
    }

    #[test]
    fn a_split_follows_its_weights() {
        let mut sizes = sizes(&SizeRule::Split(vec![(512, 10), (4096, 60), (65_536, 30)]));
        let mut counts = [0_u32; 3];
        for _ in 0..100_000 {
            let at = match sizes.choose(DataKind::Read, u64::MAX).unwrap() {
                512 => 0,
                4096 => 1,
                _ => 2,
            };
            counts[at] += 1;
        }
        for (count, share) in counts.into_iter().zip([10_000.0_f64, 60_000.0, 30_000.0]) {
            assert!((f64::from(count) - share).abs() < 5.0 * share.sqrt());
        }
    }

    #[test]
    fn choices_are_cut_down_to_the_room() {
        let range = SizeRule::Range {
            min_bytes: 4096,
            max_bytes: 1 << 20,
            unaligned: false,
        };
        assert_eq!(range.cut(1 << 20, 10_000), Some(8192));
        assert_eq!(range.cut(4096, 4095), None);
        let split = SizeRule::Split(vec![(512, 1), (2048, 0), (4096, 1)]);
        assert_eq!(split.cut(4096, 3000), Some(512));
        assert_eq!(split.cut(512, 511), None);
        assert_eq!(SizeRule::Fixed { bytes: 4096 }.cut(4096, 4095), None);
    }

    #[test]
    fn the_room_does_not_shift_the_sequence_of_choices() {
        let rule = SizeRule::Split(vec![(512, 1), (4096, 1)]);
        let (mut free, mut tight) = (sizes(&rule), sizes(&rule));
        for _ in 0..50 {
            free.choose(DataKind::Read, u64::MAX);
            tight.choose(DataKind::Read, 0);
        }
        assert_eq!(free.rng, tight.rng);
    }

    #[test]
    fn impossible_rules_are_refused() {
        let range = |min_bytes, max_bytes| SizeRule::Range {
            min_bytes,
            max_bytes,
            unaligned: false,
        };
        for rule in [
            SizeRule::Fixed { bytes: 0 },
            range(0, 10),
            range(10, 9),
            SizeRule::Split(vec![]),
            SizeRule::Split(vec![(512, 0)]),
            SizeRule::Split(vec![(0, 5)]),
        ] {
            let refused =
                SizeDraw::new([rule.clone(), rule.clone(), rule], Rng::new(1)).unwrap_err();
            assert_eq!(refused, GenerateError::BlockSizes);
        }
    }
}
