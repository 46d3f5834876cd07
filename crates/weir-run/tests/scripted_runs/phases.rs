//! Series of phases on ranks that are threads: what each phase counts, and what ends all ranks.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, outside of test functions"
)]

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use weir_run::execute::{LiveView, RankHost, RunControl, Signals, check, execute};
use weir_run::{
    Call, Caller, Calls, InlineWork, JobContext, LoopStop, Phase, Prepared, PreparedJob,
    RankControl, RankJob, RankOutcome, Runner, SeriesEnd, WorkerContext, failure,
};
use weir_schema::sample::{self, JobSample};
use weir_schema::{
    ClockFacts, Failure, HostFacts, Job, JobResult, Kind, Load, PhaseResult, Plan, Ranks,
    RunResult, Spawn, State, TargetsPerRank, Workload,
};
use weir_sys::clock::Clock;

/// Bytes of each operation.
const BLOCK: u32 = 4096;
/// Place of writes among the kinds of the workload.
const WRITE: usize = 1;

type Act = dyn Fn(&RankControl<'_>) -> RankOutcome + Send + Sync;

/// Has each rank do what the test says.
struct Acts(Arc<Act>);

impl RankJob for Acts {
    fn work(&self, control: &RankControl<'_>) -> RankOutcome {
        (self.0)(control)
    }
}

impl Runner for Acts {
    fn handles(&self, _: &Workload) -> bool {
        true
    }

    fn needs_world(&self) -> bool {
        true
    }

    fn allows_thread_ranks(&self) -> bool {
        true
    }

    fn has_phases(&self) -> bool {
        true
    }

    fn check(&self, _: &JobContext<'_>) -> Vec<Failure> {
        Vec::new()
    }

    fn prepare(&self, _: &JobContext<'_>) -> Result<PreparedJob, Failure> {
        Ok(PreparedJob::Ranks(Arc::new(Self(Arc::clone(&self.0)))))
    }
}

/// Calls of a kind up to the bound of the load; a function says what each does.
struct Steps<F> {
    kind: usize,
    step: F,
}

impl<F: Fn(u64) -> Result<u32, i32> + Send + Sync> Prepared for Steps<F> {
    fn is_inline(&self) -> bool {
        true
    }

    fn work(&self, worker: &mut WorkerContext<'_>) -> Result<LoopStop, Failure> {
        let most = worker.job.load().bounds.operations.unwrap_or(u64::MAX);
        let mut done = 0;
        let call = |_: &Call| {
            done += 1;
            (self.step)(done)
        };
        let one = Call {
            kind: self.kind,
            length: BLOCK,
        };
        let mut calls = Calls((0..most).map(|_| one));
        let plan = worker.loop_plan(1);
        Ok(worker.drive(&mut Caller(call), &mut calls, &plan))
    }
}

fn good(kind: usize) -> Arc<dyn Prepared> {
    Arc::new(Steps {
        kind,
        step: |_| Ok(BLOCK),
    })
}

fn load(operations: u64) -> Load {
    let mut load = job().load().clone();
    load.bounds.operations = Some(operations);
    load
}

fn job() -> Job {
    sample::block_job("series").over("scripted")
}

fn plan(ranks: u32) -> Plan {
    let mut plan = sample::plan(vec![vec![job()]]);
    plan.ranks = Some(Ranks {
        count: ranks,
        spawn: Spawn::Threads,
        targets: TargetsPerRank::Own,
    });
    plan
}

fn control<'a>(
    runners: &'a [&'a dyn Runner],
    ranks: u32,
    signals: &Arc<Signals>,
    observer: Option<&'a mut dyn FnMut(&LiveView<'_>)>,
) -> RunControl<'a> {
    RunControl {
        runners,
        ranks: RankHost::threads(ranks),
        clock: Clock::detect().0,
        clock_facts: ClockFacts::default(),
        host: HostFacts::default(),
        version: "test",
        directory: Path::new("/"),
        signals: Arc::clone(signals),
        grace: Duration::from_secs(20),
        announce: &|_| (),
        log_format: |_, _, _| (),
        observer,
        calibrate: false,
        other_ranks: None,
    }
}

