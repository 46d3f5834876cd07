//! Calls before anything counts: connections are made, memory is touched, clocks of CPUs rise.
//!
//! In: a transport. Out: the same, with no call out, and the calls that failed. Those count: who never
//! answers has to show, and the first failure ends the warm-up.

use std::io;
use std::time::{Duration, Instant};

use weir_schema::RpcWarmup;

use crate::master::engine::DRAIN_ASKED;
use crate::transport::{Requested, RpcTransport};

/// Calls of the automatic warm-up.
const CALLS: u64 = 1000;
/// For how long it lasts at least, unless all calls of the test are fewer.
const TIME: Duration = Duration::from_millis(500);
/// No call of it begins after this: a thousand long ones would take minutes.
const MOST: Duration = Duration::from_secs(1);
/// Time that one look for answers waits.
const LOOK_NS: u64 = 10_000_000;

/// Whose calls warm up.
#[derive(Clone, Copy, Debug)]
pub struct WarmUp {
    /// Warm-up that was asked for.
    pub asked: RpcWarmup,
    /// Slots of the thread.
    pub slots: u32,
    /// Entries of its list.
    pub entries: u32,
    /// Threads of the master, which share the work.
    pub threads: u32,
    /// Calls of the thread that count; an automatic warm-up has no more.
    pub calls: u64,
}

/// Bounds by calls and by time.
#[derive(Clone, Copy, Debug)]
struct WarmUpBounds {
    /// So many at least.
    least: u64,
    /// And for so long.
    time: Duration,
    /// So many at most.
    most: u64,
    /// And none after this.
    last: Duration,
}

/// A call of a warm-up that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedWarmUp {
    /// Whom it called, as a place in the list.
    pub entry: u32,
    /// The negative number of what went wrong.
    pub code: i32,
    /// Time that it took.
    pub took: Duration,
}

impl WarmUp {
    fn bounds(self) -> WarmUpBounds {
        let share = |calls: u64| calls.div_ceil(u64::from(self.threads.max(1)));
        match self.asked {
            RpcWarmup::Automatic => WarmUpBounds {
                least: share(CALLS),
                time: TIME,
                most: self.calls,
                last: MOST,
            },
            RpcWarmup::Requests { count } => WarmUpBounds {
                least: share(count),
                time: Duration::ZERO,
                most: share(count),
                last: Duration::MAX,
            },
            RpcWarmup::Time { for_ns } => WarmUpBounds {
                least: 0,
                time: Duration::from_nanos(for_ns.0),
                most: u64::MAX,
                last: Duration::MAX,
            },
        }
    }

    /// Makes the calls. `is_over` ends it early; calls that are out then may take as long as those of the test.
    ///
    /// # Errors
    /// The transport is broken.
    pub fn run(
        self,
        transport: &mut impl RpcTransport,
        is_over: impl Fn() -> bool,
    ) -> io::Result<Vec<FailedWarmUp>> {
        let bounds = self.bounds();
        let began = Instant::now();
        let mut free: Vec<u32> = (0..self.slots).collect();
        let mut called = vec![(0, began); self.slots as usize];
        let mut entries = (0..self.entries).cycle();
        let mut failed = Vec::new();
        let (mut made, mut ending) = (0, None);
        loop {
            let took = began.elapsed();
            let is_due = (made < bounds.least || took < bounds.time) && took < bounds.last;
            let goes_on = is_due && failed.is_empty() && !is_over();
            while goes_on && made < bounds.most {
                let Some(slot) = free.pop() else { break };
                made += 1;
                let mut all = entries.by_ref().take(self.entries as usize);
                let up = all.find(|entry| transport.is_up(*entry));
                let sent = up.map(|entry| (entry, transport.request(entry, slot)));
                if let Some((entry, Requested::Queued)) = sent {
                    called[slot as usize] = (entry, Instant::now());
                    continue;
                }
                free.push(slot);
                if sent.is_none() {
                    break;
                }
            }
            if free.len() == self.slots as usize {
                return Ok(failed);
            }
            transport.flush()?;
            transport.poll(Some(LOOK_NS), u32::MAX, |slot, result| {
                free.push(slot);
                if result < 0 {
                    let code = i32::try_from(result).unwrap_or(i32::MIN);
                    let (entry, sent) = called[slot as usize];
                    let took = sent.elapsed();
                    failed.push(FailedWarmUp { entry, code, took });
                }
            })?;
            if is_over() && ending.get_or_insert_with(Instant::now).elapsed() >= DRAIN_ASKED {
                transport.cancel();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::DerCode;
    use crate::transport::RpcCounters;
    use weir_units::Nanos;

    /// Answers the n-th call with the n-th of these, then well.
    #[derive(Default)]
    struct Answering {
        results: VecDeque<i64>,
        out: Vec<u32>,
        requests: u64,
    }

    impl RpcTransport for &mut Answering {
        fn request(&mut self, _: u32, slot: u32) -> Requested {
            self.requests += 1;
            self.out.push(slot);
            Requested::Queued
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn poll(
            &mut self,
            _: Option<u64>,
            _: u32,
            mut done: impl FnMut(u32, i64),
        ) -> io::Result<u32> {
            let out = std::mem::take(&mut self.out);
            for slot in &out {
                done(*slot, self.results.pop_front().unwrap_or(0));
            }
            Ok(u32::try_from(out.len()).unwrap())
        }

        fn is_up(&self, _: u32) -> bool {
            true
        }

        fn counters(&self) -> RpcCounters {
            RpcCounters::default()
        }

        fn close(self) -> io::Result<RpcCounters> {
            Ok(RpcCounters::default())
        }
    }

    fn warmed(asked: RpcWarmup, calls: u64, mut transport: &mut Answering) -> Vec<FailedWarmUp> {
        let warm_up = WarmUp {
            asked,
            slots: 4,
            entries: 2,
            threads: 1,
            calls,
        };
        warm_up.run(&mut transport, || false).unwrap()
    }

    #[test]
    fn an_automatic_warm_up_is_no_longer_than_its_test_and_no_number_is_exceeded() {
        let mut few = Answering::default();
        assert_eq!(warmed(RpcWarmup::Automatic, 3, &mut few), []);
        assert_eq!(few.requests, 3);
        let mut many = Answering::default();
        let began = Instant::now();
        assert_eq!(warmed(RpcWarmup::Automatic, u64::MAX, &mut many), []);
        assert!(many.requests >= CALLS && began.elapsed() >= TIME);
        let mut some = Answering::default();
        assert_eq!(warmed(RpcWarmup::Requests { count: 7 }, 3, &mut some), []);
        assert_eq!(some.requests, 7);
        let mut none = Answering::default();
        let for_ns = Nanos(0);
        assert_eq!(warmed(RpcWarmup::Time { for_ns }, 3, &mut none), []);
        assert_eq!(none.requests, 0);
    }

    #[test]
    fn failures_of_a_warm_up_are_told_and_end_it() {
        let timed_out = DerCode::TimedOut.result();
        let mut failing = Answering {
            results: vec![0, 0, 0, 0, 0, timed_out].into(),
            ..Answering::default()
        };
        let failed = warmed(RpcWarmup::Requests { count: 100 }, 100, &mut failing);
        let failed: Vec<_> = failed.iter().map(|one| (one.entry, one.code)).collect();
        assert_eq!(failed, [(1, -1011)]);
        assert_eq!(failing.requests, 8);
    }
}
