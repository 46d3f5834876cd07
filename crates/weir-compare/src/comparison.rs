//! Result of a comparison, as plain data.
//!
//! Not here: how it comes about (`compare`, `judge`), how it is printed.

use serde::{Deserialize, Serialize};
use weir_schema::Better;
use weir_stats::Estimate;
use weir_units::{JsonSchema, Nanos};

/// Version word of comparisons.
pub const COMPARISON_SCHEMA: &str = "weir.comparison.v1";

/// File name and JSON Schema of comparisons.
#[cfg(feature = "json-schema")]
pub fn json_schema() -> (&'static str, serde_json::Value) {
    let schema = schemars::schema_for!(Comparison).to_value();
    ("comparison.v1.schema.json", schema)
}

/// Two sides or more, each compared with the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Always `weir.comparison.v1`.
    pub schema: String,
    /// Version of the program.
    pub weir_version: String,
    /// The sides, the base first.
    pub sides: Vec<SideSummary>,
    /// Runs of the same number are of one round: the sides took turns.
    pub in_turns: bool,
    /// From the start of the first run to the end of the last.
    pub span_ns: Nanos,
    /// A change is called where it would come by chance in at most this share of all comparisons.
    pub alpha: f64,
    /// Each other side beside the base.
    pub pairs: Vec<PairComparison>,
    /// The conditions that hold.
    pub held: Vec<HeldCondition>,
    /// True if they held again in fresh rounds, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<bool>,
}

/// A side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideSummary {
    /// Name of the side.
    pub name: String,
    /// Its machine.
    pub hostname: Option<String>,
    /// Runs that were compared.
    pub runs: u32,
    /// Runs that were left out: cut short, or without a partner of their round.
    pub left_out: u32,
    /// Operations, messages and jobs of its runs that failed.
    pub errors: u64,
}

/// A side beside the base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairComparison {
    /// The base.
    pub a: String,
    /// The other side.
    pub b: String,
    /// Reasons that the figures of these sides are not comparable.
    pub problems: Vec<String>,
    /// Differences of machines and plans.
    pub differences: Vec<Difference>,
    /// The jobs, in plan order.
    pub jobs: Vec<JobComparison>,
}

/// A fact that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Name of the fact.
    pub name: String,
    /// At the base; absent where it has none.
    pub a: Option<String>,
    /// At the other side.
    pub b: Option<String>,
}

/// A job of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobComparison {
    /// As in the plans; both names where they differ.
    pub name: String,
    /// Its figures, the primary one first.
    pub metrics: Vec<MetricComparison>,
    /// Places where the latencies of both lie furthest apart, by kind.
    pub gaps: Vec<LatencyGap>,
}

/// A figure of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricComparison {
    /// Name of the figure: `rate`, `b_eff`.
    pub name: String,
    /// The kind of operation, where it is of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its unit without prefix.
    pub unit: String,
    /// The better one of two values.
    pub better: Better,
    /// The median of the base's runs.
    pub a: f64,
    /// The median of the other side's.
    pub b: f64,
    /// Spread of runs of the same plans on the same machines, where the verdict rests on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_spread: Option<RunSpread>,
    /// Method of the judgement; absent where nothing could be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// b / a with its interval, of the level 1 − alpha.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Estimate>,
    /// Probability of such a difference by chance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// The same for all figures of the comparison together, after Holm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_adjusted: Option<f64>,
    /// The interval leaves 1 out, and chance hardly does that.
    pub established: bool,
    /// A smaller change is none.
    pub threshold: f64,
    /// Resolution of the figure, as a share of itself.
    #[serde(default)]
    pub grain: f64,
    /// Verdict on the figure.
    pub verdict: Verdict,
    /// The ratio changes with the rounds by more than its interval is wide.
    pub drifting: bool,
    /// Rounds, from 1, whose ratio lies far from all others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outlier_rounds: Vec<u32>,
    /// The value in each of the base's runs.
    pub a_runs: Vec<f64>,
    /// The value in each of the other side's.
    pub b_runs: Vec<f64>,
}

impl MetricComparison {
    /// `read rate`.
    pub fn full_name(&self) -> String {
        match &self.kind {
            Some(kind) => format!("{kind} {}", self.name),
            None => self.name.clone(),
        }
    }

