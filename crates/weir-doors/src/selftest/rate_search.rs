//! `--find-max`: the highest rate at which a percentile of the latency stays below a limit.
//!
//! In: a plan, and what each of its steps measured. Out: the plan of the next step, until the rate is
//! known; the result of all steps. A pair of sizes first has as many RPCs as go with those in flight; then the
//! rate is halved in between, at most twelve times. A rate that is not kept is tried twice, and the one that is found
//! once more. Not here: running a step, the text (`rate_table`).

use std::cmp::Ordering;

use weir_schema::{
    Group, Job, KindName, Metric, Plan, RPC_KINDS, RpcMaster, RpcOutcome, RpcWorkload, RunResult,
    Schedule, State,
};
use weir_units::{Iops, Nanos, parse};

use super::output::{percentile, work_of};
use super::plan::rate_sharers;
use super::sizes::MessagePair;
use crate::rate_bracket::{RateBracket, append};
use crate::search::{RunSearch, SearchEnd};

/// Rates that are tried for each pair of sizes.
const STEPS: u32 = 12;
/// A rate is known where what is kept and what is not differ by no more than this share.
const FINE: f64 = 0.01;
/// A rate of which less than this share was reached is not kept.
const REACHED: f64 = 0.99;
/// So long a step takes where nothing bounds it.
pub(super) const STEP: Nanos = Nanos::SECOND;

/// Limit that a rate has to keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateGoal {
    /// This percentile of the latency from the intended start
    pub percent: f64,
    /// stays below this.
    pub below: Nanos,
    /// RPCs come at random and not evenly.
    pub is_poisson: bool,
}

/// `p99<200`, `p99.9<2ms`: microseconds without a unit.
pub(super) fn goal(text: &str, is_poisson: bool) -> Result<RateGoal, String> {
    let wrong =
        || "it takes a percentile and a time, as p99<200 in microseconds or p99.9<2ms".to_owned();
    let (percentile, limit) = text.split_once('<').ok_or_else(wrong)?;
    let percentile = percentile.trim().strip_prefix('p').ok_or_else(wrong)?;
    let percent = match parse::percentiles(percentile).as_deref() {
        Ok([percent]) => *percent,
        _ => return Err(wrong()),
    };
    let limit = limit.trim();
    let has_unit = limit.ends_with(|c: char| c.is_ascii_alphabetic());
    let limit = if has_unit {
        limit.to_owned()
    } else {
        format!("{limit}us")
    };
    Ok(RateGoal {
        percent,
        below: parse::time(&limit).map_err(|_| wrong())?,
        is_poisson,
    })
}

/// Why a rate is not kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RateMiss {
    /// It was ended early.
    Interrupted,
    /// So many RPCs failed, or had wrong payloads.
    Failed(u64),
    /// So many were not sent.
    NotSent(u64),
    /// A master measured nothing.
    NoMaster,
    /// This share of it was reached.
    Rate(f64),
    /// The percentile is not below the limit.
    Latency,
}

impl RateGoal {
    /// Why a rate is not kept by every master; nothing where it is.
    pub(super) fn misses(&self, step: &DoneStep<'_>) -> Vec<RateMiss> {
        let masters = || step.outcome.masters.iter();
        let sum = |of: fn(&RpcMaster) -> u64| masters().map(of).sum::<u64>();
        let mut misses = Vec::new();
        if step.is_cut {
            misses.push(RateMiss::Interrupted);
        }
        if step.outcome.masters.is_empty() || masters().any(|one| one.failure.is_some()) {
            misses.push(RateMiss::NoMaster);
        }
        let failed = sum(|one| one.failed + one.mismatches);
        if failed > 0 {
            misses.push(RateMiss::Failed(failed));
        }
        let not_sent = sum(|one| one.not_sent);
        if not_sent > 0 && !step.is_cut {
            misses.push(RateMiss::NotSent(not_sent));
        }
        let rate = step.rate.unwrap_or_default();
        if masters().any(|one| one.overload || !self.reaches(one, rate)) {
            let lowest = masters().map(RpcMaster::rate).min_by(f64::total_cmp);
            misses.push(RateMiss::Rate(lowest.unwrap_or_default() / rate));
        }
        let is_below =
            |one: &RpcMaster| percentile(one, self.percent).is_some_and(|t| t < self.below);
        if !masters().all(is_below) {
            misses.push(RateMiss::Latency);
        }
        misses
    }

