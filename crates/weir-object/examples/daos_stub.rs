//! A library with the interface of libdaos, on the engine `mem`: for tests of the engine `daos` where there is no
//! DAOS system.
//!
//! It reads and writes structures at the offsets that the headers of DAOS give, and knows nothing of weir's own.
//! Operations with an event are carried out when they are polled, in random order: until then their memory has to
//! stay. Wrong use is reported on standard error and counted; at the last `daos_fini` it ends the process, as do
//! handles and events that are left. The pool `absent` does not exist, the pool `denied` may not be used.

#![expect(
    unsafe_code,
    clippy::print_stderr,
    reason = "a library of C, which a test loads"
)]
#![allow(missing_docs, reason = "the documentation of DAOS has it")]

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::sync::{Mutex, PoisonError};

use weir_object::mem::MemStore;
use weir_object::{
    Conditions, ContainerId, ContainerMode, Epoch, EpochRange, Iod, KeyAt, KeyQuery, ListAnchor,
    ListEntry, ListLevel, ObjectCode, ObjectId, ObjectStore, PoolSpec, PunchScope, QueryAnswer,
    RecordExtent, uuid_text,
};

const INVAL: c_int = -1003;
const NO_HANDLE: c_int = -1002;
const ABSENT: c_int = -1005;
const BUSY: c_int = -1012;
/// Classes, as the headers number them.
const CLASSES: [u32; 9] = [
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

type Done = Result<(), c_int>;
type Work = Box<dyn FnOnce(&mut Stub) -> Done + Send>;

#[derive(Clone, Debug)]
enum Thing {
    Pool,
    Container(ContainerId, String),
    Object(ContainerId, ObjectId),
    Snapshot(ContainerId, u64),
    Table(ContainerId, u64),
    Queue,
}

struct Flight {
    event: usize,
    queue: u64,
    work: Work,
}

struct Stub {
    uses: u64,
    wrong: u64,
    store: MemStore,
    epoch: u64,
    last: u64,
    open: HashMap<u64, Thing>,
    containers: HashMap<String, ContainerId>,
    snapshots: HashSet<(ContainerId, u64)>,
    tables: HashSet<(ContainerId, u64)>,
    /// Queue of each event.
    events: HashMap<usize, u64>,
    flights: Vec<Flight>,
    random: u64,
}

static STUB: Mutex<Option<Stub>> = Mutex::new(None);

/// A part of a structure. Addresses are the caller's word, as everywhere in C.
fn get<T: Copy>(address: usize, offset: usize) -> T {
    // SAFETY: the caller of the library gives structures of the headers' layout that stay.
    unsafe { std::ptr::with_exposed_provenance::<T>(address + offset).read_unaligned() }
}

fn put<T>(address: usize, offset: usize, value: T) {
    // SAFETY: as above; those that are written are the caller's to write.
    unsafe { std::ptr::with_exposed_provenance_mut::<T>(address + offset).write_unaligned(value) }
}

fn bytes(address: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| get(address, at)).collect()
}

fn put_bytes(address: usize, bytes: &[u8]) {
    for (at, byte) in bytes.iter().enumerate() {
        put(address, at, *byte);
    }
}

fn text(address: *const c_char) -> String {
    // SAFETY: the caller gives a string that ends with NUL.
    let text = unsafe { CStr::from_ptr(address) };
    text.to_string_lossy().into_owned()
}

fn code<T>(result: weir_object::Result<T>) -> Result<T, c_int> {
    result.map_err(|why| -c_int::from(why.code.number()))
}

/// Part of a call that is of one attribute key.
struct Part {
    at: usize,
    akey: Vec<u8>,
    is_array: bool,
    size: u64,
    extents: Vec<RecordExtent>,
    data: (usize, usize),
}

impl Part {
    fn iod(&self, room: u64) -> Iod<'_> {
        if self.is_array {
            Iod::array(&self.akey, self.size, &self.extents)
        } else {
            Iod::single(&self.akey, room)
        }
    }
}

