//! `--inject`: damage on purpose, where it acts and somebody notices.
//!
//! In: the words, the work that they are to damage. Out: faults of the plan.

use weir_schema::catalogue::TransportRecord;
use weir_schema::{ExchangeWorkload, FaultKind, InjectedFault, Transfer, Validation};

use super::argv::{Given, refuse};
use super::values;
use crate::refusal::Refusal;

/// The faults of a run.
///
/// # Errors
/// A word that is wrong, or that nothing would come of.
pub(super) fn faults(
    given: &Given,
    work: &ExchangeWorkload,
    transport: &TransportRecord,
    ranks: u32,
) -> Result<Vec<InjectedFault>, Refusal> {
    let one = |text| {
        let fault = values::fault(text)?;
        fits(&fault, work, ranks)?;
        unseen(&fault, work, transport).map_or(Ok(fault), Err)
    };
    let named = |text| one(text).map_err(|why| refuse(&format!("--inject {text}: {why}")));
    given.all("inject").map(named).collect()
}

/// Refuses what is not part of the work.
fn fits(fault: &InjectedFault, work: &ExchangeWorkload, ranks: u32) -> Result<(), String> {
    if fault.rank >= ranks {
        return Err(format!("the ranks are 0 to {}", ranks - 1));
    }
    if work.transfers == [Transfer::KernelLaunch] {
        return Err("launches of a kernel have no messages; add --pcie-read".to_owned());
    }
    let size = work.sizes.iter().find(|s| s.exponent == fault.exponent);
    let size = size.ok_or("no messages of this size are exchanged")?;
    let received = size.bytes().0 * u64::from(work.replications);
    if fault.kind == FaultKind::Flip && fault.at >= received {
        return Err(format!("a rank receives bytes 0 to {}", received - 1));
    }
    // With a shortest time the loop may become longer.
    let length = size.loop_length;
    if fault.kind != FaultKind::Flip && fault.at > length && work.min_time_ns.is_none() {
        return Err(format!("the loop has {length} exchanges of this size"));
    }
    Ok(())
}

/// Why nobody would notice a flipped byte, and what to change.
fn unseen(
    fault: &InjectedFault,
    work: &ExchangeWorkload,
    transport: &TransportRecord,
) -> Option<String> {
    let bytes = 1u64 << fault.exponent;
    let is_end = [0, bytes - 1].contains(&(fault.at % bytes));
    match work.validation {
        _ if fault.kind != FaultKind::Flip => None,
        _ if !transport.moves_data => Some(format!(
            "comm-type {} receives nothing; take another --comm-type",
            transport.name
        )),
        Validation::None => Some(
            "nothing is checked that could notice it; leave --skip-validation and \
             --validate none out"
                .to_owned(),
        ),
        Validation::Sample if !is_end => Some(format!(
            "--validate sample looks at the ends of a message, bytes 0 and {}; name one of them, \
             or use --validate const",
            bytes - 1
        )),
        _ => None,
    }
}
