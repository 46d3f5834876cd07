//! Counters of a disk since boot.
//!
//! In: `/sys/class/block/*/stat`. Out: counters, to be read twice and subtracted. Not here: which
//! disk a file lies on ([`super::disks_behind`]).

use crate::tree::Tree;
use weir_units::{Bytes, Nanos};

/// Counters of one disk. Times are counted by the kernel in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStat {
    /// Reads finished.
    pub reads: u64,
    /// Reads joined with a neighbour before they were sent.
    pub reads_merged: u64,
    /// Bytes read.
    pub read: Bytes,
    /// Time of all reads together.
    pub read_time: Nanos,
    /// Writes finished.
    pub writes: u64,
    /// Writes joined with a neighbour before they were sent.
    pub writes_merged: u64,
    /// Bytes written.
    pub written: Bytes,
    /// Time of all writes together.
    pub write_time: Nanos,
    /// Requests in flight now: a level, not a counter.
    pub in_flight: u64,
    /// Time in which anything was in flight.
    pub busy: Nanos,
    /// Time of all requests together, in flight ones included.
    pub queued: Nanos,
    /// Discards finished.
    pub discards: u64,
    /// Bytes discarded.
    pub discarded: Bytes,
    /// Flushes finished.
    pub flushes: u64,
}

impl DiskStat {
    /// Counts added since an earlier reading; `in_flight` stays as it is now.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let count = |now: u64, then: u64| now.saturating_sub(then);
        let bytes = |now: Bytes, then: Bytes| Bytes(now.0.saturating_sub(then.0));
        let span = |now: Nanos, then: Nanos| Nanos(now.0.saturating_sub(then.0));
        Self {
            reads: count(self.reads, earlier.reads),
            reads_merged: count(self.reads_merged, earlier.reads_merged),
            read: bytes(self.read, earlier.read),
            read_time: span(self.read_time, earlier.read_time),
            writes: count(self.writes, earlier.writes),
            writes_merged: count(self.writes_merged, earlier.writes_merged),
            written: bytes(self.written, earlier.written),
            write_time: span(self.write_time, earlier.write_time),
            in_flight: self.in_flight,
            busy: span(self.busy, earlier.busy),
            queued: span(self.queued, earlier.queued),
            discards: count(self.discards, earlier.discards),
            discarded: bytes(self.discarded, earlier.discarded),
            flushes: count(self.flushes, earlier.flushes),
        }
    }
}

/// Reads the counters of a disk by the kernel's name for it.
pub fn disk_counters(tree: &Tree, disk: &str) -> Option<DiskStat> {
    let text = tree.text(format!("sys/class/block/{disk}/stat"))?;
    let words = text.split_whitespace().map(str::parse);
    let words: Vec<u64> = words.collect::<Result<_, _>>().ok()?;
    if words.len() < 11 {
        return None;
    }
    // Discards came with Linux 4.18, flushes with 5.5.
    let at = |index: usize| words.get(index).copied().unwrap_or(0);
    let sectors = |index| Bytes(at(index).saturating_mul(512));
    let millis = |index| Nanos(at(index).saturating_mul(1_000_000));
    Some(DiskStat {
        reads: at(0),
        reads_merged: at(1),
        read: sectors(2),
        read_time: millis(3),
        writes: at(4),
        writes_merged: at(5),
        written: sectors(6),
        write_time: millis(7),
        in_flight: at(8),
        busy: millis(9),
        queued: millis(10),
        discards: at(11),
        discarded: sectors(13),
        flushes: at(15),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::block::tests::nvme;

    #[test]
    fn counters_carry_units_and_subtract() {
        let fake = nvme();
        let now = disk_counters(&fake.tree(), "nvme0n1").unwrap();
        assert_eq!(
            (now.reads, now.read, now.read_time),
            (1, Bytes(1536), Nanos(4_000_000))
        );
        assert_eq!(
            (now.writes, now.written, now.in_flight),
            (5, Bytes(3584), 9)
        );
        assert_eq!(
            (now.discards, now.discarded, now.flushes),
            (12, Bytes(14 * 512), 16)
        );
        let earlier = DiskStat {
            reads: 1,
            ..DiskStat::default()
        };
        assert_eq!(now.since(&earlier).reads, 0);
        assert_eq!(now.since(&now).queued, Nanos(0));
        assert_eq!(disk_counters(&fake.tree(), "sdz"), None);
    }

    #[test]
    fn a_short_line_is_no_answer_and_an_old_kernels_line_is() {
        let fake = nvme();
        fake.write("sys/class/block/old/stat", "1 2 3 4 5 6 7 8 9 10 11\n");
        fake.write("sys/class/block/bad/stat", "1 2 x\n");
        assert_eq!(disk_counters(&fake.tree(), "old").unwrap().flushes, 0);
        assert_eq!(disk_counters(&fake.tree(), "bad"), None);
    }
}
