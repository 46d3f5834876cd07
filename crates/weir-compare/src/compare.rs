//! From the results of two sides or more to a comparison.
//!
//! In: sides with their runs, a rule. Out: a [`Comparison`]; names of figures that nobody has are
//! refused. Each side is compared with the first; the chances of all figures are corrected together.
//! Not here: how a figure is judged (`judge`), conditions (`condition`).

use thiserror::Error;
use weir_schema::{Better, JobResult, RunResult};
use weir_stats::significance::holm;
use weir_stats::{Gap, Histogram};
use weir_units::Nanos;

use crate::comparison::{
    COMPARISON_SCHEMA, Comparison, JobComparison, LatencyGap, MetricComparison, PairComparison,
    SideSummary, Verdict,
};
use crate::differences::{of_jobs, of_machines};
use crate::figures::{Figure, figures, latencies, names};
use crate::judge::{Judging, Samples, Tested, middle, test};
use crate::rule::{Rule, names_of_loops};

/// The runs of one side.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// What it is called.
    pub name: String,
    /// In the order in which they were carried out.
    pub runs: Vec<RunResult>,
}

/// What is compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Sides {
    /// The base first; at least two.
    pub sides: Vec<Side>,
    /// Runs of the same number are of one round.
    pub in_turns: bool,
    /// What their plans differ in is what shall be compared.
    pub is_varied: bool,
}

/// A comparison that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CompareError {
    /// A figure that no job has.
    #[error("no job has a figure `{name}`")]
    UnknownMetric {
        /// Its name.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
}

/// A side with the runs that count.
struct Counted<'a> {
    side: &'a Side,
    runs: Vec<&'a RunResult>,
}

impl<'a> Counted<'a> {
    /// The job of this place in each run.
    fn jobs(&self, place: usize) -> Vec<&'a JobResult> {
        let jobs = self.runs.iter().filter_map(|run| run.jobs().nth(place));
        jobs.collect()
    }
}

/// A figure of both sides before its verdict.
struct Candidate {
    figure: Figure,
    samples: Samples,
    tested: Option<Tested>,
    /// Why it says nothing.
    problem: Option<String>,
}

/// Compares every side with the first.
///
/// # Errors
/// A figure is asked for that no job has.
pub fn compare(sides: &Sides, rule: &Rule) -> Result<Comparison, CompareError> {
    let counted = counted(sides);
    refuse_unknown(&counted, rule)?;
    let (base, others) = counted
        .split_first()
        .map_or((None, &[][..]), |(a, b)| (Some(a), b));
    let pairs = base.into_iter().flat_map(|base| {
        let beside = |other| PairDraft::of(base, other, sides, rule);
        others.iter().map(beside)
    });
    let mut drafts: Vec<PairDraft> = pairs.collect();
    let all = |drafts: &[PairDraft]| -> Vec<f64> {
        let candidates = drafts.iter().flat_map(|pair| &pair.jobs);
        let tested = candidates.flat_map(|job| &job.candidates);
        tested
            .filter_map(|c| c.tested.as_ref().map(|t| t.p))
            .collect()
    };
    let chances = all(&drafts);
    let mut adjusted = holm(&chances).into_iter();
    let figures = chances.len();
    Ok(Comparison {
        schema: COMPARISON_SCHEMA.to_owned(),
        weir_version: env!("CARGO_PKG_VERSION").to_owned(),
        sides: counted.iter().map(|c| summary(c)).collect(),
        in_turns: sides.in_turns,
        span_ns: span(&counted),
        alpha: rule.alpha,
        pairs: drafts
            .drain(..)
            .map(|draft| draft.judged(&mut adjusted, figures, rule))
            .collect(),
        held: Vec::new(),
        confirmed: None,
    })
}

