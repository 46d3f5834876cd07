//! Tests on an object store as a workload of the house: a series of phases on each rank, each an iteration of a
//! test on the rank's own pool.
//!
//! In: an [`ObjectWorkload`]. Out: phases with latencies, and an [`ObjectOutcome`] with what each test did.

/// Texts of what is so.
macro_rules! reasons {
    ($($is:expr => $why:expr;)*) => {
        [$($is.then(|| String::from($why))),*].into_iter().flatten().collect::<Vec<_>>()
    };
}

mod check;
mod key_draws;
mod keys;
mod load;
mod mix;
mod session;
mod walk;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use weir_run::generate::Streams;
use weir_run::{
    JobContext, LoopStop, Phase, Prepared, PreparedJob, RankControl, RankJob, RankOutcome, Runner,
    SeriesEnd, WorkerContext, failure,
};
use weir_schema::{
    ErrorCode, Failure, JobResult, Load, OBJECT_KINDS, ObjectAction, ObjectEngine, ObjectOutcome,
    ObjectRank, ObjectRun, ObjectTest, ObjectWorkload, Outcome, Pacing, Stage, Warning, Workload,
};
use weir_units::Nanos;
use weir_world::Collectives as _;

use crate::daos::{self, DaosPool, DaosStore};
use crate::disk::DiskStore;
use crate::mem::MemStore;
use crate::prelude::*;
use crate::remote::{Dial, RemoteSetup, RemoteStore};
use check::{no_directory, waits, wrong};
use load::{Calls, Places, StoreWork, Walk};
use mix::{Mixer, keys_before, starts};
use session::{OpenStore, Session, code_of, library_of, random_uuid};
pub use session::{uuid_of, uuid_text};

/// Longest time in which the first rank gets what the others did.
const GATHERING: Duration = Duration::from_secs(30);

/// Longest time after which a question sees that the run is to end.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Carries tests on object stores out, those on servers over the channels that `dial` makes.
#[derive(Clone, Copy, Debug, Default)]
pub struct ObjectRunner<D> {
    dial: D,
}

impl<D: Dial> Runner for ObjectRunner<D> {
    fn handles(&self, workload: &Workload) -> bool {
        matches!(workload, Workload::ObjectStore(_))
    }

    fn needs_world(&self) -> bool {
        true
    }

    fn has_phases(&self) -> bool {
        true
    }

    fn check(&self, context: &JobContext<'_>) -> Vec<Failure> {
        let Workload::ObjectStore(work) = &context.job.workload else {
            return Vec::new();
        };
        let wrong = wrong(work).into_iter();
        let mut wrong: Vec<Failure> = wrong.map(|why| Failure::new("plan", why)).collect();
        wrong.extend(no_directory(work, context.directory));
        if wrong.is_empty() {
            let lacks = match library_of(work.engine) {
                Some(library) => library.lacks().map(str::to_owned),
                None if work.engine == ObjectEngine::Daos => daos::lacks(),
                None => None,
            };
            wrong.extend(lacks.map(|why| Failure::new("missing", why)));
        }
        wrong
    }

    fn prepare(&self, context: &JobContext<'_>) -> Result<PreparedJob, Failure> {
        let Workload::ObjectStore(work) = &context.job.workload else {
            let why = "this workload is none of an object store";
            return Err(Failure::new("plan", why));
        };
        Ok(PreparedJob::Ranks(Arc::new(StoreJob {
            work: work.as_ref().clone(),
            directory: context.directory.to_owned(),
            seed: context.seed,
            dial: self.dial.knowing(work.token_file.as_deref()),
        })))
    }
}

/// Tests on one rank's pool, or on that of servers.
struct StoreJob<D> {
    work: ObjectWorkload,
    directory: PathBuf,
    seed: u64,
    dial: D,
}

impl<D: Dial> RankJob for StoreJob<D> {
    fn work(&self, control: &RankControl<'_>) -> RankOutcome {
        match self.work.engine {
            ObjectEngine::Mem => self.on(control, None, &mut |spec| boxed(MemStore::open(spec))),
            ObjectEngine::Disk | ObjectEngine::Redb | ObjectEngine::Fjall | ObjectEngine::Lmdb => {
                self.on(control, None, &mut |spec| boxed(DiskStore::open(spec)))
            }
            ObjectEngine::Remote | ObjectEngine::Echo => self.on_servers(control),
            ObjectEngine::Daos => self.on(control, None, &mut |_| {
                boxed(DaosStore::open(&DaosPool::of(&self.work)))
            }),
        }
    }
}

