//! A peer's live text beside the house's line of progress.
//!
//! In: what the run shows of itself. Out: the text of the door's observer on standard output, with
//! the line of progress erased before it. Not here: the text (`weir-doors`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use weir_doors::observer::{Observer, Snapshot};
use weir_run::execute::LiveView;
use weir_schema::{Announcement, Plan, RunResult};

use crate::measure::RunObserver;
use crate::output;
use crate::progress::ProgressObserver;

/// The live text of one run, until its result is printed.
pub(crate) struct PeerText {
    observer: Mutex<Box<dyn Observer>>,
    has_begun: AtomicBool,
    is_lost: AtomicBool,
}

impl PeerText {
    pub(crate) fn new(observer: Box<dyn Observer>) -> Self {
        Self {
            observer: Mutex::new(observer),
            has_begun: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
        }
    }

    /// Nobody panics while holding it.
    fn observer(&self) -> MutexGuard<'_, Box<dyn Observer>> {
        self.observer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn print(&self, text: &str) {
        if !output::print(text) {
            self.is_lost.store(true, Ordering::Relaxed);
        }
    }

    /// The run has begun, or is over: it was not refused.
    fn begin(&self, plan: &Plan) {
        if !self.has_begun.swap(true, Ordering::Relaxed) {
            let text = self.observer().begin(plan);
            self.print(&text);
        }
    }

    /// Text of the whole result, without the part that was printed.
    pub(crate) fn rest(&self, result: &RunResult, whole: String) -> String {
        self.begin(&result.plan);
        self.observer().rest(result, whole)
    }

    /// True if some text could not be printed.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }
}

/// Observer of a run in a peer's voice.
pub(crate) struct PeerObserver<'a> {
    progress: ProgressObserver,
    plan: Plan,
    text: &'a PeerText,
}

impl<'a> PeerObserver<'a> {
    pub(crate) fn new(progress: ProgressObserver, plan: &Plan, text: &'a PeerText) -> Self {
        Self {
            progress,
            plan: plan.clone(),
            text,
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
        self.progress.observe(view);
        let snapshot = Snapshot {
            ended: view.ended().iter().map(|job| job.index).collect(),
            result: &|| view.result(),
        };
        let text = self.text.observer().look(&snapshot);
        if !text.is_empty() {
            self.progress.erase();
            self.text.print(&text);
        }
    }

    fn done(&self, result: &mut RunResult) {
        self.progress.done(result);
    }

    fn refusal(&self, job: &str, why: &str) -> String {
        let own = self.text.observer().refusal(job, why);
        own.unwrap_or_else(|| self.progress.refusal(job, why))
    }
}
