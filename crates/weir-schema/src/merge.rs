//! The results of several ranks as one: what was counted is added, histograms merge exactly,
//! spans become the longest that holds all.
//!
//! In: the results of the same plan on two sets of ranks, the lower ranks first. Out: one
//! result, as large as either: worker k of a job stands for worker k on every rank. Each rank
//! keeps one short line in [`RunResult::ranks`]. What is counted is taken apart by name, so that a
//! new figure does not compile before it is merged. Not here: how results travel.

use weir_stats::{BatchError, SeriesError};
use weir_units::{Bytes, Nanos};

use crate::metrics::{loop_metrics, packet_path_metrics, rpc_metrics};
use crate::outcome::{LoopOutcome, Outcome};
use crate::rates::both;
use crate::result::{
    CpuUse, DepthUse, GroupResult, JobResult, KindResult, RunResult, SampleStatistics, Span,
    StageHistogram, State, WorkerResult,
};
use crate::world::RankSummary;

/// Reason that two results cannot be one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// They come from different plans.
    #[error("the ranks ran different plans: {0}")]
    OtherPlan(String),
    /// Their histograms or series have another form.
    #[error("{0}")]
    OtherForm(String),
}

impl From<SeriesError> for MergeError {
    fn from(error: SeriesError) -> Self {
        Self::OtherForm(error.to_string())
    }
}

impl From<BatchError> for MergeError {
    fn from(error: BatchError) -> Self {
        Self::OtherForm(error.to_string())
    }
}

impl RunResult {
    /// Takes the result of further ranks in.
    ///
    /// # Errors
    /// Plans, histograms or series that differ in form.
    pub fn merge(&mut self, mut other: Self) -> Result<(), MergeError> {
        same_length("groups", &self.groups, &other.groups)?;
        self.align(&mut other);
        for (mine, theirs) in self.groups.iter_mut().zip(other.groups) {
            mine.merge(theirs)?;
        }
        self.duration_ns = self.duration_ns.max(other.duration_ns);
        self.complete &= other.complete;
        self.ended_by = self.ended_by.or(other.ended_by);
        for warning in other.warnings {
            let known = |w: &crate::Warning| w.id == warning.id && w.job == warning.job;
            if !self.warnings.iter().any(known) {
                self.warnings.push(warning);
            }
        }
        self.ranks.extend(other.ranks);
        Ok(())
    }
}

impl RunResult {
    /// Lets the times of both count from the earlier of their zeros, where the two clocks are one: on
    /// the same host. Elsewhere each rank's times count from its own.
    fn align(&mut self, other: &mut Self) {
        let here = &self.host.hostname;
        if here.is_none() || *here != other.host.hostname {
            return;
        }
        let zero = |result: &Self| result.started_unix_ns.saturating_add(result.zero_ns.0);
        let (mine, theirs) = (zero(self), zero(other));
        other.delay(Nanos(theirs.saturating_sub(mine)));
        if theirs < mine {
            self.delay(Nanos(mine - theirs));
            (self.started_unix_ns, self.zero_ns) = (other.started_unix_ns, other.zero_ns);
        }
    }

    /// Moves its times away from their zero.
    fn delay(&mut self, by: Nanos) {
        self.duration_ns = self.duration_ns.saturating_add(by);
        for group in &mut self.groups {
            group.together.iter_mut().for_each(|span| span.delay(by));
            group.jobs.iter_mut().for_each(|job| job.delay(by));
        }
    }
}

impl JobResult {
    fn delay(&mut self, by: Nanos) {
        self.span.iter_mut().for_each(|span| span.delay(by));
        let workers = self.workers_mut().iter_mut();
        workers
            .filter_map(|w| w.span.as_mut())
            .for_each(|span| span.delay(by));
        if let Outcome::Rpc(done) = &mut self.outcome {
            let masters = done.masters.iter_mut();
            masters
                .filter_map(|m| m.span.as_mut())
                .for_each(|span| span.delay(by));
        }
        if let Outcome::ObjectStore(done) = &mut self.outcome {
            done.spans_mut().for_each(|span| span.delay(by));
        }
        for phase in &mut self.phases {
            for rank in &mut phase.ranks {
                rank.span.delay(by);
                rank.parts.iter_mut().for_each(|part| part.span.delay(by));
            }
            phase
                .measured
                .iter_mut()
                .for_each(|measured| measured.delay(by));
        }
    }
}

