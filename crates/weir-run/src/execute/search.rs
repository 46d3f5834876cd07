//! The search for the depth that keeps a latency: from 1 it doubles until a window fails or the
//! limit is reached, then the range is halved. At the depth that is found a last window is
//! measured alone.
//!
//! In: windows of one worker, each with its operations and how many kept the latency. Out: the
//! next depth, or the end. The steps are those of fio 3.33. Not here: threads, counters.

use std::sync::atomic::Ordering::Relaxed;

use weir_schema::{DepthFound, LatencyTarget, State};
use weir_stats::Histogram;
use weir_sys::clock::{Scale, Tick};
use weir_units::{Nanos, QueueDepth};

use crate::execute::running::Worker;
use crate::live::WorkerLive;
use crate::runner::failure;

/// Windows that a depth holds before the range is widened by one.
const STABLE: u32 = 3;

/// Next step of the search after a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchStep {
    /// Go on at this depth.
    Depth(u32),
    /// The depth is found: measure it anew.
    Settle(u32),
    /// The last window was measured.
    End,
    /// Not even one operation at a time keeps the latency, and every one should.
    Hopeless,
}

/// The range in which a worker searches.
#[derive(Debug)]
struct Range {
    limit: u32,
    depth: u32,
    low: u32,
    high: u32,
    stable: u32,
    settled: bool,
    keep_adjusting: bool,
}

impl Range {
    fn new(limit: u32, keep_adjusting: bool) -> Self {
        Self {
            limit,
            depth: 1,
            low: 1,
            high: limit,
            stable: 0,
            settled: false,
            keep_adjusting,
        }
    }

    fn kept(&mut self) -> SearchStep {
        let before = self.depth;
        self.low = before;
        if before + 1 == self.high {
            // The range is closed; it is opened again after a while, slowly.
            self.stable += 1;
            if self.stable >= STABLE {
                self.high += 1;
                self.stable = 0;
            }
        }
        let next = if self.high == self.limit {
            before.saturating_mul(2)
        } else {
            u32::midpoint(before, self.high)
        };
        self.depth = next.clamp(1, self.limit);
        match (self.depth == before, self.keep_adjusting, self.settled) {
            (true, false, false) => {
                self.settled = true;
                SearchStep::Settle(before)
            }
            (true, false, true) => SearchStep::End,
            _ => SearchStep::Depth(self.depth),
        }
    }

    fn failed(&mut self, every_one_counts: bool) -> SearchStep {
        if self.depth == 1 {
            return if every_one_counts {
                SearchStep::Hopeless
            } else {
                SearchStep::Depth(1)
            };
        }
        self.high = self.depth;
        if self.depth == self.low {
            self.low -= 1;
        }
        self.depth = u32::midpoint(self.depth, self.low).max(1);
        self.stable = 0;
        SearchStep::Depth(self.depth)
    }
}

/// The search of one worker.
#[derive(Debug)]
pub(super) struct Search {
    target: LatencyTarget,
    range: Range,
    scale: Scale,
    window_began: Tick,
    seen: Histogram,
    /// The worker's resets that the last window waits for.
    awaited: Option<u64>,
}

impl Search {
    /// Starts at depth 1.
    pub(super) fn new(target: LatencyTarget, limit: u32, release: Tick, scale: Scale) -> Self {
        Self {
            target,
            range: Range::new(limit.max(1), target.keep_adjusting),
            scale,
            window_began: release,
            seen: Histogram::new(),
            awaited: None,
        }
    }

    pub(super) fn found(&self) -> DepthFound {
        DepthFound {
            queue_depth: QueueDepth(self.range.depth),
            settled: self.range.settled,
        }
    }

