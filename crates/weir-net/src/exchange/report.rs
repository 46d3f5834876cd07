//! What each rank has to say in the end, and what rank 0 makes of it.

use serde::{Deserialize, Serialize};
use weir_schema::{
    ExchangeResult, Method, MpiFacts, Pairing, RankFacts, RankTimes, SizeResult, Transfer,
};
use weir_units::Nanos;

/// One rank's part of the result.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(super) facts: RankFacts,
    pub(super) mpi: Option<MpiFacts>,
    pub(super) pairing: Pairing,
    pub(super) other_devices: Vec<String>,
    pub(super) sizes: Vec<SizeOfRank>,
    pub(super) barrier_ns: Option<Nanos>,
    pub(super) generation_ns: Nanos,
    pub(super) execution_ns: Nanos,
    pub(super) validation_ns: Nanos,
}

/// One rank's runs of one size.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SizeOfRank {
    pub(super) exponent: u8,
    pub(super) loop_length: u64,
    pub(super) method: Method,
    pub(super) transfer: Option<Transfer>,
    pub(super) times_ns: Vec<Nanos>,
    pub(super) wrong_bytes: u64,
    pub(super) lost: Option<u64>,
}

/// In rank order; of the sizes, those that every rank has done.
pub(super) fn merge(transport: &str, mut outcomes: Vec<Outcome>) -> ExchangeResult {
    let common = outcomes.iter().map(|o| o.sizes.len()).min().unwrap_or(0);
    let mut sizes: Vec<SizeResult> = Vec::with_capacity(common);
    for (rank, outcome) in (0..).zip(&mut outcomes) {
        for (index, size) in outcome.sizes.drain(..).take(common).enumerate() {
            if sizes.len() == index {
                sizes.push(SizeResult {
                    exponent: size.exponent,
                    loop_length: size.loop_length,
                    method: size.method,
                    transfer: size.transfer,
                    ranks: Vec::new(),
                });
            }
            sizes[index].ranks.push(RankTimes {
                rank,
                times_ns: size.times_ns,
                wrong_bytes: size.wrong_bytes,
                lost: size.lost,
            });
        }
    }
    // Several ranks go round the devices; one might as well have had another.
    let other_devices = match outcomes.as_mut_slice() {
        [only] => std::mem::take(&mut only.other_devices),
        _ => Vec::new(),
    };
    let exchanged = sizes.iter().all(|size| size.transfer.is_none());
    let first = &outcomes[0];
    let longest = |of: fn(&Outcome) -> Nanos| outcomes.iter().map(of).max().unwrap_or_default();
    ExchangeResult {
        transport: transport.to_owned(),
        pairing: first.pairing,
        mpi: first.mpi.clone(),
        loopback: outcomes.len() == 1 && exchanged,
        other_devices,
        sizes,
        barrier_ns: first.barrier_ns,
        generation_ns: longest(|o| o.generation_ns),
        execution_ns: longest(|o| o.execution_ns),
        validation_ns: longest(|o| o.validation_ns),
        ranks: outcomes.into_iter().map(|o| o.facts).collect(),
    }
}
