//! Progress of rank 0 while it runs, and its place.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Ended, Spot};

/// Progress of a rank.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Since it began.
    pub elapsed: Duration,
    /// The part of its steps that is done, where known.
    pub fraction: Option<f64>,
    /// Its place.
    pub place: Option<Spot>,
    /// For how long there has been no progress.
    pub still: Duration,
}

/// Observer of rank 0, on another thread.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "holds functions")]
pub struct Observer<'a, R> {
    /// Is shown how far the rank has come, some times per second.
    pub look: &'a (dyn Fn(&Seen) + Sync),
    /// The rank hangs in a call and the process has to end: gets what was done, and answers the
    /// exit code.
    pub last: &'a (dyn Fn(Ended<R>) -> u8 + Sync),
}

/// Place of a rank, for its messages.
#[derive(Debug, Default)]
pub struct Position(Mutex<Option<Spot>>);

impl Position {
    /// Nothing panics while holding it.
    fn lock(&self) -> MutexGuard<'_, Option<Spot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rank is here now.
    pub(crate) fn set(&self, spot: Spot) {
        *self.lock() = Some(spot);
    }

    pub(crate) fn get(&self) -> Option<Spot> {
        *self.lock()
    }
}
