//! An entry of the report: one job, the jobs of a group that asked to be reported as one, or a phase,
//! with the figures of all its workers put together.
//!
//! In: a result. Out: entries in plan order. Histograms are merged, counts added, rates taken
//! as everything done over the time from the earliest start to the latest end. Not here: words.

use std::collections::BTreeMap;

use weir_schema::{
    Confidence, Failure, GroupResult, Job, JobResult, Kind, KindName, KindResult, LatencyOverTime,
    Metric, PacketPathWorkload, PhaseResult, RpcMaster, RunResult, Span, Stage, State,
    WorkerResult, Workload,
};
use weir_stats::Histogram;
use weir_units::{Bytes, BytesPerSec, Iops, Nanos};

/// One entry.
pub(crate) struct ReportEntry<'a> {
    /// Its jobs, at least one.
    pub(crate) jobs: Vec<&'a JobResult>,
    /// Plan of the first of them.
    pub(crate) plan: Option<&'a Job>,
    pub(crate) group: usize,
    /// The phase that it is, of the job of the entry before it that is none.
    pub(crate) phase: Option<&'a PhaseResult>,
    /// Number of ranks that carried it out; each worker stands for one of each.
    pub(crate) ranks: usize,
    pub(crate) workers: Vec<&'a WorkerResult>,
    /// Per kind, over all workers.
    pub(crate) kinds: Vec<KindSum>,
    pub(crate) span: Option<Span>,
    /// Figures with their intervals, per kind.
    confidence: &'a [Confidence],
    latency_over_time: &'a [LatencyOverTime],
}

/// The figures of one kind over all workers of an entry.
#[derive(Clone, Debug)]
pub(crate) struct KindSum {
    /// `read`, or `mixed` where kinds are reported as one.
    pub(crate) name: String,
    /// Counts, without latencies.
    pub(crate) sum: KindResult,
    /// Nothing where histograms of different precision met, which have no exact sum.
    stages: BTreeMap<Stage, Option<Histogram>>,
}

/// Every entry of a result, in plan order. Hidden jobs have none.
pub(crate) fn entries(result: &RunResult) -> Vec<ReportEntry<'_>> {
    let mut entries: Vec<ReportEntry<'_>> = Vec::new();
    for (number, group) in result.groups.iter().enumerate() {
        let planned = result.plan.groups.get(number);
        let mut merged: Option<usize> = None;
        for (i, job) in group.jobs.iter().enumerate() {
            let plan = planned.and_then(|g| g.jobs.get(i));
            if plan.is_some_and(|p| p.report.hidden) {
                continue;
            }
            if plan.is_some_and(|p| p.report.merge) {
                if let Some(entry) = merged.and_then(|at| entries.get_mut(at)) {
                    entry.jobs.push(job);
                    continue;
                }
                merged = Some(entries.len());
            }
            let ranks = result.ranks.len().max(1);
            entries.push(ReportEntry::new(job, plan, number, ranks));
            let phases = job.phases.iter();
            let phases = phases.filter_map(|phase| Some((phase, phase.measured.as_deref()?)));
            entries.extend(phases.map(|(phase, measured)| ReportEntry {
                phase: Some(phase),
                ..ReportEntry::new(measured, plan, number, phase.ranks.len().max(1))
            }));
        }
    }
    for entry in &mut entries {
        entry.add_up();
        entry.judge(&result.groups[entry.group]);
    }
    entries
}

impl<'a> ReportEntry<'a> {
    fn new(job: &'a JobResult, plan: Option<&'a Job>, group: usize, ranks: usize) -> Self {
        Self {
            jobs: vec![job],
            plan,
            group,
            phase: None,
            ranks,
            workers: Vec::new(),
            kinds: Vec::new(),
            span: None,
            confidence: job.confidence(),
            latency_over_time: job.latency_over_time(),
        }
    }

    /// Fact about the target of the whole job, found out by the run.
    pub(crate) fn remark(&self) -> Option<String> {
        let job = self.jobs.first().filter(|_| self.phase.is_none());
        job.and_then(|job| job.remark())
    }

    fn add_up(&mut self) {
        self.workers = self.jobs.iter().flat_map(|j| j.workers()).collect();
        self.span = self.jobs.iter().filter_map(|j| j.span).reduce(Span::hull);
        let unified = self.plan.is_some_and(|p| p.load().recording.unify_kinds);
        let mut sums: BTreeMap<KindName, KindSum> = BTreeMap::new();
        for kind in self.workers.iter().flat_map(|w| &w.kinds) {
            // One sum for all data kinds; syncs move nothing and stay apart.
            let as_one = unified && !kind.kind.is_aside();
            let key = if as_one {
                Kind::Read.into()
            } else {
                kind.kind.clone()
            };
            let name = if as_one { KindName::MIXED } else { key.clone() };
            let new = KindSum::new(&key, name.as_str());
            sums.entry(key).or_insert(new).add(kind);
        }
        self.kinds = sums.into_values().collect();
    }

