//! A job of both sides, before the verdicts: its figures in all runs, and where its latencies differ most.
//!
//! In: the job in the runs of either side. Out: a [`JobDraft`]; the verdict on each figure once its
//! chance is corrected. Not here: how a figure is judged (`judge`).

use weir_schema::{Better, JobResult};
use weir_stats::significance::least_rank_sum;
use weir_stats::{Gap, Histogram};
use weir_units::Nanos;

use crate::compare::FigureSpread;
use crate::comparison::{LatencyGap, Method, MetricComparison, RunSpread, Verdict};
use crate::figures::{Figure, figures, latencies};
use crate::judge::{FigureSamples, Judging, Level, Tested, is_testable, middle, test};
use crate::rule::Rule;

pub(crate) struct JobDraft {
    pub(crate) name: String,
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) gaps: Vec<LatencyGap>,
}

/// A job in the runs of a side.
pub(crate) struct JobRuns<'a> {
    pub(crate) jobs: Vec<&'a JobResult>,
    /// Spreads of its figures in other runs.
    pub(crate) spreads: Vec<&'a FigureSpread>,
}

impl JobRuns<'_> {
    fn name(&self) -> String {
        self.jobs
            .first()
            .map_or_else(String::new, |job| job.name.clone())
    }

    fn spread(&self, figure: &Figure) -> Option<&FigureSpread> {
        let mut all = self.spreads.iter();
        all.find(|s| s.kind == figure.kind && s.name == figure.name)
            .copied()
    }
}

/// A figure of both sides before its verdict.
pub(crate) struct Candidate {
    figure: Figure,
    samples: FigureSamples,
    /// Absent until it is tested, and where nothing came of that.
    pub(crate) tested: Option<Tested>,
    /// Reason that it says nothing.
    problem: Option<String>,
}

impl JobDraft {
    /// A job in the runs of both sides.
    pub(crate) fn of(a: &JobRuns<'_>, b: &JobRuns<'_>, in_turns: bool, rule: &Rule) -> Self {
        let of_runs = |side: &JobRuns<'_>| -> Vec<Vec<Figure>> {
            let jobs = side.jobs.iter();
            jobs.map(|job| figures(job, &rule.metrics)).collect()
        };
        let (of_a, of_b) = (of_runs(a), of_runs(b));
        let mut wanted: Vec<&Figure> = Vec::new();
        for figure in of_a.iter().chain(&of_b).flatten() {
            if !wanted.iter().any(|known| known.is_same(figure)) {
                wanted.push(figure);
            }
        }
        let candidates = wanted.into_iter().map(|figure| {
            let spread = a.spread(figure).zip(b.spread(figure));
            let spread = spread.map(|(a, b)| RunSpread {
                a: a.deviation,
                b: b.deviation,
                runs: a.runs.min(b.runs),
            });
            Candidate::of(figure, [&of_a, &of_b], spread, in_turns)
        });
        let (name_a, name_b) = (a.name(), b.name());
        Self {
            name: if name_a == name_b {
                name_a
            } else {
                format!("{name_a} -> {name_b}")
            },
            candidates: candidates.collect(),
            gaps: gaps(&a.jobs, &b.jobs),
        }
    }
}

/// Places where the latencies of all runs of either side lie furthest apart.
fn gaps(a: &[&JobResult], b: &[&JobResult]) -> Vec<LatencyGap> {
    let (of_a, of_b) = (merged(a), merged(b));
    let found = of_a.iter().filter_map(|(kind, histogram)| {
        let (_, other) = of_b.iter().find(|(same, _)| same == kind)?;
        let gap = Gap::between(histogram, other)?;
        Some(LatencyGap {
            kind: kind.clone(),
            share: gap.share,
            at_ns: Nanos(gap.value),
        })
    });
    found.collect()
}

fn merged(jobs: &[&JobResult]) -> Vec<(String, Histogram)> {
    let mut whole: Vec<(String, Histogram)> = Vec::new();
    for (kind, histogram) in jobs.iter().flat_map(|job| latencies(job)) {
        match whole.iter_mut().find(|(known, _)| *known == kind.as_str()) {
            Some((_, all)) => {
                // Runs of unlike precision are shown by the first of them.
                let _ = all.merge(&histogram);
            }
            None => whole.push((kind.as_str().to_owned(), histogram)),
        }
    }
    whole
}

impl Candidate {
    fn of(
        figure: &Figure,
        [a, b]: [&[Vec<Figure>]; 2],
        spread: Option<RunSpread>,
        in_turns: bool,
    ) -> Self {
        let in_run = |run: &Vec<Figure>| run.iter().find(|f| f.is_same(figure)).cloned();
        let of_side = |side: &[Vec<Figure>]| side.iter().map(in_run).collect::<Vec<_>>();
        let (of_a, of_b) = (of_side(a), of_side(b));
        let is_everywhere = |side: &[Option<Figure>]| side.iter().all(Option::is_some);
        let are_paired = in_turns && is_everywhere(&of_a) && is_everywhere(&of_b);
        let present = |side: Vec<Option<Figure>>| side.into_iter().flatten().collect::<Vec<_>>();
        let (of_a, of_b) = (present(of_a), present(of_b));
        let values = |side: &[Figure]| side.iter().map(|f| f.value).collect::<Vec<f64>>();
        let within = |side: &[Figure]| side.first().and_then(|f| f.within);
        let samples = FigureSamples {
            a: values(&of_a),
            b: values(&of_b),
            are_paired,
            within: within(&of_a).zip(within(&of_b)),
            spread,
        };
        let problem = match (of_a.first(), of_b.first()) {
            (None, _) | (_, None) => Some("one side alone has it".to_owned()),
            (Some(a), Some(b)) if a.unit != b.unit => Some(format!("in {} and {}", a.unit, b.unit)),
            _ => None,
        };
        let grain = of_a.iter().chain(&of_b).map(|f| f.grain);
        Self {
            figure: Figure {
                grain: grain.fold(0.0, f64::max),
                ..figure.clone()
            },
            problem,
            tested: None,
            samples,
        }
    }

