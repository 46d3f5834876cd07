//! The flags of `weir compare`.

use crate::flags::{Flag, set, store_result};
use crate::given::{FlagNeed, GivenFlags};
use crate::takes::Takes;

const WHAT: &str = "What is compared";
const ROUNDS: &str = "Rounds";
const JUDGING: &str = "Judging";
const OUTPUT: &str = "Output";

fn measures(given: &GivenFlags) -> bool {
    given.has("run") || given.has("cmd")
}

const RUN: FlagNeed = FlagNeed::new("with `--run`", |g| g.has("run"));
const MEASURED: FlagNeed = FlagNeed::new("with `--run` or `--cmd`", measures);
const CONDITION: FlagNeed = FlagNeed::new("with `--fail-if`", |g| g.has("fail-if"));
const FRESH: FlagNeed = FlagNeed::new("with `--fail-if`, and `--run` or `--cmd`", |g| {
    measures(g) && g.has("fail-if")
});
/// True if text is printed on standard output, as nothing else is asked for.
fn prints_text(given: &GivenFlags) -> bool {
    given.is("format", "text") || !(given.has("format") || given.has("output"))
}

const TEXT: FlagNeed = FlagNeed::new("with `--format text` or `--output FILE.txt`", |g| {
    prints_text(g) || g.writes(".txt")
});
const TEXT_ON_STDOUT: FlagNeed = FlagNeed::new("with `--format text`", prints_text);

/// All of them, in the order of the help text.
pub const FLAGS: &[Flag] = &[
    Flag::switch(
        "run",
        WHAT,
        "The operands are job files or plans: run them in turns",
    ),
    Flag::with_value(
        "vary",
        "KEY=V1,V2",
        WHAT,
        "Run one job file with each of these values of a job option",
    )
    .needs(RUN),
    set(WHAT).needs(RUN),
    Flag::with_value(
        "ranks",
        "N",
        WHAT,
        "Run each plan on N processes of this machine",
    )
    .needs(RUN),
    Flag::with_value(
        "cmd",
        "COMMAND",
        WHAT,
        "Compare shell commands, each once a round",
    )
    .repeats()
    .long(
        "wall, user, system: seconds; rss: most memory. Each run has an environment variable of \
             random length, since the place of the stack alone changes how fast programs are.",
    ),
    Flag::with_value(
        "a",
        "FILE",
        WHAT,
        "Stored results of the base, several runs of it",
    )
    .repeats(),
    Flag::with_value("b", "FILE", WHAT, "Stored results of the other side").repeats(),
    Flag::with_value(
        "rounds",
        "N",
        ROUNDS,
        "Runs of each side, in turns: A B, B A, …",
    )
    .range(1, 1000)
    .needs(MEASURED)
    .long("10 where it is not given, or more where so many figures need them."),
    Flag::switch(
        "until-sure",
        ROUNDS,
        "Stop at 10, 14, 20, 28 or 40 rounds, as soon as the first figure is settled",
    )
    .needs(MEASURED)
    .long("Each look has a fifth of --alpha."),
    Flag::with_value(
        "warmup",
        "N",
        ROUNDS,
        "Rounds before, which are not counted",
    )
    .range(0, 1000)
    .default("1")
    .needs(MEASURED),
    Flag::with_value("settle", "S", ROUNDS, "Wait S seconds before each run")
        .takes(Takes::Pause)
        .default("1")
        .needs(MEASURED),
    Flag::with_value(
        "prepare",
        "COMMAND",
        ROUNDS,
        "Shell command before each run",
    )
    .needs(MEASURED),
    Flag::switch(
        "drop-caches",
        ROUNDS,
        "Drop the system's page cache before each run (as root)",
    )
    .needs(MEASURED),
    Flag::with_value(
        "metrics",
        "LIST",
        JUDGING,
        "Figures to compare, the primary one first",
    )
    .long(
        "rate, p50, p99, p99.9 and cpu_per_op where nothing is said; also bandwidth, mean, any pN, \
         `read p99` for one kind of operation, and what jobs measure by name: b_eff. A job without \
         any of the usual ones is compared by all that it has.",
    ),
    Flag::with_value(
        "threshold",
        "LIST",
        JUDGING,
        "A smaller change in per cent is none: 3, or p99=8",
    )
    .long("2 where nothing is said; 5 from p99 on, 10 from p99.9 on."),
    Flag::with_value(
        "alpha",
        "P",
        JUDGING,
        "Chance may pretend a change in this share of comparisons",
    )
    .takes(Takes::Number(0.0001, 0.5))
    .default("0.05"),
    Flag::with_value("fail-if", "EXPR", JUDGING, "Exit with 1 where this holds")
        .repeats()
        .long(
            "[JOB.]METRIC>NUMBER% or <, an established change; with a unit the value of B \
             (p99>500us); worse, unsure, errors, not-comparable. A comma is an or.",
        ),
    Flag::switch("confirm", JUDGING, "It must hold again in fresh rounds").needs(FRESH),
    Flag::switch(
        "single-run-ok",
        JUDGING,
        "One run a side is enough for --fail-if",
    )
    .needs(CONDITION),
    Flag::switch(
        "allow-different",
        JUDGING,
        "Compare figures of plans that do other work",
    ),
    Flag::with_value(
        "format",
        "FORMAT",
        OUTPUT,
        "What is printed on standard output",
    )
    .choices(&["text", "json", "csv", "md", "html", "junit"])
    .long("text where it is not given, and nothing with --output alone."),
    Flag::with_value("output", "FILE", OUTPUT, "Write the comparison to a file")
        .letter('o')
        .repeats()
        .long("The suffix decides the format: .txt, .json, .csv, .md, .html, or .xml for junit."),
    store_result(OUTPUT).needs(MEASURED),
    Flag::with_value(
        "save",
        "LABEL",
        OUTPUT,
        "Keep all runs in the history under this label",
    )
    .needs(MEASURED)
    .long("`weir compare label:LABEL` prints the comparison again."),
    Flag::with_value(
        "progress",
        "WHEN",
        OUTPUT,
        "Progress of runs on standard error",
    )
    .choices(&["auto", "plain", "none", "json"])
    .default("auto")
    .needs(MEASURED),
    Flag::with_value("color", "WHEN", OUTPUT, "Colours")
        .choices(&["auto", "always", "never"])
        .default("auto")
        .needs(TEXT_ON_STDOUT),
    Flag::switch("ascii", OUTPUT, "Only ASCII characters").needs(TEXT),
    Flag::with_value(
        "width",
        "COLUMNS",
        OUTPUT,
        "Width of the text instead of the terminal's",
    )
    .range(20, 1000)
    .needs(TEXT),
    Flag::switch(
        "raw",
        OUTPUT,
        "Integers in ns, bytes and operations instead of scaled numbers",
    )
    .needs(TEXT),
];
