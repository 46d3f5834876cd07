//! A link without a network, for tests: two sides in one thread, a clock that the test sets, and
//! faults by chance. Frames of calls are lost, come twice or in another order; connections are
//! killed. Everything follows from a seed.

mod answers;
mod faults;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use weir_run::generate::rng::Rng;

use crate::links::stream::RegionTable;
use crate::links::{
    Frame, Link, LinkHandler, LinkSide, LinkWaker, MemoryRange, NewPeer, PeerId, RegionId, Sent,
};
use crate::wire::{BulkAccess, BulkDescriptor, FrameHeader};
use crate::{DerCode, RpcError};

/// Longest time on the way without a fault, in nanoseconds.
const LATENCY_NS: u64 = 50_000;

/// Chances of faults, of each frame of a call; of kills, of each round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) drop: f64,
    pub(crate) duplicate: f64,
    pub(crate) reorder: f64,
    pub(crate) kill: f64,
}

#[derive(Clone, Debug)]
struct Flight {
    due_ns: u64,
    /// Frames of one time keep their order.
    order: u64,
    to: LinkSide,
    peer: PeerId,
    header: FrameHeader,
    body: Vec<u8>,
}

/// Network that both sides share.
pub(crate) struct SimulatedNet {
    pub(crate) now_ns: u64,
    random: Rng,
    faults: Faults,
    flights: Vec<Flight>,
    order: u64,
    /// When the last frame of each way arrives: without faults order is kept.
    last_due_ns: [u64; 2],
    /// Open connections; their places are the same on both sides.
    open: Vec<bool>,
    /// Ends that a side has not heard of.
    ends: [VecDeque<PeerId>; 2],
}

fn side_index(side: LinkSide) -> usize {
    match side {
        LinkSide::Client => 0,
        LinkSide::Server => 1,
    }
}

impl SimulatedNet {
    pub(crate) fn new(seed: u64, faults: Faults) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self {
            now_ns: 0,
            random: Rng::new(seed),
            faults,
            flights: Vec::new(),
            order: 0,
            last_due_ns: [0; 2],
            open: Vec::new(),
            ends: [VecDeque::new(), VecDeque::new()],
        }))
    }

    fn is_open(&self, peer: PeerId) -> bool {
        self.open.get(peer.index as usize) == Some(&true)
    }

    fn launch(&mut self, to: LinkSide, peer: PeerId, header: FrameHeader, body: &[u8]) {
        let faulty = header.kind.is_data();
        let happens = |random: &mut Rng, chance: f64| faulty && random.unit() < chance;
        if happens(&mut self.random, self.faults.drop) {
            return;
        }
        let copies = 1 + u32::from(happens(&mut self.random, self.faults.duplicate));
        for _ in 0..copies {
            let mut due_ns = self.now_ns + self.random.below(LATENCY_NS);
            let last = &mut self.last_due_ns[side_index(to)];
            if happens(&mut self.random, self.faults.reorder) {
                due_ns += 4 * LATENCY_NS;
            } else {
                due_ns = due_ns.max(*last);
                *last = due_ns;
            }
            self.order += 1;
            self.flights.push(Flight {
                due_ns,
                order: self.order,
                to,
                peer,
                header,
                body: body.to_vec(),
            });
        }
    }

    /// Time goes on to the next arrival, or by a millisecond where there is none; perhaps a
    /// connection dies.
    pub(crate) fn step(&mut self) {
        let next = self.flights.iter().map(|flight| flight.due_ns).min();
        self.now_ns = next
            .unwrap_or(u64::MAX)
            .clamp(self.now_ns, self.now_ns + 1_000_000);
        for index in 0..self.open.len() {
            if self.open[index] && self.random.unit() < self.faults.kill {
                self.kill(index);
            }
        }
    }

    fn kill(&mut self, index: usize) {
        self.open[index] = false;
        let peer = PeerId {
            index: u32::try_from(index).unwrap(),
            generation: 1,
        };
        self.flights.retain(|flight| flight.peer != peer);
        self.ends.iter_mut().for_each(|ends| ends.push_back(peer));
    }

    /// The next frame that has arrived.
    fn arrived(&mut self, at: LinkSide) -> Option<Flight> {
        let there = self
            .flights
            .iter()
            .enumerate()
            .filter(|(_, flight)| flight.to == at && flight.due_ns <= self.now_ns);
        let first = there.min_by_key(|(_, flight)| (flight.due_ns, flight.order));
        let place = first.map(|(place, _)| place)?;
        Some(self.flights.swap_remove(place))
    }
}

