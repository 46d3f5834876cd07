//! State of the stub: handles, events, operations in flight, and the store below.
//!
//! In: addresses of structures, as callers of libdaos give them. Out: codes. Whatever a caller of libdaos may not do is
//! said and counted.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, c_char, c_int};

use weir_object::mem::MemStore;
use weir_object::{
    Conditions, ContainerId, Epoch, Iod, KeyAt, ListAnchor, ListEntry, ListLevel, ObjectCode,
    ObjectId, ObjectStore, PoolSpec, PunchScope, RecordExtent,
};

const INVAL: c_int = -1003;
pub(crate) const NO_HANDLE: c_int = -1002;
pub(crate) const ABSENT: c_int = -1005;
pub(crate) const BUSY: c_int = -1012;
/// Classes, as the headers number them.
pub(crate) const CLASSES: [u32; 9] = [
    16_777_217,
    16_842_751,
    134_217_729,
    150_994_945,
    167_772_161,
    536_870_913,
    553_648_129,
    587_202_561,
    620_756_993,
];

pub(crate) type Done = Result<(), c_int>;
pub(crate) type Work = Box<dyn FnOnce(&mut Stub) -> Done + Send>;

#[derive(Clone, Debug)]
pub(crate) enum Thing {
    Pool,
    Container(ContainerId, String),
    Object(ContainerId, ObjectId),
    Snapshot(ContainerId, u64),
    Table(ContainerId, u64),
    Queue,
}

pub(crate) struct Flight {
    pub(crate) event: usize,
    queue: u64,
    work: Work,
}

pub(crate) struct Stub {
    pub(crate) uses: u64,
    pub(crate) wrong: u64,
    pub(crate) store: MemStore,
    pub(crate) epoch: u64,
    pub(crate) last: u64,
    pub(crate) open: HashMap<u64, Thing>,
    pub(crate) containers: HashMap<String, ContainerId>,
    pub(crate) snapshots: HashSet<(ContainerId, u64)>,
    pub(crate) tables: HashSet<(ContainerId, u64)>,
    /// Queue of each event.
    pub(crate) events: HashMap<usize, u64>,
    pub(crate) flights: Vec<Flight>,
    random: u64,
}

/// A part of a structure. Addresses are the caller's word, as everywhere in C.
pub(crate) fn get<T: Copy>(address: usize, offset: usize) -> T {
    // SAFETY: the caller of the library gives structures of the headers' layout that stay.
    unsafe { std::ptr::with_exposed_provenance::<T>(address + offset).read_unaligned() }
}

pub(crate) fn put<T>(address: usize, offset: usize, value: T) {
    // SAFETY: as above; those that are written are the caller's to write.
    unsafe { std::ptr::with_exposed_provenance_mut::<T>(address + offset).write_unaligned(value) }
}

pub(crate) fn bytes(address: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| get(address, at)).collect()
}

pub(crate) fn put_bytes(address: usize, bytes: &[u8]) {
    for (at, byte) in bytes.iter().enumerate() {
        put(address, at, *byte);
    }
}

pub(crate) fn text(address: *const c_char) -> String {
    // SAFETY: the caller gives a string that ends with NUL.
    let text = unsafe { CStr::from_ptr(address) };
    text.to_string_lossy().into_owned()
}

pub(crate) fn code<T>(result: weir_object::Result<T>) -> Result<T, c_int> {
    result.map_err(|why| -c_int::from(why.code.number()))
}

/// Part of a call that is of one attribute key.
pub(crate) struct Part {
    at: usize,
    akey: Vec<u8>,
    is_array: bool,
    size: u64,
    extents: Vec<RecordExtent>,
    data: (usize, usize),
}

impl Part {
    pub(crate) fn iod(&self, room: u64) -> Iod<'_> {
        if self.is_array {
            Iod::array(&self.akey, self.size, &self.extents)
        } else {
            Iod::single(&self.akey, room)
        }
    }
}

impl Stub {
    pub(crate) fn new() -> Option<Self> {
        Some(Self {
            uses: 0,
            wrong: 0,
            store: MemStore::open(&PoolSpec::anonymous(1 << 30)).ok()?,
            epoch: 0,
            last: 0,
            open: HashMap::new(),
            containers: HashMap::new(),
            snapshots: HashSet::new(),
            tables: HashSet::new(),
            events: HashMap::new(),
            flights: Vec::new(),
            random: 1,
        })
    }

