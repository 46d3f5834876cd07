//! Listings and queries.

use std::ops::Bound;

use super::Mem;
use super::index::{DkeyOrder, Holds, keys};
use super::medium::Medium;
use crate::array::Rect;
use crate::prelude::*;

type OrderedHeads<'a> = dyn DoubleEndedIterator<Item = u32> + 'a;

impl<M: Medium> Mem<M> {
    pub(super) fn list_level(
        &self,
        container: ContainerId,
        level: ListLevel<'_>,
        epoch: Epoch,
        anchor: &mut ListAnchor,
        visit: &mut dyn FnMut(ListEntry<'_>) -> bool,
    ) {
        match level {
            ListLevel::Objects => {
                for number in anchor.next as usize..self.index.objects.len() {
                    anchor.next += 1;
                    let object = &self.index.objects[number];
                    let is = object.container == container.0
                        && self.index.object_exists(number as u32, epoch.0);
                    if is && !visit(ListEntry::Object(object.id)) {
                        return;
                    }
                }
                anchor.done = true;
            }
            ListLevel::Dkeys(id) => {
                let object = self.index.object(container.0, id);
                let after = anchor.next.checked_sub(1).map(|head| head as u32);
                for head in self.dkeys_from(object, after) {
                    anchor.next = u64::from(head) + 1;
                    let is = self.index.dkey_exists(head, epoch.0);
                    if is && !visit(ListEntry::Key(self.keys_of(head).0)) {
                        return;
                    }
                }
                anchor.done = true;
            }
            ListLevel::Akeys(id, dkey) => {
                let object = self.index.object(container.0, id);
                let head = self.index.head(&self.medium, object, dkey);
                let there = self.existing(head, epoch);
                let mut akeys: Vec<&[u8]> = there.map(|item| self.keys_of(item).1).collect();
                // New ones stand behind the first: the listing goes by key, whatever was added.
                akeys.sort_unstable_by(|a, b| compare(id.akeys(), a, b));
                visit_from(akeys.into_iter().map(ListEntry::Key), anchor, visit);
            }
            ListLevel::Visible(id, dkey, akey) | ListLevel::Versions(id, dkey, akey) => {
                let object = self.index.object(container.0, id);
                let item = self.item_at(object, dkey, akey);
                let entries = match level {
                    ListLevel::Visible(..) => self.visible(item, epoch.0),
                    _ => self.versions(item, epoch.0),
                };
                visit_from(entries, anchor, visit);
            }
        }
    }

    fn keys_of(&self, item: u32) -> (&[u8], &[u8]) {
        keys(&self.medium, self.index.items[item as usize].record)
    }

    /// Attribute keys of a distribution key that exist.
    fn existing(&self, head: u32, epoch: Epoch) -> impl Iterator<Item = u32> {
        let akeys = self.index.akeys(head);
        akeys.filter(move |&item| self.index.item_exists(item, epoch.0))
    }

    fn visible(&self, item: u32, epoch: u64) -> Vec<ListEntry<'static>> {
        let mut entries = Vec::new();
        if !self.index.item_exists(item, epoch) {
            return entries;
        }
        let entry = &self.index.items[item as usize];
        if entry.holds == Holds::Singles {
            let found = self.index.single_at(entry, epoch);
            entries.extend(found.map(|v| ListEntry::version(None, v.epoch, v.len.into(), false)));
            return entries;
        }
        let size = u64::from(self.index.arrays[entry.more as usize].size);
        self.index.any_part(item, epoch, |start, end, rect| {
            let (extent, bytes) = (Some(extent_of(start, end)), (end - start) * size);
            entries.push(ListEntry::version(extent, rect.epoch, bytes, false));
            false
        });
        entries
    }

