//! Entries of the report: which workers are one entry, and what they did together.
//!
//! In: a result. Out: entries in plan order and the totals of each group. A worker is an entry
//! of its own; with `group_reporting` it joins the entry before it if that belongs to the same
//! group. Hidden jobs have no entry and no share of their group.

use std::sync::LazyLock;

use weir_jobfile::FioJob;
use weir_schema::{
    CpuUse, DepthFound, DepthUse, Failure, Job, JobResult, Kind, Plan, RunResult, Steadiness,
    WorkerResult,
};
use weir_stats::Histogram;

use super::kind_sums::{KindSums, merge, per_second};
use super::numbers::{Base, FigureUnit};
use super::{EIO, errno_of};
use crate::fio::echo::{asked_depth, word};

/// Form of an entry's figures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Formats {
    pub(super) base: Base,
    pub(super) rate: FigureUnit,
    pub(super) digits: usize,
}

impl Formats {
    pub(super) fn of(plan: &Plan, job: &Job) -> Self {
        let get = |key| word(plan, job, key);
        Self {
            base: if get("kb_base") == Some("1000") {
                Base::Decimal
            } else {
                Base::Binary
            },
            // A network is measured in bits unless something else is said.
            rate: if get("unit_base") == Some("1")
                || (matches!(get("unit_base"), None | Some("0")) && get("ioengine") == Some("net"))
            {
                FigureUnit::BitPerSec
            } else {
                FigureUnit::BytePerSec
            },
            digits: get("significant_figures")
                .and_then(|v| v.parse().ok())
                .unwrap_or(4),
        }
    }
}

/// One entry.
pub(super) struct FioEntry<'a> {
    /// The first member's job.
    pub(super) job: &'a Job,
    /// The last member's, whose options fio repeats.
    pub(super) last: &'a Job,
    /// The depth that the first member asked for.
    pub(super) depth_asked: u64,
    /// The last member came as far as its first operation.
    pub(super) started: bool,
    pub(super) group: usize,
    pub(super) members: u32,
    pub(super) pid: u32,
    /// The first failure among the members.
    pub(super) failure: Option<&'a Failure>,
    pub(super) errors: FioErrors,
    /// By [`Kind::index`]; all data kinds are in the first when they are unified.
    pub(super) kinds: [KindSums; 4],
    /// All data kinds once more as one, where that is asked for.
    pub(super) together: Option<KindSums>,
    pub(super) cpu: CpuUse,
    pub(super) depth: DepthUse,
    /// The first member's, where the depth was searched for.
    pub(super) depth_found: Option<DepthFound>,
    pub(super) steadiness: Option<Steadiness>,
    pub(super) wall_ns: u64,
    pub(super) formats: Formats,
}

/// Errors that did not end a job.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FioErrors {
    pub(super) total: u64,
    /// Of the code that occurred; the most frequent one where there are several.
    pub(super) code: i32,
    count: u64,
}

impl FioErrors {
    fn add(&mut self, code: i32, count: u64) {
        self.total += count;
        if count > self.count {
            (self.code, self.count) = (code, count);
        }
    }
}

impl<'a> FioEntry<'a> {
    /// Reads, writes and trims that were issued: what depths are shares of.
    pub(super) fn issued(&self) -> u64 {
        Kind::DATA
            .iter()
            .map(|k| self.kinds[k.index()].issued)
            .sum()
    }

    pub(super) fn is_silent(&self) -> bool {
        Kind::DATA.iter().all(|k| {
            let figures = &self.kinds[k.index()];
            figures.bytes == 0 && figures.issued == 0
        })
    }

    pub(super) fn goes_on(&self) -> bool {
        let errors = &self.last.load().errors;
        let ignores = errors.ignore.values().any(|list| !list.is_empty());
        !errors.go_on.is_empty() || ignores || errors.go_on_mismatch
    }

    /// The errno of the entry: of its failure, or of errors after which it went on. 0: none.
    pub(super) fn errno(&self) -> i32 {
        match self.failure {
            Some(failure) => errno_of(failure),
            None if self.goes_on() => self.errors.code,
            None => 0,
        }
    }

