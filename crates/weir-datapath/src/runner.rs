//! Packet paths as a job of a run: each thread of client and server is a worker of it.
//!
//! In: a job of the plan. Out: refusals before anything is touched; threads at work; what each counted.
//! Not here: what a thread does (`path_thread`), who is connected to whom (`wiring`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_run::{
    JobContext, KINDS, LoopStop, Measured, Prepared, PreparedJob, RankPart, Runner, WorkerContext,
    WorkerLive, failure,
};
use weir_schema::{
    Failure, IdlePolicy, Job, LoopOutcome, Outcome, PacketPathOutcome, PacketPathWorkload,
    PathSide, PathStage, PathThread, PoolPages, Workload,
};
use weir_sys::cpulist::CpuList;
use weir_sys::pin;

use self::cpu_choice::CpuChoice;
use crate::application::Application;
use crate::dispatcher::Dispatcher;
use crate::handler::{HandlerCall, HandlerStart, MessageWork, with_handler};
use crate::link::{AnyLink, LinkChoice, request_maker};
use crate::path_thread::{PathThreadParts, Pipeline};
use crate::peer::{Hello, OwnSide, PathPeer, listen};
use crate::pool::{Pool, pools};
use crate::shared::PathShared;
use crate::wiring::{SideLinks, ThreadWiring, narrowed, wire};

mod check;
mod cpu_choice;

/// Carries packet paths out.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketPathRunner;

impl Runner for PacketPathRunner {
    fn handles(&self, workload: &Workload) -> bool {
        matches!(workload, Workload::PacketPath(_))
    }

    fn part(&self, _job: &mut Job, rank: RankPart) -> Result<(), Failure> {
        if rank.ranks > 1 {
            let why = "client and server of a packet path are threads of one rank";
            return Err(failure("plan", None, why));
        }
        Ok(())
    }

    fn check(&self, context: &JobContext<'_>) -> Vec<Failure> {
        let Workload::PacketPath(work) = &context.job.workload else {
            return Vec::new();
        };
        check::job(context.job, work)
    }

    fn prepare(&self, context: &JobContext<'_>) -> Result<PreparedJob, Failure> {
        let Workload::PacketPath(work) = &context.job.workload else {
            return Err(failure("plan", None, "this is no packet path"));
        };
        if let Some(failure) = check::job(context.job, work).into_iter().next() {
            return Err(failure);
        }
        Ok(PreparedJob::Workers(Arc::new(PathJob::new(work, context)?)))
    }
}

/// A job that is ready to run.
struct PathJob {
    work: PacketPathWorkload,
    threads: Vec<Mutex<Option<ThreadWiring>>>,
    /// The other side, where that is a run of its own: for the first thread.
    peer: Mutex<Option<PathPeer>>,
    shared: Arc<PathShared>,
    /// Content of requests, where a handler wants more than a filling.
    content: Vec<u8>,
    /// A CPU for each thread, where there are enough.
    cpus: Option<Vec<u32>>,
    idle: IdlePolicy,
    pool_pages: PoolPages,
    seed: u64,
    clock_read_ns: Mutex<f64>,
}

impl PathJob {
    fn new(work: &PacketPathWorkload, context: &JobContext<'_>) -> Result<Self, Failure> {
        let choice = LinkChoice::of(&context.job.engine)?;
        // What this side lacks is known before it waits for the other.
        let links = choice.open(work)?;
        let pools = path_pools(work, work.thread_count())?;
        let Some((work, hello, mut peer)) = meet(work, &choice, context)? else {
            let links = links.complete(work, &choice, &work.dispatchers(), |_| Ok(None))?;
            return Self::wired(work.clone(), links, pools, (context, false));
        };
        let (signals, others) = (context.signals, hello.work.dispatchers());
        let exchange = |facts| peer.exchange(facts, signals);
        let links = links.complete(&work, &choice, &others, exchange);
        let own = links.and_then(|links| Self::wired(work, links, pools, (context, true)));
        let own = peer.prepare_both(own, signals)?;
        *locked(&own.peer) = Some(peer);
        Ok(own)
    }

