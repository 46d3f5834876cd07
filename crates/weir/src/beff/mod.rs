//! `weir beff`, or a link with a peer's name: effective bandwidth between ranks.

mod measure;
mod selftest;
mod work;

use weir_doors::Refusal;
use weir_doors::beff::output::{dump, stdout};
use weir_doors::beff::{
    Action, Around, Baseline, Mode, Offer, Options, Run, USAGE, complaints, exit_code, read,
};
use weir_schema::{ExchangeResult, Plan, RankFacts, RunResult};
use weir_sys::memory::MemoryFacts;
use weir_sys::{Availability, Tree};
use weir_world::Launcher;

use crate::world::Party;
use crate::{Outcome, output, printed, progress, signals, world};

/// The longest result that is read to be compared with.
const LONGEST_RESULT: u64 = 1 << 28;

/// The words after `beff`. Under a launcher one process speaks for all.
pub(crate) fn run(words: &[String]) -> Outcome {
    let launcher = Launcher::of_this_process();
    let speaks = launcher.is_none_or(|l| l.speaks());
    // Before any library of a transport is opened.
    signals::claim()?;
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
        Action::Print(_) | Action::SelfTest(_) if !speaks => Ok(0),
        Action::Print(text) => Ok(printed(&text)),
        Action::SelfTest(note) => {
            if let Some(note) = note {
                tell_note(&note);
            }
            Ok(selftest::run())
        }
        Action::Run(mut run) => carry_out(&mut run, speaks),
    }
}

fn carry_out(run: &mut Run, speaks: bool) -> Outcome {
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
    writable(&run.options)?;
    let mut result = measure::envelope(&run.plan);
    result.warnings.clone_from(&run.warnings);
    if let Some(devices) = &run.devices {
        result.groups[0].jobs[0].exchange = Some(made_up(devices));
    }
    Ok(show(&result, run))
}

fn measure(run: &mut Run) -> Outcome {
    let options = &mut run.options;
    let file = run.baseline.as_deref();
    let ready = || {
        options.baseline = file.map(baseline).transpose()?;
        writable(options)
    };
    let Some(party) = gather(&run.plan, ready)? else {
        return Ok(0);
    };
    if let Some(baseline) = &run.options.baseline {
        run.notes.extend(baseline.differences(&run.plan));
    }
    tell_notes(run);
    let mode = if run.options.quiet {
        progress::Mode::None
    } else {
        progress::Mode::of_terminal()
    };
    let run = &*run;
    let tell = |result: &RunResult| {
        let mut result = result.clone();
        result.warnings.splice(0..0, run.warnings.iter().cloned());
        show(&result, run)
    };
    let (result, _party) = measure::whole(party, &run.plan, mode, &tell)?;
    Ok(tell(&result))
}

/// The ranks of a plan where rank 0 is, if that is `ready`; elsewhere nothing, when the part of the
/// rank is done.
fn gather(
    plan: &Plan,
    ready: impl FnOnce() -> Result<(), Refusal>,
) -> Result<Option<Party>, Refusal> {
    signals::claim()?;
    if let Some(refusal) = measure::refused(plan) {
        return Err(refusal);
    }
    let party = world::gather(work::ranks_of(plan))?;
    let first = party.follow(ready)?;
    if party.speaks() {
        return Ok(Some(party));
    }
    measure::part(&party, first, plan);
    Ok(None)
}

/// Whether a plan is for ranks together: of exchanges, or of latency and bandwidth.
pub(crate) fn is_exchange(plan: &Plan) -> bool {
    work::job_of(plan).is_some()
}

/// Carries such a plan out, and has the result told where rank 0 is; the exit code.
pub(crate) fn carry_out_plan(
    plan: &Plan,
    mode: progress::Mode,
    tell: &(dyn Fn(&RunResult) -> u8 + Sync),
) -> Outcome {
    let Some(party) = gather(plan, || Ok(()))? else {
        return Ok(0);
    };
    let (result, _party) = measure::whole(party, plan, mode, tell)?;
    Ok(tell(&result))
}

fn tell_notes(run: &Run) {
    for note in run.notes.iter().filter(|_| !run.options.quiet) {
        tell_note(note);
    }
}

fn tell_note(note: &str) {
    output::error(&format!("note: {note}\n"));
}

/// Finds out before the run whether the result can be stored.
fn writable(options: &Options) -> Result<(), Refusal> {
    let Some(path) = &options.dump_json else {
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

/// Reads what the result is compared with.
fn baseline(file: &str) -> Result<Baseline, Refusal> {
    let read = output::read_text(file, LONGEST_RESULT);
    read.and_then(|text| Baseline::read(file, &text))
        .map_err(|why| Refusal {
            message: format!("error: --baseline {file}: {why}\n"),
            code: USAGE,
        })
}

/// Stores and prints; the exit code.
fn show(result: &RunResult, run: &Run) -> u8 {
    let mut good = true;
    // First, as a launcher that ends the ranks may not read any more what they print.
    if let Some(path) = &run.options.dump_json {
        let text = dump(result, &run.options).unwrap_or_default();
        if let Err(message) = output::write_file(path, &text) {
            output::error(&message);
            good = false;
        }
    }
    output::error(&complaints(result));
    if let Some(text) = stdout(result, &run.options) {
        good &= output::print(&text);
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
