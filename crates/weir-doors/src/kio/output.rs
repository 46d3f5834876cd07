//! Printed form of a result: the sections of kio.py, its YAML and its rows.
//!
//! In: a result. Out: text, files with their text. Not here: weir's own forms (`weir-report`), writing
//! files.

use weir_schema::{Plan, RunResult};
use weir_units::Date;

use super::figures::Figures;
use super::number::{counted, figure};
use super::points::{self, PointResult, has_module};
use super::quoting::{line, quoted};
use super::settings::{Field, Settings};
use super::{config, job, own_version, remarks};
use crate::door::{Printed, PrintedFile};
use crate::given::{Given, GivenFlags};
use crate::house::{RunFormat, RunOptions, exit_code};
use crate::machine::Machine;

/// Columns of a row that are not of a thread's settings: those before, those behind.
const BEFORE: [&str; 6] = [
    "timestamp",
    "hostname",
    "kio_version",
    "label",
    "num_threads",
    "runtime_seconds",
];
const BEHIND: [&str; 6] = [
    "completed",
    "lat_usec",
    "slat_usec",
    "clat_usec",
    "iops",
    "bw_MBps",
];
const NANOS: u64 = 1_000_000_000;

/// Display of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KioOptions {
    /// The name of the run.
    label: String,
    /// The older arithmetic of the summary.
    legacy_summary: bool,
    /// Offset of local time from UTC in seconds, positive to the east.
    utc_offset_s: i64,
}

/// Flag that asks for one of kio.py's forms, or for the whole result instead of a report. That of the link
/// is the usual one.
pub(super) fn peers_form(given: &Given) -> Option<&'static str> {
    let is_usual = given.link == Some("kio.py") && given.is("format", "kio");
    let has_form = !given.is("format", "table") && !is_usual;
    let traces = given.has("trace-offsets").then_some("trace-offsets");
    has_form.then_some("format").or(traces)
}

/// The form that is printed: by the voice of the peer that of kio.py where no other is named.
fn format(given: &Given) -> Option<&str> {
    if given.house.is("voice", "peer") && !given.has("format") {
        return Some("kio");
    }
    given.text("format")
}

/// Reads the display from the flags.
pub(super) fn options(given: &GivenFlags, utc_offset_s: i64) -> KioOptions {
    KioOptions {
        label: given.text("label").unwrap_or_default().to_owned(),
        legacy_summary: given.has("legacy-summary"),
        utc_offset_s,
    }
}

/// Text of a result, and files with their text.
pub(super) fn print(result: &RunResult, given: &Given, machine: &dyn Machine) -> Printed {
    let options = &options(given, machine.utc_offset_s());
    let mut out = traced(result, given.number("trace-offsets"), machine);
    let report = match format(given) {
        Some("kio") => {
            out += &sections(result, options);
            None
        }
        Some("csv") => {
            out += &rows(result, options);
            None
        }
        Some("yaml") => {
            out += &yaml(result, options);
            None
        }
        Some("json") => Some(RunFormat::Json),
        _ => {
            push!(out, "{}\n", engine_line(&result.plan));
            Some(RunFormat::Text)
        }
    };
    let strict = RunOptions::read(given).strict;
    let mut err = String::new();
    if report != Some(RunFormat::Text) {
        complain(&mut err, result);
    }
    let raised = result.warnings.iter();
    err += &strict.complaint(raised).unwrap_or_default();
    Printed {
        out,
        err,
        report,
        code: exit_code(result, &strict),
        files: files(result, given, options),
    }
}

/// Prints the failures, and the work that a run that ended early left undone.
fn complain(err: &mut String, result: &RunResult) {
    for job in result.jobs() {
        if let Some(failure) = &job.failure {
            let name = job.name.escape_debug();
            push!(err, "error: {name}: {}\n", failure.message);
        }
    }
    for undone in points::left_undone(result) {
        push!(err, "warning: INCOMPLETE: {undone}\n");
    }
}

