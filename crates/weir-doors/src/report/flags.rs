//! The flags of `weir report`: its own, and those of `weir run` that choose how text looks.

use std::sync::LazyLock;

use crate::flags::Flag;
use crate::given::{FlagNeed, GivenFlags};
use crate::house::HOUSE_FLAGS;

const OUTPUT: &str = "Output";

/// True if text is printed on standard output, as nothing else is asked for.
fn prints_text(given: &GivenFlags) -> bool {
    given.is("format", "text") || !(given.has("format") || given.has("output"))
}

const TEXT: FlagNeed = FlagNeed::new("with `--format text` or `--output FILE.txt`", |g| {
    prints_text(g) || g.writes(".txt")
});
const TEXT_ON_STDOUT: FlagNeed = FlagNeed::new("with `--format text`", prints_text);
const JSON: FlagNeed = FlagNeed::new("with `--format json` or `--output FILE.json`", |g| {
    g.is("format", "json") || g.writes(".json")
});
const PICTURE: FlagNeed = FlagNeed::new(
    "with `--format svg` or `--output FILE.svg`, or the same of png",
    |g| {
        let is_of = |format: &str| g.is("format", format) || g.writes(&format!(".{format}"));
        is_of("svg") || is_of("png")
    },
);
const PLOT: FlagNeed = FlagNeed::new("with `--plot`", |g| g.has("plot"));

/// Help on rows with another head. A report has no run that the check could come before.
const OTHER_HEAD: &str = "A file with another head is refused before anything is written.";

const OWN: [Flag; 4] = [
    Flag::with_value(
        "output",
        "FILE",
        OUTPUT,
        "Write the report to a file",
    )
    .letter('o')
    .repeats()
    .long(
        "The suffix decides the format: .html, .svg, .png, .txt, .json, .md, .csv or .series.csv. \
         A PNG is drawn by Chromium: that of WEIR_CHROMIUM, or of PATH.",
    ),
    Flag::with_value(
        "format",
        "FORMAT",
        OUTPUT,
        "What is printed on standard output",
    )
    .choices(&[
        "text",
        "json",
        "html",
        "svg",
        "png",
        "md",
        "csv",
        "csv-series",
    ])
    .long("text where it is not given, and nothing with --output alone."),
    Flag::with_value("plot", "NAME", OUTPUT, "The plot that SVG or PNG has")
        .needs(PICTURE)
        .long("Which there are depends on what was measured: a name that is none lists them."),
    Flag::with_value("job", "JOB", OUTPUT, "The job whose plot it is")
        .needs(PLOT)
        .long(
            "Only where several jobs have such a plot: its name, NAME#2 for the second of that name, \
             or its number among all jobs, from 1.",
        ),
];

/// All of them, in the order of the help text.
pub static FLAGS: LazyLock<Vec<Flag>> = LazyLock::new(|| {
    let shared = HOUSE_FLAGS
        .iter()
        .filter(|flag| (flag.prints && flag.name != "format") || flag.name == "append");
    let shared = shared.map(|flag| {
        flag.needs(match flag.name {
            "color" => TEXT_ON_STDOUT,
            "pretty" => JSON,
            "append" => return flag.long(OTHER_HEAD),
            _ => TEXT,
        })
    });
    OWN.into_iter().chain(shared).collect()
});