    /// Of several jobs as one the group knows how sure they are and how their latencies went over
    /// time, where it has no others.
    fn judge(&mut self, group: &'a GroupResult) {
        if self.jobs.len() > 1 {
            (self.confidence, self.latency_over_time) = (&[], &[]);
            if self.jobs.len() == group.jobs.len() {
                self.confidence = &group.confidence;
                self.latency_over_time = &group.latency_over_time;
            }
        }
    }

    pub(crate) fn name(&self) -> &'a str {
        self.jobs.first().map_or("", |j| &j.name)
    }

    /// Time that it ran.
    pub(crate) fn time(&self) -> Option<Nanos> {
        self.span.map(Span::length).filter(|t| *t > Nanos::ZERO)
    }

    pub(crate) fn iops(&self, kind: &KindSum) -> Option<Iops> {
        Iops::of(kind.sum.operations, self.time()?)
    }

    pub(crate) fn bandwidth(&self, kind: &KindSum) -> Option<BytesPerSec> {
        BytesPerSec::of(kind.sum.bytes, self.time()?).filter(|_| kind.sum.bytes > Bytes::ZERO)
    }

    /// Figures of a kind, or of all as one, with their intervals; nothing for a part of the jobs
    /// that ran together.
    pub(crate) fn confidence(&self, kind: &KindSum) -> Option<&'a Confidence> {
        let mut all = self.confidence.iter();
        all.find(|sure| sure.kind.as_str() == kind.name)
    }

    /// Latencies of a kind, or of all as one, over time, where they are known.
    pub(crate) fn latency_over_time(&self, kind: &KindSum) -> Option<&'a LatencyOverTime> {
        let mut all = self.latency_over_time.iter();
        all.find(|over_time| over_time.kind.as_str() == kind.name)
    }

    /// Headline figures that its workers' figures do not say in full.
    pub(crate) fn metrics(&self) -> Vec<&'a Metric> {
        self.jobs.iter().flat_map(|j| j.own_metrics()).collect()
    }

    /// Failed operations.
    pub(crate) fn errors(&self) -> u64 {
        self.kinds.iter().flat_map(|k| k.sum.errors.values()).sum()
    }

    /// Failures of its jobs and workers, each message once.
    pub(crate) fn failures(&self) -> Vec<&'a Failure> {
        let mut failures: Vec<&Failure> = Vec::new();
        let of_jobs = self.jobs.iter().filter_map(|j| j.failure.as_ref());
        let of_workers = self.workers.iter().filter_map(|w| w.failure.as_ref());
        for failure in of_jobs.chain(of_workers) {
            if !failures.iter().any(|f| f.message == failure.message) {
                failures.push(failure);
            }
        }
        failures
    }

    /// The state that says most about why it is not complete.
    pub(crate) fn state(&self) -> State {
        let states = self.jobs.iter().map(|j| j.state);
        states.reduce(State::worse).unwrap_or(State::Done)
    }

    /// Mean operations in flight, over all workers that know it.
    pub(crate) fn in_flight(&self) -> Option<f64> {
        let mut known = self
            .workers
            .iter()
            .filter_map(|w| w.depth.mean_in_flight)
            .peekable();
        known.peek()?;
        Some(known.sum())
    }

    /// The most that can be in flight.
    pub(crate) fn depth_limit(&self) -> Option<u64> {
        if let Workload::PacketPath(work) = &self.plan?.workload {
            return window(work);
        }
        // A phase has a load of its own, which the plan does not show.
        let plan = self.plan.filter(|_| self.phase.is_none())?;
        let depth = plan.load().depth.queue_depth.0;
        let callers = self.callers().saturating_mul(self.ranks);
        Some(u64::from(depth).saturating_mul(callers as u64))
    }

    /// The masters of a job of RPCs.
    pub(crate) fn masters(&self) -> impl Iterator<Item = &'a RpcMaster> + '_ {
        let outcomes = self.jobs.iter().filter_map(|job| job.rpc());
        outcomes.flat_map(|done| &done.masters)
    }

    /// Masters on servers that do the work in place of workers of this run; none where workers do it.
    fn remote_masters(&self) -> impl Iterator<Item = &'a RpcMaster> + '_ {
        let plan = self.plan.map(|plan| &plan.workload);
        let is_remote = matches!(plan, Some(Workload::Rpc(work)) if !work.masters.is_empty());
        self.masters().filter(move |_| is_remote)
    }

    /// Number of those who do the work, each with a depth of its own.
    pub(crate) fn callers(&self) -> usize {
        match self.remote_masters().count() {
            0 => self.workers.len(),
            masters => masters,
        }
    }

    /// Cores in use: user and system time over the time each worker ran.
    pub(crate) fn cores(&self) -> Option<(f64, f64)> {
        let workers = self.workers.iter();
        let of_workers = workers.filter_map(|worker| Some((worker.span?.length(), &worker.cpu)));
        let mut of_masters = self.remote_masters().peekable();
        let of_all: Vec<_> = match of_masters.peek() {
            Some(_) => of_masters.map(|one| (one.duration_ns, &one.cpu)).collect(),
            None => of_workers.collect(),
        };
        let ran = of_all.into_iter().filter(|(time, _)| *time > Nanos::ZERO);
        ran.map(|(time, cpu)| {
            let share = |part: Nanos| part.as_secs_f64() / time.as_secs_f64();
            (share(cpu.user_ns), share(cpu.system_ns))
        })
        .reduce(|(user, system), one| (user + one.0, system + one.1))
    }

    /// Operations per interval on the entry's own time line: (start, length, operations).
    pub(crate) fn intervals(&self) -> impl Iterator<Item = (Nanos, Nanos, u64)> + '_ {
        let origin = self.span.map_or(Nanos::ZERO, |s| s.start_ns);
        self.jobs.iter().flat_map(move |job| {
            let begin = job
                .span
                .map_or(origin, |s| s.start_ns)
                .saturating_sub(origin);
            let series = job.workers().iter().flat_map(|w| &w.kinds);
            let series = series.map(|k| &k.series);
            series.flat_map(move |series| {
                series
                    .points()
                    .map(move |p| (begin.saturating_add(p.start), p.length, p.operations))
            })
        })
    }
}

