//! Order of the general source over one target: sequential in bytes for each kind, or random in
//! blocks of the smallest size.

use std::num::NonZeroU64;

use crate::generate::lfsr::Lfsr;
use crate::generate::offsets::{
    Cursor, Offsets, PartlyRandom, SequentialRuns, Skewed, Uniform, UniformMapped,
};
use crate::source::strided::Strided;

/// Draws that may fall too close to the end of the region before the pass counts as over.
const MOST_DRAWS: u32 = 64;

/// A generator of random blocks.
#[derive(Debug)]
pub(super) enum Blocks {
    Mapped(UniformMapped),
    Uniform(Uniform),
    Lfsr(Lfsr),
    Skewed(Skewed),
    /// Another distribution for each kind.
    PerKind(Box<[Blocks; 3]>),
    Runs(Box<SequentialRuns<Blocks>>),
    Partly(Box<PartlyRandom<Blocks>>),
}

impl Offsets for Blocks {
    fn next_block(&mut self) -> Option<u64> {
        match self {
            Self::Mapped(g) => g.next_block(),
            Self::Uniform(g) => g.next_block(),
            Self::Lfsr(g) => g.next_block(),
            Self::Skewed(g) => g.next_block(),
            Self::PerKind(g) => g[0].next_block(),
            Self::Runs(g) => g.next_block(),
            Self::Partly(g) => g.next_block(),
        }
    }

    fn restart(&mut self) {
        match self {
            Self::Mapped(g) => g.restart(),
            Self::Uniform(g) => g.restart(),
            Self::Lfsr(g) => g.restart(),
            Self::Skewed(g) => g.restart(),
            Self::PerKind(g) => g.iter_mut().for_each(Blocks::restart),
            Self::Runs(g) => g.restart(),
            Self::Partly(g) => g.restart(),
        }
    }
}

impl Blocks {
    fn next_for(&mut self, kind: usize) -> Option<u64> {
        match self {
            Self::PerKind(g) => g[kind].next_block(),
            other => other.next_block(),
        }
    }

    /// Takes the blocks behind `block` that are still free in this pass, up to `want`; without a
    /// map all of them.
    fn extend(&mut self, block: u64, want: u64) -> u64 {
        match self {
            Self::Mapped(g) => g.extend(block, want),
            _ => want,
        }
    }
}

/// The walk over one target.
#[derive(Debug)]
pub(super) enum BlockOrder {
    /// A position for each kind.
    Sequential([Cursor; 3]),
    /// Blocks of `unit` bytes.
    Random {
        blocks: Blocks,
        unit: NonZeroU64,
        length: u64,
    },
    /// Zone by zone.
    Strided(Box<Strided>),
}

impl BlockOrder {
    /// Offset and length of the next operation; `choose` picks a length that fits the room.
    /// `None` at the end of the pass.
    pub(super) fn next(
        &mut self,
        kind: usize,
        mut choose: impl FnMut(u64) -> Option<u64>,
    ) -> Option<(u64, u64)> {
        match self {
            Self::Strided(strided) => strided.next(kind, &mut choose),
            Self::Sequential(cursors) => {
                let cursor = &mut cursors[kind];
                let length = choose(cursor.room_bytes())?;
                Some((cursor.advance(length), length))
            }
            Self::Random {
                blocks,
                unit,
                length,
            } => {
                let mut draws = 0;
                // A kind whose smallest size is larger than the unit may not fit behind the last
                // blocks of the region.
                let (block, offset, wanted) = loop {
                    let block = blocks.next_for(kind)?;
                    let offset = block * unit.get();
                    if let Some(wanted) = choose(length.saturating_sub(offset)) {
                        break (block, offset, wanted);
                    }
                    draws += 1;
                    if draws == MOST_DRAWS {
                        return None;
                    }
                };
                let more = (wanted.div_ceil(unit.get())).saturating_sub(1);
                let taken = if more == 0 {
                    0
                } else {
                    blocks.extend(block, more)
                };
                Some((offset, wanted.min((taken + 1) * unit.get())))
            }
        }
    }

    pub(super) fn restart(&mut self) {
        match self {
            Self::Sequential(cursors) => cursors.iter_mut().for_each(Cursor::restart),
            Self::Random { blocks, .. } => blocks.restart(),
            Self::Strided(strided) => strided.restart(),
        }
    }
}
