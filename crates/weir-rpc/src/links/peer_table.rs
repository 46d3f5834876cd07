//! Table of a link's connections: their places, and what the link knows of each.
//!
//! In: peers that join and leave. Out: what is known of one, if it is not another that has its place
//! by now. The stream link gives out the places; links with streams as their control plane keep
//! their peers at the places that the streams have.

use crate::links::PeerId;
use crate::{DerCode, RpcError};

/// Peers by place.
#[derive(Debug)]
pub(crate) struct PeerTable<T> {
    places: Vec<Option<(PeerId, T)>>,
    /// Uses of each place that was claimed here.
    generations: Vec<u32>,
    free: Vec<u32>,
}

impl<T> Default for PeerTable<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            generations: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> PeerTable<T> {
    /// Claims a place for a new peer. It is given back with [`PeerTable::give_back`].
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn claim(&mut self) -> Result<PeerId, RpcError> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => u32::try_from(self.generations.len())
                .map_err(|_| RpcError::new(DerCode::NoMemory, "too many connections"))?,
        };
        if index as usize == self.generations.len() {
            self.generations.push(0);
        }
        let generation = &mut self.generations[index as usize];
        *generation = generation.wrapping_add(1);
        Ok(PeerId {
            index,
            generation: *generation,
        })
    }

    /// Gives a claimed place back, after its peer has left or has not come.
    pub(crate) fn give_back(&mut self, peer: PeerId) {
        self.free.push(peer.index);
    }

    /// A peer joins; its place is free.
    pub(crate) fn insert(&mut self, peer: PeerId, known: T) {
        let place = peer.index as usize;
        if self.places.len() <= place {
            self.places.resize_with(place + 1, || None);
        }
        self.places[place] = Some((peer, known));
    }

    /// A peer leaves.
    pub(crate) fn remove(&mut self, peer: PeerId) -> Option<T> {
        let place = self.places.get_mut(peer.index as usize)?;
        let (_, known) = place.take_if(|(there, _)| *there == peer)?;
        Some(known)
    }

    /// True if it is there.
    #[inline]
    pub(crate) fn contains(&self, peer: PeerId) -> bool {
        let there = self.places.get(peer.index as usize);
        matches!(there, Some(Some((there, _))) if *there == peer)
    }

    /// Entry of a peer.
    #[inline]
    pub(crate) fn get(&mut self, peer: PeerId) -> Option<&mut T> {
        match self.places.get_mut(peer.index as usize) {
            Some(Some((there, known))) if *there == peer => Some(known),
            _ => None,
        }
    }

    /// All peers.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (PeerId, &mut T)> {
        let peers = self.places.iter_mut().flatten();
        peers.map(|(peer, known)| (*peer, known))
    }

    /// All that is known of peers.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten().map(|(_, known)| known)
    }

    /// Who is at a place now, and what is known of it.
    #[inline]
    pub(crate) fn at(&mut self, place: u32) -> Option<(PeerId, &mut T)> {
        match self.places.get_mut(place as usize) {
            Some(Some((there, known))) => Some((*there, known)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_claimed_again_is_another_peers() {
        let mut table = PeerTable::<()>::default();
        let (first, second) = (table.claim().unwrap(), table.claim().unwrap());
        assert_eq!((first.index, second.index), (0, 1));
        table.give_back(first);
        let again = table.claim().unwrap();
        assert_eq!((again.index, again.generation), (0, first.generation + 1));
        assert_eq!(table.claim().unwrap().index, 2);
    }

    #[test]
    fn a_place_is_its_present_peers_alone() {
        let mut table = PeerTable::default();
        let peer = |generation| PeerId {
            index: 2,
            generation,
        };
        table.insert(peer(1), 'a');
        assert_eq!(table.get(peer(2)), None);
        assert_eq!(table.remove(peer(2)), None);
        assert_eq!(table.remove(peer(1)), Some('a'));
        assert!(!table.contains(peer(1)) && table.at(2).is_none());
        table.insert(peer(2), 'b');
        assert_eq!(table.at(2), Some((peer(2), &mut 'b')));
        assert!(table.contains(peer(2)) && table.get(peer(1)).is_none());
        assert!(table.at(3).is_none() && table.at(0).is_none());
    }
}
