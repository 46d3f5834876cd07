//! The part of libfabric's binary interface that weir uses: constants, structures, tables of calls.
//!
//! In: the header files of version 1.17, whose binary interface later versions only append to. Out:
//! `repr(C)` structures of the same names. A test compares sizes and offsets with the installed
//! headers. Not here: finding the library (`library`), any call.
//!
//! Structures that libfabric allocates may be longer than they are here, so they are only reached by
//! pointer, field by field. Those that weir allocates lie in [`Roomy`] memory, because a later
//! library may read or write a longer one. The first field of a table of calls says how long it is;
//! [`slot!`] reads no call beyond that.

use std::ffi::{c_char, c_int, c_void};

/// The version of the interface that is asked for: that of the structures below.
pub(super) const INTERFACE: (u32, u32) = (1, 15);
/// The oldest library that has all of it.
pub(super) const OLDEST: (u32, u32) = (1, 14);

/// A version as libfabric writes it.
pub(super) const fn packed((major, minor): (u32, u32)) -> u32 {
    (major << 16) | minor
}

/// A version from what libfabric writes.
pub(super) const fn unpacked(version: u32) -> (u32, u32) {
    (version >> 16, version & 0xffff)
}

macro_rules! constants {
    ($($name:ident: $kind:ty = $value:expr;)*) => {
        $(pub(super) const $name: $kind = $value;)*

        /// Every constant by its name in C.
        #[cfg(test)]
        pub(super) const CONSTANTS: &[(&str, i128)] = &[$((stringify!($name), $name as i128)),*];
    };
}

constants! {
    FI_MSG: u64 = 1 << 1;
    FI_RMA: u64 = 1 << 2;
    FI_READ: u64 = 1 << 8;
    FI_WRITE: u64 = 1 << 9;
    FI_RECV: u64 = 1 << 10;
    FI_SEND: u64 = 1 << 11;
    FI_TRANSMIT: u64 = FI_SEND;
    FI_REMOTE_READ: u64 = 1 << 12;
    FI_REMOTE_WRITE: u64 = 1 << 13;
    FI_SOURCE: u64 = 1 << 57;
    FI_CONTEXT: u64 = 1 << 59;
    FI_CONTEXT2: u64 = 1 << 52;
    FI_ORDER_SAW: u64 = 1 << 7;
    FI_ORDER_SAS: u64 = 1 << 8;
    FI_DELIVERY_COMPLETE: u64 = 1 << 28;
    FI_MR_LOCAL: c_int = 1 << 2;
    FI_MR_VIRT_ADDR: c_int = 1 << 4;
    FI_MR_ALLOCATED: c_int = 1 << 5;
    FI_MR_PROV_KEY: c_int = 1 << 6;
    FI_MR_ENDPOINT: c_int = 1 << 9;
    FI_EP_RDM: c_int = 3;
    FI_AV_TABLE: c_int = 2;
    FI_THREAD_DOMAIN: c_int = 3;
    FI_RM_ENABLED: c_int = 2;
    FI_WAIT_NONE: c_int = 0;
    FI_WAIT_FD: c_int = 3;
    FI_CQ_FORMAT_DATA: c_int = 3;
    FI_GETWAIT: c_int = 5;
    FI_ENABLE: c_int = 6;
    FI_ADDR_NOTAVAIL: u64 = u64::MAX;
    FI_EAGAIN: c_int = 11;
    FI_ENOSYS: c_int = 38;
    FI_ENODATA: c_int = 61;
    FI_ECANCELED: c_int = 125;
    FI_ETOOSMALL: c_int = 257;
    FI_EAVAIL: c_int = 259;
    FI_ETRUNC: c_int = 265;
}

/// A structure of the C headers: its size and, by field, offset and size.
#[cfg(test)]
pub(super) struct AbiLayout {
    pub(super) name: &'static str,
    pub(super) size: usize,
    pub(super) fields: &'static [(&'static str, usize, usize)],
}