fn same_length<T>(what: &str, mine: &[T], theirs: &[T]) -> Result<(), MergeError> {
    if mine.len() == theirs.len() {
        return Ok(());
    }
    let text = format!("{} {what} and {}", mine.len(), theirs.len());
    Err(MergeError::OtherPlan(text))
}

impl GroupResult {
    pub(crate) fn merge(&mut self, other: Self) -> Result<(), MergeError> {
        same_length("jobs", &self.jobs, &other.jobs)?;
        for (mine, theirs) in self.jobs.iter_mut().zip(other.jobs) {
            mine.merge(theirs)?;
        }
        let spans = self.together.into_iter().chain(other.together);
        self.conclude_merged(spans.reduce(both));
        Ok(())
    }
}

impl Span {
    fn delay(&mut self, by: Nanos) {
        self.start_ns = self.start_ns.saturating_add(by);
        self.end_ns = self.end_ns.saturating_add(by);
    }

    /// The shortest span that holds both.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        Self {
            start_ns: self.start_ns.min(other.start_ns),
            end_ns: self.end_ns.max(other.end_ns),
        }
    }
}

fn hull_of(a: Option<Span>, b: Option<Span>) -> Option<Span> {
    a.into_iter().chain(b).reduce(Span::hull)
}

impl State {
    /// Of two states the one that says more about why not everything is complete.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        const TELLING: [State; 5] = [
            State::Hung,
            State::Failed,
            State::Stopped,
            State::Running,
            State::NotStarted,
        ];
        let found = TELLING.into_iter().find(|s| *s == self || *s == other);
        found.unwrap_or(Self::Done)
    }
}

impl JobResult {
    pub(crate) fn merge(&mut self, other: Self) -> Result<(), MergeError> {
        if self.name != other.name {
            let text = format!("jobs `{}` and `{}`", self.name, other.name);
            return Err(MergeError::OtherPlan(text));
        }
        let Self {
            name: _,
            state,
            span,
            failure,
            logs,
            outcome,
            metrics,
            phases,
        } = other;
        self.state = self.state.worse(state);
        self.span = hull_of(self.span, span);
        self.failure = self.failure.take().or(failure);
        self.logs.extend(logs);
        self.outcome.merge(outcome)?;
        for theirs in metrics {
            if !self.metrics.iter().any(|m| m.name == theirs.name) {
                self.metrics.push(theirs);
            }
        }
        for theirs in phases {
            self.add_phase(theirs)?;
        }
        self.conclude();
        Ok(())
    }

    /// Fills in the headline figures of a loop and of RPCs, from the workers and how sure they are. Those of
    /// other workloads come with their outcome.
    pub fn conclude(&mut self) {
        match &self.outcome {
            Outcome::Loop(done) => self.metrics = loop_metrics(done),
            Outcome::Rpc(done) => self.metrics = rpc_metrics(done),
            Outcome::PacketPath(done) => self.metrics = packet_path_metrics(done),
            Outcome::ObjectStore(done) => self.metrics = done.metrics(),
            Outcome::None | Outcome::Exchange(_) | Outcome::LatencyBandwidth(_) => {}
        }
        self.conclude_phases();
    }
}

