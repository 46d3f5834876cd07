//! Carrying a plan out: starts jobs in their order, watches them, ends them, collects.
//!
//! In: a plan, the runners, the clock, a place where signals arrive. Out: a [`RunResult`],
//! whatever happens. One thread, the caller's, does all of it but making jobs ready and what ranks
//! do together: it sleeps until somebody says something or the next sampling tick is due. Not here:
//! what workers do.

#![expect(
    clippy::cast_precision_loss,
    reason = "counts and times become rates; 52 bits are far below the noise"
)]

mod abandon;
mod bandwidth_log;
mod check;
mod collect;
mod command;
mod disks;
mod end_of_jobs;
mod instrument;
mod interrupt_thread;
mod judge;
mod minimum;
mod observe;
mod order;
mod phases;
mod plan_of_rank;
mod rank_meetings;
mod record;
mod run_id;
mod running;
mod running_ranks;
mod sampler;
mod search;
mod start;
mod steady;
mod steady_groups;
mod stretches;
mod thread;
mod warn;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::Scope;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use weir_schema::{
    Announcement, ClockFacts, DeviceFacts, Failure, HostFacts, Job, LogFormat, Plan, RunResult,
    State,
};
use weir_sys::Tree;
use weir_sys::clock::{Clock, Tick, Timeline};
use weir_units::Nanos;
pub use weir_world::RankHost;

use crate::findings::FailureCounts;
use crate::flow::Flows;
use crate::generate::rng::mix64;
use crate::log::LogFiles;
use crate::runner::{JobContext, Runner, failure};

use bandwidth_log::BandwidthLog;
pub use check::check;
pub(crate) use collect::last_done;
use disks::Disks;
use instrument::LoopCosts;
pub use observe::{LiveCount, LiveEnd, LiveJob, LiveState, LiveView};
use order::JobOrder;
pub use phases::{InlineWork, Phase, PhaseEnd, SeriesEnd};
pub(crate) use phases::{PhaseHost, PhaseShare};
pub use plan_of_rank::{add_metrics, reduce_to_rank};
use rank_meetings::RankMeetings;
pub use rank_meetings::{OtherRanks, TargetMaker};
use running::{EndedJob, RunningJob};
use running_ranks::RunningRanks;
use start::StartBatch;
use steady_groups::SteadyGroups;
pub(crate) use thread::Event;
pub use weir_sys::Signals;

/// The run looks around at least this often.
const LONGEST_WAIT: Nanos = Nanos(10_000_000);
/// The same where only ranks are at work, which time themselves.
const LONGEST_RANKS_WAIT: Nanos = Nanos(50_000_000);
/// While operations are traced it empties their queues this often.
const TRACE_WAIT: Nanos = Nanos(10_000_000);
/// While something is being ended it looks around this often.
const ENDING_WAIT: Nanos = Nanos(5_000_000);

/// Parts that a run works with.
#[expect(missing_debug_implementations, reason = "holds functions")]
pub struct RunControl<'a> {
    /// Runners that carry jobs out, by workload.
    pub runners: &'a [&'a dyn Runner],
    /// Host of the work that ranks do together.
    pub ranks: RankHost,
    /// The clock.
    pub clock: Clock,
    /// Facts about it.
    pub clock_facts: ClockFacts,
    /// Facts about the machine.
    pub host: HostFacts,
    /// Version of the program, for the result.
    pub version: &'a str,
    /// Base directory of relative paths.
    pub directory: &'a Path,
    /// Signals.
    pub signals: Arc<Signals>,
    /// Time that a worker may take to end before it is left behind.
    pub grace: Duration,
    /// Announcements.
    pub announce: &'a dyn Fn(&Announcement),
    /// Puts records of logs into words.
    pub log_format: LogFormat,
    /// Is shown the run at every round, at least every 10 ms.
    pub observer: Option<&'a mut dyn FnMut(&LiveView<'_>)>,
    /// Measure what loops cost themselves, before they run.
    pub calibrate: bool,
    /// Other ranks that carry the same plan out.
    pub other_ranks: Option<OtherRanks<'a>>,
}

/// A job with its numbers over the whole run.
#[derive(Clone, Copy)]
struct Entry<'a> {
    plan: &'a Plan,
    group: usize,
    job: &'a Job,
    index: u32,
    first_worker: u32,
    seed: u64,
    run_id: u16,
}

