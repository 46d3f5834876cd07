//! Messages from one rank to another: one alone, one each way, or both ways round a ring.
//!
//! In: the ranks, how long messages are. Out: a [`Messages`], which a transport implements beside
//! [`super::Transport`] where any two ranks can reach each other over it.

use super::Facts;
use crate::error::Halt;
use weir_world::RankComm;
use weir_world::Watchdog;

/// Which way round a ring a message travels. A rank has buffers for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From left neighbours to right ones.
    Right,
    /// From right neighbours to left ones.
    Left,
}

impl Way {
    /// Both, in the order of [`Way::index`].
    pub const BOTH: [Self; 2] = [Self::Right, Self::Left];

    /// 0 or 1.
    #[inline]
    pub const fn index(self) -> usize {
        match self {
            Self::Right => 0,
            Self::Left => 1,
        }
    }
}

/// The ranks beside this one in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbours {
    /// Gets what travels to the left.
    pub left: u32,
    /// Gets what travels to the right.
    pub right: u32,
}

impl Neighbours {
    /// The rank that a message goes to and the one that a message comes from.
    #[inline]
    pub const fn along(self, way: Way) -> (u32, u32) {
        match way {
            Way::Right => (self.right, self.left),
            Way::Left => (self.left, self.right),
        }
    }
}

/// One rank's end. All messages are as long as the last `prepare` said, which all ranks call
/// before any of them sends.
pub trait Messages: Sized {
    /// Finds the other ranks, for messages of at most `largest` bytes.
    ///
    /// # Errors
    /// What is missing, or who did not answer.
    fn open(comm: &RankComm<'_>, watchdog: &Watchdog, largest: usize) -> Result<Self, Halt>;

    /// Gets ready for messages of this many bytes. All messages before have arrived.
    ///
    /// # Errors
    /// Mostly memory.
    fn prepare(&mut self, bytes: usize) -> Result<(), Halt>;

    /// What is sent this way.
    fn outgoing(&mut self, way: Way) -> &mut [u8];

    /// What came this way.
    fn incoming(&mut self, way: Way) -> &mut [u8];

    /// Sends one message; then what goes out may be changed.
    ///
    /// # Errors
    /// A rank is gone, or the watchdog ended the wait.
    fn send(&mut self, way: Way, to: u32, watchdog: &Watchdog) -> Result<(), Halt>;

    /// Receives one message.
    ///
    /// # Errors
    /// As [`Messages::send`].
    fn receive(&mut self, way: Way, from: u32, watchdog: &Watchdog) -> Result<(), Halt>;

    /// Sends one message and receives one that travels the same way.
    ///
    /// # Errors
    /// As [`Messages::send`].
    fn sendrecv(&mut self, way: Way, ring: Neighbours, watchdog: &Watchdog) -> Result<(), Halt>;

    /// Begins to send and to receive both ways, then waits for all four messages.
    ///
    /// # Errors
    /// As [`Messages::send`].
    fn both_ways(&mut self, ring: Neighbours, watchdog: &Watchdog) -> Result<(), Halt>;

    /// What it found out.
    fn facts(&self) -> Facts {
        Facts::default()
    }
}
