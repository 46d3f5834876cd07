//! A stage alone as a job of a run: one thread, round after round, for the iterations of the plan.
//!
//! In: a plan that names a stage. Out: what it counted, per iteration. Not here: what a round is (`one_stage`).

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use weir_run::{
    JobContext, KINDS, LoopStop, Measured, Prepared, WorkerContext, WorkerLive, failure,
};
use weir_schema::{
    Failure, IdlePolicy, Job, LoopOutcome, Outcome, PacketPathOutcome, PacketPathWorkload,
    PathStage, PathThread, PoolPages, Warning,
};
use weir_sys::clock::{Clock, Scale, Tick};

use super::cpu_choice::CpuChoice;
use super::{locked, path_pools, pin_to, request_content};
use crate::counts::ThreadCounts;
use crate::handler::{HandlerCall, HandlerStart, MessageWork, with_handler};
use crate::one_stage::{OneStage, side_of};
use crate::pool::Pool;
use crate::shared::PathShared;

/// A job that is ready to run.
pub(super) struct LoneStageJob {
    work: PacketPathWorkload,
    stage: PathStage,
    shared: PathShared,
    pool: Mutex<Option<Pool>>,
    pool_pages: PoolPages,
    content: Vec<u8>,
    cpu: Option<u32>,
    seed: u64,
    clock_read_ns: Mutex<f64>,
}

impl LoneStageJob {
    pub(super) fn new(
        work: &PacketPathWorkload,
        stage: PathStage,
        context: &JobContext<'_>,
    ) -> Result<Self, Failure> {
        let (pools, pool_pages) = path_pools(work, 1)?;
        let cpus = CpuChoice::of(&context.job.placement, None, 1)?;
        Ok(Self {
            stage,
            shared: PathShared::new(1, 0, true),
            pool: Mutex::new(pools.into_iter().next()),
            pool_pages,
            content: request_content(work),
            cpu: cpus.own.and_then(|cpus| cpus.first().copied()),
            seed: context.seed,
            clock_read_ns: Mutex::new(0.0),
            work: work.clone(),
        })
    }

    fn run<W: MessageWork>(&self, worker: &mut WorkerContext<'_>) -> Result<LoopStop, Failure> {
        let Some(pool) = locked(&self.pool).take() else {
            return Err(failure("plan", None, "a stage alone has one thread"));
        };
        let (clock, scale) = (worker.clock, worker.scale.load());
        let start = HandlerStart {
            work: &self.work,
            seed: self.seed,
            content: &self.content,
        };
        let mut stage = OneStage::<W>::new(&self.work, self.stage, (start, pool), (clock, scale));
        *locked(&self.clock_read_ns) = clock.read_cost_ns();
        if !worker.wait_for_release() {
            return Ok(LoopStop::Asked);
        }
        let began = self.shared.begin(clock.now().0);
        worker.begin_elsewhere(Tick(began));
        let is_whole = self.measure(&mut stage, began, (clock, scale), worker);
        worker.end_now();
        self.shared.add_in_use(stage.close());
        self.shared.meet(1, &clock, 0);
        Ok(if is_whole {
            LoopStop::WorkDone
        } else {
            LoopStop::Asked
        })
    }

    /// All iterations; whether they came to their end.
    fn measure<W: MessageWork>(
        &self,
        stage: &mut OneStage<W>,
        began: u64,
        (clock, scale): (Clock, Scale),
        worker: &WorkerContext<'_>,
    ) -> bool {
        let duration = scale.to_ticks(self.work.duration_ns).max(1);
        let (mut since, mut now) = (began, began);
        for iteration in 0..self.work.iterations {
            let end = began.saturating_add(duration.saturating_mul(u64::from(iteration) + 1));
            let mut counts = ThreadCounts::default();
            let mut is_stopped = false;
            while now < end && !is_stopped {
                stage.round(&mut counts, worker.stop);
                counts.passes += 1;
                counts.timed_passes += 1;
                is_stopped = worker.stop.load(Ordering::Relaxed) != 0;
                now = clock.now().0;
            }
            let figures = self.only(&counts.figures(now.saturating_sub(since), scale));
            self.shared.count(iteration as usize, figures);
            since = now;
            if is_stopped {
                return false;
            }
        }
        true
    }

    /// The figures of the stage without what was done around it.
    fn only(&self, all: &PathThread) -> PathThread {
        let mut one = PathThread {
            side: side_of(self.stage),
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
        let (of, is_application) = match self.stage {
            PathStage::ApplicationTx => (&mut one.application_tx, true),
            PathStage::ApplicationRx => (&mut one.application_rx, true),
            PathStage::DispatchTx => (&mut one.dispatch_tx, false),
            PathStage::DispatchRx => (&mut one.dispatch_rx, false),
            PathStage::LinkTx => (&mut one.link_tx, false),
            PathStage::LinkRx => (&mut one.link_rx, false),
        };
        *of = *all.stage(self.stage);
        one.timed_ns = of.busy_ns;
        one.is_application = is_application;
        one.is_dispatcher = !is_application;
        one
    }
}

/// The work of the thread, before its handler is known.
struct LoneStageCall<'a, 'b> {
    job: &'a LoneStageJob,
    worker: &'a mut WorkerContext<'b>,
}

impl HandlerCall for LoneStageCall<'_, '_> {
    type Output = Result<LoopStop, Failure>;

    fn call<W: MessageWork>(self) -> Self::Output {
        self.job.run::<W>(self.worker)
    }
}

impl Prepared for LoneStageJob {
    fn measured(&self, _job: &Job) -> [Option<Measured>; KINDS] {
        [None; KINDS]
    }

    fn is_inline(&self) -> bool {
        true
    }

    fn never_sleeps(&self) -> bool {
        true
    }

    fn work(&self, worker: &mut WorkerContext<'_>) -> Result<LoopStop, Failure> {
        pin_to(self.cpu)?;
        with_handler(self.work.handler, LoneStageCall { job: self, worker })
    }

    fn outcome(&self, done: LoopOutcome, _: &[&WorkerLive]) -> Outcome {
        Outcome::PacketPath(Box::new(PacketPathOutcome {
            workers: done,
            iterations: self.shared.iterations(),
            buffers_in_use: self.shared.in_use(),
            clock_read_ns: *locked(&self.clock_read_ns),
            idle: IdlePolicy::Spin,
            pool_pages: Some(self.pool_pages),
            only_stage: Some(self.stage),
        }))
    }

    fn warnings(&self) -> Vec<Warning> {
        Vec::new()
    }
}

/// What of a plan means nothing where a stage is alone.
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
