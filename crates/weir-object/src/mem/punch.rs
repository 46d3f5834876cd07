//! Punches: checks, the record, the index.

use super::Mem;
use super::index::Holds;
use super::medium::Medium;
use super::record::{Record, RecordKind};
use super::table::NONE;
use crate::array::range;
use crate::error::fail;
use crate::limits::{check_akey, check_epoch, check_extent, check_key};
use crate::store::{
    Conditions, ContainerId, Epoch, ObjectId, PunchScope, RecordExtent, Result, Ticket,
};
use crate::{ObjectCode, ObjectError};

impl<M: Medium> Mem<M> {
    pub(super) fn punch_scope(
        &mut self,
        container: ContainerId,
        object: ObjectId,
        scope: PunchScope<'_>,
        epoch: Epoch,
        conditions: Conditions,
    ) -> Result<Ticket> {
        let (kind, dkey, akey, extent) = match scope {
            PunchScope::Object => (
                RecordKind::PunchObject,
                &[][..],
                &[][..],
                RecordExtent::default(),
            ),
            PunchScope::Dkey(dkey) => (
                RecordKind::PunchDkey,
                dkey,
                &[][..],
                RecordExtent::default(),
            ),
            PunchScope::Akey(dkey, akey) => {
                (RecordKind::PunchAkey, dkey, akey, RecordExtent::default())
            }
            PunchScope::Extent(dkey, akey, extent) => (RecordKind::PunchExtent, dkey, akey, extent),
        };
        let mut record = Record::new(kind, container.0, object, epoch.0);
        (record.dkey, record.akey, record.extent) = (dkey, akey, extent);
        let done = (|| {
            self.check_open(container)?;
            self.check_writable()?;
            check_epoch(epoch)?;
            if kind != RecordKind::PunchObject {
                check_key(dkey, object.dkeys())?;
            }
            if matches!(kind, RecordKind::PunchAkey | RecordKind::PunchExtent) {
                check_akey(object, akey)?;
            }
            if kind == RecordKind::PunchExtent {
                check_extent(extent)?;
            }
            if self.is_punched(&record, conditions)? {
                return Ok(Ticket::Done(0));
            }
            self.note(&record)?;
            Ok(Ticket::Done(0))
        })();
        done.map_err(|e: ObjectError| e.at(object, dkey, akey, epoch))
    }

    /// True if the same punch is there already. Refuses one that its conditions or an update at the
    /// same epoch forbid.
    fn is_punched(&self, punch: &Record<'_>, conditions: Conditions) -> Result<bool> {
        let object = self.index.object(punch.container, punch.object);
        let head = match object {
            NONE => NONE,
            object => self.index.head(&self.medium, object, punch.dkey),
        };
        let item = match head {
            NONE => NONE,
            _ => self
                .index
                .item(&self.medium, object, punch.dkey, punch.akey),
        };
        let exists = match punch.kind {
            RecordKind::PunchObject => {
                object != NONE && self.index.object_exists(object, punch.epoch)
            }
            RecordKind::PunchDkey => self.index.dkey_exists(head, punch.epoch),
            _ => item != NONE && self.index.item_exists(item, punch.epoch),
        };
        if conditions.has(Conditions::PUNCH) && !exists {
            return fail(ObjectCode::NonExist, "there is nothing to punch");
        }
        let of_item = matches!(punch.kind, RecordKind::PunchAkey | RecordKind::PunchExtent);
        if !of_item || item == NONE {
            return Ok(false);
        }
        let entry = &self.index.items[item as usize];
        let (start, end) = match punch.kind {
            RecordKind::PunchAkey => (0, u64::MAX),
            _ => range(punch.extent),
        };
        let written = || fail(ObjectCode::Inval, "the item is written at the same epoch");
        match entry.holds {
            Holds::Nothing => Ok(false),
            Holds::Singles => {
                if punch.kind == RecordKind::PunchExtent
                    && self.index.singles(item as usize).any(|v| !v.is_punch())
                {
                    return fail(ObjectCode::IoInval, "the attribute key has single values");
                }
                match self.index.single_at(entry, punch.epoch) {
                    Some(v) if v.epoch == punch.epoch && !v.is_punch() => written(),
                    Some(v) => Ok(v.epoch == punch.epoch),
                    None => Ok(false),
                }
            }
            Holds::Array => {
                let rects = &self.index.arrays[entry.more as usize].rects;
                let mut same = rects
                    .iter()
                    .filter(|r| r.epoch == punch.epoch && r.overlaps(start, end));
                if same.clone().any(|rect| !rect.is_punch()) {
                    return written();
                }
                Ok(same.any(|rect| rect.start <= start && end <= rect.end))
            }
        }
    }
}
