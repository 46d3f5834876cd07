//! Conversion of arguments to a plan: one job of ping-pongs and rings over one transport.

use weir_schema::catalogue::TransportRecord;
use weir_schema::{
    EngineChoice, Job, LatencyBandwidthWorkload, Placement, Plan, Ranks, ShareCpus, Spawn,
    TargetsPerRank,
};
use weir_units::Nanos;

use crate::beff::comm;
use crate::flags::nearest;
use crate::given::Given;
use crate::machine::Machine;

/// The plan of these arguments.
///
/// # Errors
/// A value that cannot be used, and what it takes.
pub(super) fn of(given: &Given, machine: &dyn Machine) -> Result<Plan, String> {
    let transport = transport(given, machine)?;
    let ranks = ranks(given, &transport, machine.launcher())?;
    let work = LatencyBandwidthWorkload {
        matrix: given.has("matrix"),
        seed: given.number("seed"),
        min_time_ns: given.seconds("min-time"),
        max_time_ns: given.seconds("max-time"),
        timeout_ns: given.seconds("timeout").unwrap_or_default(),
        ..LatencyBandwidthWorkload::default()
    };
    let mut job = Job::alone("lat-bw", EngineChoice::new(transport.name), work);
    job.placement = placement(given, machine.launcher());
    Ok(Plan {
        ranks: Some(ranks),
        ..Plan::new("latency and bandwidth", "net", vec![job])
    })
}

/// The transport, by weir's name or the peer's.
fn transport(given: &Given, machine: &dyn Machine) -> Result<TransportRecord, String> {
    let all = &machine.transports();
    let asked = given.text("comm-type").unwrap_or_default();
    let name = match asked.to_uppercase() {
        auto if auto == "AUTO" => comm::HOSTS.to_owned(),
        other => other,
    };
    let found = comm::named(&name, machine.launcher().is_some(), all);
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
    given: &Given,
    transport: &TransportRecord,
    launcher: Option<u32>,
) -> Result<Ranks, String> {
    let asked = given.number("ranks");
    if let Some(started) = launcher {
        if given.has("ranks") && asked != started {
            return Err(format!(
                "--ranks {asked}: the launcher started {started}; leave --ranks out"
            ));
        }
        if given.has("spawn") {
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
    let spawn = match (launcher, given.text("spawn")) {
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

fn placement(given: &Given, launcher: Option<u32>) -> Placement {
    let is_placed = launcher.is_some() && !given.has("pin");
    if is_placed || given.is("pin", "none") {
        return Placement::default();
    }
    Placement {
        cpus: given.cpus("pin"),
        share: ShareCpus::Split,
        ..Placement::default()
    }
}

/// Silence after which a rank of the plan is lost.
pub(super) fn timeout(plan: &Plan) -> Option<Nanos> {
    plan.jobs().find_map(|(_, job)| job.workload.timeout_ns())
}
