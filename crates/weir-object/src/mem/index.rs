//! The index: objects, distribution keys, attribute keys and versions, in DRAM.
//!
//! In: records of the log with their places, live or at open. Out: where the versions of a key lie. Keys
//! themselves stay in the log: an entry names a record that has its keys.

mod stored;

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::log::Log;
use super::medium::{Medium, advise_huge, prefetch};
use super::record::{HEADER, Record, RecordKind, key_lens};
use super::table::{HashTable, NONE};
use crate::array::{ALL, ArrayVersions, Rect};
use crate::prelude::*;

/// A version of a single value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Single {
    pub(super) epoch: u64,
    /// Place of its bytes; 0 for a punch.
    pub(super) at: u64,
    pub(super) len: u32,
    pub(super) sum: u32,
}

impl Single {
    pub(super) fn is_punch(&self) -> bool {
        self.at == 0
    }
}

/// Versions that an attribute key has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Nothing,
    Singles,
    Array,
}

/// An attribute key. The first of a distribution key is its head, and stands for it too.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Item {
    /// The newest single value; of an array its greatest epoch.
    pub(super) newest: Single,
    /// A record that has its keys; 0 once there is none.
    pub(super) record: u64,
    /// Number of its older versions, or of its array.
    pub(super) more: u32,
    pub(super) object: u32,
    pub(super) head: u32,
    /// Next attribute key of the distribution key.
    pub(super) next: u32,
    /// Next distribution key of the object.
    pub(super) next_dkey: u32,
    /// Number of the distribution key's punches.
    pub(super) punches: u32,
    pub(super) holds: Holds,
}

#[derive(Debug)]
pub(super) enum DkeyOrder {
    None,
    Integer(BTreeMap<u64, u32>),
    Lexical(BTreeMap<Box<[u8]>, u32>),
}

#[derive(Debug)]
pub(super) struct ObjectEntry {
    pub(super) container: u32,
    pub(super) id: ObjectId,
    /// Epochs of punches, in order.
    pub(super) punches: Vec<u64>,
    pub(super) first: u32,
    last: u32,
    pub(super) order: DkeyOrder,
    pub(super) dkey_punched: bool,
}

#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) containers: Vec<Container>,
    pub(super) objects: Vec<ObjectEntry>,
    pub(super) items: Vec<Item>,
    pub(super) older: Vec<Vec<Single>>,
    pub(super) arrays: Vec<ArrayVersions>,
    pub(super) dkey_punches: Vec<Vec<u64>>,
    objects_by_id: HashTable,
    items_by_key: HashTable,
    last_object: u32,
    pub(super) versions: u64,
}

/// Room for so many, which has huge pages before anything is written there.
pub(super) fn advised<T>(count: usize) -> Vec<T> {
    let mut room = Vec::with_capacity(count);
    advise_huge(room.spare_capacity_mut());
    room
}

impl DkeyOrder {
    /// An empty one for an object's kind of distribution keys.
    fn of(id: ObjectId) -> Self {
        match id.dkeys() {
            KeyOrder::Hashed => Self::None,
            KeyOrder::Integer => Self::Integer(BTreeMap::new()),
            KeyOrder::Lexical => Self::Lexical(BTreeMap::new()),
        }
    }
}

/// Keys of a record.
#[inline]
pub(super) fn keys(medium: &impl Medium, record: u64) -> (&[u8], &[u8]) {
    let (dkey, akey) = key_lens(medium.bytes(record, HEADER));
    let both = medium.bytes(record + HEADER as u64, dkey + akey);
    both.split_at(dkey)
}

/// Puts an epoch into an ordered list.
fn put_epoch(epochs: &mut Vec<u64>, epoch: u64) {
    if let Err(at) = epochs.binary_search(&epoch) {
        epochs.insert(at, epoch);
    }
}

