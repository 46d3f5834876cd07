//! The client as a transport for a load generator: attach, request, poll, reconnect, close.
//!
//! In: a setup and a link. Out: completions. Attaching and closing wait; nothing between does,
//! unless it is asked to.

mod reconnect;

use std::io;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use weir_schema::RpcServerUse;

use super::calls::ClientState;
use super::dial::{Dialled, dial};
use super::endpoints::{ClientConnection, ConnectionStage, EndpointStage, NO_LIMIT};
use super::memory::unless_over;
use super::{ClientSetup, ServerEndpoint};
use crate::links::socket::IsOver;
use crate::links::{Link, NewPeer};
use crate::service::payload::check_inline;
use crate::service::self_test;
use crate::thread_wait::patience;
use crate::transport::{ConnectionTrouble, Requested, RpcCounters, RpcTransport};
use crate::wire::{FrameHeader, FrameKind, HelloReply, OpenRequest, RpcId};
use crate::{DerCode, RpcError};

/// Rounds between two looks at the clock while there is nothing.
const LOOK: u32 = 16;
/// Where calls may take less than this, the clock is read with every answer: a thread that had to wait for a CPU would
/// take late answers for good ones.
const EXACT: Duration = Duration::from_secs(1);
/// A thread that did not look at the clock for so many sweeps was busy elsewhere or not run.
const UNSEEN: u64 = 4;
/// A look that took no longer was not kept from its CPU for long.
const SURELY_RUN: Duration = Duration::from_micros(20);
/// Longest sleep, so that time-outs are seen.
const SLEEP: Duration = Duration::from_millis(50);
/// Limit of a server's answer to a ping for its CPU use.
const ASK: Duration = Duration::from_millis(200);
/// Limit of the wait for servers when a client closes.
const CLOSE: Duration = Duration::from_secs(2);

/// Nanoseconds since some moment.
pub(crate) type Time = dyn Fn() -> u64;

/// Says where a server listens now; `None`: where it did.
pub(super) type Lookup = dyn Fn(&ServerEndpoint) -> Option<ServerEndpoint> + Send;

/// One thread's calls.
pub struct RpcClient<L> {
    link: L,
    state: ClientState,
    /// Nanoseconds since some moment. Asked once in many rounds.
    time: Box<Time>,
    rounds: u32,
    /// The clock is read with every answer.
    is_exact: bool,
    /// CPU time of looks that brought nothing, while they are timed.
    idle: Option<Duration>,
    sweep_ns: u64,
    next_sweep_ns: u64,
    dialling: Option<Receiver<Dialled>>,
    /// When the last endpoint went down.
    down_since: Option<Instant>,
    lookup: Option<Box<Lookup>>,
}

impl<L: Link> RpcClient<L> {
    /// Connects to all endpoints, opens their sessions, then takes the memory of its slots.
    ///
    /// # Errors
    /// No endpoint could be had: why the first one failed. Single ones that fail are down from the
    /// beginning. There is not enough memory.
    pub fn attach(link: L, setup: ClientSetup) -> Result<Self, RpcError> {
        Self::attach_unless(link, setup, &|| false)
    }

    /// The same, given up once `is_over`: servers and memory take their time.
    ///
    /// # Errors
    /// As [`RpcClient::attach`]; [`DerCode::Canceled`] where it was given up.
    pub fn attach_unless(
        link: L,
        setup: ClientSetup,
        is_over: IsOver<'_>,
    ) -> Result<Self, RpcError> {
        let began = Instant::now();
        let time = move || u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let to = setup.dial.clone();
        let connect = |link: &mut L, endpoint: &ServerEndpoint| {
            dial(&to, endpoint, link.greeting()?, is_over)
        };
        let mut client = Self::attach_with(link, setup, Box::new(time), connect, is_over)?;
        client.state.take_memory(&mut client.link, is_over)?;
        Ok(client)
    }

