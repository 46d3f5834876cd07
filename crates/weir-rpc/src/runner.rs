//! RPCs as a job of a run: this command calls every endpoint of a list, by one thread or several, or
//! has masters on servers do so.
//!
//! In: a job of the plan. Out: refusals before anything is touched; a job whose threads run the house's
//! loop over a transport; what came of it by master and endpoint. Not here: transports and targets (`master::route`),
//! masters on servers (`ordered`).

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_run::{
    Amount, JobContext, KINDS, LoopStop, Measured, Prepared, PreparedJob, Runner, WorkerContext,
    WorkerLive, failure, measured,
};
use weir_schema::{
    CpuUse, EndpointError, ErrorCode, Failure, Job, LoopOutcome, Outcome, RpcEndpoint, RpcMaster,
    RpcOutcome, RpcWorkload, Span, Warning, Workload, expand_endpoints, expand_masters,
    shuffle_endpoints,
};
use weir_sys::clock::Tick;
use weir_sys::limits::raise_open_files;
use weir_units::Nanos;

use crate::error::refused;
use crate::group::{RpcGroup, known_groups::KnownGroups};
use crate::master::call_list::CallList;
use crate::master::calling::{Calling, CallsMade, calls_of, check_slots, part};
use crate::master::engine::EndSigns;
use crate::master::host::monotonic_ns;
use crate::master::measured::{MasterParts, added, error_code, requested};
use crate::master::ordered::OrderedMasters;
use crate::master::route::{CallRoute, TransportUser};
use crate::server::{hosting::Host, own_server};
use crate::transport::RpcTransport;

/// Carries RPCs out.
#[derive(Clone, Debug, Default)]
pub struct RpcRunner {
    /// Who was in a group when the run began.
    known: KnownGroups,
}

impl Runner for RpcRunner {
    fn handles(&self, workload: &Workload) -> bool {
        matches!(workload, Workload::Rpc(_))
    }

    fn check(&self, context: &JobContext<'_>) -> Vec<Failure> {
        let Workload::Rpc(work) = &context.job.workload else {
            return Vec::new();
        };
        let found = match work.loopback {
            // There is no server yet.
            Some(tags) => {
                own_server::nobody(work, tags).and_then(|group| RpcJob::new(context, work, group))
            }
            None => group(work, || RpcGroup::of(work, context.directory))
                .inspect(|group| self.known.learn(group))
                .and_then(|group| RpcJob::new(context, work, group)),
        };
        found.err().into_iter().collect()
    }

    fn prepare(&self, context: &JobContext<'_>) -> Result<PreparedJob, Failure> {
        let Workload::Rpc(work) = &context.job.workload else {
            return Err(failure("plan", None, "these are no RPCs"));
        };
        if work.connections.is_some() {
            raise_open_files();
        }
        let Some(tags) = work.loopback else {
            let group = group(work, || self.known.with_left(work, context.directory))?;
            let job = RpcJob::new(context, work, group)?;
            if work.ping {
                job.route.ping_ranks(&|| context.signals.interrupted())?;
            }
            return Ok(PreparedJob::Workers(Arc::new(job)));
        };
        let (host, group) = own_server::start(work, tags)?;
        let mut job = RpcJob::new(context, work, group)?;
        job.host = Mutex::new(Some(host));
        Ok(PreparedJob::Workers(Arc::new(job)))
    }
}

fn group(
    work: &RpcWorkload,
    found: impl FnOnce() -> Result<RpcGroup, Failure>,
) -> Result<RpcGroup, Failure> {
    match work.transport.as_deref() {
        Some("null") => Ok(RpcGroup::default()),
        _ => found(),
    }
}

/// A job that is ready to run.
struct RpcJob {
    work: RpcWorkload,
    threads: u32,
    list: CallList,
    route: CallRoute,
    /// Who this command is among the masters.
    own: RpcEndpoint,
    /// Who else is master, instead of this command.
    masters: Vec<RpcEndpoint>,
    host: Mutex<Option<Host>>,
    /// Results of its threads, beside the recorders of the loop.
    made: Mutex<Vec<CallsMade>>,
    /// Figures of masters on servers, each with the thread that had ordered it; when they worked is
    /// since that thread's first call.
    ordered: Mutex<Vec<(u32, RpcMaster)>>,
}

