//! `weir run`: the house door.

use std::io;

use weir_doors::Refusal;
use weir_doors::net::complaints;
use weir_doors::run::{Action, Format, Input, Options, Progress, Run, USAGE, exit_code, read};
use weir_jobfile::{Context, Diagnostic, Source, compile};
use weir_report::{ColorChoice, Flags, Style};
use weir_schema::{Plan, RunResult, SchemaError, Word};
use weir_units::Percent;

use crate::progress::{Mode, Shown};
use crate::ranks::Ranks;
use crate::session::{self, Choices};
use crate::{Outcome, beff, output, printed, signals, speaks, surroundings, world};

/// The words after `run`.
pub(crate) fn run(words: &[String]) -> Outcome {
    match read(words) {
        Err(_) | Ok(Action::Print(_)) if !speaks() => Ok(0),
        Err(refusal) => Err(refusal),
        Ok(Action::Print(text)) => Ok(printed(&text)),
        Ok(Action::Run(run)) => measure(&run),
        Ok(Action::Calibrate(_)) => calibrate(),
    }
}

fn measure(run: &Run) -> Outcome {
    if let Input::Plan { path, .. } = &run.input
        && stored_plan(path).is_ok_and(|plan| beff::is_exchange(&plan))
    {
        let speaks = speaks();
        let outcome = exchange(run, speaks);
        return if speaks { outcome } else { Ok(0) };
    }
    let entered = world::enter(run.ranks)?;
    let Some(entered) = entered else {
        if run.timeout.is_some() {
            return Err(Refusal {
                message: "error: --timeout: it is for several ranks, and there is one\n".to_owned(),
                code: USAGE,
            });
        }
        let plan = plan_to_run(run)?;
        if run.show_plan {
            return show(&plan);
        }
        let result = carry_out(run, &plan, None)?;
        return Ok(report(&result, &run.options));
    };
    let code = entered.each(|world| together(run, &Ranks::new(world, run.per_rank, run.timeout)));
    let code = code.map_err(|e| world::came_apart(&e))?;
    // Before the world ends, which may end this process.
    let code = code.map_err(|refusal| {
        output::error(&refusal.message);
        Refusal {
            message: String::new(),
            ..refusal
        }
    });
    let left = entered.leave();
    // What the report tells need not be told again.
    if matches!(code, Ok(0)) {
        left?;
    }
    code
}

/// This rank's part of a run on several.
fn together(run: &Run, ranks: &Ranks<'_>) -> Outcome {
    let read = ranks.is_first().then(|| plan_to_run(run));
    let plan = ranks.share(read)?;
    if run.show_plan {
        return if ranks.is_first() { show(&plan) } else { Ok(0) };
    }
    let mine = carry_out(run, &plan, Some(ranks))?;
    let all = ranks.merge(mine)?;
    Ok(all.map_or(0, |result| report(&result, &run.options)))
}

/// The plan that the words ask for; everything that can be refused is refused here.
fn plan_to_run(run: &Run) -> Result<Plan, Refusal> {
    let mut plan = plan_of(&run.input)?;
    run.adjust(&mut plan)?;
    for file in &run.options.outputs {
        refuse_own_input(&file.path, &run.input)?;
        output::check_writable(&file.path).map_err(|message| Refusal {
            message,
            code: USAGE,
        })?;
    }
    Ok(plan)
}

fn show(plan: &Plan) -> Outcome {
    let text = plan.to_json().map_err(|e| Refusal {
        message: format!("error: {e}\n"),
        code: USAGE,
    })?;
    Ok(printed(&(text + "\n")))
}

fn carry_out(run: &Run, plan: &Plan, ranks: Option<&Ranks<'_>>) -> Result<RunResult, Refusal> {
    let speaks = ranks.is_none_or(Ranks::is_first);
    let mode = if speaks {
        progress_mode(run.options.progress)
    } else {
        Mode::None
    };
    let mut shown = Shown::new(mode, plan.jobs().count());
    let mut observer = |view: &weir_run::execute::LiveView<'_>| shown.show(view);
    let meet = || ranks.map_or(Ok(()), Ranks::meet);
    let agree = |fit| ranks.map_or(Ok(()), |r| r.agree(fit));
    let result = session::run(
        plan,
        Choices {
            announce: &|text| output::error(&format!("{text}\n")),
            observer: Some(&mut observer),
            forewarn: None,
            usage: USAGE,
            others: ranks.map(|r| r.others(&meet)),
            crew: ranks.and_then(Ranks::crew),
            monitor: ranks.and_then(Ranks::monitor),
            agree: ranks.is_some().then_some(&agree),
        },
    )?;
    shown.erase();
    Ok(result)
}

/// A stored plan for ranks together, which says itself what they are; one of them reports.
fn exchange(run: &Run, speaks: bool) -> Outcome {
    if run.ranks.is_some() {
        return Err(Refusal {
            message: "error: --ranks: a plan of exchanges says itself how many\n".to_owned(),
            code: USAGE,
        });
    }
    if run.timeout.is_some() {
        return Err(Refusal {
            message: "error: --timeout: a plan of exchanges says itself how long\n".to_owned(),
            code: USAGE,
        });
    }
    let plan = plan_to_run(run)?;
    if run.show_plan {
        return if speaks { show(&plan) } else { Ok(0) };
    }
    let mode = progress_mode(run.options.progress);
    let tell = |result: &RunResult| {
        output::error(&complaints(result));
        let code = report(result, &run.options);
        code.max(weir_doors::net::exit_code(result))
    };
    beff::carry_out_plan(&plan, mode, &tell)
}

