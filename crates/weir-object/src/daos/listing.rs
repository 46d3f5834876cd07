//! Listings: keys of a level and objects of a snapshot, a batch at a time.
//!
//! In: a level, an anchor. Out: items, to the visitor. An anchor of the model is too small for one of the library,
//! which the store keeps until the listing has ended.

use std::collections::VecDeque;

use super::calls::{DaosAnchor, DaosHandle, DaosObject, KeyLength};
use super::library::DaosLibrary;
use super::store::DaosStore;
use crate::prelude::*;

/// Keys of a call.
const KEYS: usize = 128;
/// Bytes of the keys of a call, at first and at most.
const TEXT: [usize; 2] = [16 << 10, 256 << 10];
/// Objects of a call, as the reference has it.
const OBJECTS: usize = 8;
/// Listings that are kept; of more the oldest cannot go on.
const MOST: usize = 64;

/// Place of a listing in the library's terms.
#[derive(Debug)]
pub(super) struct Listing {
    source: ListedLevel,
    anchor: DaosAnchor,
    /// Items that the visitor has not seen.
    waiting: VecDeque<ListedItem>,
}

#[derive(Debug)]
enum ListedLevel {
    /// Keys of an object as a transaction reads it, or of a distribution key of it.
    Keys(DaosHandle, DaosHandle, Option<Vec<u8>>),
    /// Container and table; the epoch of a snapshot that was made for it.
    Table(DaosHandle, DaosHandle, Option<u64>),
}

#[derive(Debug)]
enum ListedItem {
    Object(ObjectId),
    Key(Vec<u8>),
}

impl Listing {
    /// Asks for the next batch.
    fn fill(&mut self, library: &DaosLibrary) -> Result<()> {
        let (object, dkey) = match &self.source {
            ListedLevel::Keys(object, transaction, dkey) => {
                ((*object, *transaction), dkey.as_deref())
            }
            ListedLevel::Table(_, table, _) => {
                let mut objects = [DaosObject::default(); OBJECTS];
                let count = library.list_table(*table, &mut objects, &mut self.anchor)?;
                let found = objects[..count].iter();
                self.waiting
                    .extend(found.map(|object| ListedItem::Object(callers_name(*object))));
                return Ok(());
            }
        };
        let mut text = vec![0; TEXT[0]];
        loop {
            let mut keys = [KeyLength::default(); KEYS];
            let room = (&mut keys[..], &mut text[..]);
            let count = match library.list(object, dkey, room, &mut self.anchor) {
                Err(why) if why.code == ObjectCode::Key2Big && text.len() < TEXT[1] => {
                    text.resize(TEXT[1], 0);
                    continue;
                }
                counted => counted?,
            };
            let mut rest = &text[..];
            for key in &keys[..count] {
                let len = local(key.len);
                let (key, behind) = rest
                    .split_at_checked(len)
                    .ok_or_else(|| ObjectCode::Io.error("a listed key is longer than its text"))?;
                self.waiting.push_back(ListedItem::Key(key.to_vec()));
                rest = behind;
            }
            return Ok(());
        }
    }

    /// Gives back what the library holds for it.
    pub(super) fn finish(self, library: &DaosLibrary) -> Result<()> {
        let ListedLevel::Table(container, table, snapshot) = self.source else {
            return Ok(());
        };
        let closed = library.close_table(container, table);
        let dropped = snapshot.map_or(Ok(()), |epoch| library.destroy_snapshot(container, epoch));
        closed.and(dropped)
    }
}

/// The name under which the caller knows an object: without the bits of its class.
fn callers_name(object: DaosObject) -> ObjectId {
    let hi = object.hi & !super::store::CLASS_BITS;
    ObjectId { hi, lo: object.lo }
}

impl DaosStore {
    fn new_listing(&mut self, id: ContainerId, level: ListLevel<'_>, at: Epoch) -> Result<Listing> {
        let source = match level {
            ListLevel::Dkeys(object) | ListLevel::Akeys(object, _) => {
                let dkey = match level {
                    ListLevel::Akeys(_, dkey) => Some(dkey.to_vec()),
                    _ => None,
                };
                let handle = self.object(id, object)?;
                ListedLevel::Keys(handle, self.transaction(id, at)?, dkey)
            }
            ListLevel::Objects => {
                let handle = self.container_at(id)?.handle;
                let own = at == Epoch::LATEST;
                let snapshot = if own {
                    self.library.create_snapshot(handle)?
                } else {
                    self.transaction(id, at)?;
                    at.0
                };
                let table = self.library.open_table(handle, snapshot);
                if own && table.is_err() {
                    self.library.destroy_snapshot(handle, snapshot)?;
                }
                ListedLevel::Table(handle, table?, own.then_some(snapshot))
            }
            ListLevel::Visible(..) | ListLevel::Versions(..) => {
                let why =
                    "daos lists objects and keys; their values and versions are listed by mem";
                return ObjectCode::NoSys.fail(why);
            }
        };
        Ok(Listing {
            source,
            anchor: DaosAnchor::start(),
            waiting: VecDeque::new(),
        })
    }

    pub(super) fn list_level(
        &mut self,
        container: ContainerId,
        level: ListLevel<'_>,
        epoch: Epoch,
        anchor: &mut ListAnchor,
        visit: &mut dyn FnMut(ListEntry<'_>) -> bool,
    ) -> Result<()> {
        let mut listing = match anchor.next {
            0 => self.new_listing(container, level, epoch)?,
            kept => self
                .listings
                .remove(&kept)
                .ok_or_else(|| ObjectCode::NoHdl.error("no listing of this anchor is kept"))?,
        };
        let mut goes_on = true;
        while goes_on && !(listing.waiting.is_empty() && listing.anchor.is_at_end()) {
            match listing.waiting.pop_front() {
                Some(ListedItem::Object(object)) => goes_on = visit(ListEntry::Object(object)),
                Some(ListedItem::Key(key)) => goes_on = visit(ListEntry::Key(&key)),
                None => {
                    if let Err(why) = listing.fill(&self.library) {
                        // The first reason counts.
                        let _ = listing.finish(&self.library);
                        return Err(why);
                    }
                }
            }
        }
        anchor.done = listing.waiting.is_empty() && listing.anchor.is_at_end();
        if anchor.done {
            return listing.finish(&self.library);
        }
        self.listed += 1;
        anchor.next = self.listed;
        self.listings.insert(self.listed, listing);
        if self.listings.len() > MOST
            && let Some((_, oldest)) = self.listings.pop_first()
        {
            return oldest.finish(&self.library);
        }
        Ok(())
    }
}