impl Stub {
    fn new() -> Option<Self> {
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

    fn wrong(&mut self, why: &str) -> c_int {
        eprintln!("stub of libdaos, wrong use: {why}");
        self.wrong += 1;
        INVAL
    }

    fn hold(&mut self, is: bool, why: &str) -> Done {
        if is { Ok(()) } else { Err(self.wrong(why)) }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random = self
            .random
            .wrapping_mul(0x5851_F42D_4C95_7F2D)
            .wrapping_add(1);
        usize::try_from(self.random >> 33).unwrap_or(0) % bound.max(1)
    }

    fn made(&mut self, thing: Thing, handle: usize) {
        self.last += 1;
        // Numbers that are no small ones, so that no number that is something else is a handle.
        let number = self.last << 32 | 0xda05;
        self.open.insert(number, thing);
        put(handle, 0, number);
    }

    fn thing(&mut self, handle: u64) -> Result<Thing, c_int> {
        let found = self.open.get(&handle).cloned();
        found.ok_or_else(|| {
            self.wrong("a handle that is not open");
            NO_HANDLE
        })
    }

    fn container(&mut self, handle: u64) -> Result<ContainerId, c_int> {
        match self.thing(handle)? {
            Thing::Container(container, _) => Ok(container),
            other => Err(self.wrong(&format!("{other:?} is no container"))),
        }
    }

    fn object(&mut self, handle: u64) -> Result<(ContainerId, ObjectId), c_int> {
        match self.thing(handle)? {
            Thing::Object(container, object) => Ok((container, object)),
            other => Err(self.wrong(&format!("{other:?} is no object"))),
        }
    }

    fn read_at(&mut self, handle: u64, of: ContainerId) -> Result<Epoch, c_int> {
        if handle == 0 {
            return Ok(Epoch::LATEST);
        }
        match self.thing(handle)? {
            Thing::Snapshot(container, epoch) if container == of => Ok(Epoch(epoch)),
            other => Err(self.wrong(&format!("{other:?} is no transaction of the container"))),
        }
    }

    fn close(&mut self, handle: u64, is: fn(&Thing) -> bool) -> Done {
        let thing = self.thing(handle)?;
        self.hold(is(&thing), "a handle is closed as something else")?;
        self.open.remove(&handle);
        Ok(())
    }

    fn key(&mut self, at: usize) -> Result<Vec<u8>, c_int> {
        self.hold(at != 0, "no key")?;
        let (start, room, len): (usize, usize, usize) = (get(at, 0), get(at, 8), get(at, 16));
        self.hold(start != 0 && len > 0 && len <= room, "a key without bytes")?;
        Ok(bytes(start, len))
    }

    fn parts(
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
    fn operate(&mut self, event: usize, work: Work) -> Done {
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

    fn update(
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

    fn fetch(
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
    fn map(
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
    fn batch<T: Clone>(&mut self, all: &[T], room: u32, anchor: usize) -> Result<Vec<T>, c_int> {
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

    fn keys(
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

    fn poll(&mut self, queue: u64, waits: bool, room: u32, ended: usize) -> Result<usize, c_int> {
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

fn with<T>(call: impl FnOnce(&mut Stub) -> Result<T, c_int>) -> Result<T, c_int> {
    let mut stub = STUB.lock().unwrap_or_else(PoisonError::into_inner);
    let stub = stub.as_mut().filter(|stub| stub.uses > 0);
    stub.map_or(Err(NO_HANDLE), call)
}

fn answer(call: impl FnOnce(&mut Stub) -> Done) -> c_int {
    with(call).err().unwrap_or(0)
}

/// Declares functions of the interface; each has the stub and gives a code.
macro_rules! functions {
    ($($name:ident($($argument:ident: $kind:ty),*) |$stub:ident| $body:block)*) => {
        $(
            // SAFETY: no other function of the process has this name.
            #[unsafe(no_mangle)]
            pub extern "C" fn $name($($argument: $kind),*) -> c_int {
                answer(|$stub| $body)
            }
        )*
    };
}

// SAFETY: no other function of the process has this name.
#[unsafe(no_mangle)]
pub extern "C" fn daos_init() -> c_int {
    let mut stub = STUB.lock().unwrap_or_else(PoisonError::into_inner);
    if stub.is_none() {
        *stub = Stub::new();
    }
    stub.as_mut().map_or(-1009, |stub| {
        stub.uses += 1;
        0
    })
}

// SAFETY: no other function of the process has this name.
#[unsafe(no_mangle)]
pub extern "C" fn daos_eq_poll(
    queue: u64,
    _wait_running: c_int,
    timeout: i64,
    room: c_uint,
    ended: usize,
) -> c_int {
    let polled = with(|stub| stub.poll(queue, timeout != 0, room, ended));
    polled.map_or_else(
        |code| code,
        |count| c_int::try_from(count).unwrap_or(c_int::MAX),
    )
}

functions! {
    daos_fini() |stub| {
        stub.uses -= 1;
        let left = (stub.open.len(), stub.events.len(), stub.wrong);
        if stub.uses == 0 && left != (0, 0, 0) {
            let (handles, events, wrong) = left;
            eprintln!("stub of libdaos: {handles} handles and {events} events are left, {wrong} wrong uses: {:?}", stub.open);
            std::process::abort();
        }
        Ok(())
    }
    daos_eq_create(handle: usize) |stub| {
        stub.made(Thing::Queue, handle);
        Ok(())
    }
    daos_eq_destroy(queue: u64, _flags: c_int) |stub| {
        let is_empty = stub.events.values().all(|of| *of != queue);
        stub.hold(is_empty, "a queue is destroyed before its events")?;
        stub.close(queue, |thing| matches!(thing, Thing::Queue))
    }
    daos_event_init(event: usize, queue: u64, parent: usize) |stub| {
        stub.thing(queue)?;
        stub.hold(parent == 0 && event % 8 == 0, "an event with a parent, or in no place for one")?;
        // All of it is the library's own.
        put(event, 0, [0_u64; 22]);
        let known = stub.events.insert(event, queue);
        stub.hold(known.is_none(), "an event is initialised twice")
    }
    daos_event_fini(event: usize) |stub| {
        let is_idle = stub.flights.iter().all(|flight| flight.event != event);
        stub.hold(is_idle, "an event ends in flight")?;
        let known = stub.events.remove(&event);
        stub.hold(known.is_some(), "an event ends that is none")
    }
    daos_pool_connect2(name: *const c_char, _system: usize, flags: c_uint, handle: usize, _info: usize, _event: usize) |stub| {
        match text(name).as_str() {
            "absent" => return Err(ABSENT),
            "denied" => return Err(-1001),
            _ => {}
        }
        stub.hold(flags == 2, "a pool is not opened to be read and written")?;
        stub.made(Thing::Pool, handle);
        Ok(())
    }
    daos_pool_disconnect(pool: u64, _event: usize) |stub| {
        stub.close(pool, |thing| matches!(thing, Thing::Pool))
    }
    daos_cont_create2(pool: u64, uuid: usize, _properties: usize, _event: usize) |stub| {
        stub.thing(pool)?;
        stub.last += 1;
        let mut made = [0xda; 16];
        made[..8].copy_from_slice(&stub.last.to_le_bytes());
        let container = code(stub.store.container(made, ContainerMode::Create))?;
        stub.containers.insert(uuid_text(&made), container);
        put(uuid, 0, made);
        Ok(())
    }
    daos_cont_open2(pool: u64, name: *const c_char, flags: c_uint, handle: usize, _info: usize, _event: usize) |stub| {
        stub.thing(pool)?;
        stub.hold(flags == 2, "a container is not opened to be read and written")?;
        let name = text(name);
        let container = *stub.containers.get(&name).ok_or(ABSENT)?;
        stub.made(Thing::Container(container, name), handle);
        Ok(())
    }
    daos_cont_close(container: u64, _event: usize) |stub| {
        let of = stub.container(container)?;
        let mut things = stub.open.values();
        let is_used = things.any(|thing| match thing {
            Thing::Object(at, _) | Thing::Snapshot(at, _) | Thing::Table(at, _) => *at == of,
            _ => false,
        });
        stub.hold(!is_used, "a container is closed before what is in it")?;
        stub.close(container, |thing| matches!(thing, Thing::Container(..)))
    }
    daos_cont_destroy2(pool: u64, name: *const c_char, _force: c_int, _event: usize) |stub| {
        stub.thing(pool)?;
        let name = text(name);
        if stub.open.values().any(|thing| matches!(thing, Thing::Container(_, open) if *open == name)) {
            return Err(BUSY);
        }
        stub.containers.remove(&name).map(drop).ok_or(ABSENT)
    }
    daos_cont_create_snap(container: u64, epoch: usize, _name: usize, _event: usize) |stub| {
        let container = stub.container(container)?;
        stub.epoch += 1;
        let at = Epoch(stub.epoch);
        code(stub.store.snapshot(container, at))?;
        stub.snapshots.insert((container, at.0));
        put(epoch, 0, at.0);
        Ok(())
    }
    daos_cont_destroy_snap(container: u64, first: u64, last: u64, _event: usize) |stub| {
        let container = stub.container(container)?;
        let known = first == last && stub.snapshots.remove(&(container, first));
        stub.hold(known, "no such snapshot to destroy")?;
        code(stub.store.drop_snapshot(container, Epoch(first)))
    }
    daos_tx_open_snap(container: u64, epoch: u64, handle: usize, _event: usize) |stub| {
        let container = stub.container(container)?;
        let known = stub.snapshots.contains(&(container, epoch));
        stub.hold(known, "no such snapshot to open")?;
        stub.made(Thing::Snapshot(container, epoch), handle);
        Ok(())
    }
    daos_tx_close(transaction: u64, _event: usize) |stub| {
        stub.close(transaction, |thing| matches!(thing, Thing::Snapshot(..)))
    }
    daos_cont_aggregate(container: u64, epoch: u64, _event: usize) |stub| {
        let container = stub.container(container)?;
        let upto = Epoch(if epoch == 0 { stub.epoch.max(1) } else { epoch });
        let range = EpochRange { after: Epoch(0), upto };
        code(stub.store.aggregate(container, range)).map(drop)
    }
    daos_obj_generate_oid2(container: u64, object: usize, form: c_uint, class: u32, _hints: u16, arguments: u32) |stub| {
        stub.container(container)?;
        let hi: u64 = get(object, 8);
        stub.hold(hi >> 32 == 0 && arguments == 0, "the high bits of a name are the library's")?;
        stub.hold(CLASSES.contains(&class), "no such class")?;
        // Of all groups there are eight.
        let groups = if class & 0xffff == 0xffff { 8 } else { class & 0xffff };
        let class = u64::from(class >> 24) << 48 | u64::from(groups) << 32;
        put(object, 8, u64::from(form) << 56 | class | hi);
        Ok(())
    }
    daos_obj_open(container: u64, lo: u64, hi: u64, mode: c_uint, handle: usize, _event: usize) |stub| {
        let container = stub.container(container)?;
        stub.hold(hi << 8 >> 40 != 0, "an object without a class")?;
        stub.hold(mode == 4, "an object is not opened to be read and written")?;
        stub.made(Thing::Object(container, ObjectId { hi, lo }), handle);
        Ok(())
    }
    daos_obj_close(object: u64, _event: usize) |stub| {
        stub.close(object, |thing| matches!(thing, Thing::Object(..)))
    }
    daos_obj_update(object: u64, transaction: u64, flags: u64, dkey: usize, count: c_uint, descriptors: usize, lists: usize, event: usize) |stub| {
        let at = stub.object(object)?;
        stub.hold(transaction == 0, "an update in a transaction")?;
        let parts = (count, descriptors, lists);
        stub.parts(parts, true)?;
        stub.operate(event, Box::new(move |stub| stub.update(at, flags, dkey, parts)))
    }
    daos_obj_fetch(object: u64, transaction: u64, flags: u64, dkey: usize, count: c_uint, descriptors: usize, lists: usize, maps: usize, event: usize) |stub| {
        let (container, object) = stub.object(object)?;
        let at = (container, object, stub.read_at(transaction, container)?);
        let parts = (count, descriptors, lists);
        stub.parts(parts, false)?;
        stub.operate(event, Box::new(move |stub| stub.fetch(at, flags, dkey, (parts, maps))))
    }
    daos_obj_punch(object: u64, _transaction: u64, flags: u64, _event: usize) |stub| {
        let at = stub.object(object)?;
        stub.punch(at, flags, PunchScope::Object)
    }
    daos_obj_punch_dkeys(object: u64, _transaction: u64, flags: u64, count: c_uint, dkey: usize, _event: usize) |stub| {
        let (at, dkey) = (stub.object(object)?, stub.key(dkey)?);
        stub.hold(count == 1, "one key is punched")?;
        stub.punch(at, flags, PunchScope::Dkey(&dkey))
    }
    daos_obj_punch_akeys(object: u64, _transaction: u64, flags: u64, dkey: usize, count: c_uint, akey: usize, _event: usize) |stub| {
        let (at, dkey, akey) = (stub.object(object)?, stub.key(dkey)?, stub.key(akey)?);
        stub.hold(count == 1, "one key is punched")?;
        stub.punch(at, flags, PunchScope::Akey(&dkey, &akey))
    }
    daos_obj_list_dkey(object: u64, transaction: u64, number: usize, lengths: usize, list: usize, anchor: usize, _event: usize) |stub| {
        stub.keys((object, transaction), 0, (number, lengths, list), anchor)
    }
    daos_obj_list_akey(object: u64, transaction: u64, dkey: usize, number: usize, lengths: usize, list: usize, anchor: usize, _event: usize) |stub| {
        stub.hold(dkey != 0, "attribute keys of no distribution key")?;
        stub.keys((object, transaction), dkey, (number, lengths, list), anchor)
    }
    daos_obj_query_key(object: u64, transaction: u64, flags: u64, dkey: usize, akey: usize, records: usize, _event: usize) |stub| {
        let (container, object) = stub.object(object)?;
        let epoch = stub.read_at(transaction, container)?;
        let given = |at: usize| bytes(get(at, 0), get(at, 16));
        let mut found = QueryAnswer { dkey: given(dkey), akey: given(akey), extent: RecordExtent::default() };
        let what = KeyQuery(u32::try_from(flags).unwrap_or(u32::MAX));
        code(stub.store.query(container, object, what, epoch, &mut found))?;
        for (level, at, key) in [(KeyQuery::DKEY, dkey, found.dkey), (KeyQuery::AKEY, akey, found.akey)] {
            if what.has(level) {
                stub.hold(get::<usize>(at, 8) >= key.len(), "a query without room for its key")?;
                put_bytes(get(at, 0), &key);
            }
        }
        put(records, 0, [found.extent.index, found.extent.count]);
        Ok(())
    }
    daos_cont_snap_oit_create(container: u64, epoch: u64, _name: usize, _event: usize) |stub| {
        let container = stub.container(container)?;
        let known = stub.snapshots.contains(&(container, epoch));
        stub.hold(known, "a table of no snapshot")?;
        stub.tables.insert((container, epoch));
        Ok(())
    }
    daos_cont_snap_oit_destroy(container: u64, table: u64, _event: usize) |stub| {
        let container = stub.container(container)?;
        let thing = stub.thing(table)?;
        let known = matches!(thing, Thing::Table(at, epoch) if at == container && stub.tables.remove(&(at, epoch)));
        stub.hold(known, "no such table to destroy")
    }
    daos_oit_open(container: u64, epoch: u64, handle: usize, _event: usize) |stub| {
        let container = stub.container(container)?;
        let known = stub.tables.contains(&(container, epoch));
        stub.hold(known, "a table that was not made")?;
        stub.made(Thing::Table(container, epoch), handle);
        Ok(())
    }
    daos_oit_list(table: u64, objects: usize, number: usize, anchor: usize, _event: usize) |stub| {
        let Thing::Table(container, epoch) = stub.thing(table)? else {
            return Err(stub.wrong("a listing of no table"));
        };
        let (mut all, mut place) = (Vec::new(), ListAnchor::default());
        while !place.done {
            code(stub.store.list(container, ListLevel::Objects, Epoch(epoch), &mut place, &mut |entry| {
                if let ListEntry::Object(object) = entry {
                    all.push(object);
                }
                true
            }))?;
        }
        let some = stub.batch(&all, get(number, 0), anchor)?;
        for (at, object) in some.iter().enumerate() {
            put(objects, 16 * at, [object.lo, object.hi]);
        }
        put(number, 0, u32::try_from(some.len()).unwrap_or(u32::MAX));
        Ok(())
    }
    daos_oit_close(table: u64, _event: usize) |stub| {
        stub.close(table, |thing| matches!(thing, Thing::Table(..)))
    }
}

impl Stub {
    fn punch(
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
