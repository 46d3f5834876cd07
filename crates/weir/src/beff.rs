//! `weir beff`, or a link with a peer's name: effective bandwidth between ranks.

use std::time::{SystemTime, UNIX_EPOCH};

use weir_doors::Refusal;
use weir_doors::beff::output::{dump, stdout};
use weir_doors::beff::{Action, Around, LACKS, Mode, Run, USAGE, complaints, exit_code, read};
use weir_schema::{
    ExchangeResult, GroupResult, Instrument, JobResult, Plan, ProgramFacts, RESULT_SCHEMA,
    RankFacts, RunResult, State,
};
use weir_sys::Tree;
use weir_sys::clock::Detection;
use weir_sys::memory::MemoryFacts;

use crate::{Outcome, output, printed, surroundings};

/// The words after `beff`.
pub(crate) fn run(words: &[String]) -> Outcome {
    let around = Around {
        launcher: None,
        memory_bytes: MemoryFacts::read(&Tree::real()).total.map(|b| b.0),
        offers: Vec::new(),
    };
    match read(words, &around)? {
        Action::Print(text) => Ok(printed(&text)),
        Action::SelfTest => Err(lacking("--selftest")),
        Action::Run(run) => carry_out(&run),
    }
}

fn lacking(what: &str) -> Refusal {
    Refusal {
        message: format!("error: {what}: no transport is in this build\n"),
        code: LACKS,
    }
}

fn carry_out(run: &Run) -> Outcome {
    for note in &run.notes {
        output::error(&format!("note: {note}\n"));
    }
    if run.mode == Mode::ShowPlan {
        let text = run.plan.to_json().map_err(|e| Refusal {
            message: format!("error: {e}\n"),
            code: USAGE,
        })?;
        return Ok(printed(&(text + "\n")));
    }
    if let Some(path) = &run.options.dump_json {
        output::check_writable(path).map_err(|message| Refusal {
            message: format!("error: --dump-json {path}: {message}"),
            code: USAGE,
        })?;
    }
    if run.mode == Mode::Run {
        return Err(lacking("beff"));
    }
    let mut result = envelope(&run.plan);
    result.warnings.clone_from(&run.warnings);
    if let Some(devices) = &run.devices {
        result.groups[0].jobs[0].exchange = Some(made_up(devices));
    }
    Ok(show(&result, run))
}

/// Prints and stores; the exit code.
fn show(result: &RunResult, run: &Run) -> u8 {
    output::error(&complaints(result));
    let mut good = true;
    if let Some(text) = stdout(result, &run.options) {
        good &= output::print(&text);
    }
    if let Some(path) = &run.options.dump_json {
        let text = dump(result, &run.options).unwrap_or_default();
        if let Err(message) = output::write_file(path, &text) {
            output::error(&message);
            good = false;
        }
    }
    let code = exit_code(result);
    if good { code } else { code.max(1) }
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

/// A result in which nothing has been done yet.
fn envelope(plan: &Plan) -> RunResult {
    let (_, clock) = Detection::begin().finish();
    let started = SystemTime::now().duration_since(UNIX_EPOCH);
    let jobs = plan.jobs().map(|(_, job)| JobResult {
        name: job.name.clone(),
        state: State::NotStarted,
        span: None,
        failure: None,
        workers: Vec::new(),
        confidence: Vec::new(),
        logs: Vec::new(),
        exchange: None,
    });
    RunResult {
        schema: RESULT_SCHEMA.to_owned(),
        weir_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ns: started.map_or(0, |t| u64::try_from(t.as_nanos()).unwrap_or(0)),
        run_id: 0,
        duration_ns: weir_units::Nanos(0),
        complete: true,
        ended_by: None,
        groups: vec![GroupResult {
            jobs: jobs.collect(),
            rates: Vec::new(),
        }],
        warnings: Vec::new(),
        disks: Vec::new(),
        clock: surroundings::clock_facts(clock),
        instrument: Instrument::default(),
        host: surroundings::host(),
        program: Some(program()),
        plan: plan.clone(),
    }
}

fn program() -> ProgramFacts {
    ProgramFacts {
        built_unix_s: env!("WEIR_BUILT").parse().ok(),
        commit: Some(env!("WEIR_COMMIT"))
            .filter(|c| !c.is_empty())
            .map(str::to_owned),
        library_path: std::env::var("LD_LIBRARY_PATH").ok(),
    }
}
