//! Incoming side of a fabric: messages, whose frames go to the handler, and ended operations.
//!
//! In: completions of the endpoint. Out: calls of the handler. Whatever a peer may not send breaks
//! its connection off. A frame longer than a message is put together, or written where the handler
//! says, as its parts come. Not here: sending (`peer`).

use std::io;

use super::OfiLink;
use super::peer::{MARKED, owned_by};
use crate::links::ofi::completion::{FabricFailure, FabricWork};
use crate::links::{Frame, LinkHandler, MemoryRange, PeerId};
use crate::wire::{FrameHeader, HEADER};
use crate::{DerCode, RpcError};

/// Messages of strangers that are kept until their handshake is done here.
const MOST_STRANGERS: usize = 64;

/// A frame of which a part has come.
#[derive(Debug)]
pub(super) struct PartialFrame {
    header: FrameHeader,
    /// Bytes before the data, or all of them where there is no place for data.
    pub(super) head: Vec<u8>,
    /// Where the data go.
    place: Option<MemoryRange>,
    /// Bytes of the body that are still to come.
    missing: usize,
}

impl<const RMA: bool> OfiLink<RMA> {
    pub(super) fn poll_fabric<H: LinkHandler<Self>>(&mut self, handler: &mut H) -> io::Result<u32> {
        if !self.unposted.is_empty() {
            self.post_receives()?;
        }
        let polled = self.endpoint.poll(&mut self.completions);
        polled.map_err(io::Error::other)?;
        if self.completions.is_empty() {
            return Ok(0);
        }
        let Some(messages) = self.endpoint.lend_messages() else {
            return Err(io::Error::other("a handler of this link did not come back"));
        };
        let mut completions = std::mem::take(&mut self.completions);
        let mut events = 0;
        for completion in completions.drain(..) {
            match (completion.work, completion.result) {
                (FabricWork::Receive(slot), Ok(bytes)) => {
                    events += self.take_message(messages.message(slot, bytes), handler);
                    self.unposted.push(slot);
                }
                (FabricWork::Send(owner), Ok(_)) => self.ended(owned_by(owner)),
                (FabricWork::Move(owner), Ok(_)) => events += self.moved(owner, None, handler),
                (FabricWork::Unknown, Ok(_)) => {}
                (work, Err(failure)) => events += self.failed(work, failure, handler),
            }
        }
        self.completions = completions;
        self.endpoint.take_messages_back(messages);
        self.post_receives()?;
        Ok(events)
    }

    /// An operation of a peer is over.
    fn ended(&mut self, peer: PeerId) {
        match self.peers.get(peer) {
            Some(found) => found.in_flight = found.in_flight.saturating_sub(1),
            None => self.addresses.done(&mut self.endpoint, peer),
        }
    }

    fn moved<H: LinkHandler<Self>>(
        &mut self,
        owner: u64,
        failure: Option<RpcError>,
        handler: &mut H,
    ) -> u32 {
        let Some((peer, token)) = self.moves.done(owner) else {
            return 0;
        };
        self.ended(peer);
        if !self.is_sound(peer) {
            return 0;
        }
        handler.moved(self, peer, token, failure.map_or(Ok(()), Err));
        1
    }

    pub(super) fn report_refused<H: LinkHandler<Self>>(&mut self, handler: &mut H) -> u32 {
        let mut events = 0;
        for (peer, token) in self.moves.take_refused() {
            if self.is_sound(peer) {
                let why = RpcError::protocol("a move outside of the memory that was described");
                handler.moved(self, peer, token, Err(why));
                events += 1;
            }
        }
        events
    }

    fn failed<H: LinkHandler<Self>>(
        &mut self,
        work: FabricWork,
        failure: FabricFailure,
        handler: &mut H,
    ) -> u32 {
        let why = match failure {
            FabricFailure::Canceled => RpcError::new(DerCode::Canceled, "the fabric is closing"),
            FabricFailure::Truncated => RpcError::protocol("a message longer than its place"),
            FabricFailure::Unreachable(code) => {
                let text = self.endpoint.failure_text(code);
                let text = format!("the fabric does not reach the peer: {text} ({code})");
                RpcError::new(DerCode::Unreachable, text)
            }
        };
        match work {
            FabricWork::Receive(slot) => self.unposted.push(slot),
            FabricWork::Send(owner) => {
                let peer = owned_by(owner);
                self.ended(peer);
                self.break_off(peer, why);
            }
            FabricWork::Move(owner) => return self.moved(owner, Some(why), handler),
            FabricWork::Unknown => self.strays += 1,
        }
        0
    }

    /// The peer with this mark.
    #[inline]
    fn marked(&mut self, mark: u64) -> Option<u32> {
        if self.last_mark.0 == mark && self.last_mark.1 != u32::MAX {
            return Some(self.last_mark.1);
        }
        let index = *self.marks.get(&mark)?;
        self.last_mark = (mark, index);
        Some(index)
    }

    pub(super) fn take_message<H: LinkHandler<Self>>(
        &mut self,
        message: &[u8],
        handler: &mut H,
    ) -> u32 {
        let Some((prefix, frames)) = message.split_first_chunk::<MARKED>() else {
            self.strays += 1;
            return 0;
        };
        let [mark, number] = [0, 8].map(|at| {
            let bytes: [u8; 8] = std::array::from_fn(|offset| prefix[at + offset]);
            u64::from_le_bytes(bytes)
        });
        let index = self.marked(mark);
        let Some((peer, found)) = index.and_then(|index| self.peers.at(index)) else {
            let length = message.len() as u64;
            if self.strangers.len() < MOST_STRANGERS && self.account.take_rest(length) {
                self.strangers.push(message.to_vec());
            }
            self.strays += 1;
            return 0;
        };
        // The upper half is zero.
        let is_next = u32::try_from(number).is_ok_and(|number| found.expects(number));
        if found.is_broken {
            return 0;
        }
        if !is_next {
            self.break_off(peer, RpcError::protocol("messages out of order"));
            return 0;
        }
        match self.take_frames(peer, frames, handler) {
            Ok(events) => events,
            Err(why) => {
                self.break_off(peer, why);
                0
            }
        }
    }

