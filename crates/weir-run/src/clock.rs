//! A clock that a worker can also wait on.
//!
//! In: an instant. Out: the worker's thread again, not before it. Not here: reading the clock
//! (`weir_sys::clock`).

use std::thread;
use std::time::Duration;

use weir_sys::clock::{Clock, SimClock, Tick, Ticks};

/// The kernel wakes a sleeper late by about this much; the rest of the wait is spun.
const WAKE_EARLY_NS: u64 = 60_000;
/// A sleeping worker looks for a stop at least this often.
const LONGEST_SLEEP_NS: u64 = 20_000_000;

/// A clock with a way to wait.
pub trait RunClock: Ticks {
    /// Lets time pass towards `until`, at most some milliseconds of it; the caller looks at the
    /// clock and comes again.
    fn wait_towards(&self, until: Tick);
}

impl RunClock for Clock {
    fn wait_towards(&self, until: Tick) {
        let left = self.scale().to_nanos(until.since(self.now()));
        if left > 2 * WAKE_EARLY_NS {
            let nap = (left - WAKE_EARLY_NS).min(LONGEST_SLEEP_NS);
            thread::sleep(Duration::from_nanos(nap));
        } else {
            std::hint::spin_loop();
        }
    }
}

impl RunClock for SimClock {
    fn wait_towards(&self, until: Tick) {
        self.advance_to(until);
    }
}
