//! `--inject`: damage on purpose, where it has an effect that is detected.
//!
//! In: the arguments, the work that they are to damage. Out: faults of the plan.

use weir_schema::catalogue::TransportRecord;
use weir_schema::{ExchangeWorkload, FaultKind, InjectedFault, Transfer, Validation};

use super::refuse;
use super::values;
use crate::given::GivenFlags;
use crate::refusal::Refusal;

/// The faults of a run.
///
/// # Errors
/// A fault that is unknown, or that would have no effect.
pub(super) fn faults(
    given: &GivenFlags,
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

/// Refuses a fault that lies outside the work.
fn fits(fault: &InjectedFault, work: &ExchangeWorkload, ranks: u32) -> Result<(), String> {
    let Some(why) = work.misfit(fault, ranks) else {
        return Ok(());
    };
    let launches_alone = fault.rank < ranks && work.transfers == [Transfer::KernelLaunch];
    let remedy = if launches_alone {
        "; add --pcie-read"
    } else {
        ""
    };
    Err(why + remedy)
}

/// Reason why a flipped byte would go undetected, with the remedy.
fn unseen(
    fault: &InjectedFault,
    work: &ExchangeWorkload,
    transport: &TransportRecord,
) -> Option<String> {
    let bytes = 1u64 << fault.exponent;
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
        Validation::Sample if !fault.is_at_an_end() => Some(format!(
            "--validate sample looks at the ends of a message, bytes 0 and {}; name one of them, \
             or use --validate const",
            bytes - 1
        )),
        _ => None,
    }
}
