//! Reports of each rank to rank 0, after every size and in the end. Rank 0 makes of them the sizes
//! that all ranks have done, whatever becomes of a rank later.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use weir_schema::{
    ExchangeResult, Method, MpiFacts, Pairing, RankFacts, RankTimes, SizeResult, Transfer,
};
use weir_units::Nanos;

use super::ExchangeContext;
use crate::error::Halt;

/// One rank's part of the result.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ExchangeOutcome {
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
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SizeOfRank {
    pub(super) exponent: u8,
    pub(super) loop_length: u64,
    pub(super) warmup: u64,
    pub(super) method: Method,
    pub(super) transfer: Option<Transfer>,
    pub(super) times_ns: Vec<Nanos>,
    pub(super) wrong_bytes: u64,
    pub(super) lost: Option<u64>,
}

impl ExchangeOutcome {
    /// The sizes that were not reported yet, and everything else as it stands.
    fn take_unreported(&mut self) -> Self {
        let sizes = std::mem::take(&mut self.sizes);
        let rest = self.clone();
        Self { sizes, ..rest }
    }

    fn add(&mut self, report: Self) {
        let mut sizes = std::mem::take(&mut self.sizes);
        sizes.extend(report.sizes);
        *self = Self { sizes, ..report };
    }
}

/// Reports of every rank at rank 0.
#[derive(Debug, Default)]
pub struct RankReports(Mutex<Vec<Option<ExchangeOutcome>>>);

impl RankReports {
    /// Of ranks that have reported nothing yet.
    pub(super) fn new(ranks: u32) -> Self {
        Self(Mutex::new((0..ranks).map(|_| None).collect()))
    }

    /// Nobody panics while holding it.
    fn lock(&self) -> MutexGuard<'_, Vec<Option<ExchangeOutcome>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, rank: u32, report: ExchangeOutcome) {
        if let Some(known) = self.lock().get_mut(rank as usize) {
            known.get_or_insert_default().add(report);
        }
    }

    /// In rank order; of the sizes, those that every rank has done.
    pub(super) fn merge(&self, transport: &str) -> ExchangeResult {
        let known = self.lock();
        let done = |known: &Option<ExchangeOutcome>| known.as_ref().map_or(0, |o| o.sizes.len());
        let common = known.iter().map(done).min().unwrap_or(0);
        let mut result = ExchangeResult {
            transport: transport.to_owned(),
            ..ExchangeResult::default()
        };
        for (rank, outcome) in (0..).zip(known.iter()) {
            let Some(outcome) = outcome else { continue };
            if rank == 0 {
                result.pairing = outcome.pairing;
                result.mpi.clone_from(&outcome.mpi);
                result.barrier_ns = outcome.barrier_ns;
            }
            result.generation_ns = result.generation_ns.max(outcome.generation_ns);
            result.execution_ns = result.execution_ns.max(outcome.execution_ns);
            result.validation_ns = result.validation_ns.max(outcome.validation_ns);
            result.ranks.push(RankFacts {
                rank,
                ..outcome.facts.clone()
            });
            for (index, size) in outcome.sizes.iter().take(common).enumerate() {
                if result.sizes.len() == index {
                    result.sizes.push(size.of_no_rank());
                }
                result.sizes[index].ranks.push(size.of_rank(rank));
            }
        }
        if let [only] = known.as_slice() {
            result.loopback = result.sizes.iter().all(|size| size.transfer.is_none());
            // Several ranks go round the devices; one might as well have had another.
            let others = only.as_ref().map(|o| o.other_devices.clone());
            result.other_devices = others.unwrap_or_default();
        }
        result
    }
}

impl SizeOfRank {
    fn of_no_rank(&self) -> SizeResult {
        SizeResult {
            exponent: self.exponent,
            loop_length: self.loop_length,
            warmup: self.warmup,
            method: self.method,
            transfer: self.transfer,
            ranks: Vec::new(),
        }
    }

    fn of_rank(&self, rank: u32) -> RankTimes {
        RankTimes {
            rank,
            times_ns: self.times_ns.clone(),
            wrong_bytes: self.wrong_bytes,
            lost: self.lost,
        }
    }
}

/// Reports to rank 0 what has come since the last time.
pub(super) fn send_report(
    context: &ExchangeContext<'_>,
    outcome: &mut ExchangeOutcome,
) -> Result<(), Halt> {
    let (comm, watchdog) = (context.comm, context.watchdog);
    let report = outcome.take_unreported();
    if comm.rank() != 0 {
        // Plain data has a form in JSON; were it not so, rank 0 would say that it is garbled.
        let bytes = serde_json::to_vec(&report).unwrap_or_default();
        return Ok(comm.send(0, &bytes, watchdog)?);
    }
    context.reports.add(0, report);
    for rank in 1..comm.size() {
        let bytes = comm.receive(rank, watchdog)?;
        let report = serde_json::from_slice(&bytes)
            .map_err(|e| Halt::Garbled(format!("rank {rank}: times garbled: {e}")))?;
        context.reports.add(rank, report);
    }
    Ok(())
}
