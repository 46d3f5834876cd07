//! Functions and structures of libdaos, as its headers of version 2 have them on 64-bit machines.
//!
//! In: an opened library. Out: the table of its functions. Those whose headers choose an older or newer form
//! behind one name have a `2` at the end of the newer one's symbol. Not here: calling them (`library`).

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

/// 0, or the negative number of an error.
pub(super) type Code = c_int;

/// Handle of a pool, container, object, transaction or queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub(super) struct DaosHandle(pub(super) u64);

/// In place of a transaction's handle: the latest state.
pub(super) const NO_TRANSACTION: DaosHandle = DaosHandle(0);

/// Name of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct DaosObject {
    pub(super) lo: u64,
    pub(super) hi: u64,
}

/// Bytes in memory; a key too.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct RawBytes {
    pub(super) start: *mut u8,
    /// Room.
    pub(super) room: u64,
    /// Bytes of it in use.
    pub(super) len: u64,
}

impl RawBytes {
    pub(super) fn new(start: *mut u8, len: usize) -> Self {
        let len = len as u64;
        Self {
            start,
            room: len,
            len,
        }
    }

    /// Bytes that are only read.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self::new(bytes.as_ptr().cast_mut(), bytes.len())
    }
}

/// List of bytes in memory.
#[derive(Debug)]
#[repr(C)]
pub(super) struct ScatterList {
    pub(super) count: u32,
    pub(super) filled: u32,
    pub(super) parts: *mut RawBytes,
}

/// Records of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Records {
    pub(super) index: u64,
    pub(super) count: u64,
}

pub(super) const SINGLE: u32 = 1;
pub(super) const ARRAY: u32 = 2;

/// Part of a call that is of one attribute key.
#[derive(Debug)]
#[repr(C)]
pub(super) struct ValueDescriptor {
    pub(super) akey: RawBytes,
    pub(super) kind: u32,
    pub(super) size: u64,
    pub(super) flags: u64,
    pub(super) count: u32,
    pub(super) records: *mut Records,
}

/// Flag of a map: every range that was found is wanted.
pub(super) const MAP_IN_DETAIL: u32 = 1;

/// Ranges that a fetch found.
#[derive(Debug)]
#[repr(C)]
pub(super) struct FoundMap {
    pub(super) kind: u32,
    pub(super) room: u32,
    pub(super) count: u32,
    pub(super) flags: u32,
    pub(super) size: u64,
    pub(super) lowest: Records,
    pub(super) highest: Records,
    pub(super) records: *mut Records,
}

/// Operation in flight; it stays where it is until the end.
#[derive(Debug)]
#[repr(C, align(8))]
pub(super) struct DaosEvent {
    pub(super) error: c_int,
    private: [u8; 172],
}

impl DaosEvent {
    pub(super) const fn new() -> Self {
        Self {
            error: 0,
            private: [0; 172],
        }
    }
}

const ANCHOR_END: u16 = 3;

/// Place of a listing.
#[derive(Debug)]
#[repr(C)]
pub(super) struct DaosAnchor {
    kind: u16,
    shard: u16,
    flags: u32,
    sub_anchors: u64,
    place: [u8; 104],
}

impl DaosAnchor {
    pub(super) const fn start() -> Self {
        Self {
            kind: 0,
            shard: 0,
            flags: 0,
            sub_anchors: 0,
            place: [0; 104],
        }
    }

    pub(super) const fn is_at_end(&self) -> bool {
        self.kind == ANCHOR_END
    }
}

/// Length of a listed key.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct KeyLength {
    pub(super) len: u64,
    pub(super) kind: u32,
}

/// Epochs from one to another.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Epochs {
    pub(super) first: u64,
    pub(super) last: u64,
}

