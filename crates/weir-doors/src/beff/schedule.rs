//! Number of exchanges of messages of a size: fewer for larger ones.
//!
//! In: bounds as the command line states them. Out: exponents with their loop lengths. Spec:
//! effective bandwidth, 1.1 and 1.2.

use weir_schema::MessageSize;

/// Bounds of sizes and loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopSchedule {
    /// Exponents in order.
    pub exponents: Vec<u8>,
    /// Longest loop.
    pub upper: u64,
    /// Shortest loop.
    pub lower: u64,
    /// Up to this exponent the loop is the longest.
    pub offset: u64,
    /// Steps from there to the shortest.
    pub steps: u64,
}

impl LoopSchedule {
    /// Sizes with their loops; whole numbers throughout, as the peer counts.
    pub fn sizes(&self) -> Vec<MessageSize> {
        let size = |exponent: u8| MessageSize {
            exponent,
            loop_length: self.loop_length(exponent),
        };
        self.exponents.iter().copied().map(size).collect()
    }

    fn loop_length(&self, exponent: u8) -> u64 {
        let step = self.upper.saturating_sub(self.lower) / self.steps.max(1);
        let beyond = u64::from(exponent).saturating_sub(self.offset);
        self.lower
            .max(self.upper.saturating_sub(beyond.saturating_mul(step)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loops(exponents: impl Iterator<Item = u8>, upper: u64, lower: u64) -> Vec<u64> {
        let schedule = LoopSchedule {
            exponents: exponents.collect(),
            upper,
            lower,
            offset: 11,
            steps: 7,
        };
        schedule.sizes().iter().map(|s| s.loop_length).collect()
    }

    #[test]
    fn the_default_loops_are_the_peers() {
        let found = loops(0..=20, 65536, 256);
        assert!(found[..=11].iter().all(|l| *l == 65536));
        let rest = [56211, 46886, 37561, 28236, 18911, 9586, 261, 256, 256];
        assert_eq!(found[12..], rest);
    }

    #[test]
    fn equal_bounds_are_one_length() {
        assert!(loops(0..=34, 5, 5).iter().all(|l| *l == 5));
    }
}