    /// The same by another clock, which counts nanoseconds, and another way to connect. Slots have their memory
    /// when they first need it.
    ///
    /// # Errors
    /// As [`RpcClient::attach`].
    pub(crate) fn attach_with(
        link: L,
        setup: ClientSetup,
        time: Box<Time>,
        mut connect: impl FnMut(&mut L, &ServerEndpoint) -> Result<(NewPeer, HelloReply), RpcError>,
        is_over: IsOver<'_>,
    ) -> Result<Self, RpcError> {
        let state = ClientState::new(setup);
        let sweep = (state.setup.timeout / 64).clamp(Duration::from_millis(1), 2 * SLEEP);
        let sweep_ns = u64::try_from(sweep.as_nanos()).unwrap_or(u64::MAX);
        let is_exact = state.setup.timeout < EXACT;
        let mut client = Self {
            link,
            state,
            time,
            rounds: 0,
            is_exact,
            idle: None,
            sweep_ns,
            next_sweep_ns: sweep_ns,
            dialling: None,
            down_since: None,
            lookup: None,
        };
        let mut first_error = None;
        for connection in 0..client.state.table.connections.len() {
            let connection = u32::try_from(connection).unwrap_or(u32::MAX);
            let known = &client.state.table.connections[connection as usize];
            let endpoint = known.endpoint.clone();
            let began = (client.time)();
            let goes_on = unless_over(is_over);
            let connected = goes_on.and_then(|()| connect(&mut client.link, &endpoint));
            let took = (client.time)().saturating_sub(began);
            let joined = connected.and_then(|(peer, reply)| client.join(connection, peer, &reply));
            match joined {
                Ok(()) => {
                    client.state.table.connections[connection as usize].connect_ns = Some(took);
                }
                Err(error) => {
                    client.state.note_trouble(connection, false, &error);
                    client.state.table.set_why_down(connection, error.code);
                    first_error.get_or_insert(error);
                }
            }
        }
        client.wait_for_sessions(is_over)?;
        if client.state.table.any_up() {
            return Ok(client);
        }
        let refused = client.state.refusals.pop();
        Err(refused
            .or(first_error)
            .or(client.state.last_loss.take())
            .unwrap_or_else(|| RpcError::new(DerCode::NotThere, "there is nobody to call")))
    }

    /// Asks `lookup` where a server listens before it is tried again.
    pub fn set_lookup(
        &mut self,
        lookup: impl Fn(&ServerEndpoint) -> Option<ServerEndpoint> + Send + 'static,
    ) {
        self.lookup = Some(Box::new(lookup));
    }

    /// Why connections were lost or sessions refused, the latest.
    pub fn last_error(&self) -> Option<&RpcError> {
        self.state.refusals.last().or(self.state.last_loss.as_ref())
    }

    fn join(&mut self, connection: u32, peer: NewPeer, reply: &HelloReply) -> Result<(), RpcError> {
        weir_sys::socket::set_user_timeout(&peer.stream, self.state.setup.timeout);
        let peer = self.link.join(peer)?;
        let table = &mut self.state.table;
        table.connect(connection, peer);
        let known = &mut table.connections[connection as usize];
        known.stage = ConnectionStage::Up;
        known.max_frame = reply.max_frame;
        known.max_message = reply.max_message;
        known.heard_ns = self.state.now_ns;
        known.pinged = false;
        for endpoint in known.endpoints.clone() {
            self.open(endpoint);
        }
        self.link.flush().map_err(RpcError::io("open a session"))
    }

    fn open(&mut self, endpoint: u32) {
        let setup = &self.state.setup;
        let entry = &mut self.state.table.endpoints[endpoint as usize];
        let connection = &self.state.table.connections[entry.connection as usize];
        let (peer, longest) = (connection.peer, connection.max_message);
        if !setup.payload.has_session() {
            entry.stage = EndpointStage::Up;
            entry.session = 0;
            entry.credits = NO_LIMIT;
            return;
        }
        let payload = setup.payload;
        let asked = OpenRequest {
            service: self_test::NAME.to_owned(),
            version: self_test::VERSION,
            send_size: payload.request.bytes,
            reply_size: payload.reply.bytes,
            send_kind: payload.request.kind,
            reply_kind: payload.reply.kind,
            buffers: setup.buffers,
            credits: setup.credits,
            low_byte: setup.low_byte,
            verify: setup.verify as u8,
        };
        if let Err(why) = check_inline(&asked, longest) {
            self.state.refuse(endpoint, why);
            return;
        }
        self.state.table.endpoints[endpoint as usize].stage = EndpointStage::Opening;
        let mut body = Vec::new();
        asked.encode(&mut body);
        let rpc = RpcId {
            slot: endpoint,
            generation: 0,
        };
        let header = FrameHeader::of_call(FrameKind::Open, rpc, 0);
        self.link.send(peer, &header, &[&body]);
    }

