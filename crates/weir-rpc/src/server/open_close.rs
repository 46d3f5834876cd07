//! Sessions come and go: OPEN and CLOSE.
//!
//! In: what clients ask for. Out: sessions within the limits, and their end. Not here: what happens
//! in a session (`serve`), what a session holds (`sessions`).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::poller::PollerState;
use super::serve::CALLS_A_ROUND;
use super::sessions::ServerSession;
use crate::links::{Frame, Link, PeerId};
use crate::service::payload::check_inline;
use crate::wire::{Closed, FrameHeader, FrameKind, OpenReply, OpenRequest, RpcId};
use crate::{DerCode, RpcError};

impl PollerState {
    /// OPEN: the answer follows once all buffers of the session are made.
    pub(super) fn open<L: Link>(&mut self, link: &mut L, frame: Frame<'_>) -> Result<(), RpcError> {
        let (peer, asked) = (frame.peer, OpenRequest::decode(frame.body)?);
        match self.open_session(link, (peer, frame.header.rpc), &asked) {
            Ok(session) => self.sessions_under_way.push(session),
            Err(error) => refuse_open(link, peer, frame.header.rpc, &error),
        }
        Ok(())
    }

    /// The next piece of work on a session that opens or closes.
    pub(super) fn go_on_with<L: Link>(&mut self, link: &mut L, number: u32) {
        let Some(Some(session)) = self.sessions.get_mut(number as usize - 1) else {
            return;
        };
        let (peer, opening) = (session.peer, session.opening);
        let is_done = match opening {
            None if !session.closing => return,
            None => Ok(self.end_calls(link, number)),
            Some(_) => session.make_buffers(link),
        };
        match (is_done, opening) {
            (Ok(false), _) => self.sessions_under_way.push(number),
            (Ok(true), None) => self.finish_close(link, number),
            (Ok(true), Some(opening)) => self.answer_open(link, number, opening.rpc),
            (Err(error), opening) => {
                self.end_session(number);
                let rpc = opening.map_or_else(RpcId::default, |opening| opening.rpc);
                refuse_open(link, peer, rpc, &error);
            }
        }
    }

    fn answer_open<L: Link>(&mut self, link: &mut L, number: u32, rpc: RpcId) {
        if let Some(Some(session)) = self.sessions.get_mut(number as usize - 1) {
            session.opening = None;
            let reply = OpenReply {
                session: number,
                buffers: u32::try_from(session.buffers.len()).unwrap_or(u32::MAX),
                credits: session.credits,
            };
            let mut body = Vec::new();
            reply.encode(&mut body);
            let answer = FrameHeader::of_call(FrameKind::OpenAck, rpc, 0);
            link.send(session.peer, &answer, &[&body]);
        }
    }

    fn open_session<L: Link>(
        &mut self,
        link: &L,
        (peer, rpc): (PeerId, RpcId),
        asked: &OpenRequest,
    ) -> Result<u32, RpcError> {
        let shared = Arc::clone(&self.shared);
        let served = self
            .peer(peer)
            .ok_or_else(|| RpcError::protocol("no such connection"))?;
        let (limits, too_many) = (&shared.setup.limits, |why| {
            RpcError::new(DerCode::NoMemory, why)
        });
        let each = limits.sessions_each;
        if served.sessions.len() >= each as usize {
            let why = format!("too many sessions: this connection has {each}, the most of one");
            return Err(too_many(why));
        }
        check_inline(asked, limits.max_message)?;
        let tag = served.tag;
        // Pollers open sessions at the same time.
        let one_more = |open: u32| (open < limits.sessions).then_some(open + 1);
        let counter = &shared.counters.sessions;
        let counted = counter.fetch_update(Relaxed, Relaxed, one_more);
        counted.map_err(|open| {
            let why = format!(
                "too many sessions: this server has {open}, as many as it may (`weir rpc serve \
                 --max-sessions` says how many)"
            );
            too_many(why)
        })?;
        let opened = self.open_counted(link, (peer, rpc), tag, asked);
        if opened.is_err() {
            counter.fetch_sub(1, Relaxed);
        }
        opened
    }

