//! How fast a rank may send: the setting, and when the next bytes may go out.

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

/// What may go out at once after a pause of the rank itself, which is not caught up with in full.
const BURST: Duration = Duration::from_millis(1);
/// Longest sleep, so that what comes in is seen.
const NAP: Duration = Duration::from_millis(10);

/// When the next bytes may go out.
#[derive(Debug)]
pub(super) struct Pace {
    bytes_per_s: u64,
    next: Instant,
}

impl Pace {
    /// As the setting says, if it is given.
    pub(super) fn of(engine: &EngineChoice) -> Option<Self> {
        let rate = engine.number(RATE.name)?;
        Some(Self {
            bytes_per_s: u64::try_from(rate).ok()?.max(1),
            next: Instant::now(),
        })
    }

    /// Whether so many bytes may go out now; then they count.
    pub(super) fn may(&mut self, bytes: usize) -> bool {
        let now = Instant::now();
        if now < self.next {
            return false;
        }
        let nanos = bytes as u128 * 1_000_000_000 / u128::from(self.bytes_per_s);
        let pause = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let earliest = now.checked_sub(BURST).unwrap_or(now);
        self.next = self.next.max(earliest) + pause;
        true
    }

    /// Sleeps until more may go out, or a little while.
    pub(super) fn pause(&self) {
        std::thread::sleep(self.next.saturating_duration_since(Instant::now()).min(NAP));
    }
}
