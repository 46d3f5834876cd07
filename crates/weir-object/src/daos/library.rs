//! libdaos, opened at run time, and its calls on memory that outlives them.
//!
//! In: `WEIR_DAOS_LIB`, or the names under which packages install it; handles, keys and descriptors. Out: what the
//! library answers. A handle that is none is the library's to refuse. Not here: which call comes next (`store`),
//! operations in flight (`queue`).

#![expect(
    unsafe_code,
    reason = "functions of a library opened at run time, on memory given by address"
)]

use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::Arc;

use weir_sys::KeptSignalActions;
use weir_sys::library::{Library, SymbolScope};

use super::calls::{
    Anchor, BLOCKING, Bytes, Code, DaosCalls, DaosObject, Epochs, Event, Handle, KeyLength,
    NO_TRANSACTION, NOTHING, OBJECT_FOR_BOTH, OPEN_FOR_BOTH, Records, ScatterList,
};
use super::request::{Direction, Request};
use crate::store::{Iod, Result, StoreUuid};
use crate::{ObjectCode, ObjectError};

/// The variable that names the library to open.
pub const LIBRARY_VARIABLE: &str = "WEIR_DAOS_LIB";

/// As packages install it, then as a developer's link.
const LIBRARIES: [&str; 2] = ["libdaos.so.2", "libdaos.so"];

/// The opened library, in use until the end of this value.
#[derive(Debug)]
pub(super) struct DaosLibrary {
    pub(super) calls: DaosCalls,
    file: String,
}

// SAFETY: its addresses are followed by the library alone, in a call, and it may be called by any thread.
unsafe impl Send for Request {}

/// Reason why this machine has no libdaos that works; nothing where it has one.
pub fn lacks() -> Option<String> {
    DaosLibrary::open(None).err()
}

impl DaosLibrary {
    /// Opens the library of this name, else the one that [`LIBRARY_VARIABLE`] names, else the system's.
    ///
    /// # Errors
    /// The part that is missing, and where it was searched.
    pub(super) fn open(name: Option<&str>) -> std::result::Result<Arc<Self>, String> {
        // What it loads may take signals for itself.
        let _kept = KeptSignalActions::now();
        let variable = std::env::var(LIBRARY_VARIABLE).ok();
        let wish = name.or(variable.as_deref());
        let opened = Library::open_first(wish, &LIBRARIES, SymbolScope::Own);
        let (library, name) = opened.map_err(|(wish, why)| {
            let searched = wish.map_or_else(|| LIBRARIES.join(", "), str::to_owned);
            format!(
                "libdaos not found (searched {searched}: {why}); install daos-client, or name a library with \
                 {LIBRARY_VARIABLE}"
            )
        })?;
        let file = library.symbol(c"daos_init").and_then(Library::file);
        let file = file.unwrap_or_else(|| name.to_owned());
        // SAFETY: the library's headers give each symbol the type of its field.
        let calls = unsafe { DaosCalls::resolve(&library) }
            .map_err(|symbol| format!("{file} is no libdaos of version 2: it lacks {symbol}"))?;
        // SAFETY: it takes nothing, and may be called again for as many ends.
        let answer = unsafe { (calls.init)() };
        done("daos_init", answer).map_err(|why| {
            format!("{file} does not start: {why}; is the agent of DAOS (daos_agent) running?")
        })?;
        Ok(Arc::new(Self { calls, file }))
    }