impl KindSum {
    pub(crate) fn new(kind: &KindName, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            sum: KindResult::new(kind),
            stages: BTreeMap::new(),
        }
    }

    pub(crate) fn add(&mut self, part: &KindResult) {
        self.sum.add_counts(part);
        for stage in &part.stages {
            let sum = self.stages.entry(stage.stage);
            let sum = sum.or_insert_with(|| Histogram::with_bits(stage.histogram.bits()).ok());
            if sum
                .as_mut()
                .is_some_and(|h| h.merge(&stage.histogram).is_err())
            {
                *sum = None;
            }
        }
    }

    /// A stage was measured, but its histograms cannot be merged.
    pub(crate) fn is_unmerged(&self, stage: Stage) -> bool {
        self.stages.get(&stage).is_some_and(Option::is_none)
    }

    /// Everything measured of a stage, if anything was.
    pub(crate) fn stage(&self, stage: Stage) -> Option<&Histogram> {
        self.stages.get(&stage)?.as_ref().filter(|h| !h.is_empty())
    }
}

/// Messages that all clients of a packet path together leave without a response; nothing where any number may be.
fn window(work: &PacketPathWorkload) -> Option<u64> {
    let is_bounded = work.in_flight > 0 && work.messages_per_s == 0;
    let groups = work.streams.iter().flat_map(|stream| &stream.groups);
    let clients: usize = groups.map(|group| group.threads.len()).sum();
    is_bounded.then(|| u64::from(work.in_flight).saturating_mul(clients as u64))
}

/// Rates of a group while all its members ran, over all kinds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overlap {
    pub(crate) iops: Iops,
    pub(crate) bandwidth: Option<BytesPerSec>,
}

impl Overlap {
    /// Nothing where the members never ran together.
    pub(crate) fn of(group: &GroupResult) -> Option<Self> {
        let rates = &group.rates;
        let iops = rates
            .iter()
            .filter_map(|r| r.overlap_ops_per_s)
            .reduce(|a, b| Iops(a.0 + b.0));
        let bandwidth: f64 = rates
            .iter()
            .filter_map(|r| r.overlap_bytes_per_s)
            .map(|rate| rate.0)
            .sum();
        let bandwidth = (bandwidth > 0.0).then_some(BytesPerSec(bandwidth));
        Some(Self {
            iops: iops?,
            bandwidth,
        })
    }
}
