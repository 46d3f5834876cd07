//! The clock: raw ticks on the hot path, nanoseconds when a value is recorded.
//!
//! In: the CPU's counter where the kernel itself trusts it, otherwise `CLOCK_MONOTONIC`. Out:
//! [`Tick`]s, the [`Scale`] that turns spans of them into nanoseconds, and the [`Timeline`] that
//! turns instants into nanoseconds piecewise between anchors. Not here: when to take anchors (the
//! sampler does) and what a large residual means (the report says).
//! Cost: one counter read and one branch that always goes the same way.

#![expect(
    clippy::inline_always,
    reason = "a call would cost as much as the read, also in test profiles"
)]

mod counter;
mod detect;
mod scale;
mod sim;
mod timeline;

pub use detect::{DetectedClock, Detection};
pub use scale::{Scale, SharedScale};
pub use sim::SimClock;
pub use timeline::{Residual, Timeline};

use rustix::time::{ClockId, clock_gettime};
use weir_units::Nanos;

/// An instant in ticks of the run's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub u64);

impl Tick {
    /// Ticks since an earlier instant; zero if it was not earlier, since counters of two CPUs may
    /// differ by a few ticks.
    #[inline(always)]
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The instant a number of ticks later.
    #[inline(always)]
    #[must_use]
    pub fn after(self, ticks: u64) -> Self {
        Self(self.0.saturating_add(ticks))
    }
}

/// The same instant on the run's clock and on the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// On the run's clock.
    pub tick: Tick,
    /// On `CLOCK_MONOTONIC`.
    pub mono: Nanos,
}

/// A clock that the worker loop can read: the machine's, or a simulated one.
pub trait Ticks: Clone + Send {
    /// The instant.
    fn now(&self) -> Tick;

    /// Length of a tick when the clock was calibrated.
    fn scale(&self) -> Scale;

    /// The instant on both clocks.
    fn anchor(&self) -> Anchor;
}

/// Source that a clock reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TickSource {
    /// The CPU's invariant counter (TSC, `CNTVCT_EL0`).
    Counter,
    /// The kernel's `CLOCK_MONOTONIC`, in nanoseconds.
    Monotonic,
}

impl TickSource {
    /// The name used in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter if cfg!(target_arch = "aarch64") => "cntvct",
            Self::Counter => "tsc",
            Self::Monotonic => "clock_monotonic",
        }
    }
}

/// The machine's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: TickSource,
    scale: Scale,
}

impl Clock {
    /// Chooses and calibrates the clock in about [`Detection::SPAN`].
    pub fn detect() -> (Self, DetectedClock) {
        Detection::begin().finish()
    }

    /// The source that the clock reads.
    pub fn source(&self) -> TickSource {
        self.source
    }

    /// The instant.
    #[inline(always)]
    pub fn now(&self) -> Tick {
        match self.source {
            TickSource::Counter => Tick(counter::read()),
            TickSource::Monotonic => Tick(monotonic().0),
        }
    }

    /// Length of a tick when the clock was calibrated.
    #[inline]
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// The cost of one read in nanoseconds: the fastest of several rounds, so that an interrupt
    /// does not count.
    #[expect(clippy::cast_precision_loss, reason = "spans of microseconds")]
    pub fn read_cost_ns(&self) -> f64 {
        const READS: u32 = 256;
        let round = || {
            let start = self.now();
            for _ in 0..READS {
                std::hint::black_box(self.now());
            }
            self.now().since(start)
        };
        let ticks = (0..16).map(|_| round()).min().unwrap_or(0);
        let nanos = ticks as f64 * 1e9 / self.scale.frequency_hz();
        nanos / f64::from(READS + 1)
    }
}

impl Ticks for Clock {
    #[inline(always)]
    fn now(&self) -> Tick {
        Clock::now(self)
    }

    #[inline]
    fn scale(&self) -> Scale {
        self.scale
    }

    fn anchor(&self) -> Anchor {
        match self.source {
            TickSource::Counter => counter_anchor(),
            TickSource::Monotonic => {
                let mono = monotonic();
                Anchor {
                    tick: Tick(mono.0),
                    mono,
                }
            }
        }
    }
}

/// The tightest of 32 readings of the kernel's clock between two readings of the counter.
fn counter_anchor() -> Anchor {
    let bracketed = || {
        let before = counter::read();
        let mono = monotonic();
        let width = counter::read().saturating_sub(before);
        (width, before + width / 2, mono)
    };
    let mut best = bracketed();
    for _ in 1..32 {
        let next = bracketed();
        if next.0 < best.0 {
            best = next;
        }
    }
    Anchor {
        tick: Tick(best.1),
        mono: best.2,
    }
}

/// The kernel's monotonic clock. Kept out of line so that it costs the counter's readers nothing
/// but the branch.
#[cold]
#[inline(never)]
fn monotonic() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    Nanos(seconds * 1_000_000_000 + nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fallback_clock_counts_nanoseconds() {
        let clock = Clock {
            source: TickSource::Monotonic,
            scale: Scale::IDENTITY,
        };
        let anchor = clock.anchor();
        assert_eq!(anchor.tick.0, anchor.mono.0);
        assert!(clock.now() >= anchor.tick);
        assert!(clock.read_cost_ns() > 0.0);
    }

    #[test]
    fn spans_between_cpus_never_underflow() {
        assert_eq!(Tick(5).since(Tick(9)), 0);
        assert_eq!(Tick(9).since(Tick(5)), 4);
        assert_eq!(Tick(u64::MAX).after(1), Tick(u64::MAX));
    }
}
