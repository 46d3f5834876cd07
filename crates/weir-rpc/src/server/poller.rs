//! One poller on one link: its connections, sessions, and everything but the calls themselves.
//!
//! In: frames. Out: answers. What breaks the protocol ends its connection and nothing else. Not
//! here: the steps of a call (`serve`), the thread (`thread`).

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use weir_sys::usage::ThreadUsage;

use super::MasterOrder;
use super::calls::CallTable;
use super::connections::SourceAddress;
use super::inbox::{Arrival, PollerInbox};
use super::open_close::DroppedSession;
use super::sessions::ServerSession;
use super::start::ServerShared;
use super::tags::ServedTag;
use super::{MasterAnswers, TestControl, inbox::PollerOrder};
use crate::links::assembly::{Assemblies, is_fragment, send_whole};
use crate::links::peer_table::PeerTable;
use crate::links::{Frame, Link, LinkHandler, LinkWaker, MemoryRange, PeerId};
use crate::master::host::monotonic_ns;
use crate::service::{CallHandle, PushPart};
use crate::wire::{FrameHeader, FrameKind, PingTimes, WireReader};
use crate::{DerCode, RpcError};

/// Longest order of a test, in bytes.
const LONGEST_ORDER: u64 = 64 << 20;

/// A connection.
#[derive(Debug)]
pub(super) struct ServedPeer {
    /// Place of its tag with this poller.
    pub(super) tag: usize,
    source: SourceAddress,
    pub(super) max_frame: u32,
    pub(super) sessions: Vec<u32>,
    /// Of the test that it has ordered and that may run.
    test: Option<TestControl>,
}

/// State of a poller, apart from its link.
pub(super) struct PollerState {
    /// The link's number with its thread.
    pub(super) link_number: usize,
    /// Number of links of its thread.
    pub(super) links: usize,
    /// The tags of its thread, in a round of this link.
    pub(super) tags: Vec<ServedTag>,
    pub(super) peers: PeerTable<ServedPeer>,
    pub(super) sessions: Vec<Option<ServerSession>>,
    pub(super) free_sessions: Vec<u32>,
    pub(super) calls: CallTable,
    /// Calls (by token) that push data in frames, in turn.
    pub(super) pushing: VecDeque<u64>,
    /// Calls (by token) whose move found no room.
    pub(super) stalled: VecDeque<u64>,
    /// Sessions with calls that wait for a buffer that is still being sent.
    pub(super) starved: Vec<u32>,
    /// Sessions that open or close, a piece in each round.
    pub(super) sessions_under_way: Vec<u32>,
    /// Sessions that nobody uses any more, whose memory is given back in pieces.
    pub(super) dropped: Vec<DroppedSession>,
    pub(super) assemblies: Assemblies,
    pub(super) shared: Arc<ServerShared>,
    inbox: Arc<PollerInbox>,
    /// Requests since the last tick.
    pub(super) requests: u64,
    /// Ticks since it began.
    pub(super) ticks: u32,
    /// Parts that the service of the present call wants pushed.
    pub(super) parts: Vec<PushPart>,
}

/// A poller's part on one link.
pub(super) struct Poller<L> {
    pub(super) link: L,
    pub(super) state: PollerState,
}

/// A poller on whatever link.
pub(super) trait PollerRound {
    /// Looks once, or waits so long, for something to do, and does it, with the tags of the thread.
    fn round(&mut self, wait: Option<Duration>, tags: &mut Vec<ServedTag>) -> std::io::Result<u32>;
    /// Goes on with those of these calls that are this link's.
    fn resume(&mut self, ready: &[CallHandle], tags: &mut Vec<ServedTag>) -> std::io::Result<()>;
    fn waker(&self) -> LinkWaker;
    fn join(&mut self, arrival: Arrival);
    fn send(&mut self, peer: PeerId, header: &FrameHeader, body: &[u8]);
    /// Announces to all clients that the server leaves.
    fn go_away(&mut self);
    /// No call is on its way.
    fn is_at_rest(&self) -> bool;
    /// Does the work of a few times a second.
    fn tick(&mut self, tags: &mut Vec<ServedTag>);
}

impl<L: Link> Poller<L> {
    pub(super) fn new(
        link: L,
        (link_number, links): (usize, usize),
        shared: Arc<ServerShared>,
        inbox: Arc<PollerInbox>,
    ) -> Self {
        let mut calls = CallTable::default();
        calls.next.link = link_number;
        let state = PollerState {
            link_number,
            links,
            tags: Vec::new(),
            peers: PeerTable::default(),
            sessions: Vec::new(),
            free_sessions: Vec::new(),
            calls,
            pushing: VecDeque::new(),
            stalled: VecDeque::new(),
            starved: Vec::new(),
            sessions_under_way: Vec::new(),
            dropped: Vec::new(),
            assemblies: Assemblies::new(&shared.memory),
            shared,
            inbox,
            requests: 0,
            ticks: 0,
            parts: Vec::new(),
        };
        Self { link, state }
    }
}

