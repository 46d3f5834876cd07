//! The watch: one beat per exchange, and a thread that looks whether beats still come.
//!
//! In: beats (a relaxed store each), steps, signals. Out: the word to stop, with its cause, and
//! how far the rank has come, for whoever wants to see it. Transports look at it whenever they wait
//! for long; nobody looks in the loop.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{Builder, Thread};
use std::time::{Duration, Instant};

use weir_run::execute::Signals;
use weir_world::{Crew, WorldError};

use crate::error::{Ended, Halt, NetError, Spot};

/// Longest sleep between two looks: what Ctrl-C may have to wait for.
const LOOK: Duration = Duration::from_millis(50);

/// A rank that was told to stop does so within this time, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(1);

const SILENT: u8 = 1;
const INTERRUPTED: u8 = 2;
const LOST: u8 = 3;

/// Nothing panics while holding these.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How far a rank has come.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Since it began.
    pub elapsed: Duration,
    /// The part of its steps that is done, where known.
    pub fraction: Option<f64>,
    /// Where it is.
    pub place: Option<Spot>,
    /// For how long there has been no beat.
    pub still: Duration,
}

/// Who looks on at rank 0, from another thread.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "holds functions")]
pub struct Observer<'a, R> {
    /// Is shown how far the rank has come, some times per second.
    pub look: &'a (dyn Fn(&Seen) + Sync),
    /// The rank hangs in a call and the process has to end: gets what was done, and answers the
    /// exit code.
    pub last: &'a (dyn Fn(Ended<R>) -> u8 + Sync),
}

/// The same without knowing what is done.
#[derive(Clone, Copy)]
pub(crate) struct Onlooker<'a> {
    pub(crate) look: &'a (dyn Fn(&Seen) + Sync),
    /// Why it has to end; nothing after a signal.
    pub(crate) last: &'a (dyn Fn(Option<NetError>) -> u8 + Sync),
}

impl<'a> Onlooker<'a> {
    /// An observer, who gets what was done from `last`.
    pub(crate) fn of<R>(
        observer: Option<&Observer<'a, R>>,
        last: &'a (dyn Fn(Option<NetError>) -> u8 + Sync),
    ) -> Option<Self> {
        observer.map(|o| Self { look: o.look, last })
    }
}

/// What may end a rank from outside.
#[derive(Clone, Copy)]
pub(crate) struct Outside<'a> {
    pub(crate) signals: &'a Signals,
    /// The other ranks, one of which may be lost.
    pub(crate) crew: Option<&'a Crew>,
}

/// One rank's watch.
#[expect(missing_debug_implementations, reason = "holds a function")]
pub struct Watch {
    beats: AtomicU64,
    /// Done, and in all.
    steps: AtomicU64,
    expected: AtomicU64,
    stop: AtomicU8,
    /// Which rank, where one was lost.
    lost: OnceLock<WorldError>,
    over: AtomicBool,
    limit: Duration,
    /// Where the rank is, for its last words.
    place: Mutex<Option<Spot>>,
    /// Ends a rank that hangs in a call which nothing else can end.
    at_last: Mutex<Option<LastResort>>,
    /// That is being done. Stored while `at_last` is locked.
    ending: AtomicBool,
}

/// Gets the exit code.
pub(crate) type LastResort = Box<dyn FnOnce(u8) + Send>;

impl Watch {
    /// Nothing may last longer than `limit` without a beat.
    pub fn new(limit: Duration) -> Self {
        Self {
            beats: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            expected: AtomicU64::new(0),
            stop: AtomicU8::new(0),
            lost: OnceLock::new(),
            over: AtomicBool::new(false),
            limit,
            place: Mutex::default(),
            at_last: Mutex::default(),
            ending: AtomicBool::new(false),
        }
    }

    /// The rank is here now.
    pub(crate) fn stand_at(&self, spot: Spot) {
        *lock(&self.place) = Some(spot);
    }

    /// What ends the process where the rank does not come back by itself.
    pub(crate) fn at_last(&self, end: impl FnOnce(u8) + Send + 'static) {
        *lock(&self.at_last) = Some(Box::new(end));
    }

    /// The same, where nothing is set yet.
    pub(crate) fn or_at_last(&self, end: impl FnOnce(u8) + Send + 'static) {
        lock(&self.at_last).get_or_insert_with(|| Box::new(end));
    }

