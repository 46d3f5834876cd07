//! The way of a call at the server: take it, give it a buffer, ask its service, answer.
//!
//! In: requests, data, ends of moves. Out: answers. A call that is answered at once leaves no trace;
//! one that waits or moves data has a place in the table. Not here: what a service
//! makes of it, and the steps before an answer (`steps`).

use super::calls::{AnswerFacts, CallStage, RequestParts, ServerCall, take_apart};
use super::poller::PollerState;
use crate::links::assembly::{is_fragment, send_payload};
use crate::links::{Frame, Link, MemoryRange, PeerId, RegionId};
use crate::service::{CallHandle, NextStep, PushPart, RpcService, ServiceCall};
use crate::wire::{BulkDescriptor, FrameHeader, FrameKind, flag};
use crate::{DerCode, RpcError};

/// Memory of a call that waits or moves data, with its descriptor and its entries in lists, in bytes.
const EACH_CALL: u64 = 1024;
/// Calls of one session that are ended in a round, so that others are served meanwhile.
pub(super) const CALLS_A_ROUND: usize = 1024;
impl PollerState {
    /// Something can go on without anything having come.
    #[inline]
    pub(super) fn has_work(&self) -> bool {
        !(self.pushing.is_empty()
            && self.stalled.is_empty()
            && self.starved.is_empty()
            && self.sessions_under_way.is_empty()
            && self.dropped.is_empty())
    }

    /// Goes on with what could not go on before.
    #[inline]
    pub(super) fn go_on<L: Link>(&mut self, link: &mut L) {
        if self.has_work() {
            self.go_on_now(link);
        }
    }

    fn go_on_now<L: Link>(&mut self, link: &mut L) {
        for session in std::mem::take(&mut self.sessions_under_way) {
            self.go_on_with(link, session);
        }
        self.bury(link);
        for session in std::mem::take(&mut self.starved) {
            if let Some(Some(session)) = self.sessions.get_mut(session as usize - 1) {
                session.starving = false;
            }
            self.serve_waiting(link, session);
        }
        for _ in 0..self.stalled.len() {
            let token = self.stalled.pop_front();
            if let Some(place) = token.and_then(|token| self.calls.by_token(token)) {
                self.move_memory(link, place);
            }
        }
        // One piece of each in turn, until none finds room.
        let mut moved = true;
        while moved && !self.pushing.is_empty() {
            moved = false;
            for _ in 0..self.pushing.len() {
                if let Some(token) = self.pushing.pop_front() {
                    moved |= self.push_piece(link, token);
                }
            }
        }
    }

    #[inline]
    pub(super) fn request<L: Link>(
        &mut self,
        link: &mut L,
        frame: Frame<'_>,
    ) -> Result<(), RpcError> {
        let Frame { peer, header, body } = frame;
        if is_fragment(header) {
            let longest = self.shared.setup.limits.max_message + 1024;
            let whole = self.assemblies.add(peer, header, body, longest)?;
            let whole = whole.as_deref();
            return whole.map_or(Ok(()), |body| self.take(link, Frame { body, ..frame }));
        }
        self.take(link, frame)
    }