    /// Messages that came before their sender's handshake was done here.
    pub(super) fn replay_strangers<H: LinkHandler<Self>>(&mut self, handler: &mut H) -> u32 {
        self.replay = false;
        let mut events = 0;
        for message in std::mem::take(&mut self.strangers) {
            // Those that are still strangers are kept again.
            self.strays = self.strays.saturating_sub(1);
            self.account.give_rest(message.len() as u64);
            events += self.take_message(&message, handler);
        }
        events
    }

    #[inline]
    fn take_frames<H: LinkHandler<Self>>(
        &mut self,
        peer: PeerId,
        mut bytes: &[u8],
        handler: &mut H,
    ) -> Result<u32, RpcError> {
        let mut events = 0;
        let known = self.peers.get(peer);
        if known.is_some_and(|known| known.partial.is_some()) {
            (events, bytes) = self.go_on(peer, bytes, handler);
        }
        while !bytes.is_empty() {
            // A handler may have closed the connection.
            let Some(found) = self.peers.get(peer).filter(|found| !found.is_broken) else {
                break;
            };
            let (header, rest) = bytes
                .split_first_chunk::<HEADER>()
                .ok_or_else(|| RpcError::protocol("a frame's header is cut"))?;
            let (header, length) = FrameHeader::decode(header, false)
                .map_err(|error| RpcError::protocol(error.to_string()))?;
            if length > found.max_frame {
                return Err(RpcError::protocol("a frame longer than agreed"));
            }
            if !header.kind.is_data() {
                return Err(RpcError::protocol("a frame of the wrong plane"));
            }
            let length = length as usize;
            let Some((body, rest)) = rest.split_at_checked(length) else {
                self.begin_partial(peer, header, (rest, length), handler);
                break;
            };
            handler.message(self, peer, &header, body);
            events += 1;
            bytes = rest;
        }
        Ok(events)
    }

    /// Writes data from an offset of a range on; whether they lie within it.
    fn place(&mut self, place: MemoryRange, offset: usize, data: &[u8]) -> bool {
        let region = self.endpoint.bytes(place.region);
        let bounds = place.bounds();
        let range = bounds.and_then(|bounds| region.get_mut(bounds));
        let part = range.and_then(|range| {
            let end = offset.checked_add(data.len())?;
            range.get_mut(offset..end)
        });
        part.map(|part| part.copy_from_slice(data)).is_some()
    }

    fn begin_partial<H: LinkHandler<Self>>(
        &mut self,
        peer: PeerId,
        header: FrameHeader,
        (first, length): (&[u8], usize),
        handler: &mut H,
    ) {
        let placed = header.head_length().and_then(|head| {
            let (head, data) = first.split_at_checked(head)?;
            let whole = (length - head.len()) as u64;
            let frame = Frame {
                peer,
                header: &header,
                body: head,
            };
            let place = handler.destination(frame, whole)?;
            let is_placed = place.length == whole && self.place(place, 0, data);
            is_placed.then_some((head, place))
        });
        let (first_part, place) = match placed {
            Some((head, place)) => (head, Some(place)),
            None => (first, None),
        };
        let mut head = std::mem::take(&mut self.spare);
        head.clear();
        head.reserve_exact(place.map_or(length, |_| 0));
        head.extend_from_slice(first_part);
        if let Some(found) = self.peers.get(peer) {
            found.partial = Some(PartialFrame {
                header,
                head,
                place,
                missing: length - first.len(),
            });
            if let Err(why) = found.charge() {
                self.break_off(peer, why);
            }
        }
    }

    /// The next part of a frame that is not all here; how many frames are now, and what follows it.
    fn go_on<'bytes, H: LinkHandler<Self>>(
        &mut self,
        peer: PeerId,
        bytes: &'bytes [u8],
        handler: &mut H,
    ) -> (u32, &'bytes [u8]) {
        let partial = self.peers.get(peer).and_then(|found| found.partial.take());
        let Some(mut partial) = partial else {
            return (0, bytes);
        };
        let (data, rest) = bytes.split_at(partial.missing.min(bytes.len()));
        match partial.place {
            Some(place) => {
                let whole = usize::try_from(place.length).unwrap_or(usize::MAX);
                // Memory that was released meanwhile gets nothing, and nobody misses it.
                let _ = self.place(place, whole - partial.missing, data);
            }
            None => partial.head.extend_from_slice(data),
        }
        partial.missing -= data.len();
        if partial.missing > 0 {
            if let Some(found) = self.peers.get(peer) {
                found.partial = Some(partial);
            }
            return (0, rest);
        }
        let (header, head) = (partial.header, partial.head);
        let (header, body) = (&header, &head[..]);
        match partial.place {
            Some(place) => handler.placed(self, Frame { peer, header, body }, place),
            None => handler.message(self, peer, header, body),
        }
        self.spare = head;
        if let Some(found) = self.peers.get(peer) {
            // It has become less.
            let _ = found.charge();
        }
        (1, rest)
    }
}
