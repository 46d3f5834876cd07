//! The instrument's own cost: the loop of each job over an engine that does nothing, for moments.
//!
//! In: a job that is ready. Out: nanoseconds per operation of a loop of its form: inline or queued,
//! with its timing, histograms and pacing. Not here: what cost is too much (`warn`).

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::atomic::AtomicU32;

use weir_schema::{
    BlockWorkload, Depth, EngineChoice, Instrument, Job, KindInfo, KindName, Moves, Schedule,
    Timing,
};
use weir_sys::clock::Clock;
use weir_units::{BytesPerSec, Iops, Nanos};

use crate::call::{Call, Calls};
use crate::engine::Engine;
use crate::generate::rng::Rng;
use crate::live::{KINDS, Measured, WorkerLive};
use crate::lone_loop::LoneLoop;
use crate::loop_plan::measured;
use crate::null::{NullInline, NullQueued};

/// Number of moments: a thread that is interrupted in one of them is not in another.
const MOMENTS: u32 = 10;
/// Thousands of operations. All moments together are part of the start of a run.
const MOMENT: Nanos = Nanos(150_000);
/// Operations or bytes per second that no loop reaches: its pacing never waits.
const NEVER_WAITS: f64 = 1e18;

/// The kinds counted.
const KINDS_OF_CALLS: &[KindInfo] = &[KindInfo::new("call", Moves::In)];

/// The form of a loop, as far as its cost depends on it.
#[derive(Clone, Debug, PartialEq)]
struct LoopForm {
    is_inline: bool,
    depth: Depth,
    timing: Timing,
    measured: Measured,
    schedule: Option<Schedule>,
}

/// Costs of loops, by job.
#[derive(Debug, Default)]
pub(super) struct LoopCosts {
    /// Each form is measured once.
    known: Vec<(LoopForm, f64)>,
    jobs: BTreeMap<usize, f64>,
}

impl LoopCosts {
    /// Measures a job's loop, unless one like it was. A workload without a load has a loop of its own.
    pub(super) fn measure(&mut self, index: usize, job: &Job, is_inline: bool, clock: &Clock) {
        if job.workload.load().is_none() {
            return;
        }
        let job = unhindered(job);
        let load = job.load();
        let form = LoopForm {
            is_inline,
            depth: load.depth,
            timing: load.recording.timing,
            measured: measured(&job, is_inline),
            schedule: load.pacing.schedule.clone(),
        };
        let known = self.known.iter().find(|(known, _)| *known == form);
        let cost = known.map(|(_, cost)| *cost).or_else(|| {
            let moments = (0..MOMENTS).filter_map(|_| moment(&job, &form, clock));
            let least = moments.min_by(f64::total_cmp)?;
            self.known.push((form, least));
            Some(least)
        });
        self.jobs.extend(cost.map(|cost| (index, cost)));
    }

    /// Measures the simplest loop there is.
    pub(super) fn measure_plain(&mut self, clock: &Clock) {
        let job = Job::of_blocks("", EngineChoice::new(""), BlockWorkload::default());
        self.measure(0, &job, true, clock);
    }

    /// Of the job of this number.
    pub(super) fn of(&self, index: usize) -> Option<f64> {
        self.jobs.get(&index).copied()
    }

    /// For the result of the run.
    pub(super) fn instrument(&self) -> Instrument {
        let costs = self.known.iter().map(|(_, cost)| *cost);
        let most = costs.max_by(f64::total_cmp);
        Instrument {
            ns_per_op: most,
            absent: most
                .is_none()
                .then(|| "no loop was to be measured".to_owned()),
            timer_slack_ns: weir_sys::pin::timer_slack().ok(),
            ..Instrument::default()
        }
    }
}

/// The job without waits and bounds.
fn unhindered(job: &Job) -> Job {
    let mut job = job.clone();
    // Operations are of the first kind.
    let kind = job.workload.kinds().first().map(KindName::from);
    if let Some(load) = job.workload.load_mut() {
        load.bounds.ramp_ns = Nanos(0);
        load.bounds.runtime_ns = Some(MOMENT);
        load.pacing.max_latency_ns = None;
        load.pacing.thinktime = None;
        load.pacing.pause_after_ns.clear();
        match &mut load.pacing.schedule {
            Some(Schedule::OpsPerSecond { limit_per_s, .. }) => {
                *limit_per_s = kind
                    .map(|kind| (kind, Iops(NEVER_WAITS)))
                    .into_iter()
                    .collect();
            }
            Some(Schedule::BytesPerSecond {
                limit_bytes_per_s, ..
            }) => {
                let limit = |kind| (kind, BytesPerSec(NEVER_WAITS));
                *limit_bytes_per_s = kind.map(limit).into_iter().collect();
            }
            None => {}
        }
    }
    job
}

