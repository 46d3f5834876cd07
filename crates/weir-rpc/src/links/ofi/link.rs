//! The link over a fabric: calls in messages, bulk data by moves of remote memory.
//!
//! In: an offer of a provider, streams whose handshake is done. Out: frames and ended moves to a
//! handler. Calls and their answers go over the fabric; everything else goes over the streams, whose
//! end is a peer's end. Providers do not say who sent a message, so that every message begins with a
//! mark that the client drew, and a number that counts the messages of one peer. What a provider
//! does not take at once is kept for each peer and tried again, until the peer counts as lost. Not
//! here: libfabric's calls (`endpoint`, `remote_memory`), what frames mean (`client`, `server`).

mod addresses;
mod incoming;
mod outgoing;
mod peer;
mod transfers;

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use weir_schema::RpcPoll;

use self::addresses::AddressBook;
use self::peer::{FabricLinkPeer, MARKED};
use self::transfers::MoveTable;
use super::completion::{COMPLETIONS_AT_ONCE, FabricCompletion};
use super::endpoint::FabricEndpoint;
use super::endpoint_parts::EndpointSizes;
use super::offer::{FabricFacts, FabricOffer};
use super::remote_memory::MessagePart;
use crate::links::peer_table::PeerTable;
use crate::links::stream::{Collected, CollectedEvent, StreamLink};
use crate::links::{
    Link, LinkGreeting, LinkHandler, LinkSide, LinkWaker, MemoryRange, MoveDirection, NewPeer,
    PeerId, RegionId, Sent,
};
use crate::wire::{BulkAccess, BulkDescriptor, BulkMode, BulkSegment, FrameHeader, HEADER};
use crate::{DerCode, MemoryAccount, RpcError};

/// Rounds between two looks at the streams, while the fabric is busy.
const LOOK_AT_STREAMS: u32 = 64;
/// Looks at the fabric before the end of a stream is believed: its last answers may come later.
const LOOKS_BEFORE_AN_END: u32 = 16;
/// Shortest and longest sleep of a wait where the provider has nothing to sleep on.
const NAPS: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(1)];
/// Longest sleep of a wait where it has: providers want to be polled now and then.
const LONG_NAP: Duration = Duration::from_millis(100);

/// For so long a wait may be woken for nothing before it sleeps all the same.
const FRUITLESS: Duration = Duration::from_micros(200);

/// Settings of a link over a provider.
#[derive(Clone, Copy, Debug)]
pub struct OfiSettings {
    /// Sizes of its endpoint.
    pub sizes: EndpointSizes,
    /// Waits of its thread.
    pub waiting: RpcPoll,
    /// A peer for which the provider takes nothing for so long is lost.
    pub patience: Duration,
}

impl OfiSettings {
    /// For a thread that looks for work in this way.
    pub fn of(waiting: RpcPoll) -> Self {
        Self {
            sizes: EndpointSizes::default(),
            waiting,
            patience: Duration::from_secs(60),
        }
    }
}

/// Loss of a connection, until the next poll reports it.
type Loss = (PeerId, RpcError);

/// One thread's connections to its peers over a fabric. `RMA` says whether its provider moves memory, which
/// [`FabricFacts::has_remote_memory`] says before.
pub struct OfiLink<const RMA: bool> {
    endpoint: FabricEndpoint,
    control: StreamLink,
    collected: Collected,
    settings: OfiSettings,
    /// By the place of their stream.
    peers: PeerTable<FabricLinkPeer>,
    addresses: AddressBook,
    moves: MoveTable,
    marks: HashMap<u64, u32>,
    /// Whose message came last.
    last_mark: (u64, u32),
    draws: (RandomState, u64),
    pending_mark: u64,
    completions: Vec<FabricCompletion>,
    /// Receives that are read and not posted again.
    unposted: Vec<u32>,
    /// Peers with an open message.
    dirty: Vec<u32>,
    /// Peers with something that the provider did not take.
    stalled: Vec<u32>,
    lost: Vec<Loss>,
    /// Messages of peers whose handshake is not done here yet.
    strangers: Vec<Vec<u8>>,
    /// Account of what peers make a server hold.
    account: MemoryAccount,
    /// Room for the next frame that is longer than a message.
    spare: Vec<u8>,
    replay: bool,
    /// Messages that nobody here sent or expects.
    strays: u64,
    round: u32,
}