    /// All threads with what they need, for a run with another side or without.
    fn wired(
        work: PacketPathWorkload,
        links: [SideLinks<AnyLink>; 2],
        (pools, pool_pages): (Vec<Pool>, PoolPages),
        (context, has_peer): (&JobContext<'_>, bool),
    ) -> Result<Self, Failure> {
        let work = narrowed(work);
        let wired = wire(&work, links, pools, context.seed);
        let is_client = |one: &&ThreadWiring| one.side == PathSide::Client;
        let clients = wired.iter().filter(is_client);
        let clients = clients.filter(|one| one.application.is_some()).count();
        let content = request_content(&work);
        let cpus = CpuChoice::of(&context.job.placement, work.side, wired.len())?;
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        // A lone server waits for one word of the client, where it has one.
        let waited_for = if work.side == Some(PathSide::Server) {
            u32::from(has_peer)
        } else {
            count(clients)
        };
        let shared = PathShared::new(count(wired.len()), waited_for, !has_peer);
        Ok(Self {
            shared: Arc::new(shared),
            threads: wired.into_iter().map(|one| Mutex::new(Some(one))).collect(),
            peer: Mutex::default(),
            content,
            idle: match work.idle {
                _ if work.only_stage.is_some() => IdlePolicy::Spin,
                IdlePolicy::Auto if cpus.has_more => IdlePolicy::Spin,
                IdlePolicy::Auto => IdlePolicy::Yield,
                asked => asked,
            },
            work,
            cpus: cpus.own,
            pool_pages,
            seed: context.seed,
            clock_read_ns: Mutex::new(0.0),
        })
    }

    /// The work of a thread with its handler.
    fn run<W: MessageWork>(
        &self,
        mut wiring: ThreadWiring,
        worker: &mut WorkerContext<'_>,
    ) -> Result<LoopStop, Failure> {
        let scale = worker.scale.load();
        if worker.clone == 0 {
            *locked(&self.clock_read_ns) = worker.clock.read_cost_ns();
        }
        let start = HandlerStart {
            work: &self.work,
            seed: self.seed ^ u64::from(worker.clone) << 32,
            content: &self.content,
        };
        let link = wiring.dispatcher.as_mut().map(|parts| &mut parts.link);
        if let Some(AnyLink::Alone(link)) = link {
            let make = request_maker::<W>(&start, (worker.clock, scale));
            link.source = Some((worker.clock, make));
        }
        let handler = W::new(&start);
        let application = wiring.application;
        let parts = PathThreadParts {
            side: wiring.side,
            thread: wiring.thread,
            pool: wiring.pool,
            application: application
                .map(|parts| Application::new(&self.work, parts, handler, scale)),
            dispatcher: wiring
                .dispatcher
                .map(|parts| Dispatcher::new(&self.work, parts, scale)),
            stages: wiring.stages,
            peer: if worker.clone == 0 {
                locked(&self.peer).take()
            } else {
                None
            },
        };
        if !worker.wait_for_release() {
            return Ok(LoopStop::Asked);
        }
        let shared = Arc::clone(&self.shared);
        let line = Pipeline::new(parts, &self.work, self.idle, shared, worker);
        line.run(worker)
    }
}

fn locked<T>(one: &Mutex<T>) -> MutexGuard<'_, T> {
    one.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pools of so many threads, and what they are made of.
///
/// # Errors
/// Pages that cannot be had.
fn path_pools(work: &PacketPathWorkload, threads: u32) -> Result<(Vec<Pool>, PoolPages), Failure> {
    let made = pools(threads, work.pool_buffers, work.pool_pages);
    made.map_err(|why| failure("missing", None, why.to_string()))
}

/// The figures of a stage alone, without those of what is around it.
fn only(stage: PathStage, all: &PathThread) -> PathThread {
    let figures = *all.stage(stage);
    let of = |other| Some(figures).filter(|_| other == stage).unwrap_or_default();
    PathThread {
        side: all.side,
        is_application: all.is_application,
        is_dispatcher: !all.is_application,
        span_ns: all.span_ns,
        application_tx: of(PathStage::ApplicationTx),
        application_rx: of(PathStage::ApplicationRx),
        dispatch_tx: of(PathStage::DispatchTx),
        dispatch_rx: of(PathStage::DispatchRx),
        link_tx: of(PathStage::LinkTx),
        link_rx: of(PathStage::LinkRx),
        passes: all.passes,
        timed_passes: all.timed_passes,
        timed_ns: figures.busy_ns,
        wrong: all.wrong,
        incomplete: all.incomplete,
        application_drops: all.application_drops,
        dispatch_drops: all.dispatch_drops,
        rounds_without_buffers: all.rounds_without_buffers,
        ..PathThread::default()
    }
}

/// Meets the other side, where it is a run of its own; the work, with what that says of itself.
fn meet(
    work: &PacketPathWorkload,
    choice: &LinkChoice,
    context: &JobContext<'_>,
) -> Result<Option<(PacketPathWorkload, Hello, PathPeer)>, Failure> {
    let Some(side) = work.side.filter(|_| work.management_port > 0) else {
        return Ok(None);
    };
    let own = OwnSide {
        work,
        side,
        link: &context.job.engine.name,
        hardware_address: choice.hardware_address(),
    };
    let ([mine, theirs], listener) = match side {
        PathSide::Client => ([0, 1], None),
        PathSide::Server => ([1, 0], Some(listen(work)?)),
    };
    let (peer, hello) = PathPeer::meet(own, listener.as_ref(), context)?;
    let mut work = work.clone();
    for (at, is) in [
        (mine, choice.hardware_address()),
        (theirs, hello.hardware_address),
    ] {
        let asked = &mut work.hardware_addresses[at];
        if *asked == [0; 6] {
            *asked = is.unwrap_or_default();
        }
    }
    Ok(Some((work, hello, peer)))
}

impl Prepared for PathJob {
    fn measured(&self, _job: &Job) -> [Option<Measured>; KINDS] {
        let mut kinds = [None; KINDS];
        kinds[0] = self.work.only_stage.is_none().then(|| Measured {
            latency: true,
            ..Measured::default()
        });
        kinds
    }

