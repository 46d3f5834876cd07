//! Text of a result as `spdk_nvme_perf` has it: a row for each core on each device, the total, latencies.
//!
//! In: a plan that begins, a result, arguments. Out: text, the exit code. Spec: NVMe device measurement, 4.
//! Not here: weir's own report.

use std::collections::BTreeSet;

use weir_schema::{JobResult, Kind, Plan, RunResult, Stage, WorkerResult};
use weir_stats::Histogram;

use super::targets::NAMESPACE;
use super::values::Count;
use super::{PEER, prepare};
use crate::door::Printed;
use crate::given::Given;
use crate::house::{self, RunOptions, calls_peer};
use crate::observer::Observer;

/// Text between a target's name and its core, in a row and in the name of a job.
const FROM_CORE: &str = " from core ";
/// Columns of a target's name above a table of latencies.
const NAME_COLUMNS: usize = 43;
/// Percentiles of a summary.
const CUTS: [f64; 15] = [
    1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.9, 99.99, 99.999, 99.9999,
    99.99999,
];

/// Name of the job of a core on a target, with the engine where there are several.
pub(super) fn context_name(target: &str, engine: Option<&str>, core: u32) -> String {
    let by = engine.map_or_else(String::new, |engine| format!(" by {engine}"));
    format!("{target}{by}{FROM_CORE}{core}")
}

/// The peer's lines before it measures.
#[derive(Debug)]
pub(super) struct Beginning {
    /// Share of each namespace that is done, where `-d` states it.
    percent: Option<u64>,
    /// Groups that only write beforehand.
    before: usize,
}

impl Beginning {
    pub(super) fn of(given: &Given) -> Self {
        let percent = match given.parsed("number-ios", Count::read) {
            Some(Count::Percent(percent)) => Some(percent),
            _ => None,
        };
        let before = prepare::groups_before(given);
        Self { percent, before }
    }
}

impl Observer for Beginning {
    fn begin(&mut self, plan: &Plan) -> String {
        let mut out = String::from("Initializing NVMe Controllers\n");
        let (mut counts, mut controllers) = (BTreeSet::new(), BTreeSet::new());
        let mut pairs = String::new();
        for (_, job) in plan.jobs().filter(|(group, _)| *group >= self.before) {
            let (name, core) = job.name.rsplit_once(FROM_CORE).unwrap_or((&job.name, "0"));
            let controller = name
                .rsplit_once(NAMESPACE)
                .map(|(controller, _)| controller);
            controllers.extend(controller.filter(|name| name.starts_with("PCIE (")));
            counts.extend(job.load().bounds.operations.map(|count| (name, count)));
            push!(pairs, "Associating {name} with lcore {core}\n");
        }
        for controller in controllers {
            push!(out, "Attached to NVMe Controller at {controller}\n");
        }
        if let Some(percent) = self.percent {
            for (name, count) in counts {
                push!(
                    out,
                    "number_ios for namespace {name} set to {count} ({percent}% of namespace size)\n"
                );
            }
        }
        out + &pairs + "Initialization complete. Launching workers.\n"
    }
}

/// Prints a result.
pub(super) fn print(result: &RunResult, given: &Given) -> Printed {
    let measured = result.groups.iter().skip(prepare::groups_before(given));
    let measured = measured.flat_map(|group| &group.jobs);
    let all: Vec<Figures<'_>> = measured.map(Figures::of).collect();
    let done: Vec<&Figures<'_>> = all.iter().filter(|one| one.operations > 0).collect();
    let mut out = table(
        &done,
        result.groups.len() == prepare::groups_before(given) + 1,
    );
    let detail = given.all("enable-sw-latency-tracking").count();
    if detail > 0 {
        for one in &done {
            summary(&mut out, one);
        }
    }
    if detail > 1 {
        for one in &done {
            histogram(&mut out, one);
        }
    }
    let strict = RunOptions::read(given).strict;
    let mut err = errors(result, given) + &prepare::remarks(result);
    err += &strict.complaint(result.warnings.iter()).unwrap_or_default();
    let has_failed = result.failed_jobs() > 0 || all.iter().any(|one| one.errors > 0);
    let code = match house::exit_code(result, &strict) {
        // A signal that ends the run early is no failure of it.
        _ if calls_peer(given) && result.ended_by.is_some() => u8::from(has_failed),
        code => code,
    };
    if has_failed {
        push!(err, "{PEER}: errors occurred\n");
    }
    Printed {
        out,
        err,
        code,
        ..Printed::default()
    }
}

/// Figures of a core on a target.
struct Figures<'a> {
    name: &'a str,
    core: &'a str,
    operations: u64,
    errors: u64,
    per_s: f64,
    mib_per_s: f64,
    latency: Histogram,
}

impl<'a> Figures<'a> {
    fn of(job: &'a JobResult) -> Self {
        let (name, core) = job.name.rsplit_once(FROM_CORE).unwrap_or((&job.name, "0"));
        let mut figures = Self {
            name,
            core,
            operations: 0,
            errors: 0,
            per_s: 0.0,
            mib_per_s: 0.0,
            latency: Histogram::new(),
        };
        job.workers().iter().for_each(|worker| figures.add(worker));
        figures
    }

    fn add(&mut self, worker: &WorkerResult) {
        let seconds = worker.span.map_or(0.0, |span| span.length().as_secs_f64());
        for kind in &worker.kinds {
            self.operations += kind.operations;
            self.errors += kind.errors.values().sum::<u64>();
            if seconds > 0.0 {
                self.per_s += float(kind.operations) / seconds;
                self.mib_per_s += float(kind.bytes.0) / seconds / 1_048_576.0;
            }
            if let Some(latency) = kind.stage(Stage::Rlat).or_else(|| kind.stage(Stage::Lat)) {
                // All are of one precision, and their counts fit.
                let _ = self.latency.merge(latency);
            }
        }
    }

