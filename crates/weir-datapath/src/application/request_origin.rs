//! Whose requests are answered: whatever comes to a port may be of another run, or of anybody.
//!
//! In: the header of an answer. Out: whether a client of this run has made its request. Not here: whether the
//! answer is still waited for.

use crate::frame::{PacketHeader, ticks_since};

/// Who makes the requests of a part, and since when.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestOrigin {
    pub(super) stream: u8,
    /// The tick at which the run began.
    pub(super) began: u64,
}

impl RequestOrigin {
    pub(super) fn of(stream: u8) -> Self {
        Self { stream, began: 0 }
    }

    /// True if the request was made for this stream since the run began. Of random bytes next to none say so:
    /// the instant has 56 bits.
    #[inline]
    pub(super) fn has_made(&self, header: &PacketHeader, now: u64) -> bool {
        header.stream == self.stream
            && ticks_since(header.stamp, now) <= now.saturating_sub(self.began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::stamp_of;

    #[test]
    fn requests_of_another_stream_of_another_run_or_of_the_future_are_nobodys() {
        let (began, now) = ((1 << 56) - 10, (1 << 56) + 90);
        let origin = RequestOrigin { stream: 3, began };
        let of = |stream: u8, tick: u64| {
            let header = PacketHeader {
                stream,
                stamp: stamp_of(tick),
                packets: 1,
                segment: 0,
                message: 0,
            };
            origin.has_made(&header, now)
        };
        assert!(of(3, began) && of(3, began + 50) && of(3, now));
        assert!(!of(2, began + 50) && !of(3, began - 1) && !of(3, now + 1));
    }
}
