//! View of a job while it runs, and once it has ended.
//!
//! In: the job at an instant. Out: counts, and how much of its time or work is over.

use weir_schema::{ByKind, Failure};
use weir_stats::Histogram;
use weir_sys::clock::Tick;
use weir_units::{Bytes, Nanos};

use super::{EndedJob, RunningJob, Worker};
use crate::execute::observe::{LiveCount, LiveEnd, LiveJob, LiveState};
use crate::live::LiveKind;

impl EndedJob {
    /// View of the ended job.
    pub(in crate::execute) fn view(&self) -> LiveEnd {
        let failed = self.workers.iter().filter(|w| w.failure.is_some()).count();
        LiveEnd {
            index: self.index,
            failed: match self.failure {
                Some(_) if failed == 0 => usize::MAX,
                _ => failed,
            },
        }
    }
}

impl RunningJob {
    /// Workers that have not ended.
    pub(in crate::execute) fn at_work(&self) -> u32 {
        let at_work = self.workers.iter().filter(|w| !w.ended).count();
        u32::try_from(at_work).unwrap_or(u32::MAX)
    }

    /// Failure of the job, or of the first worker that has one.
    pub(in crate::execute) fn first_failure(&self) -> Option<Failure> {
        let of_workers = || self.workers.iter().find_map(|w| w.failure.clone());
        self.failure.clone().or_else(of_workers)
    }

    /// View of the running job.
    pub(in crate::execute) fn view(&self, now: Tick) -> LiveJob {
        let scale = self.scale.load();
        let elapsed = self.release.map_or(0, |r| scale.to_nanos(now.since(r)));
        let data = |count: fn(&LiveKind) -> u64| -> u64 {
            self.workers
                .iter()
                .flat_map(|w| w.live.rated())
                .map(count)
                .sum()
        };
        let mut latency = Histogram::new();
        for kind in self.workers.iter().flat_map(|w| w.live.rated()) {
            if let Some(histogram) = kind.lat.snapshot() {
                // Recorders all have the default precision, so merging cannot fail.
                let _ = latency.merge(&histogram);
            }
        }
        let bounds = &self.job.load().bounds;
        LiveJob {
            name: self.job.name.clone(),
            index: self.index,
            workers: self.workers.len(),
            gone: self.workers.iter().filter(|w| w.ended).count(),
            failed: self
                .workers
                .iter()
                .filter(|w| w.ended && w.failure.is_some())
                .count(),
            released: self.release.is_some(),
            state: match self.ending {
                Some((state, _)) => LiveState::Ending(state),
                None if elapsed < bounds.ramp_ns.0 => LiveState::Ramp,
                None => LiveState::Running,
            },
            elapsed_ns: Nanos(elapsed),
            fraction: self.fraction(elapsed),
            operations: data(|k| k.completed.get()),
            bytes: Bytes(data(|k| k.bytes.get())),
            by_kind: self.by_kind(),
            errors: data(|k| k.failed.get()),
            in_flight: self.workers.iter().map(|w| w.live.in_flight()).sum(),
            latency,
            ranks: None,
        }
    }

    /// Share of the time or of the work that is over, whichever is larger.
    fn fraction(&self, elapsed: u64) -> Option<f64> {
        let bounds = &self.job.load().bounds;
        let time = bounds
            .runtime_ns
            .map(|t| t.0.saturating_add(bounds.ramp_ns.0));
        let by_time = time.map(|t| (elapsed as f64 / t.max(1) as f64).min(1.0));
        let shares: Option<Vec<f64>> = self.workers.iter().map(|w| self.share(w)).collect();
        let by_work = shares
            .filter(|all| !all.is_empty())
            .map(|all| all.iter().sum::<f64>() / all.len() as f64);
        by_time.into_iter().chain(by_work).max_by(f64::total_cmp)
    }

    fn share(&self, worker: &Worker) -> Option<f64> {
        if worker.ended {
            return Some(1.0);
        }
        let sum = |count: fn(&LiveKind) -> u64| -> u64 { worker.live.rated().map(count).sum() };
        let amount = self.prepared.amount(worker.clone);
        amount.share(sum(|k| k.bytes.get()), sum(|k| k.completed.get()))
    }

    fn by_kind(&self) -> ByKind<LiveCount> {
        let kinds = self.job.workload.kinds().iter().enumerate();
        kinds
            .map(|(k, info)| (info.into(), self.count(k)))
            .collect()
    }

    fn count(&self, kind: usize) -> LiveCount {
        let live = || self.workers.iter().map(|w| &w.live.kinds[kind]);
        LiveCount {
            operations: live().map(|k| k.completed.get()).sum(),
            bytes: live().map(|k| k.bytes.get()).sum(),
        }
    }
}
