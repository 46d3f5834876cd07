//! Punches: checks, the record, the index.

use super::Mem;
use super::index::Holds;
use super::medium::Medium;
use super::record::{Record, RecordKind};
use super::table::NONE;
use crate::array::{ALL, Rect};
use crate::prelude::*;

impl<M: Medium> Mem<M> {
    /// Notes a punch that was checked, unless it is there.
    pub(super) fn note_punch(&mut self, punch: &Record<'_>, when: Conditions) -> Result<Ticket> {
        self.check_writable()?;
        if !self.is_punched(punch, when)? {
            self.note(punch)?;
        }
        Ok(Ticket::Done(0))
    }

    /// True if the same punch is there already. Refuses one that its conditions or an update at the
    /// same epoch forbid.
    fn is_punched(&self, punch: &Record<'_>, conditions: Conditions) -> Result<bool> {
        let object = self.index.object(punch.container, punch.object);
        let head = self.index.head(&self.medium, object, punch.dkey);
        let item = self.item_at(object, punch.dkey, punch.akey);
        let exists = match punch.kind {
            RecordKind::PunchObject => {
                object != NONE && self.index.object_exists(object, punch.epoch)
            }
            RecordKind::PunchDkey => self.index.dkey_exists(head, punch.epoch),
            _ => self.index.item_exists(item, punch.epoch),
        };
        refuse!(conditions.has(Conditions::PUNCH) && !exists => nothing_to_punch());
        let of_item = matches!(punch.kind, RecordKind::PunchAkey | RecordKind::PunchExtent);
        if !of_item || item == NONE {
            return Ok(false);
        }
        let entry = &self.index.items[item as usize];
        let records = match punch.kind {
            RecordKind::PunchAkey => ALL,
            _ => range(punch.extent),
        };
        match entry.holds {
            Holds::Nothing => Ok(false),
            Holds::Singles => {
                refuse!(punch.kind == RecordKind::PunchExtent && self.index.has_singles(item) =>
                    only_singles());
                let there = self.index.single_at(entry, punch.epoch);
                let rect = there.map(|v| Rect::new(ALL, v.epoch, v.at, 0));
                check_punched(rect.as_slice(), punch.epoch, records)
            }
            Holds::Array => {
                let rects = &self.index.arrays[entry.more as usize].rects;
                check_punched(rects, punch.epoch, records)
            }
        }
    }
}
