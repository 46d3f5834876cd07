//! A client's calls: how they begin, wait, go out, and end.
//!
//! In: requests of the load generator. Out: frames, and completions by slot. Not here: what comes
//! from servers (`events`).

use std::collections::VecDeque;
use std::time::Instant;

use weir_schema::{RpcPayloadKind, RpcVerify};

use super::ClientSetup;
use super::endpoints::{ConnectionStage, EndpointStage, EndpointTable};
use super::slots::{SlotStage, SlotTable};
use crate::links::assembly::{Assemblies, send_payload};
use crate::links::{Link, MemoryRange, PeerId, RegionId, Sent};
use crate::service::payload::{fill, payload_sum};
use crate::service::self_test::CLIENT_FILL;
use crate::transport::{ConnectionTrouble, RpcCounters};
use crate::wire::{
    BulkAccess, BulkMode, FrameHeader, FrameKind, PullRange, PushHead, RpcId, bulk_piece, flag,
};
use crate::{DerCode, MemoryAccount, RpcError};

/// Data that a server waits for and that found no room.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldData {
    pub(super) peer: PeerId,
    pub(super) rpc: RpcId,
    pub(super) session: u32,
    pub(super) range: PullRange,
    /// Bytes of it in a frame.
    piece: u64,
}

impl HeldData {
    /// The range of a call's memory that a server asks for, or is to have.
    pub(super) const fn of_call(
        (peer, max_frame): (PeerId, u32),
        header: &FrameHeader,
        range: PullRange,
    ) -> Self {
        Self {
            peer,
            rpc: header.rpc,
            session: header.session,
            range,
            piece: bulk_piece(max_frame),
        }
    }

    /// Sends pieces of the memory, which begins there in its region, one after another; true if no room was left for the rest.
    pub(super) fn send<L: Link>(&mut self, link: &mut L, region: RegionId, begin: u64) -> bool {
        let header = FrameHeader::of_call(FrameKind::BulkData, self.rpc, self.session);
        let PullRange { offset, length } = &mut self.range;
        while *length > 0 {
            let from = MemoryRange::new(region, begin + *offset, self.piece.min(*length));
            let head = PushHead { offset: *offset }.encode();
            match link.send_memory(self.peer, &header, &head, from) {
                Sent::Queued => {
                    *offset += from.length;
                    *length -= from.length;
                }
                Sent::Full => return true,
                Sent::Gone => return false,
            }
        }
        false
    }
}

/// Memory that a server may still read or write for a call that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quarantined {
    pub(super) peer: PeerId,
    pub(super) rpc: RpcId,
    pub(super) region: RegionId,
}

/// State of a client, apart from its link.
#[derive(Debug)]
pub(super) struct ClientState {
    pub(super) setup: ClientSetup,
    pub(super) operation: u16,
    pub(super) table: EndpointTable,
    pub(super) slots: SlotTable,
    /// Calls (slot and generation) that wait, in order.
    pub(super) waiting: VecDeque<RpcId>,
    pub(super) held: VecDeque<HeldData>,
    /// Completions that nobody has taken yet.
    pub(super) ready: VecDeque<(u32, i64)>,
    pub(super) quarantine: Vec<Quarantined>,
    pub(super) spares: Vec<RegionId>,
    pub(super) assemblies: Assemblies,
    pub(super) counters: RpcCounters,
    /// Why sessions were not opened.
    pub(super) refusals: Vec<RpcError>,
    /// Why the last connection was lost.
    pub(super) last_loss: Option<RpcError>,
    /// Troubles of connections and sessions.
    pub(super) troubles: Vec<ConnectionTrouble>,
    /// Sessions whose end is not confirmed yet.
    pub(super) closing: u32,
    /// The time of the present round, in nanoseconds since the client was made.
    pub(super) now_ns: u64,
    /// Limit of a call's time.
    timeout_ns: u64,
    scratch: Vec<u8>,
}

