//! Searches over rates: `weir axio ndr` and `weir axio rfc2544`.
//!
//! In: flags, the plan of a packet path, what carries a plan out. Out: one result with a group for each trial;
//! from such a result, by going through its trials again, the text. A stored result prints the same for that
//! reason. Not here: running a trial, resting between two.

mod finder;
mod loss_rates;
mod network_test;
mod request;
#[cfg(test)]
mod simulated;
mod trial;

use weir_schema::{Metric, Plan, RunResult};
use weir_units::Nanos;

pub use self::finder::SearchWay;
use self::finder::{CarryOut, FoundRate};
use self::loss_rates::LossRates;
pub use self::network_test::NetworkTest;
pub(super) use self::request::{LOSS_RATES, NETWORK_TESTS, of_words};
use self::trial::{Trial, TrialRate, TrialRequest};
use super::line_rate_table::USUAL_FRAMES;
use super::traffic::LineRate;
use crate::given::Given;
use crate::rate_bracket::append;
use crate::request::Request;
use crate::search::{RunSearch, SearchEnd};

/// Goal of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchGoal {
    /// The highest rates without loss and with a share of it.
    LossRates,
    /// The figures of RFC 2544.
    NetworkTests,
}

/// A search.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficSearch {
    /// Rates or figures to find.
    pub goal: SearchGoal,
    /// Method of choosing rates.
    pub way: SearchWay,
    /// Share of a rate below which two rates count as equal.
    pub precision: f64,
    /// The share of messages that may be lost, where some may.
    pub loss: f64,
    /// Time for which a trial begins messages.
    pub trial: Nanos,
    /// Time to wait for the last answers.
    pub residual: Nanos,
    /// Between two trials.
    pub rest: Nanos,
    /// Sizes of frames, where they are part of the search.
    pub frames: Vec<u64>,
    /// Tests of each.
    pub tests: Vec<NetworkTest>,
    /// Repetitions, where fewer or more are asked for than the tests have.
    pub repeats: Option<u32>,
    line: Option<LineRate>,
}

impl Default for TrafficSearch {
    /// Rates without loss and with little.
    fn default() -> Self {
        let trial = Nanos::SECOND;
        Self {
            goal: SearchGoal::LossRates,
            way: SearchWay::Binary,
            precision: 0.005,
            loss: 0.005,
            trial,
            residual: request::residual_of(trial),
            rest: Nanos::ZERO,
            frames: Vec::new(),
            tests: Vec::new(),
            repeats: None,
            line: None,
        }
    }
}

impl TrafficSearch {
    /// Search as RFC 2544 describes it.
    fn network_tests() -> Self {
        let trial = network_test::TRIAL;
        Self {
            goal: SearchGoal::NetworkTests,
            trial,
            residual: request::residual_of(trial),
            rest: request::rest_of(trial),
            frames: USUAL_FRAMES.to_vec(),
            tests: NetworkTest::WORDS.iter().map(|(_, test)| *test).collect(),
            ..Self::default()
        }
    }

    /// The plan of its first trial.
    fn first_plan(&self, base: &Plan) -> Plan {
        let request = TrialRequest {
            purpose: "maximum",
            frame: self.frames.first().copied(),
            rate: TrialRate::Most,
            messages: 0,
            duration: self.trial,
        };
        request.plan(base, self.line, self.residual)
    }

    /// Request of a search whose trials are variants of this plan.
    pub(super) fn request(self, given: &Given, base: Plan) -> Request {
        let first = self.first_plan(&base);
        let trials = TrafficTrials {
            search: self,
            base,
            trials: Vec::new(),
            done: None,
        };
        Request::search(given, first, trials)
    }

    fn search(&self, carry_out: &mut CarryOut<'_>) -> SearchReport {
        match self.goal {
            SearchGoal::LossRates => SearchReport::LossRates(LossRates::search(self, carry_out)),
            SearchGoal::NetworkTests => {
                SearchReport::NetworkTests(network_test::test(self, carry_out))
            }
        }
    }

