//! MPI's calls for single messages: send, receive, both in one, or four begun at once.

use std::rc::Rc;

use weir_sys::buffer::AlignedBuf;
use weir_units::Bytes;
use weir_world::mpi::{Mpi, Peer, Requests, Tag};

use super::{Family, facts_of, world_of};
use crate::buffers;
use crate::error::Halt;
use crate::transport::Facts;
use crate::transport::messages::{Messages, Neighbours, Way};
use weir_world::RankComm;
use weir_world::Watchdog;

/// One rank's calls.
pub(super) struct Directed<A: Family> {
    mpi: Rc<Mpi<A>>,
    /// By rank.
    peers: Vec<Peer>,
    /// By way.
    outgoing: Vec<AlignedBuf>,
    incoming: Vec<AlignedBuf>,
    requests: Requests<A>,
}

/// What tells the ways apart where both neighbours are the same rank.
#[inline]
fn tag(way: Way) -> Tag {
    match way {
        Way::Right => Tag::from(0),
        Way::Left => Tag::from(1),
    }
}

impl<A: Family> Directed<A> {
    #[inline]
    fn ends(&self, way: Way, ring: Neighbours) -> (Peer, Peer) {
        let (to, from) = ring.along(way);
        (self.peers[to as usize], self.peers[from as usize])
    }
}

impl<A: Family> Messages for Directed<A> {
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

    fn outgoing(&mut self, way: Way) -> &mut [u8] {
        self.outgoing[way.index()].as_mut_slice()
    }

    fn incoming(&mut self, way: Way) -> &mut [u8] {
        self.incoming[way.index()].as_mut_slice()
    }

    #[inline]
    fn send(&mut self, way: Way, to: u32, _: &Watchdog) -> Result<(), Halt> {
        let bytes = self.outgoing[way.index()].as_slice();
        Ok(self.mpi.send(self.peers[to as usize], bytes, tag(way))?)
    }

    #[inline]
    fn receive(&mut self, way: Way, from: u32, _: &Watchdog) -> Result<(), Halt> {
        let into = self.incoming[way.index()].as_mut_slice();
        Ok(self
            .mpi
            .receive(self.peers[from as usize], into, tag(way))?)
    }

    #[inline]
    fn sendrecv(&mut self, way: Way, ring: Neighbours, _: &Watchdog) -> Result<(), Halt> {
        let (to, from) = self.ends(way, ring);
        let out = self.outgoing[way.index()].as_slice();
        let into = self.incoming[way.index()].as_mut_slice();
        Ok(self.mpi.sendrecv(to, out, from, into, tag(way))?)
    }

    #[inline]
    fn both_ways(&mut self, ring: Neighbours, _: &Watchdog) -> Result<(), Halt> {
        let ends = Way::BOTH.map(|way| self.ends(way, ring));
        let (outgoing, incoming) = (&self.outgoing, &mut self.incoming);
        self.mpi.together(&mut self.requests, |posting| {
            for ((way, (_, from)), into) in Way::BOTH.into_iter().zip(ends).zip(incoming) {
                posting.irecv(from, into.as_mut_slice(), tag(way))?;
            }
            for ((way, (to, _)), out) in Way::BOTH.into_iter().zip(ends).zip(outgoing) {
                posting.isend(to, out.as_slice(), tag(way))?;
            }
            Ok(())
        })?;
        Ok(())
    }

    fn facts(&self) -> Facts {
        facts_of(self.mpi.facts())
    }
}
