//! The steps of a call at the server: take it, give it a buffer, fetch and send bulk data, answer.
//!
//! In: requests, data, ends of moves. Out: answers. A call that is answered at once leaves no trace;
//! one that waits or moves data has a place in the table. Not here: what a service makes of it.

use super::calls::{AnswerFacts, CallStage, RequestParts, ServerCall, take_apart};
use super::poller::PollerState;
use crate::links::assembly::{is_fragment, send_payload};
use crate::links::{Frame, Link, MemoryRange, PeerId, RegionId};
use crate::service::{NextStep, ServiceCall};
use crate::wire::{BulkAccess, BulkDescriptor, BulkMode, FrameHeader, FrameKind, flag};
use crate::{DerCode, RpcError};

/// Memory of a call that waits or moves data, with its descriptor and its entries in lists, in bytes.
const EACH_CALL: u64 = 640;
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
            if session.waiting.is_empty() && !is_congested {
                region = session.take_buffer(link);
            }
            if region.is_none() {
                return self.let_wait(link, peer, header, &mut parts);
            }
        }
        let buffer = region.map_or(&mut [][..], |region| link.bytes(region));
        let bulk = parts.bulk.as_deref();
        let mut call = service_call(header, parts.payload, bulk, buffer, parts.checksum);
        let step = self.tags[tag].services[service].request(&mut call);
        let facts = AnswerFacts {
            reply_checksum: call.reply_checksum,
            ..AnswerFacts::new(peer, *header)
        };
        match step {
            NextStep::Reply(_) | NextStep::Fail(_) => {
                self.answer(link, &facts, step, region);
                if let Some(region) = region {
                    self.give_buffer(header.session, region);
                }
            }
            NextStep::Pull(_) | NextStep::PushAndReply(_) => {
                let Some(place) = self.keep(peer, header, &mut parts)? else {
                    self.refuse_call(link, facts, region);
                    return Ok(());
                };
                let call = self.calls.get(place);
                call.region = region;
                call.facts = facts;
                if matches!(step, NextStep::Pull(_)) && !self.keep_payload(place, parts.payload) {
                    self.finish(link, place, NextStep::Fail(DerCode::NoMemory));
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
            checksum: parts.checksum,
            payload: Vec::new(),
        });
        let session = self.session(peer, header.session)?;
        session.active.insert(header.rpc, place);
        Ok(Some(place))
    }

    /// Keeps a payload for later steps of a call, if there is memory for it.
    fn keep_payload(&mut self, place: u32, payload: &[u8]) -> bool {
        if payload.is_empty() {
            return true;
        }
        let taken = self.shared.memory.take(payload.len() as u64);
        if taken {
            self.calls.get(place).payload = payload.to_vec();
        }
        taken
    }

    /// Frees a call's place, its memory, and that of its payload.
    pub(super) fn remove_call(&mut self, place: u32) {
        let length = self.calls.get(place).payload.len() as u64;
        self.shared.memory.give(length);
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
            self.refuse_call(link, AnswerFacts::new(peer, *header), None);
            return Ok(());
        };
        self.calls.get(place).facts.waited = true;
        if !self.keep_payload(place, parts.payload) {
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
            let step = self.ask_service(link, place, false);
            self.go_to(link, place, step, eager);
        }
    }

    /// Lets the service say what is next for a call in the table.
    fn ask_service<L: Link>(&mut self, link: &mut L, place: u32, pulled: bool) -> NextStep {
        let kept = self.calls.get(place);
        let Some(Some(session)) = self.sessions.get(kept.facts.header.session as usize - 1) else {
            return NextStep::Fail(DerCode::NotThere);
        };
        let service = &mut self.tags[session.tag].services[session.service];
        let buffer = kept.region.map_or(&mut [][..], |region| link.bytes(region));
        let bulk = kept.bulk.as_deref();
        let header = &kept.facts.header;
        let mut call = service_call(header, &kept.payload, bulk, buffer, kept.checksum);
        let step = if pulled {
            service.pulled(&mut call)
        } else {
            service.request(&mut call)
        };
        kept.facts.reply_checksum = call.reply_checksum;
        step
    }

    /// Begins the next step of a call in the table.
    fn go_to<L: Link>(&mut self, link: &mut L, place: u32, step: NextStep, eager: bool) {
        let call = self.calls.get(place);
        let (length, access) = match step {
            NextStep::Reply(_) | NextStep::Fail(_) => return self.finish(link, place, step),
            NextStep::Pull(length) => (length, BulkAccess::READ),
            NextStep::PushAndReply(length) => (length, BulkAccess::WRITE),
        };
        let region = call.region;
        let room = region.map_or(0, |region| link.bytes(region).len() as u64);
        let fits = |bulk: &BulkDescriptor| bulk.contains(0, length) && bulk.access.allows(access);
        if length > room || !call.bulk.as_deref().is_some_and(fits) {
            return self.finish(link, place, NextStep::Fail(DerCode::Invalid));
        }
        let bulk = call.bulk.as_deref();
        let by_frames = bulk.is_none_or(|bulk| bulk.mode == BulkMode::Frames);
        call.stage = if access == BulkAccess::READ {
            let missed = match call.stage {
                CallStage::Waiting { dropped } if eager => dropped,
                _ => length,
            };
            let (to_ask, total) = (missed, length);
            CallStage::Pulling {
                asked: 0,
                to_ask,
                got: 0,
                total,
            }
        } else {
            CallStage::Pushing {
                sent: 0,
                total: length,
            }
        };
        if length == 0 {
            return self.step_done(link, place);
        }
        if !by_frames {
            self.move_memory(link, place);
        } else if access == BulkAccess::READ {
            self.pull_more(link, place);
        } else {
            let token = self.calls.token(place);
            self.push_piece(link, token);
        }
    }

    /// All data of a step are where they belong.
    pub(super) fn step_done<L: Link>(&mut self, link: &mut L, place: u32) {
        match self.calls.get(place).stage {
            CallStage::Pulling { .. } => {
                let step = self.ask_service(link, place, true);
                self.go_to(link, place, step, false);
            }
            _ => self.finish(link, place, NextStep::Reply(0)),
        }
    }

    pub(super) fn cancel<L: Link>(&mut self, link: &mut L, peer: PeerId, header: &FrameHeader) {
        if let Some(place) = self.find(peer, header) {
            let call = self.calls.get(place);
            call.cancelled = true;
            if !call.moving {
                self.finish(link, place, NextStep::Fail(DerCode::Canceled));
            }
        }
    }

    /// Answers a call for which there is no memory.
    #[cold]
    fn refuse_call<L: Link>(&mut self, link: &mut L, facts: AnswerFacts, region: Option<RegionId>) {
        self.answer(link, &facts, NextStep::Fail(DerCode::NoMemory), None);
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
                self.finish(link, place, NextStep::Fail(DerCode::Canceled));
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
            NextStep::Pull(_) | NextStep::PushAndReply(_) => (DerCode::Other.to_status(), 0),
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
fn service_call<'a>(
    header: &FrameHeader,
    payload: &'a [u8],
    bulk: Option<&BulkDescriptor>,
    buffer: &'a mut [u8],
    checksum: Option<u32>,
) -> ServiceCall<'a> {
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
    }
}
