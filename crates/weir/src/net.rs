//! `weir net`: tests of the network between ranks.

use weir_doors::net::output::stdout;
use weir_doors::net::{Action, Run, complaints, exit_code, read};
use weir_schema::TargetsPerRank;
use weir_world::Launcher;

use crate::measure::{self, Request};
use crate::progress::{Mode, ProgressWatch};
use crate::{Outcome, output, printed, signals};

/// The words after `net`. Under a launcher one process speaks for all.
pub(crate) fn run(words: &[String]) -> Outcome {
    let launcher = Launcher::of_this_process();
    let speaks = launcher.is_none_or(|l| l.speaks());
    let outcome = match read(words, launcher.map(|l| l.size)) {
        Ok(Action::Print(text)) if speaks => Ok(printed(&text)),
        Ok(Action::Print(_)) => Ok(0),
        Ok(Action::Run(run)) => measure(&run),
        Err(refusal) => Err(refusal),
    };
    if speaks { outcome } else { Ok(0) }
}

fn measure(run: &Run) -> Outcome {
    measure::measure(&Request {
        plan: &|| Ok(run.plan.clone()),
        ranks: None,
        targets: TargetsPerRank::Own,
        timeout: None,
        watch: &|_| Box::new(ProgressWatch::of_one_job(Mode::of_terminal())),
        report: &|result| {
            signals::release();
            output::error(&complaints(result));
            let text = stdout(result, run.format).unwrap_or_default();
            let code = exit_code(result);
            Ok(if output::print(&text) {
                code
            } else {
                code.max(1)
            })
        },
    })
}