    /// True if a master had 99 % of the RPCs that the rate comes to in its time, but for one that is not due
    /// any more, or as many as chance leaves out.
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
    fn reaches(&self, master: &RpcMaster, rate: f64) -> bool {
        let due = rate * master.duration_ns.as_secs_f64();
        let chance = if self.is_poisson {
            3.0 * due.sqrt()
        } else {
            0.0
        };
        master.succeeded as f64 + chance.max(1.0) >= REACHED * due
    }

    /// Of a lower rate a step has too few RPCs for the percentile.
    #[expect(clippy::cast_precision_loss, reason = "a count far below 2^53")]
    pub(super) fn least_rate(&self, work: &RpcWorkload) -> f64 {
        let bounds = &work.load.bounds;
        let time = bounds.runtime_ns.filter(|_| bounds.operations.is_none());
        time.map_or(0.0, |time| self.least_rpcs() as f64 / time.as_secs_f64())
    }

    /// Of fewer RPCs the percentile is the longest of them.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a percentile is above 0 and below 100, with few digits"
    )]
    pub(super) fn least_rpcs(&self) -> u64 {
        (100.0 / (100.0 - self.percent) - 1e-6).ceil() as u64
    }
}

/// A search on its way.
#[derive(Clone, Debug)]
pub struct RateSearch {
    plan: Plan,
    goal: RateGoal,
    /// The pair of sizes.
    group: usize,
    /// Its next step: none where as many go as can.
    step: Option<RateStep>,
    /// Of all steps so far.
    done: Option<RunResult>,
    is_over: bool,
}

/// A rate that is tried, between one that is kept and one that is not.
#[derive(Clone, Copy, Debug)]
struct RateStep {
    number: u32,
    rate: f64,
    bracket: RateBracket,
    trial: Trial,
}

/// Reason for which a rate is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trial {
    /// It never was.
    First,
    /// It was not kept; one stall may have been why.
    Second,
    /// It was found.
    Last,
}

impl RateSearch {
    /// Through all groups of a plan.
    pub fn new(plan: Plan, goal: RateGoal) -> Self {
        Self {
            plan,
            goal,
            group: 0,
            step: None,
            done: None,
            is_over: false,
        }
    }
}

impl RunSearch for RateSearch {
    fn next_plan(&self) -> Option<Plan> {
        let group = self.plan.groups.get(self.group).filter(|_| !self.is_over)?;
        let mut jobs = group.jobs.clone();
        for job in &mut jobs {
            job.start.barrier = false;
            let Some(step) = self.step else { continue };
            let clones = job.clones;
            if let weir_schema::Workload::Rpc(work) = &mut job.workload {
                let threads = f64::from(rate_sharers(work, clones));
                let rpc = KindName::from(&RPC_KINDS[0]);
                work.load.pacing.schedule = Some(Schedule::OpsPerSecond {
                    limit_per_s: [(rpc, Iops(step.rate / threads))].into(),
                    poisson: self.goal.is_poisson,
                    open_loop: true,
                    ignore_thinktime: false,
                });
            }
            job.name = format!("{}, {:.0} per second", job.name, step.rate);
            job.start.is_search_step = true;
        }
        Some(Plan {
            groups: vec![Group { jobs }],
            ..self.plan.clone()
        })
    }

