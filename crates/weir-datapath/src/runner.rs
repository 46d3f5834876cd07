//! Packet paths as a job of a run: each thread of client and server is a worker of it.
//!
//! In: a job of the plan. Out: refusals before anything is touched; threads at work; what each counted.
//! Not here: what a thread does (`path_thread`), who is connected to whom (`wiring`).

use std::sync::{Arc, Mutex, PoisonError};

use weir_run::{
    JobContext, KINDS, LoopStop, Measured, Prepared, PreparedJob, RankPart, Runner, WorkerContext,
    WorkerLive, failure,
};
use weir_schema::{
    Failure, IdlePolicy, Job, LoopOutcome, MessageHandler, Outcome, PacketPathOutcome,
    PacketPathWorkload, Placement, Warning, Workload,
};
use weir_sys::cpulist::CpuList;
use weir_sys::pin;
use weir_sys::topology::Topology;

use crate::application::Application;
use crate::dispatcher::Dispatcher;
use crate::dpdk_link::{self, DpdkSettings};
use crate::handler::{HandlerStart, MessageWork, packed_text, with_handler};
use crate::link::PacketLink;
use crate::path_thread::{PathThreadParts, Pipeline};
use crate::shared::PathShared;
use crate::wiring::{SideLinks, ThreadWiring, ring_links, wire};
use crate::xdp_link::{self, XdpSettings};

mod check;

/// Carries packet paths out.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketPathRunner;

/// The links there are.
pub(crate) const LINKS: [&str; 3] = ["ring", "xdp", "dpdk"];

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
        if context.job.engine.name == "xdp" {
            let settings = XdpSettings::read(&context.job.engine.settings);
            let settings = settings.map_err(|wrong| failure("plan", None, wrong.join("; ")))?;
            return prepared(context, work, xdp_link::links(work, &settings)?);
        }
        if context.job.engine.name == "dpdk" {
            let settings = DpdkSettings::read(&context.job.engine.settings);
            let settings = settings.map_err(|wrong| failure("plan", None, wrong.join("; ")))?;
            return prepared(context, work, dpdk_link::links(work, &settings)?);
        }
        prepared(context, work, ring_links(work))
    }
}

fn prepared<L: PacketLink + 'static>(
    context: &JobContext<'_>,
    work: &PacketPathWorkload,
    links: [SideLinks<L>; 2],
) -> Result<PreparedJob, Failure> {
    let wired = wire(work, links, context.seed);
    let job = PathJob::new(work, &context.job.placement, wired, context.seed)?;
    Ok(PreparedJob::Workers(Arc::new(job)))
}

/// A job that is ready to run.
struct PathJob<L> {
    work: PacketPathWorkload,
    threads: Vec<Mutex<Option<ThreadWiring<L>>>>,
    shared: Arc<PathShared>,
    /// What requests hold, where a handler wants more than a filling.
    content: Vec<u8>,
    /// A CPU for each thread, where there are enough.
    cpus: Option<Vec<u32>>,
    idle: IdlePolicy,
    seed: u64,
    clock_read_ns: Mutex<f64>,
}

impl<L: PacketLink> PathJob<L> {
    fn new(
        work: &PacketPathWorkload,
        placement: &Placement,
        wired: Vec<ThreadWiring<L>>,
        seed: u64,
    ) -> Result<Self, Failure> {
        let is_client = |one: &&ThreadWiring<L>| one.side == weir_schema::PathSide::Client;
        let clients = wired.iter().filter(is_client);
        let clients = clients.filter(|one| one.application.is_some()).count();
        let content = if work.handler == MessageHandler::Inflate && !work.echo {
            let packets = u64::from(work.packets(work.request_bytes));
            let room = work.request_bytes.0.saturating_sub(16 * packets);
            packed_text(usize::try_from(room).unwrap_or(0))
        } else {
            Vec::new()
        };
        let cpus = CpuChoice::of(placement, wired.len())?;
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Ok(Self {
            shared: Arc::new(PathShared::new(count(wired.len()), count(clients))),
            threads: wired.into_iter().map(|one| Mutex::new(Some(one))).collect(),
            work: work.clone(),
            content,
            idle: match work.idle {
                IdlePolicy::Auto if cpus.has_more => IdlePolicy::Spin,
                IdlePolicy::Auto => IdlePolicy::Yield,
                asked => asked,
            },
            cpus: cpus.own,
            seed,
            clock_read_ns: Mutex::new(0.0),
        })
    }

