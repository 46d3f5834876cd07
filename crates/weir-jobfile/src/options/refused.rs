//! Options whose machinery does not exist in this version: refused by name, with the nearest
//! that works. Values that ask for nothing are accepted.

use super::record::{Category, OptionRecord, refused};

const NO_VERIFY: &str = "written blocks are verified without trims among them; leave it out";
const NO_ZONES: &str = "zoned modes are not built in yet; offset, size and io_size set a region";
const NO_REPLAY: &str = "recorded patterns are not built in yet";
const NO_NUMA: &str = "NUMA binding by node is not built in; cpus_allowed pins, and memory follows";
const NO_PRIO: &str = "I/O priorities are not supported; the nearest is nice";
const NO_EXEC: &str = "run the command around weir";
const NO_USER: &str = "workers are threads of one process; start weir as that user";
const NO_CGROUP: &str = "start weir inside the cgroup, e.g. with systemd-run";
const NO_DEDUPE: &str = "only dedupe_percentage is supported";

const fn verify(name: &'static str, short: &'static str) -> OptionRecord {
    refused(name, short, NO_VERIFY).of(Category::Verify)
}

const fn zone(name: &'static str, short: &'static str) -> OptionRecord {
    refused(name, short, NO_ZONES)
        .of(Category::Pattern)
        .neutral(&["0"])
}

const fn replay(name: &'static str, short: &'static str) -> OptionRecord {
    refused(name, short, NO_REPLAY).of(Category::Pattern)
}

const fn process(name: &'static str, short: &'static str, nearest: &'static str) -> OptionRecord {
    refused(name, short, nearest).of(Category::Process)
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
    zone("zonemode", "Zones").neutral(&["none"]),
    zone("zonesize", "Data per zone"),
    zone("zonecapacity", "Capacity of a zone"),
    zone("zonerange", "Size of a zone"),
    zone("zoneskip", "Space between zones"),
    zone("read_beyond_wp", "Read beyond the write pointer"),
    zone("max_open_zones", "Zones open at once"),
    zone("job_max_open_zones", "Zones open at once in a job"),
    zone("ignore_zone_limits", "Ignore the device's limits"),
    zone("zone_reset_threshold", "When zones are reset"),
    zone("zone_reset_frequency", "How often zones are reset"),
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
    process("exec_prerun", "Command before the job", NO_EXEC),
    process("exec_postrun", "Command after the job", NO_EXEC),
    process("uid", "User of the job", NO_USER),
    process("gid", "Group of the job", NO_USER),
    process("cgroup", "Control group of the job", NO_CGROUP),
    process("cgroup_nodelete", "Keep the control group", NO_CGROUP).neutral(&["0"]),
    process("cgroup_weight", "Weight of the control group", NO_CGROUP),
    process("prio", "I/O priority", NO_PRIO),
    process("prioclass", "Class of the I/O priority", NO_PRIO),
    process("numa_cpu_nodes", "CPUs of these NUMA nodes", NO_NUMA),
    process("numa_mem_policy", "Memory of these NUMA nodes", NO_NUMA).neutral(&["default"]),
    process(
        "lockmem",
        "Lock this much memory",
        "use a memory limit of a cgroup",
    )
    .neutral(&["0"]),
    process(
        "profile",
        "A built-in test",
        "write its options into a job file",
    ),
    process(
        "ioscheduler",
        "I/O scheduler of the device",
        "set /sys/block/DEV/queue/scheduler",
    ),
    refused(
        "io_submit_mode",
        "Who submits",
        "the nearest is rate_iops with open_loop=1",
    )
    .of(Category::Engine)
    .neutral(&["inline"]),
    refused(
        "serialize_overlap",
        "Wait for overlapping operations",
        "use iodepth=1, or a random map",
    )
    .of(Category::Engine)
    .neutral(&["0"]),
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
    refused(
        "sync_file_range",
        "Flush ranges",
        "the nearest is fdatasync=N",
    )
    .of(Category::Engine),
    refused(
        "file_service_type",
        "Order of files",
        "files are served round robin",
    )
    .neutral(&["roundrobin"]),
    refused(
        "opendir",
        "All files below a directory",
        "name the files: filename=a:b:c",
    ),
    refused("lockfile", "Lock around each operation", "leave it out").neutral(&["none"]),
    refused(
        "file_append",
        "Start at the end of the file",
        "give offset=N",
    )
    .neutral(&["0"]),
    refused(
        "fadvise_hint",
        "Advice to the kernel",
        "no advice is given; invalidate=1 drops the cache",
    )
    .neutral(&["0"]),
    refused("write_hint", "Expected lifetime of data", "leave it out").neutral(&["none"]),
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
