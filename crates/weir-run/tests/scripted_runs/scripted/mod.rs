//! Jobs whose operations do what a script says: count, wait, fail, panic, hang.
//!
//! In: jobs with a script each. Out: the result of a real run over them. Scripts run on the
//! workers' threads and may wait for each other, so that an order that a test claims is enforced
//! or the run ends with an error; nothing depends on speed.
#![allow(clippy::panic, reason = "tests fail by panicking")]

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use weir_run::execute::{LiveView, RunControl, Signals, execute};
use weir_run::sim::SimOp;
use weir_run::{
    Engine, JobContext, KINDS, LoopStop, Measured, Operation, Prepared, PreparedJob, Runner,
    Source, Submit, WorkerContext,
};
use weir_schema::sample::{self, JobSample};
use weir_schema::{
    Announcement, ClockFacts, DeviceFacts, Failure, HostFacts, Job, JobResult, Kind, RunResult,
    Warning, Workload,
};
use weir_sys::clock::Clock;

/// Bytes of each operation.
pub(crate) const BLOCK: u32 = 4096;

/// Result of operation number `op` of clone `clone`; the bytes it moved or the negative errno.
pub(crate) type Script = Arc<dyn Fn(u32, u64) -> i64 + Send + Sync>;

/// Preparation of a job, on whatever thread makes it ready.
pub(crate) type Maker = Arc<dyn Fn(&JobContext<'_>) -> Result<(), Failure> + Send + Sync>;

/// The maker, as a value.
pub(crate) fn maker(
    f: impl Fn(&JobContext<'_>) -> Result<(), Failure> + Send + Sync + 'static,
) -> Maker {
    Arc::new(f)
}

/// Every operation succeeds at once.
pub(crate) fn good() -> Script {
    Arc::new(|_, _| i64::from(BLOCK))
}

/// The script, as a value.
pub(crate) fn script(f: impl Fn(u32, u64) -> i64 + Send + Sync + 'static) -> Script {
    Arc::new(f)
}

/// Never comes back.
pub(crate) fn hang() -> ! {
    loop {
        std::thread::park();
    }
}

/// Something that happens once, for scripts that wait for each other.
#[derive(Clone, Default)]
pub(crate) struct Mark(Arc<(Mutex<bool>, Condvar)>);

impl Mark {
    /// It happens.
    pub(crate) fn set(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    /// Waits for it while a job is made ready.
    pub(crate) fn wait_making(&self) -> Result<(), Failure> {
        match self.wait() {
            waited if waited > 0 => Ok(()),
            _ => Err(weir_run::failure("test", None, "nobody came")),
        }
    }

    /// Waits for it: success, or ETIMEDOUT when it does not happen.
    pub(crate) fn wait(&self) -> i64 {
        let seen = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .0
            .1
            .wait_timeout_while(seen, Duration::from_secs(20), |set| !*set)
            .unwrap_or_else(PoisonError::into_inner);
        if waited.1.timed_out() {
            -i64::from(libc::ETIMEDOUT)
        } else {
            i64::from(BLOCK)
        }
    }
}

/// Events in their order.
#[derive(Clone, Default)]
pub(crate) struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    pub(crate) fn note(&self, what: impl Into<String>) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.push(what.into());
    }

    pub(crate) fn read(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// A script that notes each operation as `name`.
    pub(crate) fn script(&self, name: &str) -> Script {
        let (diary, name) = (self.clone(), name.to_owned());
        script(move |_, _| {
            diary.note(&name);
            i64::from(BLOCK)
        })
    }
}

/// Carries out what the script says, inside the call.
struct Scripted {
    script: Script,
    clone: u32,
    done: u64,
}

impl Engine for Scripted {
    type Op = SimOp;
    type Setup = (Script, u32);
    const INLINE: bool = true;

    fn attach((script, clone): Self::Setup) -> std::io::Result<Self> {
        Ok(Self {
            script,
            clone,
            done: 0,
        })
    }

    fn submit(&mut self, _slot: u32, op: &SimOp) -> Submit {
        let number = self.done;
        self.done += 1;
        let result = (self.script)(self.clone, number);
        Submit::Done(result.min(i64::from(op.length())))
    }
}

/// Reads one after the other.
struct Reads {
    next: u64,
    end: u64,
    /// Called before each operation is issued.
    prepare: Option<fn()>,
}

impl Source for Reads {
    type Op = SimOp;

    fn next(&mut self, _slot: u32) -> Option<SimOp> {
        let at = self.next;
        self.next += 1;
        (at < self.end).then(|| SimOp {
            length: BLOCK,
            offset: at * u64::from(BLOCK),
            ..SimOp::default()
        })
    }

    fn prepare(&mut self, _slot: u32, _op: &SimOp) {
        if let Some(prepare) = self.prepare {
            prepare();
        }
    }

    fn prepare_is_timed(&self) -> bool {
        self.prepare.is_some()
    }
}

/// A job with its script.
pub(crate) struct Scene {
    pub(crate) job: Job,
    script: Script,
    /// Called before each operation is issued.
    pub(crate) prepare: Option<fn()>,
    /// Called on the worker's thread before it is ready.
    pub(crate) attach: Option<Script>,
    /// Reason that the job cannot be made ready.
    pub(crate) refuse: Option<&'static str>,
    /// Called while the job is made ready.
    pub(crate) make: Option<Maker>,
    /// Its operations act on targets with names.
    pub(crate) has_targets: bool,
}

/// A job of `operations` reads.
pub(crate) fn scene(name: &str, operations: u64, script: Script) -> Scene {
    Scene {
        job: job(name, operations),
        script,
        prepare: None,
        attach: None,
        refuse: None,
        make: None,
        has_targets: true,
    }
}

impl Scene {
    /// Changes the job.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Job)) -> Self {
        change(&mut self.job);
        self
    }
}

struct Ready {
    measured: [Option<Measured>; KINDS],
    operations: u64,
    script: Script,
    prepare: Option<fn()>,
    attach: Option<Script>,
    has_targets: bool,
}

impl Prepared for Ready {
    fn measured(&self, _: &Job) -> [Option<Measured>; KINDS] {
        self.measured
    }

    fn is_inline(&self) -> bool {
        true
    }

    fn work(&self, worker: &mut WorkerContext<'_>) -> Result<LoopStop, Failure> {
        if let Some(attach) = &self.attach {
            attach(worker.clone, 0);
        }
        let setup = (Arc::clone(&self.script), worker.clone);
        let mut engine = Scripted::attach(setup)
            .map_err(|e| weir_run::failure("engine", e.raw_os_error(), e.to_string()))?;
        let mut source = Reads {
            next: 0,
            end: self.operations,
            prepare: self.prepare,
        };
        let plan = worker.loop_plan(1);
        Ok(worker.drive(&mut engine, &mut source, &plan))
    }

    fn target_name(&self, clone: u32, _target: u32) -> Option<String> {
        self.has_targets.then(|| format!("scripted-{clone}"))
    }

    fn finish(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn devices(&self) -> Vec<DeviceFacts> {
        Vec::new()
    }

    fn disks(&self) -> Vec<String> {
        Vec::new()
    }

    fn warnings(&self) -> Vec<Warning> {
        Vec::new()
    }
}

/// Carries scripted jobs out: a job's text is the number of its scene.
struct Scripts(Vec<Scene>);

impl Runner for Scripts {
    fn handles(&self, _: &Workload) -> bool {
        true
    }

    fn check(&self, _: &JobContext<'_>) -> Vec<Failure> {
        Vec::new()
    }

    fn prepare(&self, context: &JobContext<'_>) -> Result<PreparedJob, Failure> {
        let scene = &self.0[context.index as usize];
        if let Some(why) = scene.refuse {
            return Err(weir_run::failure("open", Some(libc::ENOENT), why));
        }
        if let Some(make) = &scene.make {
            make(context)?;
        }
        let mut measured = [None; KINDS];
        measured[0] = Some(weir_run::measured(context.job, true));
        let ready = Ready {
            measured,
            operations: context.job.load().bounds.operations.unwrap_or(u64::MAX),
            script: Arc::clone(&scene.script),
            prepare: scene.prepare,
            attach: scene.attach.clone(),
            has_targets: scene.has_targets,
        };
        Ok(PreparedJob::Workers(Arc::new(ready)))
    }
}

/// Settings of a run in a test.
pub(crate) struct Stage<'a> {
    pub(crate) signals: Arc<Signals>,
    pub(crate) grace: Duration,
    pub(crate) observer: Option<&'a mut dyn FnMut(&LiveView<'_>)>,
    pub(crate) announce: &'a dyn Fn(&Announcement),
}

