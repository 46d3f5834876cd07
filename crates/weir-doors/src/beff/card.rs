//! Transfers between a device and its host, in place of exchanges: `--pcie-read` and its like.
//!
//! In: checked arguments, the transport. Out: transfers in the order in which they are measured. The
//! peer's names are from the device's view: it reads what the host writes. Spec: effective
//! bandwidth, 4.3.

use weir_schema::Transfer;
use weir_schema::catalogue::{TransportCatalogue, TransportRecord};

use super::refuse;
use crate::given::GivenFlags;
use crate::refusal::Refusal;

/// Flags that ask for transfers, each with its transfers.
const ASKING: &[(&str, &[Transfer])] = &[
    ("pcie-read", &[Transfer::HostToDevice]),
    ("pcie-write", &[Transfer::DeviceToHost]),
    (
        "pcie-reverse",
        &[Transfer::HostToDevice, Transfer::DeviceToHost],
    ),
    ("kernel-latency", &[Transfer::KernelLaunch]),
];

/// The order of the measurement.
const ORDER: [Transfer; 3] = [
    Transfer::HostToDevice,
    Transfer::KernelLaunch,
    Transfer::DeviceToHost,
];

/// Flags of exchanges that transfers do not use, each with the nearest one.
const FOREIGN: &[(&str, &str)] = &[
    ("model", "a model is of exchanges; leave it out"),
    ("line-rate", "it is of a network; the table has B/s"),
    (
        "baseline",
        "it compares exchanges; store both results with --dump-json",
    ),
    ("json-compat", "the peer has no keys for it; leave it out"),
    ("pairing", "there is no partner; leave it out"),
    ("method", "there is no partner; leave it out"),
];

/// Steps that one queue takes before anything is waited for.
const LONGEST_BATCH: u64 = 1_000_000;

/// Transfers to measure in place of exchanges; empty for exchanges.
///
/// # Errors
/// Flags that do not go together.
pub(super) fn transfers(
    given: &GivenFlags,
    transport: &TransportRecord,
    all: &TransportCatalogue,
) -> Result<Vec<Transfer>, Refusal> {
    let asking = ASKING.iter().filter(|(flag, _)| given.has(flag));
    let Some((flag, wanted)) = asking.clone().next() else {
        return Ok(Vec::new());
    };
    let can = |t: &TransportRecord| wanted.iter().all(|w| t.transfers.contains(w));
    if !can(transport) {
        let able = all.records.iter().find(|t| can(t));
        let remedy = able.map_or_else(
            || "no transport of this build has one".to_owned(),
            |able| format!("add --comm-type {}", able.name),
        );
        return Err(refuse(&format!(
            "--{flag}: comm-type {} has no device; {remedy}",
            transport.name
        )));
    }
    if let Some((foreign, why)) = FOREIGN.iter().find(|(name, _)| given.has(name)) {
        return Err(refuse(&format!("--{foreign} with --{flag}: {why}")));
    }
    if let Some(format @ ("csv" | "md")) = given.text("format") {
        return Err(refuse(&format!(
            "--format {format} with --{flag}: there are several tables; use text, table or json"
        )));
    }
    if given.has("pcie-batch") {
        batch(given)?;
    }
    let asked: Vec<Transfer> = asking
        .flat_map(|(_, transfers)| *transfers)
        .copied()
        .collect();
    let ordered = ORDER
        .into_iter()
        .filter(|transfer| asked.contains(transfer));
    Ok(ordered.collect())
}

/// All steps of a batch lie in the queue at once, so that their number is bounded.
fn batch(given: &GivenFlags) -> Result<(), Refusal> {
    if given.has("min-time") {
        return Err(refuse(
            "--min-time with --pcie-batch: loops that grow do not fit in a queue; use --upper",
        ));
    }
    let longest: u64 = given.number("upper");
    if longest > LONGEST_BATCH {
        return Err(refuse(&format!(
            "--upper {longest} with --pcie-batch: a batch has at most {LONGEST_BATCH} steps"
        )));
    }
    Ok(())
}
