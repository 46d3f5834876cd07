//! Requests that a client may begin: how many, and of which sizes, where there are several.
//!
//! In: a number of messages, sizes in turn. Out: lengths of frames; counts by size. Each client goes through all of them on its own,
//! so that after any number of whole turns the shares are exact.

use weir_schema::{PacketPathWorkload, RequestSizeCount};

use crate::frame::{MESSAGE_AT, part_of};

/// Requests that a client may begin.
#[derive(Debug)]
pub(crate) struct RequestSupply {
    most: u64,
    left: u64,
    sizes: Option<SizeCycle>,
}

impl RequestSupply {
    /// Of the `turn`-th of `clients`.
    pub(crate) fn of(work: &PacketPathWorkload, (turn, clients): (usize, usize)) -> Self {
        let (turn, clients) = (turn as u64, clients.max(1) as u64);
        let most = match work.most_messages {
            0 => u64::MAX,
            all => all / clients + u64::from(turn < all % clients),
        };
        Self {
            most,
            left: most,
            sizes: SizeCycle::of(work),
        }
    }

    /// Number of requests that it may begin now.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        usize::try_from(self.left).unwrap_or(usize::MAX)
    }

    /// True if it begins no more: what has no answer then is lost, and nobody stalls.
    pub(crate) fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Number of requests that it may begin in all.
    pub(crate) fn most(&self) -> u64 {
        self.most
    }

    /// One of them begins: the length of its frame, where sizes differ.
    #[inline]
    pub(crate) fn begin(&mut self) -> Option<usize> {
        self.left = self.left.saturating_sub(1);
        self.sizes.as_mut().map(SizeCycle::take)
    }

    /// Requests of each size since the last call.
    pub(crate) fn take_counts(&mut self) -> Vec<RequestSizeCount> {
        let sizes = self.sizes.as_mut();
        sizes.map_or_else(Vec::new, SizeCycle::take_counts)
    }
}

/// Sizes in turn.
#[derive(Debug)]
struct SizeCycle {
    /// The length of each frame of a turn, and which count is its.
    turn: Vec<(usize, usize)>,
    next: usize,
    counts: Vec<RequestSizeCount>,
}

impl SizeCycle {
    /// Of a plan; nothing where all requests have one size.
    fn of(work: &PacketPathWorkload) -> Option<Self> {
        let sizes = work.request_sizes();
        let place = |bytes| {
            let length = MESSAGE_AT + part_of(work, bytes, 0, 1);
            let count = sizes.iter().position(|size| size.0 == bytes);
            (length, count.unwrap_or(0))
        };
        let turn: Vec<(usize, usize)> = work.request_cycle.iter().map(|b| place(b.0)).collect();
        let count = |size: &weir_units::Bytes| RequestSizeCount {
            request_bytes: *size,
            messages: 0,
        };
        (!turn.is_empty()).then(|| Self {
            turn,
            next: 0,
            counts: sizes.iter().map(count).collect(),
        })
    }

    /// The length of the next frame.
    #[inline]
    fn take(&mut self) -> usize {
        let (length, count) = self.turn[self.next];
        self.counts[count].messages += 1;
        self.next += 1;
        if self.next == self.turn.len() {
            self.next = 0;
        }
        length
    }

    fn take_counts(&mut self) -> Vec<RequestSizeCount> {
        let counts = self.counts.clone();
        self.counts.iter_mut().for_each(|one| one.messages = 0);
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::Bytes;

    #[test]
    fn clients_share_a_number_of_messages() {
        let work = PacketPathWorkload {
            most_messages: 7,
            ..PacketPathWorkload::default()
        };
        let mut all = [0, 1, 2].map(|turn| RequestSupply::of(&work, (turn, 3)));
        assert_eq!(all.each_ref().map(RequestSupply::room), [3, 2, 2]);
        assert_eq!([all[1].begin(), all[1].begin()], [None, None]);
        assert!(all[1].is_empty() && !all[0].is_empty());
        let any = RequestSupply::of(&PacketPathWorkload::default(), (0, 1));
        assert!(any.room() > 1 << 40 && any.most() == u64::MAX);
    }

    #[test]
    fn sizes_come_in_turn_and_each_is_counted() {
        let work = PacketPathWorkload {
            request_cycle: [18, 548, 18, 1472].map(Bytes).to_vec(),
            request_bytes: Bytes(1472),
            ..PacketPathWorkload::default()
        };
        let mut cycle = SizeCycle::of(&work).unwrap();
        let lengths: Vec<usize> = (0..6).map(|_| cycle.take()).collect();
        assert_eq!(lengths, [60, 590, 60, 1514, 60, 590]);
        let counts = |all: Vec<RequestSizeCount>| -> Vec<(u64, u64)> {
            all.iter()
                .map(|one| (one.request_bytes.0, one.messages))
                .collect()
        };
        assert_eq!(counts(cycle.take_counts()), [(18, 3), (548, 2), (1472, 1)]);
        assert_eq!(counts(cycle.take_counts()), [(18, 0), (548, 0), (1472, 0)]);
        assert!(SizeCycle::of(&PacketPathWorkload::default()).is_none());
    }
}