impl RpcJob {
    fn new(context: &JobContext<'_>, work: &RpcWorkload, group: RpcGroup) -> Result<Self, Failure> {
        let ranks = group.ranks();
        let mut entries = expand_endpoints(&work.endpoints, &ranks).map_err(no_list)?;
        if work.shuffle {
            shuffle_endpoints(&mut entries, work.seed);
        }
        if let Some(count) = work.connections {
            let all = entries.iter().cycle().take(count as usize);
            entries = all.copied().collect();
        }
        let masters = expand_masters(&work.masters, &ranks).map_err(no_list)?;
        let highest = group.members.keys().copied();
        let highest = highest.chain(entries.iter().map(|one| one.rank)).max();
        let threads = context.job.clones.max(1);
        let directory = context.directory;
        let job = Self {
            route: CallRoute::of(work, group, threads, directory)?,
            list: CallList::new(entries),
            own: RpcEndpoint {
                rank: highest.unwrap_or(0).saturating_add(1),
                tag: 0,
            },
            work: bounded(work, directory),
            threads,
            masters,
            host: Mutex::default(),
            made: Mutex::default(),
            ordered: Mutex::default(),
        };
        job.check()?;
        Ok(job)
    }

    fn check(&self) -> Result<(), Failure> {
        if self.list.is_empty() {
            return Err(failure("plan", None, "there is no endpoint to call"));
        }
        if self.route.is_null() && !self.masters.is_empty() {
            let why = "without a network there is no other master than this command";
            return Err(failure("plan", None, why));
        }
        if let Some(why) = self.contradiction() {
            return Err(failure("plan", None, why));
        }
        check_slots(&self.work).map_err(|why| refused(&why))?;
        self.route.endpoints(&self.list.distinct)?;
        self.route.endpoints(&self.masters)?;
        Ok(())
    }

