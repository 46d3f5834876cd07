//! How a run is measured and shown, by the flags of `weir run`.

use clap::ArgMatches;
use clap::parser::ValueSource;
use weir_units::Percent;

use super::{
    Output, ProgressStyle, RunFormat, RunOptions, Strict, Web, all, live, one, strict, web,
};
use crate::refusal::Refusal;

pub(super) fn options(matches: &ArgMatches) -> Result<RunOptions, Refusal> {
    let outputs = all(matches, "output").into_iter().map(output);
    Ok(RunOptions {
        format: one(matches, "format")
            .and_then(RunFormat::of_word)
            .unwrap_or(RunFormat::Text),
        outputs: outputs.collect::<Result<_, _>>()?,
        append: matches.get_flag("append"),
        progress: progress(matches),
        strict: strict::strict(one(matches, "strict"))?,
        no_latency: matches.get_flag("no-latency"),
        live: live::read(matches)?,
        web: web::read(matches)?,
        ..options_of_text(matches)?
    })
}

/// How progress is shown.
pub(crate) fn progress(matches: &ArgMatches) -> ProgressStyle {
    match one(matches, "progress") {
        Some("plain") => ProgressStyle::Plain,
        Some("none") => ProgressStyle::None,
        Some("json") => ProgressStyle::Json,
        _ => ProgressStyle::Auto,
    }
}

/// How text looks, by flags that say no more than that.
pub(crate) fn options_of_text(matches: &ArgMatches) -> Result<RunOptions, Refusal> {
    let named = matches.value_source("percentiles") == Some(ValueSource::CommandLine);
    let percentiles = one(matches, "percentiles")
        .filter(|_| named)
        .map(percentiles)
        .transpose()?;
    let width = one(matches, "width").map(width).transpose()?;
    Ok(RunOptions {
        format: RunFormat::Text,
        outputs: Vec::new(),
        append: false,
        percentiles,
        progress: ProgressStyle::Auto,
        color: match one(matches, "color") {
            Some("always") => Some(true),
            Some("never") => Some(false),
            _ => None,
        },
        ascii: matches.get_flag("ascii"),
        width,
        raw: matches.get_flag("raw"),
        pretty: matches.get_flag("pretty"),
        all_warnings: one(matches, "warnings") == Some("all"),
        strict: Strict::No,
        no_latency: false,
        live: None,
        web: Web::default(),
    })
}

fn output(path: String) -> Result<Output, Refusal> {
    match RunFormat::of_file(&path) {
        Some(format) => Ok(Output { path, format }),
        None => Err(Refusal::usage(format!(
            "--output {path}: the suffix decides the format; known are .txt, .json, .html, .md, .csv \
             and .series.csv"
        ))),
    }
}

fn percentiles(list: &str) -> Result<Vec<Percent>, Refusal> {
    let read = |text: &str| {
        text.trim()
            .parse()
            .ok()
            .filter(|p| (0.0..=100.0).contains(p))
            .map(Percent)
            .ok_or_else(|| {
                Refusal::usage(format!(
                    "--percentiles {list}: `{text}` is no number from 0 to 100"
                ))
            })
    };
    list.split(',').map(read).collect()
}

/// A number of columns.
pub(crate) fn width(text: &str) -> Result<u16, Refusal> {
    let wrong = || {
        Refusal::usage(format!(
            "--width {text}: expected a number of columns from 20 to 1000"
        ))
    };
    text.parse()
        .ok()
        .filter(|w| (20..=1000).contains(w))
        .ok_or_else(wrong)
}