impl<D: Dial> StoreJob<D> {
    /// The whole job on the targets of servers, in one container of all ranks.
    fn on_servers(&self, control: &RankControl<'_>) -> RankOutcome {
        let uuid = random_uuid().map(|uuid| uuid.to_vec()).unwrap_or_default();
        let shared = control.world.broadcast(0, uuid, GATHERING);
        let shared = shared.ok().and_then(|uuid| StoreUuid::try_from(uuid).ok());
        let setup = RemoteSetup {
            in_flight: self.work.in_flight.max(1),
            is_echo: self.work.engine == ObjectEngine::Echo,
            usual: self.work.layout.stride_bytes.0,
        };
        self.on(control, shared.or(Some([0; 16])), &mut |spec| {
            let store = RemoteStore::open(&self.dial, &self.work.servers, setup)?;
            let about = store.about();
            refuse!(self.work.pool.is_some() && spec.uuid != Some(about.pool) => Mismatch,
                "the server has another pool");
            spec.uuid = Some(about.pool);
            spec.durability = about.durability;
            spec.path = None;
            boxed(Ok(store))
        })
    }

    /// The whole job on stores of one engine.
    fn on(
        &self,
        control: &RankControl<'_>,
        shared: Option<StoreUuid>,
        open: OpenStore<'_>,
    ) -> RankOutcome {
        let rank = control.world.rank();
        // A store that is open is closed below, whoever failed.
        let mut targets = Vec::new();
        let opened: Result<Vec<ObjectRank>, Failure> = (0..self.work.targets())
            .map(|target| {
                let place = (&*self.directory, self.seed);
                let number = (rank, target, shared);
                let (session, described) = Session::open(&self.work, place, number, open)?;
                targets.push(Target {
                    session: Mutex::new(Some(session)),
                    done: Mutex::new(None),
                });
                Ok(described)
            })
            .collect();
        let (mut described, mut ended) = match control.all_have(opened) {
            Ok(described) => (described, None),
            Err(end) => (Vec::new(), Some(end)),
        };
        let is_open = ended.is_none();
        let sessions = targets.iter().map(|target| lock(&target.session));
        let mut nodes = sessions.filter_map(|session| session.as_ref()?.store.nodes());
        let far = far(nodes.find(|(memory, cpu)| memory != cpu));
        let targets = Arc::new(targets);
        if is_open {
            ended = self.tests(control, &targets, &mut described).err();
        }
        let targets = targets.iter();
        let sessions = targets.filter_map(|target| lock(&target.session).take());
        let closed = sessions.map(Session::close).fold(Ok(()), Result::and);
        let mut outcome = RankOutcome {
            is_whole: ended.is_none(),
            ..ended.map(RankOutcome::from).unwrap_or_default()
        };
        outcome.failure = outcome.failure.or(closed.err());
        outcome.is_whole &= outcome.failure.is_none();
        outcome.warnings.extend(far);
        if !is_open {
            return outcome;
        }
        let (ranks, missing) = gathered(control, described);
        outcome.is_whole &= missing.is_none();
        outcome.failure = outcome.failure.or(missing);
        outcome.outcome = Outcome::ObjectStore(Box::new(ObjectOutcome { ranks }));
        outcome
    }
}

fn boxed(opened: crate::Result<impl ObjectStore + 'static>) -> crate::Result<Box<dyn ObjectStore>> {
    opened.map(|store| Box::new(store) as Box<dyn ObjectStore>)
}

/// The warning about memory that is on another node (the first) than the CPU (the second).
fn far(nodes: Option<(u32, u32)>) -> Option<Warning> {
    let (memory, cpu) = nodes.filter(|(memory, cpu)| memory != cpu)?;
    let cause =
        format!("The pool is on memory node {memory}, the CPU that works on it on node {cpu}.");
    Some(Warning::new("pool-far", None, cause))
}

