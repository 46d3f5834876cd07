//! weir's own report of results: its forms, its files, its exit code.
//!
//! In: results, options of the house. Out: text, files written. Not here: what a report says
//! (`weir-report`), who asks for it.

use std::io;

use weir_doors::house::{Output, Run, RunFormat, RunOptions, exit_code};
use weir_doors::request::{FileChange, NamedFile};
use weir_doors::rows::UnfitRows;
use weir_doors::{Printed, Refusal, Voice};
use weir_report::{ColorChoice, Flags, LabelledResult, Style};
use weir_schema::{RunResult, Runs, Warning, Word};
use weir_units::Percent;

use crate::rows;
use crate::{environment, output, report, session, signals};

/// The file of a report.
pub(crate) fn output_file(file: &Output, options: &RunOptions) -> NamedFile {
    let named = NamedFile::written(&file.path, "where the report goes (--output)");
    if !(options.append && file.format.is_rows()) {
        return named;
    }
    NamedFile {
        change: FileChange::Rows {
            head: several_of(&[], file.format),
            refuse: |path, why| {
                let help = match why {
                    UnfitRows::Io(_) => "",
                    _ => "\n  help: name another file, or leave --append out to replace this one",
                };
                Refusal::usage(format!("--append: {path}: {why}{help}"))
            },
        },
        ..named
    }
}

/// Writes a report, or adds its rows to those of a file; true if that worked.
pub(crate) fn write_output(
    path: &str,
    format: RunFormat,
    options: &RunOptions,
    text: &str,
) -> bool {
    let written = if options.append && format.is_rows() {
        rows::append_rows(path, text)
    } else {
        output::write_file(path, text)
    };
    written.map_err(|message| output::error(&message)).is_ok()
}

/// Writes and prints the report of a result; the exit code.
pub(crate) fn print_report(result: &RunResult, options: &RunOptions) -> u8 {
    signals::release();
    // First, as a launcher that ends the ranks may not read any more what they print.
    let mut good = write_outputs(result, options);
    let on_stdout = options.text_file.is_none();
    good &= print_text(
        &text_of(result, options.format, options, on_stdout),
        options,
    );
    if options.format != RunFormat::Text {
        session::print_failures(result);
    }
    print_strict(options, result.warnings.iter());
    let code = exit_code(result, &options.strict);
    if good { code } else { code.max(1) }
}

/// Prints the text of a report, or writes it to the file that takes the place of standard output;
/// true if that worked.
fn print_text(text: &str, options: &RunOptions) -> bool {
    let Some(path) = &options.text_file else {
        return output::print(text);
    };
    let written = output::write_file(path, text);
    written.map_err(|why| output::error(&why)).is_ok()
}

/// Writes the files of `--output` about a result; true if that worked.
pub(crate) fn write_outputs(result: &RunResult, options: &RunOptions) -> bool {
    let mut good = true;
    for Output { path, format } in &options.outputs {
        let text = text_of(result, *format, options, false);
        good &= write_output(path, *format, options, &text);
    }
    good
}

/// Adds weir's report to a peer's text that asks for it.
pub(crate) fn add_report(text: &mut Printed, result: &RunResult, options: &RunOptions) {
    if let Some(format) = text.report.take() {
        text.out += &text_of(result, format, options, true);
    }
}

/// Prints the warnings that fail the run, so that its exit code has a reason.
fn print_strict<'a>(options: &RunOptions, warnings: impl Iterator<Item = &'a Warning>) {
    if let Some(complaint) = options.strict.complaint(warnings) {
        output::error(&complaint);
    }
}

/// Text of a result in a form of the report.
pub(crate) fn text_of(
    result: &RunResult,
    format: RunFormat,
    options: &RunOptions,
    on_stdout: bool,
) -> String {
    match format {
        // Numbers of a result are finite, and everything else has a JSON form.
        RunFormat::Json => weir_report::json(result, options.pretty).unwrap_or_default(),
        RunFormat::Text => weir_report::text(result, &style(result, options, on_stdout)),
        RunFormat::Html | RunFormat::Markdown | RunFormat::Csv | RunFormat::CsvSeries => {
            several_of(&report::of_one(result), format)
        }
    }
}

