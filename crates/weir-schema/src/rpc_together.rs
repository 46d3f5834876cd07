//! Rate of several masters at the same time: the sum of their rates while all of them were at work.
//!
//! In: when each worked, and how many of its RPCs had succeeded by when. Out: a rate. Masters that were
//! faster have less of their work in that time; sums of whole runs would count it as if they had gone on.

use serde::{Deserialize, Serialize};
use weir_units::{JsonSchema, Nanos};

use crate::result::Span;
use crate::rpc_result::{RpcMaster, RpcOutcome};

/// Progress of a master.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RpcProgress {
    /// From its first RPC.
    pub after_ns: Nanos,
    /// RPCs that had succeeded.
    pub succeeded: u64,
}

/// Rate of masters while all were at work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RpcTogether {
    /// RPCs per second that succeeded, of all of them.
    pub rate: f64,
    /// That time as a share of what the longest took.
    pub share: f64,
}

impl RpcOutcome {
    /// Rate of those masters that measured something; nothing where there was no time in which all
    /// of them were at work.
    pub fn together(&self) -> Option<RpcTogether> {
        let good = || self.masters.iter().filter(|one| one.failure.is_none());
        let spans = || good().map(|one| one.span);
        let start = spans().map(|span| Some(span?.start_ns)).max()??;
        // Without a span of one of them nothing is known; that is the least here.
        let end = spans().map(|span| Some(span?.end_ns)).min()??;
        let longest = spans().flatten().map(Span::length).max()?;
        let common = end.saturating_sub(start);
        if common == Nanos::ZERO {
            return None;
        }
        let window = Span {
            start_ns: start,
            end_ns: end,
        };
        let done: f64 = good().map(|one| one.done_within(window)).sum();
        Some(RpcTogether {
            rate: done / common.as_secs_f64(),
            share: common.as_secs_f64() / longest.as_secs_f64(),
        })
    }
}

impl RpcMaster {
    /// RPCs that succeeded in a time.
    fn done_within(&self, window: Span) -> f64 {
        let Some(own) = self.span else { return 0.0 };
        let done = |at: Nanos| self.done_after(at.saturating_sub(own.start_ns));
        done(window.end_ns) - done(window.start_ns)
    }

    /// RPCs that had succeeded so long after its first one, at an even pace from one note to the next.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts and times far below 2^53"
    )]
    fn done_after(&self, time: Nanos) -> f64 {
        let last = RpcProgress {
            after_ns: self.duration_ns,
            succeeded: self.succeeded,
        };
        let mut before = RpcProgress {
            after_ns: Nanos::ZERO,
            succeeded: 0,
        };
        // What was noted while its sessions were closed is no pace of its calls.
        let notes = self.progress.iter().copied();
        let notes = notes.filter(|note| note.after_ns < self.duration_ns);
        for note in notes.chain([last]) {
            if note.after_ns >= time && note.after_ns > before.after_ns {
                let part = time.saturating_sub(before.after_ns).as_secs_f64()
                    / note.after_ns.saturating_sub(before.after_ns).as_secs_f64();
                let more = note.succeeded.saturating_sub(before.succeeded);
                return before.succeeded as f64 + part * more as f64;
            }
            before = note;
        }
        self.succeeded as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc_endpoints::RpcEndpoint;

    fn master(rank: u32, (start, end): (u64, u64), succeeded: u64) -> RpcMaster {
        let mut master = RpcMaster::new(RpcEndpoint { rank, tag: 0 }, "tcp");
        master.span = Some(Span {
            start_ns: Nanos::from_millis(start),
            end_ns: Nanos::from_millis(end),
        });
        master.duration_ns = Nanos::from_millis(end - start);
        master.succeeded = succeeded;
        master
    }

    fn together(masters: Vec<RpcMaster>) -> Option<(f64, f64)> {
        let outcome = RpcOutcome {
            masters,
            ..RpcOutcome::default()
        };
        let together = outcome.together()?;
        Some((together.rate.round(), together.share))
    }

    #[test]
    fn the_rates_of_masters_are_added_up_while_all_are_at_work() {
        // Half of the second one's time the first one is at work.
        let both = vec![master(0, (0, 1000), 1000), master(1, (0, 2000), 4000)];
        assert_eq!(together(both.clone()), Some((3000.0, 0.5)));
        // It was slower as long as the first one was there.
        let mut uneven = both.clone();
        uneven[1].progress = vec![RpcProgress {
            after_ns: Nanos::from_millis(1000),
            succeeded: 500,
        }];
        assert_eq!(together(uneven), Some((1500.0, 0.5)));
        let mut one_failed = both;
        one_failed[0].failure = Some(crate::result::Failure::new("missing", "gone"));
        assert_eq!(together(one_failed), Some((2000.0, 1.0)));
    }

    #[test]
    fn one_master_alone_has_its_own_rate_whatever_is_noted_after_its_last_call() {
        let mut alone = master(0, (0, 1000), 1000);
        let note = |after, succeeded| RpcProgress {
            after_ns: Nanos::from_millis(after),
            succeeded,
        };
        alone.progress = vec![note(900, 900), note(1100, 1000)];
        assert_eq!(together(vec![alone]), Some((1000.0, 1.0)));
    }

    #[test]
    fn masters_that_never_worked_together_have_no_rate_together() {
        let apart = vec![master(0, (0, 100), 10), master(1, (100, 200), 10)];
        assert_eq!(together(apart), None);
        let mut unknown = vec![master(0, (0, 100), 10), master(1, (0, 100), 10)];
        unknown[0].span = None;
        assert_eq!(together(unknown), None);
        assert_eq!(together(Vec::new()), None);
    }
}