    fn take(&mut self, result: RunResult) {
        let pairs = steps(&result);
        let step = pairs.first().and_then(|(_, steps)| steps.first());
        let rates = step.map(|step| step.outcome.masters.iter().map(RpcMaster::rate));
        let rate = rates.and_then(|all| all.min_by(f64::total_cmp));
        let is_kept = step.is_some_and(|step| self.goal.misses(step).is_empty());
        self.is_over = result.ended_by.is_some() || rate.is_none();
        self.step = match self.step {
            None => rate.filter(|rate| *rate > 0.0).map(|rate| RateStep {
                number: 1,
                rate,
                bracket: RateBracket {
                    kept: 0.0,
                    missed: rate,
                },
                trial: Trial::First,
            }),
            Some(asked) => {
                let least = step.map_or(0.0, |step| self.goal.least_rate(step.work));
                asked.after(is_kept, least)
            }
        };
        if self.step.is_none() {
            self.group += 1;
        }
        match &mut self.done {
            None => self.done = Some(result),
            Some(done) => append(done, result),
        }
    }

    fn end(self: Box<Self>) -> Option<SearchEnd> {
        let mut result = self.done?;
        let pairs = steps(&result);
        let found: Vec<Option<(usize, f64)>> = pairs
            .iter()
            .map(|(_, steps)| {
                best(&self.goal, steps).and_then(|best| Some((steps.first()?.group, best.rate?)))
            })
            .collect();
        for (group, rate) in found.iter().flatten() {
            for job in &mut result.groups[*group].jobs {
                job.metrics
                    .push(Metric::high("highest rate", "RPCs/s", *rate));
            }
        }
        Some(SearchEnd {
            has_found_all: has_all(&result, &self.goal),
            result,
        })
    }
}

impl RateStep {
    /// The next step, of no lower rate than `least`.
    fn after(self, is_kept: bool, least: f64) -> Option<Self> {
        let trial = match self.trial {
            Trial::Last => return None,
            Trial::First if !is_kept => {
                let trial = Trial::Second;
                return Some(Self { trial, ..self });
            }
            Trial::First | Trial::Second => Trial::First,
        };
        let bracket = self.bracket.with(self.rate, is_kept);
        // The first is the highest there can be.
        let is_last = self.number == STEPS || (is_kept && self.number == 1);
        let next = bracket.middle(FINE).filter(|rate| *rate >= least);
        let (rate, trial) = match next.filter(|_| !is_last) {
            Some(rate) => (rate, trial),
            None if bracket.kept > 0.0 => (bracket.kept, Trial::Last),
            None => return None,
        };
        Some(Self {
            number: self.number + 1,
            rate,
            bracket,
            trial,
        })
    }
}

/// A step of a result: its group, what was asked for and what came of it.
pub(super) struct DoneStep<'a> {
    pub(super) group: usize,
    pub(super) work: &'a RpcWorkload,
    /// Of each master; none where as many went as could.
    pub(super) rate: Option<f64>,
    pub(super) outcome: &'a RpcOutcome,
    /// It was ended early.
    pub(super) is_cut: bool,
}

/// The steps of each pair of sizes.
pub(super) fn steps(result: &RunResult) -> Vec<(MessagePair, Vec<DoneStep<'_>>)> {
    let mut pairs: Vec<(MessagePair, Vec<DoneStep<'_>>)> = Vec::new();
    for ((group, job), done) in result.plan.jobs().zip(result.jobs()) {
        let (Some(work), Some(outcome)) = (work_of(job), done.rpc()) else {
            continue;
        };
        let pair = MessagePair::of(work);
        let step = DoneStep {
            group,
            work,
            rate: rate_of(job, work),
            outcome,
            is_cut: done.state == State::Stopped,
        };
        match pairs
            .last_mut()
            .filter(|(last, _)| *last == pair && step.rate.is_some())
        {
            Some((_, steps)) => steps.push(step),
            None => pairs.push((pair, vec![step])),
        }
    }
    pairs
}

fn rate_of(job: &Job, work: &RpcWorkload) -> Option<f64> {
    let Some(Schedule::OpsPerSecond { limit_per_s, .. }) = &work.load.pacing.schedule else {
        return None;
    };
    let of_thread = limit_per_s.values().next()?.0;
    Some(of_thread * f64::from(rate_sharers(work, job.clones)))
}

/// The step with the highest rate that keeps it.
pub(super) fn best<'r, 'a>(goal: &RateGoal, steps: &'r [DoneStep<'a>]) -> Option<&'r DoneStep<'a>> {
    let paced = steps.iter().filter(|step| step.rate.is_some());
    let kept = paced.filter(|step| goal.misses(step).is_empty());
    kept.max_by(|one, other| one.rate.partial_cmp(&other.rate).unwrap_or(Ordering::Equal))
}