impl<L: Link> PollerRound for Poller<L> {
    #[inline]
    fn round(&mut self, wait: Option<Duration>, tags: &mut Vec<ServedTag>) -> std::io::Result<u32> {
        std::mem::swap(&mut self.state.tags, tags);
        let events = self.link.poll(wait, &mut self.state)?;
        // What finds no room now waits until the link can write again, which ends a wait.
        if events > 0 || self.state.has_work() {
            self.state.go_on(&mut self.link);
        }
        self.link.flush()?;
        std::mem::swap(&mut self.state.tags, tags);
        Ok(events)
    }

    fn resume(&mut self, ready: &[CallHandle], tags: &mut Vec<ServedTag>) -> std::io::Result<()> {
        std::mem::swap(&mut self.state.tags, tags);
        let own = self.state.link_number;
        for handle in ready.iter().filter(|handle| handle.link == own) {
            self.state.resume(&mut self.link, handle.token);
        }
        self.state.go_on(&mut self.link);
        std::mem::swap(&mut self.state.tags, tags);
        self.link.flush()
    }

    fn waker(&self) -> LinkWaker {
        self.link.waker()
    }

    fn join(&mut self, arrival: Arrival) {
        let max_frame = arrival.peer.max_frame;
        let Ok(peer) = self.link.join(arrival.peer) else {
            self.state.shared.counters.refused.fetch_add(1, Relaxed);
            self.state.shared.connections.leave(arrival.source);
            return;
        };
        self.state.shared.counters.connections.fetch_add(1, Relaxed);
        let served = ServedPeer {
            tag: arrival.tag,
            source: arrival.source,
            max_frame,
            sessions: Vec::new(),
            test: None,
        };
        self.state.peers.insert(peer, served);
    }

    fn send(&mut self, peer: PeerId, header: &FrameHeader, body: &[u8]) {
        let Some(served) = self.state.peer(peer) else {
            return;
        };
        if header.kind == FrameKind::Result {
            served.test = None;
        }
        let max_frame = served.max_frame;
        // It went out, or the connection is gone and with it who waits for it.
        send_whole(&mut self.link, peer, header, body, max_frame);
        let _ = self.link.flush();
    }

    fn go_away(&mut self) {
        let header = FrameHeader::plain(FrameKind::GoAway);
        for (peer, _) in self.state.peers.iter_mut() {
            self.link.send(peer, &header, &[]);
        }
        let _ = self.link.flush();
    }

    fn is_at_rest(&self) -> bool {
        let mut sessions = self.state.sessions.iter().flatten();
        sessions.all(|session| session.active.is_empty())
    }

    fn tick(&mut self, tags: &mut Vec<ServedTag>) {
        std::mem::swap(&mut self.state.tags, tags);
        let requests = std::mem::take(&mut self.state.requests);
        let shared = &self.state.shared;
        shared.counters.requests.fetch_add(requests, Relaxed);
        for peer in self.link.close_stale(shared.setup.limits.half_frame) {
            self.state.forget(peer);
        }
        self.state.tick(&mut self.link);
        std::mem::swap(&mut self.state.tags, tags);
    }
}

impl PollerState {
    #[inline]
    pub(super) fn peer(&mut self, peer: PeerId) -> Option<&mut ServedPeer> {
        self.peers.get(peer)
    }

    /// The session of this number, which has to be this connection's.
    #[inline]
    pub(super) fn session(
        &mut self,
        peer: PeerId,
        number: u32,
    ) -> Result<&mut ServerSession, RpcError> {
        match self.sessions.get_mut((number as usize).wrapping_sub(1)) {
            Some(Some(session)) if session.peer == peer && session.is_open() => Ok(session),
            _ => Err(RpcError::protocol("no such session on this connection")),
        }
    }

    /// A connection is gone, and all that was its own.
    pub(super) fn forget(&mut self, peer: PeerId) {
        let Some(served) = self.peers.remove(peer) else {
            return;
        };
        self.assemblies.forget(peer);
        for &session in &served.sessions {
            self.drop_session(session);
        }
        if let Some(test) = served.test {
            test.end();
        }
        self.shared.connections.leave(served.source);
        self.shared.counters.connections.fetch_sub(1, Relaxed);
    }

    /// Ends a connection that broke the protocol.
    #[cold]
    fn refuse<L: Link>(&mut self, link: &mut L, peer: PeerId, error: &RpcError) {
        self.shared.counters.protocol_errors.fetch_add(1, Relaxed);
        let header = FrameHeader::plain(FrameKind::Error).with_word(error.code.to_status());
        link.send(peer, &header, &[error.message.as_bytes()]);
        link.close(peer);
        self.forget(peer);
    }

