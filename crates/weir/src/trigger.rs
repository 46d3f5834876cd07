//! End of a run before its time: at a time, or when a file appears.
//!
//! In: a trigger, rounds of the run. Out: the run ends in order; then a command of the shell. Not
//! here: which flags ask for it (`weir-doors`).

use std::cell::{Cell, RefCell};
use std::process::Command;

use weir_doors::request::Trigger;
use weir_run::execute::LiveView;
use weir_schema::RunResult;

use crate::measure::RunObserver;
use crate::output;
use crate::peer_observer::FileWatch;

/// Observer that ends the run after what another shows.
pub(crate) struct TriggerObserver<'a> {
    shown: Box<dyn RunObserver + 'a>,
    trigger: &'a Trigger,
    file: Option<RefCell<FileWatch>>,
    is_pulled: Cell<bool>,
}

impl<'a> TriggerObserver<'a> {
    pub(crate) fn new(trigger: &'a Trigger, shown: Box<dyn RunObserver + 'a>) -> Self {
        let file = trigger.file.as_deref();
        Self {
            shown,
            trigger,
            file: file.map(|file| RefCell::new(FileWatch::new(file))),
            is_pulled: Cell::new(false),
        }
    }

    /// True if the run ends now.
    fn is_due(&self, view: &LiveView<'_>) -> bool {
        let now = view.elapsed_ns;
        let is_late = self.trigger.after.is_some_and(|after| now >= after);
        let file = self.file.as_ref();
        is_late || file.is_some_and(|file| file.borrow_mut().has_appeared(now))
    }
}

impl RunObserver for TriggerObserver<'_> {
    fn shown(&self) -> Option<&dyn RunObserver> {
        Some(&*self.shown)
    }

    fn observe(&self, view: &LiveView<'_>) {
        self.shown.observe(view);
        if !self.is_pulled.get() && self.is_due(view) {
            self.is_pulled.set(true);
            view.stop();
        }
    }

    fn done(&self, result: &mut RunResult) {
        self.shown.done(result);
        let Some(command) = self
            .trigger
            .command
            .as_ref()
            .filter(|_| self.is_pulled.get())
        else {
            return;
        };
        match Command::new("sh").args(["-c", command]).status() {
            Ok(status) if status.success() => {}
            Ok(status) => output::error(&format!("fio: trigger `{command}`: {status}\n")),
            Err(error) => output::error(&format!("fio: trigger `{command}`: {error}\n")),
        }
    }
}