    pub(crate) fn wrong(&mut self, why: &str) -> c_int {
        eprintln!("stub of libdaos, wrong use: {why}");
        self.wrong += 1;
        INVAL
    }

    pub(crate) fn hold(&mut self, is: bool, why: &str) -> Done {
        if is { Ok(()) } else { Err(self.wrong(why)) }
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.random = self
            .random
            .wrapping_mul(0x5851_F42D_4C95_7F2D)
            .wrapping_add(1);
        usize::try_from(self.random >> 33).unwrap_or(0) % bound.max(1)
    }

    pub(crate) fn made(&mut self, thing: Thing, handle: usize) {
        self.last += 1;
        // Numbers that are no small ones, so that no number that is something else is a handle.
        let number = self.last << 32 | 0xda05;
        self.open.insert(number, thing);
        put(handle, 0, number);
    }

    pub(crate) fn thing(&mut self, handle: u64) -> Result<Thing, c_int> {
        let found = self.open.get(&handle).cloned();
        found.ok_or_else(|| {
            self.wrong("a handle that is not open");
            NO_HANDLE
        })
    }

    pub(crate) fn container(&mut self, handle: u64) -> Result<ContainerId, c_int> {
        match self.thing(handle)? {
            Thing::Container(container, _) => Ok(container),
            other => Err(self.wrong(&format!("{other:?} is no container"))),
        }
    }

    pub(crate) fn object(&mut self, handle: u64) -> Result<(ContainerId, ObjectId), c_int> {
        match self.thing(handle)? {
            Thing::Object(container, object) => Ok((container, object)),
            other => Err(self.wrong(&format!("{other:?} is no object"))),
        }
    }

    pub(crate) fn read_at(&mut self, handle: u64, of: ContainerId) -> Result<Epoch, c_int> {
        if handle == 0 {
            return Ok(Epoch::LATEST);
        }
        match self.thing(handle)? {
            Thing::Snapshot(container, epoch) if container == of => Ok(Epoch(epoch)),
            other => Err(self.wrong(&format!("{other:?} is no transaction of the container"))),
        }
    }

    pub(crate) fn close(&mut self, handle: u64, is: fn(&Thing) -> bool) -> Done {
        let thing = self.thing(handle)?;
        self.hold(is(&thing), "a handle is closed as something else")?;
        self.open.remove(&handle);
        Ok(())
    }

    pub(crate) fn key(&mut self, at: usize) -> Result<Vec<u8>, c_int> {
        self.hold(at != 0, "no key")?;
        let (start, room, len): (usize, usize, usize) = (get(at, 0), get(at, 8), get(at, 16));
        self.hold(start != 0 && len > 0 && len <= room, "a key without bytes")?;
        Ok(bytes(start, len))
    }

    pub(crate) fn parts(
        &mut self,
        (count, descriptors, lists): (u32, usize, usize),
        is_update: bool,
    ) -> Result<Vec<Part>, c_int> {
        self.hold(count > 0, "no descriptors")?;
        let mut parts = Vec::new();
        for number in 0..count as usize {
            let (at, list) = (descriptors + 64 * number, lists + 16 * number);
            let akey = self.key(at)?;
            let (kind, size, flags): (u32, u64, u64) = (get(at, 24), get(at, 32), get(at, 40));
            let (extents, first): (u32, usize) = (get(at, 48), get(at, 56));
            self.hold(
                kind == 1 || kind == 2,
                "a value is neither single nor an array",
            )?;
            self.hold(
                flags == 0,
                "flags of a descriptor without those of the call",
            )?;
            self.hold(kind == 2 || extents == 1, "a single value has one record")?;
            self.hold(
                (kind == 2) == (first != 0),
                "records of a single value, or none of an array",
            )?;
            let of_array = if kind == 2 { extents as usize } else { 0 };
            let extent = |at: usize| RecordExtent {
                index: get(first, 16 * at),
                count: get(first, 16 * at + 8),
            };
            let extents: Vec<RecordExtent> = (0..of_array).map(extent).collect();
            self.hold(
                lists != 0 && get::<u32>(list, 0) == 1,
                "a list has one part",
            )?;
            let buffer: usize = get(list, 8);
            self.hold(buffer != 0, "a list without its part")?;
            let (data, room, len): (usize, usize, usize) =
                (get(buffer, 0), get(buffer, 8), get(buffer, 16));
            let records = extents.iter().map(|extent| extent.count).sum::<u64>();
            let whole = if kind == 2 { size * records } else { size };
            self.hold(len == room, "a buffer has more room than bytes")?;
            self.hold(
                !is_update || len as u64 == whole,
                "data is not as long as its values",
            )?;
            self.hold(
                is_update || kind == 1 || len as u64 == whole,
                "data is not as long as its records",
            )?;
            parts.push(Part {
                at,
                akey,
                is_array: kind == 2,
                size,
                extents,
                data: (data, len),
            });
        }
        Ok(parts)
    }

