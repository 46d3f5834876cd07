//! The end of a process of weir's own that is not needed any more: asked for first, and made where it does not come.
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
    /// Asks it to end. It is a child that nobody has waited for, so that its number is that of no other.
    pub(crate) fn ask(process: Pid) -> Self {
        // It may have ended in this moment.
        let _ = kill_process(process, Signal::TERM);
        Self {
            process,
            since: Instant::now(),
            is_killed: false,
        }
    }

    /// Ends it where it has not ended although there was time.
    pub(crate) fn look(&mut self) {
        if !self.is_killed && self.since.elapsed() > PATIENCE {
            self.is_killed = true;
            let _ = kill_process(self.process, Signal::KILL);
        }
    }
}