impl Outcome {
    /// Adds the outcome of the job on further ranks. Where a rank has none, that of the others
    /// stands for all.
    fn merge(&mut self, other: Self) -> Result<(), MergeError> {
        match (self, other) {
            (_, Self::None) => Ok(()),
            (mine @ Self::None, theirs) => {
                *mine = theirs;
                Ok(())
            }
            (Self::Loop(mine), Self::Loop(theirs)) => mine.merge(theirs),
            (Self::ObjectStore(mine), Self::ObjectStore(theirs)) => {
                mine.merge(*theirs);
                Ok(())
            }
            (Self::Rpc(mine), Self::Rpc(theirs)) => {
                mine.masters.extend(theirs.masters);
                mine.workers.merge(theirs.workers)
            }
            _ => {
                let text = "two ranks have what only one of them can have measured";
                Err(MergeError::OtherForm(text.to_owned()))
            }
        }
    }
}

impl LoopOutcome {
    fn merge(&mut self, other: Self) -> Result<(), MergeError> {
        // A rank on which the job never ran has no workers.
        let mut theirs = other.workers.into_iter();
        for (mine, theirs) in self.workers.iter_mut().zip(&mut theirs) {
            mine.merge(theirs)?;
        }
        self.workers.extend(theirs);
        let costs = self.loop_ns_per_op.into_iter().chain(other.loop_ns_per_op);
        self.loop_ns_per_op = costs.max_by(f64::total_cmp);
        self.merge_batches(other.batches, other.confidence)
    }
}

impl WorkerResult {
    fn merge(&mut self, other: Self) -> Result<(), MergeError> {
        let Self {
            clone: _,
            number: _,
            // They stand for one thread of one rank.
            thread_id: _,
            steadiness: _,
            depth_found: _,
            span,
            state,
            failure,
            kinds,
            cpu,
            depth,
            prepare_ns,
            late_issues,
            mismatches,
            reported_errors,
        } = other;
        (self.thread_id, self.steadiness, self.depth_found) = (None, None, None);
        self.span = hull_of(self.span, span);
        self.state = self.state.worse(state);
        self.failure = self.failure.take().or(failure);
        for theirs in kinds {
            match self.kinds.iter_mut().find(|k| k.kind == theirs.kind) {
                Some(mine) => mine.merge(theirs)?,
                None => self.kinds.push(theirs),
            }
        }
        self.kinds.sort_by(|a, b| a.kind.cmp(&b.kind));
        self.cpu.add(&cpu);
        self.depth.add(&depth);
        self.prepare_ns = sum(self.prepare_ns, prepare_ns, Nanos::saturating_add);
        self.late_issues = sum(self.late_issues, late_issues, u64::saturating_add);
        self.mismatches.extend(mismatches);
        self.reported_errors.extend(reported_errors);
        Ok(())
    }
}

/// The sum of what is known.
fn sum<T>(a: Option<T>, b: Option<T>, add: impl Fn(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(add(a, b)),
        (a, b) => a.or(b),
    }
}

/// Adds histograms stage by stage.
fn merge_stages(
    into: &mut Vec<StageHistogram>,
    stages: Vec<StageHistogram>,
) -> Result<(), MergeError> {
    for theirs in stages {
        match into.iter_mut().find(|s| s.stage == theirs.stage) {
            Some(mine) => {
                let merged = mine.histogram.merge(&theirs.histogram);
                merged.map_err(|e| MergeError::OtherForm(e.to_string()))?;
            }
            None => into.push(theirs),
        }
    }
    Ok(())
}

impl KindResult {
    /// Adds what is counted; the runtime is the longest.
    pub fn add_counts(&mut self, other: &Self) {
        let Self {
            kind: _,
            issued,
            operations,
            bytes,
            short,
            dropped,
            lost,
            errors,
            runtime_ns,
            // Distributions and courses: `merge`.
            stages: _,
            classes: _,
            series: _,
            bandwidth_samples: _,
            iops_samples: _,
        } = other;
        self.issued += issued;
        self.operations += operations;
        self.bytes = self.bytes.saturating_add(*bytes);
        self.short += short;
        self.dropped += dropped;
        self.lost += lost;
        for (code, count) in errors {
            *self.errors.entry(code.clone()).or_default() += count;
        }
        self.runtime_ns = self.runtime_ns.max(*runtime_ns);
    }

