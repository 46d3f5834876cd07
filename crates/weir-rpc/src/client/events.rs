//! Frames from servers: answers, requests for data, data, sessions; and losses.
//!
//! In: frames. Out: completions, and frames in return. What a server may not send ends its
//! connection.

use std::time::Instant;

use weir_schema::RpcPayloadKind;

use super::calls::{ClientState, HeldData, nanos};
use super::endpoints::{ConnectionStage, EndpointStage};
use super::slots::{AnswerFor, SlotStage};
use crate::links::assembly::is_fragment;
use crate::links::{Frame, Link, LinkHandler, MemoryRange, PeerId};
use crate::service::payload::{follows, payload_sum};
use crate::wire::{
    Closed, FrameHeader, FrameKind, MIN_FRAME, OpenReply, PingTimes, PullRange, PushHead, RpcId,
    WireReader, flag,
};
use crate::{DerCode, RpcError};

/// Data that servers may wait for at once, for each slot.
const HELD_EACH: usize = 64;

/// An answer's payload.
enum Reply<'a> {
    /// It came in the frame.
    Here(&'a [u8]),
    /// It lies in the slot's memory: so many bytes.
    Placed(u64),
}

impl ClientState {
    #[inline]
    fn response<L: Link>(&mut self, link: &mut L, frame: Frame<'_>) -> Result<(), RpcError> {
        let Frame { peer, header, body } = frame;
        if is_fragment(header) {
            let longest = u64::from(self.setup.payload.reply.bytes) + 64;
            let whole = self.assemblies.add(peer, header, body, longest)?;
            let answer = |body: &[u8]| self.answer(link, Frame { body, ..frame }, None);
            return whole.as_deref().map_or(Ok(()), answer);
        }
        self.answer(link, frame, None)
    }

    /// An answer; `placed` are the bytes of its payload that are in the slot's memory already.
    #[inline]
    fn answer<L: Link>(
        &mut self,
        link: &mut L,
        frame: Frame<'_>,
        placed: Option<u64>,
    ) -> Result<(), RpcError> {
        let Frame { peer, header, body } = frame;
        let Some(connection) = self.table.of_peer(peer) else {
            return Ok(());
        };
        self.table.connections[connection as usize].heard_ns = self.now_ns;
        match self.slots.answer_for(header.rpc) {
            AnswerFor::Call => {}
            AnswerFor::Late => {
                self.late(connection, header);
                return Ok(());
            }
            AnswerFor::Nobody => return Err(RpcError::protocol("an answer to no call")),
        }
        let slot = *self.slots.get(header.rpc.slot);
        let endpoint = self.table.endpoints[slot.endpoint as usize];
        if endpoint.connection != connection || endpoint.session != header.session {
            return Err(RpcError::protocol("an answer from somebody else"));
        }
        let result = if header.word != 0 {
            DerCode::from_status(header.word).result()
        } else if self.setup.payload.buffer() == 0 && body.is_empty() {
            0
        } else {
            let mut reader = WireReader::new(body);
            let sum = match header.flags & flag::CHECKSUM {
                0 => None,
                _ => Some(reader.u32("checksum")?),
            };
            let reply = placed.map_or(Reply::Here(reader.rest()), Reply::Placed);
            self.judge(link, header.rpc, reply, sum)
        };
        if header.flags & flag::WAITED != 0 {
            self.counters.buffer_waits += 1;
        }
        self.table.give(slot.endpoint);
        self.end(header.rpc.slot, result);
        Ok(())
    }

    /// Judges a reply: it has to be bytes moved, or a code.
    fn judge<L: Link>(
        &mut self,
        link: &mut L,
        rpc: RpcId,
        reply: Reply<'_>,
        sum: Option<u32>,
    ) -> i64 {
        let payload = self.setup.payload;
        let slot = *self.slots.get(rpc.slot);
        let size = u64::from(payload.reply.bytes);
        let bulk = payload.reply.kind == RpcPayloadKind::Bulk;
        let length = match &reply {
            Reply::Here(bytes) if !bulk => bytes.len() as u64,
            Reply::Here(_) if L::REMOTE_MEMORY => size,
            // Data that came twice are as wrong as data that are missing.
            Reply::Here(_) => slot.pushed,
            Reply::Placed(length) => *length,
        };
        if length != size {
            return DerCode::Mismatch.result();
        }
        if slot.flags != 0 && size > 0 {
            let bytes = match (reply, slot.region) {
                (Reply::Here(bytes), _) if !bulk => bytes,
                (_, Some(region)) => &link.bytes(region)[..payload.reply.bytes as usize],
                _ => &[],
            };
            let began = Instant::now();
            let pattern = slot.flags & flag::PATTERN == 0 || follows(bytes, rpc);
            let sums = slot.flags & flag::CHECKSUM == 0 || sum == Some(payload_sum(bytes));
            self.counters.verified += 1;
            self.counters.verify_ns += nanos(began);
            if !pattern || !sums {
                return DerCode::Mismatch.result();
            }
        }
        payload.moved()
    }