    /// Its kinds are not told apart.
    pub(super) fn is_unified(&self) -> bool {
        self.job.load().recording.unify_kinds
    }

    /// The entry's data kinds with their names in reports.
    pub(super) fn directions(&self) -> impl Iterator<Item = (Kind, &'static str, &KindSums)> {
        let unified = self.is_unified();
        Kind::DATA
            .into_iter()
            .take(if unified { 1 } else { 3 })
            .map(move |k| {
                (
                    k,
                    if unified { "mixed" } else { k.name() },
                    &self.kinds[k.index()],
                )
            })
    }

    pub(super) fn percentile_list(&self) -> Vec<f64> {
        self.last
            .load()
            .recording
            .percentiles
            .iter()
            .map(|p| p.0)
            .collect()
    }

    /// The total latency of all data kinds together.
    pub(super) fn total_latency(&self) -> Option<Histogram> {
        let mut all = None;
        // As in fio, only of what has a completion latency.
        for (.., figures) in self.directions().filter(|(.., f)| f.clat.is_some()) {
            merge(&mut all, figures.lat.as_ref());
        }
        all
    }

    pub(super) fn cpu_percent(&self, used_ns: u64) -> f64 {
        share(used_ns, self.wall_ns)
    }

    fn start(result: &'a RunResult, group: usize, job: &'a Job) -> Self {
        Self {
            job,
            last: job,
            depth_asked: asked_depth(&result.plan, job),
            started: false,
            group,
            members: 0,
            pid: 0,
            failure: None,
            errors: FioErrors::default(),
            kinds: Default::default(),
            together: FioJob::of(job).unify_too.then(KindSums::default),
            cpu: CpuUse::default(),
            depth: DepthUse::default(),
            depth_found: None,
            steadiness: None,
            wall_ns: 0,
            formats: Formats::of(&result.plan, job),
        }
    }

    fn add(&mut self, job: &'a Job, worker: &WorkerResult, failure: Option<&'a Failure>) {
        if self.members == 0 {
            self.pid = worker.thread_id.unwrap_or(0);
        }
        self.members += 1;
        self.depth_found = self.depth_found.or(worker.depth_found);
        if self.steadiness.is_none() {
            self.steadiness.clone_from(&worker.steadiness);
        }
        self.last = job;
        self.started = worker.span.is_some();
        self.failure = self.failure.or(failure);
        for kind in &worker.kinds {
            let Some(name) = Kind::named(&kind.kind) else {
                continue;
            };
            let unified = self.job.load().recording.unify_kinds && name != Kind::Sync;
            let index = if unified { 0 } else { name.index() };
            let figures = KindSums::of(kind, job);
            self.kinds[index].add(&figures);
            if let Some(together) = self.together.as_mut().filter(|_| name != Kind::Sync) {
                together.add(&figures);
            }
            for (code, count) in &kind.errors {
                self.errors.add(code.errno().unwrap_or(EIO), *count);
            }
        }
        self.wall_ns += worker.span.map_or(0, |s| s.length().0);
        self.cpu.add(&worker.cpu);
        self.depth.add(&worker.depth);
    }
}

/// The entries of a result, in plan order.
pub(super) fn entries(result: &RunResult) -> Vec<FioEntry<'_>> {
    let mut entries: Vec<FioEntry<'_>> = Vec::new();
    for (group, (planned, done)) in result.plan.groups.iter().zip(&result.groups).enumerate() {
        let mut open = false;
        let shown = planned
            .jobs
            .iter()
            .zip(&done.jobs)
            .filter(|(job, _)| !job.report.hidden);
        for (job, outcome) in shown {
            for (worker, failure) in members(job, outcome) {
                if !(job.report.merge && open) {
                    entries.push(FioEntry::start(result, group, job));
                }
                open = true;
                if let Some(entry) = entries.last_mut() {
                    entry.add(job, worker, failure);
                }
            }
        }
    }
    entries
}

