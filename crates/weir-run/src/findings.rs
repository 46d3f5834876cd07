//! Findings of checks, and operations that failed: written by a worker and its checkers, read by
//! the run at any time, so that they survive a worker that never comes back.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use weir_schema::{Job, Mismatch};

use crate::live::lock;
use crate::worker::OpFailure;

/// Findings beyond this many are counted, not kept.
pub const MOST_KEPT: usize = 1000;

/// Failures after which the jobs of each group have gone on.
#[derive(Debug, Default)]
pub(crate) struct FailureCounts(BTreeMap<usize, Arc<AtomicU32>>);

/// The first failure too many, counted over the jobs of a group.
#[derive(Clone, Debug)]
pub(crate) struct FailureLimit {
    count: Arc<AtomicU32>,
    fail_at: u32,
}

impl FailureCounts {
    /// The limit of a job of this group, if it has one.
    pub(crate) fn limit_of(&mut self, group: usize, job: &Job) -> Option<FailureLimit> {
        let fail_at = job.load().errors.fail_at?;
        let count = Arc::clone(self.0.entry(group).or_default());
        Some(FailureLimit { count, fail_at })
    }
}

/// Blocks that do not hold what they should, and operations that failed.
#[derive(Debug, Default)]
pub struct Findings {
    limit: Option<FailureLimit>,
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
    /// Of a worker whose failures count towards this limit.
    pub(crate) fn limited(limit: FailureLimit) -> Self {
        Self {
            limit: Some(limit),
            ..Self::default()
        }
    }

    /// Counts a failure after which the worker would go on; whether it is one too many.
    #[cold]
    pub fn is_too_many(&self) -> bool {
        self.limit.as_ref().is_some_and(|limit| {
            let before = limit.count.fetch_add(1, Ordering::Relaxed);
            before.saturating_add(1) >= limit.fail_at
        })
    }

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

    /// The dump that could not be stored, and the reason.
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

    /// True if the worker shall end.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// The worker was asked to end, or its time is up: its loop sees that at the next operation, and
    /// who is busy before that looks here.
    pub fn set_end_due(&self) {
        self.end_due.store(true, Ordering::Relaxed);
    }

    /// True if the worker's loop will end at its next operation.
    pub fn is_end_due(&self) -> bool {
        self.end_due.load(Ordering::Relaxed)
    }

    /// Notes whether there is something that still has to be checked.
    #[inline]
    pub fn set_unchecked(&self, is_so: bool) {
        self.unchecked.store(is_so, Ordering::Relaxed);
    }

    /// True if something was to be checked and has not been.
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

#[cfg(test)]
mod tests {
    use weir_schema::sample::{JobSample, block_job};

    use super::*;

    fn failing_at(fail_at: Option<u32>) -> Job {
        let mut job = block_job("a");
        job.load_mut().errors.fail_at = fail_at;
        job
    }

    #[test]
    fn failures_count_over_the_jobs_of_a_group_each_with_its_limit() {
        let mut counts = FailureCounts::default();
        let mut of = |group, fail_at| {
            let limit = counts.limit_of(group, &failing_at(fail_at));
            limit.map_or_else(Findings::default, Findings::limited)
        };
        let (three, five, other) = (of(0, Some(3)), of(0, Some(5)), of(1, Some(3)));
        let without = of(0, None);
        assert!(!three.is_too_many() && !five.is_too_many() && !other.is_too_many());
        assert!(
            !without.is_too_many(),
            "it has no limit, and counts towards none"
        );
        assert!(three.is_too_many(), "the third of the group");
        assert!(!five.is_too_many(), "the fourth");
        assert!(five.is_too_many(), "the fifth");
        assert!(!other.is_too_many(), "the second of another group");
    }
}
