//! Progress on standard error: a line on a terminal, plain lines in logs, JSON for programs.
//!
//! In: what the run shows of itself, looked at four times a second; `SIGUSR1`, at which a plain line comes
//! whatever else is shown. Out: rates of the last second, from differences of two views; of ranks
//! together, how far they have come. Not here: the text of
//! the line (`weir-report`).

#![expect(clippy::cast_precision_loss, reason = "rates for the eye")]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use signal_hook::consts::SIGUSR1;
use signal_hook::flag;
use weir_doors::Voice;
use weir_doors::beff::in_flags;
use weir_doors::fio;
use weir_doors::house::{ProgressStyle, Run};
use weir_report::progress::{Activity, Snapshot, json, line, plain};
use weir_report::{Flags, Style, clean};
use weir_run::RankPosition;
use weir_run::execute::{LiveJob, LiveState, LiveView};
use weir_schema::{Announcement, Job, Plan, RunResult, Workload};
use weir_stats::Histogram;
use weir_units::{BytesPerSec, Iops, Nanos};

use crate::measure::{RunObserver, refused};
use crate::stall::StallWatch;
use crate::turns::WHICH_RUN;
use crate::{environment, output};

/// The run is looked at this often.
const LOOK_EVERY: Nanos = Nanos(250_000_000);
/// Rates are those of about the last second.
const WINDOW: Nanos = Nanos(1_000_000_000);
/// Time between plain lines.
const PLAIN_EVERY: Nanos = Nanos(10_000_000_000);
/// Time without a completion that counts as a stall.
const STALL: Nanos = Nanos(1_500_000_000);
/// A run shorter than this shows no line.
const QUIET: Nanos = Nanos(1_000_000_000);

/// Display of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressMode {
    /// One line, rewritten each time.
    Line,
    /// A new line every 10 s.
    Plain,
    /// A JSON line each time.
    Json,
    /// No display.
    None,
}

impl ProgressMode {
    /// Mode of a run on this terminal.
    pub(crate) fn of_run(run: &Run) -> Self {
        match (run.voice, run.options.progress) {
            (Voice::Peer, ProgressStyle::Auto) => Self::of_terminal(),
            (_, style) => Self::of_style(style),
        }
    }

    /// Mode for this style on this terminal.
    pub(crate) fn of_style(style: ProgressStyle) -> Self {
        match style {
            ProgressStyle::Auto => Self::detect(),
            ProgressStyle::Plain => Self::Plain,
            ProgressStyle::None => Self::None,
            ProgressStyle::Json => Self::Json,
        }
    }

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

/// Sum over all running jobs at an instant.
#[derive(Clone)]
struct Sum {
    at: Nanos,
    operations: u64,
    bytes: u64,
    latency: Histogram,
}

/// Place of the progress on standard error.
struct Place {
    mode: ProgressMode,
    style: Style,
    next_look: Nanos,
    last_plain: Nanos,
    drawn: bool,
    /// A progress line was requested.
    asked: Arc<AtomicBool>,
}

impl Place {
    fn new(mode: ProgressMode) -> Self {
        let terminal = environment::terminal(&io::stderr());
        let asked = Arc::new(AtomicBool::new(false));
        // Where it cannot be caught, it ends this program as it ends others.
        let _ = flag::register(SIGUSR1, Arc::clone(&asked));
        Self {
            asked,
            mode,
            style: Style::detect(&Flags::default(), &environment::variables(), terminal),
            next_look: Nanos(0),
            last_plain: Nanos(0),
            drawn: false,
        }
    }

    /// True if it is time to update the display.
    fn is_due(&mut self, elapsed: Nanos) -> bool {
        let wanted = self.mode != ProgressMode::None || self.asked.load(Ordering::Relaxed);
        let due = wanted && elapsed >= self.next_look;
        if due {
            self.next_look = Nanos(elapsed.0 + LOOK_EVERY.0);
        }
        due
    }

