//! Counters of the disks behind the targets.
//!
//! In: kernel names of disks as jobs begin to use them. Out: what each did since. Not here: which
//! disks lie behind a target (the family knows).

use std::collections::BTreeMap;

use weir_schema::DiskCounters;
use weir_sys::Tree;
use weir_sys::device::{DiskStat, disk_counters};
use weir_units::Nanos;

/// Counters of the disks behind the targets, taken when each first shows up.
#[derive(Debug, Default)]
pub(super) struct Disks {
    first: BTreeMap<String, (DiskStat, Option<std::time::Instant>)>,
}

impl Disks {
    /// Remembers the counters of disks that were not known yet.
    pub(super) fn add(&mut self, names: &[String]) {
        let tree = Tree::real();
        for name in names {
            if let Some(counters) = disk_counters(&tree, name) {
                let now = Some(std::time::Instant::now());
                self.first.entry(name.clone()).or_insert((counters, now));
            }
        }
    }

    /// Counts of the disks since the start.
    pub(super) fn since(&self) -> Vec<DiskCounters> {
        let tree = Tree::real();
        let read = |(name, (first, at)): (&String, &(DiskStat, Option<std::time::Instant>))| {
            let done = disk_counters(&tree, name)?.since(first);
            let elapsed = at.map_or(0, |at| at.elapsed().as_nanos());
            Some(DiskCounters {
                device: name.clone(),
                read_operations: done.reads,
                write_operations: done.writes,
                read_merges: done.reads_merged,
                write_merges: done.writes_merged,
                read_bytes: done.read,
                write_bytes: done.written,
                read_ns: done.read_time,
                write_ns: done.write_time,
                in_queue_ns: done.queued,
                busy_ns: done.busy,
                elapsed_ns: Nanos(u64::try_from(elapsed).unwrap_or(u64::MAX)),
                members: Vec::new(),
            })
        };
        self.first.iter().filter_map(read).collect()
    }
}