impl Entry<'_> {
    /// Workers of all jobs of the run.
    fn workers_of_run(&self) -> u32 {
        let clones = self.plan.jobs().map(|(_, job)| job.clones);
        clones.fold(0, u32::saturating_add)
    }

    fn context<'b>(&'b self, control: &'b RunControl<'_>) -> JobContext<'b> {
        JobContext {
            plan: self.plan,
            job: self.job,
            index: self.index,
            first_worker: self.first_worker,
            seed: self.seed,
            run_id: self.run_id,
            directory: control.directory,
            announce: control.announce,
            signals: &control.signals,
        }
    }
}

fn numbered(plan: &Plan, started_unix_ns: u64) -> Vec<Entry<'_>> {
    let run_id = run_id::of_run(started_unix_ns);
    let mut first_worker = 0;
    let mut entries = Vec::new();
    for ((group, job), index) in plan.jobs().zip(0..) {
        entries.push(Entry {
            plan,
            group,
            job,
            index,
            first_worker,
            seed: seed_of(job),
            run_id,
        });
        first_worker += job.clones;
    }
    entries
}

/// The seed of a job's streams; 0 asks for another one at each run.
fn seed_of(job: &Job) -> u64 {
    match job.workload.seed() {
        None => return 1,
        Some(0) => {}
        Some(seed) => return seed,
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    mix64(u64::try_from(now.as_nanos() & u128::from(u64::MAX)).unwrap_or(1)).max(1)
}

fn runner_of<'a>(runners: &[&'a dyn Runner], job: &Job) -> Result<&'a dyn Runner, Failure> {
    let mut runners = runners.iter().copied();
    let found = runners.find(|r| r.handles(&job.workload));
    found.ok_or_else(|| {
        let why = "nothing in this build carries this workload out";
        failure("plan", None, why)
    })
}

/// Carries the plan out.
pub fn execute(plan: &Plan, mut control: RunControl<'_>) -> RunResult {
    let mut run = Run::new(plan, &control);
    if control.calibrate && run.entries.is_empty() {
        run.loop_costs.measure_plain(&control.clock);
    }
    let before = warn::MachineCounters::read(&Tree::real());
    let mut disks = Disks::default();
    let mut observer = control.observer.take();
    let mut meetings = RankMeetings::new(plan, control.other_ranks);
    std::thread::scope(|scope| {
        while run.step(&control, &mut disks, &mut meetings, scope) {
            if let Some(observer) = &mut observer {
                run.observe(plan, &control, &disks, *observer);
            }
        }
    });
    meetings.finish();
    collect::result(run, plan, control, &before, &disks)
}

/// The state of a run.
struct Run<'a> {
    runners: &'a [&'a dyn Runner],
    directory: &'a Path,
    entries: Vec<Entry<'a>>,
    order: JobOrder,
    /// Jobs that are on their way to their release.
    batch: Option<StartBatch>,
    #[expect(
        clippy::vec_box,
        reason = "each is large, and they leave from among the others"
    )]
    running: Vec<Box<RunningJob>>,
    /// Jobs that all ranks run together: one at a time.
    ranks: Vec<RunningRanks>,
    ended: Vec<EndedJob>,
    events: (Sender<Event>, Receiver<Event>),
    /// Time of the next look at every job; none: in this round.
    check_at: Option<Tick>,
    /// Some worker, or what ranks did together, has ended since the last round.
    has_ended: bool,
    /// Position of the job whose worker sent the last event: workers mostly send them in their
    /// order.
    last_spoke: usize,
    timeline: Timeline,
    origin: Tick,
    started_unix_ns: u64,
    first_release: Option<Tick>,
    cancelled: bool,
    /// Time at which the run was ended early, since its origin.
    ended_early: Option<Nanos>,
    devices: Vec<DeviceFacts>,
    log_files: LogFiles,
    bandwidth_log: Option<BandwidthLog>,
    steady_groups: SteadyGroups,
    flows: Flows,
    failure_counts: FailureCounts,
    loop_costs: LoopCosts,
    /// For how long the process was stopped while jobs ran.
    stopped: Nanos,
}

