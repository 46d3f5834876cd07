//! Flags of the house: every door that measures has them.

use super::{options, strict, web};
use crate::flags::{Flag, history, store_result};
use crate::given::FlagNeed;
use crate::takes::Takes;

const PLAN: &str = "The run";
const OUTPUT: &str = "Output";
const MEASURE: &str = "Measuring";

const TEXT: FlagNeed = FlagNeed::new("with `--format text` or `--output FILE.txt`", |g| {
    g.is("format", "text") || g.writes(".txt")
});
const TEXT_ON_STDOUT: FlagNeed = FlagNeed::new("with `--format text`", |g| g.is("format", "text"));
const JSON: FlagNeed = FlagNeed::new("with `--format json` or `--output FILE.json`", |g| {
    g.is("format", "json") || g.writes(".json")
});
const CSV: FlagNeed = FlagNeed::new("with `--output FILE.csv`", |g| g.writes(".csv"));
const WEB: FlagNeed = FlagNeed::new("with `--web`", |g| g.has("web"));
const LIVE: FlagNeed = FlagNeed::new("with `--live`", |g| g.has("live"));
const LATENCIES: FlagNeed = FlagNeed::new("without `--no-latency`", |g| !g.has("no-latency"));

/// All of them, in the order of the help text.
pub const HOUSE_FLAGS: &[Flag] = &[
    Flag::with_value(
        "ranks",
        "N",
        PLAN,
        "Run the plan on N processes of this machine, and report them as one",
    )
    .range(1, 1024)
    .long("Under mpirun or srun the launcher says how many."),
    Flag::with_value(
        "rank-timeout",
        "S",
        PLAN,
        "A rank that is silent for S seconds is lost: the others end and report",
    )
    .takes(Takes::Seconds)
    .long("60 where it is not given; at least 1 counts. For several ranks only."),
    Flag::switch("show-plan", PLAN, "Print the plan as JSON and run nothing")
        .long("The output can be stored and run: `weir run plan.json`."),
    Flag::switch(
        "dry-run",
        PLAN,
        "Check everything that can be checked before a run, and run nothing",
    ),
    store_result(OUTPUT),
    history(OUTPUT),
    Flag::with_value("voice", "WHOSE", OUTPUT, "Whose text is printed: weir's report, or the peer's")
        .choices(&["weir", "peer"])
        .prints()
        .long("By the verb it is weir, by a link with the peer's name it is the peer."),
    Flag::with_value(
        "format",
        "FORMAT",
        OUTPUT,
        "What is printed on standard output",
    )
    .choices(&["text", "json", "html", "md", "csv", "csv-series"])
    .default("text")
    .prints()
    .long("csv: a row for each kind of operation and each figure of each job; csv-series: for each interval."),
    Flag::with_value(
        "output",
        "FILE",
        OUTPUT,
        "Write the report to a file as well",
    )
    .takes(Takes::Grammar(|text| options::output(text).map(drop).map_err(str::to_owned)))
    .repeats()
    .long("The suffix decides the format: .txt, .json, .html, .md, .csv or .series.csv."),
    Flag::switch(
        "append",
        OUTPUT,
        "Add the rows to those that the CSV file of --output has",
    )
    .needs(CSV)
    .long("A file with another head is refused before the run."),
    Flag::with_value(
        "percentiles",
        "LIST",
        OUTPUT,
        "Percentiles of latency, comma-separated",
    )
    .takes(Takes::Percentages)
    .default("50,90,99,99.9")
    .needs(LATENCIES)
    .prints(),
    Flag::with_value("progress", "WHEN", OUTPUT, "Progress on standard error")
        .choices(&["auto", "plain", "none", "json"])
        .default("auto")
        .long("The signal SIGUSR1 prints a plain line at any time."),
    Flag::switch("live", OUTPUT, "Show the run on the whole terminal").long(
        "Rates, latencies, workers and the machine, four times a second. `h` lists the keys; `q` leaves \
         the view, and the run goes on. The report follows at the end as always.",
    ),
    Flag::with_value(
        "fps",
        "N",
        OUTPUT,
        "Draw the live view N times a second",
    )
    .range(1, 20)
    .default("4")
    .needs(LIVE),
    Flag::with_value(
        "web",
        "[ADDR:]PORT",
        OUTPUT,
        "Show the run to browsers and Prometheus",
    )
    .takes(Takes::Grammar(|text| web::address(text).map(drop)))
    .optional()
    .long(
        "Bare: a free port of 127.0.0.1. / is a page, /metrics for Prometheus, /events, \
         /result.json at the end, /healthz.",
    ),
    Flag::with_value(
        "web-linger",
        "S",
        OUTPUT,
        "Go on showing the result for S seconds",
    )
    .takes(Takes::Pause)
    .needs(WEB),
    Flag::with_value(
        "metrics-file",
        "FILE",
        OUTPUT,
        "Write what /metrics says to FILE every 5 s",
    ),
    Flag::with_value("color", "WHEN", OUTPUT, "Colours in the report")
        .choices(&["auto", "always", "never"])
        .default("auto")
        .needs(TEXT_ON_STDOUT)
        .prints(),
    Flag::switch("ascii", OUTPUT, "Only ASCII characters")
        .needs(TEXT)
        .prints(),
    Flag::with_value(
        "width",
        "COLUMNS",
        OUTPUT,
        "Width of the report instead of the terminal's",
    )
    .range(20, 1000)
    .needs(TEXT)
    .prints(),
    Flag::switch("pretty", OUTPUT, "Indent JSON")
        .needs(JSON)
        .prints(),
    Flag::switch(
        "raw",
        OUTPUT,
        "Integers in ns, bytes and operations instead of scaled numbers",
    )
    .needs(TEXT)
    .prints(),
    Flag::with_value(
        "warnings",
        "WHICH",
        OUTPUT,
        "Warnings that the text report prints",
    )
    .choices(&["gravest", "all"])
    .default("gravest")
    .needs(TEXT)
    .prints()
    .long("gravest: the three gravest of each job. JSON has all of them."),
    Flag::with_value("strict", "IDS", MEASURE, "Warnings make the exit code 1")
        .takes(Takes::Grammar(|text| strict::strict(text).map(drop)))
        .optional()
        .long("With a comma-separated list only the warnings with these ids do."),
    Flag::with_value(
        "repeat",
        "N",
        MEASURE,
        "Run N times (bare: 5), and say how much runs differ",
    )
    .range(2, 1000)
    .optional()
    .long(
        "Each run is a process of its own. The headline is the \
         geometric mean, with the 95 % interval between runs. Files that weir lays out are made \
         again where the plan changes them; else the page cache of them is dropped. Several job \
         files are plans of their own and take turns: A B B A. Ctrl-C reports the runs done.",
    ),
    Flag::with_value(
        "pause",
        "S",
        MEASURE,
        "Wait S seconds between the runs of --repeat",
    )
    .takes(Takes::Pause),
    Flag::switch(
        "no-latency",
        MEASURE,
        "Do not time single operations: the cheapest loop",
    ),
];