fn play(
    ranks: u32,
    act: impl Fn(&RankControl<'_>) -> RankOutcome + Send + Sync + 'static,
) -> RunResult {
    let acts = Acts(Arc::new(act));
    execute(
        &plan(ranks),
        control(&[&acts], ranks, &Arc::default(), None),
    )
}

fn only(result: &RunResult) -> &JobResult {
    &result.groups[0].jobs[0]
}

fn measured(phase: &PhaseResult) -> &JobResult {
    phase.measured.as_deref().unwrap()
}

/// Operations and bytes of a kind in a phase, over all workers and ranks.
fn counts(phase: &PhaseResult, kind: Kind) -> (u64, u64) {
    let kinds = measured(phase)
        .workers()
        .iter()
        .filter_map(|w| w.kind(kind));
    kinds.fold((0, 0), |sum, k| (sum.0 + k.operations, sum.1 + k.bytes.0))
}

#[test]
fn phases_are_counted_apart_over_workers_and_ranks() {
    let result = play(3, |control| {
        let again = |repetition| Phase {
            repetition,
            workers: 2,
            ..Phase::new("write", load(10), good(WRITE))
        };
        control.series([again(0), Phase::new("read", load(5), good(0)), again(1)])
    });
    let job = only(&result);
    assert_eq!((job.state, &job.failure), (State::Done, &None));
    assert!(result.complete);
    let phases: Vec<String> = job.phases.iter().map(PhaseResult::title).collect();
    assert_eq!(phases, ["write", "read", "write #2"]);
    for (phase, kind, operations) in [
        (&job.phases[0], Kind::Write, 60),
        (&job.phases[1], Kind::Read, 15),
        (&job.phases[2], Kind::Write, 60),
    ] {
        let bytes = operations * u64::from(BLOCK);
        assert_eq!(counts(phase, kind), (operations, bytes));
        let ranks: Vec<u32> = phase.ranks.iter().map(|rank| rank.rank).collect();
        assert_eq!(ranks, [0, 1, 2]);
        let timed = measured(phase).workers()[0].kind(kind).unwrap();
        let latency = timed.stage(weir_schema::Stage::Lat).unwrap();
        assert_eq!(
            latency.count(),
            15.min(operations) * if operations == 60 { 2 } else { 1 }
        );
    }
    let names: Vec<&str> = job.metrics.iter().map(|m| m.name.as_str()).collect();
    assert!(
        names.contains(&"write rate") && names.contains(&"write #2 p99"),
        "{names:?}"
    );
    // A phase begins nowhere before the last one has ended everywhere.
    let times = |phase: &PhaseResult| {
        let spans = || phase.ranks.iter().map(|rank| rank.span);
        let first = spans().map(|span| span.start_ns).min();
        (
            first.unwrap(),
            spans().map(|span| span.end_ns).max().unwrap(),
        )
    };
    assert!(times(&job.phases[0]).1 <= times(&job.phases[1]).0);
    assert!(times(&job.phases[1]).1 <= times(&job.phases[2]).0);
}

#[test]
fn parts_of_a_phase_are_those_of_all_workers_of_a_rank() {
    let result = play(2, |control| {
        let meets = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&meets);
        let work = InlineWork(move |worker: &mut WorkerContext<'_>| {
            worker.part("open", |_| seen.fetch_add(1, Ordering::SeqCst));
            worker.meet()?;
            // Everybody here has opened before anybody goes on.
            assert_eq!(seen.load(Ordering::SeqCst), 2);
            worker.part("transfer", |worker| worker.walk(WRITE, || Ok((7, 700))))
        });
        control.series([Phase {
            workers: 2,
            ..Phase::new("walk", load(1), Arc::new(work))
        }])
    });
    let job = only(&result);
    assert_eq!((job.state, &job.failure), (State::Done, &None));
    let phase = &job.phases[0];
    assert_eq!(counts(phase, Kind::Write), (28, 2800));
    for rank in &phase.ranks {
        let names: Vec<&str> = rank.parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["open", "transfer"]);
        assert!(rank.parts[0].span.end_ns <= rank.parts[1].span.end_ns);
        assert!(rank.span.start_ns <= rank.parts[0].span.start_ns);
    }
    let parts: Vec<String> = phase.parts().into_iter().map(|part| part.name).collect();
    assert_eq!(parts, ["open", "transfer"]);
}

#[test]
fn a_rank_that_cannot_prepare_ends_all_with_its_word() {
    let (says, heard) = mpsc::channel();
    let result = play(3, move |control| {
        let rank = control.world.rank();
        let mine = if rank == 1 {
            Err(failure("open", None, "no such pool"))
        } else {
            Ok(())
        };
        let end = control.all_have(mine).unwrap_err();
        if let SeriesEnd::Failed(failure) = &end {
            says.send((rank, failure.message.clone())).unwrap();
        }
        end.into()
    });
    // The run ends with rank 0; the others may be on their way.
    let mut heard: Vec<_> = heard.iter().take(3).collect();
    heard.sort();
    let said = "rank 1: no such pool".to_owned();
    assert_eq!(
        heard,
        [
            (0, said.clone()),
            (1, "no such pool".to_owned()),
            (2, said.clone())
        ]
    );
    let job = only(&result);
    assert_eq!(job.state, State::Failed);
    assert_eq!(job.failure.as_ref().unwrap().message, said);
}

