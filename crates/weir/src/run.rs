//! `weir run`: the house door.

use std::io;
use std::path::Path;

use weir_doors::run::{
    Action, Input, Output, ProgressStyle, Run, RunFormat, RunOptions, check_stored, exit_code,
    read, read_workload,
};
use weir_doors::{Door, Refusal, USAGE, WorkloadDoor};
use weir_jobfile::{Context, Diagnostic, compile};
use weir_report::{ColorChoice, Flags, LabelledResult, Style};
use weir_schema::{Plan, RunResult, Runs, SchemaError, Warning, Word};
use weir_units::Percent;
use weir_world::started_rank;

use crate::history::Keep;
use crate::live::LiveDisplay;
use crate::measure::{self, MeasureRequest, RunObserver, Silent};
use crate::progress::{ProgressMode, ProgressObserver};
use crate::rows::{self, Unfit};
use crate::watch::{Watch, WatchedObserver};
use crate::web::Window;
use crate::{
    Outcome, environment, output, printed, repeat, report, runners, session, signals, speaks,
    written_files,
};

/// The words after `run`.
pub(crate) fn run(words: &[String]) -> Outcome {
    carry_out(read(words))
}

/// The words after the verb of a door that asks for one job.
pub(crate) fn run_workload(door: &Door, workload: &WorkloadDoor, words: &[String]) -> Outcome {
    carry_out(read_workload(door, workload, words))
}

fn carry_out(action: Result<Action, Refusal>) -> Outcome {
    match action {
        Err(_) | Ok(Action::Print(_)) if !speaks() => Ok(0),
        Err(refusal) => Err(refusal),
        Ok(Action::Print(text)) => Ok(printed(&text)),
        Ok(Action::Run(run)) => measure(&run),
        Ok(Action::Calibrate) => calibrate(),
    }
}

fn measure(run: &Run) -> Outcome {
    if run.show_plan {
        return if speaks() { show(run) } else { Ok(0) };
    }
    if let Some(repeat) = run.repeat {
        return repeat::run(run, repeat);
    }
    // One process speaks for all, whoever started them.
    let is_first = started_rank().is_none() && speaks();
    let watch = Watch::default();
    let (live, window) = if is_first {
        refuse_lost_port(run)?;
        let live = LiveDisplay::of(&run.options, &watch)?;
        (live, Window::open(&run.options.web, &watch)?)
    } else {
        (None, None)
    };
    measure::measure(&MeasureRequest {
        ranks: run.ranks,
        targets: run.targets,
        timeout: run.timeout,
        store: run.store.as_deref(),
        keep: Keep::Always(run.history.as_deref()),
        other_files: &other_files(run),
        ..MeasureRequest::of(
            &|| plan_to_run(run, &run.input),
            &|plan| {
                let mode = progress_mode(run.options.progress);
                let mut shown: Box<dyn RunObserver> = Box::new(ProgressObserver::new(mode, plan));
                if let Some(live) = &live {
                    shown = live.observer(plan, shown);
                }
                if live.is_some() || window.is_some() {
                    shown = Box::new(WatchedObserver::new(watch.clone(), plan, shown));
                }
                shown
            },
            &|result| {
                let code = report(result, &run.options);
                if let Some(window) = &window {
                    window.finish(result);
                }
                Ok(code)
            },
        )
    })
}

/// Refuses a port that a blank keeps from `--web`: it would be a job file, and none is called so.
fn refuse_lost_port(run: &Run) -> Result<(), Refusal> {
    let mut pairs = run.command().windows(2);
    let lost = pairs.find_map(|pair| match pair {
        [flag, port] if flag == "--web" => Some(port).filter(|p| p.parse::<u16>().is_ok()),
        _ => None,
    });
    match lost.filter(|port| !Path::new(port).exists()) {
        None => Ok(()),
        Some(port) => Err(Refusal::usage(format!(
            "--web {port}: without `=` it is a job file, and none is called so\n  help: --web={port}"
        ))),
    }
}

/// What is read and written besides the result.
pub(crate) fn other_files(run: &Run) -> Vec<(&'static str, String)> {
    let read = inputs(&run.input).into_iter();
    let read = read.map(|path| ("what the plan is made from", path.to_owned()));
    let written = run.options.outputs.iter();
    let written = written.map(|file| ("where the report goes (--output)", file.path.clone()));
    read.chain(written).collect()
}

/// The files that a plan is made from.
fn inputs(input: &Input) -> Vec<&str> {
    match input {
        Input::Made(_) => Vec::new(),
        Input::Plan { path, .. } => vec![path],
        Input::Jobs(request) => request.files().collect(),
    }
}

/// The plan that the words ask for; everything that can be refused is refused here.
pub(crate) fn plan_to_run(run: &Run, input: &Input) -> Result<Plan, Refusal> {
    let mut plan = plan_of(input)?;
    run.adjust(&mut plan)?;
    for file in &run.options.outputs {
        refuse_own_input(&file.path, &run.input)?;
        check_output(&file.path, file.format, &run.options)?;
    }
    let outputs = run.options.outputs.iter().map(|file| file.path.as_str());
    let written: Vec<_> = outputs.chain(run.store.as_deref()).collect();
    written_files::refuse_targets(&plan, &written)?;
    Ok(plan)
}

/// Finds out before anything is measured whether a report can be written.
pub(crate) fn check_output(
    path: &str,
    format: RunFormat,
    options: &RunOptions,
) -> Result<(), Refusal> {
    let refuse = |message| Refusal::new(USAGE, message);
    output::check_writable(path).map_err(refuse)?;
    if options.append && format.is_rows() {
        rows::check_rows(path, &several_of(&[], format)).map_err(|why| {
            let remedy = match why {
                Unfit::OtherHead(_) | Unfit::OpenEnd => {
                    "\n  help: name another file, or leave --append out to replace this one"
                }
                Unfit::Io(_) => "",
            };
            refuse(format!("error: --append: {path}: {why}{remedy}\n"))
        })?;
    }
    Ok(())
}

