//! The flags of fio's command line that are not options of jobs, and weir's own beside them.

use super::options::{checksums, formats, time};
use crate::flags::{Flag, set};
use crate::given::{FlagNeed, GivenFlags};
use crate::takes::Takes;

const HELP: &str = "Help";
const PARSE: &str = "Reading jobs";
const OUTPUT: &str = "Output";
pub(super) const OWN: &str = "Only in weir";
const REST: &str = "Other";

const RANKS: &str =
    "weir has no client and server of its own; start it on every host with mpirun or srun";
const PLAN: &str = "--show-plan prints what was understood";

fn prints_terse(given: &GivenFlags) -> bool {
    let formats = given.text("output-format").unwrap_or_default();
    let is_terse = |word: &str| ["terse", "minimal", "csv"].contains(&word.trim());
    given.has("minimal") || given.has("append-terse") || formats.split(',').any(is_terse)
}

const TERSE: FlagNeed = FlagNeed::new(
    "with `--output-format=terse`, `--minimal` or `--append-terse`",
    prints_terse,
);
const PROGRESS: FlagNeed = FlagNeed::new("without `--eta=never`", |g| !g.is("eta", "never"));
const TRIGGER: FlagNeed = FlagNeed::new("with `--trigger-file` or `--trigger-timeout`", |g| {
    g.has("trigger-file") || g.has("trigger-timeout")
});
const SEVERAL_REPORTS: FlagNeed =
    FlagNeed::new("with `--status-interval`", |g| g.has("status-interval"));

const TIME: Takes = Takes::Grammar(|text| time(text, "0").map(drop));

/// All of them, in the order of the help text.
pub const FLAGS: &[Flag] = &[
    Flag::switch("help", HELP, "Print this page").letter('h'),
    Flag::switch("version", HELP, "Print the version and exit").letter('v'),
    Flag::with_value(
        "cmdhelp",
        "OPTION",
        HELP,
        "Explain an option of jobs; `all` lists them",
    ),
    Flag::with_value(
        "enghelp",
        "ENGINE[,OPTION]",
        HELP,
        "List engines, or the options of one",
    )
    .optional(),
    Flag::switch("parse-only", PARSE, "Read the jobs and run nothing"),
    Flag::switch(
        "showcmd",
        PARSE,
        "Print the jobs as one command line and run nothing",
    ),
    Flag::with_value(
        "section",
        "NAME",
        PARSE,
        "Run only this section of the files",
    )
    .repeats(),
    Flag::switch("readonly", PARSE, "Refuse everything that writes or trims"),
    Flag::switch(
        "warnings-fatal",
        PARSE,
        "Notes about the jobs become errors",
    ),
    Flag::with_value("output", "FILE", OUTPUT, "Write the report to a file"),
    Flag::with_value(
        "status-interval",
        "TIME",
        OUTPUT,
        "A full report after each such time",
    )
    .takes(Takes::Grammar(|text| time(text, "1ms").map(drop))),
    Flag::with_value(
        "output-format",
        "LIST",
        OUTPUT,
        "Any of normal,terse,json,json+",
    )
    .takes(Takes::Grammar(|text| formats(text).map(drop)))
    .default("normal")
    .prints(),
    Flag::switch("minimal", OUTPUT, "The terse report alone").prints(),
    Flag::switch("append-terse", OUTPUT, "The terse report as well").prints(),
    Flag::with_value(
        "terse-version",
        "N",
        OUTPUT,
        "Layout of the terse report: 2 to 5",
    )
    .range(2, 5)
    .default("3")
    .needs(TERSE)
    .prints(),
    Flag::with_value("eta", "WHEN", OUTPUT, "Progress while it runs")
        .choices(&["always", "never", "auto"])
        .default("auto"),
    Flag::with_value(
        "eta-newline",
        "TIME",
        OUTPUT,
        "A new progress line after each such time",
    )
    .takes(TIME)
    .needs(PROGRESS),
    Flag::with_value(
        "eta-interval",
        "TIME",
        OUTPUT,
        "Time between progress lines",
    )
    .takes(Takes::Grammar(|text| time(text, "250ms").map(drop)))
    .default("1s")
    .needs(PROGRESS),
    Flag::with_value(
        "bandwidth-log",
        "PREFIX",
        OUTPUT,
        "Bandwidth logs of the whole run",
    )
    .optional()
    .default("agg"),
    set(OWN),
    Flag::with_value(
        "map",
        "OLD=NEW",
        OWN,
        "Paths that begin with OLD begin with NEW",
    )
    .repeats(),
    Flag::switch(
        "compat-banner",
        OWN,
        "Say fio-3.33 where the version is printed",
    )
    .prints(),
    Flag::switch(
        "compat",
        OWN,
        "JSON while it runs as documents, not as lines",
    )
    .needs(SEVERAL_REPORTS)
    .prints(),
    Flag::with_value("exit", "STYLE", OWN, "Exit codes of fio, or unix ones")
        .choices(&["fio", "unix"])
        .default("fio"),
    Flag::with_value("max-jobs", "N", REST, "Accepted")
        .without_effect("the number of jobs is not limited"),
    Flag::with_value("alloc-size", "KIB", REST, "Accepted")
        .without_effect("memory is allocated as needed"),
    Flag::with_value("debug", "LIST", REST, "parse: print how options were read"),
    Flag::with_value(
        "idle-prof",
        "KIND",
        OUTPUT,
        "Idleness of CPUs; calibrate: unit alone",
    )
    .choices(&["system", "percpu", "calibrate"]),
    Flag::with_value(
        "trigger-file",
        "FILE",
        REST,
        "End the run when this file appears",
    ),
    Flag::with_value(
        "trigger-timeout",
        "TIME",
        REST,
        "End the run after this time",
    )
    .takes(TIME),
    Flag::with_value(
        "trigger",
        "COMMAND",
        REST,
        "Run this once a trigger has ended the run",
    )
    .needs(TRIGGER),
    Flag::with_value(
        "trigger-remote",
        "COMMAND",
        REST,
        "What a remote trigger runs",
    )
    .refused(RANKS),
    Flag::with_value(
        "aux-path",
        "DIR",
        REST,
        "Directory of dumps and state files",
    ),
    Flag::switch("explain", REST, "The plan with reasons").refused(PLAN),
    Flag::switch("cpuclock-test", REST, "See whether the clock runs forward"),
    Flag::with_value("crctest", "LIST", REST, "Measure how fast checksums are")
        .takes(Takes::Grammar(|text| checksums(text).map(drop)))
        .optional(),
    Flag::with_value(
        "inflate-log",
        "FILE",
        REST,
        "Print a log of log_store_compressed=1",
    ),
    Flag::with_value("profile", "NAME", REST, "Profiles").refused("profiles are not supported"),
    Flag::switch("merge-blktrace-only", REST, "Merge traces")
        .refused("block traces are not supported"),
    Flag::with_value("server", "ARGS", REST, "Serve")
        .optional()
        .refused(RANKS),
    Flag::with_value("client", "HOST", REST, "Use a server").refused(RANKS),
    Flag::with_value("remote-config", "FILE", REST, "A server's file").refused(RANKS),
    Flag::with_value("daemonize", "PIDFILE", REST, "Run in the background").refused(RANKS),
];
