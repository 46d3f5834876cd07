//! Updates and punches: every check, then the entries.

use super::keys::{self, ARRAY, EXTENT, Place, SINGLE};
use super::library::View;
use super::read::Holds;
use crate::array::{ALL, Rect};
use crate::prelude::*;

/// An entry that an update writes.
struct Write<'a> {
    key: Vec<u8>,
    /// Numbers that stand before the bytes.
    lead: Vec<u8>,
    bytes: &'a [u8],
}

impl View<'_> {
    pub(super) fn update(&mut self, at: &CallAt<'_>, iods: &[Iod<'_>], data: &[u8]) -> Result<u64> {
        let CallAt { key, epoch, .. } = *at;
        let mut place = Place::dkey(key.container, key.object, key.dkey);
        let exists =
            |akey: &[u8]| self.akey_exists(&place.clone().with_akey(key.object, akey), epoch.0);
        at.conditions
            .check(iods, || self.dkey_exists(&place, epoch.0), exists)?;
        let mut writes = Vec::with_capacity(iods.len());
        let mut rest = data;
        for iod in iods {
            place = place.with_akey(key.object, iod.akey);
            self.takes(&place)?;
            let holds = self.holds(&place)?;
            self.check_form(&place, holds, iod)?;
            let mut longest = 0;
            for &extent in iod.extents() {
                let bytes;
                (bytes, rest) = rest.split_at((iod.size * extent.count) as usize);
                if holds != Holds::Nothing
                    && self.is_retry(&place, holds, iod, extent, epoch, bytes)?
                {
                    continue;
                }
                longest = longest.max(extent.count);
                let (key, lead) = match iod.kind {
                    IodKind::Single => (place.version(SINGLE, 0, epoch.0), Vec::new()),
                    IodKind::Array => {
                        let key = place.version(EXTENT, extent.index, epoch.0);
                        (key, extent.count.to_le_bytes().to_vec())
                    }
                };
                writes.push(Write { key, lead, bytes });
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

    /// Refuses a value of another form than the attribute key has.
    fn check_form(&self, place: &Place, holds: Holds, iod: &Iod<'_>) -> Result<()> {
        let there = match (holds, iod.kind) {
            (Holds::Nothing, _) => ValueForm::None,
            (Holds::Singles, IodKind::Array) if !self.has_singles(place)? => ValueForm::None,
            (Holds::Singles, _) => ValueForm::Single,
            (Holds::Array { size, .. }, _) => ValueForm::Array(size),
        };
        check_form(iod, there)
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
            let rect = Rect::new(range(extent), epoch.0, stored.len() as u64, 0);
            let is_single = iod.kind == IodKind::Single;
            return check_retry(Some(rect), extent, |_| is_single && stored == given);
        }
        let (Holds::Array { longest, .. }, IodKind::Array) = (holds, iod.kind) else {
            return Ok(false);
        };
        let only = (epoch.0 - 1, epoch.0);
        let (array, values) = self.extents(place, longest, range(extent), only)?;
        check_retry(array.rects.first().copied(), extent, |_| {
            keys::bare(values[0].value()).get(8..) == Some(given)
        })
    }

    pub(super) fn punch(
        &mut self,
        container: ContainerId,
        object: ObjectId,
        scope: PunchScope<'_>,
        epoch: Epoch,
        conditions: Conditions,
    ) -> Result<u64> {
        let place = match scope.keys() {
            (None, _) => Place::object(container, object),
            (Some(dkey), None) => Place::dkey(container, object, dkey),
            (Some(dkey), Some(akey)) => Place::akey(container, object, dkey, akey),
        };
        self.takes(&place)?;
        if conditions.has(Conditions::PUNCH) {
            let exists = match scope {
                PunchScope::Object => self.object_exists(&place, epoch.0)?,
                PunchScope::Dkey(_) => self.dkey_exists(&place, epoch.0)?,
                _ => self.akey_exists(&place, epoch.0)?,
            };
            refuse!(!exists => nothing_to_punch());
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
                if !self.is_punched_at(&place, ALL, epoch)? {
                    self.put(&place.version(SINGLE, 0, epoch.0), [&[]; 2])?;
                }
            }
            PunchScope::Extent(.., extent) => {
                let holds = self.holds(&place)?;
                refuse!(holds == Holds::Singles && self.has_singles(&place)? => only_singles());
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
        let single = self.get(&place.version(SINGLE, 0, epoch.0))?;
        if let Some(value) = single {
            let bytes = keys::bare(value.value()).len() as u64;
            return check_punched(&[Rect::new(ALL, epoch.0, bytes, 0)], epoch.0, range);
        }
        let Holds::Array { longest, .. } = self.holds(place)? else {
            return Ok(false);
        };
        let only = (epoch.0 - 1, epoch.0);
        let same = self.extents(place, longest, range, only)?.0.rects;
        check_punched(&same, epoch.0, range)
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
