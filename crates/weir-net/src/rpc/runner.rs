//! RPCs as a job of a run: this command calls every endpoint of a list, by one thread or several, or
//! has masters on servers do so.
//!
//! In: a job of the plan. Out: refusals before anything is touched; a job whose threads run the house's
//! loop over a transport; what came of it by master and endpoint. Not here: how calls travel (the
//! transports), masters on servers (`ordered`).

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use weir_run::{
    Amount, JobContext, KINDS, LoopStop, Measured, Prepared, PreparedJob, Runner, WorkerContext,
    WorkerLive, failure, measured,
};
use weir_schema::{
    CpuUse, EndpointError, ErrorCode, Failure, Job, LoopOutcome, Outcome, RpcEndpoint, RpcMaster,
    RpcOutcome, RpcWorkload, Span, Workload, expand_endpoints, shuffle_endpoints,
};
use weir_units::Nanos;

use super::call_list::CallList;
use super::calling::{Calling, calls_of};
use super::engine::EndSigns;
use super::measured_master::{MasterParts, error_code, requested};
use super::transport::{RpcCounters, RpcTransport};
use super::way::{TransportUser, Way};

/// Carries RPCs out.
#[derive(Clone, Copy, Debug, Default)]
pub struct RpcRunner;

impl Runner for RpcRunner {
    fn handles(&self, workload: &Workload) -> bool {
        matches!(workload, Workload::Rpc(_))
    }

    fn check(&self, context: &JobContext<'_>) -> Vec<Failure> {
        let Workload::Rpc(work) = &context.job.workload else {
            return Vec::new();
        };
        RpcJob::new(context.job, work).err().into_iter().collect()
    }

    fn prepare(&self, context: &JobContext<'_>) -> Result<PreparedJob, Failure> {
        let Workload::Rpc(work) = &context.job.workload else {
            return Err(failure("plan", None, "these are no RPCs"));
        };
        Ok(PreparedJob::Workers(Arc::new(RpcJob::new(context.job, work)?)))
    }
}

/// A job that is ready to run.
struct RpcJob {
    work: RpcWorkload,
    threads: u32,
    list: CallList,
    way: Way,
    /// Who this command is among the masters.
    own: RpcEndpoint,
    /// What the transports of its threads have counted.
    counters: Mutex<Vec<RpcCounters>>,
}

impl RpcJob {
    fn new(job: &Job, work: &RpcWorkload) -> Result<Self, Failure> {
        let way = Way::of(work)?;
        let mut entries = expand_endpoints(&work.endpoints, &[]).map_err(no_list)?;
        if work.shuffle {
            shuffle_endpoints(&mut entries, work.seed);
        }
        let highest = entries.iter().map(|one| one.rank).max();
        let Some(highest) = highest else {
            return Err(failure("plan", None, "there is no endpoint to call"));
        };
        Ok(Self {
            work: work.clone(),
            threads: job.clones.max(1),
            list: CallList::new(entries),
            way,
            own: RpcEndpoint {
                rank: highest.saturating_add(1),
                tag: 0,
            },
            counters: Mutex::default(),
        })
    }
}

/// A thread's calls over the transport that it gets.
struct ThreadCalls<'a, 'w, 'c> {
    calling: Calling<'a>,
    worker: &'w mut WorkerContext<'c>,
}

impl TransportUser for ThreadCalls<'_, '_, '_> {
    type Output = io::Result<(LoopStop, RpcCounters)>;

    fn with(self, transport: impl RpcTransport) -> Self::Output {
        self.calling.run(transport, self.worker)
    }
}

impl Prepared for RpcJob {
    fn measured(&self, job: &Job) -> [Option<Measured>; KINDS] {
        let measured = measured(job, false);
        let mut kinds = [None; KINDS];
        kinds[0] = Some(Measured {
            targets: u32::try_from(self.list.distinct.len()).unwrap_or(u32::MAX),
            ..measured
        });
        kinds
    }

    fn is_inline(&self) -> bool {
        false
    }

    fn amount(&self, clone: u32) -> Amount {
        Amount {
            bytes: None,
            operations: calls_of(&self.work, clone, self.threads),
        }
    }

    fn work(&self, worker: &mut WorkerContext<'_>) -> Result<LoopStop, Failure> {
        let thread = worker.clone;
        let live = worker.live;
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
        let slots = calling.slots();
        if slots == 0 || calls_of(&self.work, thread, self.threads) == Some(0) {
            worker.wait_for_release();
            return Ok(LoopStop::WorkDone);
        }
        let calls = ThreadCalls { calling, worker };
        let ended = self.way.connect(&self.work, slots, calls)?;
        let (stop, counted) = ended.map_err(broken)?;
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        counters.push(counted);
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
        let masters = vec![self.own_master(&done, lives)];
        Outcome::Rpc(Box::new(RpcOutcome {
            workers: done,
            masters,
        }))
    }
}

impl RpcJob {
    fn own_master(&self, done: &LoopOutcome, lives: &[&WorkerLive]) -> RpcMaster {
        let spans = done.workers.iter().filter_map(|worker| worker.span);
        let span = spans.reduce(Span::hull);
        let counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = MasterParts {
            endpoint: self.own,
            transport: self.way.name(),
            work: &self.work,
            list: &self.list,
            lives,
            duration_ns: span.map_or(Nanos::ZERO, Span::length),
            requested: requested(&self.work),
            counters: &counters,
        };
        let mut master = parts.master();
        master.span = span;
        let used = done.workers.iter().map(|worker| worker.cpu);
        master.cpu = used.fold(CpuUse::default(), added);
        master
    }
}

/// What two threads have used.
fn added(one: CpuUse, other: CpuUse) -> CpuUse {
    let both = |of: fn(&CpuUse) -> u64| of(&one) + of(&other);
    CpuUse {
        user_ns: Nanos(both(|cpu| cpu.user_ns.0)),
        system_ns: Nanos(both(|cpu| cpu.system_ns.0)),
        voluntary_switches: both(|cpu| cpu.voluntary_switches),
        involuntary_switches: both(|cpu| cpu.involuntary_switches),
        minor_faults: both(|cpu| cpu.minor_faults),
        major_faults: both(|cpu| cpu.major_faults),
        first_cpu: one.first_cpu.or(other.first_cpu),
        last_cpu: one.last_cpu.or(other.last_cpu),
        ..CpuUse::default()
    }
}

fn no_list(why: EndpointError) -> Failure {
    failure("plan", None, why.to_string())
}

fn broken(error: io::Error) -> Failure {
    failure("engine", error.raw_os_error(), error.to_string())
}
