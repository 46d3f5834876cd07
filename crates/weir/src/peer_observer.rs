//! A peer's live text beside the house's line of progress.
//!
//! In: what the run shows of itself. Out: the text of the door's observer on standard output, with
//! the line of progress erased before it, or in a file. Not here: the text (`weir-doors`).

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use signal_hook::consts::SIGUSR1;
use weir_doors::observer::{JobProgress, Observer, Phase, Snapshot};
use weir_doors::{Machine, Printed};
use weir_run::execute::{LiveCount, LiveEnd, LiveJob, LiveState, LiveView};
use weir_schema::{Announcement, Kind, Plan, RunResult};
use weir_units::Nanos;

use crate::machine::ThisMachine;
use crate::measure::RunObserver;
use crate::output;
use crate::progress::ProgressObserver;

/// A file is looked for this often.
const FILE_EVERY: Nanos = Nanos(250_000_000);

/// The live text of one run, until its result is printed.
pub(crate) struct PeerText<'a> {
    machine: &'a ThisMachine,
    observer: Mutex<Box<dyn Observer>>,
    /// File that gets the text instead of standard output, and the text so far.
    file: Option<(&'a str, Mutex<String>)>,
    has_plan: AtomicBool,
    has_begun: AtomicBool,
    is_lost: AtomicBool,
}

/// Nobody panics while holding it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> PeerText<'a> {
    pub(crate) fn new(
        observer: Box<dyn Observer>,
        machine: &'a ThisMachine,
        file: Option<&'a str>,
    ) -> Self {
        Self {
            machine,
            observer: Mutex::new(observer),
            file: file.map(|path| (path, Mutex::default())),
            has_plan: AtomicBool::new(false),
            has_begun: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
        }
    }

    fn observer(&self) -> MutexGuard<'_, Box<dyn Observer>> {
        lock(&self.observer)
    }

    fn print(&self, text: &str) {
        match &self.file {
            Some((_, whole)) => lock(whole).push_str(text),
            None => self.print_out(text),
        }
    }

    fn print_out(&self, text: &str) {
        if !self.is_lost.load(Ordering::Relaxed) && !output::print(text) {
            self.is_lost.store(true, Ordering::Relaxed);
        }
    }

    /// Writes the file as far as there is text.
    fn save(&self) -> Result<(), String> {
        let file = self.file.as_ref();
        file.map_or(Ok(()), |(path, text)| {
            output::write_file(path, &*lock(text))
        })
    }

    /// The run has begun, or is over: it was not refused.
    fn begin(&self, plan: &Plan) {
        if !self.has_begun.swap(true, Ordering::Relaxed) {
            let text = self.observer().begin(plan);
            self.print(&text);
        }
    }

    /// Prints the text of the whole result without what was printed; the exit code.
    pub(crate) fn finish(&self, result: &RunResult, whole: Printed) -> u8 {
        self.begin(&result.plan);
        let text = self.observer().rest(result, self.machine, whole);
        output::error(&text.err);
        self.print(&text.out);
        let saved = self.save().map_err(|why| output::error(&why));
        let is_lost = saved.is_err() || self.is_lost.load(Ordering::Relaxed);
        text.code.max(u8::from(is_lost))
    }
}

/// Observer of a run in a peer's voice.
pub(crate) struct PeerObserver<'a> {
    progress: ProgressObserver,
    /// The house draws its line of progress.
    has_progress: bool,
    plan: Plan,
    text: &'a PeerText<'a>,
    requests: Option<Requests>,
}

impl<'a> PeerObserver<'a> {
    /// `asks_progress`: the line of the house is asked for.
    pub(crate) fn new(
        progress: ProgressObserver,
        asks_progress: bool,
        plan: &Plan,
        text: &'a PeerText<'_>,
    ) -> Self {
        if !text.has_plan.swap(true, Ordering::Relaxed) {
            let head = text.observer().plan(plan);
            text.print(&head);
        }
        let file = text.observer().request_file();
        Self {
            progress,
            has_progress: asks_progress || file.is_none(),
            plan: plan.clone(),
            text,
            requests: file.map(|file| Requests::new(&file)),
        }
    }
}