    /// Half the width of the ratio's interval, as a share.
    pub fn half_width(&self) -> Option<f64> {
        let (low, high) = self.ratio.and_then(|ratio| ratio.low.zip(ratio.high))?;
        let half = ((high / low).ln() / 2.0).exp() - 1.0;
        half.is_finite().then_some(half)
    }

    /// The smallest change that runs like these can establish: what leaves 1 out of their interval, is
    /// not below the threshold, and not finer than the figure is known.
    pub fn smallest_change(&self) -> Option<f64> {
        let half = self.half_width()?;
        Some(half.max(self.threshold).max(self.grain))
    }

    /// Difference of B from A, as a share of A.
    pub fn change(&self) -> Option<f64> {
        let value = self.ratio.map_or(self.b / self.a, |ratio| ratio.value);
        (value - 1.0).is_finite().then_some(value - 1.0)
    }
}

/// Spread of a figure from run to run: the standard deviation of its logarithm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSpread {
    /// At the base.
    pub a: f64,
    /// At the other side.
    pub b: f64,
    /// Runs that say so, of the side that has fewer.
    pub runs: u32,
}

/// Method by which a figure was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Six rounds or more, enough for the number of figures: medians resampled by round, and the exact
    /// signed-rank test.
    Rounds,
    /// Fewer rounds: Student's t of the logarithms of their ratios.
    FewRounds,
    /// Four unpaired runs a side or more, enough for the number of figures: medians resampled, and the
    /// exact test of Mann and Whitney.
    Runs,
    /// Fewer unpaired runs: Welch's t of their logarithms.
    FewRuns,
    /// One run a side: what each says of its own error. What differs from run to run it cannot know.
    WithinRuns,
    /// One run a side: the same, and how far other runs of the same plan on the same machine lie apart.
    SpreadOfRuns,
}

impl Method {
    /// There is one run a side, and more rounds are not what is missing.
    pub(crate) fn is_of_single_runs(self) -> bool {
        matches!(self, Self::WithinRuns | Self::SpreadOfRuns)
    }
}

/// Verdict on a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Verdict {
    /// An established change, not below the threshold, to the better.
    Better,
    /// The same to the worse.
    Worse,
    /// No change that matters: the interval lies within the threshold.
    Same {
        /// The farther end of the interval.
        within: f64,
    },
    /// An established change below the threshold.
    Small,
    /// Too little is known.
    Unsure {
        /// About how many more rounds would do; absent where rounds are not what is missing.
        more_rounds: Option<u32>,
    },
    /// The figures do not say the same.
    NotComparable {
        /// The reason.
        why: String,
    },
}

impl Verdict {
    /// One word, as in JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same { .. } => "same",
            Self::Small => "small",
            Self::Unsure { .. } => "unsure",
            Self::NotComparable { .. } => "not comparable",
        }
    }
}

/// Place where the latencies of two sides lie furthest apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyGap {
    /// The kind of operation.
    pub kind: String,
    /// That share more of one side's operations took at most `at_ns`.
    pub share: f64,
    /// The latency.
    pub at_ns: Nanos,
}

/// A condition of `--fail-if` that holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldCondition {
    /// As it was given.
    pub condition: String,
    /// The side that it holds for.
    pub side: String,
    /// The job, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The figure, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
}

#[cfg(test)]
mod tests {
    use weir_schema::Metric;

    use super::*;

    #[test]
    fn the_smallest_change_is_the_largest_of_interval_threshold_and_grain() {
        let smallest = |half: f64, threshold: f64, grain: f64| {
            let metric = MetricComparison {
                name: "rate".to_owned(),
                kind: None,
                unit: Metric::OPS_PER_S.to_owned(),
                better: Better::Higher,
                a: 1.0,
                b: 1.0,
                run_spread: None,
                method: Some(Method::Rounds),
                ratio: Some(Estimate::within(1.0, 1.0 / (1.0 + half), 1.0 + half)),
                p: None,
                p_adjusted: None,
                established: false,
                threshold,
                grain,
                verdict: Verdict::Small,
                drifting: false,
                outlier_rounds: Vec::new(),
                a_runs: Vec::new(),
                b_runs: Vec::new(),
            };
            metric.smallest_change().unwrap()
        };
        assert!((smallest(0.01, 0.02, 0.005) - 0.02).abs() < 1e-12);
        assert!((smallest(0.03, 0.02, 0.005) - 0.03).abs() < 1e-12);
        assert!((smallest(0.01, 0.02, 0.04) - 0.04).abs() < 1e-12);
    }
}
