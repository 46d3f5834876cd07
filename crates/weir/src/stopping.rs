//! End of a process of weir's own that is no longer needed: by a request, then by force.
//!
//! In: the process. Out: signals. Not here: who waits for it.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Time that a process gets to end once it was asked to.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// A process that was asked to end.
pub(crate) struct StoppedProcess {
    process: Pid,
    since: Instant,
    is_killed: bool,
}

impl StoppedProcess {
    /// Asks a process to end. It is a child that was not waited for yet, so that no other process has its
    /// number.
    pub(crate) fn ask(process: Pid) -> Self {
        // It may have ended in this moment.
        let _ = kill_process(process, Signal::TERM);
        Self {
            process,
            since: Instant::now(),
            is_killed: false,
        }
    }

    /// Ends the process by force where its time is over.
    pub(crate) fn look(&mut self) {
        if !self.is_killed && self.since.elapsed() > PATIENCE {
            self.is_killed = true;
            let _ = kill_process(self.process, Signal::KILL);
        }
    }
}