/// Rows and reports; a run that was ended before its first point has nothing to add or to replace.
fn files(result: &RunResult, given: &GivenFlags, options: &KioOptions) -> Vec<PrintedFile> {
    let file = |flag, text: fn(&RunResult, &KioOptions) -> String, appends| {
        given.text(flag).map(|path| PrintedFile {
            path: path.to_owned(),
            text: text(result, options),
            appends,
        })
    };
    if points::begun(result).next().is_none() {
        return Vec::new();
    }
    let files = [
        file("output-csv", rows, true),
        file("output-yaml", yaml, false),
    ];
    files.into_iter().flatten().collect()
}

/// A line for each of the first operations of each thread.
fn traced(result: &RunResult, count: u32, machine: &dyn Machine) -> String {
    let mut out = String::new();
    if count == 0 {
        return out;
    }
    let jobs = result.plan.jobs().zip(result.jobs());
    for (thread, ((_, job), done)) in jobs.enumerate() {
        for worker in done.workers() {
            for (kind, offset) in machine.first_operations(job, worker.number, count) {
                push!(out, "trace {thread} {} {offset}\n", kind.name());
            }
        }
    }
    out
}

/// Difference of a head from kio.py's. Columns with the same names are those of another end.
pub(super) fn unlike(head: &str, found: &str) -> String {
    let columns = |head: &str| {
        let columns = head.trim_end().split(',');
        columns.map(|c| format!("'{c}'")).collect::<Vec<_>>()
    };
    let (own, other) = (columns(head), columns(found));
    if own == other {
        return "its lines end with LF, and those of these rows with CR LF\n  help: name another file, or \
                convert this one (`unix2dos`)"
            .to_owned();
    }
    format!(
        "its columns are others\ncolumns:  [{}]\nexisting: [{}]\n  help: name another file",
        own.join(", "),
        other.join(", ")
    )
}

/// A point, with its display.
struct Shown<'a> {
    point: PointResult<'a>,
    result: &'a RunResult,
    options: &'a KioOptions,
}

/// Points that ran, at least in part. The others have nothing to show.
fn shown<'a>(result: &'a RunResult, options: &'a KioOptions) -> impl Iterator<Item = Shown<'a>> {
    points::begun(result).map(move |point| Shown {
        point,
        result,
        options,
    })
}

/// Line with the engine that made the I/Os.
fn engine_line(plan: &Plan) -> String {
    let engine = engine(plan);
    let note = match (engine.as_str(), has_module(plan)) {
        ("kernel", _) => "no system call in the measured path",
        (_, Some(false)) => "kernel module not loaded; includes the system-call boundary",
        _ => "includes the system-call boundary",
    };
    let place = match engine.as_str() {
        "kernel" => "kernel/bio".to_owned(),
        other => format!("user/{other}"),
    };
    format!("engine: {place} ({note})")
}

fn engine(plan: &Plan) -> String {
    let first = plan.jobs().next();
    first.map_or_else(String::new, |(_, job)| job.engine.name.clone())
}

/// `weir-0.1.0+uring`.
fn version(plan: &Plan) -> String {
    let engine = engine(plan);
    let short = match engine.as_str() {
        "io_uring" => "uring",
        "libaio" => "aio",
        "psync" => "sync",
        other => other,
    };
    format!("{}+{short}", own_version())
}

pub(super) fn sections(result: &RunResult, options: &KioOptions) -> String {
    let mut out = format!("# {}\n", engine_line(&result.plan));
    push!(out, "KIO version {}\n", version(&result.plan));
    for shown in shown(result, options) {
        let seconds = planned_seconds(&shown.point);
        configuration(&mut out, &shown.point, seconds);
        heading(&mut out, "Running");
        heading(&mut out, "Results");
        push!(out, "{}{}\n", shown.results(), shown.remarks());
    }
    if let Some(missing) = points::not_begun(result) {
        push!(out, "# INCOMPLETE: {missing}\n");
    }
    out
}

