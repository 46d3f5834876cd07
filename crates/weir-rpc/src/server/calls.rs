//! Parts of a request, and calls that take more than one step: those that wait for a buffer or
//! move bulk data.
//!
//! In: requests. Out: their parts; places that are used again. Not here: the steps (`steps`).

use crate::RpcError;
use crate::links::{PeerId, RegionId};
use crate::service::{CallHandle, PushPart};
use crate::wire::{BulkDescriptor, BulkMode, FrameHeader, WireReader, flag};

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
    /// Its service answers later. Since which tick.
    Held { since: u32 },
    /// Data of the caller are on their way, from there on: bytes asked for, of those to ask for; bytes
    /// there, of all.
    Pulling {
        from: u64,
        asked: u64,
        to_ask: u64,
        got: u64,
        total: u64,
    },
    /// Data for the caller: the rest of a part.
    Pushing(PushPart),
}

/// Facts about a request that its answer needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerFacts {
    pub(super) peer: PeerId,
    pub(super) header: FrameHeader,
    pub(super) waited: bool,
    pub(super) reply_checksum: Option<u32>,
    /// Where the caller's data that its service asks for begin.
    pub(super) pull_from: u64,
}

impl AnswerFacts {
    pub(super) fn new(peer: PeerId, header: FrameHeader) -> Self {
        Self {
            peer,
            header,
            waited: false,
            reply_checksum: None,
            pull_from: 0,
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
    /// Parts to be pushed after that of its stage.
    pub(super) parts: Vec<PushPart>,
    /// Bytes of the buffer that are the answer once all is pushed; `None`: its service says.
    pub(super) then: Option<u64>,
    pub(super) region: Option<RegionId>,
    pub(super) bulk: Option<Box<BulkDescriptor>>,
    pub(super) checksum: Option<u32>,
    /// The request's payload while it waits for a buffer.
    pub(super) payload: Vec<u8>,
    /// Bytes taken of the account for the payload, here or with its service.
    pub(super) charged: u64,
}

impl ServerCall {
    pub(super) fn moves_by_frames(&self) -> bool {
        let bulk = self.bulk.as_deref();
        bulk.is_none_or(|bulk| bulk.mode == BulkMode::Frames)
    }
}

/// Calls by place.
#[derive(Debug, Default)]
pub(super) struct CallTable {
    calls: Vec<ServerCall>,
    free: Vec<u32>,
    /// Counts the calls.
    generation: u32,
    /// Handle of the next call.
    pub(super) next: CallHandle,
}

impl CallTable {
    /// A place for a call, which has the handle that was the next.
    pub(super) fn add(&mut self, mut call: ServerCall) -> u32 {
        call.generation = self.generation;
        let place = if let Some(place) = self.free.pop() {
            let old = &mut self.calls[place as usize];
            // Empty, but perhaps with room.
            call.parts = std::mem::take(&mut old.parts);
            *old = call;
            place
        } else {
            self.calls.push(call);
            u32::try_from(self.calls.len() - 1).unwrap_or(u32::MAX)
        };
        self.skip_handle();
        place
    }

    /// No call will have the handle that is the next.
    pub(super) fn skip_handle(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        let place = self.free.last().copied();
        let place = place.map_or(self.calls.len() as u64, u64::from);
        self.next.token = u64::from(self.generation) << 32 | place;
    }

    /// Handle of a call.
    pub(super) fn handle(&self, place: u32) -> CallHandle {
        let token = self.token(place);
        CallHandle { token, ..self.next }
    }

    /// Places of calls that have been held since before a tick.
    pub(super) fn held_before(&self, tick: u32) -> Vec<u32> {
        let is_old = |stage| matches!(stage, CallStage::Held { since } if since < tick);
        let calls = (0..).zip(&self.calls);
        let old = calls.filter(|(_, call)| is_old(call.stage));
        old.map(|(place, _)| place).collect()
    }

    /// The call ends.
    pub(super) fn remove(&mut self, place: u32) {
        let call = &mut self.calls[place as usize];
        call.stage = CallStage::Free;
        call.bulk = None;
        call.payload = Vec::new();
        call.parts.clear();
        self.free.push(place);
        self.skip_handle();
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