/// All workers, each with its job's name and its failure.
pub(super) fn all_members(result: &RunResult) -> Vec<(&str, &WorkerResult, Option<&Failure>)> {
    let jobs = result.plan.jobs().zip(result.jobs());
    jobs.flat_map(|((_, planned), job)| {
        let named = |(worker, failure)| (job.name.as_str(), worker, failure);
        members(planned, job).into_iter().map(named)
    })
    .collect()
}

/// The workers of a job, each with its failure; those that a job did not get have its failure.
fn members<'a>(planned: &Job, job: &'a JobResult) -> Vec<(&'a WorkerResult, Option<&'a Failure>)> {
    static NONE: LazyLock<WorkerResult> = LazyLock::new(WorkerResult::default);
    if job.workers().is_empty() {
        return vec![(&NONE, job.failure.as_ref()); planned.clones.max(1) as usize];
    }
    let blamed = job.workers().iter().any(|w| w.failure.is_some());
    let whole = job.failure.as_ref().filter(|_| !blamed);
    job.workers()
        .iter()
        .enumerate()
        .map(|(i, w)| (w, w.failure.as_ref().or(whole.filter(|_| i == 0))))
        .collect()
}

/// Totals of one kind over a group's entries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Total {
    pub(super) bytes: u64,
    /// Slowest and fastest entry, bytes per second.
    pub(super) rates: (u64, u64),
    /// Shortest and longest runtime of an entry.
    pub(super) runtimes_ns: (u64, u64),
}

impl Total {
    /// All bytes over the longest runtime.
    pub(super) fn bytes_per_s(&self) -> u64 {
        per_second(self.bytes, self.runtimes_ns.1)
    }

    /// The share of a member's mean bandwidth in KiB per second, of which fio takes whole ones.
    #[expect(clippy::cast_precision_loss, reason = "printed with two decimals")]
    pub(super) fn share_of(&self, kib_per_s: f64) -> f64 {
        let all = self.bytes_per_s();
        if all > 1024 {
            (kib_per_s.trunc() * 100.0 * 1024.0 / all as f64).min(100.0)
        } else {
            100.0
        }
    }
}

/// Totals of a group: of each data kind by [`Kind::index`], and of all together; nothing for what
/// did not occur.
pub(super) type Totals = [Option<Total>; 4];

/// Where the total of all kinds together is.
pub(super) const TOGETHER: usize = 3;

/// The totals of a group.
pub(super) fn totals(entries: &[FioEntry<'_>], group: usize) -> Totals {
    let of = |figures: fn(&FioEntry<'_>, usize) -> Option<KindSums>, at: usize| {
        let mine = entries.iter().filter(|e| e.group == group);
        total(mine.filter_map(|e| figures(e, at)))
    };
    let kind = |entry: &FioEntry<'_>, at: usize| entry.kinds.get(at).cloned();
    let together = |entry: &FioEntry<'_>, _| entry.together.clone();
    [
        of(kind, 0),
        of(kind, 1),
        of(kind, 2),
        of(together, TOGETHER),
    ]
}

fn total(figures: impl Iterator<Item = KindSums>) -> Option<Total> {
    let ran = figures.filter(|f| f.runtime_ns > 0);
    ran.fold(None, |total: Option<Total>, f| {
        let (rate, time) = (f.bytes_per_s(), f.runtime_ns);
        let t = total.unwrap_or(Total {
            bytes: 0,
            rates: (rate, rate),
            runtimes_ns: (time, time),
        });
        Some(Total {
            bytes: t.bytes + f.bytes,
            rates: (t.rates.0.min(rate), t.rates.1.max(rate)),
            runtimes_ns: (t.runtimes_ns.0.min(time), t.runtimes_ns.1.max(time)),
        })
    })
}

/// A part of a whole in percent; 0 of nothing.
#[expect(clippy::cast_precision_loss, reason = "printed with two decimals")]
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 * 100.0 / whole as f64
    }
}
