//! Progress on standard error: a line on a terminal, plain lines in logs, JSON for programs.
//!
//! In: what the run shows of itself, looked at four times a second. Out: rates of the last second,
//! from differences of two views; of ranks together, how far they have come. Not here: the text of
//! the line (`weir-report`).

#![expect(clippy::cast_precision_loss, reason = "rates for the eye")]

use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::sync::{Mutex, PoisonError};

use weir_net::Seen;
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
    /// A line on a terminal, else none.
    pub(crate) fn of_terminal() -> Self {
        if io::stderr().is_terminal() {
            Self::Line
        } else {
            Self::None
        }
    }

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

/// Where progress is shown.
struct Place {
    mode: Mode,
    style: Style,
    next_look: Nanos,
    last_plain: Nanos,
    drawn: bool,
}

impl Place {
    fn new(mode: Mode) -> Self {
        let terminal = surroundings::terminal(&io::stderr());
        Self {
            mode,
            style: Style::detect(&Flags::default(), &surroundings::environment(), terminal),
            next_look: Nanos(0),
            last_plain: Nanos(0),
            drawn: false,
        }
    }

    /// Whether it is time for a look.
    fn is_due(&mut self, elapsed: Nanos) -> bool {
        let due = self.mode != Mode::None && elapsed >= self.next_look;
        if due {
            self.next_look = Nanos(elapsed.0 + LOOK_EVERY.0);
        }
        due
    }

    fn show(&mut self, snapshot: &Snapshot) {
        let elapsed = snapshot.t_ns;
        match self.mode {
            Mode::Line if elapsed >= QUIET => {
                let text = line(snapshot, self.style.width.saturating_sub(1), &self.style);
                output::error(&format!("\r\x1b[2K{text}"));
                self.drawn = true;
            }
            Mode::Plain if elapsed.0 >= self.last_plain.0 + PLAIN_EVERY.0 => {
                self.last_plain = elapsed;
                output::error(&(plain(snapshot, &self.style) + "\n"));
            }
            Mode::Json => output::error(&(json(snapshot) + "\n")),
            _ => {}
        }
    }

    fn erase(&mut self) {
        if self.drawn {
            output::error("\r\x1b[2K");
            self.drawn = false;
        }
    }
}

/// Progress of ranks together, as it is shown: at rank 0, from another thread than its own.
pub(crate) struct Together {
    job: String,
    place: Mutex<Place>,
}

impl Together {
    /// Nothing shown yet.
    pub(crate) fn new(mode: Mode, job: &str) -> Self {
        Self {
            job: job.to_owned(),
            place: Mutex::new(Place::new(mode)),
        }
    }

    /// Shows how far rank 0 has come.
    pub(crate) fn show(&self, seen: &Seen) {
        let elapsed = nanos(seen.elapsed);
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        if place.is_due(elapsed) {
            let (job, still) = (&self.job, nanos(seen.still));
            let left = seen.fraction.and_then(|part| eta(elapsed, part));
            place.show(&Snapshot {
                t_ns: elapsed,
                job: seen
                    .place
                    .map_or_else(|| job.clone(), |spot| format!("{job} {} B", spot.bytes)),
                done_fraction: seen.fraction,
                eta_ns: left,
                stall_ns: (still >= STALL).then_some(still),
                ..Snapshot::default()
            });
        }
    }

    /// Takes the line away, so that the result starts on a clean one.
    pub(crate) fn erase(&self) {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        place.erase();
        // Whoever looks once more shows nothing.
        place.mode = Mode::None;
    }
}

fn nanos(time: std::time::Duration) -> Nanos {
    Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// Progress as it is shown.
pub(crate) struct Shown {
    place: Place,
    jobs: usize,
    sums: VecDeque<Sum>,
    running: Vec<usize>,
    last_change: Nanos,
}

impl Shown {
    /// Nothing shown yet, of a plan of so many jobs.
    pub(crate) fn new(mode: Mode, jobs: usize) -> Self {
        Self {
            place: Place::new(mode),
            jobs,
            sums: VecDeque::new(),
            running: Vec::new(),
            last_change: Nanos(0),
        }
    }

    /// Shows a view.
    pub(crate) fn show(&mut self, view: &LiveView<'_>) {
        let mut jobs = view.jobs();
        // One that gets ready has nothing to show, and does not stall.
        jobs.retain(|job| job.released);
        if !jobs.is_empty() && self.place.is_due(view.elapsed_ns) {
            let snapshot = self.snapshot(view.elapsed_ns, &jobs);
            self.place.show(&snapshot);
        }
    }

    /// Takes the line away, so that the report starts on a clean one.
    pub(crate) fn erase(&mut self) {
        self.place.erase();
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
            errors: Some(jobs.iter().map(|j| j.errors).sum()),
            eta_ns: fraction.and_then(|f| eta(jobs.iter().map(|j| j.elapsed_ns).max()?, f)),
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
fn eta(elapsed: Nanos, fraction: f64) -> Option<Nanos> {
    (fraction > 0.0).then(|| Nanos((elapsed.0 as f64 * (1.0 / fraction - 1.0)) as u64))
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
