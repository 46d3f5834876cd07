//! Parts of a request, and calls that take more than one step: those that wait for a buffer or
//! move bulk data.
//!
//! In: requests. Out: their parts; places that are used again. Not here: the steps (`serve`).

use crate::RpcError;
use crate::links::{PeerId, RegionId};
use crate::wire::{BulkDescriptor, FrameHeader, WireReader, flag};

/// A request's body, taken apart.
pub(super) struct RequestParts<'a> {
    pub(super) bulk: Option<Box<BulkDescriptor>>,
    pub(super) checksum: Option<u32>,
    pub(super) payload: &'a [u8],
}

/// Takes a request's body apart.
///
/// # Errors
/// It is cut, or its descriptor makes no sense.
#[inline]
pub(super) fn take_apart<'a>(
    header: &FrameHeader,
    body: &'a [u8],
) -> Result<RequestParts<'a>, RpcError> {
    let mut reader = WireReader::new(body);
    let bulk = if header.flags & flag::BULK == 0 {
        None
    } else {
        Some(Box::new(BulkDescriptor::decode(&mut reader)?))
    };
    let checksum = if header.flags & flag::CHECKSUM == 0 {
        None
    } else {
        Some(reader.u32("checksum")?)
    };
    let payload = reader.rest();
    Ok(RequestParts {
        bulk,
        checksum,
        payload,
    })
}

/// Stage of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallStage {
    /// The place is free.
    Free,
    /// It waits for a buffer. So many bytes of its data came unasked meanwhile, and were dropped.
    Waiting { dropped: u64 },
    /// Data of the caller are on their way: bytes asked for, of those to ask for; bytes there, of
    /// all.
    Pulling {
        asked: u64,
        to_ask: u64,
        got: u64,
        total: u64,
    },
    /// Data for the caller: bytes handed over, of all.
    Pushing { sent: u64, total: u64 },
}

/// Facts about a request that its answer needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerFacts {
    pub(super) peer: PeerId,
    pub(super) header: FrameHeader,
    pub(super) waited: bool,
    pub(super) reply_checksum: Option<u32>,
}

impl AnswerFacts {
    pub(super) fn new(peer: PeerId, header: FrameHeader) -> Self {
        Self {
            peer,
            header,
            waited: false,
            reply_checksum: None,
        }
    }
}

/// A call on its way.
#[derive(Debug)]
pub(super) struct ServerCall {
    pub(super) stage: CallStage,
    /// Counts the place's uses, so that a late move finds nobody.
    pub(super) generation: u32,
    pub(super) facts: AnswerFacts,
    /// The caller waits no longer.
    pub(super) cancelled: bool,
    /// The link moves memory for it.
    pub(super) moving: bool,
    pub(super) region: Option<RegionId>,
    pub(super) bulk: Option<Box<BulkDescriptor>>,
    pub(super) checksum: Option<u32>,
    /// The request's payload while it waits for a buffer.
    pub(super) payload: Vec<u8>,
}

/// Calls by place.
#[derive(Debug, Default)]
pub(super) struct CallTable {
    calls: Vec<ServerCall>,
    free: Vec<u32>,
}

impl CallTable {
    /// A place for a call.
    pub(super) fn add(&mut self, mut call: ServerCall) -> u32 {
        if let Some(place) = self.free.pop() {
            let old = &mut self.calls[place as usize];
            call.generation = old.generation.wrapping_add(1);
            *old = call;
            return place;
        }
        let place = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
        self.calls.push(call);
        place
    }

    /// The call ends.
    pub(super) fn remove(&mut self, place: u32) {
        let call = &mut self.calls[place as usize];
        call.stage = CallStage::Free;
        call.bulk = None;
        call.payload = Vec::new();
        self.free.push(place);
    }

    #[inline]
    pub(super) fn get(&mut self, place: u32) -> &mut ServerCall {
        &mut self.calls[place as usize]
    }

    /// Token that a link reports when it has moved memory for a call.
    pub(super) fn token(&self, place: u32) -> u64 {
        let generation = self.calls[place as usize].generation;
        u64::from(generation) << 32 | u64::from(place)
    }

    /// The call of a token, unless it has ended.
    pub(super) fn by_token(&self, token: u64) -> Option<u32> {
        let place = u32::try_from(token & u64::from(u32::MAX)).ok()?;
        let call = self.calls.get(place as usize)?;
        let same = u64::from(call.generation) == token >> 32 && call.stage != CallStage::Free;
        same.then_some(place)
    }
}