/// True if each pair of sizes has such a rate.
pub(super) fn has_all(result: &RunResult, goal: &RateGoal) -> bool {
    let pairs = steps(result);
    !pairs.is_empty() && pairs.iter().all(|(_, steps)| best(goal, steps).is_some())
}

#[cfg(test)]
mod tests {
    use weir_schema::{JobResult, RpcEndpoint, RpcEndpointResult, sample};
    use weir_units::Bytes;

    use super::*;
    use crate::args::read_given;
    use crate::selftest::rate_table::text;
    use crate::selftest::{DOOR, SelfTestOptions};

    const CAPACITY: f64 = 100_000.0;

    fn options() -> SelfTestOptions {
        SelfTestOptions::read(&read_given(&DOOR, &[]).unwrap())
    }

    /// Model of a server that has this capacity and waits the longer the nearer a rate comes to it.
    fn measured(plan: Plan) -> RunResult {
        let (_, job) = plan.jobs().next().unwrap();
        let work = work_of(job).unwrap();
        let asked = rate_of(job, work);
        let rate = asked.unwrap_or(CAPACITY).min(CAPACITY);
        let mut one = RpcEndpointResult::new(RpcEndpoint { rank: 0, tag: 0 });
        let free = (1.0 - rate / CAPACITY).max(0.001);
        one.succeeded = 100;
        one.latency
            .record_n(Nanos::from_secs_f64(10e-6 / free).unwrap().0, 100);
        let mut master = RpcMaster::new(RpcEndpoint { rank: 1, tag: 0 }, "tcp");
        master.latency = one.latency.clone();
        master.endpoints.push(one);
        master.requested = 100;
        master.duration_ns = Nanos::from_secs_f64(100.0 / rate).unwrap();
        master.overload = asked.is_some_and(|asked| asked > CAPACITY * 0.999);
        master.conclude();
        let done = JobResult::of_masters(&job.name.clone(), vec![master], Bytes(0));
        let mut result = sample::result(plan);
        result.groups[0].jobs[0] = done;
        result
    }

    fn found(limit: &str) -> (RunResult, RateGoal) {
        found_with(limit, |_, _| {})
    }

    /// The same, with a change of each step.
    fn found_with(limit: &str, change: impl Fn(u32, &mut RunResult)) -> (RunResult, RateGoal) {
        let goal = goal(limit, false).unwrap();
        let job = Job::of_rpcs("0", RpcWorkload::default());
        let mut search = RateSearch::new(Plan::new("p", "selftest", vec![job]), goal);
        let mut steps = 0;
        while let Some(plan) = search.next_plan() {
            steps += 1;
            let mut result = measured(plan);
            change(steps, &mut result);
            search.take(result);
        }
        assert!(steps <= 2 * STEPS + 2, "{steps}");
        (Box::new(search).end().unwrap().result, goal)
    }