    fn wait_for_sessions(&mut self, is_over: IsOver<'_>) -> Result<(), RpcError> {
        let within = self.state.setup.dial.within;
        let until = Instant::now() + within;
        let opening = |state: &ClientState| {
            let mut endpoints = state.table.endpoints.iter();
            endpoints.any(|endpoint| endpoint.stage == EndpointStage::Opening)
        };
        while opening(&self.state) && Instant::now() < until && !is_over() {
            self.link.flush().map_err(RpcError::io("open a session"))?;
            let polled = self.link.poll(Some(SLEEP), &mut self.state);
            polled.map_err(RpcError::io("wait for a session"))?;
        }
        for endpoint in 0..u32::try_from(self.state.table.endpoints.len()).unwrap_or(u32::MAX) {
            if self.state.table.endpoints[endpoint as usize].stage == EndpointStage::Opening {
                let why = format!("the server opened no session within {within:?}");
                self.state
                    .refuse(endpoint, RpcError::new(DerCode::TimedOut, why));
            }
        }
        Ok(())
    }

    fn look_at_clock(&mut self) {
        let before_ns = std::mem::replace(&mut self.state.now_ns, (self.time)());
        if self.state.now_ns.saturating_sub(before_ns) > UNSEEN * self.sweep_ns {
            // This thread did something else, or was not run.
            self.state.restamp(before_ns);
        }
        if self.state.now_ns >= self.next_sweep_ns {
            self.next_sweep_ns = self.state.now_ns + self.sweep_ns;
            self.state.sweep(&mut self.link);
            if self.state.setup.reconnect.is_some() {
                self.reconnect();
            }
        }
    }

    /// One look, or a wait of this length.
    #[inline]
    fn round(&mut self, wait: Option<Duration>) -> io::Result<u32> {
        let events = self.link.poll(wait, &mut self.state)?;
        self.rounds = self.rounds.wrapping_add(1);
        let is_now = wait.is_some() || (events > 0 && self.is_exact);
        if is_now || self.rounds.is_multiple_of(LOOK) {
            self.look_at_clock();
        }
        if !(self.state.held.is_empty() && self.state.waiting.is_empty()) {
            self.state.go_on(&mut self.link);
        }
        self.link.flush()?;
        Ok(events)
    }

    #[inline]
    fn hand_out(&mut self, at_most: u32, mut done: impl FnMut(u32, i64)) -> u32 {
        let mut given = 0;
        while given < at_most
            && let Some((slot, result)) = self.state.ready.pop_front()
        {
            done(slot, self.state.in_time(slot, result));
            given += 1;
        }
        given
    }

    /// A look is over, which began at `looked`, or where it slept with this CPU time. One that brought a part
    /// of an answer was work.
    #[cold]
    fn count_idle(&mut self, looked: &mut Instant, used: Option<Duration>, events: u32) {
        let began = std::mem::replace(looked, Instant::now());
        let took = match used {
            Some(used) => thread_cpu_time().saturating_sub(used),
            None => looked.duration_since(began).min(SURELY_RUN),
        };
        if events == 0 && self.state.held.is_empty() {
            self.idle = self.idle.map(|idle| idle + took);
        }
    }

    /// Looks until there is a completion or the time is over.
    fn wait_for_ready(&mut self, timeout_ns: Option<u64>) -> io::Result<()> {
        let patience = patience(self.state.setup.poll);
        let mut began = None;
        let mut looks = 0_u32;
        let mut wait = None;
        let mut looked = self.idle.map(|_| Instant::now());
        loop {
            let used = looked.and(wait).map(|_| thread_cpu_time());
            let events = self.round(wait)?;
            if let Some(looked) = &mut looked {
                self.count_idle(looked, used, events);
            }
            if !self.state.ready.is_empty() || timeout_ns == Some(0) {
                return Ok(());
            }
            looks += 1;
            let block = patience == Some(Duration::ZERO);
            if events > 0 || !(block || looks.is_multiple_of(LOOK) || wait.is_some()) {
                continue;
            }
            let waited = began.get_or_insert_with(Instant::now).elapsed();
            let left = timeout_ns.map(|ns| Duration::from_nanos(ns).saturating_sub(waited));
            if left == Some(Duration::ZERO) || (timeout_ns.is_none() && !self.state.unfinished()) {
                return Ok(());
            }
            let sleep = SLEEP.min(Duration::from_nanos(self.sweep_ns));
            wait = patience
                .is_some_and(|patience| waited >= patience)
                .then(|| left.unwrap_or(sleep).min(sleep));
        }
    }
}

/// CPU time of this thread.
fn thread_cpu_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let whole = Duration::from_secs(u64::try_from(used.tv_sec).unwrap_or(0));
    whole + Duration::from_nanos(u64::try_from(used.tv_nsec).unwrap_or(0))
}

impl<L: Link> RpcTransport for RpcClient<L> {
    #[inline]
    fn request(&mut self, endpoint: u32, slot: u32) -> Requested {
        if !self.is_up(endpoint) {
            return Requested::Gone;
        }
        self.state.begin(&mut self.link, endpoint, slot);
        Requested::Queued
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        self.link.flush()
    }

