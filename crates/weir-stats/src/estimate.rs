//! A figure with its 95 % interval, or the reason why there is none.
//!
//! Not here: how wide the interval is (`series_mean`, `percentile_interval`).

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};
use weir_units::JsonSchema;

/// A figure and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Lower end of its 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of its 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Reason that there is no interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<NoInterval>,
}

/// Reason that a figure has no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoInterval {
    /// Fewer than 10 stretches: the run was too short.
    ShortRun,
    /// Its values were recorded at the end of the run, not during it.
    SeenAtEnd,
}

impl Estimate {
    /// A figure with an interval.
    pub fn within(value: f64, low: f64, high: f64) -> Self {
        Self {
            value,
            low: Some(low),
            high: Some(high),
            absent: None,
        }
    }

    /// A figure that cannot be below zero, with an interval of this half width on either side.
    pub fn about(value: f64, half_width: Result<f64, NoInterval>) -> Self {
        match half_width {
            Ok(half) => Self::within(value, (value - half).max(0.0), value + half),
            Err(absent) => Self::without(value, absent),
        }
    }

    /// A figure without one.
    pub fn without(value: f64, absent: NoInterval) -> Self {
        Self {
            value,
            low: None,
            high: None,
            absent: Some(absent),
        }
    }

    /// Half the interval's width: what `±` prints.
    pub fn half_width(&self) -> Option<f64> {
        Some((self.high? - self.low?) / 2.0)
    }
}

/// Standard errors to either side of the mean in a 95 % interval.
pub(crate) fn t95(freedom: f64) -> f64 {
    // Without a degree of freedom nothing is known.
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| t.inverse_cdf(0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_t_agrees_with_the_published_table() {
        for (freedom, t) in [(1.0, 12.706), (6.0, 2.447), (8.0, 2.306), (79.0, 1.990)] {
            let found = t95(freedom);
            assert!((found - t).abs() < 5e-4, "{freedom}: {found}");
        }
        assert!(t95(0.0).is_infinite());
    }

    #[test]
    fn an_estimate_is_stored_with_its_reason() {
        let stored = |estimate: &Estimate| serde_json::to_string(estimate).unwrap();
        let within = Estimate::within(2.0, 1.0, 4.0);
        assert_eq!(stored(&within), r#"{"value":2.0,"low":1.0,"high":4.0}"#);
        assert_eq!(within.half_width(), Some(1.5));
        let without = Estimate::without(2.0, NoInterval::ShortRun);
        assert_eq!(stored(&without), r#"{"value":2.0,"absent":"short_run"}"#);
        assert_eq!(
            serde_json::from_str::<Estimate>(&stored(&without)).unwrap(),
            without
        );
    }

    #[test]
    fn an_interval_holds_its_own_figure_and_nothing_below_zero() {
        assert_eq!(
            Estimate::about(5.0, Ok(1.0)),
            Estimate::within(5.0, 4.0, 6.0)
        );
        assert_eq!(
            Estimate::about(5.0, Ok(7.0)),
            Estimate::within(5.0, 0.0, 12.0)
        );
        let short = Estimate::about(5.0, Err(NoInterval::ShortRun));
        assert_eq!(short, Estimate::without(5.0, NoInterval::ShortRun));
    }
}
