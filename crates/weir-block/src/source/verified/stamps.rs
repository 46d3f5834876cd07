//! The number of a write, short enough to be kept for every interval: its data's seed and its
//! counter come from it alone.

use weir_run::generate::rng::mix64;

/// The number of a write, from 1; 0 where nothing was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::source) struct Stamp(pub(super) u32);

impl Stamp {
    /// No write.
    pub(super) const NONE: Self = Self(0);
    /// The first write.
    pub(super) const FIRST: Self = Self(1);

    /// The next write's; after some 4 billion it starts over.
    pub(super) const fn next(self) -> Self {
        match self.0.wrapping_add(1) {
            0 => Self::FIRST,
            n => Self(n),
        }
    }

    /// Seed of the data.
    pub(super) const fn seed(self, key: u64) -> u64 {
        mix64(key ^ self.0 as u64)
    }

    /// The write's counter, as headers hold it.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "headers hold 16 bits of it"
    )]
    pub(super) const fn count(self) -> u16 {
        self.0 as u16
    }
}

/// Stamps of the writes that a buffer's intervals come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stamps {
    /// Nothing: somebody else wrote them.
    Unknown,
    /// All from one write.
    One(Stamp),
    /// One each.
    Each(Vec<Stamp>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_write_has_the_number_of_none() {
        assert_eq!(Stamp(u32::MAX).next(), Stamp::FIRST);
        assert_eq!(Stamp::FIRST.next(), Stamp(2));
    }
}
