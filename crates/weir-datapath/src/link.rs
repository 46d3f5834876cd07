//! The link between dispatchers of client and server, one queue each way.
//!
//! In: frames to be sent. Out: frames that came. A link takes as many as it has room for and never
//! waits. What there is: [`RingLink`], rings in the memory of the process, by which buffers themselves
//! travel; [`SocketLink`], sockets of the kernel, which copies. A packet goes to the dispatcher that its
//! UDP port names.

use crate::copy_link::CopyLink;
use crate::counts::ThreadCounts;
use crate::dpdk_library::DpdkQueue;
use crate::frame::target_port;
use crate::pool::{BufferReceiver, BufferSender, PacketBuffer, Pool};
use crate::shm_link::ShmLink;
use crate::verbs::VerbsQueue;
use crate::xdp_link::XdpLink;

mod alone;
mod choice;
mod datagrams;
mod socket_link;
mod states;

pub(crate) use alone::{LoneLink, LoneRound, request_maker};
pub(crate) use choice::LinkChoice;
pub(crate) use socket_link::{SocketKind, SocketLink};
pub use states::{LinkState, link_states};

/// Link that dispatchers send and receive by.
pub(crate) trait PacketLink: Send {
    /// Takes packets from the front, as many as there is room for; how many.
    fn send(&mut self, pool: &mut Pool, packets: &mut Vec<PacketBuffer>) -> usize;

    /// Appends packets that have come, at most so many; how many.
    fn receive(&mut self, pool: &mut Pool, into: &mut Vec<PacketBuffer>, most: usize) -> usize;

    /// True if it can send packets back from where they lie.
    fn turns_in_place(&self) -> bool {
        false
    }

    /// Takes packets where they lie, at most so many; how many. None before the last were given back.
    fn take_in_place(&mut self, _most: usize) -> usize {
        0
    }

    /// Has each packet changed that was taken so.
    fn change_in_place(&mut self, _change: impl FnMut(&mut [u8])) {}

    /// Sends those packets back, as far as there is room; how many.
    fn give_back(&mut self) -> usize {
        0
    }

    /// Packets that have come and were not taken yet, where the link knows; and how many there can be.
    fn waiting(&mut self) -> Option<(u32, u32)> {
        None
    }

    /// Counts what it alone knows of what came since this was last asked: packets of somebody else than the other side,
    /// which were passed over.
    fn count(&mut self, _counts: &mut ThreadCounts) {}

    /// Packets that came and found no room, where the link knows.
    fn dropped(&self) -> Option<u64> {
        None
    }

    /// Why it carries nothing any more, said once.
    fn trouble(&mut self) -> Option<String> {
        None
    }

    /// Frees buffers that it holds; what lies in a device is the device's.
    fn close(&mut self, _pool: &mut Pool) {}
}

/// One of the links: chosen once per burst, which costs less than a loop of its own for each would.
pub(crate) enum AnyLink {
    Ring(Box<RingLink>),
    Socket(SocketLink),
    Xdp(Box<XdpLink>),
    Shm(Box<ShmLink>),
    Dpdk(CopyLink<DpdkQueue>),
    Verbs(Box<CopyLink<VerbsQueue>>),
    Alone(Box<LoneLink>),
}

/// The same call of any of the links.
macro_rules! of_each {
    ($any:expr, $link:ident => $call:expr) => {
        match $any {
            AnyLink::Ring($link) => $call,
            AnyLink::Socket($link) => $call,
            AnyLink::Xdp($link) => $call,
            AnyLink::Shm($link) => $call,
            AnyLink::Dpdk($link) => $call,
            AnyLink::Verbs($link) => $call,
            AnyLink::Alone($link) => $call,
        }
    };
}

impl PacketLink for AnyLink {
    #[inline]
    fn send(&mut self, pool: &mut Pool, packets: &mut Vec<PacketBuffer>) -> usize {
        of_each!(self, link => link.send(pool, packets))
    }

    #[inline]
    fn receive(&mut self, pool: &mut Pool, into: &mut Vec<PacketBuffer>, most: usize) -> usize {
        of_each!(self, link => link.receive(pool, into, most))
    }

    fn turns_in_place(&self) -> bool {
        matches!(self, Self::Dpdk(_))
    }

    #[inline]
    fn take_in_place(&mut self, most: usize) -> usize {
        of_each!(self, link => link.take_in_place(most))
    }

    #[inline]
    fn change_in_place(&mut self, change: impl FnMut(&mut [u8])) {
        of_each!(self, link => link.change_in_place(change));
    }

    #[inline]
    fn give_back(&mut self) -> usize {
        of_each!(self, link => link.give_back())
    }

    #[inline]
    fn waiting(&mut self) -> Option<(u32, u32)> {
        of_each!(self, link => link.waiting())
    }

    #[inline]
    fn count(&mut self, counts: &mut ThreadCounts) {
        match self {
            Self::Socket(link) => link.count(counts),
            Self::Alone(link) => link.count(counts),
            _ => {}
        }
    }

