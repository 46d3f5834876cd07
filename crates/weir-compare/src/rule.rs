//! Rule of a comparison: its figures, and the least change that counts.
//!
//! In: what the command line says. Out: the figures, their thresholds, the level of certainty. Not here:
//! the judging (`judge`).

use weir_schema::{ComparisonRule, FigureThreshold};

/// The figures where none are named. A job that has none of them is compared by all that it has.
pub const USUAL_METRICS: [&str; 5] = ["rate", "p50", "p99", "p99.9", "cpu_per_op"];
/// Other figures that loops over operations have.
const OTHERS_OF_LOOPS: [&str; 2] = ["bandwidth", "mean"];
/// Chance may pretend a change in this share of comparisons.
pub const USUAL_ALPHA: f64 = 0.05;
/// A change below this is none, where nothing else is said.
const USUAL_THRESHOLD: f64 = 0.02;
/// Tails differ more from run to run.
const THRESHOLDS_OF_TAILS: [(f64, f64); 2] = [(99.9, 0.1), (99.0, 0.05)];

/// Rule by which sides are judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The figures, the primary one first; the usual ones where none are named.
    pub metrics: Vec<String>,
    /// The threshold of every figure that has none of its own.
    pub threshold: Option<f64>,
    /// Thresholds of single figures.
    pub thresholds: Vec<(String, f64)>,
    /// Chance may pretend a change in this share of comparisons.
    pub alpha: f64,
    /// Figures are compared whatever the plans that they come from do.
    pub allow_different: bool,
}

impl Default for Rule {
    fn default() -> Self {
        Self {
            metrics: Vec::new(),
            threshold: None,
            thresholds: Vec::new(),
            alpha: USUAL_ALPHA,
            allow_different: false,
        }
    }
}

impl Rule {
    /// As it is stored with the runs that it judged.
    pub fn stored(&self) -> ComparisonRule {
        let single = self.thresholds.iter().map(|(name, threshold)| {
            let name = name.clone();
            FigureThreshold {
                name,
                threshold: *threshold,
            }
        });
        ComparisonRule {
            metrics: self.metrics.clone(),
            threshold: self.threshold,
            thresholds: single.collect(),
            alpha: self.alpha,
        }
    }

    /// Takes what is not given here from the rule that runs were compared by.
    pub fn fill_from(&mut self, stored: &ComparisonRule, is_alpha_given: bool) {
        if self.metrics.is_empty() {
            self.metrics.clone_from(&stored.metrics);
        }
        if !is_alpha_given {
            self.alpha = stored.alpha;
        }
        // One for all that is given replaces those of single figures as well.
        if self.threshold.is_none() {
            self.threshold = stored.threshold;
            let single = stored.thresholds.iter();
            let single = single.map(|one| (one.name.clone(), one.threshold));
            self.thresholds.extend(single);
        }
    }

    /// The threshold of a figure.
    pub fn threshold_of(&self, name: &str) -> f64 {
        let own = self.thresholds.iter().find(|(of, _)| of == name);
        let tail = || {
            let percent = percent_of(name)?;
            let mut tails = THRESHOLDS_OF_TAILS.iter();
            tails.find(|(from, _)| percent >= *from).map(|(_, t)| *t)
        };
        own.map(|(_, threshold)| *threshold)
            .or(self.threshold)
            .or_else(tail)
            .unwrap_or(USUAL_THRESHOLD)
    }

    /// Number of figures of one kind of operation that are compared.
    pub fn figures(&self) -> usize {
        if self.metrics.is_empty() {
            USUAL_METRICS.len()
        } else {
            self.metrics.len()
        }
    }
}

/// The percentile that a figure of this name is: 99.9 for `p99.9`.
pub(crate) fn percent_of(name: &str) -> Option<f64> {
    let number = name.strip_prefix('p')?;
    let is_number = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let percent: f64 = number.parse().ok().filter(|_| is_number)?;
    (0.0..=100.0).contains(&percent).then_some(percent)
}

/// True if loops over operations have a figure of this name.
pub fn is_of_loops(name: &str) -> bool {
    names_of_loops().any(|known| known == name) || percent_of(name).is_some()
}

/// Names that loops have figures of; percentiles have others beside.
pub fn names_of_loops() -> impl Iterator<Item = &'static str> {
    USUAL_METRICS.into_iter().chain(OTHERS_OF_LOOPS)
}

/// The least number of rounds from which on the exact test of so many figures can call a change: all
/// rounds may go one way by chance in two of 2^n cases.
pub fn least_rounds(figures: usize, alpha: f64) -> u32 {
    let mut rounds = 1;
    let mut by_chance = figures as f64;
    while by_chance > alpha * (1.0 + 1e-9) && rounds < 1000 {
        rounds += 1;
        by_chance /= 2.0;
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_figures_need_more_rounds() {
        assert_eq!(least_rounds(1, 0.05), 6);
        assert_eq!(least_rounds(5, 0.05), 8);
        assert_eq!(least_rounds(5, 0.01), 10);
        assert_eq!(least_rounds(1, 1.0), 1);
    }

    #[test]
    fn tails_have_wider_thresholds_unless_something_is_said() {
        let mut rule = Rule::default();
        let of = |rule: &Rule| {
            ["rate", "p50", "p99", "p99.5", "p99.9", "p99.99"].map(|n| {
                format!("{:.0}", rule.threshold_of(n) * 100.0)
                    .parse()
                    .unwrap_or(0)
            })
        };
        assert_eq!(of(&rule), [2, 2, 5, 5, 10, 10]);
        rule.threshold = Some(0.03);
        rule.thresholds = vec![("p99".to_owned(), 0.2)];
        assert_eq!(of(&rule), [3, 3, 20, 3, 3, 3]);
    }

    #[test]
    fn a_percentile_is_a_p_and_a_number() {
        assert_eq!(percent_of("p99.9"), Some(99.9));
        for other in ["p98x", "p", "rate", "p101", "p1e1", "p+5", "pinf"] {
            assert!(!is_of_loops(other) || other == "rate", "{other}");
        }
    }
}
