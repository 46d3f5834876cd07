//! Conversations of one world that do not mix: what is said in one is never taken for the other's,
//! however far ranks have lost step.
//!
//! In: a world. Out: worlds, by number, over the same messages, each of which has the number in
//! front. What comes for another lane is kept for it.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::deadline::Deadline;
use crate::mpi::MpiWorld;
use crate::{RankMonitor, RankProcesses, World, WorldError};

/// Waits that end at a loss are cut into pieces this long.
const SLICE: Duration = Duration::from_millis(50);

/// All conversations of a rank. Every rank has to speak through lanes.
#[expect(
    missing_debug_implementations,
    reason = "a world need not be printable"
)]
pub struct Lanes<'a> {
    world: &'a dyn World,
    kept: RefCell<Kept>,
}

/// Messages that came for a lane while another one was listened to, by lane and sender.
type Kept = HashMap<(u8, u32), VecDeque<Vec<u8>>>;

/// One of them.
#[derive(Clone, Copy)]
#[expect(
    missing_debug_implementations,
    reason = "a world need not be printable"
)]
pub struct Lane<'a> {
    lanes: &'a Lanes<'a>,
    number: u8,
    ends_at_loss: bool,
}

impl<'a> Lanes<'a> {
    /// Over this world.
    pub fn new(world: &'a dyn World) -> Self {
        Self {
            world,
            kept: RefCell::default(),
        }
    }

    /// Ranks in all.
    pub fn size(&self) -> u32 {
        self.world.size()
    }

    /// The processes of the other ranks, where this one has started them.
    pub fn processes(&self) -> Option<&RankProcesses> {
        self.world.processes()
    }

    /// Monitor of the other ranks, which names lost ones.
    pub fn monitor(&self) -> Option<&RankMonitor> {
        self.world.monitor()
    }

    /// The lane of this number.
    pub fn lane(&self, number: u8) -> Lane<'_> {
        Lane {
            lanes: self,
            number,
            ends_at_loss: false,
        }
    }

    /// The same, where every wait ends as soon as any rank is lost: for what all ranks do together.
    pub fn lane_of_all(&self, number: u8) -> Lane<'_> {
        Lane {
            ends_at_loss: true,
            ..self.lane(number)
        }
    }
}

impl Lane<'_> {
    /// The next message of a rank, for whatever lane.
    fn receive_any(&self, from: u32, until: Instant) -> Result<Vec<u8>, WorldError> {
        let world = self.lanes.world;
        let Some(monitor) = world.monitor().filter(|_| self.ends_at_loss) else {
            return world.receive(from, until);
        };
        let mut wait = Deadline::new(from, until, Some(monitor));
        loop {
            match world.receive(from, Instant::now() + SLICE.min(wait.left()?)) {
                Err(WorldError::Late { .. }) => {}
                received => return received,
            }
            if let Some(loss) = monitor.lost() {
                return Err(loss);
            }
        }
    }
}

impl World for Lane<'_> {
    fn rank(&self) -> u32 {
        self.lanes.world.rank()
    }

    fn size(&self) -> u32 {
        self.lanes.world.size()
    }

    fn send(&self, to: u32, bytes: &[u8], until: Instant) -> Result<(), WorldError> {
        let marked = [&[self.number], bytes].concat();
        self.lanes.world.send(to, &marked, until)
    }

    fn receive(&self, from: u32, until: Instant) -> Result<Vec<u8>, WorldError> {
        let kept = &self.lanes.kept;
        let own = kept
            .borrow_mut()
            .get_mut(&(self.number, from))
            .and_then(VecDeque::pop_front);
        if let Some(own) = own {
            return Ok(own);
        }
        loop {
            let mut bytes = self.receive_any(from, until)?;
            let Some(number) = bytes.first().copied() else {
                let detail = "it belongs to no lane".to_owned();
                return Err(WorldError::Garbled { peer: from, detail });
            };
            bytes.remove(0);
            if number == self.number {
                return Ok(bytes);
            }
            kept.borrow_mut()
                .entry((number, from))
                .or_default()
                .push_back(bytes);
        }
    }

    fn mpi(&self) -> Option<&MpiWorld> {
        self.lanes.world.mpi()
    }

    fn processes(&self) -> Option<&RankProcesses> {
        self.lanes.world.processes()
    }

    fn monitor(&self) -> Option<&RankMonitor> {
        self.lanes.world.monitor()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::on_threads;

    #[test]
    fn what_is_said_in_one_lane_is_not_heard_in_another() {
        let heard = on_threads(2, |world| {
            let lanes = Lanes::new(&world);
            let until = Instant::now() + Duration::from_secs(20);
            if world.rank() == 1 {
                for (lane, word) in [(1, "a"), (2, "b"), (1, "c"), (2, "d")] {
                    lanes.lane(lane).send(0, word.as_bytes(), until).unwrap();
                }
                return Vec::new();
            }
            let hear = |lane| lanes.lane(lane).receive(1, until).unwrap();
            [2, 1, 1, 2].map(hear).concat()
        })
        .unwrap();
        assert_eq!(heard[0], b"bacd");
    }
}
