//! Flags of `weir kio`: those of the reference program, and weir's own.

use super::settings::{SETTINGS, Setting};
use crate::flags::Flag;
use crate::given::FlagNeed;
use crate::takes::Takes;

pub(super) const THREADS: &str = "Threads";
const TARGET: &str = "Targets and engine";
const BOUNDS: &str = "How much";
const DATA: &str = "Data and safety";
const OUTPUT: &str = "Files and output";
const HELP: &str = "Help";

const RUN: FlagNeed = FlagNeed::new("without `--generate-config`", |g| !g.has("generate-config"));

const UNPLACED: FlagNeed = FlagNeed::new("without `--cpus` and `--generate-config`", |g| {
    !g.has("cpus") && !g.has("generate-config")
});

const SINGLE: FlagNeed = FlagNeed::new("without `--generate-config` and `--compare`", |g| {
    !g.has("generate-config") && !g.has("compare")
});
/// Condition of flags that act without `--compare` only. The reference program takes them with
/// `--generate-config` too.
const UNCOMPARED: FlagNeed = FlagNeed::new("without `--compare`", |g| !g.has("compare"));
const COMPARE: FlagNeed = FlagNeed::new("with `--compare`", |g| g.has("compare"));
const WRITES: FlagNeed = FlagNeed::new("with `--data verify` and `--op write`", |g| {
    g.is("data", "verify") && g.is("op", "write")
});
const LINES: FlagNeed = FlagNeed::new(
    "with `--format kio` or `--format table`, and without `--compare`",
    |g| (g.is("format", "kio") || g.is("format", "table")) && !g.has("compare"),
);

/// Number of [`FLAGS`] that are the reference program's.
pub(super) const REFERENCE: usize = 22;

const fn of(setting: &Setting) -> Flag {
    Flag::with_value(setting.flag, "N", THREADS, setting.help)
        .takes(Takes::Scaled(setting.range.0, setting.range.1))
}

