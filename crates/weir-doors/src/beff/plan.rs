//! Conversion of arguments to a plan: one job of exchanges over one transport.
//!
//! In: checked words, the engine, the environment. Out: a [`Plan`] in house words, with the
//! words for the echo beside it. Spec: effective bandwidth, 1 and 2.

use weir_schema::catalogue::TransportRecord;
use weir_schema::{
    EngineChoice, ExchangeWorkload, Job, Method, Pairing, Placement, Plan, Ranks, ShareCpus, Spawn,
    TargetsPerRank, Validation, Warning, Word,
};

use super::card;
use super::comm;
use super::inject;
use super::refuse;
use super::request::crossed;
use super::schedule::LoopSchedule;
use super::setting_flags::settings;
use super::values;
use crate::given::GivenFlags;
use crate::machine::Machine;
use crate::refusal::Refusal;

/// Plan that these arguments ask for.
///
/// # Errors
/// Values that contradict each other, or more memory than the machine has.
pub(super) fn of(
    given: &GivenFlags,
    transport: &TransportRecord,
    machine: &dyn Machine,
    warnings: &mut Vec<Warning>,
) -> Result<Plan, Refusal> {
    let ranks = ranks(given, transport, machine.launcher())?;
    let schedule = schedule(given, warnings);
    let mut workload = ExchangeWorkload {
        transfers: card::transfers(given, transport, &machine.transports())?,
        ..workload(given, &schedule, ranks.count)?
    };
    workload.faults = inject::faults(given, &workload, transport, ranks.count)?;
    fits(&workload, ranks.count, machine.memory_bytes())?;
    let choice = EngineChoice {
        settings: settings(given, transport),
        ..EngineChoice::new(transport.name)
    };
    let job = Job {
        placement: placement(given),
        words: echo(given, &schedule, transport),
        ..Job::of_exchanges("b_eff", choice, workload)
    };
    Ok(Plan {
        ranks: Some(ranks),
        ..Plan::new("effective bandwidth", "beff", vec![job])
    })
}

fn ranks(
    given: &GivenFlags,
    transport: &TransportRecord,
    launcher: Option<u32>,
) -> Result<Ranks, Refusal> {
    let asked: u32 = given.number("ranks");
    let own = given.all("ranks").next().is_some();
    if let Some(size) = launcher {
        if own && asked != size {
            return Err(refuse(&format!(
                "--ranks {asked}: the launcher started {size}; leave --ranks out"
            )));
        }
        if given.has("spawn") {
            return Err(refuse(
                "--spawn: the launcher has started the ranks; leave it out",
            ));
        }
        return Ok(Ranks {
            count: size,
            spawn: Spawn::Launcher,
            targets: TargetsPerRank::Own,
        });
    }
    let name = transport.name;
    if transport.needs_launcher && given.has("spawn") {
        return Err(refuse(&format!(
            "--spawn: the ranks of comm-type {name} are what a launcher starts"
        )));
    }
    if transport.needs_launcher && asked > 1 && !given.has("test") {
        return Err(refuse(&format!(
            "--comm-type {name}: start {asked} ranks with `mpirun -n {asked} weir beff`"
        )));
    }
    Ok(Ranks {
        count: asked,
        spawn: match given.text("spawn") {
            _ if transport.needs_launcher => Spawn::Launcher,
            Some("procs") => Spawn::Processes,
            _ => Spawn::Threads,
        },
        targets: TargetsPerRank::Own,
    })
}

fn schedule(given: &GivenFlags, warnings: &mut Vec<Warning>) -> LoopSchedule {
    let (upper, mut lower): (u64, u64) = (given.number("upper"), given.number("lower"));
    if lower > upper {
        warnings.push(crossed("Loop Length"));
        lower = upper;
    }
    let listed = given.parsed("sizes", values::exponents);
    let exponents = listed.unwrap_or_else(|| range(given, warnings));
    LoopSchedule {
        exponents,
        upper,
        lower,
        offset: given.number("o"),
        steps: given.number("d"),
    }
}

