//! Options about logs.

use super::needs;
use super::record::{Category, OptionRecord, ValueKind, meaningless, option, refused};
use crate::value::number::MILLISECONDS;

const AS_IT_RUNS: &str = "logs are written while the job runs, and wait nowhere";

const fn of_log(name: &'static str, short: &'static str) -> OptionRecord {
    option(name, short).of(Category::Log)
}

pub(super) static RECORDS: &[OptionRecord] = &[
    of_log("write_bw_log", "Log of bandwidth")
        .long("Files PREFIX_bw.N.log, N the job's number from 1; the job's name without a prefix. A line for each operation, or for each window of log_avg_msec.")
        .optional_text(|d, v| d.logs.bandwidth.give(v)),
    of_log("write_iops_log", "Log of IOPS")
        .long("Files PREFIX_iops.N.log.")
        .optional_text(|d, v| d.logs.operations.give(v)),
    of_log("write_lat_log", "Log of latencies")
        .long("Files PREFIX_slat.N.log, PREFIX_clat.N.log and PREFIX_lat.N.log, in nanoseconds.")
        .optional_text(|d, v| d.logs.latency.give(v)),
    of_log("write_hist_log", "Log of latency histograms")
        .needs(needs::HISTOGRAM_WINDOW)
        .long("Files PREFIX_clat_hist.N.log, a line for each window of log_hist_msec.")
        .optional_text(|d, v| d.logs.buckets.give(v)),
    of_log("per_job_logs", "Job number in the names of logs")
        .needs(needs::LOG)
        .long("Without it, jobs whose logs have one name share the file.")
        .bool(|d, on| d.logs.numbered = on)
        .default("1"),
    of_log("log_avg_msec", "Averaging window of logs")
        .needs(needs::SERIES)
        .default("0")
        .long("Milliseconds without a suffix; 0 logs each operation.")
        .duration(MILLISECONDS, |d, t| d.logs.window = t),
    of_log("log_hist_msec", "Window of histogram logs")
        .needs(needs::HISTOGRAMS)
        .default("0")
        .long("Milliseconds without a suffix; 0 leaves them empty.")
        .duration(MILLISECONDS, |d, t| d.logs.bucket_window = t),
    of_log("log_hist_coarseness", "Resolution of histogram logs")
        .needs(needs::HISTOGRAMS)
        .default("0")
        .long("1856 buckets, halved so many times.")
        .integer(0, 6, |d, n| d.logs.coarseness = u8::try_from(n).unwrap_or(6)),
    of_log("log_max_value", "Maximum instead of average")
        .needs(needs::MEAN_LATENCIES)
        .long("Of latencies; a rate is one sample per window.")
        .bool(|d, on| d.logs.maximum = on),
    of_log("log_offset", "Offsets in logs")
        .needs(needs::LOG)
        .bool(|d, on| d.logs.offset = on),
    of_log("log_prio", "Priorities in logs as numbers")
        .needs(needs::LOG)
        .long("As 0x4003: class 2, level 3, of operations; 0x0000 where none is asked for and for windows. Without it 1 stands for the class real time, 0 for the others.")
        .bool(|d, on| d.logs.hex_priority = on),
    of_log("log_unix_epoch", "Times since 1970 in logs")
        .needs(needs::LOG)
        .bool(|d, on| d.logs.since_1970 = on),
    of_log("log_alternate_epoch", "Times of another clock in logs")
        .needs(needs::LOG)
        .long("Of clock 0, which counts from 1970.")
        .bool(|d, on| d.logs.since_1970 = on),
    refused(
        "log_alternate_epoch_clock_id",
        "Which clock",
        "times count from the job's start, or from 1970 with log_unix_epoch=1",
    )
    .of(Category::Log)
    .neutral(&["0"]),
    of_log("log_entries", "Operations that may wait to be written to logs")
        .needs(needs::EACH_OPERATION)
        .default("1024")
        .long("Of each worker. Logs are written as the job runs, and there is room for 262144 in any case; a worker that is faster waits, which counts as preparation of its operations.")
        .integer(1024, 1 << 20, |d, n| d.recording.waiting_operations = super::small(n)),
    meaningless(
        "log_compression",
        ValueKind::Integer {
            min: 1024,
            max: 512 << 20,
        },
        "Compress logs in memory from this size on",
        AS_IT_RUNS,
    )
    .of(Category::Log),
    meaningless(
        "log_compression_cpus",
        ValueKind::Text,
        "CPUs that compress logs",
        AS_IT_RUNS,
    )
    .of(Category::Log),
    of_log("log_store_compressed", "Logs are stored compressed")
        .long("As a zlib stream of their lines in PREFIX_bw.N.log.fz and so on; `--inflate-log=FILE` prints them.")
        .bool(|d, on| d.logs.compressed = on),
];