    /// The work of a thread with its handler.
    fn run<W: MessageWork>(
        &self,
        wiring: ThreadWiring<L>,
        worker: &mut WorkerContext<'_>,
    ) -> Result<LoopStop, Failure> {
        let scale = worker.scale.load();
        let handler = W::new(&HandlerStart {
            work: &self.work,
            seed: self.seed ^ u64::from(worker.clone) << 32,
            content: &self.content,
        });
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
        };
        if worker.clone == 0 {
            let cost = worker.clock.read_cost_ns();
            *self
                .clock_read_ns
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = cost;
        }
        if !worker.wait_for_release() {
            return Ok(LoopStop::Asked);
        }
        let shared = Arc::clone(&self.shared);
        let line = Pipeline::new(parts, &self.work, self.idle, shared, worker);
        line.run(worker)
    }
}

/// The CPUs of threads.
struct CpuChoice {
    /// One for each thread, of the nodes that the plan names; none where they are too few.
    own: Option<Vec<u32>>,
    /// Others are left: for who watches the run, and everybody else.
    has_more: bool,
}

impl CpuChoice {
    fn of(placement: &Placement, threads: usize) -> Result<Self, Failure> {
        let allowed = pin::affinity().map_err(|why| failure("placement", None, why.to_string()))?;
        let topology = Topology::of_this_machine();
        let is_on_node = |cpu: u32| match &placement.nodes {
            None => true,
            // A kernel that knows no nodes has all of its CPUs on node 0.
            Some(nodes) => nodes.contains(&topology.node_of(cpu).unwrap_or(0)),
        };
        let allowed = allowed.as_slice();
        let on_node = allowed.iter().copied().filter(|cpu| is_on_node(*cpu));
        let own: Vec<u32> = on_node.take(threads).collect();
        Ok(Self {
            has_more: own.len() == threads && allowed.len() > threads,
            own: (own.len() == threads).then_some(own),
        })
    }
}

impl<L: PacketLink> Prepared for PathJob<L> {
    fn measured(&self, _job: &Job) -> [Option<Measured>; KINDS] {
        let mut kinds = [None; KINDS];
        kinds[0] = Some(Measured {
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
        if let Some(cpu) = self.cpus.as_ref().and_then(|cpus| cpus.get(index)) {
            let only: CpuList = [*cpu].into_iter().collect();
            pin::set_affinity(&only).map_err(|why| failure("placement", None, why.to_string()))?;
        }
        let wiring = self.threads.get(index).and_then(|one| {
            let mut one = one.lock().unwrap_or_else(PoisonError::into_inner);
            one.take()
        });
        let Some(wiring) = wiring else {
            return Err(failure(
                "plan",
                None,
                "the job has more workers than threads",
            ));
        };
        let run = PathCall { job: self, wiring };
        with_handler!(self.work.handler, call(run, worker))
    }

    fn outcome(&self, done: LoopOutcome, _: &[&WorkerLive]) -> Outcome {
        let clock_read_ns = *self
            .clock_read_ns
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Outcome::PacketPath(Box::new(PacketPathOutcome {
            workers: done,
            iterations: self.shared.iterations(),
            buffers_in_use: self.shared.in_use(),
            clock_read_ns,
            idle: self.idle,
        }))
    }

    fn warnings(&self) -> Vec<Warning> {
        Vec::new()
    }
}

/// A thread's part, before its handler is known.
struct PathCall<'a, L> {
    job: &'a PathJob<L>,
    wiring: ThreadWiring<L>,
}

fn call<W: MessageWork, L: PacketLink>(
    run: PathCall<'_, L>,
    worker: &mut WorkerContext<'_>,
) -> Result<LoopStop, Failure> {
    run.job.run::<W>(run.wiring, worker)
}
