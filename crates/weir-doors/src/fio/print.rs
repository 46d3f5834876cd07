//! A result as fio prints it.
//!
//! In: a result, the arguments that led to it. Out: text in the forms that they name, the exit code.
//! Not here: text while a run goes on (`observer`).

use weir_schema::RunResult;

use super::options::{FioOptions, IdleScope};
use super::output::{FioTextOptions, Idleness, banner, failures, signal_notice};
use super::{exit_code, refuse};
use crate::door::{Printed, Voice};
use crate::given::Given;
use crate::house::{self, RunOptions, calls_peer, voice};
use crate::machine::Machine;
use crate::refusal::Refusal;

/// Flags of the house about weir's report.
const OF_REPORT: &[&str] = &["color", "ascii", "width", "pretty", "raw", "warnings"];

/// Flag that asks for a form of fio's, or for figures that weir's report does not have.
pub(super) fn peers_form(given: &Given) -> Option<&'static str> {
    const FLAGS: &[&str] = &[
        "output-format",
        "minimal",
        "append-terse",
        "compat-banner",
        "status-interval",
        "idle-prof",
    ];
    FLAGS.iter().copied().find(|flag| given.has(flag))
}

/// Refuses flags about weir's report where fio's is printed.
pub(super) fn refuse_report_flags(given: &Given) -> Result<(), Refusal> {
    let is_peer = voice(given) == Voice::Peer;
    let mut odd = OF_REPORT.iter().filter(|flag| given.house.has(flag));
    match odd.next().filter(|_| is_peer) {
        None => Ok(()),
        Some(flag) => Err(refuse(format!(
            "--{flag} is for weir's report, and fio's is printed; leave it out"
        ))),
    }
}

/// The text of a result. There is none where no job reads or writes blocks.
pub(super) fn print(result: &RunResult, given: &Given, machine: &dyn Machine) -> Printed {
    let options = FioOptions::of(given);
    let strict = RunOptions::read(given).strict;
    let complaint = strict.complaint(result.warnings.iter());
    let code = if calls_peer(given) {
        exit_code(result, options.exit).max(u8::from(complaint.is_some()))
    } else {
        house::exit_code(result, &strict)
    };
    let mut jobs = result.plan.jobs();
    if !jobs.any(|(_, job)| job.workload.blocks().is_some()) {
        return Printed {
            code,
            ..Printed::default()
        };
    }
    let texts = text_options(&options, machine);
    let mut text = report(result, &options, texts, machine);
    if !options.is_for_programs() {
        text.out
            .insert_str(0, &banner(&result.plan, texts, &result.weir_version));
    }
    text.err += &complaint.unwrap_or_default();
    Printed { code, ..text }
}

/// Settings of texts on this machine.
pub(super) fn text_options(options: &FioOptions, machine: &dyn Machine) -> FioTextOptions {
    options.texts(i32::try_from(machine.utc_offset_s()).unwrap_or_default())
}

/// The report without what goes before a run, and without an exit code.
pub(super) fn report(
    result: &RunResult,
    options: &FioOptions,
    texts: FioTextOptions,
    machine: &dyn Machine,
) -> Printed {
    let notice = result.ended_by.map(|end| signal_notice(end.signal));
    let wrong = notice.unwrap_or_default() + &failures(result);
    let idleness = options.idleness.and_then(|scope| idleness(scope, machine));
    let document = options.document(result, texts, idleness.as_ref());
    let (out, err) = if options.is_for_programs() {
        (document, wrong)
    } else {
        (wrong + &document, String::new())
    };
    Printed {
        out,
        err,
        ..Printed::default()
    }
}

fn idleness(scope: IdleScope, machine: &dyn Machine) -> Option<Idleness> {
    let mut idleness = machine.idleness()?;
    if scope == IdleScope::System {
        idleness.cpus.clear();
    }
    Some(idleness)
}
