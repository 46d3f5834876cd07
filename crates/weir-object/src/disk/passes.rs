//! Passes over all versions: aggregate, discard, scrub, counts.

use super::keys::{self, ARRAY, EXTENT, Place, SINGLE};
use super::library::{Entry, View};
use super::read::Holds;
use crate::array::{Pass, hides};
use crate::prelude::*;

impl View<'_> {
    /// Drops versions of a range: those that neither its end nor a snapshot sees, or without snapshots all.
    pub(super) fn pass(&mut self, container: ContainerId, mut pass: Pass) -> Result<FreedVersions> {
        let prefix = container.0.to_be_bytes();
        let mut from = prefix.to_vec();
        let end = keys::after(&prefix);
        while let Some(object) = self.place_at(&from, &end)? {
            let object_end = keys::after(object.object_prefix());
            let punches = self.punches(object.object_prefix())?;
            let mut lowest = u64::MAX;
            from = keys::first_below(object.object_prefix());
            while let Some(dkey) = self.place_at(&from, &object_end)? {
                let dkey_end = keys::after(dkey.dkey_prefix());
                let of_dkey = self.punches(dkey.dkey_prefix())?;
                let is_hidden = |version: u64, read: u64| {
                    hides(&punches, version, read) || hides(&of_dkey, version, read)
                };
                let mut lowest_here = u64::MAX;
                from = keys::first_below(dkey.dkey_prefix());
                while let Some(akey) = self.place_at(&from, &dkey_end)? {
                    lowest_here = lowest_here.min(self.pass_akey(&akey, &mut pass, &is_hidden)?);
                    from = keys::after(&akey.key);
                }
                self.trim(dkey.dkey_prefix(), of_dkey, &mut pass, lowest_here)?;
                lowest = lowest.min(lowest_here);
                from = dkey_end;
            }
            self.trim(object.object_prefix(), punches, &mut pass, lowest)?;
            from = object_end;
        }
        Ok(pass.freed)
    }

    fn place_at(&self, from: &[u8], below: &[u8]) -> Result<Option<Place>> {
        let entry = self.first(from, below)?;
        let place = entry.and_then(|(key, _)| Place::of(key.value()));
        Ok(place.map(|(place, _)| place))
    }

    /// Punches of all below a prefix, by epoch.
    fn punches(&self, prefix: &[u8]) -> Result<Vec<u64>> {
        if !self.is_punched {
            return Ok(Vec::new());
        }
        let entries =
            self.range_back(&keys::punch(prefix, u64::MAX), &keys::first_below(prefix))?;
        let epoch = |entry: Result<Entry<'_>>| Ok(keys::epoch_of(entry?.0.value()));
        entries.map(epoch).collect()
    }

    fn trim(&mut self, at: &[u8], mut epochs: Vec<u64>, pass: &mut Pass, least: u64) -> Result<()> {
        let before = epochs.clone();
        pass.trim(&mut epochs, least);
        for epoch in before.into_iter().filter(|epoch| !epochs.contains(epoch)) {
            self.delete(&keys::punch(at, epoch))?;
        }
        Ok(())
    }

    /// Drops versions of an attribute key; the lowest epoch of an update that is left.
    fn pass_akey(
        &mut self,
        place: &Place,
        pass: &mut Pass,
        is_hidden: &impl Fn(u64, u64) -> bool,
    ) -> Result<u64> {
        let versions = self.versions(place, u64::MAX)?;
        let keep = pass.kept(&versions.array, is_hidden);
        let is_array = matches!(versions.holds, Holds::Array { .. });
        let mut lowest = u64::MAX;
        for (rect, keep) in versions.array.rects.iter().zip(&keep) {
            if *keep {
                if !rect.is_punch() {
                    lowest = lowest.min(rect.epoch);
                }
                continue;
            }
            pass.freed.versions += 1;
            pass.freed.bytes += rect.at;
            let kind = if rect.end == u64::MAX { SINGLE } else { EXTENT };
            self.delete(&place.version(kind, rect.start, rect.epoch))?;
        }
        if is_array && !keep.contains(&true) {
            self.delete(&place.version(ARRAY, 0, 0))?;
        }
        Ok(lowest)
    }

    /// Compares every entry of a value with its sum; their number.
    pub(super) fn scrub(&self, visit: &mut dyn FnMut(&DamagedValue)) -> Result<u64> {
        let mut checked = 0;
        for entry in self.range(&[0], &[u8::MAX; 4])? {
            let (key, value) = entry?;
            let (key, value) = (key.value(), value.value());
            let Some((place, is_version)) = Place::of(key) else {
                continue;
            };
            let kind = key.get(place.key.len()).filter(|_| is_version);
            let bytes = keys::bare(value).len();
            checked +=
                u64::from(kind == Some(&SINGLE) && bytes > 0 || kind == Some(&EXTENT) && bytes > 8);
            if keys::unseal(self.sums, key, value).is_err() {
                let (dkey, akey) = place.parts();
                let (index, count) = (keys::start_of(key), word(keys::bare(value)));
                let extent = RecordExtent { index, count };
                visit(&DamagedValue {
                    object: place.id(),
                    dkey,
                    akey,
                    extent: (kind == Some(&EXTENT)).then_some(extent),
                    epoch: Epoch(keys::epoch_of(key)),
                });
            }
        }
        Ok(checked)
    }

    /// Counts of objects, attribute keys, versions and bytes of values.
    pub(super) fn count(&self) -> Result<StoreStats> {
        let mut stats = StoreStats::default();
        let (mut object, mut akey) = (Vec::new(), Vec::new());
        for entry in self.range(&[0], &[u8::MAX; 4])? {
            let (key, value) = entry?;
            let (key, value) = (key.value(), value.value());
            let Some((place, true)) = Place::of(key) else {
                continue;
            };
            if object != place.object_prefix() {
                object = place.object_prefix().to_vec();
                stats.objects += 1;
            }
            let kind = key.get(place.key.len());
            if akey != place.key {
                akey = place.key;
                stats.akeys += 1;
            }
            if kind != Some(&ARRAY) {
                stats.versions += 1;
                stats.value_bytes += keys::bare(value).len() as u64;
            }
        }
        Ok(stats)
    }
}