    #[inline]
    fn poll(
        &mut self,
        timeout_ns: Option<u64>,
        at_most: u32,
        done: impl FnMut(u32, i64),
    ) -> io::Result<u32> {
        if self.state.ready.is_empty() {
            self.wait_for_ready(timeout_ns)?;
        }
        Ok(self.hand_out(at_most, done))
    }

    fn poll_timed(
        &mut self,
        timeout_ns: Option<u64>,
        at_most: u32,
        done: impl FnMut(u32, i64),
    ) -> io::Result<(u32, Duration)> {
        self.idle = Some(Duration::ZERO);
        let count = self.poll(timeout_ns, at_most, done);
        let idle = self.idle.take().unwrap_or_default();
        Ok((count?, idle))
    }

    #[inline]
    fn is_up(&self, endpoint: u32) -> bool {
        let entry = self.state.table.endpoints.get(endpoint as usize);
        entry.is_some_and(|entry| entry.stage == EndpointStage::Up)
    }

    fn why_down(&self, endpoint: u32) -> DerCode {
        let entry = self.state.table.endpoints.get(endpoint as usize);
        entry.map_or(DerCode::Unreachable, |entry| entry.why_down)
    }

    fn troubles(&self) -> Vec<ConnectionTrouble> {
        self.state.troubles.clone()
    }

    fn may_return(&self) -> bool {
        match (self.state.setup.reconnect, self.down_since) {
            (None, _) => false,
            (Some(limit), Some(since)) => since.elapsed() < limit,
            (Some(_), None) => true,
        }
    }

    fn cancel(&mut self) {
        self.state.cancel_all(&mut self.link);
    }

    fn connect_ns(&self, endpoint: u32) -> Option<u64> {
        let table = &self.state.table;
        let entry = table.endpoints.get(endpoint as usize)?;
        let connection = table.connections.get(entry.connection as usize)?;
        connection.connect_ns
    }

    fn counters(&self) -> RpcCounters {
        let wire = self.link.wire_counts();
        let connections = self.state.table.connections.iter();
        let made = connections.filter(|known| known.connect_ns.is_some());
        RpcCounters {
            connections: u32::try_from(made.count()).unwrap_or(u32::MAX),
            retransmits: wire.retransmits,
            wire_bytes: wire.bytes,
            ..self.state.counters
        }
    }

    fn server_use(&mut self) -> io::Result<Vec<RpcServerUse>> {
        let header = FrameHeader::plain(FrameKind::Ping);
        let echo = self.state.now_ns.to_le_bytes();
        for known in &mut self.state.table.connections {
            known.used = None;
            if known.stage == ConnectionStage::Up {
                self.link.send(known.peer, &header, &[&echo]);
            }
        }
        let until = Instant::now() + ASK;
        let is_silent =
            |known: &ClientConnection| known.stage == ConnectionStage::Up && known.used.is_none();
        while self.state.table.connections.iter().any(is_silent) && Instant::now() < until {
            self.link.flush()?;
            self.link.poll(Some(SLEEP), &mut self.state)?;
        }
        let answered = |known: &ClientConnection| {
            Some(RpcServerUse {
                endpoint: known.endpoint.endpoint,
                cpu: known.used?,
            })
        };
        let connections = self.state.table.connections.iter();
        Ok(connections.filter_map(answered).collect())
    }

    fn close(mut self) -> io::Result<RpcCounters> {
        self.state.cancel_all(&mut self.link);
        for endpoint in &self.state.table.endpoints {
            let known = &self.state.table.connections[endpoint.connection as usize];
            let there = matches!(known.stage, ConnectionStage::Up | ConnectionStage::Leaving);
            if endpoint.session != 0 && there {
                let rpc = RpcId::default();
                let header = FrameHeader::of_call(FrameKind::Close, rpc, endpoint.session);
                self.link.send(known.peer, &header, &[]);
                self.state.closing += 1;
            }
        }
        let until = Instant::now() + CLOSE;
        while self.state.closing > 0 && Instant::now() < until {
            self.link.flush()?;
            self.link.poll(Some(SLEEP), &mut self.state)?;
            let connections = self.state.table.connections.iter();
            let up = |stage| matches!(stage, ConnectionStage::Up | ConnectionStage::Leaving);
            if !connections.into_iter().any(|known| up(known.stage)) {
                break;
            }
        }
        let counters = self.counters();
        for known in &self.state.table.connections {
            self.link.close(known.peer);
        }
        Ok(counters)
    }
}