/// Nanoseconds per operation over one moment.
fn moment(job: &Job, form: &LoopForm, clock: &Clock) -> Option<f64> {
    if form.is_inline {
        run(&mut NullInline::attach(1_u32).ok()?, job, form, clock)
    } else {
        let mut engine = NullQueued::attach(form.depth.queue_depth.0).ok()?;
        run(&mut engine, job, form, clock)
    }
}

fn run(
    engine: &mut impl Engine<Op = Call>,
    job: &Job,
    form: &LoopForm,
    clock: &Clock,
) -> Option<f64> {
    let mut kinds = [None; KINDS];
    kinds[0] = Some(form.measured);
    let live = WorkerLive::new(KINDS_OF_CALLS, kinds);
    // Random offsets without end, for an engine that touches nothing.
    let mut rng = Rng::new(1);
    let mut calls = Calls(std::iter::repeat_with(move || {
        black_box(rng.below(1 << 20) << 12);
        Call {
            kind: 0,
            length: 4096,
        }
    }));
    let alone = LoneLoop {
        job,
        seed: 1,
        clock,
        stop: &AtomicU32::new(0),
        live: &live,
    };
    alone.drive(engine, &mut calls, form.depth.queue_depth.0, |_| ());
    let operations = live.kinds[0].completed.get();
    (operations > 0).then(|| alone.duration().0 as f64 / operations as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_schema::Kind;
    use weir_schema::sample::JobSample;
    use weir_units::QueueDepth;

    fn cost(change: impl FnOnce(&mut Job), is_inline: bool) -> (LoopCosts, f64) {
        let mut job = Job::of_blocks("a", EngineChoice::new("null"), BlockWorkload::default());
        change(&mut job);
        let (clock, _) = Clock::detect();
        let mut costs = LoopCosts::default();
        costs.measure(3, &job, is_inline, &clock);
        let cost = costs.of(3).unwrap();
        (costs, cost)
    }

    #[test]
    fn the_loop_of_each_form_is_measured_once() {
        let (mut costs, first) = cost(|_| (), true);
        assert!(first > 0.0 && costs.of(0).is_none());
        assert_eq!(costs.instrument().ns_per_op, Some(first));
        let (clock, _) = Clock::detect();
        let like = Job::of_blocks("b", EngineChoice::new("psync"), BlockWorkload::default());
        costs.measure(4, &like, true, &clock);
        assert_eq!((costs.of(4), costs.known.len()), (Some(first), 1));
        costs.measure(5, &like, false, &clock);
        assert_eq!(costs.known.len(), 2);
    }

    #[test]
    fn a_workload_with_a_loop_of_its_own_has_none_to_be_measured() {
        let work = weir_schema::PacketPathWorkload::default();
        let job = Job::alone("p", EngineChoice::new("ring"), work);
        let mut costs = LoopCosts::default();
        costs.measure(0, &job, true, &Clock::detect().0);
        assert_eq!(costs.of(0), None);
    }

    #[test]
    fn queue_timing_and_schedule_make_forms_of_their_own_and_never_wait() {
        let deep = |job: &mut Job| job.load_mut().depth.queue_depth = QueueDepth(32);
        let paced = |job: &mut Job| {
            job.load_mut().pacing.schedule = Some(Schedule::OpsPerSecond {
                limit_per_s: [(Kind::Read.into(), Iops(10.0))].into(),
                poisson: false,
                open_loop: true,
                ignore_thinktime: false,
            });
        };
        let untimed = |job: &mut Job| job.load_mut().recording.timing = Timing::EndsOnly;
        for (change, is_inline) in [
            (&deep as &dyn Fn(&mut Job), false),
            (&paced, true),
            (&untimed, true),
        ] {
            // With its own 10 operations per second a moment would have one operation.
            let (_, cost) = cost(change, is_inline);
            assert!(cost < 50_000.0, "{cost} ns");
        }
    }

    #[test]
    fn a_run_without_loops_says_so() {
        let costs = LoopCosts::default();
        assert!(costs.instrument().absent.is_some());
    }
}
