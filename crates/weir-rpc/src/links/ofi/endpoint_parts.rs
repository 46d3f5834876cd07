//! Parts of an endpoint: its sizes, its calls, and the objects that it binds together.
//!
//! In: a domain, sizes. Out: an address table, a completion queue, an endpoint that is not enabled yet.
//! Not here: using them (`endpoint`, `completion`, `remote_memory`).

#![expect(unsafe_code, reason = "libfabric's calls, on objects given by address")]

use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};

use weir_schema::RpcPoll;

use super::abi::{
    FI_AV_TABLE, FI_CQ_FORMAT_DATA, FI_ENOSYS, FI_WAIT_FD, FI_WAIT_NONE, FiAvAttr, FiCqAttr,
    FiOpsDomain, FiOpsMsg, FiOpsRma, FidAv, FidCq, FidEp, PeerAddress, Roomy, SizedCode, slot,
};
use super::error::FabricError;
use super::library::NO_CONTEXT;
use super::objects::{FabricDomain, Object};
use super::offer::FabricFacts;

/// Sizes of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointSizes {
    /// The longest message in bytes.
    pub message_bytes: usize,
    /// Receives that are posted, less where the provider takes less.
    pub receives: u32,
    /// Messages that are written or in flight.
    pub sends: u32,
    /// Moves of remote memory in flight.
    pub moves: u32,
}

impl EndpointSizes {
    /// These sizes, within the limits of a provider.
    pub(super) fn within(self, facts: &FabricFacts) -> Self {
        Self {
            message_bytes: self.message_bytes.clamp(1, facts.message_bytes.max(1)),
            receives: self
                .receives
                .clamp(1, u32::try_from(facts.receives).unwrap_or(u32::MAX).max(1)),
            ..self
        }
    }

    /// All operations together.
    pub(super) fn operations(self) -> u32 {
        self.receives + self.sends + self.moves
    }
}

impl Default for EndpointSizes {
    fn default() -> Self {
        Self {
            message_bytes: 16 << 10,
            receives: 256,
            sends: 256,
            moves: 256,
        }
    }
}

/// Call that receives or sends a message from memory.
pub(super) type TransferCall<Bytes> = unsafe extern "C" fn(
    *mut FidEp,
    Bytes,
    usize,
    *mut c_void,
    PeerAddress,
    *mut c_void,
) -> SizedCode;

/// Call that sends a message and copies it.
type Inject = unsafe extern "C" fn(*mut FidEp, *const c_void, usize, PeerAddress) -> SizedCode;

/// Call that moves remote memory.
pub(super) type Move<Bytes> = unsafe extern "C" fn(
    *mut FidEp,
    Bytes,
    usize,
    *mut c_void,
    PeerAddress,
    u64,
    u64,
    *mut c_void,
) -> SizedCode;

/// The calls of every message and move, looked up once.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataCalls {
    pub(super) recv: TransferCall<*mut c_void>,
    pub(super) send: TransferCall<*const c_void>,
    pub(super) inject: Inject,
    /// Absent where the provider has no remote memory.
    pub(super) read: Option<Move<*mut c_void>>,
    pub(super) write: Option<Move<*const c_void>>,
}

impl DataCalls {
    pub(super) fn of(endpoint: &Object<FidEp>) -> Result<Self, FabricError> {
        // SAFETY: an open endpoint.
        let messages = unsafe { (*endpoint.as_ptr()).msg };
        // SAFETY: an open endpoint.
        let moves = unsafe { (*endpoint.as_ptr()).rma };
        Ok(Self {
            recv: slot!(messages, FiOpsMsg, recv).ok_or(FabricError::Lacks("receive"))?,
            send: slot!(messages, FiOpsMsg, send).ok_or(FabricError::Lacks("send"))?,
            inject: slot!(messages, FiOpsMsg, inject).ok_or(FabricError::Lacks("inject"))?,
            read: slot!(moves, FiOpsRma, read),
            write: slot!(moves, FiOpsRma, write),
        })
    }
}

/// A table of peers' addresses.
pub(super) fn open_addresses(domain: &FabricDomain) -> Result<Object<FidAv>, FabricError> {
    let what = "open an address table";
    let open = slot!(domain.calls(), FiOpsDomain, av_open).ok_or(FabricError::Lacks(what))?;
    let mut attributes = Roomy::new(FiAvAttr {
        r#type: FI_AV_TABLE,
        rx_ctx_bits: 0,
        count: 0,
        ep_per_node: 0,
        name: null(),
        map_addr: null_mut(),
        flags: 0,
    });
    let mut opened = null_mut();
    // SAFETY: an open domain, attributes that live across the call.
    let code = unsafe {
        open(
            domain.domain.as_ptr(),
            (&raw mut attributes).cast(),
            &raw mut opened,
            NO_CONTEXT,
        )
    };
    domain.offer.library.good(what, code)?;
    // SAFETY: opened just now.
    unsafe { Object::new(opened) }.ok_or(FabricError::Lacks(what))
}

/// A queue of completions, and whether it has a descriptor to sleep on.
pub(super) fn open_queue(
    domain: &FabricDomain,
    sizes: EndpointSizes,
    waiting: RpcPoll,
) -> Result<(Object<FidCq>, bool), FabricError> {
    if waiting != RpcPoll::Busy {
        // Some providers have none.
        match queue_with(domain, sizes, FI_WAIT_FD) {
            Ok(queue) => return Ok((queue, true)),
            Err(FabricError::Call {
                code: FI_ENOSYS, ..
            }) => {}
            Err(error) => return Err(error),
        }
    }
    queue_with(domain, sizes, FI_WAIT_NONE).map(|queue| (queue, false))
}

fn queue_with(
    domain: &FabricDomain,
    sizes: EndpointSizes,
    wait_obj: c_int,
) -> Result<Object<FidCq>, FabricError> {
    let what = "open a completion queue";
    let open = slot!(domain.calls(), FiOpsDomain, cq_open).ok_or(FabricError::Lacks(what))?;
    let mut attributes = Roomy::new(FiCqAttr {
        size: sizes.operations() as usize,
        flags: 0,
        format: FI_CQ_FORMAT_DATA,
        wait_obj,
        signaling_vector: 0,
        wait_cond: 0,
        wait_set: null_mut(),
    });
    let mut opened = null_mut();
    // SAFETY: an open domain, attributes that live across the call.
    let code = unsafe {
        open(
            domain.domain.as_ptr(),
            (&raw mut attributes).cast(),
            &raw mut opened,
            NO_CONTEXT,
        )
    };
    domain.offer.library.good(what, code)?;
    // SAFETY: opened just now.
    unsafe { Object::new(opened) }.ok_or(FabricError::Lacks(what))
}

/// An endpoint that is bound to nothing yet.
pub(super) fn open_endpoint(domain: &FabricDomain) -> Result<Object<FidEp>, FabricError> {
    let what = "open an endpoint";
    let open = slot!(domain.calls(), FiOpsDomain, endpoint).ok_or(FabricError::Lacks(what))?;
    let mut opened = null_mut();
    // SAFETY: an open domain, and the offer that it was opened from.
    let code = unsafe {
        open(
            domain.domain.as_ptr(),
            domain.offer.info(),
            &raw mut opened,
            NO_CONTEXT,
        )
    };
    domain.offer.library.good(what, code)?;
    // SAFETY: opened just now.
    unsafe { Object::new(opened) }.ok_or(FabricError::Lacks(what))
}