/// Declares structures as the headers do, under their own names.
macro_rules! structures {
    ($($(#[$note:meta])* $name:ident = $c:literal { $($field:ident: $kind:ty,)* })*) => {
        $(
            $(#[$note])*
            #[repr(C)]
            #[derive(Clone, Copy, Debug)]
            pub(super) struct $name {
                $(pub(super) $field: $kind,)*
            }
        )*

        /// Every structure.
        #[cfg(test)]
        pub(super) const LAYOUTS: &[AbiLayout] = &[$(AbiLayout {
            name: $c,
            size: size_of::<$name>(),
            fields: &[$((
                stringify!($field),
                std::mem::offset_of!($name, $field),
                size_of::<$kind>(),
            )),*],
        }),*];
    };
}

/// A call that weir never makes.
pub(super) type UnusedCall = *const c_void;
/// Result of a call: 0 or a count, or a negative number of the headers.
pub(super) type FabricCode = c_int;
/// The same of calls that move data.
pub(super) type SizedCode = isize;
/// Pointer that a call reports when it is done.
pub(super) type FabricContext = *mut c_void;
/// A peer's address as the address vector numbers it.
pub(super) type PeerAddress = u64;

structures! {
    /// Beginning of every object.
    Fid = "struct fid" {
        fclass: usize,
        context: FabricContext,
        ops: *const FiOps,
    }
    FiOps = "struct fi_ops" {
        size: usize,
        close: Option<unsafe extern "C" fn(*mut Fid) -> FabricCode>,
        bind: Option<unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> FabricCode>,
        control: Option<unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> FabricCode>,
    }
    FidFabric = "struct fid_fabric" {
        fid: Fid,
        ops: *const FiOpsFabric,
    }
    FiOpsFabric = "struct fi_ops_fabric" {
        size: usize,
        domain: Option<
            unsafe extern "C" fn(*mut FidFabric, *mut FiInfo, *mut *mut FidDomain, FabricContext) -> FabricCode
        >,
        passive_ep: UnusedCall,
        eq_open: UnusedCall,
        wait_open: UnusedCall,
        trywait: Option<unsafe extern "C" fn(*mut FidFabric, *mut *mut Fid, c_int) -> FabricCode>,
    }
    FidDomain = "struct fid_domain" {
        fid: Fid,
        ops: *const FiOpsDomain,
        mr: *const FiOpsMr,
    }
    FiOpsDomain = "struct fi_ops_domain" {
        size: usize,
        av_open: Option<
            unsafe extern "C" fn(*mut FidDomain, *mut FiAvAttr, *mut *mut FidAv, FabricContext) -> FabricCode
        >,
        cq_open: Option<
            unsafe extern "C" fn(*mut FidDomain, *mut FiCqAttr, *mut *mut FidCq, FabricContext) -> FabricCode
        >,
        endpoint: Option<
            unsafe extern "C" fn(*mut FidDomain, *mut FiInfo, *mut *mut FidEp, FabricContext) -> FabricCode
        >,
    }
    FiOpsMr = "struct fi_ops_mr" {
        size: usize,
        reg: Option<unsafe extern "C" fn(
            *mut Fid, *const c_void, usize, u64, u64, u64, u64, *mut *mut FidMr, FabricContext,
        ) -> FabricCode>,
    }
    FidMr = "struct fid_mr" {
        fid: Fid,
        mem_desc: *mut c_void,
        key: u64,
    }
    FidAv = "struct fid_av" {
        fid: Fid,
        ops: *const FiOpsAv,
    }
    FiOpsAv = "struct fi_ops_av" {
        size: usize,
        insert: Option<unsafe extern "C" fn(
            *mut FidAv, *const c_void, usize, *mut PeerAddress, u64, FabricContext,
        ) -> FabricCode>,
        insertsvc: UnusedCall,
        insertsym: UnusedCall,
        remove: Option<unsafe extern "C" fn(*mut FidAv, *mut PeerAddress, usize, u64) -> FabricCode>,
    }
    FidCq = "struct fid_cq" {
        fid: Fid,
        ops: *const FiOpsCq,
    }
    FiOpsCq = "struct fi_ops_cq" {
        size: usize,
        read: Option<unsafe extern "C" fn(*mut FidCq, *mut c_void, usize) -> SizedCode>,
        readfrom: UnusedCall,
        readerr: Option<unsafe extern "C" fn(*mut FidCq, *mut FiCqErrEntry, u64) -> SizedCode>,
        sread: UnusedCall,
        sreadfrom: UnusedCall,
        signal: UnusedCall,
        strerror: Option<unsafe extern "C" fn(
            *mut FidCq, c_int, *const c_void, *mut c_char, usize,
        ) -> *const c_char>,
    }
    FidEp = "struct fid_ep" {
        fid: Fid,
        ops: UnusedCall,
        cm: *const FiOpsCm,
        msg: *const FiOpsMsg,
        rma: *const FiOpsRma,
    }
    FiOpsCm = "struct fi_ops_cm" {
        size: usize,
        setname: UnusedCall,
        getname: Option<unsafe extern "C" fn(*mut Fid, *mut c_void, *mut usize) -> FabricCode>,
    }
    FiOpsMsg = "struct fi_ops_msg" {
        size: usize,
        recv: Option<unsafe extern "C" fn(
            *mut FidEp, *mut c_void, usize, *mut c_void, PeerAddress, FabricContext,
        ) -> SizedCode>,
        recvv: UnusedCall,
        recvmsg: UnusedCall,
        send: Option<unsafe extern "C" fn(
            *mut FidEp, *const c_void, usize, *mut c_void, PeerAddress, FabricContext,
        ) -> SizedCode>,
        sendv: UnusedCall,
        sendmsg: UnusedCall,
        inject: Option<unsafe extern "C" fn(
            *mut FidEp, *const c_void, usize, PeerAddress,
        ) -> SizedCode>,
    }
    FiOpsRma = "struct fi_ops_rma" {
        size: usize,
        read: Option<unsafe extern "C" fn(
            *mut FidEp, *mut c_void, usize, *mut c_void, PeerAddress, u64, u64, FabricContext,
        ) -> SizedCode>,
        readv: UnusedCall,
        readmsg: UnusedCall,
        write: Option<unsafe extern "C" fn(
            *mut FidEp, *const c_void, usize, *mut c_void, PeerAddress, u64, u64, FabricContext,
        ) -> SizedCode>,
    }
    FiInfo = "struct fi_info" {
        next: *mut FiInfo,
        caps: u64,
        mode: u64,
        addr_format: u32,
        src_addrlen: usize,
        dest_addrlen: usize,
        src_addr: *mut c_void,
        dest_addr: *mut c_void,
        handle: *mut Fid,
        tx_attr: *mut FiTxAttr,
        rx_attr: *mut FiRxAttr,
        ep_attr: *mut FiEpAttr,
        domain_attr: *mut FiDomainAttr,
        fabric_attr: *mut FiFabricAttr,
        nic: *mut c_void,
    }
    FiTxAttr = "struct fi_tx_attr" {
        caps: u64,
        mode: u64,
        op_flags: u64,
        msg_order: u64,
        comp_order: u64,
        inject_size: usize,
        size: usize,
        iov_limit: usize,
        rma_iov_limit: usize,
        tclass: u32,
    }
    FiRxAttr = "struct fi_rx_attr" {
        caps: u64,
        mode: u64,
        op_flags: u64,
        msg_order: u64,
        comp_order: u64,
        total_buffered_recv: usize,
        size: usize,
        iov_limit: usize,
    }
    FiEpAttr = "struct fi_ep_attr" {
        r#type: c_int,
        protocol: u32,
        protocol_version: u32,
        max_msg_size: usize,
        msg_prefix_size: usize,
    }
    FiDomainAttr = "struct fi_domain_attr" {
        domain: *mut FidDomain,
        name: *mut c_char,
        threading: c_int,
        control_progress: c_int,
        data_progress: c_int,
        resource_mgmt: c_int,
        av_type: c_int,
        mr_mode: c_int,
        mr_key_size: usize,
    }
    FiFabricAttr = "struct fi_fabric_attr" {
        fabric: *mut FidFabric,
        name: *mut c_char,
        prov_name: *mut c_char,
        prov_version: u32,
        api_version: u32,
    }
    /// Allocated here.
    FiCqAttr = "struct fi_cq_attr" {
        size: usize,
        flags: u64,
        format: c_int,
        wait_obj: c_int,
        signaling_vector: c_int,
        wait_cond: c_int,
        wait_set: *mut c_void,
    }
    /// Allocated here.
    FiAvAttr = "struct fi_av_attr" {
        r#type: c_int,
        rx_ctx_bits: c_int,
        count: usize,
        ep_per_node: usize,
        name: *const c_char,
        map_addr: *mut c_void,
        flags: u64,
    }
    /// Allocated here, in arrays.
    FiCqDataEntry = "struct fi_cq_data_entry" {
        op_context: FabricContext,
        flags: u64,
        len: usize,
        buf: *mut c_void,
        data: u64,
    }
    /// Allocated here.
    FiCqErrEntry = "struct fi_cq_err_entry" {
        op_context: FabricContext,
        flags: u64,
        len: usize,
        buf: *mut c_void,
        data: u64,
        tag: u64,
        olen: usize,
        err: c_int,
        prov_errno: c_int,
        err_data: *mut c_void,
        err_data_size: usize,
    }
}

/// A structure of weir's own with zeroed room behind it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Roomy<T> {
    pub(super) inner: T,
    room: [u64; 32],
}

impl<T> Roomy<T> {
    pub(super) const fn new(inner: T) -> Self {
        let room = [0; 32];
        Self { inner, room }
    }
}

/// The call in a slot of a table that libfabric gave; `None` where the table ends before it, or the
/// slot is empty. It runs in an `unsafe` context: the table's address is libfabric's own, or null.
macro_rules! slot {
    ($table:expr, $kind:ident, $call:ident) => {{
        let table: *const $kind = $table;
        if table.is_null() {
            None
        } else {
            // SAFETY: not null, so the address of a table, whose first field is its length.
            let length = unsafe { (&raw const (*table).size).read() };
            if length > std::mem::offset_of!($kind, $call) {
                // SAFETY: within the table by its own word.
                unsafe { (&raw const (*table).$call).read() }
            } else {
                None
            }
        }
    }};
}
pub(super) use slot;

#[cfg(test)]
mod tests;