/// Report of several results in a format that is the same for one; empty in the others.
pub(crate) fn several_of(results: &[LabelledResult<'_>], format: RunFormat) -> String {
    match format {
        RunFormat::Html => weir_report::html(results, &[]),
        RunFormat::Markdown => weir_report::markdown(results),
        RunFormat::Csv => weir_report::csv(results),
        RunFormat::CsvSeries => weir_report::csv_series(results),
        RunFormat::Text | RunFormat::Json => String::new(),
    }
}

/// Stores and prints several runs; 1 where that failed.
pub(crate) fn print_runs(run: &Run, runs: &Runs) -> u8 {
    signals::release();
    let options = &run.options;
    let text = |format, on_stdout| text_of_runs(runs, format, options, on_stdout);
    let stored = run.store.iter().map(|path| {
        let text = runs
            .to_json(false)
            .map_err(|e| format!("error: {path}: {e}\n"));
        text.and_then(|text| output::write_file(path, &text))
    });
    let mut good = true;
    for message in stored.filter_map(Result::err) {
        output::error(&message);
        good = false;
    }
    for Output { path, format } in &options.outputs {
        good &= write_output(path, *format, options, &text(*format, false));
    }
    let all = text(options.format, options.text_file.is_none());
    match run.voice {
        Voice::Weir => good &= print_text(&all, options),
        // Standard output has the peer's text of each run.
        Voice::Peer => output::error(&all),
    }
    let of_runs = runs.series.iter().flat_map(|series| &series.runs);
    let of_runs = of_runs.flat_map(|run| &run.warnings);
    let raised = runs.series.iter().flat_map(|series| &series.warnings);
    let raised = raised.chain(of_runs);
    print_strict(options, raised);
    u8::from(!good)
}

/// Text of several runs in a form of the report.
pub(crate) fn text_of_runs(
    runs: &Runs,
    format: RunFormat,
    options: &RunOptions,
    on_stdout: bool,
) -> String {
    let first = runs.series.iter().find_map(|series| series.runs.first());
    match (format, first) {
        (RunFormat::Text, Some(first)) => {
            weir_report::runs_text(runs, &style(first, options, on_stdout))
        }
        (RunFormat::Text, None) => String::new(),
        (RunFormat::Json, _) => {
            // Numbers of a result are finite, and everything else has a JSON form.
            runs.to_json(options.pretty)
                .map_or_else(|_| String::new(), |text| text + "\n")
        }
        (RunFormat::Html, _) => {
            weir_report::html(&report::of_runs(runs), &[weir_report::runs_section(runs)])
        }
        (format, _) => several_of(&report::of_runs(runs), format),
    }
}

fn style(result: &RunResult, options: &RunOptions, on_stdout: bool) -> Style {
    let flags = Flags {
        color: match options.color {
            Some(true) => ColorChoice::Always,
            Some(false) => ColorChoice::Never,
            None if !on_stdout => ColorChoice::Never,
            None => ColorChoice::Auto,
        },
        width: options.width.map(usize::from),
        ascii: options.ascii,
        raw: options.raw,
        all_warnings: options.all_warnings,
        percentiles: options.percentiles.clone().or_else(|| listed(result)),
    };
    let terminal = environment::terminal(&io::stdout());
    Style::detect(&flags, &environment::variables(), terminal)
}

/// The percentiles that the job file asks for, if it does.
fn listed(result: &RunResult) -> Option<Vec<Percent>> {
    let plan = &result.plan;
    let asks = |words: &[Word]| words.iter().any(|w| w.key == "percentile_list");
    let everywhere = asks(&plan.global_words);
    let (_, job) = plan.jobs().find(|(_, j)| everywhere || asks(&j.words))?;
    Some(job.load().recording.percentiles.clone())
}
