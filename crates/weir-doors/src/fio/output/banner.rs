//! Text that fio prints before and during the run: a banner for each job, the version, how many
//! workers start, why workers failed.

use std::collections::HashSet;

use weir_schema::{
    BlockWorkload, Failure, Finding, Job, Kind, KindName, Plan, RunResult, Warning, Workload,
};

use super::entry::{Formats, all_members};
use super::mismatch::mismatches;
use super::numbers::{FigureUnit, scaled};
use super::{FioTextOptions, errno_of, strerror, verror, version_text};
use crate::fio::echo::{asked_depth, word};

/// The banners, the version line and the line about the workers that start.
pub fn banner(plan: &Plan, options: FioTextOptions, weir_version: &str) -> String {
    let mut out = String::new();
    for (group, job) in plan.jobs() {
        let Workload::Block(work) = &job.workload else {
            continue;
        };
        // fio has no such line for engines that do no I/O.
        if matches!(word(plan, job, "ioengine"), Some("cpuio" | "exec")) {
            continue;
        }
        out.push_str(&job_line(plan, group, job, work));
        if job.clones > 1 {
            out.push_str("...\n");
        }
    }
    let workers: u64 = plan.jobs().map(|(_, job)| u64::from(job.clones)).sum();
    let plural = if workers == 1 { "" } else { "s" };
    out.push_str(&version_text(options, weir_version, " "));
    push!(out, "\nStarting {workers} thread{plural}\n");
    out
}

fn job_line(plan: &Plan, group: usize, job: &Job, work: &BlockWorkload) -> String {
    let Formats { base, digits, .. } = Formats::of(plan, job);
    let size = |kind| {
        let size = work.sizes.size.of(kind);
        let text = |bytes| scaled(bytes, digits, base, FigureUnit::Byte);
        format!("{}-{}", text(size.min().0), text(size.max().0))
    };
    let last = if work.sizes.by_pattern {
        "bs_is_seq_rand".to_owned()
    } else {
        format!("(T) {}", size(Kind::Trim))
    };
    format!(
        "{}: (g={group}): rw={}, bs=(R) {}, (W) {}, {last}, ioengine={}, iodepth={}\n",
        job.name,
        direction(plan, job, work),
        size(Kind::Read),
        size(Kind::Write),
        word(plan, job, "ioengine").unwrap_or(&job.engine.name),
        asked_depth(plan, job)
    )
}

/// The word of the job file, or what the mix amounts to.
fn direction(plan: &Plan, job: &Job, work: &BlockWorkload) -> String {
    if let Some(given) = word(plan, job, "rw") {
        let given = given.split(':').next().unwrap_or(given);
        return if given == "readwrite" { "rw" } else { given }.to_owned();
    }
    let mix = &work.mix;
    let word = match (
        mix.has(Kind::Read),
        mix.has(Kind::Write),
        mix.has(Kind::Trim),
    ) {
        _ if mix.trim_then_write => "trimwrite",
        (true, true, _) => "rw",
        (_, true, _) => "write",
        (_, _, true) => "trim",
        _ => "read",
    };
    format!("{}{word}", if work.access.random { "rand" } else { "" })
}

/// Workers that failed; of a job that failed before it had any, all of its clones.
pub(crate) fn failed_workers(result: &RunResult) -> usize {
    let members = all_members(result);
    members.iter().filter(|(.., f)| f.is_some()).count()
}

/// Warnings that say that something was lost; fio has no other place for them.
const LOSSES: &[&str] = &["dump-lost", "fault-idle", "log"];

/// Failure of each job that failed, in weir's words and then in fio's; what clones have
/// in common is said once, what was printed before the run (name and message) not again. Then logs
/// that are not whole.
pub fn complaints(result: &RunResult, printed_before: &[(String, String)]) -> String {
    let mut out = String::new();
    let mut said = HashSet::new();
    for job in result.jobs() {
        for worker in job.workers() {
            out.push_str(&mismatches(worker));
            out.extend(
                worker
                    .reported_errors
                    .iter()
                    .map(|failed| finding(&job.name, failed)),
            );
        }
    }
    for (name, _, failure) in all_members(result) {
        let Some(failure) = failure else { continue };
        if !said.insert((name, &failure.message)) {
            continue;
        }
        let is_printed = |(job, why): &(String, String)| job == name && *why == failure.message;
        if !printed_before.iter().any(is_printed) {
            push!(out, "fio: {name}: {}\n", failure.message);
        }
        match failure.cause.as_str() {
            "create" => out.push_str("fio: file creation disallowed by allow_file_create=0\n"),
            "direct_io" => {
                let line = "fio: looks like your file system does not support direct=1/buffered=0";
                push!(out, "{line}\n");
            }
            "no_size" => push!(out, "{name}: you need to specify size=\n"),
            "bad_offset" => push!(out, "{name}: you need to specify valid offset=\n"),
            "too_small" => {
                out.push_str("fio: size too small, must not be less than minimum block size\n");
            }
            _ => {}
        }
        out.push_str(&finding(name, failure));
    }
    let losses = result.warnings.iter();
    out.extend(losses.filter(|w| LOSSES.contains(&w.id.as_str())).map(line));
    out
}

/// That less was verified than was asked for: nothing went wrong, but people should know.
pub fn reservations(result: &RunResult) -> String {
    let warnings = result.warnings.iter();
    warnings
        .filter(|w| w.id == "unverified")
        .map(line)
        .collect()
}

fn line(warning: &Warning) -> String {
    let job = warning.job.as_deref();
    let job = job.map_or(String::new(), |job| format!("{job}: "));
    format!("fio: {job}{}\n", warning.cause)
}

/// Lines of fio about figures that a failure has, and about operations that failed.
fn finding(name: &str, failure: &Failure) -> String {
    let target = failure.target.as_deref().unwrap_or("-");
    let kind = failure.kind.as_ref().map_or("", KindName::as_str);
    let offset = failure.offset_bytes.unwrap_or_default().0;
    let length = failure.length_bytes.unwrap_or_default().0;
    match &failure.finding {
        Some(Finding::BytesBelowMinimum {
            limit_bytes_per_s: limit,
            found_bytes_per_s: found,
        }) => format!(
            "{name}: rate_min={:.0}B/s not met, got {:.0}B/s\n",
            limit.0, found.0
        ),
        Some(Finding::OpsBelowMinimum {
            limit_per_s: limit,
            found_per_s: found,
        }) => format!(
            "{name}: rate_iops_min={:.0} not met, got {:.0} IOPS\n",
            limit.0, found.0
        ),
        Some(Finding::LatencyAboveMaximum { limit_ns, found_ns }) => format!(
            "fio: latency of {} nsec exceeds specified max ({} nsec): {target} {kind} {offset} \
             {length}\n",
            found_ns.0, limit_ns.0
        ),
        None if failure.cause == "io" => format!(
            "fio: io_u error on file {target}: {}: {kind} offset={offset}, buflen={length}\n",
            strerror(errno_of(failure))
        ),
        Some(Finding::Mismatch(_)) | None => String::new(),
    }
}

/// One line for each worker that failed.
pub fn failures(result: &RunResult) -> String {
    let mut out = String::new();
    for (_, worker, failure) in all_members(result) {
        if let Some(failure) = failure {
            let pid = worker.thread_id.unwrap_or(0);
            push!(
                out,
                "fio: pid={pid}, err={}/{}\n",
                errno_of(failure),
                verror(failure)
            );
        }
    }
    out
}

/// Line of fio when a signal ends the run.
pub fn signal_notice(signal: i32) -> String {
    format!("\nfio: terminating on signal {signal}\n")
}
