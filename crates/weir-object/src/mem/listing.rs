//! Listings and queries.

use super::Mem;
use super::index::{DkeyOrder, Holds, keys};
use super::medium::Medium;
use super::table::NONE;
use crate::ObjectCode;
use crate::error::fail;
use crate::limits::{check_akey, check_epoch, check_key};
use crate::store::{
    ContainerId, Epoch, KeyOrder, KeyQuery, ListAnchor, ListEntry, ListLevel, ObjectId,
    QueryAnswer, RecordExtent, Result,
};

/// Visits entries from the anchor on; the anchor counts those that were passed.
fn visit_from<'a>(
    entries: impl Iterator<Item = ListEntry<'a>>,
    anchor: &mut ListAnchor,
    visit: &mut dyn FnMut(ListEntry<'_>) -> bool,
) {
    for entry in entries.skip(anchor.next as usize) {
        anchor.next += 1;
        if !visit(entry) {
            return;
        }
    }
    anchor.done = true;
}

fn version(extent: Option<(u64, u64)>, epoch: u64, bytes: u64, punch: bool) -> ListEntry<'static> {
    let extent = extent.map(|(start, end)| RecordExtent {
        index: start,
        count: end - start,
    });
    ListEntry::Version {
        extent,
        epoch: Epoch(epoch),
        bytes,
        punch,
    }
}

impl<M: Medium> Mem<M> {
    pub(super) fn list_level(
        &self,
        container: ContainerId,
        level: ListLevel<'_>,
        epoch: Epoch,
        anchor: &mut ListAnchor,
        visit: &mut dyn FnMut(ListEntry<'_>) -> bool,
    ) -> Result<()> {
        self.check_open(container)?;
        check_epoch(epoch)?;
        if anchor.done {
            return Ok(());
        }
        match level {
            ListLevel::Objects => {
                for number in anchor.next as usize..self.index.objects.len() {
                    anchor.next += 1;
                    let object = &self.index.objects[number];
                    let is = object.container == container.0
                        && self.index.object_exists(number as u32, epoch.0);
                    if is && !visit(ListEntry::Object(object.id)) {
                        return Ok(());
                    }
                }
                anchor.done = true;
            }
            ListLevel::Dkeys(id) => {
                let object = self.index.object(container.0, id);
                let after = anchor.next.checked_sub(1).map(|head| head as u32);
                for head in self.dkeys_from(object, after) {
                    anchor.next = u64::from(head) + 1;
                    if self.index.dkey_exists(head, epoch.0) {
                        let key = keys(&self.medium, self.index.items[head as usize].record).0;
                        if !visit(ListEntry::Key(key)) {
                            return Ok(());
                        }
                    }
                }
                anchor.done = true;
            }
            ListLevel::Akeys(id, dkey) => {
                let mut akeys = self.akeys_at(container, id, dkey, epoch)?;
                // New ones stand behind the first: the listing goes by key, whatever was added.
                akeys.sort_unstable_by(|a, b| compare(id.akeys(), a, b));
                visit_from(akeys.into_iter().map(ListEntry::Key), anchor, visit);
            }
            ListLevel::Visible(id, dkey, akey) => {
                let entries = self.visible(container, id, dkey, akey, epoch)?;
                visit_from(entries.into_iter(), anchor, visit);
            }
            ListLevel::Versions(id, dkey, akey) => {
                let item = self.item_of(container, id, dkey, akey)?;
                let entries = if item == NONE {
                    Vec::new()
                } else {
                    self.versions(item, epoch.0)
                };
                visit_from(entries.into_iter(), anchor, visit);
            }
        }
        Ok(())
    }

    fn item_of(
        &self,
        container: ContainerId,
        id: ObjectId,
        dkey: &[u8],
        akey: &[u8],
    ) -> Result<u32> {
        check_key(dkey, id.dkeys())?;
        check_akey(id, akey)?;
        Ok(match self.index.object(container.0, id) {
            NONE => NONE,
            object => self.index.item(&self.medium, object, dkey, akey),
        })
    }

    fn akeys_at(
        &self,
        container: ContainerId,
        id: ObjectId,
        dkey: &[u8],
        epoch: Epoch,
    ) -> Result<Vec<&[u8]>> {
        check_key(dkey, id.dkeys())?;
        let object = self.index.object(container.0, id);
        let head = if object == NONE {
            NONE
        } else {
            self.index.head(&self.medium, object, dkey)
        };
        let there = self
            .index
            .akeys(head)
            .filter(|&item| self.index.item_exists(item, epoch.0));
        Ok(there
            .map(|item| keys(&self.medium, self.index.items[item as usize].record).1)
            .collect())
    }

    fn visible(
        &self,
        container: ContainerId,
        id: ObjectId,
        dkey: &[u8],
        akey: &[u8],
        epoch: Epoch,
    ) -> Result<Vec<ListEntry<'static>>> {
        let item = self.item_of(container, id, dkey, akey)?;
        let mut entries = Vec::new();
        if item == NONE || !self.index.item_exists(item, epoch.0) {
            return Ok(entries);
        }
        let entry = &self.index.items[item as usize];
        if entry.holds == Holds::Singles {
            let found = self.index.single_at(entry, epoch.0);
            entries.extend(found.map(|v| version(None, v.epoch, u64::from(v.len), false)));
            return Ok(entries);
        }
        let size = u64::from(self.index.arrays[entry.more as usize].size);
        self.index.any_part(item, epoch.0, |start, end, rect| {
            entries.push(version(
                Some((start, end)),
                rect.epoch,
                (end - start) * size,
                false,
            ));
            false
        });
        Ok(entries)
    }