    /// The answer to a call that was given up: its credit and its memory are free now.
    #[cold]
    fn late(&mut self, connection: u32, header: &FrameHeader) {
        if header.word != DerCode::Canceled.to_status() {
            self.counters.late_replies += 1;
        }
        if let Some(endpoint) = self.table.of_session(connection, header.session) {
            self.table.recover(endpoint);
        }
        let mut kept = self.quarantine.iter();
        let place = kept.position(|kept| kept.rpc == header.rpc);
        if let Some(place) = place {
            self.spares.push(self.quarantine.swap_remove(place).region);
        }
    }

    /// A server wants a range of a slot's memory.
    fn pull<L: Link>(&mut self, link: &mut L, frame: Frame<'_>) -> Result<(), RpcError> {
        let Frame { peer, header, body } = frame;
        let range = PullRange::decode(body)?;
        match self.slots.answer_for(header.rpc) {
            AnswerFor::Call => {}
            AnswerFor::Late => return Ok(()),
            AnswerFor::Nobody => return Err(RpcError::protocol("a pull for no call")),
        }
        self.check_owner(peer, header)?;
        let payload = self.setup.payload;
        let end = range.offset.checked_add(range.length);
        let within = end.is_some_and(|end| end <= u64::from(payload.request.bytes));
        if payload.request.kind != RpcPayloadKind::Bulk || !within {
            return Err(RpcError::protocol("a pull outside its descriptor"));
        }
        if self.held.len() > HELD_EACH * self.setup.slots as usize {
            return Err(RpcError::protocol("more pulls than are allowed"));
        }
        let known = self.table.of_peer(peer);
        let max_frame = known.map_or(MIN_FRAME, |known| {
            self.table.connections[known as usize].max_frame
        });
        self.send_data(link, HeldData::of_call((peer, max_frame), header, range));
        Ok(())
    }

    /// Checks that this connection and session have the call.
    fn check_owner(&mut self, peer: PeerId, header: &FrameHeader) -> Result<(), RpcError> {
        let connection = self.table.of_peer(peer);
        let slot = *self.slots.get(header.rpc.slot);
        let endpoint = self.table.endpoints[slot.endpoint as usize];
        if Some(endpoint.connection) == connection && endpoint.session == header.session {
            Ok(())
        } else {
            Err(RpcError::protocol("a call of somebody else"))
        }
    }

    /// Where data of a server go: only into what it was given, for a call that is out.
    fn place_of_push(
        &mut self,
        frame: Frame<'_>,
        length: u64,
    ) -> Result<Option<MemoryRange>, RpcError> {
        let Frame { peer, header, body } = frame;
        match self.slots.answer_for(header.rpc) {
            AnswerFor::Call => {}
            AnswerFor::Late => return Ok(None),
            AnswerFor::Nobody => return Err(RpcError::protocol("data for no call")),
        }
        self.check_owner(peer, header)?;
        let payload = self.setup.payload;
        let (head, _) = PushHead::decode(body)?;
        let end = head.offset.checked_add(length);
        let within = end.is_some_and(|end| end <= u64::from(payload.reply.bytes));
        if payload.reply.kind != RpcPayloadKind::Bulk || !within {
            return Err(RpcError::protocol("data outside their descriptor"));
        }
        let region = self.slots.get(header.rpc.slot).region;
        Ok(region.map(|region| MemoryRange::new(region, head.offset, length)))
    }

    fn push<L: Link>(&mut self, link: &mut L, frame: Frame<'_>) -> Result<(), RpcError> {
        let (_, data) = PushHead::decode(frame.body)?;
        if let Some(at) = self.place_of_push(frame, data.len() as u64)? {
            link.write(at, data);
            self.slots.get(frame.header.rpc.slot).pushed += data.len() as u64;
        }
        Ok(())
    }

    /// A session was opened, or not.
    fn opened(&mut self, peer: PeerId, header: &FrameHeader, body: &[u8]) -> Result<(), RpcError> {
        let place = header.rpc.slot;
        let connection = self.table.of_peer(peer);
        let Some(endpoint) = self.table.endpoints.get_mut(place as usize) else {
            return Err(RpcError::protocol("a session that nobody asked for"));
        };
        let was_given_up = endpoint.stage == EndpointStage::Down
            && endpoint.why_down == DerCode::TimedOut
            && endpoint.session == 0;
        let is_asked = endpoint.stage == EndpointStage::Opening || was_given_up;
        if !is_asked || Some(endpoint.connection) != connection {
            return Err(RpcError::protocol("a session that nobody asked for"));
        }
        if was_given_up {
            // It came too late for this test; what it has is given back at the end.
            if header.word == 0 {
                endpoint.session = OpenReply::decode(body)?.session;
            }
            return Ok(());
        }
        if header.word == 0 {
            let granted = OpenReply::decode(body)?;
            endpoint.session = granted.session;
            endpoint.credits = granted.credits;
            if granted.credits < self.setup.credits {
                let fewest = self.counters.fewer_credits.unwrap_or(u32::MAX);
                self.counters.fewer_credits = Some(fewest.min(granted.credits));
            }
            endpoint.stage = EndpointStage::Up;
        } else {
            self.refuse(place, RpcError::said(header.word, body));
        }
        Ok(())
    }

