//! The watchdog of minimum rates: it looks at counters, so that it also sees a device from which
//! nothing comes back.
//!
//! No check in the first two seconds; then one per cycle, over what was done since the last.

use weir_schema::{Failure, Finding, KindInfo, KindName, MinimumRate};
use weir_sys::clock::{Scale, Tick};
use weir_units::{BytesPerSec, Iops, Nanos};

use crate::live::{KINDS, LiveKind, Measured, WorkerLive};
use crate::runner::failure;

const FIRST_LOOK: Nanos = Nanos(2_000_000_000);

/// The watchdog of one job.
#[derive(Debug)]
pub(super) struct Minimum {
    limits: MinimumRate,
    /// Numbers and names of the kinds that the job does.
    kinds: Vec<(usize, KindName)>,
    scale: Scale,
    first: Tick,
    cycle: u64,
    workers: Vec<Option<WorkerCounts>>,
}

#[derive(Clone, Copy, Debug)]
struct WorkerCounts {
    at: Tick,
    issued: [u64; KINDS],
    operations: [u64; KINDS],
    bytes: [u64; KINDS],
}

fn counts(live: &WorkerLive, count: fn(&LiveKind) -> u64) -> [u64; KINDS] {
    std::array::from_fn(|kind| count(&live.kinds[kind]))
}

impl WorkerCounts {
    /// Something of the kind was issued since then, or is still in flight.
    fn has_worked(&self, at: usize, last: &Self) -> bool {
        self.issued[at] > last.issued[at] || self.operations[at] < self.issued[at]
    }
}

impl Minimum {
    pub(super) fn new(
        limits: MinimumRate,
        (declared, measured): (&[KindInfo], [Option<Measured>; KINDS]),
        workers: usize,
        (release, scale): (Tick, Scale),
    ) -> Self {
        let kinds = declared.iter().zip(measured).enumerate();
        let occurring = kinds.filter(|(_, (info, how))| how.is_some() && !info.is_aside);
        Self {
            kinds: occurring.map(|(at, (info, _))| (at, info.into())).collect(),
            scale,
            first: release.after(scale.to_ticks(FIRST_LOOK)),
            cycle: scale.to_ticks(limits.cycle_ns).max(1),
            limits,
            workers: vec![None; workers],
        }
    }

    /// Failure of this worker, if a check is due and it is too slow.
    pub(super) fn check(&mut self, worker: usize, live: &WorkerLive, now: Tick) -> Option<Failure> {
        if now < self.first {
            return None;
        }
        let seen = WorkerCounts {
            at: now,
            issued: counts(live, |k| k.issued.get()),
            operations: counts(live, |k| k.completed.get()),
            bytes: counts(live, |k| k.bytes.get()),
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
            .filter(|kind| !takes_turns || seen.has_worked(kind.0, &last))
            .find_map(|kind| self.judge(kind, &last, &seen, seconds))
    }

    fn judge(
        &self,
        (at, kind): &(usize, KindName),
        last: &WorkerCounts,
        seen: &WorkerCounts,
        seconds: f64,
    ) -> Option<Failure> {
        let rate = |now: &[u64; KINDS], then: &[u64; KINDS]| {
            now[*at].saturating_sub(then[*at]) as f64 / seconds
        };
        let too_slow = |got: f64, least: f64, unit: &str, finding: Finding| {
            let message = format!("{kind} rate below the minimum: {got:.0} of {least:.0} {unit}");
            Some(Failure {
                kind: Some(kind.clone()),
                finding: Some(finding),
                ..failure("minimum_rate", Some(libc::EIO), message)
            })
        };
        let got = rate(&seen.bytes, &last.bytes);
        if let Some(least) = self.limits.bytes_per_s.get(kind).filter(|l| got < l.0) {
            let least = *least;
            let finding = Finding::BytesBelowMinimum {
                limit_bytes_per_s: least,
                found_bytes_per_s: BytesPerSec(got),
            };
            return too_slow(got, least.0, "bytes per second", finding);
        }
        let got = rate(&seen.operations, &last.operations);
        let least = *self.limits.ops_per_s.get(kind).filter(|l| got < l.0)?;
        let finding = Finding::OpsBelowMinimum {
            limit_per_s: least,
            found_per_s: Iops(got),
        };
        too_slow(got, least.0, "operations per second", finding)
    }
}
