//! `--live`: the run on the whole terminal while it goes on.
//!
//! In: a run that is watched, keys. Out: frames, drawn on a thread of its own; what drawing has cost; the
//! wish that the run ends. While nothing is drawn (the user has left, the terminal is too small, another
//! program has it) the progress line is shown. Not here: how the run is watched (`watch`), the report.

mod draw;
mod keys;
mod machine;
mod pace;
mod per_second;
mod placement;
mod screen;
mod view;

use std::cell::OnceCell;

use weir_doors::Refusal;
use weir_doors::house::{Live, RunOptions};
use weir_report::{ColorChoice, Flags, Style};
use weir_run::execute::LiveView;
use weir_schema::{Plan, RunResult};

use crate::measure::RunObserver;
use crate::watch::Watch;
use crate::{environment, output};
use view::{ViewSetup, ViewThread};

/// Live view that the arguments ask for.
pub(crate) struct LiveDisplay {
    live: Live,
    style: Style,
    watch: Watch,
}

impl LiveDisplay {
    /// The view, where the arguments ask for it.
    ///
    /// # Errors
    /// There is no terminal to draw on.
    pub(crate) fn of(options: &RunOptions, watch: &Watch) -> Result<Option<Self>, Refusal> {
        let Some(live) = options.live else {
            return Ok(None);
        };
        screen::refuse_what_cannot_be_drawn_on()?;
        Ok(Some(Self {
            live,
            style: style(options),
            watch: watch.clone(),
        }))
    }

    /// Shows a run of this plan, and its progress while nothing is drawn.
    pub(crate) fn observer<'a>(
        &self,
        plan: &Plan,
        progress: Box<dyn RunObserver + 'a>,
    ) -> Box<dyn RunObserver + 'a> {
        Box::new(LiveObserver {
            setup: ViewSetup {
                frames_per_second: self.live.frames_per_second,
                style: self.style.clone(),
                watch: self.watch.clone(),
                plan: plan.clone(),
            },
            progress,
            thread: OnceCell::new(),
        })
    }
}

fn style(options: &RunOptions) -> Style {
    let flags = Flags {
        color: match options.color {
            Some(true) => ColorChoice::Always,
            Some(false) => ColorChoice::Never,
            None => ColorChoice::Auto,
        },
        ascii: options.ascii,
        ..Flags::default()
    };
    let terminal = environment::terminal(&std::io::stderr());
    Style::detect(&flags, &environment::variables(), terminal)
}

struct LiveObserver<'a> {
    setup: ViewSetup,
    progress: Box<dyn RunObserver + 'a>,
    /// Thread of the view, started at the first look at the run, which follows all refusals; `None` where it
    /// could not start.
    thread: OnceCell<Option<ViewThread>>,
}

impl RunObserver for LiveObserver<'_> {
    fn shown(&self) -> Option<&dyn RunObserver> {
        Some(&*self.progress)
    }

    fn observe(&self, view: &LiveView<'_>) {
        self.thread.get_or_init(|| {
            let started = ViewThread::start(&self.setup);
            let report = |e: &std::io::Error| output::error(&format!("weir: --live: {e}\n"));
            started.inspect_err(report).ok()
        });
        if !screen::is_open() {
            self.progress.observe(view);
        }
    }

    fn done(&self, result: &mut RunResult) {
        if let Some(thread) = self.thread.get().and_then(Option::as_ref) {
            result.instrument.live_cpu_percent = thread.end();
        }
        self.progress.done(result);
    }
}

impl Drop for LiveObserver<'_> {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.get().and_then(Option::as_ref) {
            self.setup.watch.close();
            thread.end();
        }
    }
}
