//! Arrivals: *when* the next operation is intended to start.
//!
//! In: a rate in operations or bytes per second and, per operation, its bytes.
//! Out: intended starts in nanoseconds after the common release. Nothing here
//! looks at a clock: whether the loop keeps up is the caller's to see. Starts
//! are counted from the first operation on, never from the one before plus a
//! rounded gap, so that the long-run rate is exact. Not here: thinktime, and
//! what to do when a start has passed already.

use core::num::NonZeroU64;

use super::rng::Rng;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Rate of operations or of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// Operations per second.
    Operations(NonZeroU64),
    /// Bytes per second.
    Bytes(NonZeroU64),
}

impl Rate {
    const fn per_second(self) -> u64 {
        match self {
            Self::Operations(rate) | Self::Bytes(rate) => rate.get(),
        }
    }

    #[inline(always)]
    const fn amount(self, bytes: u64) -> u64 {
        match self {
            Self::Operations(_) => 1,
            Self::Bytes(_) => bytes,
        }
    }
}

/// Evenly spaced: the operation behind a units starts at floor(a·10^9 / rate).
#[derive(Debug, Clone)]
pub struct Even {
    rate: Rate,
    /// Start of the next operation: whole nanoseconds, and the rest in units of
    /// 1/rate of a nanosecond.
    next_ns: u64,
    rest: u64,
    /// The gap behind an operation of `amount`, divided once.
    amount: u64,
    gap_ns: u64,
    gap_rest: u64,
}

impl Even {
    /// The first operation starts at the release.
    pub const fn new(rate: Rate) -> Self {
        Self {
            rate,
            next_ns: 0,
            rest: 0,
            amount: 0,
            gap_ns: 0,
            gap_rest: 0,
        }
    }

    /// The intended start of the next operation.
    pub const fn due_ns(&self) -> u64 {
        self.next_ns
    }

    /// The intended start of the next operation, of `bytes`.
    #[inline]
    pub fn next_start_ns(&mut self, bytes: u64) -> u64 {
        let amount = self.rate.amount(bytes);
        if amount != self.amount {
            self.divide(amount);
        }
        let start = self.next_ns;
        self.next_ns = start.saturating_add(self.gap_ns);
        // Both rests are below the rate, so their sum is compared, not taken.
        let rate = self.rate.per_second();
        if self.rest >= rate - self.gap_rest {
            self.rest -= rate - self.gap_rest;
            self.next_ns = self.next_ns.saturating_add(1);
        } else {
            self.rest += self.gap_rest;
        }
        start
    }

    #[cold]
    fn divide(&mut self, amount: u64) {
        let rate = u128::from(self.rate.per_second());
        let product = u128::from(amount) * u128::from(NANOS_PER_SECOND);
        self.amount = amount;
        self.gap_ns = u64::try_from(product / rate).unwrap_or(u64::MAX);
        self.gap_rest = u64::try_from(product % rate).unwrap_or(0);
    }
}

/// A Poisson process: gaps are −ln(u)/rate, the first one before the first
/// operation. With a rate in bytes the mean gap before an operation is the time
/// its own bytes take.
#[derive(Debug, Clone)]
pub struct Poisson {
    rate: Rate,
    nanos_per_unit: f64,
    /// Time reached: whole nanoseconds and the fraction behind them, kept apart
    /// so that a long run loses no precision.
    reached_ns: u64,
    fraction: f64,
    rng: Rng,
}

impl Poisson {
    /// Draws gaps from `rng`.
    #[expect(clippy::cast_precision_loss, reason = "a mean gap to 53 bits")]
    pub const fn new(rate: Rate, rng: Rng) -> Self {
        Self {
            rate,
            nanos_per_unit: NANOS_PER_SECOND as f64 / rate.per_second() as f64,
            reached_ns: 0,
            fraction: 0.0,
            rng,
        }
    }

    /// The intended start of the next operation, of `bytes`.
    #[inline]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "gaps are positive; the cast takes the whole nanoseconds"
    )]
    pub fn next_start_ns(&mut self, bytes: u64) -> u64 {
        // 1 - u lies in (0, 1], whose logarithm is finite.
        let exponential = -libm::log(1.0 - self.rng.unit());
        let mean = self.nanos_per_unit * self.rate.amount(bytes) as f64;
        let gap = self.fraction + exponential * mean;
        let whole = gap as u64;
        self.fraction = gap - whole as f64;
        self.reached_ns = self.reached_ns.saturating_add(whole);
        self.reached_ns
    }
}

/// An arrival process.
#[derive(Debug, Clone)]
pub enum Arrivals {
    /// Evenly spaced.
    Even(Even),
    /// Memoryless.
    Poisson(Poisson),
}

impl Arrivals {
    /// The intended start of the next operation, of `bytes`, in nanoseconds
    /// after the common release.
    #[inline]
    pub fn next_start_ns(&mut self, bytes: u64) -> u64 {
        match self {
            Self::Even(even) => even.next_start_ns(bytes),
            Self::Poisson(poisson) => poisson.next_start_ns(bytes),
        }
    }
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "small numbers are exact")]
mod tests {
    use super::*;

    fn operations(rate: u64) -> Rate {
        Rate::Operations(NonZeroU64::new(rate).unwrap())
    }

    fn bytes(rate: u64) -> Rate {
        Rate::Bytes(NonZeroU64::new(rate).unwrap())
    }

    #[test]
    fn even_starts_follow_the_closed_form_without_drift() {
        for rate in [1, 3, 7, 1000, 999_999_937, 3_000_000_000, u64::MAX] {
            let mut even = Even::new(operations(rate));
            for n in 0..100_000_u128 {
                let expected = n * 1_000_000_000 / u128::from(rate);
                assert_eq!(u128::from(even.next_start_ns(4096)), expected);
            }
        }
    }

    #[test]
    fn even_starts_by_bytes_count_the_bytes_before() {
        let mut even = Even::new(bytes(123_456_789));
        let mut before = 0_u128;
        for n in 0..10_000_u64 {
            let size = 512 * (1 + n % 7);
            let expected = before * 1_000_000_000 / 123_456_789;
            assert_eq!(u128::from(even.next_start_ns(size)), expected);
            before += u128::from(size);
        }
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_deviation_of_the_rate() {
        let mut poisson = Poisson::new(operations(250_000), Rng::new(8));
        let (mut last, mut sum, mut squares) = (0, 0.0, 0.0);
        let count = 200_000;
        for _ in 0..count {
            let start = poisson.next_start_ns(4096);
            let gap = (start - last) as f64;
            last = start;
            sum += gap;
            squares += gap * gap;
        }
        let mean = sum / f64::from(count);
        let deviation = (squares / f64::from(count) - mean * mean).sqrt();
        assert!((mean / 4000.0 - 1.0).abs() < 0.01, "{mean}");
        assert!((deviation / 4000.0 - 1.0).abs() < 0.02, "{deviation}");
    }

    #[test]
    fn poisson_by_bytes_keeps_the_rate_in_bytes() {
        let mut poisson = Poisson::new(bytes(1_000_000_000), Rng::new(9));
        let end = (0..100_000).map(|_| poisson.next_start_ns(8192)).last();
        let mean = end.unwrap() as f64 / 100_000.0;
        assert!((mean / 8192.0 - 1.0).abs() < 0.02, "{mean}");
    }

    #[test]
    fn starts_saturate_at_the_end_of_time() {
        let mut even = Even::new(bytes(1));
        even.next_start_ns(u64::MAX);
        assert_eq!(even.next_start_ns(u64::MAX), u64::MAX);
    }
}
