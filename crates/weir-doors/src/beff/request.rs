//! What the words ask for: a run with its plan and options, or something printed instead.
//!
//! In: the words after `beff`, the environment. Out: an [`Action`]. Pure: nothing is
//! opened or measured here.

use weir_schema::catalogue::{TransportCatalogue, TransportRecord};
use weir_schema::{Plan, Warning};

use weir_units::parse;

use super::argv::{parse, refuse};
use super::comm;
use super::device::made_up;
use super::{Action, BeffFormat, BeffMode, BeffOptions, BeffRun, help, plan, setting_flags};
use crate::given::GivenFlags;
use crate::refusal::Refusal;

/// What a command line is read against.
#[derive(Clone, Debug, Default)]
pub struct BeffEnvironment {
    /// Ranks that an MPI launcher started; none without one.
    pub launcher: Option<u32>,
    /// Memory of this machine, where known.
    pub memory_bytes: Option<u64>,
    /// The transports of this build.
    pub transports: TransportCatalogue,
}

/// The words after `beff`.
///
/// # Errors
/// Words that are not understood (exit 2), transports that this build or machine lacks (3).
pub fn read(words: &[String], environment: &BeffEnvironment) -> Result<Action, Refusal> {
    let given = parse(words)?;
    if given.has("help") {
        return Ok(Action::Print(help::page()));
    }
    if given.has("list-comm") {
        return Ok(Action::Print(comm::list(&environment.transports)));
    }
    if given.has("selftest") {
        return self_test(&given);
    }
    let (transport, note) = comm::choose(
        given.text("comm-type").unwrap_or_default(),
        given.text("file"),
        environment.launcher.is_some(),
        &environment.transports,
    )?;
    let mut warnings = Vec::new();
    let plan = plan::of(&given, words, &transport, environment, &mut warnings)?;
    let options = options(&given)?;
    let mode = mode(&given, &options)?;
    setting_flags::refuse_unused(&given, &transport, &environment.transports)?;
    if let Some(why) = given.refusal() {
        return Err(refuse(&why));
    }
    if mode == BeffMode::Run {
        comm::ready(transport.name, &environment.transports)?;
    }
    let mut notes: Vec<String> = note.into_iter().collect();
    notes.extend(idle(&given, &transport, mode));
    Ok(Action::Run(Box::new(BeffRun {
        devices: devices(&given, &plan)?,
        baseline: given.text("baseline").map(str::to_owned),
        plan,
        options,
        mode,
        warnings,
        notes,
    })))
}

/// The self test chooses all options of its runs itself. The peer's needs a kernel file, which
/// scripts give it.
fn self_test(given: &GivenFlags) -> Result<Action, Refusal> {
    let foreign = given
        .iter()
        .find(|(flag, _)| !["selftest", "file"].contains(&flag.name));
    let idle = |file| format!("the self test runs no kernel: {file} is left alone");
    match foreign {
        None => Ok(Action::SelfTest(given.text("file").map(idle))),
        Some((flag, _)) => Err(refuse(&format!(
            "{} with --selftest, which chooses its own; leave it out",
            flag.spelling()
        ))),
    }
}

fn mode(given: &GivenFlags, options: &BeffOptions) -> Result<BeffMode, Refusal> {
    if given.has("show-plan") {
        return Ok(BeffMode::ShowPlan);
    }
    let fitted = given.text("model") == Some("fit");
    // A fitted model is fitted to a run first.
    if options.simulate.is_some() && !fitted {
        return Ok(BeffMode::Test);
    }
    if given.has("test") {
        if fitted {
            return Err(refuse(
                "--model fit is fitted to a run, and --test does not run",
            ));
        }
        return Ok(BeffMode::Test);
    }
    Ok(BeffMode::Run)
}

fn options(given: &GivenFlags) -> Result<BeffOptions, Refusal> {
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
    let line_rate = given.text("line-rate").map(|text| {
        parse::bits_per_s(text).map_err(|why| refuse(&format!("--line-rate {text}: {why}")))
    });
    Ok(BeffOptions {
        format,
        hpcc_json: compat,
        text_1_2: given.text("text-compat") == Some("1.2"),
        dump_json: dump.filter(|d| d != "-"),
        store: given.text("store-result").map(str::to_owned),
        line_rate_bits_per_s: line_rate.transpose()?,
        quiet: given.has("quiet"),
        simulate: given.text("simulate").map(|_| given.number("simulate")),
        baseline: None,
    })
}

fn devices(given: &GivenFlags, plan: &Plan) -> Result<Option<Vec<u32>>, Refusal> {
    if given.text("fake-devices").is_none() {
        return Ok(None);
    }
    let Some((_, job)) = plan.jobs().next() else {
        return Ok(None);
    };
    let ranks = plan.ranks.map_or(1, |ranks| ranks.count);
    made_up(&job.engine, given.number("fake-devices"), ranks).map(Some)
}

/// Notes about the peer's options that have nothing to act on here: its users' scripts have them
/// in every call.
fn idle(given: &GivenFlags, transport: &TransportRecord, mode: BeffMode) -> Vec<String> {
    let mut notes = Vec::new();
    for (flag, _) in given.iter() {
        let why = match flag.name {
            "i" => "it is recorded, and nothing more".to_owned(),
            "min-size" | "m" | "step-size" if given.text("sizes").is_some() => {
                "--sizes says all sizes".to_owned()
            }
            _ if setting_flags::is_noted(flag, transport, mode) => {
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
