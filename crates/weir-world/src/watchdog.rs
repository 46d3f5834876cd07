//! The watchdog of a rank: one note of progress per step, and a thread that looks whether notes
//! still come.
//!
//! In: notes of progress (a relaxed store each), steps, signals, the loss of a rank. Out: the order
//! to stop, with its cause, and how far the rank has come, for whoever wants to see it. Whoever
//! waits for long looks at it; nobody looks in a loop that is timed. Not here: where in its work
//! the rank is, which its owner knows.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{Builder, Thread};
use std::time::{Duration, Instant};

use weir_sys::Signals;

use crate::rank_monitor::RankState;
use crate::{CommError, RankMonitor, WorldError};

/// Longest sleep between two looks: what Ctrl-C may have to wait for.
const LOOK: Duration = Duration::from_millis(50);

/// Time without progress that one look may add: a longer sleep was this process's own stop.
const MOST_CHARGED: Duration = Duration::from_millis(500);

/// A rank that was stopped comes back within this time, unless it hangs.
const RETURN_WAIT: Duration = Duration::from_secs(1);

/// Beyond the time-out, for rank 0 to end all by itself.
const FIRST: Duration = Duration::from_secs(3);

const SILENT: u8 = 1;
const INTERRUPTED: u8 = 2;
const LOST: u8 = 3;

/// Nothing panics while holding these.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reason that a watchdog stopped its rank.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StopCause {
    /// There was no progress for too long.
    #[error("no progress for {seconds} s")]
    NoProgress {
        /// Length of the time without progress.
        seconds: f64,
    },
    /// A signal.
    #[error("interrupted")]
    Interrupted,
    /// A rank was lost.
    #[error(transparent)]
    Lost(WorldError),
}

/// Progress of a rank.
#[derive(Clone, Copy, Debug)]
pub struct WorkProgress {
    /// Since it began.
    pub elapsed: Duration,
    /// The part of its steps that is done, where known.
    pub fraction: Option<f64>,
    /// For how long there has been no progress.
    pub still: Duration,
}

/// Actions that the owner of a rank's work takes on the watchdog's thread.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "holds functions")]
pub struct Supervisor<'a> {
    /// Is shown how far the rank has come, some times per second.
    pub on_progress: Option<&'a (dyn Fn(&WorkProgress) + Sync)>,
    /// The rank hangs in a call and the process has to end: reports what was done, and answers the
    /// exit code. Without it the cause is printed.
    pub hung: Option<&'a (dyn Fn(&StopCause) -> u8 + Sync)>,
    /// Makes a message of the reason that the rank ends, with its place.
    pub describe: &'a (dyn Fn(&StopCause) -> String + Sync),
}

/// External causes that stop a rank.
#[derive(Clone, Copy)]
pub(crate) struct External<'a> {
    pub(crate) signals: &'a Signals,
    /// The other ranks, one of which may be lost.
    pub(crate) monitor: Option<&'a RankMonitor>,
}

/// One rank's watchdog.
#[expect(missing_debug_implementations, reason = "holds a function")]
pub struct Watchdog {
    /// Notes of progress.
    notes: AtomicU64,
    /// Done, and in all.
    steps: AtomicU64,
    expected: AtomicU64,
    stop: AtomicU8,
    /// Loss of a rank, where one was lost.
    lost: OnceLock<WorldError>,
    over: AtomicBool,
    limit: Duration,
    /// Ends a rank that hangs in a call which nothing else can end.
    on_hang: Mutex<Option<EndProcess>>,
    /// That is being done. Stored while `on_hang` is locked.
    ending: AtomicBool,
}

/// Ends the process with this exit code.
pub(crate) type EndProcess = Box<dyn FnOnce(u8) + Send>;

impl Watchdog {
    /// Nothing may last longer than `limit` without progress.
    pub fn new(limit: Duration) -> Self {
        Self {
            notes: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            expected: AtomicU64::new(0),
            stop: AtomicU8::new(0),
            lost: OnceLock::new(),
            over: AtomicBool::new(false),
            limit,
            on_hang: Mutex::default(),
            ending: AtomicBool::new(false),
        }
    }