impl<'a> Run<'a> {
    fn new<'c: 'a>(plan: &'a Plan, control: &RunControl<'c>) -> Self {
        let timeline = Timeline::start(&control.clock);
        // At one instant: where ranks share a clock, their times are compared by the wall's.
        let origin = control.clock.now();
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let started_unix_ns = u64::try_from(wall.as_nanos()).unwrap_or(0);
        let entries = numbered(plan, started_unix_ns);
        Self {
            runners: control.runners,
            directory: control.directory,
            order: JobOrder::new(plan),
            entries,
            batch: None,
            running: Vec::new(),
            ranks: Vec::new(),
            ended: Vec::new(),
            events: mpsc::channel(),
            check_at: None,
            has_ended: false,
            last_spoke: 0,
            timeline,
            origin,
            started_unix_ns,
            first_release: None,
            cancelled: false,
            ended_early: None,
            devices: Vec::new(),
            log_files: LogFiles::new(control.log_format),
            steady_groups: SteadyGroups::default(),
            flows: Flows::default(),
            failure_counts: FailureCounts::default(),
            loop_costs: LoopCosts::default(),
            stopped: Nanos::ZERO,
            bandwidth_log: plan.total_log.as_ref().and_then(|log| {
                // Beforehand it could be written; a run goes on without it.
                BandwidthLog::open(log, origin, control.clock.scale(), control.log_format).ok()
            }),
        }
    }