    fn versions(&self, item: u32, epoch: u64) -> Vec<ListEntry<'static>> {
        let Some(entry) = self.index.items.get(item as usize) else {
            return Vec::new();
        };
        if entry.holds != Holds::Array {
            let singles = self.index.singles(item as usize);
            let singles = singles.take_while(|v| v.epoch <= epoch);
            return singles
                .map(|v| ListEntry::version(None, v.epoch, v.len.into(), v.is_punch()))
                .collect();
        }
        let array = &self.index.arrays[entry.more as usize];
        let mut rects: Vec<_> = array.rects.iter().filter(|r| r.epoch <= epoch).collect();
        rects.sort_by_key(|r| (r.epoch, r.start));
        let entry = |r: &Rect| {
            let bytes = r.value_bytes(array.size.into());
            ListEntry::version(Some(r.extent()), r.epoch, bytes, r.is_punch())
        };
        rects.into_iter().map(entry).collect()
    }

    /// Distribution keys of an object in the order of its type, if that has one.
    fn ordered(&self, object: u32, from: Bound<&[u8]>) -> Option<Box<OrderedHeads<'_>>> {
        Some(match &self.index.objects.get(object as usize)?.order {
            DkeyOrder::None => return None,
            DkeyOrder::Integer(order) => {
                let within = (from.map(word), Bound::Unbounded);
                Box::new(order.range(within).map(|(_, &head)| head))
            }
            DkeyOrder::Lexical(order) => {
                let within = (from, Bound::Unbounded);
                Box::new(order.range::<[u8], _>(within).map(|(_, &head)| head))
            }
        })
    }

    /// Distribution keys of an object behind one of them, in the order of its type.
    fn dkeys_from(&self, object: u32, after: Option<u32>) -> Box<dyn Iterator<Item = u32> + '_> {
        let passed = after.map(|after| self.index.items.get(after as usize));
        let (from, next) = match (passed, self.index.objects.get(object as usize)) {
            // An anchor may come from a stranger.
            (Some(None), _) | (_, None) => return Box::new(std::iter::empty()),
            (Some(Some(item)), _) if item.record == 0 => (Bound::Unbounded, item.next_dkey),
            (Some(Some(item)), _) => {
                let key = keys(&self.medium, item.record).0;
                (Bound::Excluded(key), item.next_dkey)
            }
            (None, Some(entry)) => (Bound::Unbounded, entry.first),
        };
        match self.ordered(object, from) {
            Some(ordered) => Box::new(ordered),
            None => Box::new(self.index.dkeys(next)),
        }
    }

    pub(super) fn query_keys(
        &self,
        container: ContainerId,
        id: ObjectId,
        what: KeyQuery,
        epoch: Epoch,
        answer: &mut QueryAnswer,
    ) -> Result<()> {
        let object = self.index.object(container.0, id);
        let found = if what.has(KeyQuery::DKEY) {
            let mut search = |head: u32| self.query_dkey(head, id, what, epoch, answer);
            let ordered = self.ordered(object, Bound::Unbounded);
            ordered.is_some_and(|mut heads| {
                if what.has(KeyQuery::MAX) {
                    heads.rev().any(&mut search)
                } else {
                    heads.any(&mut search)
                }
            })
        } else {
            let head = self.index.head(&self.medium, object, &answer.dkey);
            self.query_dkey(head, id, what, epoch, answer)
        };
        if found {
            return Ok(());
        }
        ObjectCode::NonExist.fail("nothing matches the query")
    }

    /// Searches one distribution key; true with the answer filled where it has what is asked for.
    fn query_dkey(
        &self,
        head: u32,
        id: ObjectId,
        what: KeyQuery,
        epoch: Epoch,
        answer: &mut QueryAnswer,
    ) -> bool {
        let max = what.has(KeyQuery::MAX);
        let key = |item: u32| self.keys_of(item).1;
        let mut items: Vec<u32> = self.existing(head, epoch).collect();
        if what.has(KeyQuery::AKEY) {
            items.sort_unstable_by(|&a, &b| compare(id.akeys(), key(a), key(b)));
            if max {
                items.reverse();
            }
        } else if what.has(KeyQuery::EXTENT) {
            items.retain(|&item| key(item) == answer.akey);
        }
        for item in items {
            if what.has(KeyQuery::EXTENT) {
                if self.index.items[item as usize].holds != Holds::Array {
                    continue;
                }
                let mut last = None;
                self.index.any_part(item, epoch.0, |start, end, _| {
                    last = Some(extent_of(start, end));
                    !max
                });
                let Some(extent) = last else { continue };
                answer.extent = extent;
            }
            if what.has(KeyQuery::DKEY) {
                self.keys_of(head).0.clone_into(&mut answer.dkey);
            }
            if what.has(KeyQuery::AKEY) {
                key(item).clone_into(&mut answer.akey);
            }
            return true;
        }
        false
    }
}

fn compare(order: KeyOrder, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    match order {
        KeyOrder::Integer => word(a).cmp(&word(b)),
        KeyOrder::Hashed | KeyOrder::Lexical => a.cmp(b),
    }
}
