//! Is the difference of one figure more than chance, and what is said of it?
//!
//! In: the figure in the runs of both sides. Out: the ratio with its interval and its probability
//! ([`Tested`]); once the probabilities of all figures are corrected together, the verdict. Not here:
//! which figures there are.

use weir_stats::Estimate;
use weir_stats::significance::{
    MeanOfLogarithms, RatioTest, RunsApart, drift, least_rank_sum, least_signed_rank, median,
    outliers, paired_t, rank_sum, ratio_of_medians, ratio_of_unpaired, signed_rank, welch,
    welch_of_runs,
};

use crate::comparison::{Method, RunSpread, Verdict};
use crate::rule::least_rounds;

/// From so many rounds on they are resampled and ranked, where the ranks can reach the level.
const RANKED_ROUNDS: usize = 6;
/// From so many unpaired runs a side on, likewise.
const RANKED_RUNS: usize = 4;
/// More rounds than this nobody waits for.
const MOST_ROUNDS: f64 = 200.0;

/// A figure in the runs of both sides.
#[derive(Clone, Debug, Default)]
pub(crate) struct FigureSamples {
    pub(crate) a: Vec<f64>,
    pub(crate) b: Vec<f64>,
    /// Runs of the same number are of one round.
    pub(crate) are_paired: bool,
    /// Interval of the first run of either side within itself.
    pub(crate) within: Option<(MeanOfLogarithms, MeanOfLogarithms)>,
    /// Spread of runs like them.
    pub(crate) spread: Option<RunSpread>,
}

/// Result of the test of both sides' figures.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tested {
    pub(crate) method: Method,
    pub(crate) ratio: Estimate,
    pub(crate) p: f64,
    pub(crate) is_drifting: bool,
    /// From 0.
    pub(crate) outliers: Vec<usize>,
}

/// Number of rounds or runs a side.
fn count(samples: &FigureSamples) -> usize {
    samples.a.len().min(samples.b.len())
}

/// The level that a test has to reach.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    pub(crate) alpha: f64,
    /// Figures that are tested together.
    pub(crate) figures: usize,
}

impl Level {
    /// True where a test whose least probability is this one can call a change.
    fn is_reached_by(self, least: f64) -> bool {
        least * self.figures as f64 <= self.alpha * (1.0 + 1e-9)
    }
}

/// True where the figures have logarithms.
pub(crate) fn is_testable(samples: &FigureSamples) -> bool {
    let mut all = samples.a.iter().chain(&samples.b);
    count(samples) > 0 && all.all(|v| v.is_finite() && *v > 0.0)
}

/// Nothing where a figure has no logarithm, or where one run does not say how sure it is. An exact test
/// that cannot reach the level, whatever the figures are, gives way to Student's t.
pub(crate) fn test(samples: &FigureSamples, level: Level) -> Option<Tested> {
    if !is_testable(samples) {
        return None;
    }
    if samples.are_paired && samples.a.len() > 1 {
        return of_rounds(samples, level);
    }
    let (method, test) = of_runs(samples, level)?;
    Some(Tested {
        method,
        ratio: test.ratio,
        p: test.p,
        is_drifting: false,
        outliers: Vec::new(),
    })
}

fn of_rounds(samples: &FigureSamples, level: Level) -> Option<Tested> {
    let rounds: Vec<(f64, f64)> = samples
        .a
        .iter()
        .copied()
        .zip(samples.b.iter().copied())
        .collect();
    let logarithms: Vec<f64> = rounds.iter().map(|(a, b)| (b / a).ln()).collect();
    let has_many = rounds.len() >= RANKED_ROUNDS;
    let is_ranked = has_many && level.is_reached_by(least_signed_rank(rounds.len()));
    let (method, RatioTest { ratio, p }) = if is_ranked {
        let ratio = ratio_of_medians(&rounds, level.alpha)?;
        let p = signed_rank(&logarithms)?;
        (Method::Rounds, RatioTest { ratio, p })
    } else {
        (Method::FewRounds, paired_t(&logarithms, level.alpha)?)
    };
    let over_all = drift(&logarithms).map_or(0.0, |slope| slope * (rounds.len() - 1) as f64);
    Some(Tested {
        method,
        ratio,
        p,
        is_drifting: has_many && over_all.abs() > 2.0 * half_width(&ratio),
        outliers: if has_many {
            outliers(&logarithms)
        } else {
            Vec::new()
        },
    })
}

