//! libdaos, opened at run time, and its calls on memory that outlives them.
//!
//! In: `WEIR_DAOS_LIB`, or the names under which packages install it; handles, keys and descriptors. Out: what the
//! library answers. A handle that is none is the library's to refuse. Not here: which call comes next (`store`),
//! operations in flight (`queue`).

#![expect(unsafe_code, reason = "functions opened at run time, on raw memory")]

use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::Arc;

use weir_sys::KeptSignalActions;
use weir_sys::library::{Library, SymbolScope};

use super::calls::{
    BLOCKING, Code, DaosAnchor, DaosCalls, DaosEvent, DaosHandle, DaosObject, Epochs, KeyLength,
    NO_TRANSACTION, NOTHING, OBJECT_FOR_BOTH, OPEN_FOR_BOTH, RawBytes, Records, ScatterList,
};
use super::descriptors::{CallKind, Descriptors};
use crate::prelude::*;

/// The variable that names the library to open.
pub const LIBRARY_VARIABLE: &str = "WEIR_DAOS_LIB";

/// As packages install it, then as a developer's link.
const LIBRARIES: [&str; 2] = ["libdaos.so.2", "libdaos.so"];

/// Calls a function of the library on memory of the caller's, and waits for its end.
macro_rules! call {
    ($library:ident.$function:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: what an argument points to is the caller's: a text that ends with NUL, or as much as the call is told
        // of, writable where the library writes; it outlives the call, which blocks.
        done(stringify!($function), unsafe { ($library.calls.$function)($($argument),*) })
    };
}

/// The opened library, in use until the end of this value.
#[derive(Debug)]
pub(super) struct DaosLibrary {
    pub(super) calls: DaosCalls,
    file: String,
}