    #[inline]
    fn take<L: Link>(&mut self, link: &mut L, frame: Frame<'_>) -> Result<(), RpcError> {
        let Frame { peer, header, body } = frame;
        self.requests += 1;
        let mut parts = take_apart(header, body)?;
        let Some((tag, service)) = self.answerer(peer, header, parts.payload.len())? else {
            return Ok(());
        };
        let mut region = None;
        if self.tags[tag].services[service].needs_buffer(header.word) {
            let is_congested = link.is_congested(peer);
            let session = self.session(peer, header.session)?;
            let longest = session.longest_bulk;
            if matches!(&parts.bulk, Some(bulk) if bulk.length > longest) {
                let facts = AnswerFacts::new(peer, *header);
                self.refuse_call(link, facts, None, DerCode::RecordTooBig);
                return Ok(());
            }
            if session.waiting.is_empty() && !is_congested {
                region = session.take_buffer(link);
            }
            if region.is_none() {
                return self.let_wait(link, peer, header, &mut parts);
            }
        }
        let buffer = region.map_or(&mut [][..], |region| link.bytes(region));
        let bulk = parts.bulk.as_deref();
        let buffers = (buffer, &mut self.parts);
        let about = (self.calls.next, parts.checksum);
        let mut call = service_call(header, parts.payload, bulk, buffers, about);
        let step = self.tags[tag].services[service].request(&mut call);
        let facts = AnswerFacts {
            reply_checksum: call.reply_checksum,
            pull_from: call.pull_from,
            ..AnswerFacts::new(peer, *header)
        };
        match step {
            NextStep::Reply(_) | NextStep::Fail(_) => {
                self.answer(link, &facts, step, region);
                if let Some(region) = region {
                    self.give_buffer(header.session, region);
                }
            }
            _ => {
                let kept = self.keep_seen(peer, header, &mut parts, (tag, service))?;
                let Some(place) = kept else {
                    self.refuse_call(link, facts, region, DerCode::NoMemory);
                    return Ok(());
                };
                let call = self.calls.get(place);
                (call.region, call.facts) = (region, facts);
                if !self.keep_payload(place, parts.payload, step) {
                    self.abandon(link, place, DerCode::NoMemory);
                    return Ok(());
                }
                self.go_to(link, place, step, header.flags & flag::EAGER != 0);
            }
        }
        Ok(())
    }

    /// Which tag and service a request is for; none where the connection is gone.
    #[inline]
    fn answerer(
        &mut self,
        peer: PeerId,
        header: &FrameHeader,
        payload: usize,
    ) -> Result<Option<(usize, usize)>, RpcError> {
        if payload as u64 > self.shared.setup.limits.max_message {
            return Err(RpcError::protocol(
                "a payload is longer than the server takes",
            ));
        }
        if header.session == 0 {
            return Ok(self.peer(peer).map(|served| (served.tag, 0)));
        }
        let session = self.session(peer, header.session)?;
        if session.active.len() >= session.credits as usize {
            return Err(RpcError::protocol(
                "more calls than the session has credits",
            ));
        }
        if payload as u64 > u64::from(session.send_size) {
            return Err(RpcError::protocol("a payload is longer than the session's"));
        }
        session.requests += 1;
        Ok(Some((session.tag, session.service)))
    }

    /// Gives a call a place in the table; none where there is no memory for it.
    fn keep(
        &mut self,
        peer: PeerId,
        header: &FrameHeader,
        parts: &mut RequestParts<'_>,
    ) -> Result<Option<u32>, RpcError> {
        // Without a session nothing bounds how many there are.
        let session = self.session(peer, header.session)?;
        if session.active.contains_key(&header.rpc) {
            return Err(RpcError::protocol("a call that is out already"));
        }
        if !self.shared.memory.take_rest(EACH_CALL) {
            return Ok(None);
        }
        let place = self.calls.add(ServerCall {
            stage: CallStage::Waiting { dropped: 0 },
            generation: 0,
            facts: AnswerFacts::new(peer, *header),
            cancelled: false,
            moving: false,
            region: None,
            bulk: parts.bulk.take(),
            parts: Vec::new(),
            then: Some(0),
            checksum: parts.checksum,
            payload: Vec::new(),
            charged: 0,
        });
        let session = self.session(peer, header.session)?;
        session.active.insert(header.rpc, place);
        Ok(Some(place))
    }

    /// The same for a call that its service has seen, and may have made a note of.
    fn keep_seen(
        &mut self,
        peer: PeerId,
        header: &FrameHeader,
        parts: &mut RequestParts<'_>,
        (tag, service): (usize, usize),
    ) -> Result<Option<u32>, RpcError> {
        let handle = self.calls.next;
        let kept = self.keep(peer, header, parts);
        if !matches!(kept, Ok(Some(_))) {
            self.calls.skip_handle();
            self.tags[tag].services[service].dropped(handle);
        }
        kept
    }

