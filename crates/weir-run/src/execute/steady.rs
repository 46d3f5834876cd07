//! Detection of a steady rate: one sample a second, over a window of some seconds.
//!
//! In: counts of operations and bytes at instants. Out: the samples of the last window, the
//! figure that is held against the limit, and whether it was kept. Slopes are those of the line
//! of least squares. Not here: who is sampled together, and what ends when it is steady
//! (`execute::steady_groups`).

use std::collections::VecDeque;

use weir_schema::{Steadiness, Steady, SteadyMeasure, SteadyRate, SteadySample};
use weir_units::{Bytes, Nanos};

pub(super) const SECOND: Nanos = Nanos(1_000_000_000);

/// Counts up to an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RateCounts {
    pub(super) operations: u64,
    pub(super) bytes: u64,
}

/// The search for a steady rate.
#[derive(Debug)]
pub(super) struct SteadyWatch {
    bound: Steady,
    room: usize,
    last: (Nanos, RateCounts),
    samples: VecDeque<SteadySample>,
    criterion: f64,
    deviation: f64,
    slope: f64,
    attained: bool,
}

impl SteadyWatch {
    pub(super) fn new(bound: Steady) -> Self {
        let room = usize::try_from(bound.window_ns.0 / SECOND.0).unwrap_or(usize::MAX);
        Self {
            bound,
            room: room.max(1),
            last: (Nanos(0), RateCounts::default()),
            samples: VecDeque::new(),
            criterion: 0.0,
            deviation: 0.0,
            slope: 0.0,
            attained: false,
        }
    }

    pub(super) fn is_attained(&self) -> bool {
        self.attained
    }

    /// Takes the counts at an instant since the start, about a second after the last.
    pub(super) fn sample(&mut self, at: Nanos, counts: RateCounts) {
        let (before, earlier) = std::mem::replace(&mut self.last, (at, counts));
        if self.attained || before < self.pause() {
            return;
        }
        let over = Nanos(at.0.saturating_sub(before.0));
        let rate = |now: u64, then| per_second(now.saturating_sub(then), over);
        if self.samples.len() == self.room {
            self.samples.pop_front();
        }
        self.samples.push_back(SteadySample {
            ops_per_s: rate(counts.operations, earlier.operations),
            bytes_per_s: Bytes(rate(counts.bytes, earlier.bytes)),
        });
        if self.samples.len() == self.room {
            self.judge();
        }
    }

    /// Time without samples: after a pause the second that began with its end is left out too.
    fn pause(&self) -> Nanos {
        match self.bound.ramp_ns {
            Nanos(0) => Nanos(0),
            Nanos(ramp) => Nanos(ramp.saturating_add(SECOND.0)),
        }
    }

    fn judge(&mut self) {
        let of = |sample: &SteadySample| match self.bound.rate {
            SteadyRate::Operations => sample.ops_per_s as f64,
            SteadyRate::Bytes => sample.bytes_per_s.0 as f64,
        };
        let rates: Vec<f64> = self.samples.iter().map(of).collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let found = match self.bound.measure {
            SteadyMeasure::Deviation => {
                let off = rates.iter().map(|rate| (rate - mean).abs());
                self.deviation = off.fold(0.0, f64::max);
                self.deviation
            }
            SteadyMeasure::Slope => {
                self.slope = slope(&rates, mean);
                self.slope
            }
        };
        self.criterion = match self.bound.in_percent {
            true if mean > 0.0 => found * 100.0 / mean,
            true => 0.0,
            false => found,
        };
        // Nothing at all is no steady rate.
        self.attained = mean > 0.0 && self.criterion.abs() < self.bound.limit;
    }

    /// Result of the watch.
    pub(super) fn outcome(&self) -> Steadiness {
        Steadiness {
            attained: self.attained,
            criterion: self.criterion,
            deviation: self.deviation,
            slope: self.slope,
            samples: self.samples.iter().copied().collect(),
        }
    }
}

/// The slope of the line of least squares through values at 0, 1, 2 and so on.
fn slope(values: &[f64], mean: f64) -> f64 {
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let (mut above, mut below) = (0.0, 0.0);
    for (index, value) in values.iter().enumerate() {
        let from_middle = index as f64 - middle;
        above += from_middle * (value - mean);
        below += from_middle * from_middle;
    }
    if below > 0.0 { above / below } else { 0.0 }
}

/// An amount over a time, per second.
fn per_second(amount: u64, over: Nanos) -> u64 {
    let rate = u128::from(amount) * 1_000_000_000 / u128::from(over.0.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(measure: SteadyMeasure, limit: f64, in_percent: bool) -> Steady {
        Steady {
            rate: SteadyRate::Operations,
            measure,
            limit,
            in_percent,
            window_ns: Nanos(3 * SECOND.0),
            ramp_ns: Nanos(0),
        }
    }

    /// Feeds rates, one a second; the second in which it became steady.
    fn steady_after(watch: &mut SteadyWatch, rates: &[u64]) -> Option<usize> {
        let (mut operations, mut at) = (0, 0);
        for (index, rate) in rates.iter().enumerate() {
            operations += rate;
            at += SECOND.0;
            let bytes = operations * 4096;
            watch.sample(Nanos(at), RateCounts { operations, bytes });
            if watch.is_attained() {
                return Some(index + 1);
            }
        }
        None
    }

    #[test]
    fn a_deviation_is_the_largest_distance_from_the_mean_of_the_window() {
        let mut watch = SteadyWatch::new(bound(SteadyMeasure::Deviation, 10.0, true));
        assert_eq!(
            steady_after(&mut watch, &[10, 500, 1000, 1000, 1030]),
            Some(5)
        );
        let outcome = watch.outcome();
        assert!((outcome.deviation - 20.0).abs() < 1e-9);
        assert!((outcome.criterion - 2000.0 / 1010.0).abs() < 1e-9);
        let sample = outcome.samples[2];
        assert_eq!(
            (sample.ops_per_s, sample.bytes_per_s.0),
            (1030, 1030 * 4096)
        );
    }

    #[test]
    fn a_slope_is_that_of_least_squares_and_its_sign_does_not_matter() {
        let mut watch = SteadyWatch::new(bound(SteadyMeasure::Slope, 20.0, false));
        let rates = [1000, 900, 800, 790, 780];
        assert_eq!(steady_after(&mut watch, &rates), Some(5));
        assert!((watch.outcome().slope + 10.0).abs() < 1e-9);
        assert!((slope(&[1.0, 2.0, 4.0, 3.0], 2.5) - 0.8).abs() < 1e-12);
    }

    #[test]
    fn the_pause_at_the_start_is_not_sampled_and_no_rate_is_not_steady() {
        let mut watch = SteadyWatch::new(Steady {
            ramp_ns: SECOND,
            ..bound(SteadyMeasure::Deviation, 1.0, true)
        });
        assert_eq!(steady_after(&mut watch, &[5, 10, 700, 700, 700]), Some(5));
        let mut idle = SteadyWatch::new(bound(SteadyMeasure::Deviation, 1.0, true));
        assert_eq!(steady_after(&mut idle, &[0; 9]), None);
    }

    #[test]
    fn a_run_shorter_than_the_window_tells_what_it_saw() {
        let mut watch = SteadyWatch::new(bound(SteadyMeasure::Deviation, 1.0, true));
        assert_eq!(steady_after(&mut watch, &[700]), None);
        let outcome = watch.outcome();
        assert!(!outcome.attained && outcome.criterion == 0.0);
        assert_eq!(outcome.samples.len(), 1);
    }
}