fn gone() -> Failure {
    Failure::new("object", "no store")
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Outcomes of the targets of all ranks, at the first one; why some are missing.
fn gathered(control: &RankControl<'_>, own: Vec<ObjectRank>) -> (Vec<ObjectRank>, Option<Failure>) {
    if control.world.size() == 1 {
        return (own, None);
    }
    let text = serde_json::to_vec(&own).unwrap_or_default();
    let why = match control.world.gather(&text, GATHERING) {
        Ok(Some(texts)) => {
            let ranks = texts.iter().map(|text| serde_json::from_slice(text));
            match ranks.collect::<Result<Vec<Vec<ObjectRank>>, _>>() {
                Ok(ranks) => return (ranks.into_iter().flatten().collect(), None),
                Err(why) => why.to_string(),
            }
        }
        Ok(None) => return (Vec::new(), None),
        Err(why) => why.to_string(),
    };
    let why = format!("what other ranks measured did not arrive: {why}");
    let first = own.into_iter().filter(|own| own.rank == 0);
    (first.collect(), Some(Failure::new("rank", why)))
}

impl<D: Dial> StoreJob<D> {
    /// All tests, until one fails.
    fn tests(
        &self,
        control: &RankControl<'_>,
        targets: &Targets,
        described: &mut [ObjectRank],
    ) -> Result<(), SeriesEnd> {
        let mut repetitions: BTreeMap<&str, u32> = BTreeMap::new();
        for (number, (place, test)) in (0..).zip(self.work.tests.iter().enumerate()) {
            if let Some(prompt) = &test.prompt {
                let is_first = control.world.rank() == 0;
                let answered = if is_first {
                    asked(control, prompt)
                } else {
                    Ok(())
                };
                control.all_have(answered)?;
            }
            for iteration in 0..test.iterations.max(1) {
                let repetition = repetitions.entry(test.action.name()).or_default();
                let phase = Phase {
                    repetition: *repetition,
                    workers: self.work.targets(),
                    ..Phase::new(
                        test.action.name(),
                        load_of(&self.work, test),
                        Arc::new(TestWork {
                            targets: Arc::clone(targets),
                            place,
                            iteration,
                            waits: waits(&self.work),
                        }),
                    )
                };
                *repetition += 1;
                let (measured, end) = control.phase(&phase);
                let iteration = u32::try_from(iteration).unwrap_or(u32::MAX);
                for (place, (target, rank)) in targets.iter().zip(&mut *described).enumerate() {
                    let Some(mut run) = lock(&target.done).take() else {
                        continue;
                    };
                    (run.test, run.iteration) = (number, iteration);
                    test.action.name().clone_into(&mut run.name);
                    if test.action.moves_values() {
                        run.operations = run.hits + run.misses;
                    }
                    let failed = run.failure.iter().map(|why| (why.code.clone(), 1));
                    run.errors = failed.collect();
                    if let Some(measured) = &measured {
                        // Operations that wait for their turn say nothing about the rate.
                        let is_waited =
                            self.work.in_flight <= 1 && phase.load.pacing.schedule.is_none();
                        time(&mut run, (measured, place), (test.action, is_waited));
                    }
                    rank.runs.push(run);
                }
                end?;
            }
        }
        Ok(())
    }
}

/// Asks until the answer is a yes, or the run is to end.
fn asked(control: &RankControl<'_>, prompt: &str) -> Result<(), Failure> {
    let failed = |why: std::io::Error| failure("object", why.raw_os_error(), why.to_string());
    let (mut out, answers) = (std::io::stdout(), std::io::stdin());
    let mut answer = [b'?'];
    while !answer.eq_ignore_ascii_case(b"y") {
        // The end of the line of the last answer is none.
        if answer != *b"\n" {
            out.write_all(prompt.as_bytes()).map_err(failed)?;
            out.flush().map_err(failed)?;
        }
        // A read alone would go on after a signal.
        let mut input = [PollFd::new(&answers, PollFlags::IN)];
        while matches!(poll(&mut input, Some(&LOOK)), Ok(0) | Err(Errno::INTR)) {
            if control.signals.interrupted() {
                return Ok(());
            }
        }
        let count = retry_on_intr(|| rustix::io::read(&answers, &mut answer));
        if count.map_err(|why| failed(why.into()))? == 0 {
            let why = "standard input ended before the test was answered by `y`";
            return Err(Failure::new("plan", why));
        }
    }
    Ok(())
}

/// Puts the times of a worker in a phase to what the test did in it.
fn time(
    run: &mut ObjectRun,
    (measured, worker): (&JobResult, usize),
    (action, is_waited): (ObjectAction, bool),
) {
    run.span = measured.span.unwrap_or_default();
    let worker = measured.workers().get(worker);
    let kinds = worker.iter().flat_map(|worker| &worker.kinds);
    let sums = kinds.flat_map(|kind| [kind.stage(Stage::Lat), kind.stage(Stage::Errors)]);
    let sum: u128 = sums.flatten().map(weir_stats::Histogram::sum).sum();
    run.operation_ns = Nanos(u64::try_from(sum).unwrap_or(u64::MAX));
    if run.busy_ns > Nanos::ZERO {
        return;
    }
    run.busy_ns = run.span.length();
    // Where no latencies are kept the time that passed is all that is known.
    if action.moves_values() && is_waited && run.operation_ns > Nanos::ZERO {
        run.busy_ns = run.operation_ns;
    } else {
        run.truncated_us = run.busy_ns.0 / 1000;
    }
}

/// The load of a test: one operation after the other, to its end. Nothing that was never written is an error.
fn load_of(work: &ObjectWorkload, test: &ObjectTest) -> Load {
    let mut load = work.load.clone();
    let is_mix = |test: &ObjectTest| matches!(test.action, ObjectAction::Mix(_));
    if let ObjectAction::Mix(mix) = test.action {
        load.bounds.runtime_ns = mix.runtime_ns;
    } else if work.tests.iter().any(is_mix) {
        load.pacing = Pacing::default();
    }
    load.recording.slat = false;
    load.recording.clat = false;
    load.recording.lat = true;
    if test.action == ObjectAction::Fetch || test.action == ObjectAction::Verify {
        let kind = (&OBJECT_KINDS[test.action.kind()]).into();
        let missing = ErrorCode::Errno(ObjectCode::NonExist.number().into());
        load.errors.ignore.insert(kind, vec![missing]);
    }
    load
}

/// A store, and what its worker did in the last phase.
struct Target {
    session: Mutex<Option<Session>>,
    done: Mutex<Option<ObjectRun>>,
}

type Targets = Arc<Vec<Target>>;

/// One iteration of a test, on the threads of the targets.
struct TestWork {
    targets: Targets,
    /// Place of the test in the workload.
    place: usize,
    iteration: u64,
    /// Operations have their ends later.
    waits: bool,
}

impl Prepared for TestWork {
    fn is_inline(&self) -> bool {
        !self.waits
    }

    fn never_sleeps(&self) -> bool {
        !self.waits
    }

    fn error_code(&self, number: i32) -> ErrorCode {
        ObjectCode::of(number).map_or(number.into(), code_of)
    }

    fn work(&self, worker: &mut WorkerContext<'_>) -> Result<LoopStop, Failure> {
        let target = usize::try_from(worker.clone).unwrap_or(usize::MAX);
        let target = self.targets.get(target).ok_or_else(gone)?;
        let mut session = lock(&target.session);
        let session = session.as_mut().ok_or_else(gone)?;
        let test = session.work.tests.get(self.place).cloned();
        let test = &test.ok_or_else(gone)?;
        let (stop, run) = if let ObjectAction::Mix(mix) = test.action {
            let streams = Streams::new(session.contents.seed, 0);
            worker.recorded_starts = starts(worker.job.load(), session.work.targets(), streams);
            let before = keys_before(&session.work, self.place);
            let mixer = RefCell::new(Mixer::new(session, (test, mix), (before, streams)));
            let stop = drive::<_, false>(worker, &mixer, (1, mix.verify));
            (Ok(stop), mixer.into_inner().run)
        } else if test.action.moves_values() {
            let verifies = test.action == ObjectAction::Verify;
            let slots = if self.waits {
                session.work.in_flight.max(1)
            } else {
                1
            };
            let walk = RefCell::new(Walk::new(session, test, self.iteration, worker, slots));
            let stop = if self.waits {
                drive::<_, true>(worker, &walk, (slots, verifies))
            } else {
                drive::<_, false>(worker, &walk, (slots, verifies))
            };
            (Ok(stop), walk.into_inner().run)
        } else {
            let mut run = ObjectRun::default();
            let stop = worker.walk(test.action.kind(), || {
                run = session.walk(test, self.iteration);
                Ok((run.operations, run.bytes.0))
            });
            (stop, run)
        };
        let failed = run.failure.as_ref();
        let failed = failed.map(|why| {
            let text = format!("{}: {why}", test.action.name());
            Failure::new("object", text)
        });
        *lock(&target.done) = Some(run);
        failed.map_or(stop, Err)
    }
}

/// Carries operations out, which are verified or not, with so many slots.
fn drive<W: StoreWork, const WAITS: bool>(
    worker: &mut WorkerContext<'_>,
    work: &RefCell<W>,
    (slots, verifies): (u32, bool),
) -> LoopStop {
    let plan = worker.loop_plan(slots);
    let mut calls = Calls::<_, WAITS>::new(work);
    if verifies {
        worker.drive(&mut calls, &mut Places::<_, true>(work), &plan)
    } else {
        worker.drive(&mut calls, &mut Places::<_, false>(work), &plan)
    }
}
