//! The watchdog of minimum rates: it looks at counters, so that it also sees a device from which
//! nothing comes back.
//!
//! No check in the first two seconds; then one per cycle, over what was done since the last.

use weir_schema::{Failure, Finding, Kind, MinimumRate};
use weir_sys::clock::{Scale, Tick};
use weir_units::{BytesPerSec, Iops, Nanos};

use crate::live::{KINDS, Measured, WorkerLive};
use crate::runner::failure;

const FIRST_LOOK: Nanos = Nanos(2_000_000_000);

/// The watchdog of one job.
#[derive(Debug)]
pub(super) struct Minimum {
    limits: MinimumRate,
    /// Kinds that the job does.
    kinds: Vec<Kind>,
    scale: Scale,
    first: Tick,
    cycle: u64,
    workers: Vec<Option<JobSnapshot>>,
}

#[derive(Clone, Copy, Debug)]
struct JobSnapshot {
    at: Tick,
    issued: [u64; 3],
    operations: [u64; 3],
    bytes: [u64; 3],
}

impl JobSnapshot {
    /// Something of the kind was issued since then, or is still in flight.
    fn has_worked(&self, kind: Kind, last: &Self) -> bool {
        let at = kind.index();
        self.issued[at] > last.issued[at] || self.operations[at] < self.issued[at]
    }
}

impl Minimum {
    pub(super) fn new(
        limits: MinimumRate,
        kinds: [Option<Measured>; KINDS],
        workers: usize,
        (release, scale): (Tick, Scale),
    ) -> Self {
        let occurs = |kind: &Kind| kinds[kind.index()].is_some();
        Self {
            limits,
            kinds: Kind::DATA.into_iter().filter(occurs).collect(),
            scale,
            first: release.after(scale.to_ticks(FIRST_LOOK)),
            cycle: scale.to_ticks(limits.cycle_ns).max(1),
            workers: vec![None; workers],
        }
    }

    /// What is wrong with this worker, if a check is due and it is too slow.
    pub(super) fn check(&mut self, worker: usize, live: &WorkerLive, now: Tick) -> Option<Failure> {
        if now < self.first {
            return None;
        }
        let seen = JobSnapshot {
            at: now,
            issued: [0, 1, 2].map(|k| live.kinds[k].issued.get()),
            operations: [0, 1, 2].map(|k| live.kinds[k].completed.get()),
            bytes: [0, 1, 2].map(|k| live.kinds[k].bytes.get()),
        };
        let slot = self.workers.get_mut(worker)?;
        let Some(last) = *slot else {
            *slot = Some(seen);
            return None;
        };
        if now.since(last.at) < self.cycle {
            return None;
        }
        *slot = Some(seen);
        let seconds = self.scale.to_nanos(now.since(last.at)) as f64 / 1e9;
        let takes_turns = live.kinds.iter().any(|k| k.active().is_some());
        self.kinds
            .iter()
            .filter(|kind| !takes_turns || seen.has_worked(**kind, &last))
            .find_map(|&kind| self.judge(kind, &last, &seen, seconds))
    }

    fn judge(
        &self,
        kind: Kind,
        last: &JobSnapshot,
        seen: &JobSnapshot,
        seconds: f64,
    ) -> Option<Failure> {
        let rate = |now: &[u64; 3], then: &[u64; 3]| {
            now[kind.index()].saturating_sub(then[kind.index()]) as f64 / seconds
        };
        let too_slow = |got: f64, least: f64, unit: &str, finding: Finding| {
            let name = kind.name();
            let message = format!("{name} rate below the minimum: {got:.0} of {least:.0} {unit}");
            Some(Failure {
                kind: Some(kind),
                finding: Some(finding),
                ..failure("minimum_rate", Some(libc::EIO), message)
            })
        };
        let got = rate(&seen.bytes, &last.bytes);
        if let Some(least) = self.limits.bytes_per_s.of(kind).filter(|l| got < l.0) {
            let finding = Finding::BytesBelowMinimum {
                limit_bytes_per_s: least,
                found_bytes_per_s: BytesPerSec(got),
            };
            return too_slow(got, least.0, "bytes per second", finding);
        }
        let got = rate(&seen.operations, &last.operations);
        let least = self.limits.ops_per_s.of(kind).filter(|l| got < l.0)?;
        let finding = Finding::OpsBelowMinimum {
            limit_per_s: least,
            found_per_s: Iops(got),
        };
        too_slow(got, least.0, "operations per second", finding)
    }
}
