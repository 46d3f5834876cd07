//! Passes over all versions: aggregate and discard, which drop some; collecting, which writes a new log
//! of what is left and only then gives the space of dropped values back.

use super::Mem;
use super::index::{DkeyOrder, Holds, Single, keys};
use super::log::Log;
use super::medium::Medium;
use super::record::{Record, RecordKind, sums_of};
use super::space::slot_size;
use super::table::NONE;
use crate::array::Pass;
use crate::prelude::*;

impl<M: Medium> Mem<M> {
    /// Visits the place and length of every value.
    pub(super) fn each_value(&self, mut visit: impl FnMut(u64, u64)) {
        for number in 0..self.index.items.len() {
            let values = self.index.versions(number).filter(|(_, at, _)| *at != 0);
            values.for_each(|(_, at, len)| visit(at, len));
        }
    }

    /// Carries a logged pass out.
    pub(super) fn pass_over(
        &mut self,
        kind: RecordKind,
        of: u32,
        span: EpochRange,
    ) -> FreedVersions {
        let entry = self.index.containers.get(of as usize);
        let snapshots = entry.map_or(&[][..], |entry| &entry.snapshots);
        let aggregates = kind == RecordKind::Aggregate;
        let mut pass = Pass::new(span, aggregates.then_some(snapshots));
        for object in 0..self.index.objects.len() {
            if self.index.objects[object].container != of {
                continue;
            }
            let mut lowest = u64::MAX;
            let mut head = self.index.objects[object].first;
            while head != NONE {
                let mut lowest_here = u64::MAX;
                let mut item = head;
                while item != NONE {
                    let left = match self.index.items[item as usize].holds {
                        Holds::Nothing => u64::MAX,
                        Holds::Singles => self.pass_singles(item as usize, &mut pass),
                        Holds::Array => self.pass_array(item as usize, &mut pass),
                    };
                    lowest_here = lowest_here.min(left);
                    item = self.index.items[item as usize].next;
                }
                let entry = &self.index.items[head as usize];
                if let Some(punches) = self.index.dkey_punches.get_mut(entry.punches as usize) {
                    pass.trim(punches, lowest_here);
                }
                lowest = lowest.min(lowest_here);
                head = entry.next_dkey;
            }
            pass.trim(&mut self.index.objects[object].punches, lowest);
        }
        if let (RecordKind::DropContainer, Some(entry)) =
            (kind, self.index.containers.get_mut(of as usize))
        {
            entry.end();
        }
        pass.freed
    }

    fn drop_value(&mut self, at: u64, len: u64, pass: &mut Pass) {
        pass.freed.versions += 1;
        self.index.versions -= 1;
        if at != 0 {
            pass.freed.bytes += len;
            self.deferred.push((at, len));
            self.deferred_bytes += slot_size(len);
        }
    }

    /// Drops versions of a single value; the lowest epoch of an update that is left.
    fn pass_singles(&mut self, number: usize, pass: &mut Pass) -> u64 {
        let item = self.index.items[number];
        if item.more == NONE && !item.newest.is_punch() && !pass.has(item.newest.epoch) {
            pass.freed.visited += 1;
            return item.newest.epoch;
        }
        let versions: Vec<Single> = self.index.singles(number).collect();
        let mut keep: Vec<bool> = versions.iter().map(|v| !pass.has(v.epoch)).collect();
        for &epoch in &pass.keep {
            let before = versions.partition_point(|v| v.epoch <= epoch);
            let Some(at) = before.checked_sub(1) else {
                continue;
            };
            let v = versions[at];
            keep[at] |= !v.is_punch() && !self.index.is_hidden(&item, v.epoch, epoch);
        }
        let mut lowest = u64::MAX;
        for (v, keep) in versions.iter().zip(&mut keep) {
            if !v.is_punch() && *keep {
                lowest = lowest.min(v.epoch);
            }
            // A punch stays while there is something that it hides.
            *keep |= v.is_punch() && !pass.keep.is_empty() && lowest < v.epoch;
        }
        pass.freed.visited += versions.len() as u64;
        let mut left = Vec::new();
        for (v, keep) in versions.into_iter().zip(keep) {
            if keep {
                left.push(v);
            } else {
                self.drop_value(v.at, u64::from(v.len), pass);
            }
        }
        let item = &mut self.index.items[number];
        if let Some(newest) = left.pop() {
            item.newest = newest;
        } else {
            item.newest.epoch = 0;
            item.holds = Holds::Nothing;
        }
        if item.more != NONE {
            if left.is_empty() && item.holds == Holds::Nothing {
                self.index.older[item.more as usize] = Vec::new();
                item.more = NONE;
            } else {
                self.index.older[item.more as usize] = left;
            }
        }
        lowest
    }

    fn pass_array(&mut self, number: usize, pass: &mut Pass) -> u64 {
        let item = self.index.items[number];
        let array = &self.index.arrays[item.more as usize];
        let keep = pass.kept(array, |version, read| {
            self.index.is_hidden(&item, version, read)
        });
        let size = u64::from(array.size);
        for at in (0..keep.len()).filter(|&at| !keep[at]) {
            let rect = self.index.arrays[item.more as usize].rects[at];
            self.drop_value(rect.at, rect.value_bytes(size), pass);
        }
        let array = &mut self.index.arrays[item.more as usize];
        array.retain(|at| keep[at]);
        let item = &mut self.index.items[number];
        item.newest.epoch = array.rects.iter().map(|r| r.epoch).max().unwrap_or(0);
        let updates = array.rects.iter().filter(|r| !r.is_punch());
        let lowest = updates.map(|r| r.epoch).min().unwrap_or(u64::MAX);
        if array.rects.is_empty() {
            (item.holds, item.more) = (Holds::Nothing, NONE);
        }
        lowest
    }