    /// Report of the trials in a result.
    fn report(&self, result: &RunResult) -> SearchReport {
        let mut group = 0;
        self.search(&mut |_| {
            let trial = Trial::of_group(result, group);
            group += 1;
            trial
        })
    }

    /// The text of a result.
    pub fn text(&self, result: &RunResult) -> String {
        match self.report(result) {
            SearchReport::LossRates(found) => found.text(self),
            SearchReport::NetworkTests(all) => network_test::text(&all, self),
        }
    }

    /// True if the result has a rate for every goal of the search.
    pub fn has_found_all(&self, result: &RunResult) -> bool {
        let is_rate = |found: Option<FoundRate>| found.is_some_and(|found| found.rate >= 1.0);
        match self.report(result) {
            SearchReport::LossRates(found) => is_rate(found.none) && is_rate(found.some),
            SearchReport::NetworkTests(all) => {
                let rates = [NetworkTest::Throughput, NetworkTest::Latency];
                let has_rate = self.tests.iter().any(|test| rates.contains(test));
                let known = |one: &network_test::FrameReport| !has_rate || is_rate(one.throughput);
                all.len() == self.frames.len() && all.iter().all(known)
            }
        }
    }
}

/// Trials of a search so far. The next one follows from repeating the search with those that are done.
#[derive(Debug)]
struct TrafficTrials {
    search: TrafficSearch,
    base: Plan,
    trials: Vec<Option<Trial>>,
    done: Option<RunResult>,
}

impl RunSearch for TrafficTrials {
    fn next_plan(&self) -> Option<Plan> {
        let (mut known, mut next) = (self.trials.iter(), None);
        self.search.search(&mut |request| {
            if let Some(trial) = known.next() {
                return trial.clone();
            }
            next.get_or_insert_with(|| request.clone());
            None
        });
        let TrafficSearch { line, residual, .. } = self.search;
        next.map(|request| request.plan(&self.base, line, residual))
    }

    fn take(&mut self, result: RunResult) {
        self.trials.push(Trial::of_group(&result, 0));
        match &mut self.done {
            None => self.done = Some(result),
            Some(done) => append(done, result),
        }
    }

    fn end(self: Box<Self>) -> Option<SearchEnd> {
        let mut result = self.done?;
        // A search goes beyond what the path carries, to see where that is.
        let beyond = ["generator-limited", "messages-lost"];
        result.warnings.retain(|one| !beyond.contains(&&*one.id));
        for (group, metric) in self.search.report(&result).headlines() {
            let jobs = result.groups.get_mut(group).map(|group| &mut group.jobs);
            if let Some(job) = jobs.and_then(|jobs| jobs.first_mut()) {
                job.metrics.push(metric);
            }
        }
        Some(SearchEnd {
            has_found_all: self.search.has_found_all(&result),
            result,
        })
    }

    fn rest(&self) -> Nanos {
        self.search.rest
    }
}

/// Report of a search's trials.
enum SearchReport {
    LossRates(LossRates),
    NetworkTests(Vec<network_test::FrameReport>),
}

impl SearchReport {
    /// Headline figures, each with the group of the first of the trials that it comes from.
    fn headlines(&self) -> Vec<(usize, Metric)> {
        let metric = |name: &str, found: FoundRate| Metric::high(name, "messages/s", found.rate);
        match self {
            Self::LossRates(found) => {
                let rates = [("NDR", found.none), ("PDR", found.some)];
                let known = |(name, rate): (_, Option<_>)| Some((0, metric(name, rate?)));
                rates.into_iter().filter_map(known).collect()
            }
            Self::NetworkTests(all) => {
                let mut before = 0;
                let mut metrics = Vec::new();
                for one in all {
                    if let Some(found) = one.throughput {
                        let name = format!("throughput of frames of {}", one.frame);
                        metrics.push((before, metric(&name, found)));
                    }
                    before += one.trials.len();
                }
                metrics
            }
        }
    }
}
