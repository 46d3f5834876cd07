//! Tests on an object store as a workload of the house: a series of phases on each rank, each an iteration of a
//! test on the rank's own pool.
//!
//! In: an [`ObjectWorkload`]. Out: phases with latencies, and an [`ObjectOutcome`] with what each test did.

mod keys;
mod load;
mod session;
mod walk;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use weir_run::{
    Engine, JobContext, LoopStop, Phase, Prepared, PreparedJob, RankControl, RankJob, RankOutcome,
    Runner, SeriesEnd, WorkerContext, failure,
};
use weir_schema::{
    ErrorCode, Failure, JobResult, Load, OBJECT_KINDS, ObjectAction, ObjectDurability,
    ObjectEngine, ObjectOutcome, ObjectPrefault, ObjectRank, ObjectTest, ObjectWorkload, Outcome,
    Stage, Workload,
};
use weir_units::Nanos;
use weir_world::Collectives as _;

use crate::disk::DiskStore;
use crate::mem::MemStore;
use crate::remote::{Dial, LONGEST, RemoteSetup, RemoteStore};
use crate::{ObjectCode, ObjectError, ObjectStore, PoolSpec, StoreUuid};
use load::{Calls, Places, StoreOp, Walk};
use session::{Run, Session, code_of, planned_bytes, random_uuid, uuid_of};

/// Longest time in which the first rank gets what the others did.
const GATHERING: Duration = Duration::from_secs(30);

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
        let wrong = wrong(work);
        wrong
            .into_iter()
            .map(|why| failure("plan", None, why))
            .collect()
    }

    fn prepare(&self, context: &JobContext<'_>) -> Result<PreparedJob, Failure> {
        let Workload::ObjectStore(work) = &context.job.workload else {
            return Err(failure(
                "plan",
                None,
                "this workload is none of an object store",
            ));
        };
        Ok(PreparedJob::Ranks(Arc::new(StoreJob {
            work: work.as_ref().clone(),
            directory: context.directory.to_owned(),
            seed: context.seed,
            dial: self.dial.clone(),
        })))
    }
}

/// Everything that cannot be carried out.
fn wrong(work: &ObjectWorkload) -> Vec<String> {
    let name = work.engine.name();
    let mut wrong = Vec::new();
    match work.engine {
        ObjectEngine::Mem if work.in_flight > 1 => wrong.push(
            "mem completes each operation at once; leave the number in flight out".to_owned(),
        ),
        ObjectEngine::Mem => {}
        ObjectEngine::Remote | ObjectEngine::Echo => wrong.extend(wrong_with_servers(work)),
        ObjectEngine::Disk => wrong.extend(wrong_with_disk(work)),
        ObjectEngine::Daos => {
            wrong.push(format!("the engine {name} is not there yet; there is mem"));
        }
    }
    if work.block_tier_bytes.is_some_and(|bytes| bytes.0 > 0) {
        wrong.push(format!("{name} has no tier of blocks"));
    }
    let names = [("pool", &work.pool), ("container", &work.container)];
    for (what, uuid) in names {
        if let Some(uuid) = uuid.as_ref().filter(|uuid| uuid_of(uuid).is_none()) {
            wrong.push(format!(
                "{what} {uuid}: a UUID has 32 hexadecimal digits, as 8-4-4-4-12"
            ));
        }
    }
    let merges = |test: &ObjectTest| {
        matches!(
            test.action,
            ObjectAction::Aggregate { merge: true, .. }
                | ObjectAction::Discard { merge: true, .. }
                | ObjectAction::Collect { merge: true, .. }
        )
    };
    if work.tests.iter().any(merges) {
        wrong.push(format!(
            "{name} does not merge neighbouring extents (`m`); leave it out"
        ));
    }
    let layout = &work.layout;
    if [layout.objects, layout.dkeys, layout.akeys, layout.strides].contains(&0) {
        wrong.push("there has to be one object, key and stride at least".to_owned());
    }
    let stride = layout.stride_bytes.0;
    for test in &work.tests {
        let end = test.offset.0.saturating_add(test.size.0);
        if test.action.moves_values() && (end > stride || test.size.0 == 0) {
            let (offset, size) = (test.offset.0, test.size.0);
            wrong.push(format!(
                "{size} bytes from {offset} on are no part of a stride of {stride}"
            ));
        }
    }
    let needed = planned_bytes(work);
    let pool = work.pool_bytes;
    if !is_on_servers(work) && work.pool.is_none() && needed > pool.0 {
        let needed = weir_units::Bytes(needed);
        let code = code_of(ObjectCode::NoSpace);
        wrong.push(format!(
            "{code}: the updates take {needed}, and the pool has {pool}; give it more (-P) or them less"
        ));
    }
    wrong
}

