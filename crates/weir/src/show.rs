//! `weir show`: prints a stored result again.
//!
//! In: the arguments after `show`. Out: on standard output what its door printed, or what another door
//! prints of it; the exit code. Not here: what is printed (`weir-doors`, `weir-report`).

use weir_doors::args::read_again;
use weir_doors::house::{RunOptions, voice};
use weir_doors::show::{Action, Show, check_words, read};
use weir_doors::{DoorCall, Given, Printed, Refusal, Voice, top};
use weir_schema::{RunResult, Runs};

use crate::machine::ThisMachine;
use crate::stored::{self, Stored};
use crate::{Outcome, compare, house_report, output, printed};

/// Carries out the arguments after `show`.
pub(crate) fn run(words: &[String]) -> Outcome {
    match read(words)? {
        Action::Print(text) => Ok(printed(&text)),
        Action::Show(show) => print_again(&show),
    }
}

fn print_again(show: &Show) -> Outcome {
    let refuse = |why: String| Refusal::usage(format!("{}: {why}", show.file));
    let result = match stored::read_from(&show.file, show.from.as_deref())? {
        Stored::One(result) => result,
        Stored::Several(runs) => return runs_again(show, &runs),
    };
    let is_foreign = result.source.is_some();
    let own = if is_foreign { "run" } else { &result.plan.door };
    let door = show.door.as_deref().unwrap_or(own);
    if is_foreign && door != "run" {
        return Err(refuse(format!(
            "another program measured it, which `{door}` does not print (`--as run` does)"
        )));
    }
    let mut words = if show.door.is_none() && !is_foreign {
        own_words(&result)
    } else {
        Vec::new()
    };
    if let Some(door) = top::door(door) {
        check_words(door, &words, &show.words)?;
    }
    words.extend(show.words.iter().cloned());
    // A run that was cut short may have printed nothing.
    let may_be_empty = show.door.is_none() && !result.is_newer();
    let text = match of_door(door, &result, &words, show.door.is_none()) {
        Ok(Some(text)) if may_be_empty || !text.out.is_empty() => text,
        // Its door, its arguments or its jobs may be of the newer weir.
        _ if result.is_newer() && show.door.is_none() && show.words.is_empty() => {
            output::error("note: its own door cannot print it here: this is weir's report\n");
            of_run(&result, &RunOptions::usual())
        }
        Err(why) => return Err(why),
        Ok(printed) => {
            let what = match printed {
                Some(_) => format!("there is nothing in it that `{door}` prints"),
                None => format!("`{door}` is no door that prints results"),
            };
            return Err(refuse(format!("{what} (`--as run` prints everything)")));
        }
    };
    output::error(&text.err);
    Ok(u8::from(!output::print(&text.out)))
}

/// Prints the reports of several runs. Doors other than `run` print one run only.
fn runs_again(show: &Show, runs: &Runs) -> Outcome {
    let refuse = |why: String| Refusal::usage(format!("{}: {why}", show.file));
    if show.door.is_none() && runs.comparison.is_some() {
        return compare::shown(&show.file, &show.words);
    }
    if let Some(door) = show.door.as_deref().filter(|door| *door != "run") {
        let why = format!("it has several runs, which `{door}` does not print (`--as run` does)");
        return Err(refuse(why));
    }
    // Those of a comparison choose how it is printed, not its runs.
    let is_own = show.door.is_none() && runs.command.get(1).is_some_and(|verb| verb == "run");
    let own = runs.command.iter().skip(2).filter(|_| is_own);
    let own: Vec<String> = own.cloned().collect();
    if let Some(door) = top::door("run") {
        check_words(door, &own, &show.words)?;
    }
    let words = [own, show.words.clone()].concat();
    let options = RunOptions::read(&given("run", &words)?);
    let text = house_report::text_of_runs(runs, options.format, &options, true);
    Ok(u8::from(!output::print(&text)))
}

/// Arguments of a door that choose how a result is printed.
fn given(verb: &str, words: &[String]) -> Result<Given, Refusal> {
    let door = top::door(verb).ok_or_else(|| Refusal::usage(format!("no door `{verb}`")))?;
    read_again(&DoorCall {
        door,
        link: None,
        args: words.to_vec(),
    })
}

/// The text of a door that the driver carries out; `None` where it prints no results.
fn of_door(
    verb: &str,
    result: &RunResult,
    words: &[String],
    is_own: bool,
) -> Result<Option<Printed>, Refusal> {
    let Some(measures) = top::door(verb).and_then(|door| door.measures) else {
        return Ok(None);
    };
    let given = given(verb, words)?;
    // Another door is asked for its peer's text.
    let stored = if is_own { result.plan.voice } else { None };
    let voice = match given.house.text("voice") {
        Some("weir") => Voice::Weir,
        Some(_) => Voice::Peer,
        None if voice(&given) == Voice::Peer => Voice::Peer,
        None => stored.unwrap_or(Voice::Peer),
    };
    let options = RunOptions::read(&given);
    match measures.print.filter(|_| voice == Voice::Peer) {
        Some(print) => {
            let mut text = print(result, &given, &ThisMachine::new())?;
            house_report::add_report(&mut text, result, &options);
            Ok(Some(text))
        }
        None => Ok(Some(of_run(result, &options))),
    }
}

/// Arguments that the result was measured with, after the door's name.
fn own_words(result: &RunResult) -> Vec<String> {
    let words = result.plan.command.iter();
    // `fio …`, else `weir DOOR …`.
    let is_link = result
        .plan
        .command
        .first()
        .is_some_and(|word| word != "weir");
    let before = if is_link { 1 } else { 2 };
    words.skip(before).cloned().collect()
}

fn of_run(result: &RunResult, options: &RunOptions) -> Printed {
    Printed {
        out: house_report::text_of(result, options.format, options, true),
        ..Printed::default()
    }
}