/// Flag of pools and containers: reads and writes.
pub(super) const OPEN_FOR_BOTH: c_uint = 2;
/// The same of objects.
pub(super) const OBJECT_FOR_BOTH: c_uint = 4;
/// Longest time that a poll waits, in microseconds.
pub(super) const MOMENT: i64 = 100_000;
/// The call waits for its operation.
pub(super) const BLOCKING: *mut DaosEvent = null_mut();
/// Nothing is given or wanted.
pub(super) const NOTHING: *mut c_void = null_mut();

weir_sys::library_calls! {
    /// Functions of the library.
    pub(super) struct DaosCalls {
        init = c"daos_init"() -> Code;
        fini = c"daos_fini"() -> Code;
        queue_create = c"daos_eq_create"(*mut DaosHandle) -> Code;
        queue_destroy = c"daos_eq_destroy"(DaosHandle, c_int) -> Code;
        queue_poll = c"daos_eq_poll"(DaosHandle, c_int, i64, c_uint, *mut *mut DaosEvent) -> Code;
        event_init = c"daos_event_init"(*mut DaosEvent, DaosHandle, *mut DaosEvent) -> Code;
        event_fini = c"daos_event_fini"(*mut DaosEvent) -> Code;
        pool_connect = c"daos_pool_connect2" or c"daos_pool_connect"(*const c_char, *const c_char, c_uint,
            *mut DaosHandle, *mut c_void, *mut DaosEvent) -> Code;
        pool_disconnect = c"daos_pool_disconnect"(DaosHandle, *mut DaosEvent) -> Code;
        container_create = c"daos_cont_create2" or c"daos_cont_create"(DaosHandle, *mut [u8; 16], *mut c_void,
            *mut DaosEvent) -> Code;
        container_open = c"daos_cont_open2" or c"daos_cont_open"(DaosHandle, *const c_char, c_uint, *mut DaosHandle,
            *mut c_void, *mut DaosEvent) -> Code;
        container_close = c"daos_cont_close"(DaosHandle, *mut DaosEvent) -> Code;
        container_destroy = c"daos_cont_destroy2" or c"daos_cont_destroy"(DaosHandle, *const c_char, c_int,
            *mut DaosEvent) -> Code;
        snapshot_create = c"daos_cont_create_snap"(DaosHandle, *mut u64, *mut c_char, *mut DaosEvent) -> Code;
        snapshot_destroy = c"daos_cont_destroy_snap"(DaosHandle, Epochs, *mut DaosEvent) -> Code;
        snapshot_open = c"daos_tx_open_snap"(DaosHandle, u64, *mut DaosHandle, *mut DaosEvent) -> Code;
        snapshot_close = c"daos_tx_close"(DaosHandle, *mut DaosEvent) -> Code;
        aggregate = c"daos_cont_aggregate"(DaosHandle, u64, *mut DaosEvent) -> Code;
        object_id = c"daos_obj_generate_oid2" or c"daos_obj_generate_oid"(DaosHandle, *mut DaosObject, c_uint, u32,
            u16, u32) -> Code;
        object_open = c"daos_obj_open"(DaosHandle, DaosObject, c_uint, *mut DaosHandle, *mut DaosEvent) -> Code;
        object_close = c"daos_obj_close"(DaosHandle, *mut DaosEvent) -> Code;
        update = c"daos_obj_update"(DaosHandle, DaosHandle, u64, *mut RawBytes, c_uint, *mut ValueDescriptor,
            *mut ScatterList, *mut DaosEvent) -> Code;
        fetch = c"daos_obj_fetch"(DaosHandle, DaosHandle, u64, *mut RawBytes, c_uint, *mut ValueDescriptor,
            *mut ScatterList, *mut FoundMap, *mut DaosEvent) -> Code;
        punch_object = c"daos_obj_punch"(DaosHandle, DaosHandle, u64, *mut DaosEvent) -> Code;
        punch_dkeys = c"daos_obj_punch_dkeys"(DaosHandle, DaosHandle, u64, c_uint, *mut RawBytes,
            *mut DaosEvent) -> Code;
        punch_akeys = c"daos_obj_punch_akeys"(DaosHandle, DaosHandle, u64, *mut RawBytes, c_uint, *mut RawBytes,
            *mut DaosEvent) -> Code;
        list_dkeys = c"daos_obj_list_dkey"(DaosHandle, DaosHandle, *mut u32, *mut KeyLength, *mut ScatterList,
            *mut DaosAnchor, *mut DaosEvent) -> Code;
        list_akeys = c"daos_obj_list_akey"(DaosHandle, DaosHandle, *mut RawBytes, *mut u32, *mut KeyLength,
            *mut ScatterList, *mut DaosAnchor, *mut DaosEvent) -> Code;
        query = c"daos_obj_query_key"(DaosHandle, DaosHandle, u64, *mut RawBytes, *mut RawBytes, *mut Records,
            *mut DaosEvent) -> Code;
        table_create = c"daos_cont_snap_oit_create"(DaosHandle, u64, *mut c_char, *mut DaosEvent) -> Code;
        table_destroy = c"daos_cont_snap_oit_destroy"(DaosHandle, DaosHandle, *mut DaosEvent) -> Code;
        table_open = c"daos_oit_open"(DaosHandle, u64, *mut DaosHandle, *mut DaosEvent) -> Code;
        table_list = c"daos_oit_list"(DaosHandle, *mut DaosObject, *mut u32, *mut DaosAnchor, *mut DaosEvent) -> Code;
        table_close = c"daos_oit_close"(DaosHandle, *mut DaosEvent) -> Code;
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{align_of, offset_of, size_of};

    use super::*;

    #[test]
    fn structures_lie_as_the_headers_have_them() {
        assert_eq!(size_of::<DaosHandle>(), 8);
        assert_eq!(size_of::<DaosObject>(), 16);
        assert_eq!(offset_of!(DaosObject, hi), 8);
        assert_eq!(size_of::<RawBytes>(), 24);
        assert_eq!(offset_of!(RawBytes, room), 8);
        assert_eq!(offset_of!(RawBytes, len), 16);
        assert_eq!(size_of::<ScatterList>(), 16);
        assert_eq!(offset_of!(ScatterList, filled), 4);
        assert_eq!(offset_of!(ScatterList, parts), 8);
        assert_eq!(size_of::<Records>(), 16);
        assert_eq!(offset_of!(Records, count), 8);
        assert_eq!(size_of::<ValueDescriptor>(), 64);
        let at = [
            offset_of!(ValueDescriptor, akey),
            offset_of!(ValueDescriptor, kind),
            offset_of!(ValueDescriptor, size),
            offset_of!(ValueDescriptor, flags),
            offset_of!(ValueDescriptor, count),
            offset_of!(ValueDescriptor, records),
        ];
        assert_eq!(at, [0, 24, 32, 40, 48, 56]);
        assert_eq!(size_of::<FoundMap>(), 64);
        let at = [
            offset_of!(FoundMap, kind),
            offset_of!(FoundMap, room),
            offset_of!(FoundMap, count),
            offset_of!(FoundMap, flags),
            offset_of!(FoundMap, size),
            offset_of!(FoundMap, lowest),
            offset_of!(FoundMap, highest),
            offset_of!(FoundMap, records),
        ];
        assert_eq!(at, [0, 4, 8, 12, 16, 24, 40, 56]);
        assert_eq!((size_of::<DaosEvent>(), align_of::<DaosEvent>()), (176, 8));
        assert_eq!(offset_of!(DaosEvent, error), 0);
        assert_eq!(
            (size_of::<DaosAnchor>(), align_of::<DaosAnchor>()),
            (120, 8)
        );
        assert_eq!(offset_of!(DaosAnchor, kind), 0);
        assert_eq!(offset_of!(DaosAnchor, place), 16);
        assert_eq!(size_of::<KeyLength>(), 16);
        assert_eq!(offset_of!(KeyLength, kind), 8);
        assert_eq!(size_of::<Epochs>(), 16);
    }
}
