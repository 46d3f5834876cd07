//! Progress on standard error: a line on a terminal, plain lines in logs, JSON for programs.
//!
//! In: what the run shows of itself, looked at four times a second. Out: rates of the last second,
//! from differences of two views. Not here: the text of the line (`weir-report`).

#![expect(clippy::cast_precision_loss, reason = "rates for the eye")]

use std::collections::VecDeque;
use std::io::{self, IsTerminal};

use weir_report::progress::{Activity, Snapshot, json, line, plain};
use weir_report::{Flags, Style};
use weir_run::execute::{LiveJob, LiveState, LiveView};
use weir_stats::Histogram;
use weir_units::{BytesPerSec, Iops, Nanos};

use crate::{output, surroundings};

/// The run is looked at this often.
const LOOK_EVERY: Nanos = Nanos(250_000_000);
/// Rates are those of about the last second.
const WINDOW: Nanos = Nanos(1_000_000_000);
/// Plain lines come this often.
const PLAIN_EVERY: Nanos = Nanos(10_000_000_000);
/// Nothing completed for this long is a stall.
const STALL: Nanos = Nanos(1_500_000_000);
/// A run shorter than this shows no line.
const QUIET: Nanos = Nanos(1_000_000_000);

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// One line, rewritten.
    Line,
    /// A new line every 10 s.
    Plain,
    /// A JSON line each time.
    Json,
    /// Not at all.
    None,
}

impl Mode {
    /// A line on a terminal; plain in CI, else none.
    pub(crate) fn detect() -> Self {
        if io::stderr().is_terminal() {
            Self::Line
        } else if std::env::var_os("CI").is_some() {
            Self::Plain
        } else {
            Self::None
        }
    }
}

/// What all running jobs together had done at an instant.
#[derive(Clone)]
struct Sum {
    at: Nanos,
    operations: u64,
    bytes: u64,
    latency: Histogram,
}

/// Progress as it is shown.
pub(crate) struct Shown {
    mode: Mode,
    style: Style,
    jobs: usize,
    sums: VecDeque<Sum>,
    running: Vec<usize>,
    next_look: Nanos,
    last_change: Nanos,
    last_plain: Nanos,
    drawn: bool,
}

impl Shown {
    /// Nothing shown yet, of a plan of so many jobs.
    pub(crate) fn new(mode: Mode, jobs: usize) -> Self {
        let terminal = surroundings::terminal(&io::stderr());
        Self {
            mode,
            style: Style::detect(&Flags::default(), &surroundings::environment(), terminal),
            jobs,
            sums: VecDeque::new(),
            running: Vec::new(),
            next_look: Nanos(0),
            last_change: Nanos(0),
            last_plain: Nanos(0),
            drawn: false,
        }
    }

    /// Shows a view.
    pub(crate) fn show(&mut self, view: &LiveView<'_>) {
        if self.mode == Mode::None || view.elapsed_ns < self.next_look {
            return;
        }
        let jobs = view.jobs();
        if jobs.is_empty() {
            return;
        }
        self.next_look = Nanos(view.elapsed_ns.0 + LOOK_EVERY.0);
        let snapshot = self.snapshot(view.elapsed_ns, &jobs);
        match self.mode {
            Mode::Line if view.elapsed_ns >= QUIET => {
                let text = line(&snapshot, self.style.width.saturating_sub(1), &self.style);
                output::error(&format!("\r\x1b[2K{text}"));
                self.drawn = true;
            }
            Mode::Plain if view.elapsed_ns.0 >= self.last_plain.0 + PLAIN_EVERY.0 => {
                self.last_plain = view.elapsed_ns;
                output::error(&(plain(&snapshot, &self.style) + "\n"));
            }
            Mode::Json => output::error(&(json(&snapshot) + "\n")),
            _ => {}
        }
    }

    /// Takes the line away, so that the report starts on a clean one.
    pub(crate) fn erase(&mut self) {
        if self.drawn {
            output::error("\r\x1b[2K");
            self.drawn = false;
        }
    }

    fn snapshot(&mut self, elapsed: Nanos, jobs: &[LiveJob]) -> Snapshot {
        let sum = total(elapsed, jobs);
        let running: Vec<usize> = jobs.iter().map(|j| j.index).collect();
        if running != self.running {
            // Other jobs: differences to what the earlier ones did would say nothing.
            self.sums.clear();
            self.running = running;
            self.last_change = sum.at;
        }
        if self
            .sums
            .back()
            .is_none_or(|s| s.operations != sum.operations)
        {
            self.last_change = sum.at;
        }
        self.sums.push_back(sum.clone());
        while self.sums.len() > 2 && sum.at.0 - self.sums[1].at.0 >= WINDOW.0 {
            self.sums.pop_front();
        }
        let first = self.sums.front().filter(|f| f.at < sum.at);
        let over = |n: u64, seconds: f64| n as f64 / seconds;
        let since = first.map(|f| (f, (sum.at.0 - f.at.0) as f64 / 1e9));
        let p99 = since.and_then(|(f, _)| sum.latency.since(&f.latency).ok()?.percentile(99.0));
        let stalled = Nanos(sum.at.0 - self.last_change.0);
        let fraction = fraction(jobs);
        Snapshot {
            t_ns: elapsed,
            job: self.name(jobs),
            state: activity(jobs),
            done_fraction: fraction,
            ops_per_s: since.map(|(f, s)| Iops(over(sum.operations - f.operations, s))),
            bytes_per_s: since.map(|(f, s)| BytesPerSec(over(sum.bytes - f.bytes, s))),
            p99_ns: p99.map(Nanos),
            in_flight: Some(jobs.iter().map(|j| j.in_flight).sum()),
            errors: jobs.iter().map(|j| j.errors).sum(),
            eta_ns: fraction.and_then(|f| eta(jobs, f)),
            stall_ns: (stalled >= STALL).then_some(stalled),
        }
    }

    fn name(&self, jobs: &[LiveJob]) -> String {
        match jobs {
            [job] => job.name.clone(),
            jobs => format!("{} of {} jobs", jobs.len(), self.jobs),
        }
    }
}

fn total(elapsed: Nanos, jobs: &[LiveJob]) -> Sum {
    let mut latency = Histogram::new();
    for job in jobs {
        // All live histograms have the default precision.
        let _ = latency.merge(&job.latency);
    }
    Sum {
        at: elapsed,
        operations: jobs.iter().map(|j| j.operations).sum(),
        bytes: jobs.iter().map(|j| j.bytes.0).sum(),
        latency,
    }
}

/// The job that will take longest decides.
fn fraction(jobs: &[LiveJob]) -> Option<f64> {
    jobs.iter()
        .map(|j| j.fraction)
        .collect::<Option<Vec<f64>>>()?
        .into_iter()
        .min_by(f64::total_cmp)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate of time"
)]
fn eta(jobs: &[LiveJob], fraction: f64) -> Option<Nanos> {
    let elapsed = jobs.iter().map(|j| j.elapsed_ns.0).max()?;
    (fraction > 0.0).then(|| Nanos((elapsed as f64 * (1.0 / fraction - 1.0)) as u64))
}

fn activity(jobs: &[LiveJob]) -> Activity {
    if jobs.iter().all(|j| j.state == LiveState::Ramp) {
        Activity::Ramp
    } else if jobs.iter().all(|j| matches!(j.state, LiveState::Ending(_))) {
        Activity::Drain
    } else {
        Activity::Measure
    }
}