impl<const RMA: bool> OfiLink<RMA> {
    /// Opens an endpoint of the offer, without connections.
    ///
    /// # Errors
    /// The provider refuses, memory cannot be had, or no descriptors are left.
    pub fn open(offer: FabricOffer, settings: OfiSettings) -> Result<Self, RpcError> {
        let endpoint = FabricEndpoint::open(offer, settings.sizes, settings.waiting)?;
        if endpoint.sizes().message_bytes <= MARKED + HEADER {
            let text = "messages of this fabric are too short for calls";
            return Err(RpcError::new(DerCode::Invalid, text));
        }
        let control = StreamLink::new()?;
        if let Some(descriptor) = endpoint.descriptor() {
            control.watch(descriptor)?;
        }
        Ok(Self {
            endpoint,
            control,
            collected: Collected::default(),
            settings,
            peers: PeerTable::default(),
            addresses: AddressBook::default(),
            moves: MoveTable::default(),
            marks: HashMap::new(),
            last_mark: (0, u32::MAX),
            draws: (RandomState::new(), 0),
            pending_mark: 0,
            completions: Vec::with_capacity(COMPLETIONS_AT_ONCE),
            unposted: Vec::new(),
            dirty: Vec::new(),
            stalled: Vec::new(),
            lost: Vec::new(),
            strangers: Vec::new(),
            account: MemoryAccount::unlimited(),
            spare: Vec::new(),
            replay: false,
            strays: 0,
            round: 0,
        })
    }

    /// Facts that decide how its provider is used.
    pub fn facts(&self) -> &FabricFacts {
        self.endpoint.facts()
    }

    /// Messages that nobody sent whom it knows.
    pub fn strays(&self) -> u64 {
        self.strays
    }

    /// It is there and not about to count as lost.
    fn is_sound(&mut self, peer: PeerId) -> bool {
        self.peers.get(peer).is_some_and(|found| !found.is_broken)
    }

    /// The peer is lost, as the next poll says.
    #[cold]
    fn break_off(&mut self, peer: PeerId, why: RpcError) {
        if let Some(found) = self.peers.get(peer)
            && !found.is_broken
        {
            found.is_broken = true;
            self.lost.push((peer, why));
        }
    }

    /// Lets go of a peer and of everything that was kept for it.
    fn forget(&mut self, peer: PeerId) {
        let Some(mut found) = self.peers.remove(peer) else {
            return;
        };
        found.drop_messages(&mut self.endpoint);
        self.moves.drop_waiting(peer);
        self.marks.remove(&found.mark);
        self.last_mark = (0, u32::MAX);
        self.dirty.retain(|&index| index != peer.index);
        self.stalled.retain(|&index| index != peer.index);
        self.addresses
            .leave(&mut self.endpoint, peer, found.address, found.in_flight);
    }

