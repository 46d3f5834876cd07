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
        let last = offset.map_or_else(String::new, |o| format!(", last asked at offset {o}"));
        let from = name.as_ref().map(|name| format!(" from {name}{last}"));
        let from = from.unwrap_or_default();
        Failure {
            message: format!("{}; nothing comes back{from}", failure.message),
            target: name,
            offset_bytes: offset.map(Bytes),
            ..failure
        }
    }

    /// Target and offset of the last operation that was issued; neither where workers have no targets.
    fn last_place(&self, prepared: &dyn Prepared) -> (Option<String>, Option<u64>) {
        let last = self.live.last_issued.get();
        let name = prepared.target_name(self.clone, last.number);
        let offset = last.offset.filter(|_| name.is_some());
        (name, offset)
    }

    /// Leaves a worker behind that does not come back.
    pub(super) fn abandon(&mut self, prepared: &dyn Prepared, waited_ns: u64, at_once: bool) {
        let (name, offset) = self.last_place(prepared);
        let doing = doing(name.as_deref(), offset);
        let message = if at_once {
            format!("left behind at the second signal, in {doing}")
        } else {
            let kernel = if name.is_some() {
                ", and the kernel may keep the process until the device answers"
            } else {
                ""
            };
            format!(
                "did not come back from {doing} for {} s; it was left behind{kernel}",
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

/// Activity of a worker that does not come back.
fn doing(target: Option<&str>, offset: Option<u64>) -> String {
    let Some(target) = target else {
        return "the work of its thread".into();
    };
    let at = offset.map_or_else(String::new, |o| format!(" at offset {o}"));
    format!("an operation on {target}{at}")
}