    #[test]
    fn the_rate_is_found_at_which_the_percentile_reaches_the_limit() {
        // 10 us / (1 - rate / capacity) < 40 us up to three quarters of the capacity.
        let (result, goal) = found("p99<40");
        let pairs = steps(&result);
        let rate = best(&goal, &pairs[0].1).unwrap().rate.unwrap();
        assert!((0.98..1.0).contains(&(rate / 75_000.0)), "{rate}");
        let metrics = result.jobs().flat_map(|job| &job.metrics);
        let headlines = metrics.filter(|metric| metric.name == "highest rate");
        let headlines: Vec<f64> = headlines.map(|metric| metric.value).collect();
        assert_eq!(headlines, [rate]);
        assert!(has_all(&result, &goal));
        let options = options();
        let text = text(&result, &goal, &options);
        assert_eq!(
            text.matches("Results for message size").count(),
            1,
            "{text}"
        );
        assert!(text.contains("+            any         100000"), "{text}");
        assert!(
            text.contains(&format!("+ Found: {rate:.0} RPCs/sec\n")),
            "{text}"
        );
        assert_eq!(
            RunResult::from_json(&result.to_json().unwrap()).unwrap(),
            result
        );
    }

    #[test]
    fn one_stall_does_not_decide_and_a_rate_that_is_found_is_tried_again() {
        let rate = |result: &RunResult, goal: &RateGoal| {
            best(goal, &steps(result)[0].1).unwrap().rate.unwrap()
        };
        let (quiet, goal) = found("p99<40");
        let stall = |result: &mut RunResult| {
            master(result).latency.record_n(1_000_000, 50);
        };
        // Its second rate, the first that is kept: the first one had two steps.
        let (stalled, _) = found_with("p99<40", |step, result| {
            if step == 4 {
                stall(result);
            }
        });
        assert!((rate(&stalled, &goal) - rate(&quiet, &goal)).abs() < 1.0);
        let count = steps(&quiet)[0].1.len();
        let (doubtful, _) = found_with("p99<40", |step, result| {
            if step as usize == count {
                stall(result);
            }
        });
        let text = text(&doubtful, &goal, &options());
        let line = format!(
            "+ Found: {:.0} RPCs/sec, kept in 1 of 2 steps\n",
            rate(&quiet, &goal)
        );
        assert!(text.contains(&line), "{text}");
    }

    #[test]
    fn a_limit_that_no_rate_keeps_is_told_as_such() {
        let (result, goal) = found("p99<5");
        assert!(!has_all(&result, &goal));
        let options = options();
        let text = text(&result, &goal, &options);
        assert!(text.contains("+ None of these rates keeps it\n"), "{text}");
    }

    #[test]
    fn a_rate_whose_steps_have_too_few_rpcs_is_not_tried() {
        let goal = goal("p99<40", false).unwrap();
        let mut work = RpcWorkload::default();
        work.load.bounds.runtime_ns = Some(Nanos::from_millis(200));
        let least = goal.least_rate(&work);
        assert!((least - 500.0).abs() < 1e-6, "{least}");
        let (kept, missed) = (0.0, 1000.0);
        let step = RateStep {
            number: 3,
            rate: 800.0,
            bracket: RateBracket { kept, missed },
            trial: Trial::Second,
        };
        assert!(step.after(false, least).is_none());
        assert!(step.after(false, 0.0).is_some());
        work.load.bounds.operations = Some(1000);
        assert!(goal.least_rate(&work) < 1e-9);
    }

    /// The result of a step at 1000 a second, for a second, with a change.
    fn step(change: impl FnOnce(&mut RunResult)) -> (String, bool) {
        let goal = goal("p99<40", false).unwrap();
        let job = Job::of_rpcs("0", RpcWorkload::default());
        let mut search = RateSearch::new(Plan::new("p", "selftest", vec![job]), goal);
        search.take(measured(search.next_plan().unwrap()));
        search.step.as_mut().unwrap().rate = 1000.0;
        let mut result = measured(search.next_plan().unwrap());
        change(&mut result);
        search.take(result);
        let result = Box::new(search).end().unwrap().result;
        let text = text(&result, &goal, &options());
        let row = text.lines().find(|line| line.contains(" 1000 "));
        let row = row.unwrap_or_else(|| panic!("{text}")).to_owned();
        (row, has_all(&result, &goal))
    }

