//! Ranks that send each other bytes: as threads of one process, as local processes, or under an MPI
//! launcher.
//!
//! In: how many ranks, or a launcher's environment. Out: a [`World`] for each rank. A world
//! carries plans, barriers and results, in order between any two ranks; it is not what is
//! measured (transports are, in `weir-net`). Not here: what the bytes mean.
#![deny(unsafe_code)]

mod collective;
mod deadline;
mod error;
mod final_report;
mod first;
mod heartbeat;
mod host;
mod lanes;
mod launcher;
pub mod mpi;
mod processes;
mod rank_comm;
mod rank_monitor;
mod rank_task;
mod threads;
mod watchdog;

pub use collective::Collectives;
pub use error::WorldError;
pub use final_report::{CauseDistance, FailureSource, RankEnd, RankFailure, Reports};
pub use first::First;
pub use host::{RankHost, RankWork, RemoteWorld, serve};
pub use lanes::{Lane, Lanes};
pub use launcher::{Launcher, LauncherKind};
pub use processes::{ProcessWorld, RankProcesses, STOP_SIGNALS, started_rank};
pub use rank_comm::{CommError, RankComm};
pub use rank_monitor::RankMonitor;
pub use rank_task::RankTask;
pub use threads::{ThreadWorld, on_threads};
pub use watchdog::{StopCause, Supervisor, Watchdog, WorkProgress};

use std::time::Instant;

/// One rank's view of everybody who takes part.
///
/// Messages between two ranks arrive in the order they were sent. Every call ends at `until` at
/// the latest.
pub trait World {
    /// This rank, from 0.
    fn rank(&self) -> u32;

    /// Ranks in all.
    fn size(&self) -> u32;

    /// Sends a message; it may be on its way when this returns, and a long one may wait until the
    /// receiver takes it.
    ///
    /// # Errors
    /// The receiver is gone, or took too long.
    fn send(&self, to: u32, bytes: &[u8], until: Instant) -> Result<(), WorldError>;

    /// The next message of a rank.
    ///
    /// # Errors
    /// The sender is gone, or took too long.
    fn receive(&self, from: u32, until: Instant) -> Result<Vec<u8>, WorldError>;

    /// The MPI library that it lives in, for transports that measure the library itself.
    fn mpi(&self) -> Option<&mpi::MpiWorld> {
        None
    }

    /// Monitor of the ranks, where each is a process.
    fn monitor(&self) -> Option<&RankMonitor> {
        None
    }

    /// The processes of the ranks, where weir has started them.
    fn processes(&self) -> Option<&RankProcesses> {
        None
    }
}