    fn versions(&self, item: u32, epoch: u64) -> Vec<ListEntry<'static>> {
        let entry = &self.index.items[item as usize];
        if entry.holds != Holds::Array {
            let singles = self
                .index
                .singles(item as usize)
                .take_while(|v| v.epoch <= epoch);
            return singles
                .map(|v| version(None, v.epoch, u64::from(v.len), v.is_punch()))
                .collect();
        }
        let array = &self.index.arrays[entry.more as usize];
        let mut rects: Vec<_> = array.rects.iter().filter(|r| r.epoch <= epoch).collect();
        rects.sort_by_key(|r| (r.epoch, r.start));
        let bytes = |punch: bool, count: u64| {
            if punch {
                0
            } else {
                count * u64::from(array.size)
            }
        };
        let entry = |r: &&crate::array::Rect| {
            version(
                Some((r.start, r.end)),
                r.epoch,
                bytes(r.is_punch(), r.end - r.start),
                r.is_punch(),
            )
        };
        rects.iter().map(entry).collect()
    }

    /// Distribution keys of an object behind one of them, in the order of its type.
    fn dkeys_from(&self, object: u32, after: Option<u32>) -> Box<dyn Iterator<Item = u32> + '_> {
        let Some(entry) = self.index.objects.get(object as usize) else {
            return Box::new(std::iter::empty());
        };
        let Some(after) = after else {
            return match &entry.order {
                DkeyOrder::None => Box::new(self.index.dkeys(entry.first)),
                DkeyOrder::Integer(order) => Box::new(order.values().copied()),
                DkeyOrder::Lexical(order) => Box::new(order.values().copied()),
            };
        };
        let Some(item) = self.index.items.get(after as usize) else {
            return Box::new(std::iter::empty());
        };
        let key = if item.record == 0 {
            &[][..]
        } else {
            keys(&self.medium, item.record).0
        };
        match &entry.order {
            DkeyOrder::None => Box::new(self.index.dkeys(item.next_dkey)),
            DkeyOrder::Integer(order) => {
                let above = (
                    std::ops::Bound::Excluded(integer(key)),
                    std::ops::Bound::Unbounded,
                );
                Box::new(order.range(above).map(|(_, &head)| head))
            }
            DkeyOrder::Lexical(order) => {
                let above = (std::ops::Bound::Excluded(key), std::ops::Bound::Unbounded);
                Box::new(order.range::<[u8], _>(above).map(|(_, &head)| head))
            }
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
        self.check_open(container)?;
        check_epoch(epoch)?;
        let (dkeys, akeys) = (what.has(KeyQuery::DKEY), what.has(KeyQuery::AKEY));
        if what.has(KeyQuery::MAX) == what.has(KeyQuery::MIN) {
            return fail(
                ObjectCode::Inval,
                "a query is for the greatest or the smallest",
            );
        }
        if dkeys && id.dkeys() == KeyOrder::Hashed || akeys && id.akeys() == KeyOrder::Hashed {
            return fail(ObjectCode::Inval, "hashed keys have no order");
        }
        let (object, max) = (self.index.object(container.0, id), what.has(KeyQuery::MAX));
        let mut found = false;
        let given = answer.dkey.clone();
        if let Some(entry) = self.index.objects.get(object as usize) {
            let mut search = |head: u32| {
                found = self.query_dkey(head, id, what, epoch, answer);
                found
            };
            if dkeys {
                match &entry.order {
                    DkeyOrder::Integer(order) if max => {
                        order.values().rev().any(|&head| search(head))
                    }
                    DkeyOrder::Lexical(order) if max => {
                        order.values().rev().any(|&head| search(head))
                    }
                    DkeyOrder::Integer(order) => order.values().any(|&head| search(head)),
                    DkeyOrder::Lexical(order) => order.values().any(|&head| search(head)),
                    DkeyOrder::None => false,
                };
            } else {
                check_key(&given, id.dkeys())?;
                search(self.index.head(&self.medium, object, &given));
            }
        }
        if found {
            Ok(())
        } else {
            fail(ObjectCode::NonExist, "nothing matches the query")
        }
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
        let key = |item: u32| keys(&self.medium, self.index.items[item as usize].record).1;
        let mut items: Vec<u32> = self
            .index
            .akeys(head)
            .filter(|&item| self.index.item_exists(item, epoch.0))
            .collect();
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
                    last = Some(RecordExtent {
                        index: start,
                        count: end - start,
                    });
                    !max
                });
                let Some(extent) = last else { continue };
                answer.extent = extent;
            }
            if what.has(KeyQuery::DKEY) {
                answer.dkey.clear();
                answer.dkey.extend_from_slice(
                    keys(&self.medium, self.index.items[head as usize].record).0,
                );
            }
            if what.has(KeyQuery::AKEY) {
                answer.akey.clear();
                answer.akey.extend_from_slice(key(item));
            }
            return true;
        }
        false
    }
}

fn integer(key: &[u8]) -> u64 {
    key.first_chunk().map_or(0, |key| u64::from_le_bytes(*key))
}

fn compare(order: KeyOrder, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    match order {
        KeyOrder::Integer => integer(a).cmp(&integer(b)),
        KeyOrder::Hashed | KeyOrder::Lexical => a.cmp(b),
    }
}
