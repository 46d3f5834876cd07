//! Flows: workers that do operations in the proportion of their weights.
//!
//! In: how many operations a worker and its whole flow have begun. Out: whether the worker may
//! begin another one. A worker whose share of the operations is above its share of the weights
//! waits for the others. Not here: waiting.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_schema::Job;

/// State that the workers of a flow share.
#[derive(Debug)]
pub(crate) struct SharedFlow {
    /// Begun so far, and one: the first operation of a flow is nobody's.
    operations: AtomicU64,
    weights: AtomicU64,
}

/// The flows of a run, by number.
#[derive(Debug, Default)]
pub(crate) struct Flows(BTreeMap<u32, Arc<SharedFlow>>);

impl Flows {
    /// The flow of a job, if it is in one.
    pub(crate) fn of(&mut self, job: &Job) -> Option<Arc<SharedFlow>> {
        let flow = self.0.entry(job.load().pacing.flow?.id).or_insert_with(|| {
            Arc::new(SharedFlow {
                operations: AtomicU64::new(1),
                weights: AtomicU64::new(0),
            })
        });
        Some(Arc::clone(flow))
    }
}

/// A worker's part in a flow; it leaves when it is dropped, and takes what it did with it.
#[derive(Debug)]
pub struct FlowShare {
    flow: Arc<SharedFlow>,
    weight: u64,
    operations: u64,
    /// Length of its sleep when it is ahead, in ticks.
    pub(crate) pause: u64,
}

impl FlowShare {
    pub(crate) fn join(flow: Arc<SharedFlow>, weight: u32, pause: u64) -> Self {
        // A share of weights is no more than a figure that others will see soon.
        flow.weights.fetch_add(weight.into(), Ordering::Relaxed);
        Self {
            flow,
            weight: weight.into(),
            operations: 0,
            pause,
        }
    }

    /// Begins an operation, unless the worker is ahead of its share.
    pub(crate) fn begin(&mut self) -> bool {
        let all = u128::from(self.flow.operations.load(Ordering::Relaxed));
        let weights = u128::from(self.flow.weights.load(Ordering::Relaxed));
        if u128::from(self.operations) * weights > u128::from(self.weight) * all {
            return false;
        }
        self.flow.operations.fetch_add(1, Ordering::Relaxed);
        self.operations += 1;
        true
    }
}

impl Drop for FlowShare {
    fn drop(&mut self) {
        self.flow.weights.fetch_sub(self.weight, Ordering::Relaxed);
        self.flow
            .operations
            .fetch_sub(self.operations, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> Arc<SharedFlow> {
        Arc::new(SharedFlow {
            operations: AtomicU64::new(1),
            weights: AtomicU64::new(0),
        })
    }

    #[test]
    fn two_workers_keep_the_proportion_of_their_weights() {
        let flow = flow();
        let mut heavy = FlowShare::join(Arc::clone(&flow), 3, 0);
        let mut light = FlowShare::join(flow, 1, 0);
        for _ in 0..1000 {
            let went = [heavy.begin(), light.begin()];
            assert_ne!(went, [false; 2], "one of them may always go");
        }
        assert!(heavy.operations > 900);
        assert!(
            heavy.operations.abs_diff(3 * light.operations) <= 4,
            "{heavy:?}"
        );
    }

    #[test]
    fn a_worker_that_leaves_holds_nobody_back() {
        let flow = flow();
        let mut first = FlowShare::join(Arc::clone(&flow), 1, 0);
        let mut second = FlowShare::join(flow, 1, 0);
        while first.begin() {}
        assert!(second.begin());
        drop(second);
        assert!((0..100).all(|_| first.begin()), "it is alone now");
    }
}
