//! The watch: one beat per exchange, and a thread that looks whether beats still come.
//!
//! In: beats (a relaxed store each), signals. Out: the word to stop, with its cause. Transports
//! look at it whenever they wait for long; nobody looks in the loop.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use weir_run::execute::Signals;

use crate::error::{Halt, Spot};

/// Longest sleep between two looks: what Ctrl-C may have to wait for.
const LOOK: Duration = Duration::from_millis(50);

/// A rank that was told to stop does so within this time, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(1);

const SILENT: u8 = 1;
const INTERRUPTED: u8 = 2;

/// Nothing panics while holding these.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One rank's watch.
#[expect(missing_debug_implementations, reason = "holds a function")]
pub struct Watch {
    beats: AtomicU64,
    stop: AtomicU8,
    over: AtomicBool,
    limit: Duration,
    /// Where the rank is, for its last words.
    place: Mutex<Option<Spot>>,
    /// Ends a rank that hangs in a call which nothing else can end.
    at_last: Mutex<Option<LastResort>>,
}

type LastResort = Box<dyn FnOnce() + Send>;

impl Watch {
    /// Nothing may last longer than `limit` without a beat.
    pub fn new(limit: Duration) -> Self {
        Self {
            beats: AtomicU64::new(0),
            stop: AtomicU8::new(0),
            over: AtomicBool::new(false),
            limit,
            place: Mutex::default(),
            at_last: Mutex::default(),
        }
    }

    /// The rank is here now.
    pub(crate) fn stand_at(&self, spot: Spot) {
        *lock(&self.place) = Some(spot);
    }

    /// What ends the process where the rank does not come back by itself.
    pub(crate) fn at_last(&self, end: impl FnOnce() + Send + 'static) {
        *lock(&self.at_last) = Some(Box::new(end));
    }

    /// How long nothing may happen.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Something happened. One writer: the rank's own thread.
    #[inline]
    pub fn beat(&self) {
        let beats = self.beats.load(Ordering::Relaxed);
        self.beats.store(beats.wrapping_add(1), Ordering::Relaxed);
    }

    /// The rank is to end.
    #[inline]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) != 0
    }

    /// An error once the rank is to end.
    ///
    /// # Errors
    /// [`Halt::Stopped`].
    #[inline]
    pub fn check(&self) -> Result<(), Halt> {
        if self.stopped() {
            return Err(Halt::Stopped);
        }
        Ok(())
    }

    /// Why, in place of a [`Halt::Stopped`].
    pub(crate) fn cause(&self, halt: Halt) -> Halt {
        match (halt, self.stop.load(Ordering::Relaxed)) {
            (Halt::Stopped, SILENT) => Halt::Silent {
                seconds: self.limit.as_secs_f64(),
            },
            (_, INTERRUPTED) => Halt::Interrupted,
            (halt, _) => halt,
        }
    }

    /// Does this, and guards it meanwhile.
    pub(crate) fn over<R>(&self, signals: &Signals, work: impl FnOnce() -> R) -> R {
        std::thread::scope(|scope| {
            let guard = scope.spawn(|| self.guard(signals));
            let _end = End(self, guard.thread());
            work()
        })
    }

    /// Ends [`Watch::guard`].
    fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Looks until [`Watch::end`], on a thread of its own that is unparked then.
    fn guard(&self, signals: &Signals) {
        let pause = LOOK.min(self.limit / 8).max(Duration::from_millis(1));
        let mut seen = self.beats.load(Ordering::Relaxed);
        let mut since = Instant::now();
        let mut told = None;
        while !self.over.load(Ordering::Acquire) {
            std::thread::park_timeout(pause);
            let beats = self.beats.load(Ordering::Relaxed);
            if beats != seen {
                (seen, since) = (beats, Instant::now());
            }
            if signals.interrupted() {
                self.tell(INTERRUPTED);
            } else if since.elapsed() > self.limit {
                self.tell(SILENT);
            }
            if self.stopped() && told.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                self.end_hung();
            }
        }
    }

    /// The rank was told to stop and still hangs in a call. Nobody but this thread can say so,
    /// and nobody after it.
    fn end_hung(&self) {
        let Some(end) = lock(&self.at_last).take() else {
            return;
        };
        if let (SILENT, Some(spot)) = (self.stop.load(Ordering::Relaxed), *lock(&self.place)) {
            let seconds = self.limit.as_secs_f64();
            let words = format!("error: {spot}: no progress for {seconds} s\n");
            let _ = std::io::stderr().write_all(words.as_bytes());
        }
        end();
    }

    /// The first cause stays.
    fn tell(&self, cause: u8) {
        let _ = self
            .stop
            .compare_exchange(0, cause, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Ends the watch, also when the work panics.
struct End<'a>(&'a Watch, &'a Thread);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.end();
        self.1.unpark();
    }
}
