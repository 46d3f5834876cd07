//! Steady state, latency targets and flows: what their options mean together.
//!
//! In: what options say, one by one. Out: the plan's bounds and pacing. Not here: how a rate is
//! judged or a depth found.

use weir_schema::{Flow, LatencyTarget, Steady, SteadyMeasure, SteadyRate};
use weir_units::{Nanos, Percent};

use crate::conflict::Conflict;
use crate::diagnostic::Fault;

const SECOND: u64 = 1_000_000_000;

/// Everything that these options say.
#[derive(Clone, Debug)]
pub(crate) struct FeedbackDraft {
    pub criterion: Option<Criterion>,
    pub window: Nanos,
    pub ramp: Nanos,
    pub target: Nanos,
    pub target_window: Nanos,
    pub target_share: f64,
    pub keep_adjusting: bool,
    pub flow: u32,
    pub flow_id: u32,
    pub flow_pause: Nanos,
}

/// Criterion of steadiness.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Criterion {
    pub rate: SteadyRate,
    pub measure: SteadyMeasure,
    pub limit: f64,
    pub in_percent: bool,
}

impl Default for FeedbackDraft {
    fn default() -> Self {
        Self {
            criterion: None,
            window: Nanos(0),
            ramp: Nanos(0),
            target: Nanos(0),
            target_window: Nanos(0),
            target_share: 100.0,
            keep_adjusting: false,
            flow: 0,
            flow_id: 0,
            flow_pause: Nanos(0),
        }
    }
}

impl FeedbackDraft {
    /// Conflict between these options.
    pub(crate) fn conflicts(&self) -> Option<Conflict> {
        let short = self.window.0 > 0 && self.window.0 < 2 * SECOND;
        short.then(|| {
            let fault = Fault::new("job.conflict", "a steady stretch below two seconds")
                .label("one sample is taken a second")
                .help("give steadystate_duration=10, for example");
            (fault, &["steadystate_duration"][..])
        })
    }

    pub(crate) fn steady(&self) -> Option<Steady> {
        let criterion = self.criterion.unwrap_or(Criterion {
            rate: SteadyRate::Operations,
            measure: SteadyMeasure::Slope,
            limit: 0.01,
            in_percent: true,
        });
        (self.window.0 > 0).then_some(Steady {
            rate: criterion.rate,
            measure: criterion.measure,
            limit: criterion.limit,
            in_percent: criterion.in_percent,
            window_ns: Nanos(self.window.0 / SECOND * SECOND),
            ramp_ns: self.ramp,
        })
    }

    pub(crate) fn latency_target(&self) -> Option<LatencyTarget> {
        (self.target.0 > 0).then_some(LatencyTarget {
            target_ns: self.target,
            window_ns: self.target_window,
            share: Percent(self.target_share),
            keep_adjusting: self.keep_adjusting,
        })
    }

    pub(crate) fn flow(&self) -> Option<Flow> {
        (self.flow > 0).then_some(Flow {
            id: self.flow_id,
            weight: self.flow,
            pause_ns: self.flow_pause,
        })
    }
}