    /// Keeps a payload for what comes after a step of a call, if there is memory for it: here, or where the
    /// service answers later with that.
    fn keep_payload(&mut self, place: u32, payload: &[u8], step: NextStep) -> bool {
        let is_last = matches!(
            step,
            NextStep::PushAndReply(_) | NextStep::PushPartsAndReply(_)
        );
        if is_last || payload.is_empty() {
            return true;
        }
        let length = payload.len() as u64;
        let taken = self.shared.memory.take(length);
        if taken {
            self.calls.get(place).charged = length;
            if step != NextStep::Later {
                self.calls.get(place).payload = payload.to_vec();
            }
        }
        taken
    }

    /// Frees a call's place, its memory, and that of its payload.
    pub(super) fn remove_call(&mut self, place: u32) {
        self.shared.memory.give(self.calls.get(place).charged);
        self.shared.memory.give_rest(EACH_CALL);
        self.calls.remove(place);
    }

    fn let_wait<L: Link>(
        &mut self,
        link: &mut L,
        peer: PeerId,
        header: &FrameHeader,
        parts: &mut RequestParts<'_>,
    ) -> Result<(), RpcError> {
        let Some(place) = self.keep(peer, header, parts)? else {
            let facts = AnswerFacts::new(peer, *header);
            self.refuse_call(link, facts, None, DerCode::NoMemory);
            return Ok(());
        };
        self.calls.get(place).facts.waited = true;
        if !self.keep_payload(place, parts.payload, NextStep::PushParts) {
            self.finish(link, place, NextStep::Fail(DerCode::NoMemory));
            return Ok(());
        }
        let token = self.calls.token(place);
        let session = self.session(peer, header.session)?;
        session.buffer_waits += 1;
        session.waiting.push_back(token);
        if !session.free.is_empty() {
            // There is one, but it is still being sent.
            self.starve(header.session);
        }
        Ok(())
    }

    /// Serves calls that wait, as long as there are buffers.
    fn serve_waiting<L: Link>(&mut self, link: &mut L, number: u32) {
        loop {
            let Some(Some(session)) = self.sessions.get_mut(number as usize - 1) else {
                return;
            };
            let Some(&token) = session.waiting.front() else {
                return;
            };
            // It may have been cancelled.
            let Some(place) = self.calls.by_token(token) else {
                session.waiting.pop_front();
                continue;
            };
            if link.is_congested(session.peer) {
                return self.starve(number);
            }
            let Some(region) = session.take_buffer(link) else {
                if !session.free.is_empty() {
                    self.starve(number);
                }
                return;
            };
            session.waiting.pop_front();
            let call = self.calls.get(place);
            call.region = Some(region);
            let eager = call.facts.header.flags & flag::EAGER != 0;
            let step = self.ask_service(link, place, RpcService::request);
            self.go_to(link, place, step, eager);
        }
    }

    pub(super) fn cancel<L: Link>(&mut self, link: &mut L, peer: PeerId, header: &FrameHeader) {
        if let Some(place) = self.find(peer, header) {
            let call = self.calls.get(place);
            call.cancelled = true;
            if !call.moving {
                self.abandon(link, place, DerCode::Canceled);
            }
        }
    }

    /// Answers a call for which there is no memory, or that is too long.
    #[cold]
    fn refuse_call<L: Link>(
        &mut self,
        link: &mut L,
        facts: AnswerFacts,
        region: Option<RegionId>,
        code: DerCode,
    ) {
        self.answer(link, &facts, NextStep::Fail(code), None);
        if let Some(region) = region {
            self.give_buffer(facts.header.session, region);
        }
    }