/// The runs that count: whole ones and, where sides took turns, rounds that all of them have.
fn counted(sides: &Sides) -> Vec<Counted<'_>> {
    let all = sides.sides.iter();
    let is_whole = |side: &Side, round: usize| side.runs.get(round).is_some_and(|r| r.complete);
    let counts = |side: &Side, round: usize| {
        is_whole(side, round)
            && (!sides.in_turns || sides.sides.iter().all(|other| is_whole(other, round)))
    };
    all.map(|side| Counted {
        side,
        runs: (0..side.runs.len())
            .filter(|round| counts(side, *round))
            .filter_map(|round| side.runs.get(round))
            .collect(),
    })
    .collect()
}

fn refuse_unknown(sides: &[Counted<'_>], rule: &Rule) -> Result<(), CompareError> {
    let jobs = || {
        sides
            .iter()
            .flat_map(|side| &side.runs)
            .flat_map(|run| run.jobs())
    };
    // Of what was cut short nothing is known.
    if jobs().next().is_none() {
        return Ok(());
    }
    let is_known = |name: &str| jobs().any(|job| !figures(job, &[name.to_owned()]).is_empty());
    let odd = rule.metrics.iter().find(|name| !is_known(name));
    odd.map_or(Ok(()), |name| {
        let mut known: Vec<String> = names_of_loops()
            .filter(|name| is_known(name))
            .map(str::to_owned)
            .collect();
        for name in jobs().flat_map(names) {
            if !known.contains(&name) {
                known.push(name);
            }
        }
        Err(CompareError::UnknownMetric {
            name: name.clone(),
            known,
        })
    })
}

fn summary(counted: &Counted<'_>) -> SideSummary {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let all = &counted.side.runs;
    SideSummary {
        name: counted.side.name.clone(),
        hostname: all.first().and_then(|run| run.host.hostname.clone()),
        runs: number(counted.runs.len()),
        left_out: number(all.len() - counted.runs.len()),
        errors: errors(&counted.runs),
    }
}

/// What failed in runs.
fn errors(runs: &[&RunResult]) -> u64 {
    let of_job = |job: &JobResult| {
        let kinds = job.workers().iter().flat_map(|worker| &worker.kinds);
        let operations: u64 = kinds.flat_map(|kind| kind.errors.values()).sum();
        let exchanged = job
            .exchange()
            .map_or(0, |done| done.wrong_bytes() + done.lost());
        operations + exchanged + u64::from(job.failure.is_some())
    };
    runs.iter().flat_map(|run| run.jobs()).map(of_job).sum()
}

/// From the start of the first run to the end of the last.
fn span(sides: &[Counted<'_>]) -> Nanos {
    let runs = || sides.iter().flat_map(|side| &side.side.runs);
    let start = runs().map(|run| run.started_unix_ns).min();
    let ends = runs().map(|run| {
        let after = run.zero_ns.0.saturating_add(run.duration_ns.0);
        run.started_unix_ns.saturating_add(after)
    });
    let span = ends
        .max()
        .zip(start)
        .map(|(end, start)| end.saturating_sub(start));
    Nanos(span.unwrap_or(0))
}

/// A side beside the base, before the verdicts.
struct PairDraft {
    pair: PairComparison,
    jobs: Vec<JobDraft>,
}

struct JobDraft {
    name: String,
    candidates: Vec<Candidate>,
    gaps: Vec<LatencyGap>,
}

impl PairDraft {
    fn of(a: &Counted<'_>, b: &Counted<'_>, sides: &Sides, rule: &Rule) -> Self {
        let mut pair = PairComparison {
            a: a.side.name.clone(),
            b: b.side.name.clone(),
            problems: Vec::new(),
            differences: Vec::new(),
            jobs: Vec::new(),
        };
        for side in [a, b].iter().filter(|side| side.runs.is_empty()) {
            pair.problems
                .push(format!("{} has no complete run", side.side.name));
        }
        let (Some(first_a), Some(first_b)) = (a.runs.first(), b.runs.first()) else {
            return Self {
                pair,
                jobs: Vec::new(),
            };
        };
        let of_errors = [errors(&a.runs), errors(&b.runs)];
        match of_errors {
            [0, n] if n > 0 => pair.problems.push(format!("{n} errors in {}", pair.b)),
            [n, 0] if n > 0 => pair.problems.push(format!("{n} errors in {}", pair.a)),
            _ => {}
        }
        pair.differences = of_machines(first_a, first_b);
        let matched = matched(first_a, first_b);
        let (count_a, count_b) = (first_a.jobs().count(), first_b.jobs().count());
        if matched.len() < count_a.max(count_b) {
            pair.problems
                .push(format!("{count_a} and {count_b} jobs of other names"));
        }
        add_plans(
            &mut pair,
            first_a,
            first_b,
            &matched,
            !(sides.is_varied || rule.allow_different),
        );
        let jobs = matched.iter().map(|(in_a, in_b)| {
            let (of_a, of_b) = (a.jobs(*in_a), b.jobs(*in_b));
            JobDraft::of(&of_a, &of_b, sides.in_turns, rule)
        });
        Self {
            jobs: jobs.collect(),
            pair,
        }
    }

    fn judged(
        self,
        adjusted: &mut impl Iterator<Item = f64>,
        figures: usize,
        rule: &Rule,
    ) -> PairComparison {
        let Self { mut pair, jobs } = self;
        let problem = (!pair.problems.is_empty()).then(|| pair.problems.join("; "));
        let judge = |candidate: Candidate, adjusted: &mut _| {
            candidate.judged(problem.as_deref(), adjusted, figures, rule)
        };
        pair.jobs = jobs
            .into_iter()
            .map(|job| JobComparison {
                name: job.name,
                metrics: job
                    .candidates
                    .into_iter()
                    .map(|c| judge(c, adjusted))
                    .collect(),
                gaps: job.gaps,
            })
            .collect();
        pair
    }
}

/// Adds in what the plans of matched jobs differ.
fn add_plans(
    pair: &mut PairComparison,
    a: &RunResult,
    b: &RunResult,
    matched: &[(usize, usize)],
    is_same_work_wanted: bool,
) {
    let several = matched.len() > 1;
    for (in_a, in_b) in matched {
        let jobs = a.plan.jobs().nth(*in_a).zip(b.plan.jobs().nth(*in_b));
        let Some(((_, job_a), (_, job_b))) = jobs else {
            continue;
        };
        for mut found in of_jobs(job_a, job_b) {
            if several {
                let name = &mut found.difference.name;
                *name = format!("{}: {name}", job_a.name);
            }
            if found.is_work && is_same_work_wanted {
                pair.problems
                    .push(format!("{} differs", found.difference.name));
            }
            pair.differences.push(found.difference);
        }
    }
}

/// Jobs of either result that belong together: those of one name or, where their number is the same,
/// of one place.
fn matched(a: &RunResult, b: &RunResult) -> Vec<(usize, usize)> {
    let names = |run: &RunResult| run.jobs().map(|job| job.name.clone()).collect::<Vec<_>>();
    let (of_a, of_b) = (names(a), names(b));
    if of_a.len() == of_b.len() {
        return (0..of_a.len()).map(|number| (number, number)).collect();
    }
    let pairs = of_a
        .iter()
        .enumerate()
        .filter_map(|(number, name)| Some((number, of_b.iter().position(|other| other == name)?)));
    pairs.collect()
}

impl JobDraft {
    /// A job in the runs of both sides.
    fn of(a: &[&JobResult], b: &[&JobResult], in_turns: bool, rule: &Rule) -> Self {
        let of_runs = |jobs: &[&JobResult]| -> Vec<Vec<Figure>> {
            jobs.iter().map(|job| figures(job, &rule.metrics)).collect()
        };
        let (of_a, of_b) = (of_runs(a), of_runs(b));
        let mut wanted: Vec<&Figure> = Vec::new();
        for figure in of_a.iter().chain(&of_b).flatten() {
            if !wanted.iter().any(|known| known.is_same(figure)) {
                wanted.push(figure);
            }
        }
        let candidates = wanted
            .into_iter()
            .map(|figure| Candidate::of(figure, &of_a, &of_b, in_turns, rule));
        let name = |jobs: &[&JobResult]| jobs.first().map_or_else(String::new, |j| j.name.clone());
        let (name_a, name_b) = (name(a), name(b));
        Self {
            name: if name_a == name_b {
                name_a
            } else {
                format!("{name_a} -> {name_b}")
            },
            candidates: candidates.collect(),
            gaps: gaps(a, b),
        }
    }
}

/// Where the latencies of all runs of either side lie furthest apart.
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
        a: &[Vec<Figure>],
        b: &[Vec<Figure>],
        in_turns: bool,
        rule: &Rule,
    ) -> Self {
        let in_run = |run: &Vec<Figure>| run.iter().find(|f| f.is_same(figure)).cloned();
        let of_side = |side: &[Vec<Figure>]| side.iter().map(in_run).collect::<Vec<_>>();
        let (of_a, of_b) = (of_side(a), of_side(b));
        let is_everywhere = |side: &[Option<Figure>]| side.iter().all(Option::is_some);
        let are_paired = in_turns && is_everywhere(&of_a) && is_everywhere(&of_b);
        let present = |side: Vec<Option<Figure>>| side.into_iter().flatten().collect::<Vec<_>>();
        let (of_a, of_b) = (present(of_a), present(of_b));
        let values = |side: &[Figure]| side.iter().map(|f| f.value).collect::<Vec<f64>>();
        let half = |side: &[Figure]| side.first().and_then(|f| f.half_width);
        let samples = Samples {
            a: values(&of_a),
            b: values(&of_b),
            are_paired,
            half_widths: half(&of_a).zip(half(&of_b)),
        };
        let problem = match (of_a.first(), of_b.first()) {
            (None, _) | (_, None) => Some("one side alone has it".to_owned()),
            (Some(a), Some(b)) if a.unit != b.unit => Some(format!("in {} and {}", a.unit, b.unit)),
            _ => None,
        };
        let grain = of_a.iter().chain(&of_b).map(|f| f.grain);
        let tested = match problem {
            None => test(&samples, rule.alpha),
            Some(_) => None,
        };
        Self {
            figure: Figure {
                grain: grain.fold(0.0, f64::max),
                ..figure.clone()
            },
            problem,
            tested,
            samples,
        }
    }

    /// With its verdict; figures that were tested take the next of the corrected chances.
    fn judged(
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
            (None, None) => untested(&samples),
        };
        let (is_drifting, outliers) = tested
            .as_ref()
            .map_or((false, &[][..]), |t| (t.is_drifting, &t.outliers));
        let round = |round: &usize| u32::try_from(round + 1).unwrap_or(u32::MAX);
        MetricComparison {
            a: middle(&samples.a),
            b: middle(&samples.b),
            method: tested.as_ref().map(|t| t.method),
            ratio: tested.as_ref().map(|t| t.ratio),
            p: tested.as_ref().map(|t| t.p),
            p_adjusted,
            established: judging.is_some_and(|j| j.is_established()),
            threshold,
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

/// The verdict on figures whose ratio says nothing.
fn untested(samples: &Samples) -> Verdict {
    let mut all = samples.a.iter().chain(&samples.b);
    if all.clone().all(|value| *value == 0.0) {
        return Verdict::Same { within: 0.0 };
    }
    if all.any(|value| *value <= 0.0) {
        let why = "it is 0 in some runs".to_owned();
        return Verdict::NotComparable { why };
    }
    Verdict::Unsure { more_rounds: None }
}
