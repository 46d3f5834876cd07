//! What is asked of a device and its host alone, in place of the exchanges: `--pcie-read` and its
//! like.
//!
//! In: checked words, the engine. Out: transfers in the order in which they are measured. The
//! peer's names are from the device's view: it reads what the host writes. Spec: effective
//! bandwidth, 4.3.

use weir_schema::Transfer;

use super::words::{Given, refuse};
use crate::refusal::Refusal;

/// The engine that has them.
pub(super) const ENGINE: &str = "ocl-pcie";

/// Flags that ask for something, each with what.
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

/// Flags of the exchanges that transfers have nothing for, and what is nearest.
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

/// What is measured in place of exchanges; empty for exchanges.
///
/// # Errors
/// Flags that do not go together.
pub(super) fn transfers(given: &Given, engine: &str) -> Result<Vec<Transfer>, Refusal> {
    let asking = ASKING.iter().filter(|(flag, _)| given.has(flag));
    let Some((flag, _)) = asking.clone().next() else {
        if given.has("pcie-batch") {
            return Err(refuse(
                "--pcie-batch: of what? It needs --pcie-read, --pcie-write or --kernel-latency",
            ));
        }
        return Ok(Vec::new());
    };
    if engine != ENGINE {
        return Err(refuse(&format!(
            "--{flag}: comm-type {engine} has no device; add --comm-type {ENGINE}"
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
fn batch(given: &Given) -> Result<(), Refusal> {
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
