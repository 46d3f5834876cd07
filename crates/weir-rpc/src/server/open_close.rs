//! Sessions come and go: OPEN and CLOSE.
//!
//! In: what clients ask for. Out: sessions within the limits, and their end. Not here: what happens
//! in a session (`serve`), what a session holds (`sessions`).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::poller::PollerState;
use super::sessions::ServerSession;
use crate::links::{Frame, Link, PeerId};
use crate::service::payload::check_inline;
use crate::wire::{Closed, FrameHeader, FrameKind, OpenReply, OpenRequest, RpcId};
use crate::{DerCode, RpcError};

impl PollerState {
    pub(super) fn open<L: Link>(&mut self, link: &mut L, frame: Frame<'_>) -> Result<(), RpcError> {
        let (peer, asked) = (frame.peer, OpenRequest::decode(frame.body)?);
        let mut answer = FrameHeader::of_call(FrameKind::OpenAck, frame.header.rpc, 0);
        let mut body = Vec::new();
        match self.open_session(link, peer, &asked) {
            Ok(reply) => reply.encode(&mut body),
            Err(error) => {
                answer.word = error.code.to_status();
                body.extend_from_slice(error.message.as_bytes());
            }
        }
        link.send(peer, &answer, &[&body]);
        Ok(())
    }

    fn open_session<L: Link>(
        &mut self,
        link: &mut L,
        peer: PeerId,
        asked: &OpenRequest,
    ) -> Result<OpenReply, RpcError> {
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
        let opened = self.open_counted(link, peer, tag, asked);
        if opened.is_err() {
            counter.fetch_sub(1, Relaxed);
        }
        opened
    }

    /// Opens a session that counts already.
    fn open_counted<L: Link>(
        &mut self,
        link: &mut L,
        peer: PeerId,
        tag: usize,
        asked: &OpenRequest,
    ) -> Result<OpenReply, RpcError> {
        let shared = Arc::clone(&self.shared);
        let place = self.free_sessions.pop().unwrap_or_else(|| {
            self.sessions.push(None);
            u32::try_from(self.sessions.len() - 1).unwrap_or(u32::MAX)
        });
        let number = place + 1;
        let served_tag = &mut self.tags[tag];
        let opened = served_tag.find(asked).and_then(|service| {
            let shape = served_tag.services[service].open(number, asked)?;
            let limits = (&shared.memory, shared.setup.limits.credits);
            ServerSession::open(link, peer, (tag, service), asked, &shape, limits)
                .inspect_err(|_| served_tag.services[service].closed(number))
        });
        let session = opened.inspect_err(|_| self.free_sessions.push(place))?;
        let reply = OpenReply {
            session: number,
            buffers: u32::try_from(session.buffers.len()).unwrap_or(u32::MAX),
            credits: session.credits,
        };
        self.sessions[place as usize] = Some(session);
        if let Some(served) = self.peer(peer) {
            served.sessions.push(number);
        }
        Ok(reply)
    }

    /// CLOSE: ends calls that wait, and answers once none moves memory. A session that is not there
    /// is closed already.
    pub(super) fn close<L: Link>(&mut self, link: &mut L, peer: PeerId, header: &FrameHeader) {
        if self.session(peer, header.session).is_ok() {
            self.end_calls(link, header.session);
            if let Ok(session) = self.session(peer, header.session) {
                session.closing = true;
            }
            self.finish_close(link, header.session);
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
        self.drop_session(link, number);
        if let Some(served) = self.peer(peer) {
            served.sessions.retain(|&other| other != number);
        }
        answer_close(link, peer, number, &closed);
    }

    pub(super) fn drop_session<L: Link>(&mut self, link: &mut L, number: u32) {
        let place = number as usize - 1;
        if let Some(mut session) = self.sessions[place].take() {
            for &call in &session.active {
                self.remove_call(call);
            }
            session.give_back(link, &self.shared.memory);
            self.tags[session.tag].services[session.service].closed(number);
            self.shared.counters.sessions.fetch_sub(1, Relaxed);
            self.free_sessions.push(number - 1);
        }
    }
}

fn answer_close<L: Link>(link: &mut L, peer: PeerId, session: u32, closed: &Closed) {
    let header = FrameHeader::of_call(FrameKind::CloseAck, RpcId::default(), session);
    link.send(peer, &header, &[&closed.encode()]);
}