    fn is_inline(&self) -> bool {
        true
    }

    fn never_sleeps(&self) -> bool {
        matches!(self.idle, IdlePolicy::Spin | IdlePolicy::Pause)
    }

    fn work(&self, worker: &mut WorkerContext<'_>) -> Result<LoopStop, Failure> {
        let index = worker.clone as usize;
        let cpu = self.cpus.as_ref().and_then(|cpus| cpus.get(index));
        pin_to(cpu.copied())?;
        let wiring = self.threads.get(index).and_then(|one| locked(one).take());
        let Some(wiring) = wiring else {
            return Err(failure(
                "plan",
                None,
                "the job has more workers than threads",
            ));
        };
        let call = PathCall {
            job: self,
            wiring,
            worker,
        };
        with_handler(self.work.handler, call)
    }

    fn outcome(&self, done: LoopOutcome, _: &[&WorkerLive]) -> Outcome {
        let mut iterations = self.shared.iterations();
        if let Some(stage) = self.work.only_stage {
            let threads = iterations.iter_mut().flat_map(|one| &mut one.threads);
            threads.for_each(|thread| *thread = only(stage, thread));
        }
        Outcome::PacketPath(Box::new(PacketPathOutcome {
            workers: done,
            iterations,
            buffers_in_use: self.shared.in_use(),
            clock_read_ns: *locked(&self.clock_read_ns),
            idle: self.idle,
            pool_pages: Some(self.pool_pages),
            only_stage: self.work.only_stage,
        }))
    }
}

/// A thread's part, before its handler is known.
struct PathCall<'a, 'b> {
    job: &'a PathJob,
    wiring: ThreadWiring,
    worker: &'a mut WorkerContext<'b>,
}

impl HandlerCall for PathCall<'_, '_> {
    type Output = Result<LoopStop, Failure>;

    fn call<W: MessageWork>(self) -> Self::Output {
        self.job.run::<W>(self.wiring, self.worker)
    }
}

/// Content of requests, where that is made once.
fn request_content(work: &PacketPathWorkload) -> Vec<u8> {
    if work.echoes() {
        return Vec::new();
    }
    with_handler(work.handler, ContentCall(work))
}

/// The thread runs on this CPU alone, where there is one for it.
fn pin_to(cpu: Option<u32>) -> Result<(), Failure> {
    let Some(cpu) = cpu else {
        return Ok(());
    };
    let only: CpuList = [cpu].into_iter().collect();
    pin::set_affinity(&only).map_err(|why| failure("placement", None, why.to_string()))
}

/// Has a handler make what its requests hold.
struct ContentCall<'a>(&'a PacketPathWorkload);

impl HandlerCall for ContentCall<'_> {
    type Output = Vec<u8>;

    fn call<W: MessageWork>(self) -> Vec<u8> {
        W::content(self.0)
    }
}