    /// Takes in what others did of this kind: counts, latencies, intervals and samples.
    ///
    /// # Errors
    /// Histograms or series that differ in form.
    pub fn merge(&mut self, other: Self) -> Result<(), MergeError> {
        self.add_counts(&other);
        merge_stages(&mut self.stages, other.stages)?;
        for theirs in other.classes {
            match self.classes.iter_mut().find(|c| c.class == theirs.class) {
                Some(mine) => merge_stages(&mut mine.stages, theirs.stages)?,
                None => self.classes.push(theirs),
            }
        }
        if self.series.is_empty() {
            self.series = other.series;
        } else if !other.series.is_empty() {
            self.series.add(&other.series)?;
        }
        self.bandwidth_samples = sum(
            self.bandwidth_samples,
            other.bandwidth_samples,
            SampleStatistics::pooled,
        );
        self.iops_samples = sum(
            self.iops_samples,
            other.iops_samples,
            SampleStatistics::pooled,
        );
        Ok(())
    }
}

impl SampleStatistics {
    /// The moments of both sets of samples taken together (Chan, Golub and `LeVeque`, 1979).
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of samples are far below 2^52"
    )]
    fn pooled(a: Self, b: Self) -> Self {
        if a.count == 0 || b.count == 0 {
            return if a.count == 0 { b } else { a };
        }
        let (n, m) = (a.count as f64, b.count as f64);
        let distance = b.mean - a.mean;
        let squares = a.deviation.powi(2) * (n - 1.0)
            + b.deviation.powi(2) * (m - 1.0)
            + distance.powi(2) * n * m / (n + m);
        Self {
            count: a.count + b.count,
            min: a.min.min(b.min),
            max: a.max.max(b.max),
            mean: a.mean + distance * m / (n + m),
            deviation: (squares / (n + m - 1.0)).sqrt(),
        }
    }
}

impl CpuUse {
    /// Adds what another thread used.
    pub fn add(&mut self, other: &Self) {
        let Self {
            user_ns,
            system_ns,
            voluntary_switches,
            involuntary_switches,
            minor_faults,
            major_faults,
            run_delay_ns,
            stolen_ns,
            // Where threads ran does not add up.
            first_cpu: _,
            last_cpu: _,
        } = *other;
        self.user_ns = self.user_ns.saturating_add(user_ns);
        self.system_ns = self.system_ns.saturating_add(system_ns);
        self.voluntary_switches += voluntary_switches;
        self.involuntary_switches += involuntary_switches;
        self.minor_faults += minor_faults;
        self.major_faults += major_faults;
        self.run_delay_ns = sum(self.run_delay_ns, run_delay_ns, Nanos::saturating_add);
        self.stolen_ns = sum(self.stolen_ns, stolen_ns, Nanos::saturating_add);
    }
}

impl DepthUse {
    /// Adds what another worker counted; the means of workers at work side by side add up too.
    pub fn add(&mut self, other: &Self) {
        let Self {
            in_flight,
            submitted,
            completed,
            mean_in_flight,
        } = other;
        let tables = [
            (&mut self.in_flight, in_flight),
            (&mut self.submitted, submitted),
            (&mut self.completed, completed),
        ];
        for (mine, theirs) in tables {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                *mine += theirs;
            }
        }
        self.mean_in_flight = sum(self.mean_in_flight, *mean_in_flight, |a, b| a + b);
    }
}

