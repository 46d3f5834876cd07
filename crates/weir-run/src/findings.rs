//! What checks have found, and operations that failed: written by a worker and its checkers, read
//! by the run at any time, so that it survives a worker that never comes back.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use weir_schema::Mismatch;

use crate::live::lock;
use crate::worker::OpFailure;

/// Findings beyond this many are counted, not kept.
pub const MOST_KEPT: usize = 1000;

/// Blocks that do not hold what they should, and operations that failed.
#[derive(Debug, Default)]
pub struct Findings {
    /// Nothing more is to be done.
    ended: AtomicBool,
    /// The worker was asked to end, or its time is up.
    end_due: AtomicBool,
    /// Something was written that has not been checked.
    unchecked: AtomicBool,
    found: Mutex<Found>,
    failed: Mutex<Vec<OpFailure>>,
    lost_dump: Mutex<Option<String>>,
}

#[derive(Debug, Default)]
struct Found {
    list: Vec<Mismatch>,
    operations: u64,
}

impl Findings {
    /// Keeps a mismatch if there is still room: `details` is called only then.
    #[cold]
    pub fn add(&self, details: impl FnOnce() -> Mismatch) {
        let mut found = lock(&self.found);
        if found.list.len() < MOST_KEPT {
            let mismatch = details();
            found.list.push(mismatch);
        }
    }

    /// Keeps an operation that failed and did not end the worker, if there is still room.
    #[cold]
    pub(crate) fn add_failed(&self, at: OpFailure) {
        let mut failed = lock(&self.failed);
        if failed.len() < MOST_KEPT {
            failed.push(at);
        }
    }

    /// The failed operations that were kept, in the order they failed.
    pub fn failed(&self) -> Vec<OpFailure> {
        lock(&self.failed).clone()
    }

    /// Notes that a dump could not be stored; the first stands for all.
    #[cold]
    pub fn lose_dump(&self, why: String) {
        lock(&self.lost_dump).get_or_insert(why);
    }

    /// Which dump could not be stored, and why.
    pub fn lost_dump(&self) -> Option<String> {
        lock(&self.lost_dump).clone()
    }

    /// Counts an operation that brought bad data.
    #[cold]
    pub fn count(&self) {
        lock(&self.found).operations += 1;
    }

    /// The worker shall end.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Whether the worker shall end.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// The worker was asked to end, or its time is up: its loop sees that at the next operation, and
    /// who is busy before that looks here.
    pub fn set_end_due(&self) {
        self.end_due.store(true, Ordering::Relaxed);
    }

    /// Whether the worker's loop will end at its next operation.
    pub fn is_end_due(&self) -> bool {
        self.end_due.load(Ordering::Relaxed)
    }

    /// Notes whether there is something that still has to be checked.
    #[inline]
    pub fn set_unchecked(&self, is_so: bool) {
        self.unchecked.store(is_so, Ordering::Relaxed);
    }

    /// Whether something was to be checked and has not been.
    pub fn is_unchecked(&self) -> bool {
        self.unchecked.load(Ordering::Relaxed)
    }

    /// Operations that brought bad data.
    pub fn operations(&self) -> u64 {
        lock(&self.found).operations
    }

    /// The mismatches that were kept, in the order they were found.
    pub fn list(&self) -> Vec<Mismatch> {
        lock(&self.found).list.clone()
    }
}
