//! The steps of a call at the server: take it, give it a buffer, fetch and send bulk data, answer.
//!
//! In: requests, data, ends of moves. Out: answers. A call that is answered at once leaves no trace;
//! one that waits or moves data has a place in the table. Not here: what a service makes of it.

use super::calls::{AnswerFacts, CallStage, RequestParts, ServerCall, take_apart};
use super::poller::PollerState;
use super::thread::TICK;
use crate::links::assembly::{is_fragment, send_payload};
use crate::links::{Frame, Link, MemoryRange, PeerId, RegionId};
use crate::service::{CallHandle, MOST_PARTS, NextStep, PushPart, RpcService, ServiceCall};
use crate::wire::{BulkAccess, BulkDescriptor, FrameHeader, FrameKind, flag};
use crate::{DerCode, RpcError};

/// Memory of a call that waits or moves data, with its descriptor and its entries in lists, in bytes.
const EACH_CALL: u64 = 1024;
/// Calls of one session that are ended in a round, so that others are served meanwhile.
pub(super) const CALLS_A_ROUND: usize = 1024;
/// Stage of a call that has parts to push, or nothing more.
const BETWEEN_PARTS: CallStage = CallStage::Pushing(PushPart {
    from: 0,
    to: 0,
    length: 0,
});

/// A service's word to a call.
type ServiceTurn = fn(&mut (dyn RpcService + 'static), &mut ServiceCall<'_>) -> NextStep;

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
        let (buffers, handle) = ((buffer, &mut self.parts), self.calls.next);
        let about = (handle, parts.checksum);
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
                let kept = self.keep(peer, header, &mut parts);
                let Ok(Some(place)) = kept else {
                    // The service may have made a note of it.
                    self.calls.skip_handle();
                    self.tags[tag].services[service].dropped(handle);
                    kept?;
                    self.refuse_call(link, facts, region, DerCode::NoMemory);
                    return Ok(());
                };
                let call = self.calls.get(place);
                (call.region, call.facts) = (region, facts);
                let is_last = matches!(
                    step,
                    NextStep::PushAndReply(_) | NextStep::PushPartsAndReply(_)
                );
                let copies = step != NextStep::Later;
                if !is_last && !self.keep_payload(place, parts.payload, copies) {
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

    /// Keeps a payload for later steps of a call, if there is memory for it: here, or else with the service.
    fn keep_payload(&mut self, place: u32, payload: &[u8], copies: bool) -> bool {
        let length = payload.len() as u64;
        let taken = length == 0 || self.shared.memory.take(length);
        if taken {
            let call = self.calls.get(place);
            call.charged = length;
            call.payload = if copies { payload.to_vec() } else { Vec::new() };
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
        if !self.keep_payload(place, parts.payload, true) {
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

    /// Lets the service say what is next for a call in the table.
    fn ask_service<L: Link>(&mut self, link: &mut L, place: u32, turn: ServiceTurn) -> NextStep {
        let handle = self.calls.handle(place);
        let kept = self.calls.get(place);
        let Some(Some(session)) = self.sessions.get(kept.facts.header.session as usize - 1) else {
            return NextStep::Fail(DerCode::NotThere);
        };
        let service = &mut self.tags[session.tag].services[session.service];
        let buffer = kept.region.map_or(&mut [][..], |region| link.bytes(region));
        let bulk = kept.bulk.as_deref();
        let header = &kept.facts.header;
        let about = (handle, kept.checksum);
        let buffers = (buffer, &mut self.parts);
        let mut call = service_call(header, &kept.payload, bulk, buffers, about);
        let step = turn(&mut **service, &mut call);
        kept.facts.reply_checksum = call.reply_checksum;
        kept.facts.pull_from = call.pull_from;
        step
    }

    /// Begins the next step of a call in the table.
    fn go_to<L: Link>(&mut self, link: &mut L, place: u32, step: NextStep, eager: bool) {
        let call = self.calls.get(place);
        let region = call.region;
        let room = region.map_or(0, |region| link.bytes(region).len() as u64);
        let bulk = call.bulk.as_deref();
        let fits = |part: &PushPart, access| {
            let contains = |bulk: &BulkDescriptor| bulk.contains(part.to, part.length);
            let is_own = part
                .from
                .checked_add(part.length)
                .is_some_and(|end| end <= room);
            is_own && bulk.is_some_and(|bulk| contains(bulk) && bulk.access.allows(access))
        };
        let (from, to) = (0, call.facts.pull_from);
        let (stage, is_right) = match step {
            NextStep::Reply(_) | NextStep::Fail(_) => return self.finish(link, place, step),
            NextStep::Later => {
                call.stage = CallStage::Held { since: self.ticks };
                return;
            }
            NextStep::Pull(length) => {
                let to_ask = match call.stage {
                    CallStage::Waiting { dropped } if eager => dropped,
                    _ => length,
                };
                let stage = CallStage::Pulling {
                    from: to,
                    asked: 0,
                    to_ask,
                    got: 0,
                    total: length,
                };
                (
                    stage,
                    fits(&PushPart { from, to, length }, BulkAccess::READ),
                )
            }
            NextStep::PushAndReply(length) => {
                call.then = Some(0);
                let part = PushPart {
                    from,
                    to: 0,
                    length,
                };
                (CallStage::Pushing(part), fits(&part, BulkAccess::WRITE))
            }
            NextStep::PushParts | NextStep::PushPartsAndReply(_) => {
                std::mem::swap(&mut call.parts, &mut self.parts);
                call.parts.retain(|part| part.length > 0);
                call.then = match step {
                    NextStep::PushPartsAndReply(length) => Some(length),
                    _ => None,
                };
                let is_short = call.then.is_none_or(|length| length <= room);
                let mut parts = call.parts.iter();
                let all_fit =
                    parts.len() <= MOST_PARTS && parts.all(|part| fits(part, BulkAccess::WRITE));
                (BETWEEN_PARTS, is_short && all_fit)
            }
        };
        if !is_right {
            return self.abandon(link, place, DerCode::Invalid);
        }
        call.stage = stage;
        match stage {
            CallStage::Pulling { total: 0, .. } => self.step_done(link, place),
            CallStage::Pushing(part) if part.length == 0 => self.step_done(link, place),
            _ if !call.moves_by_frames() => self.move_memory(link, place),
            CallStage::Pulling { .. } => self.pull_more(link, place),
            _ => {
                let token = self.calls.token(place);
                self.push_piece(link, token);
            }
        }
    }

    /// All data of a step, or of a part, are where they belong.
    pub(super) fn step_done<L: Link>(&mut self, link: &mut L, place: u32) {
        let token = self.calls.token(place);
        let call = self.calls.get(place);
        let turn: ServiceTurn = if let CallStage::Pulling { .. } = call.stage {
            RpcService::pulled
        } else if let Some(part) = call.parts.pop() {
            call.stage = CallStage::Pushing(part);
            if call.moves_by_frames() {
                return self.pushing.push_back(token);
            }
            return self.move_memory(link, place);
        } else if let Some(length) = call.then {
            return self.finish(link, place, NextStep::Reply(length));
        } else if call.region.is_some_and(|region| link.is_in_use(region)) {
            call.stage = BETWEEN_PARTS;
            return self.pushing.push_back(token);
        } else {
            RpcService::resumed
        };
        let step = self.ask_service(link, place, turn);
        self.go_to(link, place, step, false);
    }

    /// Goes on with a call that its service has held.
    pub(super) fn resume<L: Link>(&mut self, link: &mut L, token: u64) {
        let Some(place) = self.calls.by_token(token) else {
            return;
        };
        let call = self.calls.get(place);
        if let CallStage::Held { .. } = call.stage {
            call.stage = BETWEEN_PARTS;
            let step = self.ask_service(link, place, RpcService::resumed);
            self.go_to(link, place, step, false);
        }
    }

    /// Ends calls that have been held for too long.
    pub(super) fn tick<L: Link>(&mut self, link: &mut L) {
        self.ticks = self.ticks.wrapping_add(1);
        let limit = self.shared.setup.limits.held.as_nanos() / TICK.as_nanos();
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        for place in self.calls.held_before(self.ticks.saturating_sub(limit)) {
            self.abandon(link, place, DerCode::TimedOut);
        }
    }

    /// Ends a call that its service has not answered.
    pub(super) fn abandon<L: Link>(&mut self, link: &mut L, place: u32, code: DerCode) {
        let number = self.calls.get(place).facts.header.session;
        if let Some(Some(session)) = self.sessions.get(number as usize - 1) {
            self.note_dropped(place, (session.tag, session.service));
        }
        self.finish(link, place, NextStep::Fail(code));
    }

    /// The service of a call that ends without its answer learns it, and cannot resume it any more.
    pub(super) fn note_dropped(&mut self, place: u32, (tag, service): (usize, usize)) {
        let handle = self.calls.handle(place);
        let call = self.calls.get(place);
        if let CallStage::Held { .. } = call.stage {
            call.stage = BETWEEN_PARTS;
        }
        self.tags[tag].services[service].dropped(handle);
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
fn service_call<'a>(
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
