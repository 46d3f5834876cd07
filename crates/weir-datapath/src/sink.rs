//! A server that takes so many packets per second and drops the others at once: a device with a known rate, for
//! trying out what looks for rates.
//!
//! In: the instants that packets bear. Out: which are taken. A bucket of 64 tokens fills with the rate, by
//! the instants at which packets were made or intended, not by when they came: what a busy machine delays does
//! not change what is dropped.

use weir_sys::clock::Scale;
use weir_units::Nanos;

/// Tokens of a full bucket.
const BUCKET: u64 = 64;
/// Bits behind the point.
const FRACTION: u32 = 16;
/// Bits of an instant that a packet bears.
const STAMP_BITS: u32 = 56;

/// The sink of one dispatcher.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketSink {
    /// Between tokens, in parts of ticks.
    period: u64,
    /// Time that has not become tokens: up to a bucket full of them.
    saved: u64,
    last: Option<u64>,
}

impl PacketSink {
    /// Of a rate of the whole server, the part of one of its dispatchers; nothing where it takes all.
    pub(crate) fn new(per_s: u64, dispatchers: usize, scale: Scale) -> Option<Self> {
        let hour = u128::from(scale.to_ticks(Nanos::from_secs(3600)));
        let parts = (hour << FRACTION) * dispatchers.max(1) as u128;
        let period = parts.checked_div(u128::from(per_s) * 3600)?;
        let period = u64::try_from(period)
            .unwrap_or(u64::MAX / BUCKET)
            .clamp(1, u64::MAX / BUCKET);
        Some(Self {
            period,
            saved: period * BUCKET,
            last: None,
        })
    }

    /// True if it takes the packet that bears this instant.
    #[inline]
    pub(crate) fn takes(&mut self, stamp: u64) -> bool {
        let last = self.last.unwrap_or(stamp);
        let since = crate::frame::ticks_since(last, stamp);
        // One that is older than the last adds nothing.
        if since < 1 << (STAMP_BITS - 1) {
            let more = since.saturating_mul(1 << FRACTION);
            self.saved = self.saved.saturating_add(more).min(self.period * BUCKET);
            self.last = Some(stamp);
        }
        let is_taken = self.saved >= self.period;
        if is_taken {
            self.saved -= self.period;
        }
        is_taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets that are taken of a second's at a rate.
    fn taken(rate: u64, sink: u64) -> u64 {
        let scale = Scale::from_slope(1, Nanos(1)).unwrap();
        let mut sink = PacketSink::new(sink, 1, scale).unwrap();
        let stamps = (0..rate).map(|k| 1_000_000_000 * k / rate);
        stamps.filter(|stamp| sink.takes(*stamp)).count() as u64
    }

    #[test]
    fn what_comes_faster_is_dropped_but_for_a_bucket() {
        assert_eq!(taken(300_000, 300_000), 300_000);
        assert_eq!(taken(300_050, 300_000), 300_050);
        for rate in [300_200, 301_500, 600_000, 5_000_000] {
            let taken = taken(rate, 300_000);
            assert!((300_060..=300_065).contains(&taken), "{rate}: {taken}");
        }
    }

    #[test]
    fn a_burst_is_taken_up_to_a_bucket_and_old_instants_add_nothing() {
        let scale = Scale::from_slope(1, Nanos(1)).unwrap();
        let mut sink = PacketSink::new(1_000_000, 1, scale).unwrap();
        let burst = |sink: &mut PacketSink, at| (0..100).filter(|_| sink.takes(at)).count();
        assert_eq!(burst(&mut sink, 5000), 64);
        assert_eq!(burst(&mut sink, 3000), 0);
        assert_eq!(burst(&mut sink, 15_000), 10);
        assert!(PacketSink::new(0, 1, scale).is_none());
    }
}