fn is_on_servers(work: &ObjectWorkload) -> bool {
    matches!(work.engine, ObjectEngine::Remote | ObjectEngine::Echo)
}

/// True if operations have their ends later: those of servers, and updates that share a commit.
fn waits(work: &ObjectWorkload) -> bool {
    is_on_servers(work) || work.engine == ObjectEngine::Disk && work.in_flight > 1
}

/// The same of a store on a disk.
fn wrong_with_disk(work: &ObjectWorkload) -> impl Iterator<Item = String> {
    let lasts = work
        .durability
        .is_none_or(|it| it == ObjectDurability::Power);
    let wrong = [
        (!lasts).then_some("disk has the durability power alone; mem has none and process"),
        work.zero_copy
            .then_some("disk has no values that are filled in place; leave zero copy out"),
        (work.prefault == ObjectPrefault::All)
            .then_some("disk has no memory to make present; leave the prefault out"),
        (work.thread_per_operation && work.in_flight > 1)
            .then_some("disk: operations of one commit have no threads of their own"),
    ];
    wrong.into_iter().flatten().map(str::to_owned)
}

/// The same of a store on servers.
fn wrong_with_servers(work: &ObjectWorkload) -> impl Iterator<Item = String> {
    let name = work.engine.name();
    let longest = work.layout.stride_bytes.0;
    let stored = |test: &ObjectTest| {
        matches!(
            test.action,
            ObjectAction::Update | ObjectAction::Fetch | ObjectAction::ListObjects
        )
    };
    let stores_nothing = work.engine == ObjectEngine::Echo && !work.tests.iter().all(stored);
    let too_long = code_of(ObjectCode::Rec2Big);
    let wrong = [
        work.servers
            .is_empty()
            .then(|| format!("{name} needs the address of a server, as `weir obj serve` says it")),
        work.zero_copy.then(|| {
            format!("{name}: a server's memory cannot be filled in place; leave zero copy out")
        }),
        work.thread_per_operation.then(|| {
            format!("{name}: no operation has a thread of its own; have several in flight instead")
        }),
        work.durability
            .is_some()
            .then(|| format!("{name}: the server was told its durability when it was started")),
        (longest > LONGEST).then(|| {
            format!(
                "{too_long}: a server takes values of 64 MiB at the most, not of {longest} bytes"
            )
        }),
        stores_nothing.then(|| {
            format!(
                "{name} stores nothing: it has updates and fetches alone; remote has the others"
            )
        }),
    ];
    wrong.into_iter().flatten()
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
        if is_on_servers(&self.work) {
            self.on_servers(control)
        } else if self.work.engine == ObjectEngine::Disk {
            self.on(control, None, |spec| DiskStore::open(spec))
        } else {
            self.on(control, None, |spec| MemStore::open(spec))
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
        self.on(control, shared.or(Some([0; 16])), |spec| {
            let store = RemoteStore::open(&self.dial, &self.work.servers, setup)?;
            let about = store.about();
            if self.work.pool.is_some() && spec.uuid != Some(about.pool) {
                let why = "the server has another pool";
                return Err(ObjectError::new(ObjectCode::NonExist, why));
            }
            spec.uuid = Some(about.pool);
            spec.durability = about.durability;
            spec.path = None;
            Ok(store)
        })
    }

    /// The whole job on stores of one engine.
    fn on<S: ObjectStore + 'static>(
        &self,
        control: &RankControl<'_>,
        shared: Option<StoreUuid>,
        open: impl FnMut(&mut PoolSpec) -> crate::Result<S>,
    ) -> RankOutcome {
        let rank = control.world.rank();
        let place = (&*self.directory, self.seed);
        let opened = Session::open(&self.work, place, (rank, shared), open);
        // A store that is open is closed below, whoever failed.
        let (session, described) = match opened {
            Ok((session, described)) => (Some(session), Ok(described)),
            Err(why) => (None, Err(why)),
        };
        let (mut described, mut ended) = match control.all_have(described) {
            Ok(described) => (described, None),
            Err(end) => (ObjectRank::default(), Some(end)),
        };
        let shared = Arc::new(Mutex::new(session));
        if ended.is_none() {
            ended = self.tests(control, &shared, &mut described).err();
        }
        let session = lock(&shared).take();
        let closed = session.map_or(Ok(()), Session::close);
        let mut outcome = RankOutcome {
            is_whole: ended.is_none(),
            ..ended.map(RankOutcome::from).unwrap_or_default()
        };
        outcome.failure = outcome.failure.or(closed.err());
        outcome.is_whole &= outcome.failure.is_none();
        let ranks = gathered(control, described);
        outcome.outcome = Outcome::ObjectStore(Box::new(ObjectOutcome { ranks }));
        outcome
    }
}

