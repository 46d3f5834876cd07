//! The gate: workers of a batch get ready, wait, and are released at one instant.

use std::sync::{Condvar, Mutex};

use weir_sys::clock::Tick;

use crate::live::lock;

/// Gate at which a worker waits for its start.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
enum GateState {
    #[default]
    Closed,
    Open(Tick),
    Cancelled,
}

impl Gate {
    /// Lets everybody through; their time begins at this instant.
    pub(crate) fn open(&self, release: Tick) {
        *lock(&self.state) = GateState::Open(release);
        self.changed.notify_all();
    }

    /// Sends everybody home.
    pub(crate) fn cancel(&self) {
        *lock(&self.state) = GateState::Cancelled;
        self.changed.notify_all();
    }

    /// Waits; the instant of the release, or `None` if there will be none.
    pub(crate) fn wait(&self) -> Option<Tick> {
        let mut state = lock(&self.state);
        loop {
            match *state {
                GateState::Open(release) => return Some(release),
                GateState::Cancelled => return None,
                GateState::Closed => {
                    let woken = self.changed.wait(state);
                    state = woken.unwrap_or_else(std::sync::PoisonError::into_inner);
                }
            }
        }
    }
}
