//! What a link knows of its peers, by the places that their streams have.
//!
//! In: peers that join and leave. Out: what is known of one, if it is not another that has its place
//! by now.

use crate::links::PeerId;

/// Peers by place.
#[derive(Debug)]
pub(crate) struct PeerTable<T> {
    places: Vec<Option<(PeerId, T)>>,
}

impl<T> Default for PeerTable<T> {
    fn default() -> Self {
        Self { places: Vec::new() }
    }
}

impl<T> PeerTable<T> {
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

    /// Whether it is there.
    #[inline]
    pub(crate) fn contains(&self, peer: PeerId) -> bool {
        let there = self.places.get(peer.index as usize);
        matches!(there, Some(Some((there, _))) if *there == peer)
    }

    /// What is known of a peer.
    #[inline]
    pub(crate) fn get(&mut self, peer: PeerId) -> Option<&mut T> {
        match self.places.get_mut(peer.index as usize) {
            Some(Some((there, known))) if *there == peer => Some(known),
            _ => None,
        }
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