    /// Carries something out now, or when its event is polled.
    pub(crate) fn operate(&mut self, event: usize, work: Work) -> Done {
        if event == 0 {
            return work(self);
        }
        let Some(&queue) = self.events.get(&event) else {
            return Err(self.wrong("an event that is not initialised"));
        };
        let is_idle = self.flights.iter().all(|flight| flight.event != event);
        self.hold(is_idle, "an event in flight is used again")?;
        self.flights.push(Flight { event, queue, work });
        Ok(())
    }

    pub(crate) fn update(
        &mut self,
        (container, object): (ContainerId, ObjectId),
        flags: u64,
        dkey: usize,
        parts: (u32, usize, usize),
    ) -> Done {
        let (dkey, parts) = (self.key(dkey)?, self.parts(parts, true)?);
        let conditions = Conditions(u32::try_from(flags).unwrap_or(u32::MAX));
        self.epoch += 1;
        let at = Epoch(self.epoch);
        if let [part] = &parts[..]
            && part.is_array
            && part.size == 0
        {
            for extent in &part.extents {
                let scope = PunchScope::Extent(&dkey, &part.akey, *extent);
                let _ = code(self.store.punch(container, object, scope, at, conditions))?;
            }
            return Ok(());
        }
        let data: Vec<u8> = parts
            .iter()
            .flat_map(|part| bytes(part.data.0, part.data.1))
            .collect();
        let iods: Vec<Iod<'_>> = parts.iter().map(|part| part.iod(part.size)).collect();
        let dkey = &dkey;
        let key = KeyAt {
            container,
            object,
            dkey,
        };
        code(self.store.update(key, &iods, at, conditions, &data)).map(drop)
    }

    pub(crate) fn fetch(
        &mut self,
        (container, object, epoch): (ContainerId, ObjectId, Epoch),
        flags: u64,
        dkey: usize,
        (parts, maps): ((u32, usize, usize), usize),
    ) -> Done {
        let (dkey, parts) = (self.key(dkey)?, self.parts(parts, false)?);
        let conditions = Conditions(u32::try_from(flags).unwrap_or(u32::MAX));
        let dkey = &dkey;
        let key = KeyAt {
            container,
            object,
            dkey,
        };
        for (number, part) in parts.iter().enumerate() {
            let mut data = bytes(part.data.0, part.data.1);
            let mut iods = [part.iod(data.len() as u64)];
            let fetched = self
                .store
                .fetch(key, &mut iods, epoch, conditions, &mut data);
            put(part.at, 32, iods[0].size);
            let _ = code(fetched)?;
            put_bytes(part.data.0, &data);
            if maps != 0 {
                self.map((container, object, epoch), (dkey, part), maps + 64 * number)?;
            }
        }
        Ok(())
    }

    /// Ranges that a read of a part finds.
    pub(crate) fn map(
        &mut self,
        (container, object, epoch): (ContainerId, ObjectId, Epoch),
        (dkey, part): (&[u8], &Part),
        map: usize,
    ) -> Done {
        let (kind, room, flags): (u32, u32, u32) = (get(map, 0), get(map, 4), get(map, 12));
        let ranges: usize = get(map, 56);
        self.hold(
            kind == 1 + u32::from(part.is_array),
            "a map of another kind",
        )?;
        self.hold(
            flags == 1 && room > 0 && ranges != 0,
            "a map without room for its detail",
        )?;
        let mut visible = Vec::new();
        let level = ListLevel::Visible(object, dkey, &part.akey);
        let mut anchor = ListAnchor::default();
        while part.is_array && !anchor.done {
            code(
                self.store
                    .list(container, level, epoch, &mut anchor, &mut |entry| {
                        if let ListEntry::Version {
                            extent: Some(extent),
                            ..
                        } = entry
                        {
                            visible.push(extent);
                        }
                        true
                    }),
            )?;
        }
        let mut count = 0;
        for wanted in &part.extents {
            for found in &visible {
                let index = wanted.index.max(found.index);
                let end = (wanted.index + wanted.count).min(found.index + found.count);
                if index < end {
                    if count < room {
                        put(ranges, 16 * count as usize, [index, end - index]);
                    }
                    count += 1;
                }
            }
        }
        put(map, 8, count);
        put(map, 16, get::<u64>(part.at, 32));
        Ok(())
    }