impl Default for Stage<'_> {
    fn default() -> Self {
        Self {
            signals: Arc::default(),
            grace: Duration::from_secs(20),
            observer: None,
            announce: &|_| (),
        }
    }
}

/// Interrupts the run so many times.
pub(crate) fn interrupt(signals: &Signals, number: i32, times: u32) {
    signals.number.store(number, Ordering::Relaxed);
    signals.interruptions.fetch_add(times, Ordering::Relaxed);
}

impl Stage<'_> {
    /// Runs groups of scenes.
    pub(crate) fn play(mut self, groups: Vec<Vec<Scene>>) -> RunResult {
        let jobs = |scenes: &Vec<Scene>| scenes.iter().map(|s| s.job.clone()).collect();
        let plan = sample::plan(groups.iter().map(jobs).collect());
        let scripts = Scripts(groups.into_iter().flatten().collect());
        let runners: [&dyn Runner; 1] = [&scripts];
        let mut observer = |view: &LiveView<'_>| {
            if let Some(observer) = &mut self.observer {
                observer(view);
            }
        };
        let (clock, _) = Clock::detect();
        execute(
            &plan,
            RunControl {
                runners: &runners,
                ranks: weir_run::execute::RankHost::threads(1),
                clock,
                clock_facts: ClockFacts::default(),
                host: HostFacts::default(),
                version: "test",
                directory: Path::new("/"),
                signals: self.signals,
                grace: self.grace,
                announce: self.announce,
                log_format: |_, _, _| (),
                observer: Some(&mut observer),
                calibrate: false,
                other_ranks: None,
            },
        )
    }
}

/// Runs scenes as one group.
pub(crate) fn play(scenes: Vec<Scene>) -> RunResult {
    Stage::default().play(vec![scenes])
}

/// The job of this name.
pub(crate) fn named<'a>(result: &'a RunResult, name: &str) -> &'a JobResult {
    let job = result.jobs().find(|j| j.name == name);
    job.unwrap_or_else(|| panic!("no job {name}"))
}

/// Reads that each worker of a job completed.
pub(crate) fn counts(job: &JobResult) -> Vec<u64> {
    let count = |w: &weir_schema::WorkerResult| w.kind(Kind::Read).map_or(0, |k| k.operations);
    job.workers().iter().map(count).collect()
}

/// Reads of 4 KiB; the rest is not looked at by scripts.
fn job(name: &str, operations: u64) -> Job {
    let job = sample::block_job(name).over("scripted");
    job.bounded(|bounds| bounds.operations = Some(operations))
}
