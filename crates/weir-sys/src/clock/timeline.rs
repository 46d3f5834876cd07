//! Instants of a run in nanoseconds, right for hours: piecewise between anchors.
//!
//! In: an anchor at start, one per sampling tick, one at the end. Out: nanoseconds for any tick,
//! the scale of the moment for the workers, and the residual. Not here: a thread of its own.
//! Memory is bounded: when the list is full, every second old anchor goes.

use super::detect::slope;
use super::{Anchor, Scale, SharedScale, Tick, Ticks};
use std::sync::Arc;
use weir_units::Nanos;

/// Anchors kept; 128 KiB.
const MAX_ANCHORS: usize = 8_192;
/// Anchors closer than this say more about their own error than about the clock.
const MIN_SPACING: Nanos = Nanos(10_000_000);
/// The scale of the moment is the slope over about this span.
const BASELINE: Nanos = Nanos(1_000_000_000);

/// The largest disagreement of an anchor with the line through its two neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residual {
    /// The largest disagreement.
    pub nanos: Nanos,
    /// The largest disagreement as a share of the neighbours' distance, in parts per million.
    pub ppm: f64,
}

/// The run's time: anchors and the lines between them.
#[derive(Debug)]
pub struct Timeline {
    anchors: Vec<Anchor>,
    shared: Arc<SharedScale>,
    calibrated: Scale,
    residual: Option<Residual>,
    taken: u32,
}

impl Timeline {
    /// Starts with an anchor taken now.
    pub fn start(clock: &impl Ticks) -> Self {
        Self::new(clock.anchor(), clock.scale())
    }

    fn new(first: Anchor, scale: Scale) -> Self {
        Self {
            anchors: vec![first],
            shared: Arc::new(SharedScale::new(scale)),
            calibrated: scale,
            residual: None,
            taken: 1,
        }
    }

    /// The scale that workers read; it changes at each anchor.
    pub fn shared_scale(&self) -> Arc<SharedScale> {
        Arc::clone(&self.shared)
    }

    /// Takes an anchor, unless the last one is less than 10 ms old, and publishes the scale.
    pub fn re_anchor(&mut self, clock: &impl Ticks) {
        self.add(clock.anchor());
    }

    fn add(&mut self, anchor: Anchor) {
        let Some(&last) = self.anchors.last() else {
            return;
        };
        if anchor.mono.0.saturating_sub(last.mono.0) < MIN_SPACING.0 || anchor.tick <= last.tick {
            return;
        }
        if self.anchors.len() >= MAX_ANCHORS {
            self.thin();
        }
        self.anchors.push(anchor);
        self.taken += 1;
        if let [.., a, b, c] = self.anchors[..] {
            self.judge(a, b, c);
        }
        let recent = |a: &Anchor| anchor.mono.0 - a.mono.0 < BASELINE.0;
        let first_recent = self.anchors.partition_point(|a| !recent(a));
        let from = self.anchors[first_recent.saturating_sub(1)];
        if let Some(scale) = slope(from, anchor) {
            self.shared.store(scale);
        }
    }

    fn thin(&mut self) {
        let newest = self.anchors.len() - 2;
        let mut index = 0;
        self.anchors.retain(|_| {
            let keep = index % 2 == 0 || index >= newest;
            index += 1;
            keep
        });
    }

    #[expect(clippy::cast_precision_loss, reason = "parts per million")]
    fn judge(&mut self, a: Anchor, b: Anchor, c: Anchor) {
        let expected = interpolate(a, c, b.tick);
        let nanos = expected.abs_diff(b.mono.0);
        let ppm = nanos as f64 * 1e6 / (c.mono.0 - a.mono.0).max(1) as f64;
        let worst = self.residual.get_or_insert(Residual {
            nanos: Nanos(0),
            ppm: 0.0,
        });
        worst.nanos = worst.nanos.max(Nanos(nanos));
        worst.ppm = worst.ppm.max(ppm);
    }

    /// Distance of the anchors from one line; `None` with fewer than three.
    pub fn residual(&self) -> Option<Residual> {
        self.residual
    }

    /// The instant on `CLOCK_MONOTONIC`. Outside the anchors the nearest line goes on.
    pub fn mono(&self, tick: Tick) -> Nanos {
        let after = self.anchors.partition_point(|a| a.tick <= tick);
        let nanos = match self.anchors[..] {
            [] => 0,
            [only] => {
                let ahead = self.calibrated.to_nanos(tick.since(only.tick));
                let behind = self.calibrated.to_nanos(only.tick.since(tick));
                (only.mono.0 + ahead).saturating_sub(behind)
            }
            _ => {
                let left = after.clamp(1, self.anchors.len() - 1) - 1;
                interpolate(self.anchors[left], self.anchors[left + 1], tick)
            }
        };
        Nanos(nanos)
    }

