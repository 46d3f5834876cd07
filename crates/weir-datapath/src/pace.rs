//! When messages of an open loop are to begin: the k-th at k periods after the beginning, whatever comes
//! back.
//!
//! In: a rate and a tick. Out: how many are due, and the intended tick of each. What is late is made up for,
//! and its latency counts from when it was intended.

use weir_sys::clock::Scale;
use weir_units::Nanos;

/// Bits behind the point.
const FRACTION: u32 = 32;

/// The messages of one thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessagePace {
    /// Of the common beginning, and of the end: a thread that comes late to it begins nothing that was due
    /// behind it.
    began: u64,
    until: u64,
    /// Between messages of this thread, and when its next is due after the beginning; in parts of ticks.
    period: u128,
    next: u128,
    /// Messages that were taken.
    taken: u64,
}

impl MessagePace {
    /// Of a rate of all clients together, the share of the `turn`-th of `clients`.
    pub(crate) fn new(per_s: u64, (turn, clients): (usize, usize), scale: Scale) -> Self {
        let hour = u128::from(scale.to_ticks(Nanos::from_secs(3600)));
        let of_all = (hour << FRACTION) / (u128::from(per_s.max(1)) * 3600);
        Self {
            began: 0,
            until: u64::MAX,
            period: (of_all * clients.max(1) as u128).max(1),
            next: of_all * turn as u128,
            taken: 0,
        }
    }

    pub(crate) fn begin(&mut self, began: u64, until: u64) {
        self.began = began;
        self.until = until;
    }

    /// Number of messages that are due at a tick and were not taken.
    #[inline]
    pub(crate) fn due(&self, now: u64) -> usize {
        let since = u128::from(now.min(self.until).saturating_sub(self.began)) << FRACTION;
        if since < self.next {
            return 0;
        }
        usize::try_from((since - self.next) / self.period + 1).unwrap_or(usize::MAX)
    }

    /// The tick at which the next was intended.
    #[inline]
    pub(crate) fn take(&mut self) -> u64 {
        let after = u64::try_from(self.next >> FRACTION).unwrap_or(u64::MAX);
        self.next += self.period;
        self.taken += 1;
        self.began.saturating_add(after)
    }

    /// Number of messages that were intended up to a tick.
    pub(crate) fn intended(&self, now: u64) -> u64 {
        self.taken + self.due(now) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_stats::Histogram;

    #[test]
    fn threads_take_turns_and_what_is_late_keeps_its_intended_tick() {
        let scale = Scale::from_slope(1, Nanos(1)).unwrap();
        let mut paces = [0, 1].map(|turn| MessagePace::new(3, (turn, 2), scale));
        for pace in &mut paces {
            pace.begin(1000, u64::MAX);
        }
        let third = 1_000_000_000 / 3;
        assert_eq!(paces.map(|pace| pace.due(1000)), [1, 0]);
        assert_eq!(paces.map(|pace| pace.due(1001 + third)), [1, 1]);
        // A second and a bit: 4 of both together.
        assert_eq!(paces.map(|pace| pace.due(1_000_000_100 + 1000)), [2, 2]);
        let ticks = [0, 1, 0, 1].map(|turn: usize| paces[turn].take() - 1000);
        assert_eq!(ticks, [0, third, 2 * third, 3 * third]);
        assert_eq!(paces[0].intended(1_000_000_100), 2);
    }

    #[test]
    fn nothing_is_due_behind_the_end_however_late_it_is_looked_at() {
        let scale = Scale::from_slope(1, Nanos(1)).unwrap();
        let mut pace = MessagePace::new(3, (0, 1), scale);
        pace.begin(1000, 1_000_001_000 - 1);
        assert_eq!(
            (pace.due(9_000_000_000), pace.intended(9_000_000_000)),
            (3, 3)
        );
    }

    /// Latencies of clients that look each microsecond, of a server that answers at once but for a pause.
    fn latencies(mut pace: MessagePace, [begins, ends]: [u64; 2], until: u64) -> Histogram {
        let mut all = Histogram::default();
        pace.begin(0, until - 1);
        for now in (0..until).step_by(1000) {
            for _ in 0..pace.due(now) {
                let intended = pace.take();
                let answered = if (begins..ends).contains(&now) {
                    ends
                } else {
                    now
                };
                all.record(answered - intended);
            }
        }
        all
    }

    #[test]
    fn ten_milliseconds_without_answers_are_seen_by_a_thousand_messages() {
        let scale = Scale::from_slope(1, Nanos(1)).unwrap();
        let (second, pause) = (1_000_000_000, 10_000_000);
        let pace = MessagePace::new(100_000, (0, 1), scale);
        let all = latencies(pace, [second, second + pause], 2 * second);
        let hit = all.buckets().filter(|one| one.low > 1000);
        let hit: u64 = hit.map(|one| one.count).sum();
        assert_eq!(all.count(), 200_000);
        assert!((990..=1000).contains(&hit), "{hit}");
        assert!(all.max().unwrap() >= 9_500_000);
        let at = |percent| all.percentile(percent).unwrap();
        assert!((7_500_000..9_000_000).contains(&at(99.9)), "{}", at(99.9));
        assert!(at(99.0) < 1_000_000, "{}", at(99.0));
    }
}