    /// Items from an anchor on, some at a time and sometimes none.
    pub(crate) fn batch<T: Clone>(
        &mut self,
        all: &[T],
        room: u32,
        anchor: usize,
    ) -> Result<Vec<T>, c_int> {
        let kind: u16 = get(anchor, 0);
        self.hold(kind != 3, "a listing goes on behind its end")?;
        self.hold(room > 0, "a listing without room")?;
        let first = if kind == 0 {
            0
        } else {
            get::<usize>(anchor, 16)
        };
        let end = all.len().min(first + self.below(1 + room.min(5) as usize));
        put(anchor, 0, if end == all.len() { 3_u16 } else { 1 });
        put(anchor, 16, end);
        Ok(all[first..end].to_vec())
    }

    pub(crate) fn keys(
        &mut self,
        (object, transaction): (u64, u64),
        dkey: usize,
        (number, lengths, list): (usize, usize, usize),
        anchor: usize,
    ) -> Done {
        let (container, object) = self.object(object)?;
        let epoch = self.read_at(transaction, container)?;
        let dkey = if dkey == 0 {
            None
        } else {
            Some(self.key(dkey)?)
        };
        let level = dkey.as_ref().map_or(ListLevel::Dkeys(object), |dkey| {
            ListLevel::Akeys(object, dkey)
        });
        let (mut all, mut place) = (Vec::new(), ListAnchor::default());
        while !place.done {
            code(
                self.store
                    .list(container, level, epoch, &mut place, &mut |entry| {
                        if let ListEntry::Key(key) = entry {
                            all.push(key.to_vec());
                        }
                        true
                    }),
            )?;
        }
        self.hold(get::<u32>(list, 0) == 1, "a list has one part")?;
        let buffer: usize = get(list, 8);
        let (text, room): (usize, usize) = (get(buffer, 0), get(buffer, 8));
        let keys = self.batch(&all, get(number, 0), anchor)?;
        let len: usize = keys.iter().map(Vec::len).sum();
        if len > room {
            put(anchor, 0, 0_u16);
            put(lengths, 0, keys[0].len());
            return Err(-c_int::from(ObjectCode::Key2Big.number()));
        }
        put_bytes(text, &keys.concat());
        for (at, key) in keys.iter().enumerate() {
            put(lengths, 16 * at, key.len());
        }
        put(number, 0, u32::try_from(keys.len()).unwrap_or(u32::MAX));
        put(buffer, 16, len);
        put(list, 4, 1_u32);
        Ok(())
    }

    pub(crate) fn poll(
        &mut self,
        queue: u64,
        waits: bool,
        room: u32,
        ended: usize,
    ) -> Result<usize, c_int> {
        let thing = self.thing(queue)?;
        self.hold(matches!(thing, Thing::Queue), "a poll of what is no queue")?;
        self.hold(room > 0 && ended != 0, "a poll without room")?;
        let flying = self
            .flights
            .iter()
            .filter(|flight| flight.queue == queue)
            .count();
        let least = usize::from(waits && flying > 0);
        let most = flying.min(room as usize);
        let count = (least + self.below(1 + most)).min(most);
        for number in 0..count {
            let skipped = self.below(flying - number);
            let of_queue = self
                .flights
                .iter()
                .enumerate()
                .filter(|(_, flight)| flight.queue == queue);
            let Some((place, _)) = of_queue.clone().nth(skipped) else {
                break;
            };
            let flight = self.flights.swap_remove(place);
            let done = (flight.work)(self);
            put(flight.event, 0, done.err().unwrap_or(0));
            put(ended, 8 * number, flight.event);
        }
        Ok(count)
    }
}

impl Stub {
    pub(crate) fn punch(
        &mut self,
        (container, object): (ContainerId, ObjectId),
        flags: u64,
        scope: PunchScope<'_>,
    ) -> Done {
        self.epoch += 1;
        let conditions = Conditions(u32::try_from(flags).unwrap_or(u32::MAX));
        code(
            self.store
                .punch(container, object, scope, Epoch(self.epoch), conditions),
        )
        .map(drop)
    }
}