    /// Ends calls of a session that the link does not work on, [`CALLS_A_ROUND`] at most; true if there were no
    /// more.
    pub(super) fn end_calls<L: Link>(&mut self, link: &mut L, number: u32) -> bool {
        let Some(Some(session)) = self.sessions.get_mut(number as usize - 1) else {
            return true;
        };
        session.waiting.clear();
        let calls = &mut self.calls;
        let places = session.active.values().copied();
        let ended = places.filter(|&place| !calls.get(place).cancelled);
        let ended: Vec<u32> = ended.take(CALLS_A_ROUND).collect();
        for &place in &ended {
            let call = self.calls.get(place);
            call.cancelled = true;
            if !call.moving {
                self.abandon(link, place, DerCode::Canceled);
            }
        }
        ended.len() < CALLS_A_ROUND
    }

    /// Answers a call of the table, and lets others have its buffer and its place.
    pub(super) fn finish<L: Link>(&mut self, link: &mut L, place: u32, step: NextStep) {
        let call = self.calls.get(place);
        let region = call.region.take();
        let facts = call.facts;
        let number = facts.header.session;
        self.answer(link, &facts, step, region);
        self.remove_call(place);
        if let Some(Some(session)) = self.sessions.get_mut(number as usize - 1) {
            session.active.remove(&facts.header.rpc);
            if session.waiting.len() > 2 * session.active.len() + 64 {
                let calls = &self.calls;
                session
                    .waiting
                    .retain(|&token| calls.by_token(token).is_some());
            }
        }
        if let Some(region) = region {
            self.give_buffer(number, region);
        }
        self.finish_close(link, number);
    }

    /// A buffer is free; who waits for it goes on within this round.
    fn give_buffer(&mut self, number: u32, region: RegionId) {
        if let Some(Some(session)) = self.sessions.get_mut(number as usize - 1) {
            session.free.push_back(region);
            if !session.waiting.is_empty() {
                self.starve(number);
            }
        }
    }

    /// Calls of a session wait for a buffer that may be free in the next round.
    fn starve(&mut self, number: u32) {
        if let Some(Some(session)) = self.sessions.get_mut(number as usize - 1)
            && !session.starving
        {
            session.starving = true;
            self.starved.push(number);
        }
    }

    #[inline]
    fn answer<L: Link>(
        &mut self,
        link: &mut L,
        facts: &AnswerFacts,
        step: NextStep,
        region: Option<RegionId>,
    ) {
        let longest = self.shared.setup.limits.max_message;
        let (status, length) = match step {
            NextStep::Reply(length) if length > longest => (DerCode::Overflow.to_status(), 0),
            NextStep::Reply(length) => (0, length),
            NextStep::Fail(code) => (code.to_status(), 0),
            _ => (DerCode::Other.to_status(), 0),
        };
        let mut header = FrameHeader {
            kind: FrameKind::Response,
            flags: if facts.waited { flag::WAITED } else { 0 },
            word: status,
            ..facts.header
        };
        let checksum = facts.reply_checksum.filter(|_| status == 0);
        let sum = checksum.unwrap_or(0).to_le_bytes();
        let head = if checksum.is_some() { &sum[..] } else { &[] };
        if checksum.is_some() {
            header.flags |= flag::CHECKSUM;
        }
        match region {
            Some(region) if length > 0 => {
                let max_frame = self.peer(facts.peer).map_or(0, |served| served.max_frame);
                let from = MemoryRange::new(region, 0, length);
                send_payload(link, facts.peer, &header, head, from, max_frame);
            }
            _ => {
                link.send(facts.peer, &header, &[head]);
            }
        }
    }
}

/// A request as its service sees it.
#[inline]
pub(super) fn service_call<'a>(
    header: &FrameHeader,
    payload: &'a [u8],
    bulk: Option<&BulkDescriptor>,
    (buffer, parts): (&'a mut [u8], &'a mut Vec<PushPart>),
    (handle, checksum): (CallHandle, Option<u32>),
) -> ServiceCall<'a> {
    parts.clear();
    ServiceCall {
        session: header.session,
        operation: header.word,
        rpc: header.rpc,
        flags: header.flags,
        payload,
        bulk: bulk.map(|bulk| bulk.length),
        buffer,
        checksum,
        reply_checksum: None,
        handle,
        pull_from: 0,
        parts,
    }
}