fn of_runs(samples: &FigureSamples, level: Level) -> Option<(Method, RatioTest)> {
    let (a, b, alpha) = (&samples.a, &samples.b, level.alpha);
    if count(samples) >= RANKED_RUNS && level.is_reached_by(least_rank_sum(a.len(), b.len())) {
        let ratio = ratio_of_unpaired(a, b, alpha)?;
        return Some((
            Method::Runs,
            RatioTest {
                ratio,
                p: rank_sum(a, b)?,
            },
        ));
    }
    let logarithms = |side: &[f64]| side.iter().map(|v| v.ln()).collect::<Vec<f64>>();
    let (of_a, of_b) = (logarithms(a), logarithms(b));
    let means = match (MeanOfLogarithms::of(&of_a), MeanOfLogarithms::of(&of_b)) {
        (Some(a), Some(b)) => (a, b),
        (Some(a), None) => (certain(a), one_more(a, of_a.len(), of_b[0])),
        (None, Some(b)) => (one_more(b, of_b.len(), of_a[0]), certain(b)),
        (None, None) => return of_single_runs(samples, alpha),
    };
    Some((Method::FewRuns, welch(means.0, means.1, alpha)?))
}

/// By what runs like them have shown, else by what each says of itself.
fn of_single_runs(samples: &FigureSamples, alpha: f64) -> Option<(Method, RatioTest)> {
    let known = samples.spread.as_ref();
    let apart = known.and_then(|spread| RunsApart::of(spread.a, spread.b, spread.runs));
    let Some(apart) = apart else {
        let (a, b) = samples.within?;
        return Some((Method::WithinRuns, welch(a, b, alpha)?));
    };
    // What runs show of how they lie apart holds what each is unsure of by itself as well.
    let silent = |values: &[f64]| MeanOfLogarithms {
        mean: values[0].ln(),
        error: 0.0,
        freedom: 1.0,
    };
    let silent = (silent(&samples.a), silent(&samples.b));
    let (a, b) = samples.within.unwrap_or(silent);
    Some((Method::SpreadOfRuns, welch_of_runs(a, b, apart, alpha)?))
}

/// A single run beside several others: it differs from their mean as one more of them would.
fn one_more(others: MeanOfLogarithms, count: usize, logarithm: f64) -> MeanOfLogarithms {
    MeanOfLogarithms {
        mean: logarithm,
        error: others.error * (count as f64 + 1.0).sqrt(),
        freedom: others.freedom,
    }
}

/// The mean without its own error, which is counted elsewhere.
fn certain(mean: MeanOfLogarithms) -> MeanOfLogarithms {
    MeanOfLogarithms { error: 0.0, ..mean }
}

/// Half the width of the interval of the ratio's logarithm.
fn half_width(ratio: &Estimate) -> f64 {
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) if low > 0.0 => (high / low).ln() / 2.0,
        _ => f64::INFINITY,
    }
}

/// Parts of a verdict.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judging {
    pub(crate) ratio: Estimate,
    pub(crate) p_adjusted: f64,
    pub(crate) method: Method,
    /// Rounds, or runs of the side that has fewer.
    pub(crate) rounds: usize,
    /// Figures of the whole comparison.
    pub(crate) figures: usize,
    pub(crate) threshold: f64,
    pub(crate) alpha: f64,
    /// A greater figure is better.
    pub(crate) is_higher_better: bool,
    /// Resolution of the figure, as a share of itself.
    pub(crate) grain: f64,
}

impl Judging {
    /// The interval leaves 1 out, and chance hardly does that.
    pub(crate) fn is_established(&self) -> bool {
        let outside = self.ratio.low.is_some_and(|low| low > 1.0)
            || self.ratio.high.is_some_and(|high| high < 1.0);
        outside && self.p_adjusted <= self.alpha * (1.0 + 1e-9)
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let Estimate {
            value, low, high, ..
        } = self.ratio;
        let (low, high) = (low.unwrap_or(0.0), high.unwrap_or(f64::INFINITY));
        let limit = 1.0 + self.threshold;
        if self.is_established() && (value - 1.0).abs() >= self.threshold {
            return if (value > 1.0) == self.is_higher_better {
                Verdict::Better
            } else {
                Verdict::Worse
            };
        }
        if low >= 1.0 / limit && high <= limit {
            let within = (high - 1.0).max(1.0 - low).max(self.grain);
            return Verdict::Same { within };
        }
        if self.is_established() {
            return Verdict::Small;
        }
        Verdict::Unsure {
            more_rounds: (!self.method.is_of_single_runs()).then(|| self.more_rounds()),
        }
    }

    /// About how many more rounds would narrow the interval enough to say something.
    fn more_rounds(&self) -> u32 {
        let limit = (1.0 + self.threshold).ln();
        let apart = self.ratio.value.ln().abs();
        let wanted = apart.max(limit - apart).max(limit / 4.0);
        let wider = half_width(&self.ratio) / wanted;
        let rounds = self.rounds as f64;
        let least = f64::from(least_rounds(self.figures, self.alpha));
        let more = (rounds * (wider.powi(2) - 1.0)).max(least - rounds);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and one more than the most"
        )]
        let more = more.ceil().clamp(1.0, MOST_ROUNDS + 1.0) as u32;
        more
    }
}