    fn post_receives(&mut self) -> io::Result<()> {
        while let Some(&slot) = self.unposted.last() {
            match self.endpoint.receive(slot) {
                Ok(super::FabricPosted::Taken) => {
                    self.unposted.pop();
                }
                Ok(super::FabricPosted::Again) => break,
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(())
    }

    fn poll_streams<H: LinkHandler<Self>>(
        &mut self,
        wait: Option<Duration>,
        handler: &mut H,
    ) -> io::Result<u32> {
        let mut seen = self.control.poll(wait, &mut self.collected)?;
        let events = std::mem::take(&mut self.collected.events);
        let is_end = |event: &CollectedEvent| matches!(event, CollectedEvent::Lost(..));
        if events.iter().any(is_end) {
            // What was sent before the end counts.
            for _ in 0..LOOKS_BEFORE_AN_END {
                seen += self.poll_fabric(handler)?;
            }
        }
        for event in events {
            match event {
                CollectedEvent::Message(peer, header, body) => {
                    handler.message(self, peer, &header, &body);
                }
                CollectedEvent::Lost(peer, why) => {
                    self.forget(peer);
                    handler.lost(self, peer, why);
                }
            }
        }
        Ok(seen)
    }

    fn report_lost<H: LinkHandler<Self>>(&mut self, handler: &mut H) -> u32 {
        let mut events = 0;
        for (peer, why) in std::mem::take(&mut self.lost) {
            if self.peers.contains(peer) {
                self.forget(peer);
                self.control.close(peer);
                handler.lost(self, peer, why);
                events += 1;
            }
        }
        events
    }

    /// Everything that is there now.
    fn look<H: LinkHandler<Self>>(&mut self, handler: &mut H) -> io::Result<u32> {
        let mut events = self.poll_fabric(handler)?;
        if self.replay {
            events += self.replay_strangers(handler);
        }
        if self.moves.has_refused() {
            events += self.report_refused(handler);
        }
        if !self.stalled.is_empty() {
            self.try_again();
        }
        self.round = self.round.wrapping_add(1);
        if self.round.is_multiple_of(LOOK_AT_STREAMS) {
            events += self.poll_streams(None, handler)?;
        }
        if !self.lost.is_empty() {
            events += self.report_lost(handler);
        }
        Ok(events)
    }
}

impl<const RMA: bool> Link for OfiLink<RMA> {
    const REMOTE_MEMORY: bool = RMA;
    const KEEPS_ANSWERS: bool = true;

    fn allocate(&mut self, bytes: usize, low_byte: Option<u8>) -> Result<RegionId, RpcError> {
        Ok(self.endpoint.allocate(bytes, low_byte.unwrap_or(0))?)
    }

    fn release(&mut self, region: RegionId) {
        self.moves.release(&mut self.endpoint, region);
    }

    #[inline]
    fn bytes(&mut self, region: RegionId) -> &mut [u8] {
        self.endpoint.bytes(region)
    }

    fn describe(&self, _: PeerId, range: MemoryRange, access: BulkAccess) -> BulkDescriptor {
        let remote = || self.endpoint.remote(range.region, range.offset);
        let remote = RMA.then(remote).flatten();
        let (mode, address, key) = match remote {
            Some(remote) => (BulkMode::Fabric, remote.address, remote.key),
            None => (BulkMode::Frames, range.offset, 0),
        };
        let part = BulkSegment {
            address,
            length: range.length,
            key,
        };
        BulkDescriptor::one(mode, access, range.region.0, part)
    }

    fn greeting(&mut self) -> Result<LinkGreeting, RpcError> {
        let address = self.endpoint.address()?;
        let (random, count) = &mut self.draws;
        *count += 1;
        self.pending_mark = random.hash_one(*count);
        Ok(LinkGreeting {
            address: addresses::greeting(self.facts().address_format, self.pending_mark, &address),
            passed: Vec::new(),
        })
    }

    fn join(&mut self, peer: NewPeer) -> Result<PeerId, RpcError> {
        if peer.side == LinkSide::Server && peer.greeting.address.is_empty() {
            // It orders tests, over the stream alone; whoever answers a call of it finds nobody.
            return self.control.join(peer);
        }
        let (format, mark, address) = addresses::of_greeting(&peer.greeting.address)?;
        if format != self.facts().address_format {
            let text = format!(
                "the other side is on another kind of fabric than {}",
                self.facts().provider
            );
            return Err(RpcError::new(DerCode::Unreachable, text));
        }
        let mark = match peer.side {
            LinkSide::Client => self.pending_mark,
            LinkSide::Server => mark,
        };
        if self.marks.contains_key(&mark) {
            return Err(RpcError::protocol("this mark is another connection's"));
        }
        let address = self.addresses.enter(&mut self.endpoint, address)?;
        let max_frame = peer.max_frame;
        let id = match self.control.join(peer) {
            Ok(id) => id,
            Err(error) => {
                let nobody = PeerId::default();
                self.addresses.leave(&mut self.endpoint, nobody, address, 0);
                return Err(error);
            }
        };
        let known = FabricLinkPeer::new(id, (address, mark), max_frame, &self.account);
        self.peers.insert(id, known);
        self.marks.insert(mark, id.index);
        self.replay = !self.strangers.is_empty();
        Ok(id)
    }

    #[inline]
    fn send(&mut self, peer: PeerId, header: &FrameHeader, body: &[&[u8]]) -> Sent {
        if !header.kind.is_data() {
            return self.control.send(peer, header, body);
        }
        match *body {
            [] => self.send_parts(peer, header, &[]),
            [part] => self.send_parts(peer, header, &[MessagePart::Bytes(part)]),
            [one, other] => {
                let parts = [one, other].map(MessagePart::Bytes);
                self.send_parts(peer, header, &parts)
            }
            _ => {
                let parts: Vec<_> = body.iter().copied().map(MessagePart::Bytes).collect();
                self.send_parts(peer, header, &parts)
            }
        }
    }

    fn send_memory(
        &mut self,
        peer: PeerId,
        header: &FrameHeader,
        head: &[u8],
        from: MemoryRange,
    ) -> Sent {
        let range = usize::try_from(from.offset).ok();
        let Some((offset, len)) = range.zip(usize::try_from(from.length).ok()) else {
            return Sent::Gone;
        };
        // The frame is copied into messages: what a provider takes in one piece is shorter.
        let memory = MessagePart::Memory(from.region, offset, len);
        self.send_parts(peer, header, &[MessagePart::Bytes(head), memory])
    }

    fn move_memory(
        &mut self,
        direction: MoveDirection,
        peer: PeerId,
        remote: (&BulkDescriptor, u64),
        own: MemoryRange,
        token: u64,
    ) -> Sent {
        self.begin_move(direction, peer, remote, own, token)
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        while let Some(index) = self.dirty.pop() {
            self.push_out(index);
        }
        self.control.flush()
    }

    fn poll<H: LinkHandler<Self>>(
        &mut self,
        wait: Option<Duration>,
        handler: &mut H,
    ) -> io::Result<u32> {
        let mut events = self.look(handler)?;
        let (Some(wait), 0) = (wait, events) else {
            return Ok(events);
        };
        let start = Instant::now();
        let mut nap = NAPS[0];
        let mut looks_again = true;
        while events == 0 {
            let left = wait.saturating_sub(start.elapsed());
            let has_descriptor = self.endpoint.descriptor().is_some();
            let most = if !has_descriptor || !self.stalled.is_empty() {
                nap
            } else if self.endpoint.may_sleep() {
                LONG_NAP
            } else if std::mem::take(&mut looks_again) {
                Duration::ZERO
            } else {
                nap
            };
            let (sleep, slept) = (left.min(most), Instant::now());
            events += self.poll_streams(Some(sleep), handler)?;
            let was_woken = slept.elapsed() < sleep;
            events += self.look(handler)?;
            if left.is_zero() {
                break;
            }
            if was_woken && events == 0 && start.elapsed() > FRUITLESS {
                // Descriptors of providers stay readable while connections are made, and with every piece of
                // long data: who looks on and on takes the CPU from those who answer.
                thread::sleep(left.min(nap));
            }
            nap = (nap * 2).min(NAPS[1]);
        }
        Ok(events)
    }

    fn is_congested(&mut self, peer: PeerId) -> bool {
        let known = self.peers.get(peer);
        known.is_some_and(|peer| peer.is_congested())
    }

    fn limit_memory(&mut self, account: MemoryAccount) {
        self.account = account.clone();
        self.control.limit_memory(account);
    }

    fn waker(&self) -> LinkWaker {
        self.control.waker()
    }

    fn is_in_use(&self, region: RegionId) -> bool {
        self.endpoint.is_moving(region) || self.moves.waits_for(region)
    }

    fn close(&mut self, peer: PeerId) {
        if self.peers.contains(peer) {
            self.push_out(peer.index);
            self.forget(peer);
        }
        self.control.close(peer);
    }

    fn close_stale(&mut self, limit: Duration) -> Vec<PeerId> {
        let stale = self.control.close_stale(limit);
        for &peer in &stale {
            self.forget(peer);
        }
        stale
    }
}

#[cfg(test)]
mod tests;