    /// One round: starts what may start, waits for the next thing to happen, handles it. False
    /// when the run is over.
    fn step<'scope>(
        &mut self,
        control: &RunControl<'_>,
        disks: &mut Disks,
        meetings: &mut RankMeetings<'_>,
        scope: &'scope Scope<'scope, 'a>,
    ) -> bool {
        self.start_due(control, disks, meetings, scope);
        let idle = self.running.is_empty() && self.ranks.is_empty() && self.batch.is_none();
        if idle && (self.cancelled || self.order.is_done()) {
            return false;
        }
        self.wait_for_events(control);
        self.check_jobs(control);
        true
    }

    fn wait_for_events(&mut self, control: &RunControl<'_>) {
        let now = control.clock.now();
        // Many jobs get ready one after the other: not every word from one is a reason to look at
        // all of them.
        let check_at = self.check_at.unwrap_or_else(|| {
            let wait = self.time_to_wait(now, control);
            now.after(control.clock.scale().to_ticks(wait))
        });
        self.check_at = Some(check_at);
        let left = control.clock.scale().to_nanos(check_at.since(now));
        let Ok(event) = self.events.1.recv_timeout(Duration::from_nanos(left)) else {
            return;
        };
        self.handle(event, control);
        while let Ok(event) = self.events.1.try_recv() {
            self.handle(event, control);
        }
    }

    fn time_to_wait(&self, now: Tick, control: &RunControl<'_>) -> Nanos {
        if self.running.iter().any(|job| job.is_ending()) {
            return ENDING_WAIT;
        }
        if self.running.iter().any(|job| job.is_traced()) {
            return TRACE_WAIT;
        }
        let longest = if self.running.is_empty() {
            LONGEST_RANKS_WAIT
        } else {
            LONGEST_WAIT
        };
        let ticks = self.running.iter().filter_map(|job| job.next_tick());
        let due = ticks.min().map_or(longest, |tick| {
            Nanos(control.clock.scale().to_nanos(tick.since(now)))
        });
        let start = self.order.next_delay(self.timeline.since(self.origin, now));
        due.min(start.unwrap_or(longest)).min(longest)
    }

    fn handle(&mut self, event: Event, control: &RunControl<'_>) {
        match event {
            Event::Announced(announcement) => (control.announce)(&announcement),
            Event::Made(made) => self.set_prepared_job(made),
            Event::RanksEnded(index, outcome) => {
                self.has_ended = true;
                if let Some(job) = self.ranks.iter_mut().find(|j| j.index() == index) {
                    job.set_outcome(*outcome, &control.signals);
                }
            }
            Event::Waits => {}
            Event::Ready(number) | Event::Ended(number, _) => {
                self.has_ended |= matches!(event, Event::Ended(..));
                let jobs = self.running.len();
                let mut places = (0..jobs).map(|step| (self.last_spoke + step) % jobs);
                if let Some(at) = places.find(|at| self.running[*at].has_worker(number)) {
                    self.last_spoke = at;
                    self.running[at].handle(number, event);
                }
            }
        }
    }

    /// Looks at every job when that is due, and collects what has ended.
    fn check_jobs(&mut self, control: &RunControl<'_>) {
        let now = control.clock.now();
        let is_due = self.check_at.is_none_or(|at| now >= at);
        if is_due {
            let due = self.check_at.take().unwrap_or(now);
            if control.signals.take_gone_on() {
                let time = control.clock.scale().to_nanos(now.since(due));
                self.was_stopped(Nanos(time));
            }
            self.check_all(now, control);
        }
        if std::mem::take(&mut self.has_ended) || is_due {
            self.collect_ended(now, control);
            self.stop_companions(now);
        }
    }

    /// The process was stopped for so long, and goes on.
    fn was_stopped(&mut self, time: Nanos) {
        self.stopped = self.stopped.saturating_add(time);
        self.running.iter_mut().for_each(|job| job.was_stopped());
    }

    /// Samples, and ends what has to end.
    fn check_all(&mut self, now: Tick, control: &RunControl<'_>) {
        self.timeline.re_anchor(&control.clock);
        if control.signals.interrupted() {
            self.cancel(control);
        } else if control.signals.end_early.load(Ordering::Relaxed) {
            self.end_early(now);
        }
        let at_once = control.signals.interruptions.load(Ordering::Relaxed) > 1;
        for job in &mut self.running {
            job.check(now, control.grace, at_once);
        }
        for job in &mut self.ranks {
            job.abandon_if_hung(now, control.grace);
        }
        self.steady_groups.sample_if_due(&mut self.running, now);
        let (running, ended) = (&self.running, &self.ended);
        if let Some(log) = &mut self.bandwidth_log {
            log.write_if_due(now, || bandwidth_log::bytes(running, ended));
        }
    }

    fn collect_ended(&mut self, now: Tick, control: &RunControl<'_>) {
        let mut index = 0;
        while index < self.running.len() {
            if self.running[index].is_over() {
                // The jobs of a batch keep their order.
                let job = self.running.remove(index);
                self.collect(*job, control);
            } else {
                index += 1;
            }
        }
        while let Some(over) = self.ranks.iter().position(RunningRanks::is_over) {
            let job = self.ranks.swap_remove(over);
            let entry = self.entries[job.index()];
            self.finish_job(entry, EndedJob::of_ranks(job, now), control);
        }
        if self.running.iter().any(|job| job.is_ending()) {
            // Who ends is looked at more often.
            let soon = now.after(control.clock.scale().to_ticks(ENDING_WAIT));
            self.check_at = self.check_at.map(|at| at.min(soon));
        }
    }

    fn collect(&mut self, job: RunningJob, control: &RunControl<'_>) {
        let entry = self.entries[job.index()];
        self.finish_job(entry, job.finish(control.clock.now()), control);
    }

    fn finish_job(&mut self, entry: Entry<'_>, ended: EndedJob, control: &RunControl<'_>) {
        self.order.ended(ended.index);
        let failed = ended.failure.is_some();
        self.ended.push(ended);
        self.stop_jobs_after(entry, failed, control);
        if control.ranks.is_abandoned() {
            self.cancel(control);
        }
    }

    /// Every job has come to its end, whatever that was, and none was cut short.
    fn is_done(&self) -> bool {
        let whole = |ended: &EndedJob| matches!(ended.state, State::Done | State::Failed);
        self.order.is_done() && self.ended.iter().all(whole)
    }

    fn observe(
        &self,
        plan: &Plan,
        control: &RunControl<'_>,
        disks: &Disks,
        observer: &mut dyn FnMut(&LiveView<'_>),
    ) {
        let now = control.clock.now();
        let zero = self.first_release.unwrap_or(now);
        observer(&LiveView {
            elapsed_ns: self.timeline.since(self.origin, now),
            measured_ns: self.timeline.since(zero, now),
            jobs: &|| {
                let workers = self.running.iter().map(|j| j.view(now));
                workers
                    .chain(self.ranks.iter().map(|j| j.view(now)))
                    .collect()
            },
            ended: &|| self.ended.iter().map(EndedJob::view).collect(),
            signals: &control.signals,
            result: &|| collect::so_far(self, plan, control, disks, now),
        });
    }
}