    fn show(&mut self, snapshot: &Snapshot) {
        let elapsed = snapshot.t_ns;
        // The first look at workers has no earlier one from which it would know rates.
        let is_first = snapshot.errors.is_some() && snapshot.ops_per_s.is_none();
        if !is_first && self.asked.swap(false, Ordering::Relaxed) {
            self.erase();
            output::error(&(plain(snapshot, &self.style) + "\n"));
        }
        match self.mode {
            ProgressMode::Line if elapsed >= QUIET => {
                let text = line(snapshot, self.style.width.saturating_sub(1), &self.style);
                output::error(&format!("\r\x1b[2K{text}"));
                self.drawn = true;
            }
            ProgressMode::Plain if elapsed.0 >= self.last_plain.0 + PLAIN_EVERY.0 => {
                self.last_plain = elapsed;
                output::error(&(plain(snapshot, &self.style) + "\n"));
            }
            ProgressMode::Json => output::error(&(json(snapshot) + "\n")),
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

/// Progress of turns that show none themselves.
pub(crate) struct TurnProgress {
    place: Place,
    begin: Instant,
    /// Turns that are over, and all turns.
    over: usize,
    turns: usize,
}

impl TurnProgress {
    pub(crate) fn new(mode: ProgressMode, turns: usize) -> Self {
        Self {
            place: Place::new(mode),
            begin: Instant::now(),
            over: 0,
            turns,
        }
    }

    /// A turn is over.
    pub(crate) fn next(&mut self) {
        self.over += 1;
    }

    /// Somebody has this turn.
    pub(crate) fn look(&mut self, whose: &str) {
        let elapsed = Nanos(u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX));
        if self.place.is_due(elapsed) {
            self.place.show(&Snapshot {
                t_ns: elapsed,
                job: whose.to_owned(),
                done_fraction: (self.turns > 0).then(|| self.over as f64 / self.turns as f64),
                eta_ns: self.left(elapsed),
                ..Snapshot::default()
            });
        }
    }

    /// Time left, if the remaining turns take as long as those so far. The present one may be nearly over.
    fn left(&self, elapsed: Nanos) -> Option<Nanos> {
        let (over, turns) = (self.over as u64, self.turns as u64);
        let all = elapsed.0.checked_mul(turns)?.checked_div(over)?;
        Some(Nanos(all.saturating_sub(elapsed.0)))
    }

    pub(crate) fn erase(&mut self) {
        self.place.erase();
    }
}

/// Observer for doors without a progress line of their own: prints announcements and the progress line.
pub(crate) struct ProgressObserver {
    shown: RefCell<Shown>,
    /// Jobs are named where one cannot run.
    names_jobs: bool,
    /// Why jobs without names were refused: they are often refused alike.
    refused: RefCell<Vec<String>>,
    stall: Option<StallWatch>,
}

impl ProgressObserver {
    /// Nothing shown yet.
    pub(crate) fn new(mode: ProgressMode, plan: &Plan, names_jobs: bool) -> Self {
        let all_call = plan
            .jobs()
            .all(|(_, job)| matches!(job.workload, Workload::Rpc(_)));
        Self {
            shown: RefCell::new(Shown {
                quiet_after: plan.jobs().map(|(_, job)| quiet_after(job)).collect(),
                beginning: all_call.then_some("warm-up"),
                ..Shown::new(mode, plan.jobs().count())
            }),
            names_jobs,
            refused: RefCell::default(),
            stall: None,
        }
    }

    /// The same with a note when nothing has ended for so long.
    pub(crate) fn with_stall(self, limit: Option<Nanos>, plan: &Plan) -> Self {
        Self {
            stall: limit.map(|limit| StallWatch::new(limit, plan)),
            ..self
        }
    }

    /// Takes the line away, for something else to be printed.
    pub(crate) fn erase(&self) {
        self.shown.borrow_mut().erase();
    }
}

impl RunObserver for ProgressObserver {
    fn announce(&self, announcement: &Announcement) {
        // Names are those of a plan, which may hold anything.
        let text = clean(&fio::announcement(announcement), false);
        output::error(&format!("{text}\n"));
    }

    fn observe(&self, view: &LiveView<'_>) {
        self.shown.borrow_mut().show(view);
        if let Some(note) = self.stall.as_ref().and_then(|stall| stall.look(view)) {
            self.erase();
            output::error(&note);
        }
    }

    fn done(&self, _result: &mut RunResult) {
        self.shown.borrow_mut().erase();
    }

    fn refusal(&self, job: &str, why: &str) -> String {
        if self.names_jobs {
            return refused(&clean(job, false), why);
        }
        let mut refused = self.refused.borrow_mut();
        if refused.iter().any(|known| known == why) {
            return String::new();
        }
        refused.push(why.to_owned());
        format!("error: {}\n", in_flags(why))
    }
}

/// Progress as it is shown.
pub(crate) struct Shown {
    place: Place,
    jobs: usize,
    /// Label of the run, where there are several.
    run: Option<String>,
    sums: VecDeque<Sum>,
    running: Vec<usize>,
    last_change: Nanos,
    /// Time after which each job begins nothing, by its place in the plan. No answer is no stall then.
    quiet_after: Vec<Option<Nanos>>,
    /// Step of the jobs before they measure.
    beginning: Option<&'static str>,
}

impl Shown {
    /// Display of a plan of `jobs` jobs, with nothing shown yet.
    pub(crate) fn new(mode: ProgressMode, jobs: usize) -> Self {
        Self {
            place: Place::new(mode),
            jobs,
            run: std::env::var(WHICH_RUN).ok(),
            sums: VecDeque::new(),
            running: Vec::new(),
            last_change: Nanos(0),
            quiet_after: Vec::new(),
            beginning: None,
        }
    }

    /// Shows a view.
    pub(crate) fn show(&mut self, view: &LiveView<'_>) {
        // The run comes by at every round, and what its jobs show is dear where there are many.
        let begins = view.measured_ns == Nanos(0);
        if (begins && self.beginning.is_none()) || !self.place.is_due(view.elapsed_ns) {
            return;
        }
        let mut jobs = view.jobs();
        if let Some(beginning) = self.beginning
            && !jobs.iter().any(|job| job.released)
            && !jobs.is_empty()
        {
            return self.place.show(&Snapshot {
                t_ns: view.elapsed_ns,
                job: format!("{}: {beginning}", self.name(&jobs)),
                ..Snapshot::default()
            });
        }
        // One that gets ready has nothing to show, and does not stall.
        jobs.retain(|job| job.released);
        if !jobs.is_empty() {
            let snapshot = self.snapshot(view.elapsed_ns, &jobs);
            self.place.show(&snapshot);
        }
    }

    /// Takes the line away, so that the report starts on a clean one.
    pub(crate) fn erase(&mut self) {
        self.place.erase();
    }

    fn snapshot(&mut self, elapsed: Nanos, jobs: &[LiveJob]) -> Snapshot {
        if let [
            LiveJob {
                ranks: Some(position),
                ..
            },
        ] = jobs
        {
            return of_ranks(elapsed, &jobs[0], position);
        }
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
        let is_quiet = |job: &LiveJob| {
            let after = self.quiet_after.get(job.index).copied().flatten();
            after.is_some_and(|after| job.elapsed_ns >= after)
        };
        let stalled = Some(stalled).filter(|time| *time >= STALL && !jobs.iter().all(is_quiet));
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
            stall_ns: stalled,
        }
    }

    fn name(&self, jobs: &[LiveJob]) -> String {
        let name = match jobs {
            [job] => job.name.clone(),
            jobs => format!("{} of {} jobs", jobs.len(), self.jobs),
        };
        match &self.run {
            Some(run) => format!("{run}, {name}"),
            None => name,
        }
    }
}

/// Snapshot of a job of joint ranks. Nothing is counted before its end but its position.
fn of_ranks(elapsed: Nanos, job: &LiveJob, position: &RankPosition) -> Snapshot {
    let still = nanos(position.still);
    Snapshot {
        t_ns: elapsed,
        job: match &position.at {
            Some(at) => format!("{} {at}", job.name),
            None => job.name.clone(),
        },
        done_fraction: position.fraction,
        eta_ns: position.fraction.and_then(|part| eta(job.elapsed_ns, part)),
        stall_ns: (still >= STALL).then_some(still),
        ..Snapshot::default()
    }
}

/// A packet path begins no message after its time, and waits for the last answers.
fn quiet_after(job: &Job) -> Option<Nanos> {
    match &job.workload {
        Workload::PacketPath(work) => Some(work.duration_ns.saturating_mul(work.iterations.into())),
        _ => None,
    }
}

fn nanos(time: std::time::Duration) -> Nanos {
    Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
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
pub(crate) fn eta(elapsed: Nanos, fraction: f64) -> Option<Nanos> {
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
