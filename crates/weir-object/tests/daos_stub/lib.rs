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

mod state;

use std::ffi::{c_char, c_int, c_uint};
use std::sync::{Mutex, PoisonError};

use state::{
    ABSENT, BUSY, CLASSES, Done, NO_HANDLE, Stub, Thing, bytes, code, get, put, put_bytes, text,
};
use weir_object::{
    ContainerMode, Epoch, EpochRange, KeyQuery, ListAnchor, ListEntry, ListLevel, ObjectId,
    ObjectStore, PunchScope, QueryAnswer, RecordExtent, uuid_text,
};

static STUB: Mutex<Option<Stub>> = Mutex::new(None);

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
        stub.hold(parent == 0 && event.is_multiple_of(8), "an event with a parent, or in no place for one")?;
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