    /// Opens a session that counts already.
    fn open_counted<L: Link>(
        &mut self,
        link: &L,
        (peer, rpc): (PeerId, RpcId),
        tag: usize,
        asked: &OpenRequest,
    ) -> Result<u32, RpcError> {
        let shared = Arc::clone(&self.shared);
        let place = self.free_sessions.pop().unwrap_or_else(|| {
            // Each link of a thread has numbers of its own, since services see those of all.
            let place = self.sessions.len().next_multiple_of(self.links) + self.link_number;
            self.sessions.resize_with(place + 1, || None);
            u32::try_from(place).unwrap_or(u32::MAX)
        });
        let number = place + 1;
        let served_tag = &mut self.tags[tag];
        let opened = served_tag.find(asked).and_then(|service| {
            let shape = served_tag.services[service].open(number, asked)?;
            let limits = (&shared.memory, shared.setup.limits.credits);
            ServerSession::open(link, (peer, rpc), (tag, service), asked, &shape, limits)
                .inspect_err(|_| served_tag.services[service].closed(number))
        });
        let session = opened.inspect_err(|_| self.free_sessions.push(place))?;
        self.sessions[place as usize] = Some(session);
        if let Some(served) = self.peer(peer) {
            served.sessions.push(number);
        }
        Ok(number)
    }

    /// CLOSE: ends calls that wait, and answers once none moves memory. A session that is not there
    /// is closed already.
    pub(super) fn close<L: Link>(&mut self, link: &mut L, peer: PeerId, header: &FrameHeader) {
        if let Ok(session) = self.session(peer, header.session) {
            session.closing = true;
            self.sessions_under_way.push(header.session);
        } else {
            answer_close(link, peer, header.session, &Closed::default());
        }
    }

    /// Answers CLOSE unless memory still moves.
    pub(super) fn finish_close<L: Link>(&mut self, link: &mut L, number: u32) {
        let Some(Some(session)) = self.sessions.get(number as usize - 1) else {
            return;
        };
        if !session.closing || !session.active.is_empty() {
            return;
        }
        let closed = Closed {
            requests: session.requests,
            buffer_waits: session.buffer_waits,
        };
        let peer = session.peer;
        self.end_session(number);
        answer_close(link, peer, number, &closed);
    }

    /// Takes a session from its connection.
    fn end_session(&mut self, number: u32) {
        let session = self.sessions.get(number as usize - 1);
        let peer = session.and_then(|session| session.as_ref().map(|session| session.peer));
        self.drop_session(number);
        if let Some(served) = peer.and_then(|peer| self.peer(peer)) {
            served.sessions.retain(|&other| other != number);
        }
    }

    /// Nobody uses a session any more. What it holds goes in pieces: see [`PollerState::bury`].
    pub(super) fn drop_session(&mut self, number: u32) {
        let place = number as usize - 1;
        if let Some(mut session) = self.sessions[place].take() {
            let places: Vec<u32> = session.active.drain().map(|(_, place)| place).collect();
            for &place in &places {
                self.note_dropped(place, (session.tag, session.service));
            }
            let calls = places.iter().map(|&place| self.calls.token(place));
            let calls = calls.collect();
            self.tags[session.tag].services[session.service].closed(number);
            self.shared.counters.sessions.fetch_sub(1, Relaxed);
            self.free_sessions.push(number - 1);
            self.dropped.push(DroppedSession { session, calls });
        }
    }

    /// Gives back what dropped sessions hold, a piece of one of them in each round.
    pub(super) fn bury<L: Link>(&mut self, link: &mut L) {
        let Some(mut dropped) = self.dropped.pop() else {
            return;
        };
        let kept = dropped.calls.len().saturating_sub(CALLS_A_ROUND);
        for token in dropped.calls.drain(kept..) {
            if let Some(call) = self.calls.by_token(token) {
                self.remove_call(call);
            }
        }
        let is_done = dropped.session.give_back(link, &self.shared.memory);
        if kept > 0 || !is_done {
            self.dropped.push(dropped);
        }
    }
}

/// A session that nobody uses any more, and the tokens of its calls.
pub(super) struct DroppedSession {
    session: ServerSession,
    calls: Vec<u64>,
}

fn refuse_open<L: Link>(link: &mut L, peer: PeerId, rpc: RpcId, error: &RpcError) {
    let answer = FrameHeader::of_call(FrameKind::OpenAck, rpc, 0);
    let answer = answer.with_word(error.code.to_status());
    link.send(peer, &answer, &[error.message.as_bytes()]);
}

fn answer_close<L: Link>(link: &mut L, peer: PeerId, session: u32, closed: &Closed) {
    let header = FrameHeader::of_call(FrameKind::CloseAck, RpcId::default(), session);
    link.send(peer, &header, &[&closed.encode()]);
}
