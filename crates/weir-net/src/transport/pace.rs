//! Pace of a rank: the setting, and the time when the next bytes may go out.

use std::time::{Duration, Instant};

use weir_schema::EngineChoice;
use weir_schema::catalogue::{SettingInfo, SettingKind};

/// Most that a rank sends.
pub(super) const RATE: SettingInfo = SettingInfo {
    name: "rate_bytes_per_s",
    value: SettingKind::Number {
        min: 1,
        max: i64::MAX,
    },
    default: "as fast as it goes",
    help: "most that a rank sends, in bytes of messages",
};

/// Time whose bytes may go out at once after a pause of the rank itself, which is not caught up
/// with in full.
const BURST: Duration = Duration::from_millis(1);
/// Longest sleep, so that what comes in is seen.
const NAP: Duration = Duration::from_millis(10);

/// Pace of sending: the next bytes may go out once the last ones would be through, on a line of
/// this rate.
#[derive(Debug)]
pub(super) struct SendPace {
    bytes_per_s: u64,
    /// Time at which the last bytes were through.
    through: Instant,
    /// Time at which the next bytes will be through, once that was asked for.
    due: Option<Instant>,
}

impl SendPace {
    /// As the setting says, if it is given.
    pub(super) fn of(engine: &EngineChoice) -> Option<Self> {
        let rate = engine.number(RATE.name)?;
        Some(Self {
            bytes_per_s: u64::try_from(rate).ok()?.max(1),
            through: Instant::now(),
            due: None,
        })
    }

    /// True if so many bytes may go out now; then they count. Until then it is asked again for
    /// them.
    pub(super) fn may(&mut self, bytes: usize) -> bool {
        let now = Instant::now();
        let due = self.due.unwrap_or_else(|| {
            let nanos = bytes as u128 * 1_000_000_000 / u128::from(self.bytes_per_s);
            let takes = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            let earliest = now.checked_sub(BURST).unwrap_or(now);
            self.through.max(earliest) + takes
        });
        let is_through = now >= due;
        if is_through {
            self.through = due;
        }
        self.due = (!is_through).then_some(due);
        is_through
    }

    /// Sleeps until more may go out, or a little while.
    pub(super) fn pause(&self) {
        let left = self
            .due
            .map(|due| due.saturating_duration_since(Instant::now()));
        std::thread::sleep(left.unwrap_or_default().min(NAP));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_take_their_time_as_well() {
        let mut pace = SendPace {
            bytes_per_s: 100_000,
            through: Instant::now(),
            due: None,
        };
        let begun = Instant::now();
        for _ in 0..4 {
            while !pace.may(1000) {
                pace.pause();
            }
        }
        // 4000 bytes at 100 kB/s, less what a burst may be ahead.
        assert!(begun.elapsed() >= Duration::from_millis(39));
    }
}
