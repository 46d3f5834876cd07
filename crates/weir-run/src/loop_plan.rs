//! A worker's loop as its job plans it: bounds, batches, pacing, what is measured.
//!
//! In: a job. Out: the plans of the loop and of its pacer. Not here: the loop itself (`worker`).

use std::num::NonZeroU64;

use weir_schema::{ErrorCode, Job, KindName, Recording, Schedule, Timing};
use weir_sys::clock::Scale;

use crate::generate::Streams;
use crate::generate::arrivals::{Arrivals, Even, Poisson, Rate};
use crate::live::{KINDS, Measured};
use crate::pacer::{PacerPlan, Pause};
use crate::worker::LoopPlan;

/// Bounds and batches of a loop with `slots` slots.
pub(crate) fn loop_plan(job: &Job, slots: u32) -> LoopPlan {
    let depth = &job.load().depth;
    let batch = if depth.submit_batch == 0 {
        slots
    } else {
        depth.submit_batch
    };
    let errors = &job.load().errors;
    let kinds = job.workload.kinds();
    let name = |kind: usize| kinds.get(kind).map(KindName::from);
    let goes_on = |kind| name(kind).is_some_and(|name| errors.go_on.contains(&name));
    let ignored = |kind| -> Option<Vec<i32>> {
        let codes = errors.ignore.get(&name(kind)?)?;
        Some(codes.iter().filter_map(ErrorCode::errno).collect())
    };
    LoopPlan {
        depth: slots,
        batch: batch.clamp(1, slots),
        reap_min: depth.reap_min.min(slots),
        // Never fewer than are waited for: the kernel was asked for these.
        reap_max: match depth.reap_max {
            0 => u32::MAX,
            most => most.max(depth.reap_min.min(slots)),
        },
        refill_below: depth.refill_below.unwrap_or(u32::MAX),
        runtime: job.load().bounds.runtime_ns,
        ramp: job.load().bounds.ramp_ns,
        max_latency: job.load().pacing.max_latency_ns,
        timed: job.load().recording.timing != Timing::EndsOnly
            || job.load().pacing.max_latency_ns.is_some(),
        stamp_each: job.load().recording.timing == Timing::EveryOperation && batch > 1,
        go_on: std::array::from_fn(goes_on),
        ignore: std::array::from_fn(|kind| ignored(kind).unwrap_or_default()),
        report_errors: errors.report_errors,
        response: is_open_loop(job),
        ..LoopPlan::default()
    }
}

/// Latency counts from intended starts.
pub(crate) fn is_open_loop(job: &Job) -> bool {
    match &job.load().pacing.schedule {
        Some(
            Schedule::OpsPerSecond { open_loop, .. } | Schedule::BytesPerSecond { open_loop, .. },
        ) => *open_loop,
        None => false,
    }
}

/// Recording settings of each kind of a job's operations.
pub fn measured(job: &Job, inline: bool) -> Measured {
    let Recording {
        timing,
        slat,
        clat,
        lat,
        exact_squares,
        ..
    } = job.load().recording;
    Measured {
        split: !inline && (slat || clat),
        latency: timing != Timing::EndsOnly && (slat || clat || lat),
        response: is_open_loop(job) && timing != Timing::EndsOnly,
        squares: exact_squares,
        classes: false,
        targets: 0,
    }
}

/// The same of every kind that the job's workload declares.
pub(crate) fn measured_kinds(job: &Job, inline: bool) -> [Option<Measured>; KINDS] {
    let declared = job.workload.kinds().len();
    let measured = measured(job, inline);
    std::array::from_fn(|kind| (kind < declared).then_some(measured))
}

/// The pacing of a worker.
pub(crate) fn pacing(job: &Job, seed: u64, worker: u32, scale: Scale) -> PacerPlan {
    let streams = Streams::new(seed, worker);
    let arrivals = |rate: Rate, poisson: bool| {
        if poisson {
            Arrivals::Poisson(Poisson::new(rate, streams.arrivals()))
        } else {
            Arrivals::Even(Even::new(rate))
        }
    };
    let (poisson, skip_pauses) = match job.load().pacing.schedule {
        None => (false, false),
        Some(
            Schedule::OpsPerSecond {
                poisson,
                ignore_thinktime,
                ..
            }
            | Schedule::BytesPerSecond {
                poisson,
                ignore_thinktime,
                ..
            },
        ) => (poisson, ignore_thinktime),
    };
    PacerPlan {
        arrivals: rates(job)
            .into_iter()
            .map(|r| r.map(|r| arrivals(r, poisson)))
            .collect(),
        pause: job.load().pacing.thinktime.map(|t| Pause {
            pause: scale.to_ticks(t.pause_ns),
            spin: scale.to_ticks(t.spin_ns),
            every: t.every.into(),
            completed: t.completed,
            after: t.after_ns.map(|n| scale.to_ticks(n)),
        }),
        pause_after: pauses_of_kinds(job, scale),
        skip_pauses,
        flow: None,
        recorded: None,
    }
}

/// The pause after an operation of each kind, in ticks; none at all where there is none.
fn pauses_of_kinds(job: &Job, scale: Scale) -> Vec<u64> {
    let pauses = &job.load().pacing.pause_after_ns;
    if pauses.values().all(|pause| pause.0 == 0) {
        return Vec::new();
    }
    let kinds = job.workload.kinds().iter().map(KindName::from);
    let pause = |kind| pauses.get(&kind).map_or(0, |pause| scale.to_ticks(*pause));
    kinds.map(pause).collect()
}

/// The rate of each kind that the workload declares; none at all without a schedule.
pub fn rates(job: &Job) -> Vec<Option<Rate>> {
    let kinds = job.workload.kinds().iter().map(KindName::from);
    match &job.load().pacing.schedule {
        None => Vec::new(),
        Some(Schedule::OpsPerSecond { limit_per_s, .. }) => {
            let rate = |kind| whole(limit_per_s.get(&kind)?.0).map(Rate::Operations);
            kinds.map(rate).collect()
        }
        Some(Schedule::BytesPerSecond {
            limit_bytes_per_s, ..
        }) => {
            let rate = |kind| whole(limit_bytes_per_s.get(&kind)?.0).map(Rate::Bytes);
            kinds.map(rate).collect()
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate from the plan: positive, and a saturated one is no limit anyway"
)]
fn whole(rate: f64) -> Option<NonZeroU64> {
    NonZeroU64::new(rate.round() as u64)
}

#[cfg(test)]
mod tests {
    use weir_schema::sample::{JobSample, block_job};

    use super::*;

    #[test]
    fn a_reap_may_take_as_many_as_it_waits_for() {
        let plan = |min, max| {
            let mut job = block_job("a").deep(16);
            job.load_mut().depth.reap_min = min;
            job.load_mut().depth.reap_max = max;
            let plan = loop_plan(&job, 16);
            (plan.reap_min, plan.reap_max)
        };
        assert_eq!(plan(4, 0), (4, u32::MAX));
        assert_eq!(plan(4, 8), (4, 8));
        assert_eq!(plan(4, 2), (4, 4));
        assert_eq!(plan(40, 2), (16, 16));
    }
}
