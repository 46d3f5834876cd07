//! Rate at which the view is drawn, and its cost.
//!
//! In: what drawing each frame has taken. Out: the time until the next one; a note where frames became
//! fewer. Not here: drawing.

use std::time::Duration;

use weir_units::Nanos;

/// A frame may take this much of a CPU.
const LONGEST_FRAME: Nanos = Nanos(10_000_000);
/// The view may take this share of a CPU.
const LARGEST_SHARE: f64 = 0.01;
/// Shortest time over which the cost is measured.
const WINDOW: Nanos = Nanos(4_000_000_000);

/// An instant, with the CPU time that the thread had used by then.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuMark {
    pub(super) at: Nanos,
    pub(super) used: Nanos,
}

impl CpuMark {
    /// The share of a CPU since an earlier one.
    pub(super) fn share_since(&self, earlier: &Self) -> Option<f64> {
        let time = Nanos(self.at.0.saturating_sub(earlier.at.0)).as_secs_f64();
        let used = Nanos(self.used.0.saturating_sub(earlier.used.0)).as_secs_f64();
        (time > 0.0).then_some(used / time)
    }
}

/// Rate at which the view is drawn.
#[derive(Debug)]
pub(super) struct Pace {
    frames_per_second: u32,
    /// Beginning of the present window: after the first frame, which costs more than others.
    begin: Option<CpuMark>,
    note: Option<String>,
}

impl Pace {
    pub(super) fn new(frames_per_second: u32) -> Self {
        Self {
            frames_per_second: frames_per_second.max(1),
            begin: None,
            note: None,
        }
    }

    /// Time from one frame to the next.
    pub(super) fn interval(&self) -> Duration {
        Duration::from_secs(1) / self.frames_per_second
    }

    /// Reason why there are fewer frames than requested.
    pub(super) fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// A frame was drawn, which took this much of a CPU.
    pub(super) fn drew(&mut self, frame: Nanos, now: CpuMark) {
        let Some(begin) = self.begin else {
            self.begin = Some(now);
            return;
        };
        if frame > LONGEST_FRAME {
            self.halve(&format!("a frame took {frame}"), now);
        } else if now.at.0.saturating_sub(begin.at.0) >= WINDOW.0 {
            let share = now.share_since(&begin).unwrap_or(0.0);
            if share > LARGEST_SHARE {
                self.halve(
                    &format!("drawing took {:.1} % of a CPU", share * 100.0),
                    now,
                );
            }
            self.begin = Some(now);
        }
    }

    fn halve(&mut self, why: &str, now: CpuMark) {
        self.begin = Some(now);
        if self.frames_per_second > 1 {
            self.frames_per_second /= 2;
            let rate = self.frames_per_second;
            let frames = if rate == 1 { "frame" } else { "frames" };
            self.note = Some(format!("{rate} {frames} a second: {why}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The interval in ms after frames at these times in ms, with their cost in µs, and the note.
    fn after(frames_per_second: u32, frames: &[(u64, u64)]) -> (u128, Option<String>) {
        let mut pace = Pace::new(frames_per_second);
        let mut used = 0;
        for (at, took) in frames {
            used += took * 1000;
            let now = CpuMark {
                at: Nanos(at * 1_000_000),
                used: Nanos(used),
            };
            pace.drew(Nanos(took * 1000), now);
        }
        (pace.interval().as_millis(), pace.note().map(str::to_owned))
    }

    #[test]
    fn cheap_frames_come_as_often_as_asked() {
        let frames: Vec<_> = (0..100).map(|n| (n * 250, 400)).collect();
        assert_eq!(after(4, &frames), (250, None));
    }

    #[test]
    fn a_dear_frame_halves_the_rate_but_not_the_first() {
        assert_eq!(after(4, &[(0, 50_000), (250, 400)]), (250, None));
        let (interval, note) = after(4, &[(0, 400), (250, 10_001), (500, 400)]);
        assert_eq!(interval, 500);
        assert_eq!(
            note.as_deref(),
            Some("2 frames a second: a frame took 10.0 ms")
        );
    }

    #[test]
    fn more_than_a_hundredth_of_a_cpu_halves_the_rate_down_to_one() {
        let frames: Vec<_> = (0..20).map(|n| (n * 250, 3000)).collect();
        let (interval, note) = after(4, &frames);
        assert_eq!(interval, 500);
        assert_eq!(
            note.as_deref(),
            Some("2 frames a second: drawing took 1.2 % of a CPU")
        );
        let frames: Vec<_> = (0..20).map(|n| (n * 4000, 50_000)).collect();
        assert_eq!(after(20, &frames).0, 1000);
    }
}
