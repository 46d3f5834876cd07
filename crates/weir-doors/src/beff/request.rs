//! The request of a command line: a measurement, a prediction, the self test.
//!
//! In: arguments that were read, the machine. Out: a [`Request`]. Nothing is opened or measured
//! here but the result to compare with.

use weir_schema::catalogue::TransportRecord;
use weir_schema::{ExchangeResult, Outcome, RankFacts, RunResult, Warning};

use super::device::made_up;
use super::flags::is_test;
use super::{Baseline, BeffFormat, BeffOptions, comm, first_exchange, plan, refuse, setting_flags};
use crate::door::Voice;
use crate::given::{Given, GivenFlags};
use crate::house::Input;
use crate::machine::Machine;
use crate::refusal::Refusal;
use crate::request::{Action, NamedFile, Request, Tool};

/// The longest result that is read to be compared with.
const LONGEST_RESULT: u64 = 1 << 28;

/// The request of these arguments.
///
/// # Errors
/// Arguments that do not go together (exit 2), transports that this build or machine lacks (3).
pub(super) fn read(given: &Given, machine: &dyn Machine) -> Result<Request, Refusal> {
    let all = machine.transports();
    if given.has("list-comm") {
        given.refuse_beside("--list-comm", &["list-comm"])?;
        return Ok(Request::print(comm::list(&all)));
    }
    if given.has("selftest") {
        return self_test(given);
    }
    let (transport, note) = comm::choose(
        given.text("comm-type").unwrap_or_default(),
        given.text("file"),
        machine.launcher().is_some(),
        &all,
    )?;
    let mut warnings = Vec::new();
    let plan = plan::of(given, &transport, machine, &mut warnings)?;
    let is_only_shown = given.house.has("show-plan");
    let is_shown = !is_only_shown && is_test(given);
    let form = form(given)?;
    refuse_contradictions(given)?;
    setting_flags::refuse_unused(given, &transport, &all)?;
    if let Some(why) = given.refusal() {
        return Err(refuse(&why));
    }
    if !is_shown && !is_only_shown {
        comm::ready(transport.name, &all)?;
    }
    let mut notes: Vec<String> = note.into_iter().collect();
    notes.extend(idle(given, &transport, !is_shown && !is_only_shown));
    let dump = form.dump_json.iter();
    let dump = dump.map(|path| NamedFile::written(path, "where --dump-json goes"));
    let mut files: Vec<NamedFile> = dump.collect();
    if let Some(path) = given.text("baseline").filter(|_| !is_only_shown) {
        notes.extend(baseline(path, machine)?.differences(&plan));
        files.push(NamedFile::read(path, "the --baseline"));
    }
    let mut request = Request::measure(given, plan);
    let Action::Measure(Input::Made(plan)) = &request.action else {
        return Ok(request);
    };
    request.rank_timeout = plan.jobs().find_map(|(_, job)| job.workload.timeout_ns());
    if is_shown {
        given.refuse_house("--test", &["voice"])?;
        let mut result = machine.blank_result(plan);
        result.warnings.clone_from(&warnings);
        devices(given, &mut result)?;
        request.action = Action::Show(Box::new(result));
        request.voice = Some(Voice::Peer);
    }
    if !form.quiet {
        request.notes = notes;
    }
    request.is_quiet = form.quiet;
    request.warnings = warnings;
    request.files = files;
    Ok(request)
}

/// The self test chooses all options of its runs itself. The peer's needs a kernel file, which
/// scripts give it.
fn self_test(given: &Given) -> Result<Request, Refusal> {
    given.refuse_beside("--selftest, which chooses its own", &["selftest", "file"])?;
    let mut request = Request::new(Action::Tool(Tool::TestTransports));
    let idle = |file| format!("the self test runs no kernel: {file} is left alone");
    request.notes.extend(given.text("file").map(idle));
    Ok(request)
}

fn refuse_contradictions(given: &Given) -> Result<(), Refusal> {
    if given.has("test") && given.is("model", "fit") && !given.house.has("show-plan") {
        return Err(refuse(
            "--model fit is fitted to a run, and --test does not run",
        ));
    }
    if let Some(path) = given.text("dump-json").filter(|path| *path != "-")
        && given.house.has("repeat")
    {
        return Err(refuse(&format!(
            "--dump-json {path} with --repeat: it is one file for several runs; use --store-result"
        )));
    }
    Ok(())
}