    fn master(result: &mut RunResult) -> &mut RpcMaster {
        match &mut result.groups[0].jobs[0].outcome {
            weir_schema::Outcome::Rpc(done) => &mut done.masters[0],
            _ => panic!("no RPCs"),
        }
    }

    #[test]
    fn a_step_that_is_not_kept_says_why() {
        let (row, is_kept) = step(|_| {});
        assert!(row.ends_with(" kept") && is_kept, "{row}");
        for (count, says) in [(930, "93.0 % of the rate"), (988, "98.8 % of the rate")] {
            let (row, is_kept) = step(|result| {
                let master = master(result);
                (master.succeeded, master.duration_ns) = (count, Nanos::SECOND);
            });
            assert!(row.ends_with(says) && !is_kept, "{row}");
        }
        let (row, is_kept) = step(|result| {
            let master = master(result);
            (master.succeeded, master.duration_ns) = (990, Nanos::SECOND);
        });
        assert!(row.ends_with(" kept") && is_kept, "{row}");
        let (row, _) = step(|result| master(result).failed = 2);
        assert!(row.ends_with(" 2 RPCs failed"), "{row}");
        let (row, _) = step(|result| {
            let master = master(result);
            master.latency.record_n(50_000, 10);
        });
        assert!(row.ends_with(" not below the limit"), "{row}");
        let (row, is_kept) = step(|result| result.groups[0].jobs[0].state = State::Stopped);
        assert!(row.ends_with(" interrupted") && !is_kept, "{row}");
    }

    #[test]
    fn a_percentile_of_few_rpcs_is_warned_of() {
        let (row, _) = step(|result| {
            let master = master(result);
            (master.succeeded, master.duration_ns) = (4, Nanos::from_millis(4));
        });
        assert!(row.ends_with(" kept, of 4 RPCs alone"), "{row}");
        let least = |text| goal(text, false).unwrap().least_rpcs();
        assert_eq!(
            (least("p99<1"), least("p50<1"), least("p99.9<1")),
            (100, 2, 1000)
        );
    }

    #[test]
    fn a_search_that_is_interrupted_says_so() {
        let goal = goal("p99<40", false).unwrap();
        let job = Job::of_rpcs("0", RpcWorkload::default());
        let options = options();
        let interrupted = |steps: usize| {
            let mut search = RateSearch::new(Plan::new("p", "selftest", vec![job.clone()]), goal);
            for _ in 1..steps {
                search.take(measured(search.next_plan().unwrap()));
            }
            let mut last = measured(search.next_plan().unwrap());
            last.ended_by = Some(weir_schema::EndedBy { signal: 2 });
            last.groups[0].jobs[0].state = State::Stopped;
            search.take(last);
            assert!(search.next_plan().is_none());
            text(&Box::new(search).end().unwrap().result, &goal, &options)
        };
        let early = interrupted(2);
        assert!(
            early.contains("+ Interrupted before a rate was found that keeps it\n"),
            "{early}"
        );
        let late = interrupted(6);
        assert!(
            late.contains("+ Found so far, until it was interrupted: "),
            "{late}"
        );
    }

    #[test]
    fn a_limit_is_a_percentile_and_a_time() {
        let of = |text| goal(text, false).map(|goal| (goal.percent, goal.below));
        assert_eq!(of("p99<200"), Ok((99.0, Nanos::from_micros(200))));
        assert_eq!(of("p99.9 < 2ms"), Ok((99.9, Nanos::from_millis(2))));
        for text in [
            "", "p99", "99<200", "p99>200", "p99<", "p99<0", "p100<5", "p9,8<5", "p99<5x",
        ] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