    fn start_test<L: Link>(&mut self, link: &mut L, frame: Frame<'_>) -> Result<(), RpcError> {
        let Frame { peer, header, body } = frame;
        let whole = if is_fragment(header) {
            let assemblies = &mut self.assemblies;
            assemblies.add(peer, header, body, LONGEST_ORDER)?
        } else {
            Some(body.to_vec())
        };
        let Some(body) = whole else {
            return Ok(());
        };
        let answers = MasterAnswers {
            inbox: Arc::clone(&self.inbox),
            link: self.link_number,
            peer,
            rpc: header.rpc,
        };
        let Some(tag) = self.peer(peer).map(|served| served.tag) else {
            return Ok(());
        };
        let order = MasterOrder {
            master: self.tags[tag].endpoint,
            body,
            answers,
            account: self.shared.memory.clone(),
        };
        match self.shared.setup.masters.start(order) {
            Ok(test) => {
                if let Some(served) = self.peer(peer) {
                    served.test = Some(test);
                }
            }
            Err(error) => {
                let answer = FrameHeader::of_call(FrameKind::StartAck, header.rpc, 0);
                let answer = answer.with_word(error.code.to_status());
                link.send(peer, &answer, &[error.message.as_bytes()]);
            }
        }
        Ok(())
    }

    #[cold]
    fn control<L: Link>(&mut self, link: &mut L, frame: Frame<'_>) -> Result<(), RpcError> {
        let Frame { peer, header, body } = frame;
        match header.kind {
            FrameKind::Open => self.open(link, frame)?,
            FrameKind::Close => self.close(link, peer, header),
            FrameKind::Ping => {
                let used = ThreadUsage::current();
                let times = PingTimes {
                    echo: WireReader::new(body).u64("echo")?,
                    clock_ns: monotonic_ns(),
                    user_ns: used.user.0,
                    system_ns: used.system.0,
                    voluntary_switches: used.voluntary_switches,
                    involuntary_switches: used.involuntary_switches,
                };
                let header = FrameHeader::plain(FrameKind::Pong);
                link.send(peer, &header, &[&times.encode()]);
            }
            FrameKind::Start => self.start_test(link, frame)?,
            FrameKind::Stop => {
                let test = self.peer(peer).and_then(|served| served.test.as_ref());
                test.inspect(|test| test.end());
            }
            FrameKind::Go => {
                let begin_ns = WireReader::new(body).u64("start")?;
                let test = self.peer(peer).and_then(|served| served.test.as_ref());
                test.inspect(|test| test.begin_at(begin_ns));
            }
            FrameKind::Error => {
                link.close(peer);
                self.forget(peer);
            }
            _ => return Err(RpcError::protocol("a frame of this kind may not come now")),
        }
        Ok(())
    }
}

impl<L: Link> LinkHandler<L> for PollerState {
    fn destination(&mut self, frame: Frame<'_>, length: u64) -> Option<MemoryRange> {
        self.place_for(frame, length)
    }

    fn placed(&mut self, link: &mut L, frame: Frame<'_>, at: MemoryRange) {
        self.arrived(link, frame, at.length);
    }

    #[inline]
    fn message(&mut self, link: &mut L, peer: PeerId, header: &FrameHeader, body: &[u8]) {
        let frame = Frame { peer, header, body };
        let done = match header.kind {
            FrameKind::Request => self.request(link, frame),
            FrameKind::BulkData => self.data(link, frame),
            FrameKind::Cancel => {
                self.cancel(link, peer, header);
                Ok(())
            }
            _ => self.control(link, frame),
        };
        if let Err(error) = done {
            self.refuse(link, peer, &error);
        }
    }

    fn moved(&mut self, link: &mut L, _: PeerId, token: u64, result: Result<(), RpcError>) {
        self.move_ended(link, token, result);
    }

    fn lost(&mut self, _: &mut L, peer: PeerId, why: RpcError) {
        if why.code == DerCode::Protocol {
            self.shared.counters.protocol_errors.fetch_add(1, Relaxed);
        }
        self.forget(peer);
    }
}

/// Hands orders of other threads to the link that they are for.
pub(super) fn obey(pollers: &mut [Box<dyn PollerRound>], order: PollerOrder) {
    match order {
        PollerOrder::Join(arrival) => {
            if let Some(poller) = pollers.get_mut(arrival.link) {
                poller.join(*arrival);
            }
        }
        PollerOrder::Send {
            link,
            peer,
            header,
            body,
        } => {
            if let Some(poller) = pollers.get_mut(link) {
                poller.send(peer, &header, &body);
            }
        }
        PollerOrder::GoAway => pollers.iter_mut().for_each(|poller| poller.go_away()),
        PollerOrder::Stop => {}
    }
}