    /// True where it may be tested.
    pub(crate) fn is_testable(&self) -> bool {
        self.problem.is_none() && is_testable(&self.samples)
    }

    /// Tests it, where it may be tested.
    pub(crate) fn test(&mut self, level: Level) {
        if self.is_testable() {
            self.tested = test(&self.samples, level);
        }
    }

    /// With its verdict; figures that were tested take the next of the corrected chances.
    pub(crate) fn judged(
        self,
        problem: Option<&str>,
        adjusted: &mut impl Iterator<Item = f64>,
        figures: usize,
        rule: &Rule,
    ) -> MetricComparison {
        let Self {
            figure,
            samples,
            tested,
            problem: own,
        } = self;
        let p_adjusted = tested.as_ref().and_then(|_| adjusted.next());
        let threshold = rule.threshold_of(&figure.name);
        let judging = tested
            .as_ref()
            .zip(p_adjusted)
            .map(|(tested, p_adjusted)| Judging {
                ratio: tested.ratio,
                p_adjusted,
                method: tested.method,
                rounds: samples.a.len().min(samples.b.len()),
                figures,
                threshold,
                alpha: rule.alpha,
                is_higher_better: figure.better == Better::Higher,
                grain: figure.grain,
            });
        let why = problem.map(str::to_owned).or(own);
        let verdict = match (why, &judging) {
            (Some(why), _) => Verdict::NotComparable { why },
            (None, Some(judging)) => judging.verdict(),
            (None, None) => untested(&samples, figure.better, rule.alpha / figures.max(1) as f64),
        };
        let (is_drifting, outliers) = tested
            .as_ref()
            .map_or((false, &[][..]), |t| (t.is_drifting, &t.outliers));
        let method = tested.as_ref().map(|t| t.method);
        let round = |round: &usize| u32::try_from(round + 1).unwrap_or(u32::MAX);
        MetricComparison {
            a: middle(&samples.a),
            b: middle(&samples.b),
            run_spread: samples
                .spread
                .filter(|_| method == Some(Method::SpreadOfRuns)),
            method,
            ratio: tested.as_ref().map(|t| t.ratio),
            p: tested.as_ref().map(|t| t.p),
            p_adjusted,
            established: judging.map_or_else(
                || matches!(verdict, Verdict::Better | Verdict::Worse),
                |judging| judging.is_established(),
            ),
            threshold,
            grain: figure.grain,
            verdict,
            drifting: is_drifting,
            outlier_rounds: outliers.iter().map(round).collect(),
            name: figure.name,
            kind: figure.kind,
            unit: figure.unit,
            better: figure.better,
            a_runs: samples.a,
            b_runs: samples.b,
        }
    }
}

/// The verdict on figures whose ratio says nothing. Sides of which one has zeros alone and the other none lie
/// apart, which ranks judge.
fn untested(samples: &FigureSamples, better: Better, alpha: f64) -> Verdict {
    let is_zero = |value: &f64| *value == 0.0;
    let [a, b] = [&samples.a, &samples.b].map(|side| side.iter().all(is_zero));
    let is_apart = |zeros: &[f64], others: &[f64]| {
        !others.iter().any(is_zero) && least_rank_sum(zeros.len(), others.len()) <= alpha
    };
    let has_zeros = samples
        .a
        .iter()
        .chain(&samples.b)
        .any(|value| *value <= 0.0);
    match (a, b) {
        (true, true) => Verdict::Same { within: 0.0 },
        (true, false) if is_apart(&samples.a, &samples.b) => match better {
            Better::Higher => Verdict::Better,
            Better::Lower => Verdict::Worse,
        },
        (false, true) if is_apart(&samples.b, &samples.a) => match better {
            Better::Higher => Verdict::Worse,
            Better::Lower => Verdict::Better,
        },
        _ if has_zeros => Verdict::NotComparable {
            why: "it is 0 in some runs".to_owned(),
        },
        _ => Verdict::Unsure { more_rounds: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_of_which_one_has_zeros_alone_lie_apart_where_there_are_enough_runs() {
        let verdict = |a: &[f64], b: &[f64], better| {
            let samples = FigureSamples {
                a: a.to_vec(),
                b: b.to_vec(),
                ..FigureSamples::default()
            };
            untested(&samples, better, 0.05 / 5.0)
        };
        let (none, some) = ([0.0; 6], [0.05; 6]);
        assert_eq!(verdict(&none, &some, Better::Lower), Verdict::Worse);
        assert_eq!(verdict(&some, &none, Better::Lower), Verdict::Better);
        assert_eq!(verdict(&none, &some, Better::Higher), Verdict::Better);
        let same = Verdict::Same { within: 0.0 };
        assert_eq!(verdict(&none, &none, Better::Lower), same);
        let mixed = [0.0, 0.05, 0.0, 0.05, 0.0, 0.05];
        for (a, b) in [(&none[..3], &some[..3]), (&none[..], &mixed[..])] {
            let verdict = verdict(a, b, Better::Lower);
            assert!(
                matches!(verdict, Verdict::NotComparable { .. }),
                "{verdict:?}"
            );
        }
    }
}