/// A report must not replace what the run was read from.
fn refuse_own_input(report: &str, input: &Input) -> Result<(), Refusal> {
    let sources: Vec<&str> = match input {
        Input::Plan { path, .. } => vec![path],
        Input::Jobs(request) => request
            .sources
            .iter()
            .filter_map(|s| match s {
                Source::File(path) => Some(path.as_str()),
                Source::Words(_) => None,
            })
            .collect(),
    };
    let same = |a: &str, b: &str| {
        let (a, b) = (std::fs::canonicalize(a), std::fs::canonicalize(b));
        a.is_ok() && a.ok() == b.ok()
    };
    if sources.iter().any(|source| same(report, source)) {
        let message =
            format!("error: the report {report} would replace the file it is made from\n");
        return Err(Refusal {
            message,
            code: USAGE,
        });
    }
    Ok(())
}

/// Stores and prints the report; the exit code.
fn report(result: &RunResult, options: &Options) -> u8 {
    signals::release();
    let mut good = true;
    // First, as a launcher that ends the ranks may not read any more what they print.
    for file in &options.outputs {
        if let Err(message) =
            output::write_file(&file.path, &text_of(result, file.format, options, false))
        {
            output::error(&message);
            good = false;
        }
    }
    good &= output::print(&text_of(result, options.format, options, true));
    if options.format == Format::Json {
        session::tell_failures(result);
    }
    let code = exit_code(result, &options.strict);
    if good { code } else { code.max(1) }
}

fn text_of(result: &RunResult, format: Format, options: &Options, on_stdout: bool) -> String {
    match format {
        // Numbers of a result are finite, and everything else has a JSON form.
        Format::Json => weir_report::json(result).unwrap_or_default(),
        Format::Text if beff::is_exchange(&result.plan) => {
            let table = weir_doors::beff::Options::of(weir_doors::beff::Format::Table);
            let text = weir_doors::beff::output::stdout(result, &table);
            text.or_else(|| weir_doors::net::output::stdout(result, weir_doors::net::Format::Text))
                .unwrap_or_default()
        }
        Format::Text => weir_report::text(result, &style(result, options, on_stdout)),
    }
}

fn style(result: &RunResult, options: &Options, on_stdout: bool) -> Style {
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
        percentiles: options.percentiles.clone().or_else(|| listed(result)),
    };
    let terminal = surroundings::terminal(&io::stdout());
    Style::detect(&flags, &surroundings::environment(), terminal)
}

/// The percentiles that the job file asks for, if it does.
fn listed(result: &RunResult) -> Option<Vec<Percent>> {
    let plan = &result.plan;
    let asks = |words: &[Word]| words.iter().any(|w| w.key == "percentile_list");
    let everywhere = asks(&plan.global_words);
    let (_, job) = plan.jobs().find(|(_, j)| everywhere || asks(&j.words))?;
    Some(job.recording.percentiles.clone())
}

fn progress_mode(progress: Progress) -> Mode {
    match progress {
        Progress::Auto => Mode::detect(),
        Progress::Plain => Mode::Plain,
        Progress::None => Mode::None,
        Progress::Json => Mode::Json,
    }
}

fn plan_of(input: &Input) -> Result<Plan, Refusal> {
    match input {
        Input::Plan { path, .. } => stored_plan(path),
        Input::Jobs(request) => {
            let surroundings = surroundings::read();
            let context = Context {
                surroundings: &surroundings,
                catalogue: &weir_block::catalogue(),
                files: &surroundings::RealFiles,
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
    Refusal {
        message: text.join("\n"),
        code: USAGE,
    }
}

fn stored_plan(path: &str) -> Result<Plan, Refusal> {
    let refuse = |message: String| Refusal {
        message,
        code: USAGE,
    };
    let text =
        std::fs::read_to_string(path).map_err(|e| refuse(format!("error: {path}: {e}\n")))?;
    Plan::from_json(&text).map_err(|e| {
        let gap = if matches!(e, SchemaError::Version { .. }) {
            " "
        } else {
            ""
        };
        refuse(format!("error: {path}:{gap}{e}\n"))
    })
}

/// Measures the loop's own cost and nothing else.
fn calibrate() -> Outcome {
    let plan = Plan {
        name: "calibrate".to_owned(),
        door: "run".to_owned(),
        ..Plan::default()
    };
    let choices = Choices {
        announce: &|_| (),
        observer: None,
        forewarn: None,
        usage: USAGE,
        others: None,
        crew: None,
        monitor: None,
        agree: None,
    };
    let result = session::run(&plan, choices)?;
    let clock = &result.clock;
    let loop_cost = result.instrument.ns_per_op.unwrap_or(f64::NAN);
    let text = format!(
        "clock       {} ({})\nclock read  {:.1} ns\nloop        {loop_cost:.1} ns per operation\n",
        source_name(&result),
        clock.reason,
        clock.read_ns
    );
    Ok(printed(&text))
}

fn source_name(result: &RunResult) -> &'static str {
    match result.clock.source {
        weir_schema::ClockSource::Tsc => "tsc",
        weir_schema::ClockSource::Cntvct => "cntvct",
        weir_schema::ClockSource::Monotonic => "monotonic",
        weir_schema::ClockSource::Simulated => "simulated",
    }
}