    /// Judges the window if it is over.
    fn judge_window(&mut self, live: &WorkerLive, now: Tick) -> Option<SearchStep> {
        if self.awaited.is_some() {
            return None;
        }
        let length = self.scale.to_nanos(now.since(self.window_began));
        if Nanos(length) < self.target.window_ns {
            return None;
        }
        let all = latencies(live);
        // After the end of ramp the counts begin anew.
        let window = all.since(&self.seen).unwrap_or_else(|_| all.clone());
        if window.is_empty() {
            return None;
        }
        self.window_began = now;
        self.seen = all;
        let within = window
            .buckets()
            .filter(|b| b.middle <= self.target.target_ns.0);
        let kept: u64 = within.map(|b| b.count).sum();
        let share = kept as f64 * 100.0 / window.count() as f64;
        let step = if share >= self.target.share.0 {
            self.range.kept()
        } else {
            self.range.failed(self.target.share.0 >= 100.0)
        };
        Some(step)
    }

    /// Time at which the worker began to measure anew, if that was awaited and has come.
    fn renewed(&mut self, live: &WorkerLive) -> Option<Tick> {
        self.awaited.take_if(|resets| live.resets() >= *resets)?;
        self.window_began = Tick(live.started.get());
        self.seen = Histogram::new();
        Some(self.window_began)
    }
}

impl Worker {
    /// Goes on with its search; the instant from which it measures the last window, when that
    /// has begun.
    pub(super) fn search(&mut self, now: Tick) -> Option<Tick> {
        let search = self.search.as_mut()?;
        let renewed = search.renewed(&self.live);
        match search.judge_window(&self.live, now) {
            None => {}
            Some(SearchStep::Depth(depth)) => self.live.depth_limit.store(depth, Relaxed),
            Some(SearchStep::Settle(depth)) => {
                self.live.depth_limit.store(depth, Relaxed);
                search.awaited = Some(self.live.resets() + 1);
                self.live.anew.store(true, Relaxed);
            }
            Some(SearchStep::End) => self.stop(now, State::Done),
            Some(SearchStep::Hopeless) => {
                let limit = search.target.target_ns;
                let message =
                    format!("one operation at a time does not keep the latency target of {limit}");
                self.failure = Some(failure("max_latency", Some(libc::ETIMEDOUT), message));
                self.stop(now, State::Failed);
            }
        }
        renewed
    }
}

/// Total latencies of all data kinds.
fn latencies(live: &WorkerLive) -> Histogram {
    let mut all = Histogram::new();
    for kind in live.rated() {
        if let Some(histogram) = kind.lat.snapshot() {
            // Recorders have one precision, so merging cannot fail.
            let _ = all.merge(&histogram);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays windows against a device that keeps the latency up to `good` in flight.
    fn play(limit: u32, good: u32) -> (Vec<u32>, u32) {
        let mut range = Range::new(limit, false);
        let mut tried = Vec::new();
        for _ in 0..40 {
            tried.push(range.depth);
            let step = if range.depth <= good {
                range.kept()
            } else {
                range.failed(false)
            };
            if step == SearchStep::End {
                break;
            }
        }
        (tried, range.depth)
    }

    #[test]
    fn depth_doubles_and_is_then_halved_between_the_last_good_and_the_first_bad() {
        let (tried, found) = play(64, 11);
        assert_eq!(tried[..8], [1, 2, 4, 8, 16, 12, 10, 11]);
        assert_eq!(found, 11);
        // The last window is measured at the depth that was found.
        assert_eq!(tried[tried.len() - 2..], [11, 11]);
    }

    #[test]
    fn a_device_that_is_always_fast_gets_the_whole_depth() {
        assert_eq!(play(32, 1000), (vec![1, 2, 4, 8, 16, 32, 32], 32));
        assert_eq!(play(1, 1000), (vec![1, 1], 1));
    }

    #[test]
    fn one_slow_operation_at_depth_one_ends_only_a_search_where_every_one_counts() {
        let mut range = Range::new(8, false);
        assert_eq!(range.failed(true), SearchStep::Hopeless);
        assert_eq!(range.failed(false), SearchStep::Depth(1));
    }

    #[test]
    fn a_search_that_keeps_adjusting_never_ends() {
        let mut range = Range::new(8, true);
        let steps: Vec<SearchStep> = (0..6).map(|_| range.kept()).collect();
        assert!(
            steps.iter().all(|s| matches!(s, SearchStep::Depth(_))),
            "{steps:?}"
        );
        assert_eq!(range.depth, 8);
    }
}