    /// The rank came back by itself, and hangs in no call any more: here is what would have ended
    /// it.
    pub(crate) fn settle(&self) -> Option<LastResort> {
        let at_last = lock(&self.at_last).take();
        while self.ending.load(Ordering::Acquire) {
            // The process is being ended.
            std::thread::park();
        }
        at_last
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

    /// This many steps there are in all, as far as is known.
    pub(crate) fn expect(&self, steps: u64) {
        self.expected.store(steps, Ordering::Relaxed);
    }

    /// One more is done.
    pub(crate) fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// This many are done.
    pub(crate) fn step_to(&self, steps: u64) {
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
            (halt, _) => match self.lost.get() {
                Some(lost) => Halt::World(lost.clone()),
                None => halt,
            },
        }
    }

    /// Does this, as the rank of this number, and guards it meanwhile.
    ///
    /// # Errors
    /// There is no thread to guard it; then nothing is done.
    pub(crate) fn over<R>(
        &self,
        rank: u32,
        outside: Outside<'_>,
        onlooker: Option<Onlooker<'_>>,
        work: impl FnOnce() -> R,
    ) -> io::Result<R> {
        std::thread::scope(|scope| {
            let guard = || self.guard(rank, outside, onlooker);
            let guard = Builder::new().spawn_scoped(scope, guard)?;
            let _end = End(self, guard.thread());
            Ok(work())
        })
    }

    /// Ends [`Watch::guard`].
    fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Looks until [`Watch::end`], on a thread of its own that is unparked then.
    fn guard(&self, rank: u32, outside: Outside<'_>, onlooker: Option<Onlooker<'_>>) {
        let begun = Instant::now();
        let pause = LOOK.min(self.limit / 8).max(Duration::from_millis(1));
        let mut seen = self.beats.load(Ordering::Relaxed);
        let mut since = Instant::now();
        let mut told = None;
        // The first rank has something to tell before others end everybody.
        let patience = PATIENCE / if onlooker.is_some() { 3 } else { 1 };
        while !self.over.load(Ordering::Acquire) {
            std::thread::park_timeout(pause);
            let beats = self.beats.load(Ordering::Relaxed);
            if beats != seen {
                (seen, since) = (beats, Instant::now());
            }
            if outside.signals.interrupted() {
                self.tell(INTERRUPTED);
            } else if let Some(lost) = outside.crew.and_then(Crew::lost) {
                self.lost.get_or_init(|| lost.clone());
                self.tell(LOST);
            } else if since.elapsed() > self.limit {
                self.tell(SILENT);
            }
            if let Some(onlooker) = onlooker {
                (onlooker.look)(&Seen {
                    elapsed: begun.elapsed(),
                    fraction: self.fraction(),
                    place: *lock(&self.place),
                    still: since.elapsed(),
                });
            }
            if self.stopped() && told.get_or_insert_with(Instant::now).elapsed() > patience {
                self.end_hung(rank, outside.signals, onlooker);
            }
        }
    }

    /// The rank was told to stop and still hangs in a call. Nobody but this thread can say so,
    /// and nobody after it.
    fn end_hung(&self, rank: u32, signals: &Signals, onlooker: Option<Onlooker<'_>>) {
        let mut at_last = lock(&self.at_last);
        let Some(end) = at_last.take() else {
            return;
        };
        self.ending.store(true, Ordering::Release);
        drop(at_last);
        let interrupted = self.stop.load(Ordering::Relaxed) == INTERRUPTED;
        let place = *lock(&self.place);
        let error = (!interrupted).then(|| {
            let cause = self.cause(Halt::Stopped);
            match place {
                Some(spot) => NetError::At { spot, cause },
                None => NetError::Setup { rank, cause },
            }
        });
        if let Some(onlooker) = onlooker {
            return end((onlooker.last)(error));
        }
        end(match error {
            Some(error) => {
                say(&format!("error: {error}\n"));
                1
            }
            None => say_interrupted(rank, signals.number.load(Ordering::Relaxed)),
        });
    }

    /// The first cause stays.
    fn tell(&self, cause: u8) {
        let _ = self
            .stop
            .compare_exchange(0, cause, Ordering::Relaxed, Ordering::Relaxed);
    }
}

fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Says that a signal ended all by way of this rank, which rank 0 could not say. The exit code.
pub(crate) fn say_interrupted(rank: u32, number: i32) -> u8 {
    let signal = match number {
        // Who was told of one has nothing to add.
        0 => return 1,
        1 => "SIGHUP".to_owned(),
        2 => "SIGINT".to_owned(),
        15 => "SIGTERM".to_owned(),
        other => format!("signal {other}"),
    };
    say(&format!("rank {rank}: interrupted by {signal}\n"));
    u8::try_from(number).map_or(1, |number| number.saturating_add(128))
}

/// Ends the watch, also when the work panics.
struct End<'a>(&'a Watch, &'a Thread);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.end();
        self.1.unpark();
    }
}
