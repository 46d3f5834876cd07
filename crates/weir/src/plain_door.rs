//! A door that needs nothing of this machine but to have its plan carried out.
//!
//! In: its record, the words after its name. Out: the exit code. Under a launcher one process
//! speaks for all.

use weir_doors::{Door, DoorPath, DoorRequest, Refusal};
use weir_schema::{Plan, RunResult};
use weir_world::Launcher;

use crate::history::Keep;
use crate::measure::{self, MeasureRequest};
use crate::progress::{ProgressMode, ProgressObserver};
use crate::ranks::timeout_of;
use crate::{Outcome, output, printed, runners, signals};

/// Does what the words ask of the door.
pub(crate) fn run(door: &Door, words: &[String]) -> Outcome {
    let Some(path) = door.path else {
        return Err(Refusal::usage(format!(
            "`weir {}` measures nothing",
            door.verb
        )));
    };
    let launcher = Launcher::of_this_process();
    let speaks = launcher.is_none_or(|l| l.prints_for_all());
    let outcome = match (path.read)(words, launcher.map(|l| l.size), &runners::transports()) {
        Ok(DoorRequest::Print(text)) if speaks => Ok(printed(&text)),
        Ok(DoorRequest::Print(_)) => Ok(0),
        Ok(DoorRequest::Measure {
            plan,
            store,
            history,
        }) => {
            let is_noted = plan.door == door.verb && plan.command.ends_with(words);
            debug_assert!(is_noted, "`weir show` finds neither the door nor its words");
            let keep = Keep::Always(history.as_deref());
            measure(&path, words, &plan, store.as_deref(), keep)
        }
        Err(refusal) => Err(refusal),
    };
    if speaks { outcome } else { Ok(0) }
}

fn measure(
    path: &DoorPath,
    words: &[String],
    plan: &Plan,
    store: Option<&str>,
    keep: Keep<'_>,
) -> Outcome {
    measure::measure(&MeasureRequest {
        timeout: timeout_of(plan),
        store,
        keep,
        ..MeasureRequest::of(
            &|| Ok(plan.clone()),
            &|_| Box::new(ProgressObserver::of_one_job(ProgressMode::of_terminal())),
            &|result| print(path, words, result),
        )
    })
}

/// Prints a result as the door does; the exit code.
pub(crate) fn print(path: &DoorPath, words: &[String], result: &RunResult) -> Outcome {
    signals::release();
    let text = (path.print)(result, words, &runners::transports())?;
    output::error(&text.err);
    let is_out = output::print(&text.out);
    Ok(if is_out { text.code } else { text.code.max(1) })
}
