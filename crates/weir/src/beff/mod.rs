//! `weir beff`, or a link with a peer's name: effective bandwidth between ranks.

mod measure;
mod selftest;
mod world;

use weir_doors::Refusal;
use weir_doors::beff::output::{dump, stdout};
use weir_doors::beff::{
    Action, Around, LACKS, Mode, Offer, Run, USAGE, complaints, exit_code, read,
};
use weir_schema::{ExchangeResult, Plan, RankFacts, RunResult};
use weir_sys::memory::MemoryFacts;
use weir_sys::{Availability, Tree};
use weir_world::Launcher;

use crate::{Outcome, output, printed};

/// The words after `beff`. Under a launcher one process speaks for all.
pub(crate) fn run(words: &[String]) -> Outcome {
    let launcher = Launcher::of_this_process();
    let speaks = launcher.is_none_or(|l| l.speaks());
    let outcome = read(words, &around(launcher)).and_then(|action| act(action, speaks));
    if speaks { outcome } else { Ok(0) }
}

/// What command lines are read against on this machine.
fn around(launcher: Option<Launcher>) -> Around {
    Around {
        launcher: launcher.map(|l| l.size),
        memory_bytes: MemoryFacts::read(&Tree::real()).total.map(|b| b.0),
        offer,
    }
}

fn offer(name: &str) -> Option<Offer> {
    let info = weir_net::find(name)?;
    let missing = match (info.availability)() {
        Availability::Ready => None,
        Availability::Missing { what, remedy } => {
            Some(format!("this machine lacks {what}; {remedy}"))
        }
    };
    Some(Offer { missing })
}

fn act(action: Action, speaks: bool) -> Outcome {
    match action {
        Action::Print(_) | Action::SelfTest if !speaks => Ok(0),
        Action::Print(text) => Ok(printed(&text)),
        Action::SelfTest => Ok(selftest::run()),
        Action::Run(run) => carry_out(&run, speaks),
    }
}

fn carry_out(run: &Run, speaks: bool) -> Outcome {
    if run.mode == Mode::Run {
        return measure(run);
    }
    if !speaks {
        return Ok(0);
    }
    tell_notes(run);
    if run.mode == Mode::ShowPlan {
        let text = run.plan.to_json().map_err(|e| Refusal {
            message: format!("error: {e}\n"),
            code: USAGE,
        })?;
        return Ok(printed(&(text + "\n")));
    }
    writable(run)?;
    let mut result = measure::envelope(&run.plan);
    result.warnings.clone_from(&run.warnings);
    if let Some(devices) = &run.devices {
        result.groups[0].jobs[0].exchange = Some(made_up(devices));
    }
    Ok(show(&result, run))
}

fn measure(run: &Run) -> Outcome {
    let Some(party) = gather(&run.plan)? else {
        return Ok(0);
    };
    tell_notes(run);
    writable(run)?;
    let mut result = measure::whole(party, &run.plan)?;
    result.warnings.splice(0..0, run.warnings.iter().cloned());
    Ok(show(&result, run))
}

/// The ranks of a plan where rank 0 is; elsewhere nothing, when the part of the rank is done.
fn gather(plan: &Plan) -> Result<Option<world::Party>, Refusal> {
    if let Some(refusal) = measure::refused(plan) {
        return Err(refusal);
    }
    let party = world::enter(plan)?;
    if party.speaks() {
        return Ok(Some(party));
    }
    measure::part(&party, plan);
    Ok(None)
}

/// Whether a plan is for ranks together: of exchanges, or of latency and bandwidth.
pub(crate) fn is_exchange(plan: &Plan) -> bool {
    world::job_of(plan).is_some()
}

/// Carries such a plan out; nothing elsewhere than at rank 0.
pub(crate) fn carry_out_plan(plan: &Plan) -> Result<Option<RunResult>, Refusal> {
    let party = gather(plan)?;
    party.map(|party| measure::whole(party, plan)).transpose()
}

fn tell_notes(run: &Run) {
    for note in run.notes.iter().filter(|_| !run.options.quiet) {
        output::error(&format!("note: {note}\n"));
    }
}

/// Finds out before the run whether the result can be stored.
fn writable(run: &Run) -> Result<(), Refusal> {
    let Some(path) = &run.options.dump_json else {
        return Ok(());
    };
    output::check_writable(path).map_err(|why| Refusal {
        message: format!(
            "error: --dump-json {path}: {}",
            why.trim_start_matches("error: ")
        ),
        code: USAGE,
    })
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

/// A refusal for what this machine lacks.
fn lacking(message: &str) -> Refusal {
    Refusal {
        message: format!("error: {message}\n"),
        code: LACKS,
    }
}
