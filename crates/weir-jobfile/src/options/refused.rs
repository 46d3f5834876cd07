//! Options whose machinery does not exist in this version: refused by name, with the nearest
//! that works. Values that ask for nothing are accepted.

use super::record::{Category, OptionRecord, refused};

const NO_VERIFY: &str = "written blocks are verified without trims among them; leave it out";
const NO_REPLAY: &str = "recorded patterns are not built in yet";
const NO_DEDUPE: &str = "only dedupe_percentage is supported";

const fn verify(name: &'static str, short: &'static str) -> OptionRecord {
    refused(name, short, NO_VERIFY).of(Category::Verify)
}

const fn replay(name: &'static str, short: &'static str) -> OptionRecord {
    refused(name, short, NO_REPLAY).of(Category::Pattern)
}

pub(super) static RECORDS: &[OptionRecord] = &[
    verify("experimental_verify", "Another verification").neutral(&["0"]),
    verify("trim_percentage", "Share of verified blocks to trim").neutral(&["0"]),
    verify("trim_verify_zero", "Trimmed blocks must read as zeros"),
    verify("trim_backlog", "Trim after so many writes"),
    verify("trim_backlog_batch", "Blocks trimmed at once"),
    refused(
        "block_error_percentiles",
        "Histogram of trim errors",
        "errors are counted by code",
    )
    .of(Category::Report)
    .neutral(&["0"]),
    refused(
        "error_dump",
        "Print each error",
        "errors are counted by code",
    )
    .of(Category::Report)
    .neutral(&["0"]),
    replay("write_iolog", "Store the pattern"),
    replay("read_iolog", "Replay a pattern"),
    replay("read_iolog_chunked", "Read the pattern in pieces").neutral(&["0"]),
    replay("replay_no_stall", "Replay without pauses").neutral(&["0"]),
    replay("replay_redirect", "Replay onto this device"),
    replay("replay_scale", "Scale of replayed offsets").neutral(&["1"]),
    replay("replay_align", "Alignment of replayed offsets").neutral(&["0"]),
    replay("replay_time_scale", "Scale of replayed time").neutral(&["100"]),
    replay("replay_skip", "Kinds that are not replayed"),
    replay("merge_blktrace_file", "Merged trace"),
    replay("merge_blktrace_scalars", "Scale of each trace"),
    replay("merge_blktrace_iters", "Passes over each trace"),
    refused(
        "io_submit_mode",
        "Who submits",
        "the nearest is rate_iops with open_loop=1",
    )
    .of(Category::Engine)
    .neutral(&["inline"]),
    refused("atomic", "Atomic writes", "the nearest is direct=1")
        .of(Category::Engine)
        .neutral(&["0"]),
    refused(
        "write_barrier",
        "Barrier writes",
        "the nearest is fdatasync=N",
    )
    .of(Category::Engine)
    .neutral(&["0"]),
    refused("dedupe_mode", "How blocks repeat", NO_DEDUPE)
        .of(Category::Content)
        .neutral(&["repeat"]),
    refused(
        "dedupe_working_set_percentage",
        "Blocks to repeat",
        NO_DEDUPE,
    )
    .of(Category::Content),
    refused("dedupe_global", "Repeat blocks across jobs", NO_DEDUPE)
        .of(Category::Content)
        .neutral(&["0"]),
];