/// Text of a dry run: planned work, and the sections that come before a run.
pub(super) fn dry_text(plan: &Plan) -> String {
    let result = RunResult::of(plan.clone());
    let mut out = remarks::planned(plan).join("\n");
    push!(out, "\n# {}\n", engine_line(plan));
    push!(out, "KIO version {}\n", version(plan));
    for point in points::planned(&result) {
        configuration(&mut out, &point, planned_seconds(&point));
    }
    out
}

/// The section with the settings of a point.
fn configuration(out: &mut String, point: &PointResult<'_>, seconds: u64) {
    heading(out, "Current config");
    if let Some(title) = point.title() {
        push!(out, "# {title}\n");
    }
    push!(out, "{}\n", config::text(seconds, &settings(point), 0));
}

fn settings(point: &PointResult<'_>) -> Vec<Settings> {
    point.jobs.iter().filter_map(job::settings).collect()
}

/// Seconds that a point was to run for.
fn planned_seconds(point: &PointResult<'_>) -> u64 {
    point.runtime().map_or(0, |runtime| runtime.0 / NANOS)
}

/// Seconds that a point ran for: the planned time, or the measured one where it ended early.
fn runtime_seconds(point: &PointResult<'_>) -> String {
    point.cut_after().map_or_else(
        || planned_seconds(point).to_string(),
        |ran| figure(ran.as_secs_f64()),
    )
}

fn heading(out: &mut String, name: &str) {
    push!(out, "{}\n{name}...\n", "-".repeat(62));
}

impl Shown<'_> {
    fn threads(&self) -> Vec<Figures> {
        self.point.group.jobs.iter().map(Figures::of).collect()
    }

    fn summary(&self, threads: &[Figures]) -> Figures {
        let total = Figures::total(threads.iter().copied());
        if self.options.legacy_summary {
            total.legacy(threads.len())
        } else {
            total
        }
    }

    /// Log lines, the summary, the threads.
    fn results(&self) -> String {
        let threads = self.threads();
        let summary = self.summary(&threads);
        let mut out = String::new();
        let names = (0..threads.len()).map(|n| format!("thread[{n}]"));
        let lines = names.chain(["summary".to_owned()]);
        let figures = threads.iter().chain([&summary]);
        for (number, (name, figures)) in lines.zip(figures).enumerate() {
            let dash = if number == 0 { "-   -" } else { "    -" };
            push!(out, "{dash} '{}'\n", log_line(&name, figures));
        }
        out.push_str(&map(&summary, "-   ", "    "));
        for (number, figures) in threads.iter().enumerate() {
            let dash = if number == 0 { "-   " } else { "    " };
            push!(
                out,
                "{dash}{number}:\n{}",
                map(figures, "        ", "        ")
            );
        }
        out
    }

    /// Comments behind the results.
    fn remarks(&self) -> String {
        let mut out = String::new();
        let jobs = self.point.jobs.iter().zip(&self.point.group.jobs);
        for (number, (job, done)) in jobs.enumerate() {
            for remark in remarks::of(job, done) {
                push!(out, "# thread {number}: {remark}\n");
            }
        }
        if let Some(ending) = self.point.ending(self.result) {
            push!(out, "# INCOMPLETE: {ending}\n");
        }
        out
    }

    /// Label, with a suffix for a pass that reads back.
    fn label(&self) -> String {
        let pass = if self.point.name.reads_back {
            "read back"
        } else {
            ""
        };
        let parts = [self.options.label.as_str(), pass].into_iter();
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        parts.join(" ")
    }

    fn row(&self) -> Vec<String> {
        let threads = self.threads();
        let summary = self.summary(&threads);
        let settings = settings(&self.point);
        let mut row = vec![
            timestamp(self.result, self.options),
            hostname(self.result).to_owned(),
            version(&self.result.plan),
            self.label(),
            threads.len().to_string(),
            runtime_seconds(&self.point),
        ];
        row.extend(Field::ALL.map(|field| distinct(&settings, field)));
        row.extend([
            summary.completed.to_string(),
            figure(summary.lat_usec()),
            figure(summary.slat_usec),
            figure(summary.clat_usec),
            counted(summary.iops),
            figure(summary.bandwidth),
        ]);
        row
    }

    fn document(&self) -> String {
        let threads = self.threads();
        let summary = self.summary(&threads);
        let mut out = String::new();
        if let Some(title) = self.point.title() {
            push!(out, "# {title}\n");
        }
        if let Some(ending) = self.point.ending(self.result) {
            push!(out, "# INCOMPLETE: {ending}\n");
        }
        let config = config::text(runtime_seconds(&self.point), &settings(&self.point), 1);
        push!(out, "config:\n{config}results:\n");
        push!(
            out,
            "    summary:\n{}",
            map(&summary, "        ", "        ")
        );
        out.push_str("    threads:\n");
        for (number, figures) in threads.iter().enumerate() {
            let figures = map(figures, "            ", "            ");
            push!(out, "        {number}:\n{figures}");
        }
        push!(out, "run_label: {}\n", quoted(&self.label()));
        push!(
            out,
            "system:\n    hostname: {}\n",
            quoted(hostname(self.result))
        );
        push!(out, "    kio_version: {}\n", version(&self.result.plan));
        let time = timestamp(self.result, self.options);
        push!(out, "    timestamp: {time}\n");
        out
    }
}

