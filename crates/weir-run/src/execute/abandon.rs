//! Leaving a worker behind that does not come back from the kernel.
//!
//! In: a worker, and how long it was waited for. Out: its state and failure, with the place it
//! was last seen at. Not here: when to give up.

use weir_schema::{Failure, Finding, State};
use weir_sys::clock::Tick;
use weir_units::Bytes;

use crate::execute::running::Worker;
use crate::live::LiveKind;
use crate::runner::{Prepared, failure};

/// An operation may take so many times as long as the longest before it.
const UNUSUAL: u64 = 2;

impl Worker {
    /// Since when nothing has come back of what it has in flight; not before `since`.
    pub(super) fn silent_since(&mut self, since: Tick, now: Tick) -> Tick {
        let of_kind = self.live.kinds.iter();
        let back = of_kind.map(|k| k.completed.get() + k.failed.get()).sum();
        if self.came_back.0 != back {
            self.came_back = (back, now);
        }
        since.max(self.came_back.1)
    }

    /// No operation of it has taken anything like that: what is slow is not hung.
    pub(super) fn is_silent_for_long(&self, waited_ns: u64) -> bool {
        let longest = |kind: &LiveKind| kind.lat.snapshot().and_then(|lat| lat.max());
        let longest = self.live.kinds.iter().filter_map(longest).max();
        waited_ns / UNUSUAL > longest.unwrap_or(0)
    }

    /// A failure for want of speed, with the place at which nothing comes back.
    pub(super) fn placed(&self, failure: Failure, prepared: &dyn Prepared) -> Failure {
        let nothing = match failure.finding {
            Some(Finding::BytesBelowMinimum {
                found_bytes_per_s, ..
            }) => found_bytes_per_s.0 <= 0.0,
            Some(Finding::OpsBelowMinimum { found_per_s, .. }) => found_per_s.0 <= 0.0,
            _ => false,
        };
        if !nothing || self.live.in_flight() == 0 {
            return failure;
        }
        let (name, offset) = self.last_place(prepared);
        let place = name.as_deref().unwrap_or("its target");
        let last = offset.map_or_else(String::new, |o| format!(", last asked at offset {o}"));
        Failure {
            message: format!("{}; nothing comes back from {place}{last}", failure.message),
            target: name,
            offset_bytes: offset.map(Bytes),
            ..failure
        }
    }

    /// Target and offset of the last operation that was issued.
    fn last_place(&self, prepared: &dyn Prepared) -> (Option<String>, Option<u64>) {
        let last = self.live.last_issued.get();
        let name = prepared.target_name(self.clone, last.number);
        (name, last.offset)
    }

    /// Leaves a worker behind that does not come back.
    pub(super) fn abandon(&mut self, prepared: &dyn Prepared, waited_ns: u64, at_once: bool) {
        let (name, offset) = self.last_place(prepared);
        let place = name.as_deref().unwrap_or("its target");
        let at = offset.map_or_else(String::new, |o| format!(" at offset {o}"));
        let message = if at_once {
            format!("left behind at the second signal, in an operation on {place}{at}")
        } else {
            format!(
                "did not come back from an operation on {place}{at} for {} s; it was \
                 left behind, and the kernel may keep the process until the device answers",
                waited_ns / 1_000_000_000
            )
        };
        self.ended = true;
        self.state = State::Hung;
        let mut failed = failure("hung", Some(libc::ETIMEDOUT), message);
        failed.target = name;
        failed.offset_bytes = offset.map(Bytes);
        self.failure.get_or_insert(failed);
    }
}
