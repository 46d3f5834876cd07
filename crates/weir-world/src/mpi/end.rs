//! The end of MPI, which comes for all ranks together or not at all: how long one waits for it.
//!
//! In: who is lost. Out: the end of all ranks, where MPI does not end by itself. Everything is
//! printed by then. Not here: the call that ends MPI.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::abi::Abi;
use super::rank::Emergency;
use crate::{RankMonitor, WorldError};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// Ranks that have all said what they had to say end within this time.
const FINALIZE: Duration = Duration::from_secs(10);

/// Longest wait for another rank to end all ranks.
const OTHERS: Duration = Duration::from_secs(5);

/// The exit code of a world that came apart.
const APART: u8 = 1;

/// The end of MPI, as one rank sees it.
pub(super) struct End {
    pub(super) rank: u32,
    pub(super) monitor: RankMonitor,
}

impl End {
    /// Ends all ranks where MPI does not end: rank 0 waits for a while, the others as long as rank 0
    /// is there, which may take its time to print.
    pub(super) fn guard<A: Abi>(&self, is_done: &AtomicBool, emergency: Emergency<A>) {
        let begun = Instant::now();
        while !is_done.load(Ordering::Acquire) {
            if let Some(loss) = self.monitor.lost() {
                self.apart(&loss, emergency);
            }
            if self.rank == 0 && begun.elapsed() > FINALIZE {
                emergency.abort(APART);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// A rank is lost. The lowest of the others ends all, after it has said so.
    pub(super) fn apart<A: Abi>(&self, loss: &WorldError, emergency: Emergency<A>) -> ! {
        let speaker = u32::from(loss.peer() == Some(0));
        if self.rank != speaker {
            std::thread::sleep(OTHERS);
        }
        emergency.abort(APART)
    }
}