    /// Two parts of the work that cannot be had together.
    fn contradiction(&self) -> Option<&'static str> {
        let (work, bounds) = (&self.work, &self.work.load.bounds);
        let is_paced = work.load.pacing.schedule.is_some();
        let has_masters = !self.masters.is_empty();
        [
            (
                work.matrix && (self.threads > 1 || work.in_flight_per_endpoint.is_some()),
                "`matrix`: a pair has all RPCs in flight, and they are of one thread",
            ),
            (
                work.matrix && (is_paced || bounds.runtime_ns.is_some()),
                "`matrix`: a pair has a number of RPCs, without a rate or a time",
            ),
            (
                work.matrix && bounds.operations.is_none(),
                "`matrix`: how many RPCs a pair has is not said",
            ),
            (
                work.connections.is_some() && (has_masters || work.matrix),
                "`connections`: they are of this command, and all at work at the same time",
            ),
            (
                work.samples && is_paced,
                "`samples`: their latencies are from when RPCs were sent, not from when they were due",
            ),
        ]
        .into_iter()
        .find_map(|(is_wrong, why)| is_wrong.then_some(why))
    }

    /// Has the masters of a thread carry the test out.
    fn order(&self, worker: &mut WorkerContext<'_>) -> Result<LoopStop, Failure> {
        let mine = self.masters.iter().skip(worker.clone as usize);
        let mine: Vec<_> = mine.step_by(self.threads as usize).copied().collect();
        if mine.is_empty() {
            worker.wait_for_release();
            return Ok(LoopStop::WorkDone);
        }
        // In a matrix one master after another, each with one endpoint after another.
        let at_once = if self.work.matrix { 1 } else { mine.len() };
        let mut began = None;
        let mut results: Vec<RpcMaster> = Vec::new();
        for masters in mine.chunks(at_once) {
            let endpoints = self.route.endpoints(masters)?;
            let stop = worker.stop;
            let is_over = || stop.load(Ordering::Relaxed) != 0;
            let mut masters =
                OrderedMasters::connect(&endpoints, self.route.dial(), self.route.name(), &is_over);
            masters.prepare(&self.task(), &is_over);
            if is_over() {
                return Ok(LoopStop::Asked);
            }
            if began.is_none() && !worker.wait_for_release() {
                return Ok(LoopStop::Asked);
            }
            let more = self.order_some(masters, worker, &mut began, &results);
            results.extend(more);
            if worker.stop.load(Ordering::Relaxed) != 0 {
                break;
            }
        }
        self.count(worker.live, &results);
        let by_thread = results.into_iter().map(|master| (worker.clone, master));
        lock(&self.ordered).extend(by_thread);
        let asked = worker.stop.load(Ordering::Relaxed) != 0;
        Ok(if asked {
            LoopStop::Asked
        } else {
            LoopStop::WorkDone
        })
    }

    /// Has some masters that are ready carry the test out at the same time, after others that did so.
    fn order_some(
        &self,
        masters: OrderedMasters,
        worker: &mut WorkerContext<'_>,
        began: &mut Option<Tick>,
        before: &[RpcMaster],
    ) -> Vec<RpcMaster> {
        let lead = Nanos(u64::try_from(masters.lead().as_nanos()).unwrap_or(0));
        let begin_ns = monotonic_ns() + lead.0;
        let start = worker.clock.now().after(worker.scale.load().to_ticks(lead));
        if began.is_none() {
            worker.begin_elsewhere(start);
            *began = Some(start);
        }
        let done = |master: &RpcMaster| master.succeeded + master.failed;
        let before: u64 = before.iter().map(done).sum();
        let bytes = self.work.bytes().0;
        let rpcs = &worker.live.kinds[0];
        let signs = EndSigns {
            stop: worker.stop,
            findings: Some(&worker.live.findings),
        };
        let look = |done: u64| {
            let done = before + done;
            rpcs.completed.set(done);
            rpcs.issued.set(done);
            rpcs.bytes.set(done.saturating_mul(bytes));
        };
        let mut results = masters.run(begin_ns, signs, look);
        let after = began.map_or(0, |first| worker.scale.load().to_nanos(start.since(first)));
        for span in results.iter_mut().filter_map(|master| master.span.as_mut()) {
            *span = later(*span, Nanos(after));
        }
        let longest = results.iter().map(|master| master.duration_ns).max();
        let end = start.after(worker.scale.load().to_ticks(longest.unwrap_or_default()));
        worker.end_elsewhere(end, CpuUse::default());
        results
    }

    /// Order for masters: endpoints in their order, and nothing of where this command finds them. They
    /// know of each other: threads on one machine share its CPUs.
    fn task(&self) -> RpcWorkload {
        RpcWorkload {
            endpoints: self.list.sets(),
            shuffle: false,
            transport: Some(self.route.name().to_owned()),
            ..self.work.clone()
        }
    }

    /// Puts what masters have measured into the recorders of a worker.
    fn count(&self, live: &WorkerLive, results: &[RpcMaster]) {
        let rpcs = &live.kinds[0];
        let sum = |of: fn(&RpcMaster) -> u64| results.iter().map(of).sum::<u64>();
        let (succeeded, failed) = (sum(|one| one.succeeded), sum(|one| one.failed));
        rpcs.completed.set(succeeded);
        rpcs.issued.set(succeeded + failed);
        rpcs.bytes
            .set(succeeded.saturating_mul(self.work.bytes().0));
        for endpoint in results.iter().flat_map(|master| &master.endpoints) {
            for (code, count) in &endpoint.failed {
                let number = weir_schema::rpc_error_code(&code.to_string()).map_or(0, |n| -n);
                rpcs.add_failed(number, *count);
            }
        }
        for master in results {
            rpcs.lat
                .add(master.service.as_ref().unwrap_or(&master.latency));
            if master.service.is_some() {
                rpcs.rlat.add(&master.latency);
            }
        }
    }

    fn own_master(&self, done: &LoopOutcome, lives: &[&WorkerLive]) -> RpcMaster {
        let spans = done.workers.iter().filter_map(|worker| worker.span);
        let span = spans.reduce(Span::hull);
        let parts = MasterParts {
            endpoint: self.own,
            route: &self.route,
            span,
            work: &self.work,
            list: &self.list,
            lives,
            duration_ns: span.map_or(Nanos::ZERO, Span::length),
            requested: requested(&self.work),
            made: &lock(&self.made),
            cpu: done
                .workers
                .iter()
                .fold(CpuUse::default(), |sum, worker| added(sum, worker.cpu)),
        };
        parts.master()
    }
}

/// A thread's calls over the transport that it gets.
struct ThreadCalls<'a, 'w, 'c> {
    calling: Calling<'a>,
    worker: &'w mut WorkerContext<'c>,
}

impl TransportUser for ThreadCalls<'_, '_, '_> {
    type Output = io::Result<CallsMade>;

    fn with(self, transport: impl RpcTransport) -> Self::Output {
        self.calling.run(transport, self.worker)
    }
}