    /// The end of a row.
    fn columns(&self) -> String {
        let [average, min, max] = latencies(&self.latency);
        format!(
            ": {:10.2} {:10.2} {average:10.2} {min:10.2} {max:10.2}\n",
            self.per_s, self.mib_per_s
        )
    }
}

/// Mean, least and greatest in microseconds.
fn latencies(all: &Histogram) -> [f64; 3] {
    let mean = all.mean().unwrap_or(0.0);
    let [min, max] = [all.min(), all.max()].map(|ns| float(ns.unwrap_or(0)));
    [mean, min, max].map(|ns| ns / 1000.0)
}

/// The table; engines that had their turns one after the other have no total.
fn table(all: &[&Figures<'_>], has_total: bool) -> String {
    let mut out = String::new();
    let rule = "=".repeat(56);
    let longest = all
        .iter()
        .map(|one| one.name.chars().count())
        .max()
        .unwrap_or(0);
    push!(out, "{rule}\n{:>1$}\n", "Latency(us)", longest + 60);
    push!(out, "{:<1$}:", "Device Information", longest + 13);
    for head in ["IOPS", "MiB/s", "Average", "min", "max"] {
        push!(out, " {head:>10}");
    }
    out.push('\n');
    if all.is_empty() {
        return out;
    }
    let mut total = Figures {
        name: "Total",
        core: "",
        operations: 0,
        errors: 0,
        per_s: 0.0,
        mib_per_s: 0.0,
        latency: Histogram::new(),
    };
    for one in all {
        push!(
            out,
            "{:<longest$}{FROM_CORE}{:>2}{}",
            one.name,
            one.core,
            one.columns()
        );
        total.per_s += one.per_s;
        total.mib_per_s += one.mib_per_s;
        // Of one precision, as above.
        let _ = total.latency.merge(&one.latency);
    }
    if !has_total {
        push!(out, "{rule}\n\n");
        return out;
    }
    push!(
        out,
        "{rule}\n{:<1$}{2}\n",
        total.name,
        longest + 13,
        total.columns()
    );
    out
}

/// The line above a table of latencies.
fn title(out: &mut String, what: &str, one: &Figures<'_>, rule: usize) {
    let name: String = one.name.chars().take(NAME_COLUMNS).collect();
    let core = one.core;
    push!(
        out,
        "{what} for {name:<NAME_COLUMNS$}{FROM_CORE}{core}:\n{}\n",
        "=".repeat(rule)
    );
}

/// Percentiles: of each the end of the bucket that reaches it.
fn summary(out: &mut String, one: &Figures<'_>) {
    title(out, "Summary latency data", one, 81);
    let mut cuts = CUTS.into_iter().peekable();
    for bucket in cumulative(&one.latency) {
        while let Some(cut) = cuts.next_if(|cut| bucket.percent >= *cut) {
            push!(out, "{cut:9.5}% : {:9.3}us\n", bucket.end_us);
        }
    }
    out.push('\n');
}

fn histogram(out: &mut String, one: &Figures<'_>) {
    title(out, "Latency histogram", one, 78);
    out.push_str("       Range in us     Cumulative    IO count\n");
    for bucket in cumulative(&one.latency) {
        push!(
            out,
            "{:9.3} - {:9.3}: {:9.4}%  ({:9})\n",
            bucket.start_us,
            bucket.end_us,
            bucket.percent,
            bucket.count
        );
    }
    out.push('\n');
}

/// Bucket of a histogram, with the share of all values up to its end.
struct Cumulative {
    start_us: f64,
    end_us: f64,
    percent: f64,
    count: u64,
}

fn cumulative(all: &Histogram) -> impl Iterator<Item = Cumulative> + '_ {
    let mut below = 0_u64;
    all.buckets().map(move |bucket| {
        below = below.saturating_add(bucket.count);
        Cumulative {
            start_us: float(bucket.low) / 1000.0,
            end_us: float(bucket.high.saturating_add(1)) / 1000.0,
            percent: float(below) * 100.0 / float(all.count()),
            count: bucket.count,
        }
    })
}

/// A line for each I/O that failed, as far as results name them, or with `-Q` for each so many; failures of
/// jobs.
fn errors(result: &RunResult, given: &Given) -> String {
    let every = given.whole::<usize>("continue-on-error").unwrap_or(1);
    let mut out = String::new();
    let workers = result.jobs().flat_map(JobResult::workers);
    let failed = workers.flat_map(|worker| &worker.reported_errors);
    for failure in failed.skip(every - 1).step_by(every) {
        if every > 1 {
            push!(out, "Message suppressed {} times: ", every - 1);
        }
        let is_read = failure
            .kind
            .as_ref()
            .is_some_and(|kind| *kind == Kind::Read);
        let kind = if is_read { "Read" } else { "Write" };
        if let Some(errno) = failure.errno {
            push!(out, "{kind} completed with error (errno={errno})\n");
        } else {
            push!(out, "{kind} completed with error ({})\n", failure.message);
        }
    }
    for job in result.jobs() {
        if let Some(failure) = &job.failure {
            push!(out, "{}: {}\n", job.name.escape_debug(), failure.message);
        }
    }
    out
}

#[expect(clippy::cast_precision_loss, reason = "figures for the eye")]
fn float(n: u64) -> f64 {
    n as f64
}
