//! From the results of two sides or more to a comparison.
//!
//! In: sides with their runs, a rule. Out: a [`Comparison`]; names of figures that nobody has are
//! refused. Each side is compared with the first; the chances of all figures are corrected together.
//! Not here: how a figure is judged (`judge`), conditions (`condition`).

use thiserror::Error;
use weir_schema::{JobResult, RunResult};
use weir_stats::significance::holm;
use weir_units::Nanos;

use crate::comparison::{COMPARISON_SCHEMA, Comparison, SideSummary};
use crate::figures::{figures, names};
use crate::job::{Candidate, JobRuns};
use crate::judge::Level;
use crate::pair::PairDraft;
use crate::rule::{Rule, names_of_loops};

/// The runs of one side.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// Name of the side.
    pub name: String,
    /// In the order in which they were carried out.
    pub runs: Vec<RunResult>,
    /// Spreads of the figures of other runs of its plan on its machine, where they are known.
    pub spreads: Vec<FigureSpread>,
}

/// Spread of a figure from run to run.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureSpread {
    /// The place of its job in the plan, from 0.
    pub job: usize,
    /// The kind of operation, where it is of one.
    pub kind: Option<String>,
    /// Name of the figure.
    pub name: String,
    /// The standard deviation of its logarithm.
    pub deviation: f64,
    /// Runs that say so.
    pub runs: u32,
}

/// Sides of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Sides {
    /// The base first; at least two.
    pub sides: Vec<Side>,
    /// Runs of the same number are of one round.
    pub in_turns: bool,
    /// The difference of their plans is the subject of the comparison.
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
pub(crate) struct Counted<'a> {
    pub(crate) side: &'a Side,
    pub(crate) runs: Vec<&'a RunResult>,
}

impl<'a> Counted<'a> {
    /// The job of this place in each run.
    pub(crate) fn job(&self, place: usize) -> JobRuns<'a> {
        let jobs = self.runs.iter().filter_map(|run| run.jobs().nth(place));
        let spreads = self.side.spreads.iter();
        JobRuns {
            jobs: jobs.collect(),
            spreads: spreads.filter(|spread| spread.job == place).collect(),
        }
    }
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
    let chances = chances(&mut drafts, rule.alpha);
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

/// Tests all figures; the chances of those of which something is known.
fn chances(drafts: &mut [PairDraft], alpha: f64) -> Vec<f64> {
    let jobs = drafts.iter_mut().flat_map(|pair| &mut pair.jobs);
    let mut candidates: Vec<&mut Candidate> = jobs.flat_map(|job| &mut job.candidates).collect();
    let figures = candidates.iter().filter(|c| c.is_testable()).count();
    for candidate in &mut candidates {
        candidate.test(Level { alpha, figures });
    }
    let tested = candidates.iter().filter_map(|c| c.tested.as_ref());
    tested.map(|tested| tested.p).collect()
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
        Err(CompareError::UnknownMetric {
            name: name.clone(),
            known: known_figures(jobs()),
        })
    })
}

/// The names of all figures of jobs, those of loops first.
pub(crate) fn known_figures<'a>(jobs: impl Iterator<Item = &'a JobResult>) -> Vec<String> {
    let jobs: Vec<&JobResult> = jobs.collect();
    let has = |name: &str| {
        let mut jobs = jobs.iter();
        jobs.any(|job| !figures(job, &[name.to_owned()]).is_empty())
    };
    let of_loops = names_of_loops().filter(|name| has(name));
    let mut known: Vec<String> = of_loops.map(str::to_owned).collect();
    for name in jobs.iter().flat_map(|job| names(job)) {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    known
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

/// Number of failed operations in the runs.
pub(crate) fn errors(runs: &[&RunResult]) -> u64 {
    let of_job = |job: &JobResult| {
        let kinds = job.workers().iter().flat_map(|worker| &worker.kinds);
        let operations: u64 = kinds.flat_map(|kind| kind.errors.values()).sum();
        let exchanged = job
            .exchange()
            .map_or(0, |done| done.wrong_bytes() + done.lost());
        let rpcs = job.rpc().map_or(0, |done| {
            let masters = done.masters.iter();
            masters.map(|master| master.not_sent).sum()
        });
        operations + exchanged + rpcs + u64::from(job.failure.is_some())
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
