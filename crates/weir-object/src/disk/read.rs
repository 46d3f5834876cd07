//! Versions that a read finds, and what exists at an epoch.

use super::keys::{self, ARRAY, EXTENT, Place, SINGLE};
use super::library::{Value, View};
use crate::array::{ALL, ArrayVersions, Rect, View as Parts, parts};
use crate::prelude::*;

/// Versions that an attribute key has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Nothing,
    Singles,
    Array {
        /// Bytes of a record; 0 while there are only punches.
        size: u64,
        /// Records of the longest extent.
        longest: u64,
    },
}

/// All versions of an attribute key up to an epoch. A single value, and a punch of the attribute key, are
/// a rectangle of all records. The place of a rectangle is the number of its bytes.
#[derive(Debug)]
pub(super) struct Versions {
    pub(super) holds: Holds,
    pub(super) array: ArrayVersions,
}

impl View<'_> {
    pub(super) fn holds(&self, place: &Place) -> Result<Holds> {
        let entry = self.first(&place.key, &keys::after(&place.key))?;
        let Some((key, value)) = entry else {
            return Ok(Holds::Nothing);
        };
        if key.value().get(place.key.len()) != Some(&ARRAY) {
            return Ok(Holds::Singles);
        }
        keys::unseal(self.sums, key.value(), value.value())?;
        let (size, longest) = keys::numbers(&value)?;
        Ok(Holds::Array { size, longest })
    }

    /// Newest version up to an epoch of a single value, or punch of the attribute key.
    pub(super) fn single(&self, place: &Place, epoch: u64) -> Result<Option<(Vec<u8>, Value<'_>)>> {
        let entry = self.first(&place.version(SINGLE, 0, epoch), &place.behind(SINGLE))?;
        Ok(entry.map(|(key, value)| (key.value().to_vec(), value)))
    }

    /// True if an attribute key has a single value at any epoch.
    pub(super) fn has_singles(&self, place: &Place) -> Result<bool> {
        for entry in self.range(&place.version(SINGLE, 0, u64::MAX), &place.behind(SINGLE))? {
            if !keys::bare(entry?.1.value()).is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Epoch up to which a read sees nothing, since the object or the distribution key is punched.
    pub(super) fn floor(&self, place: &Place, read: u64) -> Result<u64> {
        if !self.is_punched {
            return Ok(0);
        }
        let newest = |prefix: &[u8]| -> Result<u64> {
            let entry = self.first(&keys::punch(prefix, read), &keys::first_below(prefix))?;
            Ok(entry.map_or(0, |(key, _)| keys::epoch_of(key.value())))
        };
        Ok(newest(place.object_prefix())?.max(newest(place.dkey_prefix())?))
    }

    /// Extents and punches of records that overlap a range, of epochs above one and up to another, with
    /// their values.
    pub(super) fn extents(
        &self,
        place: &Place,
        longest: u64,
        (start, end): (u64, u64),
        (above, upto): (u64, u64),
    ) -> Result<(ArrayVersions, Vec<Value<'_>>)> {
        let first = start.saturating_sub(longest);
        let from = place.version(EXTENT, first, u64::MAX);
        let below = place.version(EXTENT, end, u64::MAX);
        let (mut array, mut values) = (ArrayVersions::default(), Vec::new());
        for entry in self.range(&from, &below)? {
            let (key, value) = entry?;
            let rect = rect(key.value(), value.value())?;
            if rect.epoch > above && rect.epoch <= upto && rect.overlaps(start, end) {
                array.rects.push(rect);
                values.push(value);
            }
        }
        Ok((array, values))
    }

    pub(super) fn versions(&self, place: &Place, upto: u64) -> Result<Versions> {
        let holds = self.holds(place)?;
        let mut array = ArrayVersions::default();
        if let Holds::Array { size, longest } = holds {
            array = self.extents(place, longest, ALL, (0, upto))?.0;
            array.size = u32::try_from(size).unwrap_or(u32::MAX);
        }
        let singles = self.range(&place.version(SINGLE, 0, upto), &place.behind(SINGLE))?;
        for entry in singles {
            let (key, value) = entry?;
            let (epoch, bytes) = (keys::epoch_of(key.value()), keys::bare(value.value()));
            let rect = Rect::new(ALL, epoch, bytes.len() as u64, 0);
            array.rects.push(rect);
        }
        array.rects.sort_by_key(|r| (r.epoch, r.start));
        Ok(Versions { holds, array })
    }

    /// Visible parts of an attribute key: all versions, and the parts by their first record.
    pub(super) fn visible(&self, place: &Place, epoch: u64) -> Result<(Versions, Parts)> {
        let floor = self.floor(place, epoch)?;
        let mut versions = self.versions(place, epoch)?;
        versions.array.rects.retain(|rect| rect.epoch > floor);
        let mut view = versions.array.view_at(epoch, 0, u64::MAX);
        view.retain(|_, (_, rect)| !versions.array.rects[*rect as usize].is_punch());
        Ok((versions, view))
    }

    /// True if a read at an epoch finds something of an attribute key.
    pub(super) fn akey_exists(&self, place: &Place, epoch: u64) -> Result<bool> {
        if let Some((key, value)) = self.single(place, epoch)?
            && !keys::bare(value.value()).is_empty()
        {
            return Ok(keys::epoch_of(&key) > self.floor(place, epoch)?);
        }
        Ok(!self.visible(place, epoch)?.1.is_empty())
    }

    /// Visits the attribute keys of a distribution key from a key on, or from the last one back.
    pub(super) fn each_akey<T>(
        &self,
        dkey: &Place,
        is_reverse: bool,
        mut visit: impl FnMut(&Place) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        self.each_below(dkey.dkey_prefix(), None, is_reverse, |key| {
            let Some((place, true)) = Place::of(key) else {
                return Ok((key.to_vec(), None));
            };
            let found = visit(&place)?;
            Ok((place.key, found))
        })
    }

    /// Visits what lies below a prefix, from a key on or from the end back: of each entry that is found
    /// the visitor gives the prefix of all that belongs to it, and what it searched for if that is it.
    pub(super) fn each_below<T>(
        &self,
        prefix: &[u8],
        from: Option<&[u8]>,
        is_reverse: bool,
        mut visit: impl FnMut(&[u8]) -> Result<(Vec<u8>, Option<T>)>,
    ) -> Result<Option<T>> {
        let mut first = from.map_or_else(|| keys::first_below(prefix), <[u8]>::to_vec);
        let mut end = keys::after(prefix);
        loop {
            let entry = if is_reverse {
                self.last(&first, &end)?
            } else {
                self.first(&first, &end)?
            };
            let Some((key, _)) = entry else {
                return Ok(None);
            };
            let (passed, found) = visit(key.value())?;
            if found.is_some() {
                return Ok(found);
            }
            if is_reverse {
                end = passed;
            } else {
                first = keys::after(&passed);
            }
        }
    }

    pub(super) fn dkey_exists(&self, dkey: &Place, epoch: u64) -> Result<bool> {
        let found = self.each_akey(dkey, false, |place| {
            Ok(self.akey_exists(place, epoch)?.then_some(()))
        })?;
        Ok(found.is_some())
    }

    /// True if an object has an update that no punch of the whole object hides.
    pub(super) fn object_exists(&self, object: &Place, epoch: u64) -> Result<bool> {
        let prefix = object.object_prefix();
        let floor = self.floor(object, epoch)?;
        for entry in self.range(&keys::first_below(prefix), &keys::after(prefix))? {
            let (key, value) = entry?;
            let Some((place, true)) = Place::of(key.value()) else {
                continue;
            };
            let at = keys::epoch_of(key.value());
            let is_value = match key.value()[place.key.len()] {
                SINGLE => !keys::bare(value.value()).is_empty(),
                EXTENT => keys::bare(value.value()).len() > 8,
                _ => false,
            };
            if is_value && at > floor && at <= epoch {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn fetch(
        &self,
        at: &CallAt<'_>,
        iods: &mut [Iod<'_>],
        mut data: &mut [u8],
    ) -> Result<u64> {
        let CallAt { key, epoch, .. } = *at;
        let mut place = Place::dkey(key.container, key.object, key.dkey);
        refuse!(at.conditions.has(Conditions::DKEY_FETCH) && !self.dkey_exists(&place, epoch.0)? => no_dkey());
        let mut found = 0;
        for iod in iods {
            place = place.with_akey(key.object, iod.akey);
            refuse!(at.conditions.has(Conditions::AKEY_FETCH) && !self.akey_exists(&place, epoch.0)? =>
                no_akey());
            let room;
            (room, data) = data.split_at_mut(iod.room() as usize);
            iod.found = 0;
            match iod.kind {
                IodKind::Single => self.fetch_single(&place, iod, epoch.0, room)?,
                IodKind::Array => self.fetch_extents(&place, iod, epoch.0, room)?,
            }
            found += iod.found;
        }
        Ok(found)
    }

    fn fetch_single(&self, at: &Place, iod: &mut Iod<'_>, read: u64, out: &mut [u8]) -> Result<()> {
        iod.size = 0;
        let found = self.single(at, read)?;
        let Some((key, value)) = found.filter(|(_, value)| !keys::bare(value.value()).is_empty())
        else {
            if matches!(self.holds(at)?, Holds::Array { .. }) {
                return ObjectCode::IoInval.fail("the attribute key has an array");
            }
            return Ok(());
        };
        if keys::epoch_of(&key) <= self.floor(at, read)? {
            return Ok(());
        }
        let bytes = keys::bare(value.value());
        iod.size = bytes.len() as u64;
        if out.is_empty() {
            return Ok(());
        }
        let Some(out) = out.get_mut(..bytes.len()) else {
            return ObjectCode::Rec2Big.fail("the value is longer than its room");
        };
        out.copy_from_slice(keys::unseal(self.sums, &key, value.value())?);
        iod.found = iod.size;
        Ok(())
    }

    fn fetch_extents(
        &self,
        place: &Place,
        iod: &mut Iod<'_>,
        epoch: u64,
        mut room: &mut [u8],
    ) -> Result<()> {
        let Holds::Array { size, longest } = self.holds(place)? else {
            iod.size = 0;
            refuse!(self.has_singles(place)? => only_singles());
            return Ok(());
        };
        let asked = std::mem::replace(&mut iod.size, size);
        if size == 0 || asked == 0 {
            return Ok(());
        }
        refuse!(asked != size => IoInval, "the array has another record size");
        let punched = self.single(place, epoch)?;
        let punched = punched.map_or(0, |(key, _)| keys::epoch_of(&key));
        let above = self.floor(place, epoch)?.max(punched);
        for extent in iod.extents {
            let part;
            (part, room) = room.split_at_mut((extent.count * size) as usize);
            let (start, end) = range(*extent);
            let (array, values) = self.extents(place, longest, (start, end), (above, epoch))?;
            let view = array.view_at(epoch, start, end);
            for (from, to, number) in parts(&view, start, end) {
                let rect = &array.rects[number as usize];
                if rect.is_punch() {
                    continue;
                }
                let key = place.version(EXTENT, rect.start, rect.epoch);
                let stored = keys::unseal(self.sums, &key, values[number as usize].value())?;
                let within = ((from - rect.start) * size) as usize;
                let into = ((from - start) * size) as usize;
                let len = ((to - from) * size) as usize;
                let Some(bytes) = stored.get(8 + within..8 + within + len) else {
                    return ObjectCode::Csum.fail("the extent is shorter than it says");
                };
                part[into..into + len].copy_from_slice(bytes);
                iod.found += len as u64;
            }
        }
        Ok(())
    }
}

/// The rectangle of an extent's entry.
fn rect(key: &[u8], value: &[u8]) -> Result<Rect> {
    let bytes = keys::bare(value);
    let start = keys::start_of(key);
    let count = word(bytes);
    let end = start.checked_add(count).filter(|_| count > 0);
    let Some(end) = end else {
        return ObjectCode::Csum.fail("an extent of the pool is damaged");
    };
    let (epoch, len) = (keys::epoch_of(key), bytes.len() as u64 - 8);
    Ok(Rect::new((start, end), epoch, len, 0))
}