#[test]
fn a_failure_within_a_phase_ends_the_series_on_every_rank() {
    let began = Arc::new(AtomicU32::new(0));
    let later = Arc::clone(&began);
    let result = play(2, move |control| {
        let rank = control.world.rank();
        let fails = Steps {
            kind: WRITE,
            step: move |done| match (rank, done) {
                (1, 3) => Err(libc::ENOSPC),
                _ => Ok(BLOCK),
            },
        };
        let later = Arc::clone(&later);
        let never = InlineWork(move |worker: &mut WorkerContext<'_>| {
            later.fetch_add(1, Ordering::SeqCst);
            worker.walk(0, || Ok((1, 1)))
        });
        control.series([
            Phase::new("write", load(10), Arc::new(fails)),
            Phase::new("read", load(1), Arc::new(never)),
        ])
    });
    let job = only(&result);
    assert_eq!(job.state, State::Failed);
    let why = &job.failure.as_ref().unwrap().message;
    assert!(
        why.starts_with("rank 1: write") && why.contains("No space left"),
        "{why}"
    );
    // What was done until then is told, and nothing else was begun.
    assert_eq!(job.phases.len(), 1);
    assert_eq!(counts(&job.phases[0], Kind::Write).0, 12);
    assert_eq!(measured(&job.phases[0]).state, State::Failed);
    assert_eq!(began.load(Ordering::SeqCst), 0);
    assert!(!result.complete);
}

#[test]
fn a_worker_that_waits_for_other_ranks_hears_that_one_has_failed() {
    let result = play(2, |control| {
        let rank = control.world.rank();
        let work = InlineWork(move |worker: &mut WorkerContext<'_>| {
            if rank == 1 {
                return Err(failure("io", None, "torn"));
            }
            worker.meet()?;
            Ok(LoopStop::WorkDone)
        });
        control.series([Phase::new("write", load(1), Arc::new(work))])
    });
    let failure = only(&result).failure.as_ref().unwrap();
    assert_eq!(failure.message, "rank 1: torn");
}

#[test]
fn a_signal_ends_the_present_phase_and_keeps_what_was_done() {
    let signals = Arc::new(Signals::default());
    let acts = Acts(Arc::new(|control: &RankControl<'_>| {
        control.series([
            Phase::new("write", load(u64::MAX), good(WRITE)),
            Phase::new("read", load(1), good(0)),
        ])
    }));
    let seen = Mutex::new(0);
    let mut observer = |view: &LiveView<'_>| {
        let live = view.jobs().first().map_or(0, |job| job.operations);
        if live > 0 {
            *seen.lock().unwrap() = live;
            signals.number.store(libc::SIGINT, Ordering::Relaxed);
            signals.interruptions.fetch_max(1, Ordering::Relaxed);
        }
    };
    let result = execute(
        &plan(2),
        control(&[&acts], 2, &signals, Some(&mut observer)),
    );
    let job = only(&result);
    assert_eq!((job.state, &job.failure), (State::Stopped, &None));
    assert_eq!(result.ended_by.map(|end| end.signal), Some(libc::SIGINT));
    assert_eq!(job.phases.len(), 1);
    assert!(counts(&job.phases[0], Kind::Write).0 >= *seen.lock().unwrap());
}

#[test]
fn a_setting_that_phases_have_no_use_for_is_refused() {
    let acts = Acts(Arc::new(|_: &RankControl<'_>| RankOutcome::default()));
    let refused = |change: fn(&mut Job)| {
        let mut plan = plan(1);
        change(&mut plan.groups[0].jobs[0]);
        let found = check(&plan, &control(&[&acts], 1, &Arc::default(), None));
        let messages = found.into_iter().map(|(_, failure)| failure.message);
        messages.collect::<Vec<_>>()
    };
    assert_eq!(refused(|_| ()), Vec::<String>::new());
    assert_eq!(
        refused(|job| job.clones = 2),
        ["`clones` has no meaning for a series of phases"]
    );
    assert_eq!(
        refused(|job| job.report.merge = true),
        ["`report.merge` has no meaning for a series of phases"]
    );
}