/// The median of a side's runs.
pub(crate) fn middle(values: &[f64]) -> f64 {
    median(values).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Level = Level {
        alpha: 0.05,
        figures: 1,
    };

    fn samples(a: &[f64], b: &[f64], are_paired: bool) -> FigureSamples {
        FigureSamples {
            a: a.to_vec(),
            b: b.to_vec(),
            are_paired,
            ..FigureSamples::default()
        }
    }

    fn judging(ratio: Estimate, p_adjusted: f64) -> Judging {
        Judging {
            ratio,
            p_adjusted,
            method: Method::Rounds,
            rounds: 10,
            figures: 5,
            threshold: 0.02,
            alpha: 0.05,
            is_higher_better: true,
            grain: 0.0,
        }
    }

    #[test]
    fn how_many_runs_there_are_decides_the_method() {
        let up: Vec<f64> = (100..110).map(f64::from).collect();
        let method_of = |a: usize, b: usize, paired, figures| {
            let level = Level { figures, ..ONE };
            test(&samples(&up[..a], &up[..b], paired), level).map(|t| t.method)
        };
        let method = |a, b, paired| method_of(a, b, paired, 1);
        assert_eq!(method(10, 10, true), Some(Method::Rounds));
        assert_eq!(method(6, 6, true), Some(Method::Rounds));
        assert_eq!(method(5, 5, true), Some(Method::FewRounds));
        assert_eq!(method(4, 9, false), Some(Method::Runs));
        assert_eq!(method(3, 9, false), Some(Method::FewRuns));
        assert_eq!(method(1, 3, false), Some(Method::FewRuns));
        assert_eq!(method(1, 1, false), None);
        assert_eq!(method(0, 1, false), None);
        // 2 / 70 and 2 / 64 are below 0.05 once; 2 / 252 six times, 2 / 1024 twenty-five times.
        assert_eq!(method_of(4, 4, false, 2), Some(Method::FewRuns));
        assert_eq!(method_of(5, 5, false, 6), Some(Method::Runs));
        assert_eq!(method_of(5, 5, false, 7), Some(Method::FewRuns));
        assert_eq!(method_of(6, 6, true, 2), Some(Method::FewRounds));
        assert_eq!(method_of(10, 10, true, 25), Some(Method::Rounds));
        assert_eq!(method_of(10, 10, true, 26), Some(Method::FewRounds));
        let within = |value: f64| MeanOfLogarithms {
            mean: value.ln(),
            error: 0.005,
            freedom: 8.0,
        };
        let single = FigureSamples {
            within: Some((within(100.0), within(120.0))),
            ..samples(&[100.0], &[120.0], true)
        };
        let found = test(&single, ONE).unwrap();
        assert_eq!(found.method, Method::WithinRuns);
        assert!(
            found.p < 0.001 && found.ratio.low.unwrap() > 1.15,
            "{found:?}"
        );
        assert_eq!(test(&samples(&[0.0; 8], &[1.0; 8], true), ONE), None);
    }

    #[test]
    fn what_runs_like_them_show_is_added_to_single_runs() {
        let within = |value: f64| MeanOfLogarithms {
            mean: value.ln(),
            error: 0.003,
            freedom: 8.0,
        };
        let spread = |a: f64, b: f64| RunSpread { a, b, runs: 12 };
        let single = |within, spread| FigureSamples {
            within,
            spread,
            ..samples(&[100.0], &[105.0], false)
        };
        let own = Some((within(100.0), within(105.0)));
        let found = |within, spread| test(&single(within, spread), ONE).unwrap();
        let alone = found(own, None);
        assert_eq!(alone.method, Method::WithinRuns);
        assert!(alone.p < 0.001, "{alone:?}");
        let wide = found(own, Some(spread(0.03, 0.03)));
        assert_eq!(wide.method, Method::SpreadOfRuns);
        // t(0.975) of 11 degrees and a bit more: 2.2 · √(2·0.003² + 2·0.03²).
        assert!(
            (half_width(&wide.ratio) - 2.2 * 0.0426).abs() < 5e-4,
            "{wide:?}"
        );
        // Each side has its own.
        let one = found(own, Some(spread(0.03, 0.0)));
        assert!(half_width(&one.ratio) < 0.8 * half_width(&wide.ratio));
        // Runs that say nothing of themselves are judged by the others alone.
        let silent = found(None, Some(spread(0.001, 0.001)));
        assert_eq!(silent.method, Method::SpreadOfRuns);
        assert!(silent.p < 0.001, "{silent:?}");
        let verdict = Judging {
            method: Method::SpreadOfRuns,
            ..judging(wide.ratio, wide.p)
        };
        assert_eq!(verdict.verdict(), Verdict::Unsure { more_rounds: None });
    }

    #[test]
    fn a_single_run_is_one_more_of_the_others() {
        // Logarithms 0, 0.1 and 0.2, deviation 0.1: one at 0.1 more has the error 0.1·√(1 + 1/3).
        let a = [0.0_f64, 0.1, 0.2].map(f64::exp);
        let found = test(&samples(&a, &[0.2_f64.exp()], false), ONE).unwrap();
        let half = half_width(&found.ratio);
        // t(2) = 4.302653.
        assert!(
            (half - 4.302_653 * 0.1 * (4.0_f64 / 3.0).sqrt()).abs() < 1e-6,
            "{half}"
        );
        assert!((found.ratio.value - 0.1_f64.exp()).abs() < 1e-9);
    }

    #[test]
    fn the_verdict_needs_the_interval_the_chance_and_the_size() {
        let verdict = |low: f64, value: f64, high: f64, p: f64| {
            judging(Estimate::within(value, low, high), p)
                .verdict()
                .word()
        };
        assert_eq!(verdict(1.039, 1.046, 1.054, 0.01), "better");
        assert_eq!(verdict(0.94, 0.95, 0.96, 0.05), "worse");
        assert_eq!(verdict(0.94, 0.95, 0.96, 0.051), "unsure");
        assert_eq!(verdict(0.99, 1.03, 1.07, 0.01), "unsure");
        assert_eq!(verdict(1.005, 1.015, 1.025, 0.01), "small");
        assert_eq!(verdict(0.99, 1.0, 1.01, 0.9), "same");
        assert_eq!(verdict(1.005, 1.01, 1.015, 0.01), "same");
        // A time that grows is worse.
        let lower = Judging {
            is_higher_better: false,
            ..judging(Estimate::within(1.046, 1.039, 1.054), 0.01)
        };
        assert_eq!(lower.verdict(), Verdict::Worse);
    }

    #[test]
    fn same_says_within_what_and_never_finer_than_the_figure_is_known() {
        let mut equal = judging(Estimate::within(1.0, 0.985, 1.01), 1.0);
        let within = |judging: &Judging| match judging.verdict() {
            Verdict::Same { within } => within,
            other => panic!("{other:?}"),
        };
        assert!((within(&equal) - 0.015).abs() < 1e-9);
        equal.grain = 0.018;
        assert!((within(&equal) - 0.018).abs() < 1e-9);
    }

    #[test]
    fn unsure_says_how_many_rounds_more() {
        let more = |ratio: Estimate, p, rounds| {
            let judging = Judging {
                rounds,
                ..judging(ratio, p)
            };
            match judging.verdict() {
                Verdict::Unsure { more_rounds } => more_rounds.unwrap(),
                other => panic!("{other:?}"),
            }
        };
        // w = 0.04, g = 0.03: 10 · (16/9 − 1) = 7.8.
        let wide = |middle: f64, half: f64| {
            Estimate::within(middle.exp(), (middle - half).exp(), (middle + half).exp())
        };
        assert_eq!(more(wide(0.03, 0.04), 0.2, 10), 8);
        // Right in the middle: g = ln 1.02 = 0.0198, w = 0.0396.
        assert_eq!(more(wide(0.0, 0.0396), 0.9, 10), 30);
        assert_eq!(more(wide(0.0, 2.0), 0.9, 10), 201);
        // The interval is narrow enough, but six rounds of five figures are too few for the test.
        assert_eq!(more(wide(0.05, 0.01), 0.16, 6), 2);
    }

    #[test]
    fn drift_and_outliers_are_told() {
        let a: Vec<f64> = (0..12).map(|r| 100.0 + f64::from(r % 3)).collect();
        let mut b: Vec<f64> = a
            .iter()
            .enumerate()
            .map(|(r, a)| a * 1.01_f64.powf(r as f64))
            .collect();
        let found = test(&samples(&a, &b, true), ONE).unwrap();
        assert!(found.is_drifting, "{found:?}");
        b.clone_from(&a);
        for (round, b) in b.iter_mut().enumerate() {
            *b *= 1.0 + 0.001 * f64::from(u8::try_from(round % 4).unwrap());
        }
        b[7] *= 2.0;
        let found = test(&samples(&a, &b, true), ONE).unwrap();
        assert_eq!((found.is_drifting, found.outliers), (false, vec![7]));
    }
}
