//! From words to a plan: one job of ping-pongs and rings over one transport.

use clap::ArgMatches;
use clap::parser::ValueSource;
use weir_schema::catalogue::{TransportCatalogue, TransportRecord};
use weir_schema::{
    EngineChoice, Job, LatencyBandwidthWorkload, Placement, Plan, Ranks, ShareCpus, Spawn,
    TargetsPerRank,
};
use weir_units::{Nanos, parse};

use super::flags::MOST_RANKS;
use super::word;
use crate::beff::comm;
use crate::flags::nearest;

/// The plan of these words.
///
/// # Errors
/// What is wrong with a value, and what it takes.
pub(super) fn of(
    matches: &ArgMatches,
    words: &[String],
    launcher: Option<u32>,
    transports: &TransportCatalogue,
) -> Result<Plan, String> {
    let transport = transport(matches, launcher, transports)?;
    let ranks = ranks(matches, &transport, launcher)?;
    let seed = word(matches, "seed").unwrap_or_default();
    let work = LatencyBandwidthWorkload {
        matrix: matches.get_flag("matrix"),
        seed: seed
            .parse()
            .map_err(|_| format!("--seed {seed}: expected a whole number from 0"))?,
        min_time_ns: time(matches, "min-time")?,
        max_time_ns: time(matches, "max-time")?,
        timeout_ns: time(matches, "timeout")?.unwrap_or_default(),
        ..LatencyBandwidthWorkload::default()
    };
    let mut job = Job::alone("lat-bw", EngineChoice::new(transport.name), work);
    job.placement = placement(matches, launcher)?;
    let command = ["weir", "net"].into_iter().map(str::to_owned);
    Ok(Plan {
        command: command.chain(words.iter().cloned()).collect(),
        ranks: Some(ranks),
        ..Plan::new("latency and bandwidth", "net", vec![job])
    })
}

/// The transport, by weir's name or the peer's.
fn transport(
    matches: &ArgMatches,
    launcher: Option<u32>,
    all: &TransportCatalogue,
) -> Result<TransportRecord, String> {
    let asked = word(matches, "comm-type").unwrap_or_default();
    let name = match asked.to_uppercase() {
        auto if auto == "AUTO" => comm::HOSTS.to_owned(),
        other => other,
    };
    let found = comm::named(&name, launcher.is_some(), all);
    let able = all.records.iter().filter(|t| t.connects_any_two);
    let able: Vec<_> = able.map(|t| t.name).collect();
    let list = able.join(", ");
    match found.filter(|transport| all.find(transport.name).is_some()) {
        Some(transport) if transport.connects_any_two => Ok(transport),
        Some(transport) => Err(format!(
            "--comm-type {asked}: `{}` carries no messages between any two ranks ({list} do)",
            transport.name
        )),
        None => {
            let near = nearest(&asked.to_lowercase(), able.iter().copied());
            let hint = near.map_or_else(String::new, |n| format!("\n  help: did you mean `{n}`?"));
            Err(format!(
                "--comm-type {asked}: there is no such transport; it takes AUTO, {list}{hint}"
            ))
        }
    }
}

fn ranks(
    matches: &ArgMatches,
    transport: &TransportRecord,
    launcher: Option<u32>,
) -> Result<Ranks, String> {
    let text = word(matches, "ranks").unwrap_or_default();
    let asked = text.parse::<u32>().ok().filter(|n| *n <= MOST_RANKS);
    let asked =
        asked.ok_or_else(|| format!("--ranks {text}: expected a number from 2 to {MOST_RANKS}"))?;
    let given = |name| matches.value_source(name) == Some(ValueSource::CommandLine);
    if let Some(started) = launcher {
        if given("ranks") && asked != started {
            return Err(format!(
                "--ranks {asked}: the launcher started {started}; leave --ranks out"
            ));
        }
        if given("spawn") {
            return Err("--spawn: the launcher has started the ranks; leave it out".to_owned());
        }
    }
    let count = launcher.unwrap_or(asked);
    if count < 2 {
        let from = if launcher.is_some() {
            "the launcher"
        } else {
            "--ranks"
        };
        return Err(format!(
            "{from} says {count}: lat-bw needs at least 2 ranks"
        ));
    }
    if launcher.is_none() && transport.needs_launcher {
        return Err(format!(
            "--comm-type {}: start {count} ranks with `mpirun -n {count} weir net lat-bw`",
            transport.name
        ));
    }
    let spawn = match (launcher, word(matches, "spawn")) {
        (Some(_), _) => Spawn::Launcher,
        (None, Some("procs")) => Spawn::Processes,
        (None, _) => Spawn::Threads,
    };
    Ok(Ranks {
        count,
        spawn,
        targets: TargetsPerRank::Own,
    })
}

fn placement(matches: &ArgMatches, launcher: Option<u32>) -> Result<Placement, String> {
    let given = matches.value_source("pin") == Some(ValueSource::CommandLine);
    let cpus = match word(matches, "pin") {
        Some("none") | None => return Ok(Placement::default()),
        Some("auto") if launcher.is_some() && !given => return Ok(Placement::default()),
        Some("auto") => None,
        Some(list) => Some(parse::cpus(list).map_err(|why| {
            format!(
                "--pin {list}: {}",
                why.replace("takes ", "takes auto, none, or ")
            )
        })?),
    };
    Ok(Placement {
        cpus,
        share: ShareCpus::Split,
        ..Placement::default()
    })
}

fn time(matches: &ArgMatches, name: &str) -> Result<Option<Nanos>, String> {
    let text = word(matches, name);
    let time =
        text.map(|text| parse::seconds(text).map_err(|why| format!("--{name} {text}: {why}")));
    time.transpose()
}
