//! A side beside the base, before its verdicts: which jobs belong together, in what machines and plans
//! differ, why figures do not say the same.
//!
//! In: both sides with the runs that count. Out: a [`PairDraft`], which becomes a comparison once the
//! chances of all figures are corrected. Not here: the figures of a job (`job`).

use weir_schema::{Job, JobResult, RunResult};

use crate::compare::{Counted, Sides, errors};
use crate::comparison::{JobComparison, PairComparison};
use crate::differences::{PlanDifference, of_jobs, of_machines};
use crate::job::{Candidate, JobDraft};
use crate::rule::Rule;

/// The reason for which results of two kinds of targets are not compared: `durability none, and durability power`.
fn of_other_targets(a: &RunResult, b: &RunResult) -> Option<String> {
    let facts = |run: &RunResult| {
        let mut all: Vec<String> = run.jobs().filter_map(JobResult::remark).collect();
        all.dedup();
        all.join(", ")
    };
    let (a, b) = (facts(a), facts(b));
    (a != b).then(|| format!("{a}, and {b}"))
}

/// A side beside the base, before the verdicts.
pub(crate) struct PairDraft {
    pair: PairComparison,
    pub(crate) jobs: Vec<JobDraft>,
}

impl PairDraft {
    pub(crate) fn of(a: &Counted<'_>, b: &Counted<'_>, sides: &Sides, rule: &Rule) -> Self {
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
        let [count_a, count_b] = [first_a, first_b].map(|run| planned_jobs(run).len());
        if matched.len() < count_a.max(count_b) {
            pair.problems
                .push(format!("{count_a} and {count_b} jobs of other names"));
        }
        let is_same_work_wanted = !(sides.is_varied || rule.allow_different);
        add_plans(&mut pair, first_a, first_b, &matched, is_same_work_wanted);
        if is_same_work_wanted {
            pair.problems.extend(of_other_targets(first_a, first_b));
        }
        let jobs = matched
            .iter()
            .map(|(in_a, in_b)| JobDraft::of(&a.job(*in_a), &b.job(*in_b), sides.in_turns, rule));
        Self {
            jobs: jobs.collect(),
            pair,
        }
    }

    /// With the verdicts; figures that were tested take the next of the corrected chances.
    pub(crate) fn judged(
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
    // The same difference of several jobs is said once.
    let mut found: Vec<(PlanDifference, Vec<&str>)> = Vec::new();
    for (in_a, in_b) in matched {
        let jobs = a.plan.jobs().nth(*in_a).zip(b.plan.jobs().nth(*in_b));
        let Some(((_, job_a), (_, job_b))) = jobs else {
            continue;
        };
        for difference in of_jobs(job_a, job_b) {
            match found.iter_mut().find(|(known, _)| *known == difference) {
                Some((_, names)) => names.push(&job_a.name),
                None => found.push((difference, vec![&job_a.name])),
            }
        }
    }
    for (mut found, names) in found {
        if names.len() < matched.len() {
            let name = &mut found.difference.name;
            *name = format!("{}: {name}", names.join(", "));
        }
        if found.is_work && is_same_work_wanted {
            pair.problems
                .push(format!("{} differs", found.difference.name));
        }
        pair.differences.push(found.difference);
    }
}

/// Jobs of either result that belong together: those of one name or, where their number is the same,
/// of one place.
fn matched(a: &RunResult, b: &RunResult) -> Vec<(usize, usize)> {
    let (of_a, of_b) = (planned_jobs(a), planned_jobs(b));
    let numbers = |(one, other): (&(usize, &str), &(usize, &str))| (one.0, other.0);
    if of_a.len() == of_b.len() {
        return of_a.iter().zip(&of_b).map(numbers).collect();
    }
    let pairs = of_a.iter().filter_map(|one| {
        let other = of_b.iter().find(|other| other.1 == one.1)?;
        Some(numbers((one, other)))
    });
    pairs.collect()
}

/// Number and name of each job that is no step of a search, which has other steps in each run.
fn planned_jobs(run: &RunResult) -> Vec<(usize, &str)> {
    let is_step = |(_, job): (usize, &Job)| job.start.is_search_step;
    let steps: Vec<bool> = run.plan.jobs().map(is_step).collect();
    let jobs = run.jobs().map(|job| job.name.as_str()).enumerate();
    jobs.filter(|(number, _)| steps.get(*number) != Some(&true))
        .collect()
}

#[cfg(test)]
mod tests {
    use weir_schema::sample::{self, JobSample};
    use weir_schema::{Kind, ObjectDurability, ObjectOutcome, ObjectRank, ObjectWorkload, Outcome};

    use super::*;

    #[test]
    fn what_several_jobs_have_in_common_is_said_once() {
        let job = |name: &str, block| sample::random_job(name, &[Kind::Read], block);
        let run = |jobs: Vec<Job>| sample::result(sample::plan(vec![jobs]));
        let a = run(vec![job("one", 4096), job("two", 4096), job("three", 4096)]);
        let b = run(vec![
            job("one", 8192),
            job("two", 8192).deep(7),
            job("three", 8192),
        ]);
        let mut pair = PairComparison {
            a: String::new(),
            b: String::new(),
            problems: Vec::new(),
            differences: Vec::new(),
            jobs: Vec::new(),
        };
        add_plans(&mut pair, &a, &b, &[(0, 0), (1, 1), (2, 2)], true);
        let names: Vec<&str> = pair.differences.iter().map(|d| &*d.name).collect();
        assert_eq!(names, ["sizes.size.read.bytes", "two: depth.queue_depth"]);
        assert_eq!(pair.problems, ["sizes.size.read.bytes differs"]);
    }

    #[test]
    fn stores_whose_updates_survive_other_ends_are_not_compared() {
        let run = |durability| {
            let job = Job::of_objects("store", ObjectWorkload::default());
            let mut run = sample::result(sample::plan(vec![vec![job]]));
            let ranks = vec![ObjectRank {
                durability,
                ..ObjectRank::default()
            }];
            run.groups[0].jobs[0].outcome = Outcome::ObjectStore(Box::new(ObjectOutcome { ranks }));
            run
        };
        let (a, b) = (run(ObjectDurability::Process), run(ObjectDurability::Power));
        let why = of_other_targets(&a, &b);
        assert_eq!(
            why.as_deref(),
            Some("durability process, and durability power")
        );
        assert_eq!(of_other_targets(&a, &a), None);
    }
}