impl RankSummary {
    /// The short line of a rank's own result.
    pub fn of(rank: u32, result: &RunResult) -> Self {
        let kinds = || {
            let workers = result.jobs().flat_map(JobResult::workers);
            workers.flat_map(|w| &w.kinds)
        };
        let spans = result.jobs().filter_map(|j| j.span);
        Self {
            rank,
            hostname: result.host.hostname.clone(),
            operations: kinds().map(|k| k.operations).sum(),
            bytes: Bytes(kinds().map(|k| k.bytes.0).sum()),
            span: spans.reduce(Span::hull),
            failed_jobs: result.failed_jobs() as u64,
            complete: result.complete,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use weir_stats::Histogram;

    use super::*;
    use crate::exchange::ExchangeResult;
    use crate::kind::Kind;
    use crate::outcome::Metric;
    use crate::phase::{PhaseResult, RankSpan};
    use crate::result::{ClassResult, Stage};
    use crate::sample::{self, series};

    const INTERVAL: Nanos = Nanos(100);

    /// A worker that read 4 KiB in each of these times.
    fn worker(times: &[u64], start: u64) -> WorkerResult {
        let mut histogram = Histogram::new();
        for time in times {
            histogram.record(*time);
        }
        let operations = times.len() as u64;
        let time = Nanos(times.iter().sum());
        let mut kind = sample::kind(Kind::Read, operations, time, &[(Stage::Lat, histogram)]);
        kind.errors = BTreeMap::from([(5.into(), 1)]);
        kind.series = series(INTERVAL, &[operations], 4096);
        let mut worker = sample::worker(0, time, vec![kind]);
        worker.span = Some(sample::span(Nanos(start), Nanos(start + time.0)));
        worker
    }

    fn job(name: &str, times: &[u64], start: u64) -> JobResult {
        let worker = worker(times, start);
        JobResult {
            span: worker.span,
            ..sample::job_result(name, vec![worker])
        }
    }

    #[test]
    fn times_of_ranks_on_one_host_count_from_the_first_start() {
        let of = |host: &str, started: u64| {
            let mut result =
                RunResult::of(crate::Plan::new("p", "run", vec![sample::block_job("a")]));
            result.host.hostname = Some(host.to_owned());
            (result.started_unix_ns, result.zero_ns) = (started - 100, Nanos(100));
            result.groups[0].jobs[0].span = Some(Span {
                start_ns: Nanos(10),
                end_ns: Nanos(20),
            });
            result
        };
        let span = |first: RunResult, second: RunResult| {
            let mut both = first;
            both.merge(second).unwrap();
            let span = both.groups[0].jobs[0].span.unwrap();
            (both.started_unix_ns + 100, span.start_ns.0, span.end_ns.0)
        };
        assert_eq!(span(of("h", 1000), of("h", 1005)), (1000, 10, 25));
        assert_eq!(span(of("h", 1005), of("h", 1000)), (1000, 10, 25));
        assert_eq!(span(of("h", 1000), of("other", 1005)), (1000, 10, 20));
    }

    #[test]
    fn a_job_on_two_ranks_is_what_one_histogram_would_have_seen() {
        let (few, many) = ([100, 2000, 30], [7, 7_000_000, 100, 40]);
        let mut merged = job("a", &few, 10);
        merged.merge(job("a", &many, 0)).unwrap();
        let all: Vec<u64> = few.into_iter().chain(many).collect();
        let expected = worker(&all, 0);
        let (kind, of_all) = (&merged.workers()[0].kinds[0], &expected.kinds[0]);
        assert_eq!(kind.stage(Stage::Lat), of_all.stage(Stage::Lat));
        assert_eq!((kind.operations, kind.bytes), (7, Bytes(7 * 4096)));
        assert_eq!(kind.errors, BTreeMap::from([(5.into(), 2)]));
        assert_eq!(kind.series, of_all.series);
        let whole = sample::span(Nanos(0), Nanos(7_000_147));
        assert_eq!(merged.span, Some(whole));
    }

    /// A rank whose worker did so many operations in each interval of 100 ns.
    fn group(start: u64, per_interval: &[u64]) -> GroupResult {
        let mut job = job("a", &[], start);
        let end = start + 100 * per_interval.len() as u64;
        let span = sample::span(Nanos(start), Nanos(end));
        job.span = Some(span);
        let worker = &mut job.workers_mut()[0];
        worker.span = Some(span);
        let kind = &mut worker.kinds[0];
        kind.operations = per_interval.iter().sum();
        kind.series = series(INTERVAL, per_interval, 4096);
        let mut group = GroupResult {
            jobs: vec![job],
            ..GroupResult::default()
        };
        group.conclude();
        group
    }

    #[test]
    fn latencies_of_classes_add_up_class_by_class() {
        let of = |class, count| {
            let mut histogram = Histogram::new();
            histogram.record_n(100, count);
            let stages = vec![StageHistogram {
                stage: Stage::Clat,
                histogram,
            }];
            ClassResult { class, stages }
        };
        let mut one = KindResult::new(Kind::Read);
        one.classes = vec![of(0, 2)];
        let mut other = KindResult::new(Kind::Read);
        other.classes = vec![of(0, 3), of(7, 5)];
        one.merge(other).unwrap();
        assert_eq!(one.classes, [of(0, 5), of(7, 5)]);
    }

    #[test]
    fn rates_while_all_ranks_ran_leave_the_stragglers_out() {
        let ranks = [
            group(0, &[10, 10, 10]),
            group(0, &[20, 20]),
            group(0, &[30, 30, 30, 30]),
        ];
        let rate = |group: &GroupResult| group.rates[0].overlap_ops_per_s.unwrap().0;
        // In whatever order they come: 60 operations in each of the first two intervals.
        for [a, b, c] in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let mut merged = ranks[a].clone();
            merged.merge(ranks[b].clone()).unwrap();
            merged.merge(ranks[c].clone()).unwrap();
            assert!((rate(&merged) / (120.0 / 200e-9) - 1.0).abs() < 1e-12);
            assert!((merged.rates[0].ops_per_s.0 / (190.0 / 400e-9) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn ranks_that_never_ran_together_have_no_such_rate() {
        let mut merged = group(0, &[10]);
        merged.merge(group(100, &[10])).unwrap();
        assert_eq!(merged.rates[0].overlap_ops_per_s, None);
        // Nor has a third one changed that.
        merged.merge(group(0, &[10, 10, 10])).unwrap();
        assert_eq!(merged.rates[0].overlap_ops_per_s, None);
    }

    #[test]
    fn results_of_other_plans_are_refused() {
        let error = job("a", &[1], 0).merge(job("b", &[1], 0)).unwrap_err();
        assert!(matches!(error, MergeError::OtherPlan(_)), "{error}");
        let one = GroupResult {
            jobs: vec![job("a", &[1], 0)],
            ..GroupResult::default()
        };
        let error = GroupResult::default().merge(one).unwrap_err();
        assert!(error.to_string().contains("0 jobs and 1"), "{error}");
    }

    #[test]
    fn a_job_that_failed_on_one_rank_has_failed() {
        let mut merged = job("a", &[1], 0);
        let mut failed = job("a", &[], 0);
        failed.state = State::Failed;
        failed.outcome = Outcome::None;
        merged.merge(failed).unwrap();
        assert_eq!((merged.state, merged.workers().len()), (State::Failed, 1));
        let mut nothing = job("a", &[], 0);
        nothing.outcome = Outcome::None;
        nothing.merge(job("a", &[1, 2], 0)).unwrap();
        assert_eq!(nothing.workers()[0].kinds[0].operations, 2);
    }

    #[test]
    fn what_only_one_rank_measured_stands_for_all() {
        let metric = Metric::high("b_eff", Metric::BYTES_PER_S, 1e9);
        let mut first = sample::exchange_result("e", ExchangeResult::default());
        first.metrics = vec![metric.clone()];
        let other = JobResult {
            state: State::Done,
            ..JobResult::not_started("e")
        };
        for (mut mine, theirs) in [(first.clone(), other.clone()), (other, first.clone())] {
            mine.merge(theirs).unwrap();
            assert!(mine.exchange().is_some());
            assert_eq!(mine.metrics, std::slice::from_ref(&metric));
        }
        let error = first.clone().merge(first).unwrap_err();
        assert!(matches!(error, MergeError::OtherForm(_)), "{error}");
    }

    #[test]
    fn the_metrics_of_a_loop_are_those_of_all_ranks_together() {
        let mut merged = job("a", &[100; 10], 0);
        merged.conclude();
        merged.merge(job("a", &[100; 30], 0)).unwrap();
        let rate = merged.metrics.iter().find(|m| m.name == "read rate");
        // 40 operations from 0 to 3000 ns.
        let rate = rate.unwrap().value;
        assert!((rate / (40.0 / 3000e-9) - 1.0).abs() < 1e-9, "{rate}");
    }

    #[test]
    fn a_phase_is_one_with_the_spans_of_all_ranks() {
        let phase = |repetition, rank| PhaseResult {
            name: "write".to_owned(),
            repetition,
            ranks: vec![RankSpan {
                rank,
                span: sample::span(Nanos(0), Nanos(10)),
                ..RankSpan::default()
            }],
            measured: None,
        };
        let phases = |rank| JobResult {
            phases: vec![phase(0, rank), phase(1, rank)],
            ..JobResult::not_started("p")
        };
        let mut merged = phases(0);
        merged.merge(phases(1)).unwrap();
        let ranks: Vec<usize> = merged.phases.iter().map(|p| p.ranks.len()).collect();
        assert_eq!(ranks, [2, 2]);
    }

    #[test]
    fn figures_of_a_phase_are_those_of_all_ranks_under_its_name() {
        let job = |rank, operations| {
            let second = Nanos::from_secs(1);
            let writes = sample::kind(Kind::Write, operations, second, &[]);
            let mut measured =
                sample::job_result("p write", vec![sample::worker(0, second, vec![writes])]);
            measured.conclude();
            let mut job = JobResult::not_started("p");
            for (name, repetition) in [("write", 1), ("fill", 0)] {
                let phase = PhaseResult {
                    name: name.to_owned(),
                    repetition,
                    ranks: vec![RankSpan {
                        rank,
                        ..RankSpan::default()
                    }],
                    measured: Some(Box::new(measured.clone())),
                };
                job.add_phase(phase).unwrap();
            }
            job.conclude();
            job
        };
        let mut merged = job(1, 10);
        merged.merge(job(0, 30)).unwrap();
        let rates = merged
            .metrics
            .iter()
            .filter(|m| m.unit == Metric::OPS_PER_S);
        let rates: Vec<(&str, f64)> = rates.map(|m| (m.name.as_str(), m.value.round())).collect();
        assert_eq!(rates, [("write #2 rate", 40.0), ("fill write rate", 40.0)]);
        let ranks: Vec<u32> = merged.phases[0].ranks.iter().map(|r| r.rank).collect();
        assert_eq!(ranks, [0, 1]);
        // Its rows show them.
        assert_eq!(merged.own_metrics(), Vec::<&Metric>::new());
    }

    #[test]
    fn pooled_moments_are_those_of_all_samples() {
        let of = |samples: &[f64]| {
            let mut moments = weir_stats::Moments::default();
            for sample in samples {
                moments.push(*sample);
            }
            SampleStatistics {
                count: samples.len() as u64,
                min: samples.iter().copied().fold(f64::INFINITY, f64::min),
                max: samples.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                mean: samples.iter().sum::<f64>()
                    / f64::from(u32::try_from(samples.len()).unwrap()),
                deviation: moments.deviation().unwrap_or_default(),
            }
        };
        let (a, b) = ([1.0, 5.0, 4.5], [100.0, 90.0, 95.5, 97.0]);
        let pooled = SampleStatistics::pooled(of(&a), of(&b));
        let whole = of(&[a.as_slice(), b.as_slice()].concat());
        assert!((pooled.mean - whole.mean).abs() < 1e-9);
        assert!((pooled.deviation - whole.deviation).abs() < 1e-9);
        assert_eq!((pooled.count, pooled.max), (7, 100.0));
        assert_eq!(
            SampleStatistics::pooled(SampleStatistics::default(), of(&a)),
            of(&a)
        );
    }
}
