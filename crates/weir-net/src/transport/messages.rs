//! Messages from one rank to another: one alone, one each way, or both ways round a ring.
//!
//! In: the ranks, how long messages are. Out: a [`Messages`], which a transport implements beside
//! [`super::Transport`] where any two ranks can reach each other over it.

use super::Facts;
use crate::error::Halt;
use weir_world::RankComm;
use weir_world::Watchdog;

/// Direction in which a message travels round a ring. A rank has buffers for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingDirection {
    /// From left neighbours to right ones.
    Right,
    /// From right neighbours to left ones.
    Left,
}

impl RingDirection {
    /// Both, in the order of [`RingDirection::index`].
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
    pub const fn along(self, direction: RingDirection) -> (u32, u32) {
        match direction {
            RingDirection::Right => (self.right, self.left),
            RingDirection::Left => (self.left, self.right),
        }
    }
}

/// One rank's end. All messages are as long as the last `prepare` said, which all ranks call
/// before any of them sends.
pub trait Messages: Sized {
    /// Finds the other ranks, for messages of at most `largest` bytes.
    ///
    /// # Errors
    /// The thing that is missing, or the rank that did not answer.
    fn open(comm: &RankComm<'_>, watchdog: &Watchdog, largest: usize) -> Result<Self, Halt>;

    /// Gets ready for messages of this many bytes. All messages before have arrived.
    ///
    /// # Errors
    /// Mostly memory.
    fn prepare(&mut self, bytes: usize) -> Result<(), Halt>;

    /// The message sent in this direction.
    fn outgoing(&mut self, direction: RingDirection) -> &mut [u8];

    /// The last message that travelled in this direction: for `Right`, from the left neighbour.
    fn incoming(&mut self, direction: RingDirection) -> &mut [u8];

    /// Sends one message; once it returns, the outgoing buffer may be changed.
    ///
    /// # Errors
    /// A rank is gone, or the watchdog ended the wait.
    fn send(&mut self, direction: RingDirection, to: u32, watchdog: &Watchdog) -> Result<(), Halt>;

    /// Receives one message.
    ///
    /// # Errors
    /// As [`Messages::send`].
    fn receive(
        &mut self,
        direction: RingDirection,
        from: u32,
        watchdog: &Watchdog,
    ) -> Result<(), Halt>;

    /// Sends one message and receives one that travels the same way.
    ///
    /// # Errors
    /// As [`Messages::send`].
    fn sendrecv(
        &mut self,
        direction: RingDirection,
        ring: Neighbours,
        watchdog: &Watchdog,
    ) -> Result<(), Halt>;

    /// Begins to send and to receive both ways, then waits for all four messages.
    ///
    /// # Errors
    /// As [`Messages::send`].
    fn both_ways(&mut self, ring: Neighbours, watchdog: &Watchdog) -> Result<(), Halt>;

    /// Facts about the library and the machine that it found out.
    fn facts(&self) -> Facts {
        Facts::default()
    }
}
