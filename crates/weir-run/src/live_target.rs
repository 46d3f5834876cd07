//! Figures of single targets, where a workload wants them: latencies, and failures by code.
//!
//! In: operations, by the number of their target. Out: snapshots, from any thread. One writer, no lock
//! for what succeeds. Not here: what the targets are.

use std::collections::BTreeMap;
use std::sync::Mutex;

use weir_stats::{FineRecorder, Histogram};

use crate::live::lock;

/// Figures of the operations of one kind on one target.
#[derive(Debug, Default)]
pub struct LiveTarget {
    lat: FineRecorder,
    rlat: Option<Box<FineRecorder>>,
    failed: Mutex<BTreeMap<i32, u64>>,
}

impl LiveTarget {
    pub(crate) fn new(has_intended_starts: bool) -> Self {
        Self {
            rlat: has_intended_starts.then(Box::default),
            ..Self::default()
        }
    }

    /// Counts an operation that came to a good end, by its total latency.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of the hot path")]
    pub(crate) fn record(&self, lat_ns: u64) {
        self.lat.record(lat_ns);
    }

    /// Its latency from the intended start, where that is recorded.
    #[inline]
    pub(crate) fn record_response(&self, rlat_ns: u64) {
        if let Some(rlat) = &self.rlat {
            rlat.record(rlat_ns);
        }
    }

    pub(crate) fn fail(&self, code: i32) {
        *lock(&self.failed).entry(code).or_default() += 1;
    }

    /// Issue to completion.
    pub fn latency(&self) -> Histogram {
        self.lat.snapshot()
    }

    /// Intended start to completion, where operations have one.
    pub fn response(&self) -> Option<Histogram> {
        self.rlat.as_ref().map(|rlat| rlat.snapshot())
    }

    /// Failed operations by code.
    pub fn failed(&self) -> BTreeMap<i32, u64> {
        lock(&self.failed).clone()
    }

    pub(crate) fn reset(&self) {
        let Self { lat, rlat, failed } = self;
        lat.reset();
        if let Some(rlat) = rlat {
            rlat.reset();
        }
        lock(failed).clear();
    }
}