fn gone() -> Failure {
    failure("object", None, "no store")
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Outcomes of all ranks, at the first one; one that is gone has none.
fn gathered(control: &RankControl<'_>, mine: ObjectRank) -> Vec<ObjectRank> {
    if control.world.size() == 1 {
        return vec![mine];
    }
    let text = serde_json::to_vec(&mine).unwrap_or_default();
    let texts = control.world.gather(&text, GATHERING).ok().flatten();
    let Some(texts) = texts else {
        return Some(mine)
            .into_iter()
            .filter(|mine| mine.rank == 0)
            .collect();
    };
    let ranks = texts.iter().map(|text| serde_json::from_slice(text).ok());
    ranks.flatten().collect()
}

impl<D: Dial> StoreJob<D> {
    /// All tests, until one fails.
    fn tests<S: ObjectStore + 'static>(
        &self,
        control: &RankControl<'_>,
        shared: &SharedSession<S>,
        rank: &mut ObjectRank,
    ) -> Result<(), SeriesEnd> {
        let mut repetitions: BTreeMap<&str, u32> = BTreeMap::new();
        for (number, test) in (0..).zip(&self.work.tests) {
            if let Some(prompt) = &test.prompt {
                let is_first = control.world.rank() == 0;
                let answered = if is_first { asked(prompt) } else { Ok(()) };
                control.all_have(answered)?;
            }
            for iteration in 0..test.iterations.max(1) {
                let repetition = repetitions.entry(test.action.name()).or_default();
                let done = Arc::new(Mutex::new(None));
                let phase = Phase {
                    repetition: *repetition,
                    ..Phase::new(
                        test.action.name(),
                        load_of(&self.work.load, test),
                        Arc::new(TestWork {
                            shared: Arc::clone(shared),
                            test: test.clone(),
                            iteration,
                            waits: waits(&self.work),
                            done: Arc::clone(&done),
                        }),
                    )
                };
                *repetition += 1;
                let measured = control.phase(&phase);
                if let Some(run) = lock(&done).take() {
                    let iteration = u32::try_from(iteration).unwrap_or(u32::MAX);
                    let mut run = run.record(number, test.action, iteration);
                    if let Ok(measured) = &measured {
                        let is_waited = self.work.in_flight <= 1;
                        time(&mut run, measured, (test.action, is_waited));
                    }
                    rank.runs.push(run);
                }
                measured?;
            }
        }
        Ok(())
    }
}

/// Asks until the answer is a yes.
fn asked(prompt: &str) -> Result<(), Failure> {
    let failed = |why: std::io::Error| failure("object", why.raw_os_error(), why.to_string());
    let (mut out, mut answers) = (std::io::stdout(), std::io::stdin().lock());
    let mut answer = [b'?'];
    while !answer.eq_ignore_ascii_case(b"y") {
        // The end of the line of the last answer is none.
        if answer != *b"\n" {
            out.write_all(prompt.as_bytes()).map_err(failed)?;
            out.flush().map_err(failed)?;
        }
        if answers.read(&mut answer).map_err(failed)? == 0 {
            let why = "standard input ended before the test was answered by `y`";
            return Err(failure("plan", None, why));
        }
    }
    Ok(())
}

