//! Bulk data of calls at the server: by the link itself, or in frames, piece by piece.
//!
//! In: calls whose data have to move; data and ends of moves. Out: the next step of a call whose
//! data are where they belong. Data for calls that have ended are dropped. Not here: what the steps
//! are (`steps`).

use super::calls::CallStage;
use super::poller::PollerState;
use crate::links::{Frame, Link, MemoryRange, MoveDirection, PeerId, Sent};
use crate::service::PushPart;
use crate::wire::{
    BULK_PIECE, BULK_WINDOW, FrameHeader, FrameKind, MIN_FRAME, PullRange, PushHead, bulk_piece,
    flag,
};
use crate::{DerCode, RpcError};

impl PollerState {
    /// Lets the link move a call's memory.
    pub(super) fn move_memory<L: Link>(&mut self, link: &mut L, place: u32) {
        let token = self.calls.token(place);
        let call = self.calls.get(place);
        let (Some(region), Some(bulk)) = (call.region, call.bulk.as_deref()) else {
            return;
        };
        let (direction, remote, from, length) = match call.stage {
            CallStage::Pulling { from, total, .. } => (MoveDirection::Get, from, 0, total),
            CallStage::Pushing(part) => (MoveDirection::Put, part.to, part.from, part.length),
            _ => return,
        };
        let own = MemoryRange::new(region, from, length);
        match link.move_memory(direction, call.facts.peer, (bulk, remote), own, token) {
            Sent::Queued => call.moving = true,
            Sent::Full => self.stalled.push_back(token),
            Sent::Gone => {}
        }
    }

    /// The link has moved a call's memory.
    pub(super) fn move_ended<L: Link>(
        &mut self,
        link: &mut L,
        token: u64,
        result: Result<(), RpcError>,
    ) {
        let Some(place) = self.calls.by_token(token) else {
            return;
        };
        let call = self.calls.get(place);
        call.moving = false;
        if call.cancelled {
            return self.abandon(link, place, DerCode::Canceled);
        }
        match result {
            Ok(()) => self.step_done(link, place),
            Err(error) => self.abandon(link, place, error.code),
        }
    }

    /// Asks for data, a few pieces ahead.
    pub(super) fn pull_more<L: Link>(&mut self, link: &mut L, place: u32) {
        let call = self.calls.get(place);
        let header = FrameHeader::of_call(
            FrameKind::BulkPull,
            call.facts.header.rpc,
            call.facts.header.session,
        );
        let peer = call.facts.peer;
        if let CallStage::Pulling {
            from,
            asked,
            to_ask,
            got,
            ..
        } = &mut call.stage
        {
            let window = u64::from(BULK_WINDOW) * BULK_PIECE;
            while *asked < *to_ask && asked.saturating_sub(*got) < window {
                let length = BULK_PIECE.min(*to_ask - *asked);
                let range = PullRange {
                    offset: *from + *asked,
                    length,
                };
                if link.send(peer, &header, &[&range.encode()]) != Sent::Queued {
                    return;
                }
                *asked += length;
            }
        }
    }

    /// Sends a piece of a call's data; whether there was room. The answer follows the last one.
    pub(super) fn push_piece<L: Link>(&mut self, link: &mut L, token: u64) -> bool {
        let Some(place) = self.calls.by_token(token) else {
            return false;
        };
        let call = self.calls.get(place);
        let (CallStage::Pushing(part), Some(region)) = (call.stage, call.region) else {
            return false;
        };
        if part.length == 0 {
            // All is sent, but the buffer may be needed for it still.
            if link.is_in_use(region) {
                self.pushing.push_back(token);
                return false;
            }
            self.step_done(link, place);
            return true;
        }
        let header = FrameHeader::of_call(
            FrameKind::BulkPush,
            call.facts.header.rpc,
            call.facts.header.session,
        );
        let peer = call.facts.peer;
        let most = self.peer(peer).map_or(MIN_FRAME, |served| served.max_frame);
        let length = bulk_piece(most).min(part.length);
        let from = MemoryRange::new(region, part.from, length);
        let head = PushHead { offset: part.to }.encode();
        match link.send_memory(peer, &header, &head, from) {
            Sent::Queued if length == part.length => {
                self.step_done(link, place);
                true
            }
            Sent::Queued => {
                self.calls.get(place).stage = CallStage::Pushing(PushPart {
                    from: part.from + length,
                    to: part.to + length,
                    length: part.length - length,
                });
                self.pushing.push_back(token);
                true
            }
            Sent::Full => {
                self.pushing.push_back(token);
                false
            }
            Sent::Gone => false,
        }
    }

    pub(super) fn find(&mut self, peer: PeerId, header: &FrameHeader) -> Option<u32> {
        let place = (header.session as usize).checked_sub(1)?;
        let session = self.sessions.get(place)?.as_ref()?;
        if session.peer != peer {
            return None;
        }
        session.active.get(&header.rpc).copied()
    }

    /// Where a caller's data go; nowhere where the call has ended, or has no buffer yet.
    pub(super) fn place_for(&mut self, frame: Frame<'_>, length: u64) -> Option<MemoryRange> {
        if frame.header.kind != FrameKind::BulkData {
            return None;
        }
        let place = self.find(frame.peer, frame.header)?;
        let (head, _) = PushHead::decode(frame.body).ok()?;
        let call = self.calls.get(place);
        let CallStage::Pulling { from, total, .. } = call.stage else {
            return None;
        };
        let offset = head.offset.checked_sub(from)?;
        let end = offset.checked_add(length)?;
        (end <= total).then_some(MemoryRange::new(call.region?, offset, length))
    }

    /// Data of a caller, in a frame that was read as a whole.
    pub(super) fn data<L: Link>(&mut self, link: &mut L, frame: Frame<'_>) -> Result<(), RpcError> {
        let (_, data) = PushHead::decode(frame.body)?;
        let length = data.len() as u64;
        if let Some(at) = self.place_for(frame, length) {
            link.write(at, data);
            self.arrived(link, frame, length);
            return Ok(());
        }
        let Some(place) = self.find(frame.peer, frame.header) else {
            // The call was cancelled.
            return Ok(());
        };
        let call = self.calls.get(place);
        let eager = call.facts.header.flags & flag::EAGER != 0;
        let all = call.bulk.as_ref().map_or(0, |bulk| bulk.length);
        match &mut call.stage {
            CallStage::Waiting { dropped } if eager && *dropped + length <= all => {
                *dropped += length;
                Ok(())
            }
            _ => Err(RpcError::protocol("bulk data that nobody asked for")),
        }
    }

    /// So many more bytes of a caller's data are in its buffer.
    pub(super) fn arrived<L: Link>(&mut self, link: &mut L, frame: Frame<'_>, length: u64) {
        let Some(place) = self.find(frame.peer, frame.header) else {
            return;
        };
        let CallStage::Pulling { got, total, .. } = &mut self.calls.get(place).stage else {
            return;
        };
        *got += length;
        if *got >= *total {
            self.step_done(link, place);
        } else {
            self.pull_more(link, place);
        }
    }
}