    /// Sets the function that ends the process where the rank does not come back by itself.
    pub fn on_hang(&self, end: impl FnOnce(u8) + Send + 'static) {
        *lock(&self.on_hang) = Some(Box::new(end));
    }

    /// The same, where nothing is set yet.
    pub fn on_hang_unless_set(&self, end: impl FnOnce(u8) + Send + 'static) {
        lock(&self.on_hang).get_or_insert_with(|| Box::new(end));
    }

    /// The rank came back by itself, and hangs in no call any more: here is what would have ended
    /// it.
    pub(crate) fn disarm(&self) -> Option<EndProcess> {
        let on_hang = lock(&self.on_hang).take();
        while self.ending.load(Ordering::Acquire) {
            // The process is being ended.
            std::thread::park();
        }
        on_hang
    }

    /// Longest time without progress.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Something happened. One writer: the rank's own thread.
    #[inline]
    pub fn progress(&self) {
        let notes = self.notes.load(Ordering::Relaxed);
        self.notes.store(notes.wrapping_add(1), Ordering::Relaxed);
    }

    /// This many steps there are in all, as far as is known.
    pub fn expect(&self, steps: u64) {
        self.expected.store(steps, Ordering::Relaxed);
    }

    /// One more is done.
    pub fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// This many are done.
    pub fn step_to(&self, steps: u64) {
        self.steps.store(steps, Ordering::Relaxed);
    }

    fn fraction(&self) -> Option<f64> {
        let [steps, expected] = [&self.steps, &self.expected].map(|n| n.load(Ordering::Relaxed));
        #[expect(clippy::cast_precision_loss, reason = "for the eye")]
        let part = steps as f64 / expected as f64;
        (expected > 0).then(|| part.min(1.0))
    }

