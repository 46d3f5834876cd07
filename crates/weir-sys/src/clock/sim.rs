//! A clock that a simulated device moves by hand.
//!
//! In: steps of simulated time. Out: ticks that are nanoseconds. Not here: the device.

use super::{Anchor, Scale, Tick, Ticks};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_units::Nanos;

/// Simulated time, shared by all clones.
#[derive(Clone, Debug, Default)]
pub struct SimClock(Arc<AtomicU64>);

impl SimClock {
    /// Lets time pass.
    pub fn advance(&self, span: Nanos) {
        self.0.fetch_add(span.0, Ordering::Relaxed);
    }

    /// Moves time forward to an instant; time never goes back.
    pub fn advance_to(&self, instant: Tick) {
        self.0.fetch_max(instant.0, Ordering::Relaxed);
    }
}

impl Ticks for SimClock {
    #[inline]
    fn now(&self) -> Tick {
        Tick(self.0.load(Ordering::Relaxed))
    }

    fn scale(&self) -> Scale {
        Scale::IDENTITY
    }

    fn anchor(&self) -> Anchor {
        let tick = self.now();
        Anchor {
            tick,
            mono: Nanos(tick.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_time_and_time_never_goes_back() {
        let clock = SimClock::default();
        let other = clock.clone();
        other.advance(Nanos(500));
        other.advance_to(Tick(400));
        assert_eq!(clock.now(), Tick(500));
        clock.advance_to(Tick(900));
        assert_eq!(other.now().since(Tick(500)), 400);
    }
}