/// The result to compare with.
fn baseline(file: &str, machine: &dyn Machine) -> Result<Baseline, Refusal> {
    let read = machine.file(file, LONGEST_RESULT);
    read.and_then(|text| Baseline::read(file, &text))
        .map_err(|why| Refusal::usage(format!("--baseline {file}: {why}")))
}

/// Format of the output, and the result to compare with.
///
/// # Errors
/// Options that contradict or cannot act, a file that cannot be compared with.
pub(super) fn options(given: &Given, machine: &dyn Machine) -> Result<BeffOptions, Refusal> {
    if let Some(why) = given.refusal() {
        return Err(refuse(&why));
    }
    let file = given.text("baseline");
    Ok(BeffOptions {
        baseline: file.map(|file| baseline(file, machine)).transpose()?,
        ..form(given)?
    })
}

fn form(given: &GivenFlags) -> Result<BeffOptions, Refusal> {
    let compat = given.text("json-compat").is_some();
    let dump = given.text("dump-json").map(str::to_owned);
    let asked = given.all("format").last();
    if let (Some("-"), Some(other)) = (dump.as_deref(), asked.filter(|f| *f != "json")) {
        return Err(refuse(&format!(
            "--dump-json - and --format {other}: standard output is for one of them; give a path"
        )));
    }
    let format = match given.text("format") {
        Some("table") => BeffFormat::Table,
        Some("json") => BeffFormat::Json,
        Some("csv") => BeffFormat::Csv,
        Some("md") => BeffFormat::Markdown,
        _ if dump.as_deref() == Some("-") => BeffFormat::Json,
        _ => BeffFormat::Text,
    };
    Ok(BeffOptions {
        format,
        hpcc_json: compat,
        text_1_2: given.text("text-compat") == Some("1.2"),
        dump_json: dump.filter(|d| d != "-"),
        line_rate_bits_per_s: given.bits_per_second("line-rate"),
        quiet: given.has("quiet"),
        simulate: given.whole("simulate"),
        baseline: None,
    })
}

/// Gives the ranks of a result the made-up devices that are asked for; they exchanged nothing.
fn devices(given: &GivenFlags, result: &mut RunResult) -> Result<(), Refusal> {
    let Some((_, job, _)) = first_exchange(&result.plan) else {
        return Ok(());
    };
    if !given.has("fake-devices") {
        return Ok(());
    }
    let ranks = result.plan.ranks.map_or(1, |ranks| ranks.count);
    let devices = made_up(&job.engine, given.number("fake-devices"), ranks)?;
    let rank = |(rank, device)| RankFacts {
        rank,
        device: Some(device),
        ..RankFacts::default()
    };
    let exchange = ExchangeResult {
        ranks: (0..).zip(devices).map(rank).collect(),
        ..ExchangeResult::default()
    };
    for job in result.groups.iter_mut().flat_map(|group| &mut group.jobs) {
        job.outcome = Outcome::Exchange(Box::new(exchange.clone()));
    }
    Ok(())
}

/// Notes about the peer's options that have nothing to act on here: its users' scripts have them
/// in every call.
fn idle(given: &GivenFlags, transport: &TransportRecord, is_run: bool) -> Vec<String> {
    let mut notes = Vec::new();
    for (flag, _) in given.iter() {
        let why = match flag.name {
            "i" => "it is recorded, and nothing more".to_owned(),
            "min-size" | "m" | "step-size" if given.text("sizes").is_some() => {
                "--sizes says all sizes".to_owned()
            }
            _ if setting_flags::is_noted(flag, transport, is_run) => {
                format!("comm-type {} does not use it", transport.name)
            }
            _ => continue,
        };
        let note = format!("{} has no effect: {why}", flag.spelling());
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

/// A warning about bounds that contradict each other, in the peer's words.
pub(super) fn crossed(what: &str) -> Warning {
    Warning::new(
        "exchange-bounds",
        None,
        format!("{what}: Minimum is bigger than maximum. Setting minimum to value of maximum."),
    )
}