/// One side.
pub(crate) struct SimulatedLink {
    net: Rc<RefCell<SimulatedNet>>,
    side: LinkSide,
    memory: RegionTable,
    pub(crate) regions: Rc<RefCell<i64>>,
    /// Events besides, whenever this side looks.
    pub(crate) meanwhile: Option<Box<dyn FnMut()>>,
    joined: u32,
}

impl SimulatedLink {
    pub(crate) fn new(net: &Rc<RefCell<SimulatedNet>>, side: LinkSide) -> Self {
        Self {
            net: Rc::clone(net),
            side,
            memory: RegionTable::default(),
            regions: Rc::default(),
            meanwhile: None,
            joined: 0,
        }
    }

    fn other(&self) -> LinkSide {
        match self.side {
            LinkSide::Client => LinkSide::Server,
            LinkSide::Server => LinkSide::Client,
        }
    }
}

impl Link for SimulatedLink {
    const REMOTE_MEMORY: bool = false;

    fn allocate(&mut self, bytes: usize, low_byte: Option<u8>) -> Result<RegionId, RpcError> {
        *self.regions.borrow_mut() += 1;
        self.memory.allocate(bytes, low_byte)
    }

    fn release(&mut self, region: RegionId) {
        *self.regions.borrow_mut() -= 1;
        self.memory.release(region);
    }

    fn bytes(&mut self, region: RegionId) -> &mut [u8] {
        self.memory.bytes(region)
    }

    fn describe(&self, _: PeerId, range: MemoryRange, access: BulkAccess) -> BulkDescriptor {
        BulkDescriptor::of_frames(range.offset, range.length, access)
    }

    fn join(&mut self, _: NewPeer) -> Result<PeerId, RpcError> {
        let peer = PeerId {
            index: self.joined,
            generation: 1,
        };
        self.joined += 1;
        let mut net = self.net.borrow_mut();
        if net.open.len() <= peer.index as usize {
            net.open.push(true);
        }
        Ok(peer)
    }

    fn send(&mut self, peer: PeerId, header: &FrameHeader, body: &[&[u8]]) -> Sent {
        let mut net = self.net.borrow_mut();
        if !net.is_open(peer) {
            return Sent::Gone;
        }
        net.launch(self.other(), peer, *header, &body.concat());
        Sent::Queued
    }

    fn send_memory(
        &mut self,
        peer: PeerId,
        header: &FrameHeader,
        head: &[u8],
        from: MemoryRange,
    ) -> Sent {
        let full = header.waits_for_room() && self.net.borrow_mut().random.below(4) == 0;
        if full {
            return Sent::Full;
        }
        let part = self.memory.part(from).to_vec();
        self.send(peer, header, &[head, &part])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn poll<H: LinkHandler<Self>>(
        &mut self,
        _: Option<Duration>,
        handler: &mut H,
    ) -> io::Result<u32> {
        if let Some(meanwhile) = &mut self.meanwhile {
            meanwhile();
            self.net.borrow_mut().step();
        }
        let mut events = 0;
        loop {
            let ended = self.net.borrow_mut().ends[side_index(self.side)].pop_front();
            let Some(peer) = ended else { break };
            let why = RpcError::new(DerCode::Unreachable, "killed");
            handler.lost(self, peer, why);
            events += 1;
        }
        loop {
            let arrived = self.net.borrow_mut().arrived(self.side);
            let Some(flight) = arrived else { break };
            events += 1;
            let head = flight
                .header
                .head_length()
                .filter(|&head| flight.body.len() > head);
            // Half of all data go straight to memory, as long ones do on streams.
            let place = head.filter(|_| flight.order % 2 == 0).and_then(|head| {
                let (body, data) = flight.body.split_at(head);
                let (peer, header) = (flight.peer, &flight.header);
                handler.destination(Frame { peer, header, body }, data.len() as u64)
            });
            match (place, head) {
                (Some(place), Some(head)) => {
                    let (body, data) = flight.body.split_at(head);
                    self.memory.part_mut(place).copy_from_slice(data);
                    let (peer, header) = (flight.peer, &flight.header);
                    handler.placed(self, Frame { peer, header, body }, place);
                }
                _ => handler.message(self, flight.peer, &flight.header, &flight.body),
            }
        }
        Ok(events)
    }

    fn waker(&self) -> LinkWaker {
        LinkWaker::new(Arc::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap()))
    }

    fn close(&mut self, peer: PeerId) {
        let mut net = self.net.borrow_mut();
        if net.is_open(peer) {
            net.kill(peer.index as usize);
            let own = side_index(self.side);
            net.ends[own].retain(|&ended| ended != peer);
        }
    }
}