/// The line of the kernel log.
fn log_line(name: &str, figures: &Figures) -> String {
    format!(
        "kio: {name}: completed={} lat={:.3}({:.3}+{:.3}) iops={:.0} MB/s={:.3}",
        figures.completed,
        figures.lat_usec(),
        figures.slat_usec,
        figures.clat_usec,
        figures.iops.trunc(),
        figures.bandwidth
    )
}

/// The six figures with sorted keys.
fn map(figures: &Figures, first: &str, others: &str) -> String {
    let lines = [
        ("bw_MBps", figure(figures.bandwidth)),
        ("clat_usec", figure(figures.clat_usec)),
        ("completed", figures.completed.to_string()),
        ("iops", counted(figures.iops)),
        ("lat_usec", figure(figures.lat_usec())),
        ("slat_usec", figure(figures.slat_usec)),
    ];
    let mut out = String::new();
    for (number, (key, value)) in lines.into_iter().enumerate() {
        let indent = if number == 0 { first } else { others };
        push!(out, "{indent}{key}: {value}\n");
    }
    out
}

fn hostname(result: &RunResult) -> &str {
    result.host.hostname.as_deref().unwrap_or_default()
}

/// `2026/11/23 13:08:51`, when the run began.
fn timestamp(result: &RunResult, options: &KioOptions) -> String {
    let seconds = i64::try_from(result.started_unix_ns / NANOS).unwrap_or(0);
    let local = seconds.saturating_add(options.utc_offset_s);
    let date = Date::of_unix_day(local.div_euclid(86_400));
    let second = local.rem_euclid(86_400);
    format!(
        "{:04}/{:02}/{:02} {:02}:{:02}:{:02}",
        date.year,
        date.month,
        date.day,
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// The values of all threads, each once, in their order.
fn distinct(settings: &[Settings], field: Field) -> String {
    let mut values: Vec<String> = Vec::new();
    for thread in settings {
        let value = thread.get(field).to_string();
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values.join("/")
}

/// A report for each point that ran.
pub(super) fn yaml(result: &RunResult, options: &KioOptions) -> String {
    let documents: Vec<String> = shown(result, options).map(|p| p.document()).collect();
    documents.join("---\n")
}

/// The head of the rows.
pub(super) fn head() -> String {
    let settings = Field::ALL.map(|field| field.setting().name);
    let columns = BEFORE.into_iter().chain(settings).chain(BEHIND);
    line(columns.map(str::to_owned))
}

/// The head, and a row for each point that ran.
pub(super) fn rows(result: &RunResult, options: &KioOptions) -> String {
    let rows = shown(result, options).map(|shown| line(shown.row().into_iter()));
    head() + &rows.collect::<String>()
}