/// Puts the times of a phase to what the test did in it.
fn time(
    run: &mut weir_schema::ObjectRun,
    measured: &JobResult,
    (action, is_waited): (ObjectAction, bool),
) {
    run.span = measured.span.unwrap_or_default();
    if run.busy_ns > Nanos::ZERO {
        return;
    }
    run.busy_ns = run.span.length();
    if action.moves_values() && is_waited {
        let kinds = measured.workers().iter().flat_map(|worker| &worker.kinds);
        let sums = kinds.flat_map(|kind| [kind.stage(Stage::Lat), kind.stage(Stage::Errors)]);
        let sum: u128 = sums.flatten().map(weir_stats::Histogram::sum).sum();
        run.busy_ns = Nanos(u64::try_from(sum).unwrap_or(u64::MAX));
    } else {
        run.truncated_us = run.busy_ns.0 / 1000;
    }
}

/// The load of a test: one operation after the other, to its end. Nothing that was never written is an error.
fn load_of(load: &Load, test: &ObjectTest) -> Load {
    let mut load = load.clone();
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

type SharedSession<S> = Arc<Mutex<Option<Session<S>>>>;

/// One iteration of a test, on the worker's thread.
struct TestWork<S> {
    shared: SharedSession<S>,
    test: ObjectTest,
    iteration: u64,
    /// Operations have their ends later.
    waits: bool,
    done: Arc<Mutex<Option<Run>>>,
}

impl<S: ObjectStore> Prepared for TestWork<S> {
    fn is_inline(&self) -> bool {
        !self.waits
    }

    fn never_sleeps(&self) -> bool {
        !self.waits
    }

    fn error_code(&self, number: i32) -> ErrorCode {
        let all = ObjectCode::ALL.iter();
        let mut same = all.filter(|code| i32::from(code.number()) == number.abs());
        same.next().map_or(number.into(), |code| code_of(*code))
    }

    fn work(&self, worker: &mut WorkerContext<'_>) -> Result<LoopStop, Failure> {
        let mut shared = lock(&self.shared);
        let session = shared.as_mut().ok_or_else(gone)?;
        let (stop, run) = if self.test.action.moves_values() {
            let slots = if self.waits {
                session.work.in_flight.max(1)
            } else {
                1
            };
            let walk = Walk::new(session, &self.test, self.iteration, worker, slots);
            let walk = RefCell::new(walk);
            let stop = if self.waits {
                self.drive(worker, Calls::<_, true>::new(&walk), &walk, slots)
            } else {
                self.drive(worker, Calls::<_, false>::new(&walk), &walk, slots)
            };
            (Ok(stop), walk.into_inner().run)
        } else {
            let mut run = Run::default();
            let stop = worker.walk(self.test.action.kind(), || {
                run = walk::walk(session, &self.test, self.iteration);
                Ok((run.visited, run.bytes))
            });
            (stop, run)
        };
        let failed = run.failure.as_ref().map(|why| {
            let name = self.test.action.name();
            let text = format!("{name}: {why}");
            failure("object", None, text)
        });
        *lock(&self.done) = Some(run);
        failed.map_or(stop, Err)
    }
}

impl<S: ObjectStore> TestWork<S> {
    fn drive<'w, 'a, E>(
        &self,
        worker: &mut WorkerContext<'_>,
        mut calls: E,
        walk: &'w RefCell<Walk<'a, S>>,
        slots: u32,
    ) -> LoopStop
    where
        E: Engine<Op = StoreOp>,
    {
        let plan = worker.loop_plan(slots);
        if self.test.action == ObjectAction::Verify {
            worker.drive(&mut calls, &mut Places::<_, true>(walk), &plan)
        } else {
            worker.drive(&mut calls, &mut Places::<_, false>(walk), &plan)
        }
    }
}