    /// The rank is to end.
    #[inline]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) != 0
    }

    /// An error once the rank is to end.
    ///
    /// # Errors
    /// [`CommError::Stopped`].
    #[inline]
    pub fn check(&self) -> Result<(), CommError> {
        if self.stopped() {
            return Err(CommError::Stopped);
        }
        Ok(())
    }

    /// Reason that the rank is to end, if it is.
    pub fn stop_cause(&self) -> Option<StopCause> {
        match self.stop.load(Ordering::Relaxed) {
            SILENT => Some(StopCause::NoProgress {
                seconds: self.limit.as_secs_f64(),
            }),
            INTERRUPTED => Some(StopCause::Interrupted),
            _ => self.lost.get().cloned().map(StopCause::Lost),
        }
    }

    /// Does this, as the rank of this number, and guards it meanwhile.
    ///
    /// # Errors
    /// There is no thread to guard it; then nothing is done.
    pub(crate) fn guard<R>(
        &self,
        rank: u32,
        external: External<'_>,
        supervisor: Supervisor<'_>,
        work: impl FnOnce() -> R,
    ) -> io::Result<R> {
        std::thread::scope(|scope| {
            let watch = || self.watch(rank, external, supervisor);
            let thread = Builder::new().spawn_scoped(scope, watch)?;
            let _end = End(self, thread.thread());
            Ok(work())
        })
    }

    /// Looks until the work is over, on a thread of its own that is unparked then.
    fn watch(&self, rank: u32, external: External<'_>, supervisor: Supervisor<'_>) {
        let begun = Instant::now();
        let pause = LOOK.min(self.limit / 8).max(Duration::from_millis(1));
        let mut seen = self.notes.load(Ordering::Relaxed);
        let (mut looked, mut still) = (begun, Duration::ZERO);
        let mut hanging = Duration::ZERO;
        while !self.over.load(Ordering::Acquire) {
            std::thread::park_timeout(pause);
            let now = Instant::now();
            let passed = (now - looked).min(MOST_CHARGED);
            looked = now;
            let notes = self.notes.load(Ordering::Relaxed);
            still += passed;
            if notes != seen {
                (seen, still) = (notes, Duration::ZERO);
            }
            self.look_outside(external, still);
            if let Some(on_progress) = supervisor.on_progress {
                on_progress(&WorkProgress {
                    elapsed: begun.elapsed(),
                    fraction: self.fraction(),
                    still,
                });
            }
            if self.stopped() {
                hanging += passed;
                self.look_at_hang(rank, hanging, external, supervisor);
            }
        }
    }

    /// Stops the rank where something outside of it, or its own rest, asks for that.
    fn look_outside(&self, external: External<'_>, still: Duration) {
        let mut is_silent = still > self.limit;
        if let Some(monitor) = external.monitor {
            if is_silent && !self.stopped() {
                is_silent = monitor.explain_no_progress();
            }
            if let Some(lost) = monitor.lost()
                && !external.signals.interrupted()
            {
                self.lost.get_or_init(|| lost);
                self.stop(LOST);
            }
        }
        if external.signals.interrupted() {
            self.stop(INTERRUPTED);
        } else if is_silent {
            self.stop(SILENT);
        }
    }

    /// The rank was stopped, and has not come back for so long. The first rank has something to
    /// report before others end everybody: these wait for it as long as it is there.
    fn look_at_hang(
        &self,
        rank: u32,
        hanging: Duration,
        external: External<'_>,
        supervisor: Supervisor<'_>,
    ) {
        let reports_for_first = rank == 1 && self.has_lost(0);
        let patience = match supervisor.hung {
            _ if reports_for_first => RETURN_WAIT / 8,
            Some(_) => RETURN_WAIT / 3,
            None => RETURN_WAIT,
        };
        if hanging <= patience {
            return;
        }
        let monitor = external.monitor.filter(|_| rank != 0);
        if let Some(monitor) = monitor.filter(|monitor| monitor.state_of(0).is_some()) {
            monitor.set_own_state(RankState::Hangs);
            if hanging < patience + self.limit + FIRST {
                return;
            }
        }
        self.end_hung(rank, external.signals, supervisor);
    }

    /// The rank was stopped and still hangs in a call. Nobody but this thread can say so, and
    /// nobody after it.
    fn end_hung(&self, rank: u32, signals: &Signals, supervisor: Supervisor<'_>) {
        let mut on_hang = lock(&self.on_hang);
        let Some(end) = on_hang.take() else {
            return;
        };
        self.ending.store(true, Ordering::Release);
        drop(on_hang);
        let cause = self.stop_cause().unwrap_or(StopCause::Interrupted);
        end(match supervisor.hung {
            Some(report) => report(&cause),
            None if cause == StopCause::Interrupted => {
                print_interrupted(rank, signals.number.load(Ordering::Relaxed))
            }
            // Of all that have lost rank 0 the lowest says so.
            None if rank > 1 && self.has_lost(0) => 1,
            None => {
                print(&format!("error: {}\n", (supervisor.describe)(&cause)));
                1
            }
        });
    }

    /// True if the loss of this rank stopped the present one.
    fn has_lost(&self, rank: u32) -> bool {
        self.lost.get().and_then(WorldError::peer) == Some(rank)
    }

    /// The first cause stays.
    fn stop(&self, cause: u8) {
        let _ = self
            .stop
            .compare_exchange(0, cause, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// To standard error: for what no rank is left to report.
pub(crate) fn print(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Says that a signal ended all by way of this rank, which rank 0 could not say. The exit code.
pub(crate) fn print_interrupted(rank: u32, number: i32) -> u8 {
    let signal = match number {
        // The rank that got the signal says so.
        0 => return 1,
        1 => "SIGHUP".to_owned(),
        2 => "SIGINT".to_owned(),
        15 => "SIGTERM".to_owned(),
        other => format!("signal {other}"),
    };
    print(&format!("rank {rank}: interrupted by {signal}\n"));
    u8::try_from(number).map_or(1, |number| number.saturating_add(128))
}

/// Ends the watchdog's thread, also when the work panics.
struct End<'a>(&'a Watchdog, &'a Thread);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Release);
        self.1.unpark();
    }
}