impl Index {
    fn object_hash(container: u32, id: ObjectId) -> u64 {
        let word = |word: u64| word.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        word(word(word(id.lo) ^ id.hi) ^ u64::from(container)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
    }

    /// Number of an object.
    #[inline]
    pub(super) fn object(&self, container: u32, id: ObjectId) -> u32 {
        let is = |entry: u32| {
            let object = self.objects.get(entry as usize);
            object.is_some_and(|object| object.id == id && object.container == container)
        };
        if is(self.last_object) {
            return self.last_object;
        }
        self.objects_by_id
            .find(Self::object_hash(container, id), is)
    }

    fn add_object(&mut self, container: u32, id: ObjectId) -> u32 {
        let found = self.object(container, id);
        if found != NONE {
            self.last_object = found;
            return found;
        }
        let number = self.objects.len() as u32;
        self.objects.push(ObjectEntry {
            container,
            id,
            punches: Vec::new(),
            first: NONE,
            last: NONE,
            order: DkeyOrder::of(id),
            dkey_punched: false,
        });
        self.objects_by_id
            .insert(Self::object_hash(container, id), number);
        self.last_object = number;
        number
    }

    #[inline]
    pub(super) fn dkey_hash(object: u32, dkey: &[u8]) -> u64 {
        xxh3_64_with_seed(dkey, u64::from(object))
    }

    #[inline]
    fn akey_hash(dkey_hash: u64, akey: &[u8]) -> u64 {
        xxh3_64_with_seed(akey, !dkey_hash)
    }

    #[inline]
    fn find_head(&self, medium: &impl Medium, object: u32, hash: u64, dkey: &[u8]) -> u32 {
        self.items_by_key.find(hash, |entry| {
            let item = &self.items[entry as usize];
            if item.head != entry || item.object != object || item.record == 0 {
                return false;
            }
            // The value is what a fetch needs next: its lines come while those of the key are waited for.
            self.prefetch_value(medium, entry);
            keys(medium, item.record).0 == dkey
        })
    }

    /// Head of a distribution key.
    pub(super) fn head(&self, medium: &impl Medium, object: u32, dkey: &[u8]) -> u32 {
        if object == NONE {
            return NONE;
        }
        self.find_head(medium, object, Self::dkey_hash(object, dkey), dkey)
    }

    #[inline]
    fn find_item(&self, medium: &impl Medium, head: u32, hash: u64, akey: &[u8]) -> u32 {
        let first = &self.items[head as usize];
        if first.holds != Holds::Nothing && keys(medium, first.record).1 == akey {
            return head;
        }
        if first.next == NONE {
            return NONE;
        }
        self.items_by_key
            .find(Self::akey_hash(hash, akey), |entry| {
                let item = &self.items[entry as usize];
                item.head == head
                    && entry != head
                    && item.record != 0
                    && keys(medium, item.record).1 == akey
            })
    }

    /// Number of an attribute key.
    #[inline]
    pub(super) fn item(&self, medium: &impl Medium, object: u32, dkey: &[u8], akey: &[u8]) -> u32 {
        if object == NONE {
            return NONE;
        }
        let hash = Self::dkey_hash(object, dkey);
        match self.find_head(medium, object, hash, dkey) {
            NONE => NONE,
            head => self.find_item(medium, head, hash, akey),
        }
    }

    /// Three steps of hints before a look-up: the slot, the entry, the record and the value.
    #[inline]
    pub(super) fn prefetch_slot(&self, hash: u64) {
        self.items_by_key.prefetch(hash);
    }

    /// The same hint for a record that will be taken in.
    pub(super) fn prefetch_record(&self, medium: &impl Medium, at: u64) {
        let Some(record) = Log::record(medium, at) else {
            return;
        };
        let object = self.object(record.container, record.object);
        if object != NONE {
            self.prefetch_slot(Self::dkey_hash(object, record.dkey));
        }
    }

    #[inline]
    pub(super) fn prefetch_item(&self, hash: u64) -> u32 {
        let entry = self.items_by_key.find(hash, |_| true);
        if entry != NONE {
            prefetch(&self.items[entry as usize]);
        }
        entry
    }

    #[inline]
    pub(super) fn prefetch_value(&self, medium: &impl Medium, entry: u32) {
        let item = &self.items[entry as usize];
        if item.record != 0 {
            prefetch(&medium.bytes(item.record, 128)[0]);
            prefetch(&medium.bytes(item.record, 128)[64]);
        }
        if item.holds == Holds::Singles && item.newest.at != 0 {
            let value = medium.bytes(item.newest.at, item.newest.len as usize);
            for line in value.chunks(64).take(4) {
                prefetch(&line[0]);
            }
        }
    }

    fn add_item(&mut self, object: u32, head: u32, record: u64, hash: u64) -> u32 {
        let number = self.items.len() as u32;
        let head = if head == NONE { number } else { head };
        if self.items.len() == self.items.capacity() {
            self.items.reserve(self.items.len().max(64));
            // The room behind the entries is what is touched next.
            advise_huge(self.items.spare_capacity_mut());
        }
        self.items.push(Item {
            newest: Single::default(),
            record,
            more: NONE,
            object,
            head,
            next: NONE,
            next_dkey: NONE,
            punches: NONE,
            holds: Holds::Nothing,
        });
        self.items_by_key.insert(hash, number);
        number
    }

    /// The head of a distribution key, made if it is new.
    fn add_head(
        &mut self,
        medium: &impl Medium,
        (object, hash): (u32, u64),
        dkey: &[u8],
        record: u64,
    ) -> u32 {
        let found = self.find_head(medium, object, hash, dkey);
        if found != NONE {
            return found;
        }
        let head = self.add_item(object, NONE, record, hash);
        let entry = &mut self.objects[object as usize];
        match &mut entry.order {
            DkeyOrder::None => {}
            DkeyOrder::Integer(order) => {
                order.insert(word(dkey), head);
            }
            DkeyOrder::Lexical(order) => {
                order.insert(dkey.into(), head);
            }
        }
        match entry.last {
            NONE => entry.first = head,
            last => self.items[last as usize].next_dkey = head,
        }
        entry.last = head;
        head
    }

    /// The entry of a record's attribute key, made if it is new.
    fn add_akey(&mut self, medium: &impl Medium, object: u32, record: &Record<'_>, at: u64) -> u32 {
        let hash = Self::dkey_hash(object, record.dkey);
        let head = self.add_head(medium, (object, hash), record.dkey, at);
        let found = self.find_item(medium, head, hash, record.akey);
        if found != NONE {
            return found;
        }
        let first = self.items[head as usize];
        if first.holds == Holds::Nothing {
            self.items[head as usize].record = at;
            return head;
        }
        let item = self.add_item(object, head, at, Self::akey_hash(hash, record.akey));
        self.items[item as usize].next = first.next;
        self.items[head as usize].next = item;
        item
    }

    /// Takes a record into the index. Passes, and the end of a container, are the store's.
    pub(super) fn apply(&mut self, medium: &impl Medium, record: &Record<'_>, at: u64) {
        match record.kind {
            RecordKind::Container => {
                self.containers.push(Container::new(record.uuid()));
            }
            RecordKind::Snapshot | RecordKind::DropSnapshot => {
                if let Some(container) = self.containers.get_mut(record.container as usize) {
                    container.keep(record.epoch, record.kind == RecordKind::Snapshot);
                }
            }
            RecordKind::PunchObject => {
                let object = self.add_object(record.container, record.object);
                put_epoch(&mut self.objects[object as usize].punches, record.epoch);
            }
            RecordKind::PunchDkey => {
                let object = self.add_object(record.container, record.object);
                let hash = Self::dkey_hash(object, record.dkey);
                let head = self.add_head(medium, (object, hash), record.dkey, at) as usize;
                self.objects[object as usize].dkey_punched = true;
                let punches = &mut self.items[head].punches;
                if *punches == NONE {
                    *punches = self.dkey_punches.len() as u32;
                    self.dkey_punches.push(Vec::new());
                }
                put_epoch(&mut self.dkey_punches[*punches as usize], record.epoch);
            }
            RecordKind::Single
            | RecordKind::PunchAkey
            | RecordKind::Extent
            | RecordKind::PunchExtent => {
                let object = self.add_object(record.container, record.object);
                let item = self.add_akey(medium, object, record, at) as usize;
                self.versions += 1;
                let extent = matches!(record.kind, RecordKind::Extent | RecordKind::PunchExtent);
                if extent || self.items[item].holds == Holds::Array {
                    self.put_rect(item, record, at);
                } else {
                    self.put_single(item, record);
                }
            }
            RecordKind::Link
            | RecordKind::Aggregate
            | RecordKind::Discard
            | RecordKind::DropContainer => {}
        }
    }

    fn put_single(&mut self, item: usize, record: &Record<'_>) {
        let single = Single {
            epoch: record.epoch,
            at: record.at,
            len: record.len,
            sum: record.sum,
        };
        let item = &mut self.items[item];
        if item.holds == Holds::Nothing {
            item.holds = Holds::Singles;
            item.newest = single;
            return;
        }
        if item.more == NONE {
            item.more = self.older.len() as u32;
            self.older.push(Vec::new());
        }
        let older = &mut self.older[item.more as usize];
        if single.epoch > item.newest.epoch {
            older.push(std::mem::replace(&mut item.newest, single));
        } else {
            let place = older.partition_point(|old| old.epoch < single.epoch);
            older.insert(place, single);
        }
    }

    fn put_rect(&mut self, number: usize, record: &Record<'_>, place: u64) {
        if self.items[number].holds != Holds::Array {
            // An attribute key that was only punched may become an array.
            let punches: Vec<Single> = self.singles(number).collect();
            let item = &mut self.items[number];
            (item.holds, item.more) = (Holds::Array, self.arrays.len() as u32);
            let mut array = ArrayVersions::default();
            for Single { epoch, .. } in punches {
                array.put(Rect::new(ALL, epoch, 0, 0));
            }
            self.arrays.push(array);
        }
        let item = &mut self.items[number];
        let array = &mut self.arrays[item.more as usize];
        let range = match record.kind {
            RecordKind::PunchAkey => ALL,
            _ => range(record.extent),
        };
        if record.size != 0 {
            array.size = record.size;
        }
        array.put(Rect::new(range, record.epoch, record.at, place));
        item.newest.epoch = item.newest.epoch.max(record.epoch);
    }

    /// Memory of the index.
    pub(super) fn bytes(&self) -> u64 {
        let items = self.items.capacity() * size_of::<Item>();
        let versions = self.older.iter().map(Vec::capacity);
        let versions: usize = versions.map(|room| room * size_of::<Single>() + 24).sum();
        let parts: usize = self.arrays.iter().map(|a| a.view.len() * 24).sum();
        let rects = self.arrays.iter().map(|a| a.rects.capacity());
        let arrays = parts
            + rects
                .map(|room| room * size_of::<Rect>() + 48)
                .sum::<usize>();
        (items + versions + arrays) as u64 + self.items_by_key.bytes() + self.objects_by_id.bytes()
    }
}
