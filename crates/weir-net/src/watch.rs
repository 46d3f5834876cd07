//! The watch: one beat per exchange, and a thread that looks whether beats still come.
//!
//! In: beats (a relaxed store each), signals. Out: the word to stop, with its cause. Transports
//! look at it whenever they wait for long; nobody looks in the loop.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use weir_run::execute::Signals;

use crate::error::Halt;

/// Longest sleep between two looks: what Ctrl-C may have to wait for.
const LOOK: Duration = Duration::from_millis(50);

const SILENT: u8 = 1;
const INTERRUPTED: u8 = 2;

/// One rank's watch.
#[derive(Debug)]
pub struct Watch {
    beats: AtomicU64,
    stop: AtomicU8,
    over: AtomicBool,
    limit: Duration,
}

impl Watch {
    /// Nothing may last longer than `limit` without a beat.
    pub fn new(limit: Duration) -> Self {
        Self {
            beats: AtomicU64::new(0),
            stop: AtomicU8::new(0),
            over: AtomicBool::new(false),
            limit,
        }
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

    /// Ends [`Watch::guard`].
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Looks until [`Watch::end`], on a thread of its own that is unparked then.
    pub(crate) fn guard(&self, signals: &Signals) {
        let pause = LOOK.min(self.limit / 8).max(Duration::from_millis(1));
        let mut seen = self.beats.load(Ordering::Relaxed);
        let mut since = Instant::now();
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
        }
    }

    /// The first cause stays.
    fn tell(&self, cause: u8) {
        let _ = self
            .stop
            .compare_exchange(0, cause, Ordering::Relaxed, Ordering::Relaxed);
    }
}