// SAFETY: its addresses are followed by the library alone, in a call, and it may be called by any thread.
unsafe impl Send for Descriptors {}

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
        done("init", answer).map_err(|why| {
            format!("{file} does not start: {why}; is the agent of DAOS (daos_agent) running?")
        })?;
        Ok(Arc::new(Self { calls, file }))
    }

    /// File that it was loaded from.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    pub(super) fn connect(&self, pool: &CStr) -> Result<DaosHandle> {
        let (pool, system, flags) = (pool.as_ptr(), null_mut(), OPEN_FOR_BOTH);
        made(|to| call!(self.pool_connect(pool, system, flags, to, NOTHING, BLOCKING)))
    }

    pub(super) fn disconnect(&self, pool: DaosHandle) -> Result<()> {
        call!(self.pool_disconnect(pool, BLOCKING))
    }

    /// A new container, whose name the library makes.
    pub(super) fn create_container(&self, pool: DaosHandle) -> Result<StoreUuid> {
        made(|uuid| call!(self.container_create(pool, uuid, NOTHING, BLOCKING)))
    }

    pub(super) fn open_container(&self, pool: DaosHandle, name: &CStr) -> Result<DaosHandle> {
        let (name, flags) = (name.as_ptr(), OPEN_FOR_BOTH);
        made(|to| call!(self.container_open(pool, name, flags, to, NOTHING, BLOCKING)))
    }

    pub(super) fn close_container(&self, container: DaosHandle) -> Result<()> {
        call!(self.container_close(container, BLOCKING))
    }

    pub(super) fn destroy_container(&self, pool: DaosHandle, name: &CStr) -> Result<()> {
        call!(self.container_destroy(pool, name.as_ptr(), 0, BLOCKING))
    }

    /// Epoch of a new snapshot.
    pub(super) fn create_snapshot(&self, container: DaosHandle) -> Result<u64> {
        made(|epoch| call!(self.snapshot_create(container, epoch, null_mut(), BLOCKING)))
    }

    pub(super) fn destroy_snapshot(&self, container: DaosHandle, epoch: u64) -> Result<()> {
        let (first, last) = (epoch, epoch);
        call!(self.snapshot_destroy(container, Epochs { first, last }, BLOCKING))
    }

    /// A transaction that reads a snapshot.
    pub(super) fn open_snapshot(&self, container: DaosHandle, epoch: u64) -> Result<DaosHandle> {
        made(|to| call!(self.snapshot_open(container, epoch, to, BLOCKING)))
    }

    pub(super) fn close_snapshot(&self, transaction: DaosHandle) -> Result<()> {
        call!(self.snapshot_close(transaction, BLOCKING))
    }

    /// Aggregates up to an epoch, or up to now where it is 0.
    pub(super) fn aggregate(&self, container: DaosHandle, epoch: u64) -> Result<()> {
        call!(self.aggregate(container, epoch, BLOCKING))
    }

    /// Opens an object by the caller's bits of its name, its type and its class.
    pub(super) fn open_object(
        &self,
        container: DaosHandle,
        mut object: DaosObject,
        (form, class): (u32, u32),
    ) -> Result<DaosHandle> {
        call!(self.object_id(container, &raw mut object, form, class, 0, 0))?;
        made(|to| call!(self.object_open(container, object, OBJECT_FOR_BOTH, to, BLOCKING)))
    }

    pub(super) fn close_object(&self, object: DaosHandle) -> Result<()> {
        call!(self.object_close(object, BLOCKING))
    }

    /// Begins an update or a fetch; without an event it waits for the end.
    ///
    /// # Safety
    /// Memory that the request points to stays until the end of the operation, is used by nobody else meanwhile, and the
    /// data of a fetch may be written. So does the event, which is of a queue that is not destroyed.
    pub(super) unsafe fn transfer(
        &self,
        direction: CallKind,
        (object, of, flags): (DaosHandle, DaosHandle, u64),
        request: &mut Descriptors,
        event: *mut DaosEvent,
    ) -> Result<()> {
        let dkey = request.bytes.as_mut_ptr();
        let values = request.values.as_mut_ptr();
        let (lists, maps) = (request.lists.as_mut_ptr(), request.maps.as_mut_ptr());
        let count = u32::try_from(request.values.len()).unwrap_or(u32::MAX);
        if direction == CallKind::Update {
            let update = self.calls.update;
            // SAFETY: the request's own vectors, as long as it says; the rest is the caller's word.
            let answer = unsafe { update(object, of, flags, dkey, count, values, lists, event) };
            return done("update", answer);
        }
        let fetch = self.calls.fetch;
        // SAFETY: as above.
        let answer = unsafe { fetch(object, of, flags, dkey, count, values, lists, maps, event) };
        done("fetch", answer)
    }

    /// Writes values and waits for it.
    pub(super) fn update(
        &self,
        (object, flags): (DaosHandle, u64),
        request: &mut Descriptors,
        call: (&[u8], &[Iod<'_>]),
        data: &[u8],
    ) -> Result<()> {
        request.fill(CallKind::Update, call, (&raw const *data).cast_mut())?;
        let at = (object, NO_TRANSACTION, flags);
        // SAFETY: it waits for the end; the request was filled with this data, which an update only reads.
        unsafe { self.transfer(CallKind::Update, at, request, BLOCKING) }
    }

    /// Reads values and waits for them.
    pub(super) fn fetch(
        &self,
        at: (DaosHandle, DaosHandle, u64),
        request: &mut Descriptors,
        call: (&[u8], &[Iod<'_>]),
        data: &mut [u8],
    ) -> Result<()> {
        request.fill(CallKind::Fetch, call, data)?;
        loop {
            // SAFETY: it waits for the end; the request was filled with this data, which nobody else uses.
            unsafe { self.transfer(CallKind::Fetch, at, request, BLOCKING) }?;
            if !request.lacked_room() {
                return Ok(());
            }
        }
    }

    /// Hides an object, a distribution key of it, or an attribute key of that.
    pub(super) fn punch(
        &self,
        (object, flags): (DaosHandle, u64),
        dkey: Option<&[u8]>,
        akey: Option<&[u8]>,
    ) -> Result<()> {
        let none = NO_TRANSACTION;
        let (Some(mut dkey), akey) = (dkey.map(RawBytes::of), akey.map(RawBytes::of)) else {
            return call!(self.punch_object(object, none, flags, BLOCKING));
        };
        let dkey = &raw mut dkey;
        let Some(mut akey) = akey else {
            return call!(self.punch_dkeys(object, none, flags, 1, dkey, BLOCKING));
        };
        let akey = &raw mut akey;
        call!(self.punch_akeys(object, none, flags, dkey, 1, akey, BLOCKING))
    }

    /// Lists keys of an object, or of a distribution key of it, into `text`; their lengths in `keys`. The number of
    /// keys.
    pub(super) fn list(
        &self,
        (object, transaction): (DaosHandle, DaosHandle),
        dkey: Option<&[u8]>,
        (keys, text): (&mut [KeyLength], &mut [u8]),
        anchor: &mut DaosAnchor,
    ) -> Result<usize> {
        let mut count = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        let mut bytes = RawBytes::new(text.as_mut_ptr(), text.len());
        let mut list = ScatterList {
            count: 1,
            filled: 0,
            parts: &raw mut bytes,
        };
        let (at, of) = (object, transaction);
        let (number, lens) = (&raw mut count, keys.as_mut_ptr());
        let (list, anchor) = (&raw mut list, &raw mut *anchor);
        if let Some(mut dkey) = dkey.map(RawBytes::of) {
            let dkey = &raw mut dkey;
            call!(self.list_akeys(at, of, dkey, number, lens, list, anchor, BLOCKING))?;
        } else {
            call!(self.list_dkeys(at, of, number, lens, list, anchor, BLOCKING))?;
        }
        Ok(keys.len().min(count as usize))
    }

    /// Finds the greatest or smallest keys, which are numbers, or records.
    pub(super) fn query(
        &self,
        (object, transaction, flags): (DaosHandle, DaosHandle, u64),
        dkey: &mut [u8],
        akey: &mut [u8],
    ) -> Result<Records> {
        let mut dkey = RawBytes::new(dkey.as_mut_ptr(), dkey.len());
        let mut akey = RawBytes::new(akey.as_mut_ptr(), akey.len());
        let (dkey, akey) = (&raw mut dkey, &raw mut akey);
        made(|to| call!(self.query(object, transaction, flags, dkey, akey, to, BLOCKING)))
    }

    /// Makes the table of the objects of a snapshot, and opens it.
    pub(super) fn open_table(&self, container: DaosHandle, epoch: u64) -> Result<DaosHandle> {
        call!(self.table_create(container, epoch, null_mut(), BLOCKING))?;
        made(|to| call!(self.table_open(container, epoch, to, BLOCKING)))
    }

    /// Lists objects of a table; their number.
    pub(super) fn list_table(
        &self,
        table: DaosHandle,
        objects: &mut [DaosObject],
        anchor: &mut DaosAnchor,
    ) -> Result<usize> {
        let mut count = u32::try_from(objects.len()).unwrap_or(u32::MAX);
        let (list, number) = (objects.as_mut_ptr(), &raw mut count);
        call!(self.table_list(table, list, number, &raw mut *anchor, BLOCKING))?;
        Ok(objects.len().min(count as usize))
    }

    /// Destroys a table and closes it.
    pub(super) fn close_table(&self, container: DaosHandle, table: DaosHandle) -> Result<()> {
        let destroyed = call!(self.table_destroy(container, table, BLOCKING));
        destroyed.and(call!(self.table_close(table, BLOCKING)))
    }
}

impl Drop for DaosLibrary {
    fn drop(&mut self) {
        // SAFETY: this ends the use that `open` began.
        let _ = unsafe { (self.calls.fini)() };
    }
}

/// The value that a call puts where it is told.
fn made<T: Default>(make: impl FnOnce(*mut T) -> Result<()>) -> Result<T> {
    let mut made = T::default();
    make(&raw mut made)?;
    Ok(made)
}

/// The end of a call.
pub(super) fn done(call: &'static str, answer: Code) -> Result<()> {
    if answer >= 0 {
        return Ok(());
    }
    let Some(known) = ObjectCode::of(answer) else {
        return ObjectCode::Io.fail(format!("libdaos: {call} failed: {answer}"));
    };
    known.fail(format!("libdaos: {call} failed"))
}
