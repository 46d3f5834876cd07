//! A device of tests: trials are reckoned, not run.

use weir_stats::Histogram;
use weir_units::Nanos;

use super::trial::{Trial, TrialRate, TrialRequest};
use crate::axio::traffic::{real, whole};

/// A sink with a bucket of 64 behind a generator.
pub(super) struct Device {
    /// Per second.
    sink: f64,
    /// Messages per second that the generator makes as fast as it can, and at a set rate.
    most: f64,
    pub(super) generator: f64,
    /// Part of a trial's length by which a late generator may go on after its end.
    pub(super) grace: f64,
    /// Number of rates that are missed when they are tried again.
    pub(super) misses_repeats: u32,
    /// The generator falls behind in one of this many trials; 0: never.
    pub(super) hiccup_every: usize,
    pub(super) requests: Vec<TrialRequest>,
    /// Trials to carry out before the interruption.
    pub(super) left: usize,
}

impl Device {
    pub(super) fn sink(sink: f64, most: f64) -> Self {
        Self {
            sink,
            most,
            generator: most,
            grace: 0.0,
            misses_repeats: 0,
            hiccup_every: 0,
            requests: Vec::new(),
            left: usize::MAX,
        }
    }

    pub(super) fn carry_out(&mut self, request: &TrialRequest) -> Option<Trial> {
        self.left = self.left.checked_sub(1)?;
        let is_known = self.requests.contains(request);
        self.requests.push(request.clone());
        let seconds = request.duration.as_secs_f64();
        let asked = match request.rate {
            TrialRate::Most => None,
            TrialRate::PerSecond(rate) => Some(rate),
        };
        let may = if request.messages > 0 {
            real(request.messages)
        } else {
            f64::INFINITY
        };
        let intended = asked.map_or(0.0, |rate| (rate * seconds).min(may));
        let may_make = self.generator * (1.0 + self.grace);
        let mut begun = asked.map_or(self.most, |rate| rate.min(may_make)) * seconds;
        let makes_for = asked.map_or(0.0, |_| begun / self.generator);
        let number = self.requests.len();
        if self.hiccup_every > 0 && number.is_multiple_of(self.hiccup_every) {
            begun *= 0.9;
        }
        let begun = begun.min(may);
        // A burst takes as long as it takes to make.
        let lasts = begun / asked.unwrap_or(self.most);
        let takes = if self.sink > 0.0 {
            self.sink * lasts + 64.0
        } else {
            0.0
        };
        let mut lost = (begun - takes).max(0.0);
        if is_known && self.misses_repeats > 0 && asked.is_some() {
            self.misses_repeats -= 1;
            lost += 10.0;
        }
        let mut latency = Histogram::default();
        latency.record_n(20_000, 100);
        Some(Trial {
            asked,
            duration: request.duration,
            intended: whole(intended),
            begun: whole(begun),
            lost: whole(lost),
            span: Nanos::from_secs_f64(seconds.max(makes_for)).unwrap_or_default(),
            slack: 0.01,
            latency,
        })
    }
}