impl RunObserver for PeerObserver<'_> {
    fn announce(&self, announcement: &Announcement) {
        self.text.begin(&self.plan);
        match self.text.observer().announce(announcement) {
            Some(text) => self.text.print(&text),
            None => self.progress.announce(announcement),
        }
    }

    fn observe(&self, view: &LiveView<'_>) {
        self.text.begin(&self.plan);
        if self.has_progress {
            self.progress.observe(view);
        }
        let requests = self.requests.as_ref();
        let snapshot = Snapshot {
            elapsed_ns: view.elapsed_ns,
            measured_ns: view.measured_ns,
            is_asked: requests.is_some_and(|asked| asked.are_there(view.elapsed_ns)),
            jobs: &|| jobs(&self.plan, view),
            result: &|| view.result(),
        };
        let line = self.text.observer().progress(&snapshot);
        let text = self.text.observer().look(&snapshot);
        if line.is_empty() && text.is_empty() {
            return;
        }
        self.progress.erase();
        self.text.print_out(&line);
        if !text.is_empty() {
            self.text.print(&text);
            // The last one says what is wrong with the file.
            let _ = self.text.save();
        }
    }

    fn excuses(&self, job: &str, why: &str) -> bool {
        let text = self.text.observer().excuse(job, why);
        if let Some(text) = &text {
            output::error(text);
        }
        text.is_some()
    }

    fn done(&self, result: &mut RunResult) {
        // What is watched of the machine ends with the run.
        self.text.machine.idleness();
        self.progress.done(result);
    }

    fn refusal(&self, job: &str, why: &str) -> String {
        let own = self.text.observer().refusal(job, why);
        own.unwrap_or_else(|| self.progress.refusal(job, why))
    }
}

/// Requests for reports while a run goes on: a signal, or a file.
struct Requests {
    signal: Arc<AtomicBool>,
    file: RefCell<FileWatch>,
}

impl Requests {
    fn new(file: &str) -> Self {
        let signal = Arc::new(AtomicBool::new(false));
        // Without it there is one way less to ask; the run is not worse for it.
        let _ = signal_hook::flag::register(SIGUSR1, Arc::clone(&signal));
        Self {
            signal,
            file: RefCell::new(FileWatch::new(file)),
        }
    }

    fn are_there(&self, now: Nanos) -> bool {
        let is_signalled = self.signal.swap(false, Ordering::Relaxed);
        self.file.borrow_mut().has_appeared(now) || is_signalled
    }
}

/// Watch for a file that is a request: taking it away answers it.
pub(crate) struct FileWatch {
    path: PathBuf,
    next: Nanos,
}

impl FileWatch {
    pub(crate) fn new(path: &str) -> Self {
        Self {
            path: path.into(),
            next: FILE_EVERY,
        }
    }

    /// True if it is there, looked at now and then.
    pub(crate) fn has_appeared(&mut self, now: Nanos) -> bool {
        if now < self.next {
            return false;
        }
        self.next = Nanos(now.0 + FILE_EVERY.0);
        std::fs::remove_file(&self.path).is_ok()
    }
}

/// Every job of the plan, in its order.
fn jobs(plan: &Plan, view: &LiveView<'_>) -> Vec<JobProgress> {
    let (running, ended): (Vec<LiveJob>, Vec<LiveEnd>) = (view.jobs(), view.ended());
    let jobs = plan.jobs().enumerate().map(|(index, (_, job))| {
        let clones = job.clones as usize;
        match running.iter().find(|j| j.index == index) {
            Some(live) => of_running(live),
            None => JobProgress {
                has_ended: ended.iter().any(|e| e.index == index),
                workers: match ended.iter().find(|e| e.index == index) {
                    Some(end) => gone(clones, end.failed),
                    None => vec![Phase::Waiting; clones],
                },
                elapsed_s: 0.0,
                fraction: None,
                operations: [0; 3],
                bytes: [0; 3],
            },
        }
    });
    jobs.collect()
}

fn of_running(live: &LiveJob) -> JobProgress {
    let phase = match live.state {
        _ if !live.released => Phase::Preparing,
        LiveState::Ramp => Phase::Ramp,
        LiveState::Running | LiveState::Ending(_) => Phase::Running,
    };
    let by_kind = |count: fn(&LiveCount) -> u64| {
        Kind::DATA.map(|kind| live.by_kind.get(&kind.into()).map_or(0, count))
    };
    let mut workers = vec![phase; live.workers - live.gone];
    workers.append(&mut gone(live.gone, live.failed));
    JobProgress {
        has_ended: false,
        workers,
        elapsed_s: live.elapsed_ns.as_secs_f64(),
        fraction: live.fraction,
        operations: by_kind(|k| k.operations),
        bytes: by_kind(|k| k.bytes),
    }
}

/// Workers that have ended, those that failed last.
fn gone(workers: usize, failed: usize) -> Vec<Phase> {
    let mut phases = vec![Phase::Ended; workers.saturating_sub(failed)];
    phases.resize(workers, Phase::Failed);
    phases
}