    /// File that it was loaded from.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    pub(super) fn connect(&self, pool: &CStr) -> Result<Handle> {
        let (mut handle, text) = (Handle::default(), pool.as_ptr());
        let system = null_mut();
        // SAFETY: the text ends with NUL and the handle is writable; both outlive the blocking call.
        let answer = unsafe {
            (self.calls.pool_connect)(
                text,
                system,
                OPEN_FOR_BOTH,
                &raw mut handle,
                NOTHING,
                BLOCKING,
            )
        };
        done("daos_pool_connect", answer).map(|()| handle)
    }

    pub(super) fn disconnect(&self, pool: Handle) -> Result<()> {
        // SAFETY: no memory is given.
        let answer = unsafe { (self.calls.pool_disconnect)(pool, BLOCKING) };
        done("daos_pool_disconnect", answer)
    }

    /// A new container, whose name the library makes.
    pub(super) fn create_container(&self, pool: Handle) -> Result<StoreUuid> {
        let mut uuid = StoreUuid::default();
        // SAFETY: the UUID is writable and outlives the blocking call.
        let answer =
            unsafe { (self.calls.container_create)(pool, &raw mut uuid, NOTHING, BLOCKING) };
        done("daos_cont_create", answer).map(|()| uuid)
    }

    pub(super) fn open_container(&self, pool: Handle, name: &CStr) -> Result<Handle> {
        let (mut handle, text) = (Handle::default(), name.as_ptr());
        // SAFETY: the text ends with NUL and the handle is writable; both outlive the blocking call.
        let answer = unsafe {
            (self.calls.container_open)(
                pool,
                text,
                OPEN_FOR_BOTH,
                &raw mut handle,
                NOTHING,
                BLOCKING,
            )
        };
        done("daos_cont_open", answer).map(|()| handle)
    }

    pub(super) fn close_container(&self, container: Handle) -> Result<()> {
        // SAFETY: no memory is given.
        let answer = unsafe { (self.calls.container_close)(container, BLOCKING) };
        done("daos_cont_close", answer)
    }

    pub(super) fn destroy_container(&self, pool: Handle, name: &CStr) -> Result<()> {
        // SAFETY: the text ends with NUL and outlives the blocking call.
        let answer = unsafe { (self.calls.container_destroy)(pool, name.as_ptr(), 0, BLOCKING) };
        done("daos_cont_destroy", answer)
    }

    /// Epoch of a new snapshot.
    pub(super) fn create_snapshot(&self, container: Handle) -> Result<u64> {
        let mut epoch = 0;
        // SAFETY: the number is writable and outlives the blocking call; a name is not asked for.
        let answer = unsafe {
            (self.calls.snapshot_create)(container, &raw mut epoch, null_mut(), BLOCKING)
        };
        done("daos_cont_create_snap", answer).map(|()| epoch)
    }

    pub(super) fn destroy_snapshot(&self, container: Handle, epoch: u64) -> Result<()> {
        let (first, last) = (epoch, epoch);
        // SAFETY: no memory is given.
        let answer =
            unsafe { (self.calls.snapshot_destroy)(container, Epochs { first, last }, BLOCKING) };
        done("daos_cont_destroy_snap", answer)
    }

    /// A transaction that reads a snapshot.
    pub(super) fn open_snapshot(&self, container: Handle, epoch: u64) -> Result<Handle> {
        let mut handle = Handle::default();
        // SAFETY: the handle is writable and outlives the blocking call.
        let answer =
            unsafe { (self.calls.snapshot_open)(container, epoch, &raw mut handle, BLOCKING) };
        done("daos_tx_open_snap", answer).map(|()| handle)
    }

    pub(super) fn close_snapshot(&self, transaction: Handle) -> Result<()> {
        // SAFETY: no memory is given.
        let answer = unsafe { (self.calls.snapshot_close)(transaction, BLOCKING) };
        done("daos_tx_close", answer)
    }

    /// Aggregates up to an epoch, or up to now where it is 0.
    pub(super) fn aggregate(&self, container: Handle, epoch: u64) -> Result<()> {
        // SAFETY: no memory is given.
        let answer = unsafe { (self.calls.aggregate)(container, epoch, BLOCKING) };
        done("daos_cont_aggregate", answer)
    }

    /// Opens an object by the caller's bits of its name, its type and its class.
    pub(super) fn open_object(
        &self,
        container: Handle,
        mut object: DaosObject,
        (form, class): (u32, u32),
    ) -> Result<Handle> {
        // SAFETY: the name is writable and outlives the call, which does not wait for anything.
        let answer =
            unsafe { (self.calls.object_id)(container, &raw mut object, form, class, 0, 0) };
        done("daos_obj_generate_oid", answer)?;
        let mut handle = Handle::default();
        // SAFETY: the handle is writable and outlives the blocking call.
        let answer = unsafe {
            (self.calls.object_open)(
                container,
                object,
                OBJECT_FOR_BOTH,
                &raw mut handle,
                BLOCKING,
            )
        };
        done("daos_obj_open", answer).map(|()| handle)
    }

    pub(super) fn close_object(&self, object: Handle) -> Result<()> {
        // SAFETY: no memory is given.
        let answer = unsafe { (self.calls.object_close)(object, BLOCKING) };
        done("daos_obj_close", answer)
    }

    /// Begins an update or a fetch; without an event it waits for the end.
    ///
    /// # Safety
    /// What the request points to stays until the end of the operation, is used by nobody else meanwhile, and the
    /// data of a fetch may be written. So does the event, which is of a queue that is not destroyed.
    pub(super) unsafe fn transfer(
        &self,
        direction: Direction,
        (object, transaction, flags): (Handle, Handle, u64),
        request: &mut Request,
        event: *mut Event,
    ) -> Result<()> {
        let dkey = request.bytes.as_mut_ptr();
        let descriptors = request.descriptors.as_mut_ptr();
        let lists = request.lists.as_mut_ptr();
        let count = u32::try_from(request.descriptors.len()).unwrap_or(u32::MAX);
        if direction == Direction::Update {
            // SAFETY: the request's own vectors, as long as it says; the rest is the caller's word.
            let answer = unsafe {
                (self.calls.update)(
                    object,
                    transaction,
                    flags,
                    dkey,
                    count,
                    descriptors,
                    lists,
                    event,
                )
            };
            return done("daos_obj_update", answer);
        }
        let maps = request.maps.as_mut_ptr();
        // SAFETY: as above.
        let answer = unsafe {
            (self.calls.fetch)(
                object,
                transaction,
                flags,
                dkey,
                count,
                descriptors,
                lists,
                maps,
                event,
            )
        };
        done("daos_obj_fetch", answer)
    }

    /// Writes values and waits for it.
    pub(super) fn update(
        &self,
        (object, flags): (Handle, u64),
        request: &mut Request,
        call: (&[u8], &[Iod<'_>]),
        data: &[u8],
    ) -> Result<()> {
        request.fill(Direction::Update, call, (&raw const *data).cast_mut())?;
        let at = (object, NO_TRANSACTION, flags);
        // SAFETY: it waits for the end; the request was filled with this data, which an update only reads.
        unsafe { self.transfer(Direction::Update, at, request, BLOCKING) }
    }

    /// Reads values and waits for them.
    pub(super) fn fetch(
        &self,
        at: (Handle, Handle, u64),
        request: &mut Request,
        call: (&[u8], &[Iod<'_>]),
        data: &mut [u8],
    ) -> Result<()> {
        request.fill(Direction::Fetch, call, data)?;
        loop {
            // SAFETY: it waits for the end; the request was filled with this data, which nobody else uses.
            unsafe { self.transfer(Direction::Fetch, at, request, BLOCKING) }?;
            if !request.lacked_room() {
                return Ok(());
            }
        }
    }

    /// Hides an object, a distribution key of it, or an attribute key of that.
    pub(super) fn punch(
        &self,
        (object, flags): (Handle, u64),
        dkey: Option<&[u8]>,
        akey: Option<&[u8]>,
    ) -> Result<()> {
        let key = |key: &[u8]| Bytes::new(key.as_ptr().cast_mut(), key.len());
        let (calls, none) = (&self.calls, NO_TRANSACTION);
        let Some(mut dkey) = dkey.map(key) else {
            // SAFETY: no memory is given.
            let answer = unsafe { (calls.punch_object)(object, none, flags, BLOCKING) };
            return done("daos_obj_punch", answer);
        };
        let dkey = &raw mut dkey;
        let Some(mut akey) = akey.map(key) else {
            // SAFETY: one key, which is read and outlives the blocking call.
            let answer = unsafe { (calls.punch_dkeys)(object, none, flags, 1, dkey, BLOCKING) };
            return done("daos_obj_punch_dkeys", answer);
        };
        let akey = &raw mut akey;
        // SAFETY: a key and one more below it, which are read and outlive the blocking call.
        let answer = unsafe { (calls.punch_akeys)(object, none, flags, dkey, 1, akey, BLOCKING) };
        done("daos_obj_punch_akeys", answer)
    }

    /// Lists keys of an object, or of a distribution key of it, into `text`; their lengths in `keys`. The number of
    /// keys.
    pub(super) fn list(
        &self,
        (object, transaction): (Handle, Handle),
        dkey: Option<&[u8]>,
        (keys, text): (&mut [KeyLength], &mut [u8]),
        anchor: &mut Anchor,
    ) -> Result<usize> {
        let mut count = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        let mut bytes = Bytes::new(text.as_mut_ptr(), text.len());
        let mut list = ScatterList {
            count: 1,
            filled: 0,
            parts: &raw mut bytes,
        };
        let (number, lengths) = (&raw mut count, keys.as_mut_ptr());
        let (list, anchor) = (&raw mut list, &raw mut *anchor);
        let calls = &self.calls;
        if let Some(dkey) = dkey {
            let mut dkey = Bytes::new(dkey.as_ptr().cast_mut(), dkey.len());
            let dkey = &raw mut dkey;
            // SAFETY: the key is read, all else is writable and as long as it says; all outlive the blocking call.
            let answer = unsafe {
                (calls.list_akeys)(
                    object,
                    transaction,
                    dkey,
                    number,
                    lengths,
                    list,
                    anchor,
                    BLOCKING,
                )
            };
            done("daos_obj_list_akey", answer)?;
        } else {
            // SAFETY: all is writable and as long as it says, and outlives the blocking call.
            let answer = unsafe {
                (calls.list_dkeys)(object, transaction, number, lengths, list, anchor, BLOCKING)
            };
            done("daos_obj_list_dkey", answer)?;
        }
        Ok(keys.len().min(count as usize))
    }

    /// Finds the greatest or smallest keys, which are numbers, or records.
    pub(super) fn query(
        &self,
        (object, transaction, flags): (Handle, Handle, u64),
        dkey: &mut [u8],
        akey: &mut [u8],
    ) -> Result<Records> {
        let mut dkey = Bytes::new(dkey.as_mut_ptr(), dkey.len());
        let mut akey = Bytes::new(akey.as_mut_ptr(), akey.len());
        let mut found = Records::default();
        let (dkey, akey, records) = (&raw mut dkey, &raw mut akey, &raw mut found);
        // SAFETY: keys and records are writable and outlive the blocking call.
        let answer = unsafe {
            (self.calls.query)(object, transaction, flags, dkey, akey, records, BLOCKING)
        };
        done("daos_obj_query_key", answer).map(|()| found)
    }

    /// Makes the table of the objects of a snapshot, and opens it.
    pub(super) fn open_table(&self, container: Handle, epoch: u64) -> Result<Handle> {
        // SAFETY: no memory is given.
        let answer = unsafe { (self.calls.table_create)(container, epoch, null_mut(), BLOCKING) };
        done("daos_cont_snap_oit_create", answer)?;
        let mut handle = Handle::default();
        // SAFETY: the handle is writable and outlives the blocking call.
        let answer =
            unsafe { (self.calls.table_open)(container, epoch, &raw mut handle, BLOCKING) };
        done("daos_oit_open", answer).map(|()| handle)
    }

    /// Lists objects of a table; their number.
    pub(super) fn list_table(
        &self,
        table: Handle,
        objects: &mut [DaosObject],
        anchor: &mut Anchor,
    ) -> Result<usize> {
        let mut count = u32::try_from(objects.len()).unwrap_or(u32::MAX);
        let (list, number) = (objects.as_mut_ptr(), &raw mut count);
        // SAFETY: names, number and anchor are writable and outlive the blocking call.
        let answer = unsafe { (self.calls.table_list)(table, list, number, anchor, BLOCKING) };
        done("daos_oit_list", answer)?;
        Ok(objects.len().min(count as usize))
    }

    /// Destroys a table and closes it.
    pub(super) fn close_table(&self, container: Handle, table: Handle) -> Result<()> {
        // SAFETY: no memory is given.
        let answer = unsafe { (self.calls.table_destroy)(container, table, BLOCKING) };
        let destroyed = done("daos_cont_snap_oit_destroy", answer);
        // SAFETY: no memory is given.
        let answer = unsafe { (self.calls.table_close)(table, BLOCKING) };
        destroyed.and(done("daos_oit_close", answer))
    }
}

impl Drop for DaosLibrary {
    fn drop(&mut self) {
        // SAFETY: this ends the use that `open` began.
        let _ = unsafe { (self.calls.fini)() };
    }
}

/// The end of a call.
pub(super) fn done(call: &'static str, answer: Code) -> Result<()> {
    if answer >= 0 {
        return Ok(());
    }
    let number = answer.unsigned_abs();
    let mut all = ObjectCode::ALL.iter();
    let known = all.find(|code| u32::from(code.number()) == number);
    let message = match known {
        Some(_) => format!("{call} failed"),
        None => format!("{call} failed: {answer}"),
    };
    Err(ObjectError::new(*known.unwrap_or(&ObjectCode::Io), message))
}
