//! Signals that arrived, counted.
//!
//! In: whoever catches signals counts them here. Out: whether a run is to end, and by which signal.
//! Not here: how signals are caught (the binary), what a run does about them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

/// Signals that arrived: who catches them counts here.
#[derive(Debug, Default)]
pub struct Signals {
    /// The last one's number.
    pub number: AtomicI32,
    /// Interruptions so far; the second ends the run at once.
    pub interruptions: AtomicU32,
    /// Somebody who watches the run wants it to end as if its time were over.
    pub end_early: AtomicBool,
    /// The process was stopped and has gone on (`SIGCONT`).
    pub gone_on: Arc<AtomicBool>,
}

impl Signals {
    /// The run is to end.
    pub fn interrupted(&self) -> bool {
        self.interruptions.load(Ordering::Relaxed) > 0
    }

    /// True if the process has gone on since the last call.
    pub fn take_gone_on(&self) -> bool {
        self.gone_on.swap(false, Ordering::Relaxed)
    }

    /// Another rank got a signal of this number, which ends this one too; 0 where it was told of
    /// one.
    pub fn hear(&self, number: i32) {
        if number != 0 {
            self.number.store(number, Ordering::Relaxed);
        }
        self.interruptions.fetch_max(1, Ordering::Relaxed);
    }
}
