//! The watchdog of minimum rates: it looks at counters, so that it also sees a device from which
//! nothing comes back.
//!
//! No check in the first two seconds; then one per cycle, over what was done since the last.

use weir_schema::{Kind, MinimumRate};
use weir_sys::clock::{Scale, Tick};
use weir_units::Nanos;

use crate::live::WorkerLive;

const FIRST_LOOK: Nanos = Nanos(2_000_000_000);

/// The watchdog of one job.
#[derive(Debug)]
pub(super) struct Minimum {
    limits: MinimumRate,
    scale: Scale,
    first: Tick,
    cycle: u64,
    workers: Vec<Option<Seen>>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Tick,
    operations: [u64; 3],
    bytes: [u64; 3],
}

impl Minimum {
    pub(super) fn new(limits: MinimumRate, workers: usize, release: Tick, scale: Scale) -> Self {
        Self {
            limits,
            scale,
            first: release.after(scale.to_ticks(FIRST_LOOK)),
            cycle: scale.to_ticks(limits.cycle_ns).max(1),
            workers: vec![None; workers],
        }
    }

    /// What is wrong with this worker, if a check is due and it is too slow.
    pub(super) fn check(&mut self, worker: usize, live: &WorkerLive, now: Tick) -> Option<String> {
        if now < self.first {
            return None;
        }
        let seen = Seen {
            at: now,
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
        Kind::DATA
            .into_iter()
            .find_map(|kind| self.judge(kind, &last, &seen, seconds))
    }

    fn judge(&self, kind: Kind, last: &Seen, seen: &Seen, seconds: f64) -> Option<String> {
        let rate = |now: &[u64; 3], then: &[u64; 3]| {
            now[kind.index()].saturating_sub(then[kind.index()]) as f64 / seconds
        };
        let name = kind.name();
        if let Some(least) = self.limits.bytes_per_s.of(kind) {
            let got = rate(&seen.bytes, &last.bytes);
            if got < least.0 {
                let least = least.0;
                return Some(format!(
                    "{name} rate below the minimum: {got:.0} of {least:.0} bytes per second"
                ));
            }
        }
        let least = (*self.limits.ops_per_s.of(kind))?;
        let got = rate(&seen.operations, &last.operations);
        (got < least.0).then(|| {
            format!(
                "{name} rate below the minimum: {got:.0} of {:.0} operations per second",
                least.0
            )
        })
    }
}