/// Nanoseconds since then.
pub(super) fn nanos(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

impl ClientState {
    pub(super) fn new(setup: ClientSetup) -> Self {
        Self {
            operation: setup.operation(),
            table: EndpointTable::new(
                &setup.endpoints,
                setup.own_connections,
                setup.credits_per_rank,
                setup.quota,
            ),
            slots: SlotTable::new(setup.slots),
            timeout_ns: u64::try_from(setup.timeout.as_nanos()).unwrap_or(u64::MAX),
            setup,
            waiting: VecDeque::new(),
            held: VecDeque::new(),
            ready: VecDeque::new(),
            quarantine: Vec::new(),
            spares: Vec::new(),
            assemblies: Assemblies::new(&MemoryAccount::unlimited()),
            counters: RpcCounters::default(),
            refusals: Vec::new(),
            last_loss: None,
            troubles: Vec::new(),
            closing: 0,
            now_ns: 0,
            scratch: Vec::with_capacity(512),
        }
    }

    /// Notes what befell a connection, or a session on it.
    pub(super) fn note_trouble(&mut self, connection: u32, is_loss: bool, why: &RpcError) {
        // Who was given up has refused nothing.
        if why.code == DerCode::Canceled && !is_loss {
            return;
        }
        let mut known = self.troubles.iter_mut();
        if let Some(known) =
            known.find(|known| known.is_loss == is_loss && known.why.code == why.code)
        {
            known.count += 1;
            return;
        }
        self.troubles.push(ConnectionTrouble {
            endpoint: self.table.connections[connection as usize]
                .endpoint
                .endpoint,
            is_loss,
            when: Instant::now(),
            why: why.clone(),
            count: 1,
        });
    }

    /// An endpoint's session is not to be had.
    pub(super) fn refuse(&mut self, endpoint: u32, why: RpcError) {
        let entry = &mut self.table.endpoints[endpoint as usize];
        (entry.stage, entry.why_down) = (EndpointStage::Down, why.code);
        let connection = entry.connection;
        self.note_trouble(connection, false, &why);
        self.refusals.push(why);
    }

    /// A call begins. The endpoint is up and the slot is free.
    #[inline]
    pub(super) fn begin<L: Link>(&mut self, link: &mut L, endpoint: u32, slot: u32) {
        let entry = self.slots.get(slot);
        let first = entry.generation == 0;
        entry.stage = SlotStage::Waiting;
        entry.generation = entry.generation.wrapping_add(1).max(1);
        entry.endpoint = endpoint;
        entry.check = None;
        entry.pushed = 0;
        entry.since_ns = self.now_ns;
        entry.flags = match self.setup.verify {
            RpcVerify::Full => flag::PATTERN,
            RpcVerify::First if first => flag::PATTERN,
            RpcVerify::Checksum => flag::CHECKSUM,
            RpcVerify::Off | RpcVerify::First => 0,
        };
        if self.waiting.is_empty() && self.table.may_call(endpoint) && self.go_out(link, slot) {
            return;
        }
        self.waiting.push_back(self.slots.rpc(slot));
        self.counters.credit_waits += 1;
    }

    /// Sends a slot's request; whether there was room for it.
    #[inline]
    fn go_out<L: Link>(&mut self, link: &mut L, slot: u32) -> bool {
        let rpc = self.slots.rpc(slot);
        let entry = *self.slots.get(slot);
        let endpoint = self.table.endpoints[entry.endpoint as usize];
        let connection = &self.table.connections[endpoint.connection as usize];
        let header = FrameHeader {
            kind: FrameKind::Request,
            flags: entry.flags,
            word: self.operation,
            rpc,
            session: endpoint.session,
        };
        let sent = if self.setup.payload.buffer() == 0 {
            let plain = FrameHeader { flags: 0, ..header };
            link.send(connection.peer, &plain, &[])
        } else {
            let (peer, max_frame) = (connection.peer, connection.max_frame);
            self.send_request(link, peer, max_frame, header)
        };
        match sent {
            // A loss is reported soon, and ends this call as well.
            Sent::Queued | Sent::Gone => {
                self.slots.get(slot).stage = SlotStage::Out;
                self.table.take(entry.endpoint);
                true
            }
            Sent::Full => false,
        }
    }

    fn send_request<L: Link>(
        &mut self,
        link: &mut L,
        peer: PeerId,
        max_frame: u32,
        mut header: FrameHeader,
    ) -> Sent {
        let payload = self.setup.payload;
        let Some(region) = self.region(link, header.rpc.slot) else {
            // Without memory the call waits, until its time is over.
            return Sent::Full;
        };
        let send = MemoryRange::new(region, 0, payload.request.bytes.into());
        self.scratch.clear();
        let mut by_frames = false;
        if payload.has_bulk() {
            let access = match (payload.request.kind, payload.reply.kind) {
                (RpcPayloadKind::Bulk, RpcPayloadKind::Bulk) => BulkAccess::BOTH,
                (RpcPayloadKind::Bulk, _) => BulkAccess::READ,
                _ => BulkAccess::WRITE,
            };
            let length = payload.buffer();
            let whole = MemoryRange { length, ..send };
            let descriptor = link.describe(peer, whole, access);
            by_frames = descriptor.mode == BulkMode::Frames;
            descriptor.encode(&mut self.scratch);
            header.flags |= flag::BULK;
        }
        let size = payload.request.bytes as usize;
        if header.flags & (flag::PATTERN | flag::CHECKSUM) != 0 {
            self.prepare_check(&mut link.bytes(region)[..size], &header);
        }
        let eager = self.setup.eager && by_frames && payload.request.kind == RpcPayloadKind::Bulk;
        if eager {
            header.flags |= flag::EAGER;
        }
        let sent = if payload.request.kind == RpcPayloadKind::Inline {
            send_payload(link, peer, &header, &self.scratch, send, max_frame)
        } else {
            link.send(peer, &header, &[&self.scratch])
        };
        if sent == Sent::Queued && eager {
            let (offset, length) = (0, send.length);
            let range = PullRange { offset, length };
            self.send_data(link, HeldData::of_call((peer, max_frame), &header, range));
        }
        sent
    }

    /// Checksum or pattern that the server checks a payload by: made once, however often the call finds no room.
    fn prepare_check(&mut self, payload: &mut [u8], header: &FrameHeader) {
        let slot = header.rpc.slot;
        let made = self.slots.get(slot).check;
        let sum = made.unwrap_or_else(|| {
            let began = Instant::now();
            if header.flags & flag::PATTERN != 0 {
                fill(payload, header.rpc);
            }
            let is_summed = header.flags & flag::CHECKSUM != 0;
            let sum = if is_summed { payload_sum(payload) } else { 0 };
            self.counters.verify_ns += nanos(began);
            sum
        });
        self.slots.get(slot).check = Some(sum);
        if header.flags & flag::CHECKSUM != 0 {
            self.scratch.extend_from_slice(&sum.to_le_bytes());
        }
    }

    /// The memory of a slot. A call that has timed out leaves its own behind.
    fn region<L: Link>(&mut self, link: &mut L, slot: u32) -> Option<RegionId> {
        if let Some(region) = self.slots.get(slot).region {
            return Some(region);
        }
        let spare = self.spares.iter().position(|&spare| !link.is_in_use(spare));
        let region = match spare {
            Some(place) => self.spares.swap_remove(place),
            None => self.new_region(link).ok()?,
        };
        self.slots.get(slot).region = Some(region);
        Some(region)
    }

    /// Memory for a slot.
    pub(super) fn new_region<L: Link>(&self, link: &mut L) -> Result<RegionId, RpcError> {
        let bytes = usize::try_from(self.setup.payload.buffer()).unwrap_or(usize::MAX);
        let region = link.allocate(bytes, self.setup.low_byte)?;
        link.bytes(region).fill(CLIENT_FILL);
        Ok(region)
    }

    /// Sends data that a server has asked for, piece by piece; what finds no room is held.
    pub(super) fn send_data<L: Link>(&mut self, link: &mut L, data: HeldData) {
        if self.held.is_empty() {
            self.send_pieces(link, data);
        } else {
            self.held.push_back(data);
        }
    }

    /// Sends the pieces of a range; those without room are held, before all others. Calls that have
    /// ended send nothing any more. True if there was room.
    fn send_pieces<L: Link>(&mut self, link: &mut L, mut data: HeldData) -> bool {
        let slot = self.slots.get(data.rpc.slot);
        let is_out = matches!(slot.stage, SlotStage::Out | SlotStage::Waiting);
        let is_same = is_out && slot.generation == data.rpc.generation;
        let region = slot.region.filter(|_| is_same);
        let is_full = region.is_some_and(|region| data.send(link, region, 0));
        if is_full {
            self.held.push_front(data);
        }
        !is_full
    }

    /// Goes on with what found no room or credits before.
    #[inline]
    pub(super) fn go_on<L: Link>(&mut self, link: &mut L) {
        if !self.held.is_empty() {
            self.send_held(link);
        }
        if !self.waiting.is_empty() {
            self.serve_waiting(link);
        }
    }

    fn send_held<L: Link>(&mut self, link: &mut L) {
        while let Some(data) = self.held.pop_front() {
            if !self.send_pieces(link, data) {
                return;
            }
        }
    }

    fn serve_waiting<L: Link>(&mut self, link: &mut L) {
        for _ in 0..self.waiting.len() {
            let Some(rpc) = self.waiting.pop_front() else {
                return;
            };
            let slot = *self.slots.get(rpc.slot);
            if slot.generation != rpc.generation || slot.stage != SlotStage::Waiting {
                continue;
            }
            if self.table.may_call(slot.endpoint) && self.go_out(link, rpc.slot) {
                self.counters.credit_wait_ns += self.now_ns.saturating_sub(slot.since_ns);
            } else {
                self.waiting.push_back(rpc);
            }
        }
    }

    /// A call ends.
    #[inline]
    pub(super) fn end(&mut self, slot: u32, result: i64) {
        self.slots.get(slot).stage = SlotStage::Free;
        self.ready.push_back((slot, result));
    }

    /// A call ends without an answer: its memory may still be read or written, and its credit is
    /// the server's until the answer comes.
    fn give_up<L: Link>(&mut self, link: &mut L, slot: u32, code: DerCode) {
        let rpc = self.slots.rpc(slot);
        let entry = *self.slots.get(slot);
        if entry.stage == SlotStage::Out {
            let endpoint = self.table.endpoints[entry.endpoint as usize];
            let peer = self.table.connections[endpoint.connection as usize].peer;
            let header = FrameHeader::of_call(FrameKind::Cancel, rpc, endpoint.session);
            link.send(peer, &header, &[]);
            self.table.abandon(entry.endpoint);
            if let Some(region) = self.slots.get(slot).region.take() {
                self.quarantine.push(Quarantined { peer, rpc, region });
            }
        }
        self.end(slot, code.result());
    }

    /// An answer that has come too late, but before anybody looked for calls that take too long, is none.
    #[inline]
    pub(super) fn in_time(&mut self, slot: u32, result: i64) -> i64 {
        let since = self.slots.get(slot).since_ns;
        if result >= 0 && self.now_ns.saturating_sub(since) >= self.timeout_ns {
            return DerCode::TimedOut.result();
        }
        result
    }

    /// Calls that began since a look at the clock that is long past began no earlier than now, as far as is
    /// known: they have their whole time still. Each is found once: no look at the clock has shown its new time.
    #[cold]
    pub(super) fn restamp(&mut self, before_ns: u64) {
        let since_ns = self.now_ns + 1;
        for slot in &mut self.slots.slots {
            if slot.since_ns == before_ns {
                slot.since_ns = since_ns;
            }
        }
    }

    /// Ends calls that have taken too long, and asks silent servers whether they are there.
    pub(super) fn sweep<L: Link>(&mut self, link: &mut L) {
        let (timeout, now) = (self.timeout_ns, self.now_ns);
        for slot in 0..self.setup.slots {
            let entry = self.slots.get(slot);
            if entry.stage != SlotStage::Free && now.saturating_sub(entry.since_ns) >= timeout {
                self.give_up(link, slot, DerCode::TimedOut);
            }
        }
        for connection in &mut self.table.connections {
            let silent = now.saturating_sub(connection.heard_ns) > 1_000_000_000;
            let there = connection.stage == ConnectionStage::Up && connection.out > 0;
            if silent && there && !connection.pinged {
                connection.pinged = true;
                let header = FrameHeader::plain(FrameKind::Ping);
                link.send(connection.peer, &header, &[&now.to_le_bytes()]);
            }
        }
    }

    /// Gives up all calls.
    pub(super) fn cancel_all<L: Link>(&mut self, link: &mut L) {
        for slot in 0..self.setup.slots {
            if self.slots.get(slot).stage != SlotStage::Free {
                self.give_up(link, slot, DerCode::Canceled);
            }
        }
        self.waiting.clear();
        self.held.clear();
    }

    /// No call of an endpoint can end well any more: those that are out or wait end now.
    pub(super) fn fail_connection(&mut self, connection: u32, only_waiting: bool) {
        self.table.set_why_down(connection, DerCode::Unreachable);
        for place in 0..self.table.connections[connection as usize].endpoints.len() {
            let endpoint = self.table.connections[connection as usize].endpoints[place];
            self.table.endpoints[endpoint as usize].stage = EndpointStage::Down;
        }
        for slot in 0..self.setup.slots {
            let entry = *self.slots.get(slot);
            let endpoint = self.table.endpoints.get(entry.endpoint as usize);
            if endpoint.is_none_or(|endpoint| endpoint.connection != connection) {
                continue;
            }
            match entry.stage {
                SlotStage::Free => {}
                SlotStage::Out if only_waiting => {}
                SlotStage::Out => {
                    self.table.give(entry.endpoint);
                    self.end(slot, DerCode::Unreachable.result());
                }
                SlotStage::Waiting => self.end(slot, DerCode::Unreachable.result()),
            }
        }
    }
}
