//! Display of a comparison, on standard output and in files.
//!
//! In: the comparison, its sides, the display that the arguments ask for. Out: text in one of the forms. Not here: the
//! forms themselves (`weir-compare`, `weir-report`).

use std::io;

use weir_compare::{Comparison, Side, csv, json, junit, markdown, page_section, text};
use weir_doors::compare::{CompareFormat, CompareShow};
use weir_doors::request::NamedFile;
use weir_report::{ColorChoice, Flags, LabelledResult, LineTone, SectionLine, SectionPart, Style};
use weir_schema::RunResult;

use crate::{environment, output, report};

/// Files that get the comparison.
pub(super) fn files(show: &CompareShow) -> impl Iterator<Item = NamedFile> {
    let role = "where the comparison goes (--output)";
    let outputs = show.outputs.iter();
    outputs.map(move |file| NamedFile::written(&file.path, role))
}

/// Writes and prints the comparison; 1 where that failed.
pub(super) fn show(comparison: &Comparison, sides: &[Side], show: &CompareShow) -> u8 {
    let text = |format, on_stdout| match format {
        CompareFormat::Text => text(comparison, &style(show, on_stdout)),
        CompareFormat::Json => json(comparison),
        CompareFormat::Csv => csv(comparison),
        CompareFormat::Markdown => markdown(comparison),
        CompareFormat::Junit => junit(comparison),
        CompareFormat::Html => page(comparison, sides),
    };
    let mut good = true;
    for file in &show.outputs {
        if let Err(message) = output::write_file(&file.path, text(file.format, false)) {
            output::error(&message);
            good = false;
        }
    }
    if let Some(format) = show.format {
        good &= output::print(&text(format, true));
    }
    u8::from(!good)
}

/// The comparison, and below it a run of each side beside those of the others.
fn page(comparison: &Comparison, sides: &[Side]) -> String {
    let mut section = page_section(comparison);
    if sides.iter().any(|side| side.runs.len() > 1) {
        let text = "What follows is of one run of each side: the one in the middle.";
        section.parts.push(SectionPart::Lines(vec![SectionLine {
            text: text.to_owned(),
            tone: LineTone::Plain,
        }]));
    }
    let shown = sides.iter().filter_map(|side| {
        Some(LabelledResult {
            label: side.name.clone(),
            result: middle(&side.runs)?,
        })
    });
    let shown: Vec<LabelledResult<'_>> = shown.take(report::MOST).collect();
    weir_report::html(&shown, &[section])
}

/// Run with the median of the first figure.
fn middle(runs: &[RunResult]) -> Option<&RunResult> {
    let figure = |run: &&RunResult| {
        let mut metrics = run.jobs().flat_map(|job| &job.metrics);
        metrics.next().map_or(f64::NAN, |metric| metric.value)
    };
    let mut whole: Vec<&RunResult> = runs.iter().filter(|run| run.complete).collect();
    whole.sort_by(|a, b| figure(a).total_cmp(&figure(b)));
    let middle = whole.len().saturating_sub(1) / 2;
    whole.get(middle).copied().or(runs.first())
}

fn style(show: &CompareShow, on_stdout: bool) -> Style {
    let flags = Flags {
        color: match show.color {
            Some(true) => ColorChoice::Always,
            None if on_stdout => ColorChoice::Auto,
            _ => ColorChoice::Never,
        },
        width: show.width.map(usize::from),
        ascii: show.ascii,
        raw: show.raw,
        ..Flags::default()
    };
    let terminal = environment::terminal(&io::stdout());
    Style::detect(&flags, &environment::variables(), terminal)
}
