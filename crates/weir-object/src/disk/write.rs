//! Updates and punches: every check, then the entries.

use super::keys::{self, ARRAY, EXTENT, Place, SINGLE};
use super::library::View;
use super::read::Holds;
use crate::ObjectCode;
use crate::array::range;
use crate::error::fail;
use crate::limits::{check_apart, extents_of};
use crate::store::{
    Conditions, ContainerId, Epoch, Iod, IodKind, KeyAt, ObjectId, PunchScope, RecordExtent, Result,
};

/// An entry that an update writes.
struct Write<'a> {
    key: Vec<u8>,
    /// Numbers that stand before the bytes.
    lead: Vec<u8>,
    bytes: &'a [u8],
}

impl View<'_> {
    pub(super) fn update(
        &mut self,
        key: KeyAt<'_>,
        iods: &[Iod<'_>],
        epoch: Epoch,
        conditions: Conditions,
        data: &[u8],
    ) -> Result<u64> {
        let mut place = Place::dkey(key.container, key.object, key.dkey);
        place = self.check_conditions(place, key.object, iods, epoch, conditions)?;
        let mut writes = Vec::with_capacity(iods.len());
        let mut rest = data;
        for iod in iods {
            if iod.size == 0 {
                return fail(ObjectCode::Inval, "a value is empty");
            }
            if iod.kind == IodKind::Array {
                check_apart(iod.extents)?;
            }
            place = place.with_akey(key.object, iod.akey);
            let holds = self.holds(&place)?;
            self.check_form(&place, holds, iod)?;
            let mut longest = 0;
            for &extent in extents_of(iod) {
                let bytes;
                (bytes, rest) = rest.split_at((iod.size * extent.count) as usize);
                if holds != Holds::Nothing
                    && self.is_retry(&place, holds, iod, extent, epoch, bytes)?
                {
                    continue;
                }
                longest = longest.max(extent.count);
                let is_array = iod.kind == IodKind::Array;
                writes.push(Write {
                    key: if is_array {
                        place.version(EXTENT, extent.index, epoch.0)
                    } else {
                        place.version(SINGLE, 0, epoch.0)
                    },
                    lead: if is_array {
                        extent.count.to_le_bytes().to_vec()
                    } else {
                        Vec::new()
                    },
                    bytes,
                });
            }
            if iod.kind == IodKind::Array && longest > 0 {
                writes.extend(array_entry(&place, holds, iod.size, longest));
            }
        }
        for write in writes {
            self.put(&write.key, [&write.lead, write.bytes])?;
        }
        Ok(data.len() as u64)
    }

    fn check_conditions(
        &self,
        mut place: Place,
        object: ObjectId,
        iods: &[Iod<'_>],
        epoch: Epoch,
        conditions: Conditions,
    ) -> Result<Place> {
        let of_dkey = [Conditions::DKEY_INSERT, Conditions::DKEY_UPDATE].map(|c| conditions.has(c));
        if of_dkey != [false; 2] {
            match (self.dkey_exists(&place, epoch.0)?, of_dkey) {
                (true, [true, _]) => return fail(ObjectCode::Exist, "the distribution key exists"),
                (false, [_, true]) => {
                    return fail(ObjectCode::NonExist, "the distribution key does not exist");
                }
                _ => {}
            }
        }
        let of_akey = [Conditions::AKEY_INSERT, Conditions::AKEY_UPDATE].map(|c| conditions.has(c));
        for iod in iods.iter().filter(|_| of_akey != [false; 2]) {
            place = place.with_akey(object, iod.akey);
            match (self.akey_exists(&place, epoch.0)?, of_akey) {
                (true, [true, _]) => return fail(ObjectCode::Exist, "the attribute key exists"),
                (false, [_, true]) => {
                    return fail(ObjectCode::NonExist, "the attribute key does not exist");
                }
                _ => {}
            }
        }
        Ok(place)
    }

    /// Refuses a value of another form than the attribute key has.
    fn check_form(&self, place: &Place, holds: Holds, iod: &Iod<'_>) -> Result<()> {
        let fits = match (holds, iod.kind) {
            (Holds::Nothing, _) | (Holds::Singles, IodKind::Single) => true,
            (Holds::Singles, IodKind::Array) => !self.has_singles(place)?,
            (Holds::Array { .. }, IodKind::Single) => false,
            (Holds::Array { size, .. }, IodKind::Array) => size == 0 || size == iod.size,
        };
        if fits {
            return Ok(());
        }
        fail(
            ObjectCode::IoInval,
            "the attribute key has values of another kind or record size",
        )
    }

    /// True if the same bytes are there at the same epoch; other ones are an error.
    fn is_retry(
        &self,
        place: &Place,
        holds: Holds,
        iod: &Iod<'_>,
        extent: RecordExtent,
        epoch: Epoch,
        given: &[u8],
    ) -> Result<bool> {
        if let Some(value) = self.get(&place.version(SINGLE, 0, epoch.0))? {
            let stored = keys::bare(value.value());
            return if stored.is_empty() {
                fail(ObjectCode::Inval, "the item is punched at the same epoch")
            } else if stored == given && iod.kind == IodKind::Single {
                Ok(true)
            } else {
                fail(
                    ObjectCode::Exist,
                    "the item has another value at the same epoch",
                )
            };
        }
        let (Holds::Array { longest, .. }, IodKind::Array) = (holds, iod.kind) else {
            return Ok(false);
        };
        let only = (epoch.0 - 1, epoch.0);
        let (array, values) = self.extents(place, longest, range(extent), only)?;
        let Some(rect) = array.rects.first() else {
            return Ok(false);
        };
        if rect.is_punch() {
            return fail(ObjectCode::Inval, "the item is punched at the same epoch");
        }
        if (rect.start, rect.end) != range(extent) {
            return fail(
                ObjectCode::Exist,
                "the extent overlaps another of the same epoch",
            );
        }
        if keys::bare(values[0].value()).get(8..) == Some(given) {
            return Ok(true);
        }
        fail(
            ObjectCode::Exist,
            "the item has another value at the same epoch",
        )
    }

    pub(super) fn punch(
        &mut self,
        container: ContainerId,
        object: ObjectId,
        scope: PunchScope<'_>,
        epoch: Epoch,
        conditions: Conditions,
    ) -> Result<u64> {
        let place = match scope {
            PunchScope::Object => Place::object(container, object),
            PunchScope::Dkey(dkey) => Place::dkey(container, object, dkey),
            PunchScope::Akey(dkey, akey) | PunchScope::Extent(dkey, akey, _) => {
                Place::akey(container, object, dkey, akey)
            }
        };
        if conditions.has(Conditions::PUNCH) {
            let exists = match scope {
                PunchScope::Object => self.object_exists(&place, epoch.0)?,
                PunchScope::Dkey(_) => self.dkey_exists(&place, epoch.0)?,
                _ => self.akey_exists(&place, epoch.0)?,
            };
            if !exists {
                return fail(ObjectCode::NonExist, "there is nothing to punch");
            }
        }
        match scope {
            PunchScope::Object | PunchScope::Dkey(_) => {
                if !self.is_punched {
                    self.put(&keys::pool(keys::PUNCHED, 0, 0), [&[]; 2])?;
                    self.is_punched = true;
                }
                self.put(&keys::punch(&place.key, epoch.0), [&[]; 2])?;
            }
            PunchScope::Akey(..) => {
                if !self.is_punched_at(&place, (0, u64::MAX), epoch)? {
                    self.put(&place.version(SINGLE, 0, epoch.0), [&[]; 2])?;
                }
            }
            PunchScope::Extent(.., extent) => {
                let holds = self.holds(&place)?;
                if holds == Holds::Singles && self.has_singles(&place)? {
                    return fail(ObjectCode::IoInval, "the attribute key has single values");
                }
                if !self.is_punched_at(&place, range(extent), epoch)? {
                    let key = place.version(EXTENT, extent.index, epoch.0);
                    self.put(&key, [&extent.count.to_le_bytes(), &[]])?;
                    if let Some(array) = array_entry(&place, holds, 0, extent.count) {
                        self.put(&array.key, [&array.lead, &[]])?;
                    }
                }
            }
        }
        Ok(0)
    }

    /// True if the same punch is there already. Refuses one of what is written at the same epoch.
    fn is_punched_at(&self, place: &Place, range: (u64, u64), epoch: Epoch) -> Result<bool> {
        let written = || fail(ObjectCode::Inval, "the item is written at the same epoch");
        if let Some(value) = self.get(&place.version(SINGLE, 0, epoch.0))? {
            return if keys::bare(value.value()).is_empty() {
                Ok(true)
            } else {
                written()
            };
        }
        let Holds::Array { longest, .. } = self.holds(place)? else {
            return Ok(false);
        };
        let only = (epoch.0 - 1, epoch.0);
        let same = self.extents(place, longest, range, only)?.0.rects;
        if same.iter().any(|rect| !rect.is_punch()) {
            return written();
        }
        let covers = |rect: &crate::array::Rect| rect.start <= range.0 && range.1 <= rect.end;
        Ok(same.iter().any(covers))
    }
}

/// The entry of an array, where it changes.
fn array_entry(place: &Place, holds: Holds, size: u64, longest: u64) -> Option<Write<'static>> {
    let old = match holds {
        Holds::Array { size, longest } => (size, longest),
        _ => (0, 0),
    };
    let new = (old.0.max(size), old.1.max(longest));
    (holds == Holds::Nothing || holds == Holds::Singles || old != new).then(|| Write {
        key: place.version(ARRAY, 0, 0),
        lead: [new.0.to_le_bytes(), new.1.to_le_bytes()].concat(),
        bytes: &[],
    })
}
