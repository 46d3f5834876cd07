//! Parts of a phase that the workers of a rank share: where they wait in the middle of it for those of all
//! ranks, and the times of its parts.

use std::sync::{Condvar, Mutex, PoisonError};

use weir_schema::{Failure, PartSpan, Span};
use weir_sys::clock::Tick;
use weir_units::Nanos;

use crate::live::lock;
use crate::runner::failure;

/// Parts of a phase that the workers of a rank share.
#[derive(Debug, Default)]
pub(crate) struct PhaseShare {
    meeting: Mutex<Meeting>,
    changed: Condvar,
    parts: Mutex<Vec<(&'static str, Tick, Tick)>>,
}

/// Workers in the middle of a phase that wait for those of all ranks.
#[derive(Debug, Default)]
struct Meeting {
    /// Workers that wait.
    waiting: u32,
    /// Meetings that are over.
    met: u64,
    /// Reason that there are no more.
    broken: Option<String>,
}

impl PhaseShare {
    pub(crate) fn add_part(&self, name: &'static str, begin: Tick, end: Tick) {
        lock(&self.parts).push((name, begin, end));
    }

    /// Waits until the workers of all ranks do; `wake` wakes the thread that speaks with the other ranks.
    pub(crate) fn meet(&self, wake: impl FnOnce()) -> Result<(), Failure> {
        let mut meeting = lock(&self.meeting);
        meeting.waiting += 1;
        let number = meeting.met;
        wake();
        loop {
            if meeting.met > number {
                return Ok(());
            }
            if let Some(why) = &meeting.broken {
                return Err(failure("rank", None, why.clone()));
            }
            let woken = self.changed.wait(meeting);
            meeting = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn waiting(&self) -> u32 {
        lock(&self.meeting).waiting
    }

    /// Lets everybody who waits go on, or says why nobody can.
    pub(super) fn conclude_meeting(&self, met: Result<(), String>) {
        let mut meeting = lock(&self.meeting);
        meeting.waiting = 0;
        match met {
            Ok(()) => meeting.met += 1,
            Err(why) => meeting.broken = Some(why),
        }
        self.changed.notify_all();
    }

    /// Parts of all workers as those of the rank.
    pub(super) fn parts(&self, at: impl Fn(Tick) -> Nanos) -> Vec<PartSpan> {
        let mut of_rank: Vec<PartSpan> = Vec::new();
        let mut parts = lock(&self.parts).clone();
        parts.sort_by_key(|(_, begin, _)| *begin);
        for (name, begin, end) in parts {
            let span = Span {
                start_ns: at(begin),
                end_ns: at(end),
            };
            match of_rank.iter_mut().find(|known| known.name == name) {
                Some(known) => known.span = known.span.hull(span),
                None => of_rank.push(PartSpan {
                    name: name.to_owned(),
                    span,
                }),
            }
        }
        of_rank
    }
}
