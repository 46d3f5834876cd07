//! End of a run before its time: at a time, when a file appears, or when a drive is too hot.
//!
//! In: a trigger, rounds of the run. Out: the run ends in order; then a command of the shell. Not
//! here: which flags ask for it (`weir-doors`).

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::process::Command;

use weir_doors::request::{HeatLimit, Trigger};
use weir_run::execute::LiveView;
use weir_schema::{RunResult, Warning};
use weir_sys::nvme::DriveHealth;
use weir_units::Nanos;

use crate::measure::RunObserver;
use crate::output;
use crate::peer_observer::FileWatch;

/// Drives are asked for their temperature this often.
const LOOK: Nanos = Nanos::from_secs(1);

/// Observer that ends the run after what another shows.
pub(crate) struct TriggerObserver<'a> {
    shown: Box<dyn RunObserver + 'a>,
    trigger: &'a Trigger,
    file: Option<RefCell<FileWatch>>,
    heat: Option<HeatWatch<'a>>,
    is_pulled: Cell<bool>,
}

impl<'a> TriggerObserver<'a> {
    pub(crate) fn new(trigger: &'a Trigger, shown: Box<dyn RunObserver + 'a>) -> Self {
        let file = trigger.file.as_deref();
        Self {
            shown,
            trigger,
            file: file.map(|file| RefCell::new(FileWatch::new(file))),
            heat: trigger.heat.as_ref().map(HeatWatch::new),
            is_pulled: Cell::new(false),
        }
    }

    /// True if the run ends now.
    fn is_due(&self, view: &LiveView<'_>) -> bool {
        let now = view.elapsed_ns;
        let is_late = self.trigger.after.is_some_and(|after| now >= after);
        let file = self.file.as_ref();
        is_late
            || file.is_some_and(|file| file.borrow_mut().has_appeared(now))
            || self.heat.as_ref().is_some_and(|heat| heat.is_too_hot(view))
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
        let found = self.heat.as_ref().and_then(|heat| heat.found.take());
        result.warnings.extend(found);
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

/// Watch on the temperatures of drives.
struct HeatWatch<'a> {
    limit: &'a HeatLimit,
    drives: Vec<(&'a str, File)>,
    /// Time of the next look.
    next: Cell<Nanos>,
    /// The drive that was too hot.
    found: Cell<Option<Warning>>,
}

impl<'a> HeatWatch<'a> {
    fn new(limit: &'a HeatLimit) -> Self {
        let open = |node: &'a String| Some((node.as_str(), File::open(node).ok()?));
        Self {
            limit,
            drives: limit.nodes.iter().filter_map(open).collect(),
            next: Cell::default(),
            found: Cell::default(),
        }
    }

    /// Looks where that is due, from the release of the first job on. A drive that does not answer has no
    /// temperature.
    fn is_too_hot(&self, view: &LiveView<'_>) -> bool {
        if view.measured_ns == Nanos::ZERO || view.elapsed_ns < self.next.get() {
            return false;
        }
        self.next.set(view.elapsed_ns.saturating_add(LOOK));
        let limit = self.limit.celsius;
        let hot = self.drives.iter().find_map(|(node, file)| {
            let celsius = DriveHealth::ask(file).ok()?.celsius;
            (celsius >= limit)
                .then(|| format!("{node} has {celsius} °C, and {limit} °C end the run."))
        });
        let is_hot = hot.is_some();
        self.found
            .set(hot.map(|cause| Warning::new("too-hot", None, cause)));
        is_hot
    }
}
