//! MPI's calls for single messages: send, receive, both in one, or four begun at once.

use std::rc::Rc;

use weir_sys::buffer::AlignedBuf;
use weir_units::Bytes;
use weir_world::mpi::{Mpi, PeerRank, Requests, Tag};

use super::{FromMpiWorld, facts_of, world_of};
use crate::buffers;
use crate::error::Halt;
use crate::transport::Facts;
use crate::transport::messages::{Messages, Neighbours, RingDirection};
use weir_world::RankComm;
use weir_world::Watchdog;

/// One rank's calls.
pub(super) struct MpiPointToPoint<A: FromMpiWorld> {
    mpi: Rc<Mpi<A>>,
    /// By rank.
    peers: Vec<PeerRank>,
    /// By direction.
    outgoing: Vec<AlignedBuf>,
    incoming: Vec<AlignedBuf>,
    requests: Requests<A>,
}

/// Tag that separates the directions where both neighbours are the same rank.
#[inline]
fn tag(direction: RingDirection) -> Tag {
    match direction {
        RingDirection::Right => Tag::from(0),
        RingDirection::Left => Tag::from(1),
    }
}

impl<A: FromMpiWorld> MpiPointToPoint<A> {
    #[inline]
    fn ends(&self, direction: RingDirection, ring: Neighbours) -> (PeerRank, PeerRank) {
        let (to, from) = ring.along(direction);
        (self.peers[to as usize], self.peers[from as usize])
    }
}

impl<A: FromMpiWorld> Messages for MpiPointToPoint<A> {
    fn open(comm: &RankComm<'_>, watchdog: &Watchdog, _: usize) -> Result<Self, Halt> {
        let mpi = world_of::<A>(comm, watchdog)?;
        let peers = (0..comm.size()).map(|rank| mpi.peer(rank));
        Ok(Self {
            peers: peers.collect::<Result<_, _>>()?,
            mpi,
            outgoing: Vec::new(),
            incoming: Vec::new(),
            requests: Requests::with_capacity(4),
        })
    }

    fn prepare(&mut self, bytes: usize) -> Result<(), Halt> {
        self.outgoing = buffers::some(2, Bytes(bytes as u64))?;
        self.incoming = buffers::some(2, Bytes(bytes as u64))?;
        Ok(())
    }

    fn outgoing(&mut self, direction: RingDirection) -> &mut [u8] {
        self.outgoing[direction.index()].as_mut_slice()
    }

    fn incoming(&mut self, direction: RingDirection) -> &mut [u8] {
        self.incoming[direction.index()].as_mut_slice()
    }

    #[inline]
    fn send(&mut self, direction: RingDirection, to: u32, _: &Watchdog) -> Result<(), Halt> {
        let bytes = self.outgoing[direction.index()].as_slice();
        Ok(self
            .mpi
            .send(self.peers[to as usize], bytes, tag(direction))?)
    }

    #[inline]
    fn receive(&mut self, direction: RingDirection, from: u32, _: &Watchdog) -> Result<(), Halt> {
        let into = self.incoming[direction.index()].as_mut_slice();
        Ok(self
            .mpi
            .receive(self.peers[from as usize], into, tag(direction))?)
    }

    #[inline]
    fn sendrecv(
        &mut self,
        direction: RingDirection,
        ring: Neighbours,
        _: &Watchdog,
    ) -> Result<(), Halt> {
        let (to, from) = self.ends(direction, ring);
        let out = self.outgoing[direction.index()].as_slice();
        let into = self.incoming[direction.index()].as_mut_slice();
        Ok(self.mpi.sendrecv(to, out, from, into, tag(direction))?)
    }

    #[inline]
    fn both_ways(&mut self, ring: Neighbours, _: &Watchdog) -> Result<(), Halt> {
        let ends = RingDirection::BOTH.map(|direction| self.ends(direction, ring));
        let (outgoing, incoming) = (&self.outgoing, &mut self.incoming);
        self.mpi.together(&mut self.requests, |posting| {
            for ((direction, (_, from)), into) in
                RingDirection::BOTH.into_iter().zip(ends).zip(incoming)
            {
                posting.irecv(from, into.as_mut_slice(), tag(direction))?;
            }
            for ((direction, (to, _)), out) in
                RingDirection::BOTH.into_iter().zip(ends).zip(outgoing)
            {
                posting.isend(to, out.as_slice(), tag(direction))?;
            }
            Ok(())
        })?;
        Ok(())
    }

    fn facts(&self) -> Facts {
        facts_of(self.mpi.facts())
    }
}
