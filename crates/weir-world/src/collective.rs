//! Collective operations over send and receive alone: barrier, broadcast, gather, reduce.
//!
//! Every rank calls the same ones in the same order. Each moves along a binomial tree, so that no
//! rank has more than log2(size) messages to take, except the root of a gather.

use std::time::{Duration, Instant};

use crate::{World, WorldError};

/// Operations that all ranks do together. Each call ends after `limit` at the latest.
pub trait Collectives: World {
    /// Returns on no rank before all have called it: in round k every rank tells the one 2^k
    /// further (dissemination). After an error no rank has to be met again: whoever would wait for
    /// this one in a later barrier has an error too.
    ///
    /// # Errors
    /// A rank is gone or late, or has had such an error.
    fn barrier(&self, limit: Duration) -> Result<(), WorldError> {
        let until = Instant::now() + limit;
        let (rank, size) = (self.rank(), self.size());
        let further = |step| (rank + step) % size;
        let rounds =
            || std::iter::successors(Some(1), |step| Some(step * 2)).take_while(|s| *s < size);
        let met = rounds().try_for_each(|step| {
            self.send(further(step), &[], until)?;
            let from = further(size - step);
            match self.receive(from, until)?.as_slice() {
                [] => Ok(()),
                _ => Err(left(from)),
            }
        });
        if met.is_err() {
            for step in rounds() {
                // Whoever is gone need not hear it.
                let _ = self.send(further(step), FAREWELL, until);
            }
        }
        met
    }

    /// The bytes of the root, on every rank.
    ///
    /// # Errors
    /// A rank is gone or late.
    fn broadcast(&self, root: u32, bytes: Vec<u8>, limit: Duration) -> Result<Vec<u8>, WorldError> {
        let until = Instant::now() + limit;
        let tree = Tree::of(self, root);
        let bytes = match tree.parent() {
            Some(parent) => self.receive(parent, until)?,
            None => bytes,
        };
        for child in tree.children().rev() {
            self.send(child, &bytes, until)?;
        }
        Ok(bytes)
    }

    /// Every rank's bytes at rank 0, in rank order; nothing elsewhere.
    ///
    /// # Errors
    /// A rank is gone or late.
    fn gather(&self, bytes: &[u8], limit: Duration) -> Result<Option<Vec<Vec<u8>>>, WorldError> {
        let until = Instant::now() + limit;
        if self.rank() != 0 {
            return self.send(0, bytes, until).map(|()| None);
        }
        let others = (1..self.size()).map(|from| self.receive(from, until));
        std::iter::once(Ok(bytes.to_vec()))
            .chain(others)
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// All bytes merged pairwise up a tree, at rank 0; nothing elsewhere. `merge` gets the bytes
    /// of lower ranks first, so it need not commute, but has to be associative. What ranks had that
    /// are gone is left out, with what they had merged.
    ///
    /// # Errors
    /// A rank is late, rank 0 is gone, or `merge` refused what came.
    fn reduce(
        &self,
        bytes: Vec<u8>,
        merge: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> Result<Vec<u8>, String>,
        limit: Duration,
    ) -> Result<Option<Vec<u8>>, WorldError> {
        let until = Instant::now() + limit;
        let tree = Tree::of(self, 0);
        let mut mine = bytes;
        let mut awaited: Vec<u32> = tree.children().rev().collect();
        while let Some(peer) = awaited.pop() {
            let theirs = match self.receive(peer, until) {
                Ok(theirs) => theirs,
                Err(WorldError::Gone { .. }) => {
                    // Those below it turn to the next one above.
                    awaited.extend(tree.at(peer).children().rev());
                    continue;
                }
                Err(error) => return Err(error),
            };
            mine = merge(mine, theirs).map_err(|detail| WorldError::Garbled { peer, detail })?;
        }
        let mut above = tree.parent();
        while let Some(parent) = above {
            match self.send(parent, &mine, until) {
                Err(WorldError::Gone { .. }) if parent != 0 => above = tree.at(parent).parent(),
                sent => return sent.map(|()| None),
            }
        }
        Ok(Some(mine))
    }
}

impl<W: World + ?Sized> Collectives for W {}

/// In place of the next message of a barrier.
const FAREWELL: &[u8] = b"left";

fn left(peer: u32) -> WorldError {
    let detail = "it has given up, as another rank is gone".to_owned();
    WorldError::Gone { peer, detail }
}

/// The place of a rank in a binomial tree: the parent is the rank without its lowest set bit.
struct Tree {
    relative: u32,
    root: u32,
    size: u32,
}

impl Tree {
    fn of<W: World + ?Sized>(world: &W, root: u32) -> Self {
        let size = world.size();
        let top = Self {
            relative: 0,
            root,
            size,
        };
        top.at(world.rank())
    }

    /// The place of another rank.
    fn at(&self, rank: u32) -> Self {
        let (root, size) = (self.root, self.size);
        Self {
            relative: (rank + size - root) % size,
            root,
            size,
        }
    }

    fn absolute(&self, relative: u32) -> u32 {
        (relative + self.root) % self.size
    }

    fn parent(&self) -> Option<u32> {
        let above = self.relative & self.relative.wrapping_sub(1);
        (self.relative != 0).then(|| self.absolute(above))
    }

    /// Nearest first: their subtrees cover the ranks after this one without a gap.
    fn children(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        let bits = if self.relative == 0 {
            u32::BITS
        } else {
            self.relative.trailing_zeros()
        };
        (0..bits.min(31))
            .map(|bit| self.relative + (1 << bit))
            .filter(|child| *child < self.size)
            .map(|child| self.absolute(child))
    }
}