    /// Time from an origin (the common release) to an instant; zero before the origin.
    pub fn since(&self, origin: Tick, tick: Tick) -> Nanos {
        Nanos(self.mono(tick).0.saturating_sub(self.mono(origin).0))
    }

    /// Number of anchors taken.
    pub fn anchors_taken(&self) -> u32 {
        self.taken
    }
}

/// The value at `tick` of the line through two anchors.
fn interpolate(a: Anchor, b: Anchor, tick: Tick) -> u64 {
    let ticks = i128::from(b.tick.0) - i128::from(a.tick.0);
    let nanos = i128::from(b.mono.0) - i128::from(a.mono.0);
    let offset = (i128::from(tick.0) - i128::from(a.tick.0)) * nanos / ticks.max(1);
    u64::try_from(i128::from(a.mono.0) + offset).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::SimClock;
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A 2 GHz counter that the kernel's clock leaves behind by `ppm`.
    fn anchor(second: u64, ppm: u64) -> Anchor {
        Anchor {
            tick: Tick(second * 2 * SECOND),
            mono: Nanos(second * SECOND + second * ppm * 1_000),
        }
    }

    fn two_ghz() -> Scale {
        Scale::from_slope(2 * SECOND, Nanos(SECOND)).unwrap()
    }

    #[test]
    fn a_drifting_clock_stays_right_for_hours_by_its_anchors() {
        let mut timeline = Timeline::new(anchor(0, 80), two_ghz());
        for second in 1..=3_600 {
            timeline.add(anchor(second, 80));
        }
        // One calibration alone would be 80 ppm of an hour off: 288 ms.
        let hour = anchor(3_600, 80);
        assert_eq!(timeline.mono(hour.tick), hour.mono);
        let between = Tick(hour.tick.0 - SECOND);
        assert_eq!(timeline.mono(between).0, hour.mono.0 - SECOND / 2 - 40_000);
        let residual = timeline.residual().unwrap();
        assert_eq!(residual.nanos, Nanos(0));
        assert!(
            timeline
                .shared_scale()
                .load()
                .to_nanos(2 * SECOND)
                .abs_diff(SECOND + 80_000)
                <= 1
        );
    }

    #[test]
    fn the_residual_is_the_distance_from_the_line_through_the_neighbours() {
        let mut timeline = Timeline::new(anchor(0, 0), two_ghz());
        assert_eq!(timeline.residual(), None);
        let mut bent = anchor(1, 0);
        bent.mono.0 += 3_000;
        timeline.add(bent);
        assert_eq!(timeline.residual(), None);
        timeline.add(anchor(2, 0));
        let residual = timeline.residual().unwrap();
        assert_eq!(residual.nanos, Nanos(3_000));
        assert!((residual.ppm - 1.5).abs() < 1e-9);
    }

    #[test]
    fn with_one_anchor_the_calibrated_scale_goes_both_ways() {
        let timeline = Timeline::new(anchor(10, 0), two_ghz());
        assert_eq!(timeline.mono(Tick(21 * SECOND)).0, 21 * SECOND / 2);
        assert_eq!(timeline.mono(Tick(19 * SECOND)).0, 19 * SECOND / 2);
        assert_eq!(
            timeline.since(Tick(20 * SECOND), Tick(20 * SECOND + 10)),
            Nanos(5)
        );
        assert_eq!(timeline.since(Tick(20 * SECOND), Tick(3)), Nanos(0));
    }

    #[test]
    fn instants_outside_the_anchors_lie_on_the_nearest_line() {
        let mut timeline = Timeline::new(anchor(1, 0), two_ghz());
        timeline.add(anchor(2, 0));
        assert_eq!(timeline.mono(Tick(SECOND)).0, SECOND / 2);
        assert_eq!(timeline.mono(Tick(5 * SECOND)).0, 5 * SECOND / 2);
    }

    #[test]
    fn memory_stays_bounded_and_the_line_stays_whole() {
        let mut timeline = Timeline::new(anchor(0, 0), two_ghz());
        for second in 1..30_000 {
            timeline.add(anchor(second, 0));
        }
        assert!(timeline.anchors.len() <= MAX_ANCHORS);
        assert_eq!(timeline.anchors_taken(), 30_000);
        for second in [0, 1, 777, 15_001, 29_999] {
            assert_eq!(
                timeline.mono(anchor(second, 0).tick),
                anchor(second, 0).mono
            );
        }
        assert_eq!(timeline.residual().unwrap().nanos, Nanos(0));
    }

    #[test]
    fn anchors_too_close_together_are_not_kept() {
        let clock = SimClock::default();
        let mut timeline = Timeline::start(&clock);
        clock.advance(Nanos(MIN_SPACING.0 - 1));
        timeline.re_anchor(&clock);
        assert_eq!(timeline.anchors_taken(), 1);
        clock.advance(Nanos(1));
        timeline.re_anchor(&clock);
        assert_eq!(timeline.anchors_taken(), 2);
        assert_eq!(timeline.mono(clock.now()), MIN_SPACING);
    }
}