impl Prepared for RpcJob {
    fn measured(&self, job: &Job) -> [Option<Measured>; KINDS] {
        let own = self.masters.is_empty();
        let targets = if own { self.list.distinct.len() } else { 0 };
        let mut kinds = [None; KINDS];
        kinds[0] = Some(Measured {
            targets: u32::try_from(targets).unwrap_or(u32::MAX),
            ..measured(job, !own)
        });
        kinds
    }

    fn is_inline(&self) -> bool {
        false
    }

    fn amount(&self, clone: u32) -> Amount {
        let masters = part(self.masters.len() as u64, clone, self.threads);
        let each = self.work.load.bounds.operations;
        Amount {
            bytes: None,
            operations: match self.masters.as_slice() {
                [] => calls_of(&self.work, clone, self.threads),
                _ => each.map(|calls| calls * masters),
            },
        }
    }

    fn work(&self, worker: &mut WorkerContext<'_>) -> Result<LoopStop, Failure> {
        if !self.masters.is_empty() {
            return self.order(worker);
        }
        let (thread, live) = (worker.clone, worker.live);
        let calling = Calling {
            work: &self.work,
            list: &self.list,
            thread,
            threads: self.threads,
            seed: worker.seed ^ u64::from(worker.number),
            signs: EndSigns {
                stop: worker.stop,
                findings: Some(&live.findings),
            },
        };
        if calling.slots() == 0 || calls_of(&self.work, thread, self.threads) == Some(0) {
            worker.wait_for_release();
            return Ok(LoopStop::WorkDone);
        }
        let (stop, parts) = (worker.stop, (thread, self.threads));
        let calls = ThreadCalls { calling, worker };
        let route = &self.route;
        let ended = match route.connect(&self.work, &self.list, parts, stop, calls) {
            // What is given up has not failed.
            Err(_) if stop.load(Ordering::Relaxed) != 0 => return Ok(LoopStop::Asked),
            ended => ended?,
        };
        let made = ended.map_err(|error| broken(&error))?;
        let stop = made.stop.clone();
        lock(&self.made).push(made);
        Ok(stop)
    }

    fn target_name(&self, _clone: u32, target: u32) -> Option<String> {
        let endpoint = self.list.distinct.get(target as usize)?;
        Some(format!("endpoint {endpoint}"))
    }

    fn error_code(&self, number: i32) -> ErrorCode {
        error_code(number)
    }

    fn outcome(&self, done: LoopOutcome, lives: &[&WorkerLive]) -> Outcome {
        let masters = if self.masters.is_empty() {
            vec![self.own_master(&done, lives)]
        } else {
            let began = |thread: u32| {
                let its = done.workers.iter().find(|worker| worker.clone == thread);
                its.and_then(|worker| worker.span).map(|span| span.start_ns)
            };
            let ordered = lock(&self.ordered).clone().into_iter();
            let placed = ordered.map(|(thread, master)| {
                let span = master.span.zip(began(thread));
                let span = span.map(|(span, by)| later(span, by));
                RpcMaster { span, ..master }
            });
            let mut masters: Vec<RpcMaster> = placed.collect();
            masters.sort_by_key(|master| master.endpoint);
            masters
        };
        Outcome::Rpc(Box::new(RpcOutcome {
            workers: done,
            masters,
        }))
    }

    fn warnings(&self) -> Vec<Warning> {
        self.route.warnings()
    }

    fn never_sleeps(&self) -> bool {
        self.masters.is_empty() && self.route.never_sleeps()
    }

    fn finish(&self) -> Result<(), Failure> {
        let host = lock(&self.host).take();
        host.map_or(Ok(()), |host| host.stop().map_err(|why| refused(&why)))
    }
}

/// A poisoned lock still holds whole values.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The work, with its files found from anywhere.
fn bounded(work: &RpcWorkload, directory: &Path) -> RpcWorkload {
    let found = |file: &String| directory.join(file).display().to_string();
    RpcWorkload {
        token_file: work.token_file.as_ref().map(found),
        ..work.clone()
    }
}

/// The same by a clock that showed so much when the other began.
fn later(span: Span, by: Nanos) -> Span {
    Span {
        start_ns: Nanos(span.start_ns.0.saturating_add(by.0)),
        end_ns: Nanos(span.end_ns.0.saturating_add(by.0)),
    }
}

fn no_list(why: EndpointError) -> Failure {
    failure("plan", None, why.to_string())
}

fn broken(error: &io::Error) -> Failure {
    failure("engine", error.raw_os_error(), error.to_string())
}