    #[cold]
    fn control<L: Link>(&mut self, link: &mut L, frame: Frame<'_>) -> Result<(), RpcError> {
        let Frame { peer, header, body } = frame;
        match header.kind {
            FrameKind::OpenAck => self.opened(peer, header, body)?,
            FrameKind::CloseAck => {
                let closed = Closed::decode(body)?;
                // Answers that were given up said nothing of their waits.
                self.counters.buffer_waits = self.counters.buffer_waits.max(closed.buffer_waits);
                self.closing = self.closing.saturating_sub(1);
            }
            FrameKind::Pong => {
                let times = PingTimes::decode(body)?;
                if let Some(connection) = self.table.of_peer(peer) {
                    let connection = &mut self.table.connections[connection as usize];
                    connection.heard_ns = self.now_ns;
                    connection.pinged = false;
                    connection.used = Some(times.used());
                }
            }
            FrameKind::GoAway => {
                if let Some(connection) = self.table.of_peer(peer) {
                    self.table.connections[connection as usize].stage = ConnectionStage::Leaving;
                    let why = RpcError::new(DerCode::Unreachable, "the server is ending");
                    self.note_trouble(connection, true, &why);
                    self.fail_connection(connection, true);
                }
            }
            FrameKind::Error => {
                link.close(peer);
                self.lose(peer, RpcError::said(header.word, body));
            }
            _ => return Err(RpcError::protocol("a frame of this kind may not come now")),
        }
        Ok(())
    }

    /// A connection is gone: its calls end now.
    pub(super) fn lose(&mut self, peer: PeerId, why: RpcError) {
        let Some(connection) = self.table.of_peer(peer) else {
            return;
        };
        let known = &mut self.table.connections[connection as usize];
        let is_announced = known.stage == ConnectionStage::Leaving;
        known.stage = ConnectionStage::Down;
        known.pause_ns = 0;
        known.retry_ns = self.now_ns;
        self.counters.lost_connections += 1;
        if !is_announced {
            self.note_trouble(connection, true, &why);
        }
        self.last_loss = Some(why);
        self.assemblies.forget(peer);
        self.held.retain(|data| data.peer != peer);
        // Nobody can reach the memory of its calls any more.
        let (spares, counts) = (&mut self.spares, &mut self.quarantine);
        counts.retain(|kept| {
            if kept.peer == peer {
                spares.push(kept.region);
            }
            kept.peer != peer
        });
        self.fail_connection(connection, false);
        self.table.recover_all(connection);
    }
}

impl<L: Link> LinkHandler<L> for ClientState {
    fn destination(&mut self, frame: Frame<'_>, length: u64) -> Option<MemoryRange> {
        let header = frame.header;
        match header.kind {
            FrameKind::BulkPush => self.place_of_push(frame, length).ok()?,
            FrameKind::Response if self.setup.payload.reply.kind == RpcPayloadKind::Inline => {
                let is_call = self.slots.answer_for(header.rpc) == AnswerFor::Call;
                let fits = length == u64::from(self.setup.payload.reply.bytes);
                self.check_owner(frame.peer, header).ok()?;
                let region = self.slots.get(header.rpc.slot).region?;
                (is_call && fits).then_some(MemoryRange::new(region, 0, length))
            }
            _ => None,
        }
    }

    fn placed(&mut self, link: &mut L, frame: Frame<'_>, at: MemoryRange) {
        let header = frame.header;
        if header.kind == FrameKind::BulkPush
            && self.slots.answer_for(header.rpc) == AnswerFor::Call
        {
            self.slots.get(header.rpc.slot).pushed += at.length;
        } else if header.kind == FrameKind::Response
            && let Err(error) = self.answer(link, frame, Some(at.length))
        {
            link.close(frame.peer);
            self.lose(frame.peer, error);
        }
    }

    #[inline]
    fn message(&mut self, link: &mut L, peer: PeerId, header: &FrameHeader, body: &[u8]) {
        let frame = Frame { peer, header, body };
        let done = match header.kind {
            FrameKind::Response => self.response(link, frame),
            FrameKind::BulkPull => self.pull(link, frame),
            FrameKind::BulkPush => self.push(link, frame),
            _ => self.control(link, frame),
        };
        if let Err(error) = done {
            link.close(peer);
            self.lose(peer, error);
        }
    }

    fn lost(&mut self, _: &mut L, peer: PeerId, why: RpcError) {
        self.lose(peer, why);
    }
}

impl ClientState {
    /// Calls that have not ended.
    pub(super) fn unfinished(&self) -> bool {
        let mut slots = self.slots.slots.iter();
        slots.any(|slot| slot.stage != SlotStage::Free)
    }
}