/// All of them, in the order of the help text.
pub const FLAGS: &[Flag] = &[
    Flag::with_value("num-threads", "NUM", THREADS, "Threads on each device; 0: as if not given")
        .takes(Takes::Scaled(0, 1024))
        .letter('t'),
    Flag::with_value("runtime", "SEC", THREADS, "Seconds; 0: as if not given")
        .takes(Takes::Scaled(0, 3600))
        .letter('s'),
    of(&SETTINGS[0]),
    of(&SETTINGS[1]),
    of(&SETTINGS[2]),
    of(&SETTINGS[3]),
    of(&SETTINGS[4]),
    of(&SETTINGS[5]),
    of(&SETTINGS[6]),
    of(&SETTINGS[7]),
    of(&SETTINGS[8]),
    of(&SETTINGS[9]),
    of(&SETTINGS[10]),
    of(&SETTINGS[11]),
    of(&SETTINGS[12]),
    Flag::with_value("label", "STR", OUTPUT, "A name for the run, in YAML and CSV")
        .letter('L')
        .needs(UNCOMPARED)
        .prints(),
    Flag::with_value("generate-config", "YAML", OUTPUT, "Write the configuration and run nothing")
        .letter('g'),
    Flag::with_value("config", "YAML", OUTPUT, "Read the configuration from a file").letter('c'),
    Flag::with_value("output-csv", "CSV", OUTPUT, "Add a row to this file")
        .letter('o')
        .needs(UNCOMPARED),
    Flag::with_value("output-yaml", "YAML", OUTPUT, "Write a report to this file")
        .letter('y')
        .needs(UNCOMPARED),
    Flag::switch("examples", HELP, "Print examples"),
    Flag::switch("version", HELP, "Print the version of the kernel module, or of weir without one"),
    Flag::with_value("device", "PATH", TARGET, "A block device, or a file for the engines of user space")
        .letter('d')
        .repeats(),
    Flag::with_value("engine", "NAME", TARGET, "What carries the I/Os out")
        .choices(&["auto", "kernel", "uring", "aio", "sync", "legacy"])
        .default("auto")
        .needs(SINGLE)
        .long("auto: the kernel module where it is loaded and the target is a block device, else uring."),
    Flag::with_value("complete", "HOW", TARGET, "How completions are taken")
        .choices(&["irq", "spin", "poll"])
        .default("irq")
        .needs(RUN),
    Flag::with_value("cpus", "LIST", TARGET, "A thread on each of these CPUs, as 0,2,4-7")
        .takes(Takes::Cpus)
        .needs(RUN),
    Flag::with_value("numa", "NODE", TARGET, "Run on the CPUs of this node; auto: the device's, where it has one")
        .choices(&["auto"])
        .takes(Takes::Scaled(0, 1023))
        .needs(UNPLACED),
    Flag::with_value("batch", "N", TARGET, "I/Os handed over at once")
        .takes(Takes::Scaled(1, 1024))
        .default("1")
        .needs(RUN),
    Flag::switch("nowait", TARGET, "An I/O that would wait fails instead; for uring and kernel").needs(RUN),
    Flag::with_value("size", "BYTES", BOUNDS, "A thread ends after so many bytes")
        .takes(Takes::Scaled(1, i64::MAX))
        .needs(RUN),
    Flag::with_value("ios", "N", BOUNDS, "A thread ends after so many I/Os")
        .takes(Takes::Scaled(1, i64::MAX))
        .needs(RUN),
    Flag::with_value("ramp", "SEC", BOUNDS, "Run for so long first without counting")
        .takes(Takes::Scaled(0, 3600))
        .default("0")
        .needs(RUN),
    Flag::with_value("interval", "MS", BOUNDS, "Length of the intervals of the time series")
        .takes(Takes::Scaled(1, 3_600_000))
        .default("100")
        .needs(RUN),
    Flag::with_value("sweep", "SETTING=VALUES", BOUNDS, "A run for each value, one after the other")
        .repeats()
        .needs(SINGLE)
        .long(
            "VALUES is 1,2,8, or 1..128*2 for powers, or 0..100+25. Several axes: each with each, \
             the last one changes first.",
        ),
    Flag::with_value("op", "WHAT", DATA, "What is done instead of what the mix says")
        .choices(&["read", "write", "rw", "trim", "flush", "zone-append"])
        .default("rw")
        .needs(RUN),
    Flag::switch("fua", DATA, "A write is over when it is on the medium").needs(RUN),
    Flag::with_value("data", "WHAT", DATA, "What is written")
        .choices(&["zero", "random", "verify"])
        .default("random")
        .needs(RUN),
    Flag::switch("verify", DATA, "Read back what was written, and check it").needs(WRITES),
    Flag::with_value("seed", "N", DATA, "Of the offsets and the mix")
        .takes(Takes::Scaled(1, i64::MAX))
        .default("24301")
        .needs(RUN),
    Flag::with_value("offset-align", "BYTES", DATA, "Random offsets are multiples of it; lbs: of the device's block")
        .choices(&["lbs"])
        .takes(Takes::Scaled(1, 1 << 30))
        .needs(RUN),
    Flag::with_value("mix-unit", "UNIT", DATA, "Draw the direction of each burst, or of each I/O")
        .choices(&["burst", "io"])
        .default("burst")
        .needs(RUN),
    Flag::switch("thread-partition", DATA, "Threads share the region out in equal parts").needs(RUN),
    Flag::with_value("error-limit", "N", DATA, "So many failed I/Os end the run; 0: they are only counted")
        .takes(Takes::Scaled(0, 0xFFFF_FFFF))
        .default("1")
        .needs(RUN),
    Flag::switch(
        "compare",
        BOUNDS,
        "Kernel and user space in turns: what the boundary between them costs",
    )
    .needs(RUN),
    Flag::with_value("rounds", "N", BOUNDS, "So many turns of each side")
        .takes(Takes::Scaled(1, 1000))
        .needs(COMPARE),
    Flag::switch("force", DATA, "Write although the device seems to hold something").needs(RUN),
    Flag::with_value("format", "FORMAT", OUTPUT, "What is printed")
        .choices(&["kio", "table", "json", "csv", "yaml"])
        .default("table")
        .prints(),
    Flag::switch("legacy-summary", OUTPUT, "Total over the square of the threads, and the mean of their bandwidths")
        .needs(SINGLE)
        .prints(),
    Flag::with_value("trace-offsets", "N", OUTPUT, "Print the first N offsets of each thread")
        .takes(Takes::Scaled(1, 65_536))
        .needs(LINES),
    Flag::with_value("kdir", "DIR", HELP, "With `build`: the sources of the kernel, where they are elsewhere"),
    Flag::switch("help", HELP, "Print this page").letter('h'),
];
