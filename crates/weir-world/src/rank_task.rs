//! A rank's part in what all do together, whatever that is: guarded by a watchdog, ended by a
//! report.
//!
//! In: the world, signals, a limit, and the work. Out: at rank 0 what came of the work of all. Not
//! here: what the work is, and what is made of it.

use std::io;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use weir_sys::Signals;

use crate::final_report::{self, RankEnd, Reports};
use crate::watchdog::External;
use crate::{RankComm, Supervisor, Watchdog, World};

/// Environment of a rank's work.
#[expect(missing_debug_implementations, reason = "holds the world")]
pub struct RankTask<'a> {
    /// All ranks.
    pub world: &'a dyn World,
    /// Signals to this process.
    pub signals: &'a Signals,
    /// Longest time without progress.
    pub limit: Duration,
    /// Whoever looks on.
    pub supervisor: Supervisor<'a>,
}

impl RankTask<'_> {
    /// Does the work of one rank, and reports. At rank 0 the outcomes of all that reported, nothing
    /// elsewhere; those of an early end hold what was done. Where there is no thread for the
    /// watchdog `unguarded` says how that ends.
    pub fn run<O: Serialize + DeserializeOwned>(
        &self,
        work: impl FnOnce(&RankComm<'_>, &Watchdog) -> (O, RankEnd),
        unguarded: impl FnOnce(io::Error) -> (O, RankEnd),
    ) -> Reports<O> {
        let watchdog = Watchdog::new(self.limit);
        if let Some(monitor) = self.world.monitor() {
            monitor.set_limit(self.limit);
        }
        let comm = RankComm::new(self.world);
        let external = External {
            signals: self.signals,
            monitor: self.world.monitor(),
        };
        let ends = (&watchdog, self.signals);
        let guarded = watchdog.guard(comm.rank(), external, self.supervisor, || {
            let (outcome, end) = work(&comm, &watchdog);
            final_report::exchange(&comm, ends, outcome, end)
        });
        guarded.unwrap_or_else(|error| {
            let (outcome, end) = unguarded(error);
            final_report::exchange(&comm, ends, outcome, end)
        })
    }
}
