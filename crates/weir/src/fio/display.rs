//! What the fio door shows of a run that goes on: fio's progress line, and full reports at
//! intervals, at SIGUSR1, or when a file `fio-dump-status` appears.
//!
//! In: the run, at every round. Out: text on standard output or in the report. Not here: the
//! texts themselves (`weir-doors`).

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGUSR1;
use weir_doors::fio::output::{EtaLine, JobProgress, Phase};
use weir_doors::fio::{Eta, FioOptions};
use weir_run::execute::{LiveCount, LiveEnd, LiveJob, LiveState, LiveView};
use weir_schema::{Kind, Plan};
use weir_units::Nanos;

use crate::output;

/// The progress line comes this often.
const LINE_EVERY: Nanos = Nanos(1_000_000_000);
/// The file is looked for this often.
const FILE_EVERY: Nanos = Nanos(250_000_000);

/// What is shown of a run, and when next.
pub(super) struct FioDisplay<'a> {
    plan: &'a Plan,
    line: Option<Progress>,
    status: Status,
    trigger: Trigger<'a>,
}

struct Progress {
    line: EtaLine,
    due: Due,
    breaks: Option<Due>,
}

/// Requests for full reports.
struct Status {
    due: Option<Due>,
    signal: Arc<AtomicBool>,
    file: PathBuf,
    look: Due,
}

/// What ends the run before its time.
struct Trigger<'a> {
    wanted: &'a weir_doors::fio::Trigger,
    look: Due,
    pulled: bool,
}

/// Something that comes again and again.
struct Due {
    every: Nanos,
    next: Nanos,
}

impl Due {
    fn each(every: Nanos) -> Self {
        Self { every, next: every }
    }

    /// Whether it is time; what was missed is not made up for.
    fn is_now(&mut self, now: Nanos) -> bool {
        let due = now >= self.next;
        if due {
            let missed = (now.0 - self.next.0) / self.every.0.max(1);
            self.next.0 += (missed + 1) * self.every.0;
        }
        due
    }
}

impl<'a> FioDisplay<'a> {
    /// As the command line says; where the signal cannot be caught it shows nothing.
    pub(super) fn new(plan: &'a Plan, options: &'a FioOptions) -> Self {
        let signal = Arc::new(AtomicBool::new(false));
        // Without it there is one way less to ask; the run is not worse for it.
        let _ = signal_hook::flag::register(SIGUSR1, Arc::clone(&signal));
        let directory = std::env::var_os("TMPDIR").map_or_else(|| "/tmp".into(), PathBuf::from);
        let shows = match options.eta {
            Eta::Never => false,
            Eta::Always => true,
            Eta::Auto => std::io::stdout().is_terminal(),
        };
        // A document on the same stream stays alone.
        let shows = shows && !(options.is_for_programs() && options.output.is_none());
        Self {
            plan,
            line: shows.then(|| Progress {
                line: EtaLine::default(),
                due: Due::each(options.eta_interval.unwrap_or(LINE_EVERY)),
                breaks: options.eta_newline.map(Due::each),
            }),
            status: Status {
                due: options.status_interval.map(Due::each),
                signal,
                file: directory.join("fio-dump-status"),
                look: Due::each(FILE_EVERY),
            },
            trigger: Trigger {
                wanted: &options.trigger,
                look: Due::each(FILE_EVERY),
                pulled: false,
            },
        }
    }

    /// Shows the line if it is time; whether a full report is wanted.
    pub(super) fn observe(&mut self, view: &LiveView<'_>) -> bool {
        if let Some(progress) = &mut self.line {
            progress.observe(self.plan, view);
        }
        if self.trigger.is_pulled(view) {
            view.stop();
        }
        self.status.is_wanted(view)
    }

    /// After the run, when its state is stored: the trigger's command, if the trigger was pulled.
    pub(super) fn run_trigger(&self) {
        let Some(command) = &self.trigger.wanted.command else {
            return;
        };
        if !self.trigger.pulled {
            return;
        }
        match Command::new("sh").args(["-c", command]).status() {
            Ok(status) if status.success() => {}
            Ok(status) => output::error(&format!("fio: trigger `{command}`: {status}\n")),
            Err(error) => output::error(&format!("fio: trigger `{command}`: {error}\n")),
        }
    }
}

impl Trigger<'_> {
    /// Whether it is pulled now, once.
    fn is_pulled(&mut self, view: &LiveView<'_>) -> bool {
        let now = view.elapsed_ns;
        if self.pulled {
            return false;
        }
        let late = self.wanted.after.is_some_and(|after| now >= after);
        // As with requests for reports, taking the file away answers it.
        let found = || {
            let file = self.wanted.file.as_ref();
            file.is_some_and(|file| std::fs::remove_file(file).is_ok())
        };
        self.pulled = late || (self.look.is_now(now) && found());
        self.pulled
    }
}

impl Status {
    fn is_wanted(&mut self, view: &LiveView<'_>) -> bool {
        let now = view.elapsed_ns;
        let due = self.due.as_mut().is_some_and(|due| due.is_now(now));
        let asked = self.signal.swap(false, Ordering::Relaxed);
        // The file is a request; taking it away is how it is answered.
        let found = self.look.is_now(now) && std::fs::remove_file(&self.file).is_ok();
        (due || asked || found) && view.measured_ns > Nanos(0)
    }
}

impl Progress {
    fn observe(&mut self, plan: &Plan, view: &LiveView<'_>) {
        let now = view.elapsed_ns;
        if !self.due.is_now(now) {
            return;
        }
        let jobs = progress(plan, &view.jobs(), &view.ended());
        if let Some(text) = self.line.show(plan, &jobs, now.as_secs_f64()) {
            output::print(&text);
            self.line.breaks = self.breaks.as_mut().is_some_and(|due| due.is_now(now));
        }
    }
}

/// Every job of the plan, in its order.
fn progress(plan: &Plan, running: &[LiveJob], ended: &[LiveEnd]) -> Vec<JobProgress> {
    let jobs = plan.jobs().enumerate().map(|(index, (_, job))| {
        let clones = job.clones as usize;
        match running.iter().find(|j| j.index == index) {
            Some(live) => of_running(live),
            None => JobProgress {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_missed_is_not_made_up_for() {
        let mut due = Due::each(Nanos(100));
        let at = [50, 100, 150, 450, 460, 500, 599, 600].map(|t| due.is_now(Nanos(t)));
        assert_eq!(at, [false, true, false, true, false, true, false, true]);
    }
}