/// Writes a report, or adds its rows to those of a file; whether that went well.
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

fn show(run: &Run) -> Outcome {
    let text = plan_to_run(run, &run.input)?
        .to_json()
        .map_err(Refusal::usage)?;
    Ok(printed(&(text + "\n")))
}

/// A report must not replace what the run was read from.
fn refuse_own_input(report: &str, input: &Input) -> Result<(), Refusal> {
    if inputs(input)
        .iter()
        .any(|source| output::are_same(report, source))
    {
        return Err(Refusal::usage(format!(
            "the report {report} would replace the file it is made from"
        )));
    }
    Ok(())
}

/// Stores and prints the report; the exit code.
fn report(result: &RunResult, options: &RunOptions) -> u8 {
    signals::release();
    let mut good = true;
    // First, as a launcher that ends the ranks may not read any more what they print.
    for Output { path, format } in &options.outputs {
        let text = text_of(result, *format, options, false);
        good &= write_output(path, *format, options, &text);
    }
    good &= output::print(&text_of(result, options.format, options, true));
    if options.format != RunFormat::Text {
        session::tell_failures(result);
    }
    tell_strict(options, result.warnings.iter());
    let code = exit_code(result, &options.strict);
    if good { code } else { code.max(1) }
}

/// Says which warnings fail the run, so that its exit code does not stand alone.
fn tell_strict<'a>(options: &RunOptions, warnings: impl Iterator<Item = &'a Warning>) {
    if let Some(complaint) = options.strict.complaint(warnings) {
        output::error(&complaint);
    }
}

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

/// What says of several results the same as of one.
pub(crate) fn several_of(results: &[LabelledResult<'_>], format: RunFormat) -> String {
    match format {
        RunFormat::Html => weir_report::html(results, &[]),
        RunFormat::Markdown => weir_report::markdown(results),
        RunFormat::Csv => weir_report::csv(results),
        RunFormat::CsvSeries => weir_report::csv_series(results),
        RunFormat::Text | RunFormat::Json => String::new(),
    }
}

/// Stores and prints what several runs say; 1 where that failed.
pub(crate) fn report_runs(run: &Run, runs: &Runs) -> u8 {
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
    good &= output::print(&text(options.format, true));
    let of_runs = runs.series.iter().flat_map(|series| &series.runs);
    let of_runs = of_runs.flat_map(|run| &run.warnings);
    let raised = runs.series.iter().flat_map(|series| &series.warnings);
    let raised = raised.chain(of_runs);
    tell_strict(options, raised);
    u8::from(!good)
}

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

pub(crate) fn progress_mode(progress: ProgressStyle) -> ProgressMode {
    match progress {
        ProgressStyle::Auto => ProgressMode::detect(),
        ProgressStyle::Plain => ProgressMode::Plain,
        ProgressStyle::None => ProgressMode::None,
        ProgressStyle::Json => ProgressMode::Json,
    }
}

fn plan_of(input: &Input) -> Result<Plan, Refusal> {
    match input {
        Input::Made(plan) => Ok(plan.as_ref().clone()),
        Input::Plan { path, .. } => stored_plan(path),
        Input::Jobs(request) => {
            let environment = environment::read();
            let context = Context {
                environment: &environment,
                catalogue: &runners::catalogue(),
                files: &environment::RealFiles,
            };
            let compiled = compile(request, &context).map_err(|all| refuse(&all))?;
            for note in &compiled.notes {
                output::error(&format!("note: {note}\n"));
            }
            Ok(compiled.plan)
        }
    }
}

fn refuse(all: &[Diagnostic]) -> Refusal {
    let text: Vec<String> = all.iter().map(Diagnostic::render).collect();
    Refusal::new(USAGE, text.join("\n"))
}

fn stored_plan(path: &str) -> Result<Plan, Refusal> {
    let refuse = |why: String| Refusal::usage(format!("{path}: {why}"));
    let text = std::fs::read_to_string(path).map_err(|e| refuse(e.to_string()))?;
    let plan = Plan::from_json(&text).map_err(|e| {
        let has_place = matches!(e, SchemaError::Shape { .. });
        let gap = if has_place { "" } else { " " };
        Refusal::usage(format!("{path}:{gap}{e}"))
    })?;
    if plan.jobs().next().is_none() {
        return Err(refuse("the plan has no job".to_owned()));
    }
    check_stored(&plan).map_err(refuse)?;
    Ok(plan)
}

/// Measures the loop's own cost and nothing else.
fn calibrate() -> Outcome {
    let plan = Plan {
        name: "calibrate".to_owned(),
        door: "run".to_owned(),
        ..Plan::default()
    };
    measure::measure(&MeasureRequest::of(
        &|| Ok(plan.clone()),
        &|_| Box::new(Silent),
        &|result| {
            let clock = &result.clock;
            let loop_cost = result.instrument.ns_per_op.unwrap_or(f64::NAN);
            let text = format!(
                "clock       {} ({})\nclock read  {:.1} ns\nloop        {loop_cost:.1} ns per operation\n",
                source_name(result),
                clock.reason,
                clock.read_ns
            );
            Ok(printed(&text))
        },
    ))
}

fn source_name(result: &RunResult) -> &'static str {
    match result.clock.source {
        weir_schema::ClockSource::Tsc => "tsc",
        weir_schema::ClockSource::Cntvct => "cntvct",
        weir_schema::ClockSource::Monotonic => "monotonic",
        weir_schema::ClockSource::Simulated => "simulated",
    }
}