fn range(given: &GivenFlags, warnings: &mut Vec<Warning>) -> Vec<u8> {
    let (mut min, max): (u8, u8) = (given.number("min-size"), given.number("m"));
    if min > max {
        warnings.push(crossed("Message Sizes"));
        min = max;
    }
    (min..=max).step_by(given.number("step-size")).collect()
}

fn validation(given: &GivenFlags) -> Result<Validation, Refusal> {
    let asked = given.all("validate").last();
    if let (true, Some(asked)) = (given.has("skip-validation"), asked)
        && asked != "none"
    {
        return Err(refuse(&format!(
            "--skip-validation and --validate {asked} contradict each other; leave one of them out"
        )));
    }
    Ok(match given.text("validate") {
        _ if given.has("skip-validation") => Validation::None,
        Some("none") => Validation::None,
        Some("sample") => Validation::Sample,
        Some("full") => Validation::Full,
        _ => Validation::Const,
    })
}

fn workload(
    given: &GivenFlags,
    schedule: &LoopSchedule,
    ranks: u32,
) -> Result<ExchangeWorkload, Refusal> {
    let pairing = match given.text("pairing") {
        Some("pairs") => Pairing::Pairs,
        Some("ring") => Pairing::Ring,
        _ => Pairing::Auto,
    };
    if let Some(why) = pairing.misfit(ranks) {
        return Err(refuse(&format!("--pairing pairs: {why}")));
    }
    Ok(ExchangeWorkload {
        sizes: schedule.sizes(),
        repetitions: given.number("n"),
        replications: given.number("r"),
        pairing,
        method: match given.text("method") {
            Some("nonblocking") => Method::Nonblocking,
            Some("alltoallv") => Method::Alltoallv,
            Some("best") => Method::Best,
            _ => Method::Sendrecv,
        },
        warmup: given.number("warmup"),
        min_time_ns: given.seconds("min-time"),
        max_time_ns: given.seconds("max-time"),
        validation: validation(given)?,
        seed: given.number("seed"),
        timeout_ns: given.seconds("timeout").unwrap_or_default(),
        model: given.parsed("model", values::model),
        ..ExchangeWorkload::default()
    })
}

/// Sending and receiving buffers of all channels and ranks.
fn fits(work: &ExchangeWorkload, ranks: u32, memory: Option<u64>) -> Result<(), Refusal> {
    let largest = work.sizes.iter().map(|s| s.bytes().0).max().unwrap_or(0);
    let buffers = 2 * u64::from(work.replications) * u64::from(ranks);
    let needed = largest.saturating_mul(buffers);
    match memory {
        Some(available) if needed > available => {
            let exponent = largest.trailing_zeros();
            Err(refuse(&format!(
                "-m {exponent}: the buffers need {needed} bytes, available are {available}"
            )))
        }
        _ => Ok(()),
    }
}

fn placement(given: &GivenFlags) -> Placement {
    if given.is("pin", "none") {
        return Placement::default();
    }
    Placement {
        cpus: given.cpus("pin"),
        share: ShareCpus::Split,
        ..Placement::default()
    }
}

/// Arguments that the outputs repeat, whatever the plan made of them.
fn echo(given: &GivenFlags, schedule: &LoopSchedule, transport: &TransportRecord) -> Vec<Word> {
    let word = |key: &str, value: Option<String>| Word {
        key: key.to_owned(),
        value,
    };
    let mut out = vec![
        word("upper", Some(schedule.upper.to_string())),
        word("lower", Some(schedule.lower.to_string())),
        word(comm::SPELLING, Some(comm::spelling(transport))),
    ];
    for key in ["file", "model"] {
        if let Some(value) = given.text(key) {
            out.push(word(key, Some(value.to_owned())));
        }
    }
    for key in ["test", "i"] {
        if given.has(key) {
            out.push(word(key, None));
        }
    }
    out
}
