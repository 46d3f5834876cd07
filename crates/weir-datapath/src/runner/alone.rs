//! A stage alone as the work of a thread: round after round, for the iterations of the plan.
//!
//! In: a job whose plan names a stage. Out: what it counted, per iteration. Not here: what a round is (`one_stage`).

use std::sync::atomic::Ordering;

use weir_run::{LoopStop, WorkerContext};
use weir_schema::{PacketPathWorkload, PathStage, PathThread};
use weir_sys::clock::Tick;

use super::PathJob;
use crate::counts::ThreadCounts;
use crate::handler::MessageWork;
use crate::one_stage::{OneStage, side_of};

/// Runs a stage alone, to the end of the last iteration or until it is asked to end.
pub(super) fn run<W: MessageWork>(
    job: &PathJob,
    mut stage: OneStage<W>,
    worker: &mut WorkerContext<'_>,
) -> LoopStop {
    if !worker.wait_for_release() {
        return LoopStop::Asked;
    }
    let began = job.shared.begin(worker.clock.now().0);
    worker.begin_elsewhere(Tick(began));
    let is_whole = measure(job, &mut stage, began, worker);
    worker.end_now();
    job.shared.add_in_use(stage.close());
    job.shared.meet(1, &worker.clock, 0);
    if is_whole {
        LoopStop::WorkDone
    } else {
        LoopStop::Asked
    }
}

/// All iterations; whether they came to their end.
fn measure<W: MessageWork>(
    job: &PathJob,
    stage: &mut OneStage<W>,
    began: u64,
    worker: &WorkerContext<'_>,
) -> bool {
    let (clock, scale) = (worker.clock, worker.scale.load());
    let duration = scale.to_ticks(job.work.duration_ns).max(1);
    let (mut since, mut now) = (began, began);
    for iteration in 0..job.work.iterations {
        let end = began.saturating_add(duration.saturating_mul(u64::from(iteration) + 1));
        let mut counts = ThreadCounts::default();
        let mut is_stopped = false;
        while now < end && !is_stopped {
            stage.round(&mut counts, worker.stop);
            counts.sums.passes += 1;
            counts.sums.timed_passes += 1;
            is_stopped = worker.stop.load(Ordering::Relaxed) != 0;
            now = clock.now().0;
        }
        let all = counts.figures(now.saturating_sub(since), scale);
        job.shared
            .count(iteration as usize, only(stage.stage, &all));
        since = now;
        if is_stopped {
            return false;
        }
    }
    true
}

/// The figures of the stage without what was done around it.
fn only(stage: PathStage, all: &PathThread) -> PathThread {
    let mut one = PathThread {
        side: side_of(stage),
        span_ns: all.span_ns,
        passes: all.passes,
        timed_passes: all.timed_passes,
        wrong: all.wrong,
        incomplete: all.incomplete,
        application_drops: all.application_drops,
        dispatch_drops: all.dispatch_drops,
        rounds_without_buffers: all.rounds_without_buffers,
        ..PathThread::default()
    };
    let (of, is_application) = match stage {
        PathStage::ApplicationTx => (&mut one.application_tx, true),
        PathStage::ApplicationRx => (&mut one.application_rx, true),
        PathStage::DispatchTx => (&mut one.dispatch_tx, false),
        PathStage::DispatchRx => (&mut one.dispatch_rx, false),
        PathStage::LinkTx => (&mut one.link_tx, false),
        PathStage::LinkRx => (&mut one.link_rx, false),
    };
    *of = *all.stage(stage);
    one.timed_ns = of.busy_ns;
    one.is_application = is_application;
    one.is_dispatcher = !is_application;
    one
}

/// Settings of a plan that mean nothing where a stage is alone.
pub(super) fn without_meaning(work: &PacketPathWorkload, link: &str) -> Vec<String> {
    let rest = [
        ("side", work.side.is_some()),
        ("messages_per_s", work.messages_per_s > 0),
        ("most_messages", work.most_messages > 0),
        ("sink_packets_per_s", work.sink_packets_per_s > 0),
        ("pause_ns", work.pause_ns.0 > 0),
        ("dropped_per_million", work.dropped_per_million > 0),
        ("timed_pass", work.timed_pass != 1),
        ("pass_interval_ns", work.pass_interval_ns.0 > 0),
        ("engine", link != "ring"),
    ];
    if work.only_stage.is_none() {
        return Vec::new();
    }
    let given = rest.into_iter().filter(|(_, is_given)| *is_given);
    let words = |(name, _)| {
        format!(
            "`{name}` means nothing with `only_stage`: a stage alone has no link and no other side, and each of its calls is timed"
        )
    };
    given.map(words).collect()
}
