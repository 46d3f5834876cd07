//! Listings and queries.

use super::keys::{self, Place};
use super::library::View;
use super::read::Holds;
use crate::array::Rect;
use crate::prelude::*;

impl View<'_> {
    pub(super) fn list(
        &self,
        container: ContainerId,
        level: ListLevel<'_>,
        epoch: Epoch,
        anchor: &mut ListAnchor,
        visit: &mut dyn FnMut(ListEntry<'_>) -> bool,
    ) -> Result<()> {
        let (prefix, kind) = match level {
            ListLevel::Objects => (container.0.to_be_bytes().to_vec(), 0),
            ListLevel::Dkeys(id) => (Place::object(container, id).key, 1),
            ListLevel::Akeys(id, dkey) => (Place::dkey(container, id, dkey).key, 2),
            ListLevel::Visible(id, dkey, akey) | ListLevel::Versions(id, dkey, akey) => {
                let place = Place::akey(container, id, dkey, akey);
                let all = matches!(level, ListLevel::Versions(..));
                visit_from(self.entries_of(&place, epoch.0, all)?, anchor, visit);
                return Ok(());
            }
        };
        // Objects stand behind their container, whatever their first byte.
        let first = (kind != 0).then(|| keys::first_below(&prefix));
        let first = first.unwrap_or_else(|| prefix.clone());
        // A place may come from a stranger: it is nowhere but below the prefix.
        let from = anchor.key.clone().clamp(first, keys::after(&prefix));
        let stopped = self.each_below(&prefix, Some(&from), false, |key| {
            let Some((place, is_version)) = Place::of(key) else {
                return ObjectCode::Csum.fail("a key of the pool is damaged");
            };
            let (dkey, akey);
            let (passed, exists, entry) = match kind {
                0 => {
                    let passed = place.object_prefix();
                    let exists = self.object_exists(&place, epoch.0)?;
                    (passed, exists, ListEntry::Object(place.id()))
                }
                1 => {
                    (dkey, _) = place.parts();
                    let passed = place.dkey_prefix();
                    let exists = self.dkey_exists(&place, epoch.0)?;
                    (passed, exists, ListEntry::Key(&dkey))
                }
                _ => {
                    (_, akey) = place.parts();
                    let exists = is_version && self.akey_exists(&place, epoch.0)?;
                    (&place.key[..], exists, ListEntry::Key(&akey))
                }
            };
            anchor.key = keys::after(passed);
            let is_end = exists && !visit(entry);
            Ok((passed.to_vec(), is_end.then_some(())))
        })?;
        anchor.done = stopped.is_none();
        Ok(())
    }

    /// Versions of an attribute key up to an epoch, or what of them is visible.
    fn entries_of(&self, place: &Place, epoch: u64, all: bool) -> Result<Vec<ListEntry<'static>>> {
        if all {
            let versions = self.versions(place, epoch)?;
            let is_array = matches!(versions.holds, Holds::Array { .. });
            let entry = |r: &Rect| {
                let extent = is_array.then(|| r.extent());
                ListEntry::version(extent, r.epoch, r.at, r.is_punch())
            };
            return Ok(versions.array.rects.iter().map(entry).collect());
        }
        let (versions, view) = self.visible(place, epoch)?;
        let parts = view.iter().map(|(&start, &(end, rect))| {
            let rect = &versions.array.rects[rect as usize];
            let (extent, bytes) = match versions.holds {
                Holds::Array { size, .. } => {
                    let bytes = (end - start).saturating_mul(size);
                    (Some(extent_of(start, end)), bytes)
                }
                _ => (None, rect.at),
            };
            ListEntry::version(extent, rect.epoch, bytes, false)
        });
        Ok(parts.collect())
    }

    pub(super) fn query(
        &self,
        container: ContainerId,
        id: ObjectId,
        what: KeyQuery,
        epoch: Epoch,
        answer: &mut QueryAnswer,
    ) -> Result<()> {
        let (dkeys, akeys) = (what.has(KeyQuery::DKEY), what.has(KeyQuery::AKEY));
        let max = what.has(KeyQuery::MAX);
        let found = if dkeys {
            let object = Place::object(container, id);
            self.each_below(object.object_prefix(), None, max, |key| {
                let Some((place, _)) = Place::of(key) else {
                    return ObjectCode::Csum.fail("a key of the pool is damaged");
                };
                let found = self.query_dkey(&place, what, epoch.0, answer)?;
                Ok((place.dkey_prefix().to_vec(), found))
            })?
        } else {
            let place = Place::dkey(container, id, &answer.dkey);
            self.query_dkey(&place, what, epoch.0, answer)?
        };
        let Some((place, extent)) = found else {
            return ObjectCode::NonExist.fail("nothing matches the query");
        };
        let (dkey, akey) = place.parts();
        if dkeys {
            answer.dkey = dkey;
        }
        if akeys {
            answer.akey = akey;
        }
        if what.has(KeyQuery::EXTENT) {
            answer.extent = extent;
        }
        Ok(())
    }

    /// The attribute key and extent of a distribution key that are asked for.
    fn query_dkey(
        &self,
        dkey: &Place,
        what: KeyQuery,
        epoch: u64,
        answer: &QueryAnswer,
    ) -> Result<Option<(Place, RecordExtent)>> {
        let max = what.has(KeyQuery::MAX);
        let extents = what.has(KeyQuery::EXTENT);
        let is_named = extents && !what.has(KeyQuery::AKEY);
        self.each_akey(dkey, max && !is_named, |place| {
            if is_named && place.parts().1 != answer.akey {
                return Ok(None);
            }
            if !extents {
                let exists = self.akey_exists(place, epoch)?;
                return Ok(exists.then(|| (place.clone(), RecordExtent::default())));
            }
            let (versions, view) = self.visible(place, epoch)?;
            let Holds::Array { .. } = versions.holds else {
                return Ok(None);
            };
            let mut parts = view.iter().map(|(&start, &(end, _))| extent_of(start, end));
            let part = if max { parts.next_back() } else { parts.next() };
            Ok(part.map(|extent| (place.clone(), extent)))
        })
    }
}
