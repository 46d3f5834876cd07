//! `weir beff`, or a link with a peer's name: effective bandwidth between ranks.

mod selftest;

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use weir_doors::Refusal;
use weir_doors::beff::output::{dump, stdout};
use weir_doors::beff::{
    Action, Baseline, BeffEnvironment, BeffMode, BeffOptions, BeffRun, complaints, exit_code, read,
};
use weir_doors::flags::nothing_to_store;
use weir_doors::request::NamedFile;
use weir_schema::{ExchangeResult, Plan, RankFacts, RunResult, TargetsPerRank};
use weir_sys::Tree;
use weir_sys::clock::Detection;
use weir_sys::memory::MemoryFacts;
use weir_world::Launcher;

use crate::history::Keep;
use crate::measure::{self, MeasureRequest};
use crate::progress::{ProgressMode, ProgressObserver};
use crate::ranks::timeout_of;
use crate::{Outcome, environment, output, printed, runners, signals};

/// The longest result that is read to be compared with.
const LONGEST_RESULT: u64 = 1 << 28;

/// The words after `beff`. Under a launcher one process speaks for all.
pub(crate) fn run(words: &[String]) -> Outcome {
    let launcher = Launcher::of_this_process();
    let speaks = launcher.is_none_or(|l| l.prints_for_all());
    // Before any library of a transport is opened.
    signals::claim()?;
    let outcome = read(words, &environment(launcher)).and_then(|action| act(action, speaks));
    if speaks { outcome } else { Ok(0) }
}

/// What command lines are read against on this machine.
fn environment(launcher: Option<Launcher>) -> BeffEnvironment {
    BeffEnvironment {
        launcher: launcher.map(|l| l.size),
        memory_bytes: MemoryFacts::read(&Tree::real()).total.map(|b| b.0),
        transports: runners::transports(),
    }
}

fn act(action: Action, speaks: bool) -> Outcome {
    match action {
        Action::Print(_) | Action::SelfTest(_) if !speaks => Ok(0),
        Action::Print(text) => Ok(printed(&text)),
        Action::SelfTest(note) => {
            if let Some(note) = note {
                print_note(&note);
            }
            Ok(selftest::run())
        }
        Action::Run(run) => carry_out(&run, speaks),
    }
}

fn carry_out(run: &BeffRun, speaks: bool) -> Outcome {
    if run.mode == BeffMode::Run {
        return measure(run);
    }
    if !speaks {
        return Ok(0);
    }
    print_notes(run);
    if let Some(path) = &run.options.store {
        return Err(Refusal::usage(nothing_to_store(path)));
    }
    if run.mode == BeffMode::ShowPlan {
        let text = run.plan.to_json().map_err(Refusal::usage)?;
        return Ok(printed(&(text + "\n")));
    }
    writable(&run.options)?;
    let mut result = envelope(&run.plan);
    result.warnings.clone_from(&run.warnings);
    if let Some(devices) = &run.devices {
        result.groups[0].jobs[0].outcome =
            weir_schema::Outcome::Exchange(Box::new(made_up(devices)));
    }
    Ok(show(&result, &run.options))
}

fn measure(run: &BeffRun) -> Outcome {
    // What the result is compared with is read before anything is measured.
    let prepared: OnceLock<BeffOptions> = OnceLock::new();
    measure::measure(&MeasureRequest {
        plan: &|| {
            let mut options = run.options.clone();
            options.baseline = run.baseline.as_deref().map(baseline).transpose()?;
            writable(&options)?;
            print_notes(run);
            if let Some(baseline) = options.baseline.as_ref().filter(|_| !options.quiet) {
                let notes = baseline.differences(&run.plan);
                for note in &notes {
                    print_note(note);
                }
            }
            prepared.get_or_init(|| options);
            Ok(run.plan.clone())
        },
        ranks: None,
        targets: TargetsPerRank::Own,
        timeout: timeout_of(&run.plan),
        store: run.options.store.as_deref(),
        keep: Keep::WhereNamed,
        other_files: &other_files(run),
        warnings: &run.warnings,
        observer: &|_| {
            let mode = if run.options.quiet {
                ProgressMode::None
            } else {
                ProgressMode::of_terminal()
            };
            Box::new(ProgressObserver::of_one_job(mode))
        },
        report: &|result| {
            signals::release();
            Ok(show(result, prepared.get().unwrap_or(&run.options)))
        },
    })
}

/// What is read and written besides the result.
fn other_files(run: &BeffRun) -> Vec<NamedFile> {
    let read = run.baseline.iter();
    let read = read.map(|path| NamedFile::written(path, "the --baseline"));
    let written = run.options.dump_json.iter();
    let written = written.map(|path| NamedFile::written(path, "where --dump-json goes"));
    read.chain(written).collect()
}

fn print_notes(run: &BeffRun) {
    for note in run.notes.iter().filter(|_| !run.options.quiet) {
        print_note(note);
    }
}

fn print_note(note: &str) {
    output::error(&format!("note: {note}\n"));
}

/// Finds out before the run whether the result can be stored.
fn writable(options: &BeffOptions) -> Result<(), Refusal> {
    let Some(path) = &options.dump_json else {
        return Ok(());
    };
    output::check_writable(path).map_err(|why| {
        Refusal::usage(format!(
            "--dump-json {path}: {}",
            why.trim_start_matches("error: ")
        ))
    })
}

/// Reads what the result is compared with.
pub(crate) fn baseline(file: &str) -> Result<Baseline, Refusal> {
    let read = output::read_text(file, LONGEST_RESULT);
    read.and_then(|text| Baseline::read(file, &text))
        .map_err(|why| Refusal::usage(format!("--baseline {file}: {why}")))
}

/// Stores and prints; the exit code.
fn show(result: &RunResult, options: &BeffOptions) -> u8 {
    let mut good = true;
    // First, as a launcher that ends the ranks may not read any more what they print.
    if let Some(path) = &options.dump_json {
        let text = dump(result, options).unwrap_or_default();
        if let Err(message) = output::write_file(path, &text) {
            output::error(&message);
            good = false;
        }
    }
    output::error(&complaints(result));
    if let Some(text) = stdout(result, options) {
        good &= output::print(&text);
    }
    let code = exit_code(result);
    if good { code } else { code.max(1) }
}

/// A result in which nothing has been done yet.
fn envelope(plan: &Plan) -> RunResult {
    let (_, clock) = Detection::begin().finish();
    let started = SystemTime::now().duration_since(UNIX_EPOCH);
    RunResult {
        weir_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ns: started.map_or(0, |t| u64::try_from(t.as_nanos()).unwrap_or(0)),
        complete: true,
        clock: environment::clock_facts(clock),
        host: environment::host(),
        program: Some(environment::program()),
        ..RunResult::of(plan.clone())
    }
}

/// Ranks with devices that were made up, which exchanged nothing.
fn made_up(devices: &[u32]) -> ExchangeResult {
    let rank = |(rank, device): (u32, &u32)| RankFacts {
        rank,
        device: Some(*device),
        ..RankFacts::default()
    };
    ExchangeResult {
        ranks: (0..).zip(devices).map(rank).collect(),
        ..ExchangeResult::default()
    }
}