    fn dropped(&self) -> Option<u64> {
        of_each!(self, link => link.dropped())
    }

    fn trouble(&mut self) -> Option<String> {
        of_each!(self, link => link.trouble())
    }

    fn close(&mut self, pool: &mut Pool) {
        of_each!(self, link => link.close(pool));
    }
}

/// Rings in memory.
#[derive(Debug)]
pub(crate) struct RingLink {
    /// To each dispatcher of the other side.
    to: Vec<BufferSender>,
    places: PlacesByPort,
    from: Vec<BufferReceiver>,
    /// Which is looked at first next time.
    next: usize,
    /// Kept for its room.
    spare: Vec<PacketBuffer>,
    /// Packets sent before the other side sees them.
    post_tx: usize,
    /// Packets taken before their slots are given back.
    post_rx: usize,
    taken: usize,
    slots: u32,
}

/// Parts that a ring link is made of.
#[derive(Debug)]
pub(crate) struct RingLinkParts {
    /// To each dispatcher of the other side, with its number.
    pub(crate) to: Vec<(u8, BufferSender)>,
    pub(crate) from: Vec<BufferReceiver>,
    pub(crate) first_port: u16,
    pub(crate) post_tx: u32,
    pub(crate) post_rx: u32,
}

impl RingLink {
    pub(crate) fn new(parts: RingLinkParts) -> Self {
        let mut by_thread = [None; 16];
        for (place, (thread, _)) in parts.to.iter().enumerate() {
            by_thread[usize::from(thread & 15)] = Some(place);
        }
        let slots = parts.to.iter().map(|(_, ring)| ring.capacity()).sum();
        Self {
            to: parts.to.into_iter().map(|(_, ring)| ring).collect(),
            places: PlacesByPort {
                by_thread,
                first_port: parts.first_port,
            },
            from: parts.from,
            next: 0,
            spare: Vec::new(),
            post_tx: parts.post_tx.max(1) as usize,
            post_rx: parts.post_rx.max(1) as usize,
            taken: 0,
            slots,
        }
    }
}

/// Where frames go.
#[derive(Debug)]
struct PlacesByPort {
    /// Places of the other side's dispatchers, by number.
    by_thread: [Option<usize>; 16],
    first_port: u16,
}

impl PlacesByPort {
    /// Where a frame goes; what names nobody arrives at the first.
    #[inline]
    fn of(&self, frame: &[u8]) -> usize {
        let port = target_port(frame).unwrap_or(self.first_port);
        let thread = usize::from(port.wrapping_sub(self.first_port));
        let place = self.by_thread.get(thread).copied().flatten();
        place.unwrap_or(0)
    }
}

impl PacketLink for RingLink {
    #[inline]
    fn send(&mut self, pool: &mut Pool, packets: &mut Vec<PacketBuffer>) -> usize {
        if let [only] = &mut *self.to {
            let sent = only.room(packets.len());
            let mut all = packets.drain(..sent);
            while only.push_many(&mut all, self.post_tx) > 0 {
                only.publish();
            }
            return sent;
        }
        // In order, up to the first that finds no room where it goes.
        std::mem::swap(packets, &mut self.spare);
        let mut taken = self.spare.drain(..);
        let mut sent = 0;
        let left = loop {
            let Some(buffer) = taken.next() else {
                break None;
            };
            let to = &mut self.to[self.places.of(pool.memory.frame(&buffer))];
            if let Err(buffer) = to.push(buffer) {
                break Some(buffer);
            }
            sent += 1;
            if sent % self.post_tx == 0 {
                to.publish();
            }
        };
        packets.extend(left.into_iter().chain(taken));
        self.to.iter_mut().for_each(BufferSender::publish);
        sent
    }

    #[inline]
    fn receive(&mut self, _: &mut Pool, into: &mut Vec<PacketBuffer>, most: usize) -> usize {
        let mut received = 0;
        for step in 0..self.from.len() {
            let at = self.next + step;
            // Less than twice as many: no division, which takes longer than the rest of a pass for nothing.
            let at = at.checked_sub(self.from.len()).unwrap_or(at);
            received += self.from[at].pop_into(most - received, into);
        }
        self.next += 1;
        if self.next >= self.from.len() {
            self.next = 0;
        }
        self.taken += received;
        if self.taken >= self.post_rx || received == 0 && self.taken > 0 {
            self.from.iter_mut().for_each(BufferReceiver::release);
            self.taken = 0;
        }
        received
    }

    fn close(&mut self, pool: &mut Pool) {
        for ring in &mut self.from {
            ring.pop_many(usize::MAX, |buffer| pool.free(buffer));
        }
    }

    fn waiting(&mut self) -> Option<(u32, u32)> {
        let waiting = self.from.iter_mut().map(BufferReceiver::look).sum();
        Some((waiting, self.slots))
    }
}