    /// Writes a log of what is left, then gives the space of dropped values back; its bytes.
    pub(super) fn rewrite_log(&mut self) -> Result<u64> {
        self.check_writable()?;
        if self.deferred.is_empty() {
            return Ok(0);
        }
        refuse!(self.space.free_chunks() < self.log.segments().len() => NoSpace,
            "the pool is too full to write its log anew");
        let mut log = Log::new(&mut self.medium, &mut self.space, self.log.seq())?;
        // A failure leaves the segments of the new log in use: entries name records in them already.
        self.write_all(&mut log)?;
        self.medium.fence();
        let old = std::mem::replace(&mut self.log, log);
        self.write_superblock();
        for &segment in old.segments() {
            self.space.give_segment(segment);
        }
        self.space.reserve = self.log.segments().len() + 1;
        let before = self.space.value_bytes;
        for (at, len) in self.deferred.drain(..) {
            self.space.free(at, len);
        }
        self.deferred_bytes = 0;
        self.space.give_empty_chunks();
        Ok(before - self.space.value_bytes)
    }

    fn write_all(&mut self, log: &mut Log) -> Result<()> {
        for number in 0..self.index.containers.len() {
            let container = &self.index.containers[number];
            let mut record = Record::container(number as u32, container.uuid);
            log.append(&record, &mut self.medium, &mut self.space)?;
            (record.kind, record.object) = (RecordKind::Snapshot, ObjectId::default());
            for &epoch in &container.snapshots {
                record.epoch = epoch;
                log.append(&record, &mut self.medium, &mut self.space)?;
            }
            if container.is_gone {
                (record.kind, record.epoch) = (RecordKind::DropContainer, Epoch::LATEST.0);
                log.append(&record, &mut self.medium, &mut self.space)?;
            }
        }
        for object in 0..self.index.objects.len() {
            let entry = &self.index.objects[object];
            for &epoch in &entry.punches {
                let record = Record::new(RecordKind::PunchObject, entry.container, entry.id, epoch);
                log.append(&record, &mut self.medium, &mut self.space)?;
            }
            let mut head = entry.first;
            while head != NONE {
                self.write_dkey(log, object, head)?;
                head = self.index.items[head as usize].next_dkey;
            }
        }
        Ok(())
    }

    fn write_dkey(&mut self, log: &mut Log, object: usize, head: u32) -> Result<()> {
        let first = self.index.items[head as usize];
        if first.record == 0 {
            return Ok(());
        }
        let entry = &self.index.objects[object];
        let dkey = keys(&self.medium, first.record).0.to_vec();
        let mut record = Record::new(RecordKind::PunchDkey, entry.container, entry.id, 0);
        record.dkey = &dkey;
        let mut named = 0;
        for &epoch in self.index.punches(head) {
            record.epoch = epoch;
            named = log.append(&record, &mut self.medium, &mut self.space)?;
        }
        let items: Vec<u32> = self.index.akeys(head).collect();
        for item in items {
            let entry = self.index.items[item as usize];
            if entry.holds == Holds::Nothing {
                self.index.items[item as usize].record = 0;
                continue;
            }
            let akey = keys(&self.medium, entry.record).1.to_vec();
            let record = Record {
                akey: &akey,
                ..record
            };
            named = match entry.holds {
                Holds::Array => self.write_array(log, entry.more, record)?,
                _ => self.write_singles(log, item, record)?,
            };
            self.index.items[item as usize].record = named;
        }
        if self.index.items[head as usize].holds == Holds::Nothing {
            // It still stands for the distribution key, by any record of that.
            self.index.items[head as usize].record = named;
        }
        if named == 0 {
            match &mut self.index.objects[object].order {
                DkeyOrder::None => {}
                DkeyOrder::Integer(order) => {
                    order.remove(&word(&dkey));
                }
                DkeyOrder::Lexical(order) => {
                    order.remove(&dkey[..]);
                }
            }
        }
        Ok(())
    }

    /// Writes the versions of a single value; the place of the last record.
    fn write_singles(&mut self, log: &mut Log, item: u32, mut record: Record<'_>) -> Result<u64> {
        let mut named = 0;
        for v in self.index.singles(item as usize) {
            record.kind = if v.is_punch() {
                RecordKind::PunchAkey
            } else {
                RecordKind::Single
            };
            (record.epoch, record.at, record.len, record.sum) = (v.epoch, v.at, v.len, v.sum);
            named = log.append(&record, &mut self.medium, &mut self.space)?;
        }
        Ok(named)
    }

    /// Writes the rectangles of an array, and notes their places; that of the last record.
    fn write_array(&mut self, log: &mut Log, array: u32, mut record: Record<'_>) -> Result<u64> {
        let mut named = 0;
        let array = &mut self.index.arrays[array as usize];
        for rect in &mut array.rects {
            let sums = if rect.is_punch() {
                Vec::new()
            } else {
                sums_of(&self.medium, rect.record).to_vec()
            };
            record.kind = match rect.end {
                u64::MAX => RecordKind::PunchAkey,
                _ if rect.is_punch() => RecordKind::PunchExtent,
                _ => RecordKind::Extent,
            };
            (record.epoch, record.at, record.size) = (rect.epoch, rect.at, array.size);
            record.extent = rect.extent();
            let record = Record {
                sums: &sums,
                ..record
            };
            rect.record = log.append(&record, &mut self.medium, &mut self.space)?;
            named = rect.record;
        }
        Ok(named)
    }
}
