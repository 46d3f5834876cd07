//! Equal numbers of control messages in both directions between two ranks.
//!
//! The messages that two ranks have sent each other decide where their rings in shared memory stand (see
//! [`super::pieces`]), also before there are rings: Open MPI makes one per direction after so many
//! messages. A rank that sends more than it receives would leave the two directions unlike.

use std::cell::Cell;

use super::abi::Abi;
use super::error::MpiError;
use super::nonblocking::Requests;
use super::pieces::SHORTEST;
use super::rank::{Mpi, PeerRank, Tag};

/// Control messages posted so far, by the rank they are for.
#[derive(Debug)]
pub(super) struct PostedCounts(Vec<Cell<u64>>);

impl PostedCounts {
    pub(super) fn for_ranks(size: usize) -> Self {
        Self(vec![Cell::new(0); size])
    }

    fn of(&self, peer: PeerRank) -> &Cell<u64> {
        &self.0[peer.0.unsigned_abs() as usize]
    }

    pub(super) fn count(&self, to: PeerRank, messages: usize) {
        let so_far = self.of(to);
        so_far.set(so_far.get() + messages as u64);
    }
}

impl<A: Abi> Mpi<A> {
    /// Evens out what was sent between this rank and each of these, once each, which all do the
    /// same at the same time: how many messages that took. Has no time limit: for right before
    /// what is measured.
    ///
    /// # Errors
    /// The library's.
    pub fn level(&self, peers: &[PeerRank]) -> Result<u64, MpiError> {
        let of = |peer: &PeerRank| self.posted.of(*peer).get();
        let mine: Vec<_> = peers.iter().map(|peer| of(peer).to_le_bytes()).collect();
        let mut theirs = vec![[0; size_of::<u64>()]; peers.len()];
        let mut requests = Requests::with_capacity(2 * peers.len());
        self.together(&mut requests, |posting| {
            for (peer, into) in peers.iter().zip(&mut theirs) {
                posting.irecv(*peer, into, Tag::LEVEL)?;
            }
            for (peer, count) in peers.iter().zip(&mine) {
                posting.isend(*peer, count, Tag::LEVEL)?;
            }
            Ok(())
        })?;
        let (filler, mut room) = ([0; SHORTEST], [0; SHORTEST]);
        let room = Cell::from_mut(&mut room[..]).as_slice_of_cells();
        self.together(&mut requests, |posting| {
            let mut fillers = 0;
            for (peer, theirs) in peers.iter().zip(&theirs) {
                let (mine, theirs) = (of(peer), u64::from_le_bytes(*theirs));
                for _ in mine..theirs {
                    posting.isend(*peer, &filler, Tag::LEVEL)?;
                }
                for _ in theirs..mine {
                    posting.irecv_over(*peer, room, Tag::LEVEL)?;
                }
                self.posted.of(*peer).set(mine.max(theirs));
                fillers += mine.abs_diff(theirs);
            }
            Ok(fillers)
        })
    }
}
