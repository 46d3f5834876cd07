//! Options of measuring a run and of showing its result, by the flags of the house.

use weir_units::parse;

use super::{Output, ProgressStyle, RunFormat, RunOptions, Strict, Web, live, strict, web};
use crate::given::GivenFlags;

pub(super) fn options(given: &GivenFlags) -> RunOptions {
    let outputs = given.all("output").map(output);
    RunOptions {
        format: given
            .text("format")
            .and_then(RunFormat::of_word)
            .unwrap_or(RunFormat::Text),
        outputs: outputs.filter_map(Result::ok).collect(),
        append: given.has("append"),
        progress: progress(given),
        strict: given.parsed("strict", strict::strict).unwrap_or(Strict::No),
        no_latency: given.has("no-latency"),
        live: live::read(given),
        web: web::read(given),
        ..options_of_text(given)
    }
}

/// Display of progress that these flags ask for.
pub(crate) fn progress(given: &GivenFlags) -> ProgressStyle {
    match given.text("progress") {
        Some("plain") => ProgressStyle::Plain,
        Some("none") => ProgressStyle::None,
        Some("json") => ProgressStyle::Json,
        _ => ProgressStyle::Auto,
    }
}

/// Options for text, by flags that concern text alone.
pub(crate) fn options_of_text(given: &GivenFlags) -> RunOptions {
    let named = given.has("percentiles");
    let percentiles = given.text("percentiles").filter(|_| named);
    RunOptions {
        format: RunFormat::Text,
        text_file: None,
        outputs: Vec::new(),
        append: false,
        percentiles: percentiles.and_then(|list| parse::percentages(list).ok()),
        progress: ProgressStyle::Auto,
        color: match given.text("color") {
            Some("always") => Some(true),
            Some("never") => Some(false),
            _ => None,
        },
        ascii: given.has("ascii"),
        width: given.whole("width"),
        raw: given.has("raw"),
        pretty: given.has("pretty"),
        all_warnings: given.text("warnings") == Some("all"),
        strict: Strict::No,
        no_latency: false,
        live: None,
        web: Web::default(),
    }
}

pub(super) fn output(path: &str) -> Result<Output, &'static str> {
    let format = RunFormat::of_file(path);
    let output = format.map(|format| Output {
        path: path.to_owned(),
        format,
    });
    output.ok_or(
        "the suffix decides the format; known are .txt, .json, .html, .md, .csv and .series.csv",
    )
}
