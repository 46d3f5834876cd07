//! The receiving half of a link: rings in every round, sockets every so many, and sleep.
//!
//! In: a handler, and how long to wait. Out: frames, moves and losses, handed on. Not here: sending,
//! and moving memory.

use std::io;
use std::time::Duration;

use weir_sys::ring::longest_sleep;

use super::frames::SLOTS;
use super::{BELL, RpcShmLink};
use crate::RpcError;
use crate::links::stream::CollectedEvent;
use crate::links::{Link, LinkHandler, LinkSide, PeerId};

/// Frames that are taken from one ring before the next has its turn.
const BATCH: u32 = 64;
/// Rounds between two looks at the sockets; a round with frames counts as many.
pub(super) const SOCKET_ROUNDS: u32 = 256;
/// Rounds without a frame after which a ring is looked at only when its bell rings.
pub(super) const IDLE_ROUNDS: u32 = 1 << 16;
/// Rings that are looked at in every round however idle they are.
pub(super) const ALWAYS_BUSY: usize = 2;
/// The longest sleep while a ring is full, whose reader rings no bell.
const FULL_NAP: Duration = Duration::from_millis(1);

impl RpcShmLink {
    /// Ends a connection whose other side broke the protocol.
    #[cold]
    pub(super) fn fail<H: LinkHandler<Self>>(
        &mut self,
        id: PeerId,
        why: RpcError,
        handler: &mut H,
    ) -> u32 {
        if !self.peers.contains(id) {
            return 0;
        }
        self.control.close(id);
        self.forget(id);
        handler.lost(self, id, why);
        1
    }

    /// From now on looked at in every round.
    pub(super) fn rouse(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get(id) else {
            return;
        };
        peer.receiver.end_sleep();
        peer.empty_rounds = 0;
        if !peer.busy {
            peer.busy = true;
            self.busy.push(id.index);
        }
    }

    /// Hands on the frames of one ring that are there now; how many there were. Those that come
    /// meanwhile have their turn in the next round, once what these led to is on its way.
    #[inline]
    pub(super) fn look_at_ring<H: LinkHandler<Self>>(
        &mut self,
        place: u32,
        handler: &mut H,
    ) -> u32 {
        let Some((id, peer)) = self.peers.at(place) else {
            return 0;
        };
        if self.side == LinkSide::Server && !peer.held.is_empty() {
            // Answers that it does not read wait for it.
            return 0;
        }
        match peer.receiver.look() {
            Ok(true) => {}
            Ok(false) => {
                peer.empty_rounds += 1;
                return 0;
            }
            Err(why) => return self.fail(id, why, handler),
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let (frames, broken) = self.take_frames(place, &mut scratch, handler);
        self.scratch = scratch;
        if let Some(why) = broken {
            return frames + self.fail(id, why, handler);
        }
        if let Some((_, peer)) = self.peers.at(place) {
            peer.receiver.release();
            peer.empty_rounds = 0;
        }
        frames
    }

    /// Hands on what the last look found, and what is wrong with the frame after the last one.
    #[inline]
    fn take_frames<H: LinkHandler<Self>>(
        &mut self,
        place: u32,
        scratch: &mut Vec<u8>,
        handler: &mut H,
    ) -> (u32, Option<RpcError>) {
        let mut frames = 0;
        while frames < BATCH {
            let Some((id, peer)) = self.peers.at(place) else {
                break;
            };
            let is_congested = self.side == LinkSide::Server && !peer.held.is_empty();
            if is_congested || !peer.receiver.has_more() {
                break;
            }
            match peer.receiver.receive(scratch) {
                Ok(Some((header, length))) if header.kind.is_data() => {
                    handler.message(self, id, &header, &scratch[..length]);
                    frames += 1;
                }
                Ok(None) => break,
                Ok(Some(_)) => {
                    let why = "a frame that belongs on the socket came by ring";
                    return (frames, Some(RpcError::protocol(why)));
                }
                Err(why) => return (frames, Some(why)),
            }
        }
        (frames, None)
    }

    #[inline]
    pub(super) fn look_at_rings<H: LinkHandler<Self>>(&mut self, handler: &mut H) -> u32 {
        let (mut frames, mut at) = (0, 0);
        while let Some(&place) = self.busy.get(at) {
            frames += self.look_at_ring(place, handler);
            if self.busy.len() > ALWAYS_BUSY && self.falls_idle(place) {
                self.busy.swap_remove(at);
            } else {
                at += 1;
            }
        }
        frames
    }

    /// True if a ring was silent for long and is empty; its bell then rings for the next frame.
    pub(super) fn falls_idle(&mut self, place: u32) -> bool {
        let Some((_, peer)) = self.peers.at(place) else {
            return false;
        };
        if peer.empty_rounds < IDLE_ROUNDS {
            return false;
        }
        peer.empty_rounds = 0;
        // A ring that is corrupt is found out in the next round.
        peer.busy = !matches!(peer.receiver.announce_sleep(), Ok(true));
        !peer.busy
    }

    /// Looks at the sockets, or waits for them at most so long; what came is handed on.
    pub(super) fn look_at_sockets<H: LinkHandler<Self>>(
        &mut self,
        wait: Option<Duration>,
        handler: &mut H,
    ) -> io::Result<u32> {
        self.rounds = 0;
        let mut collected = std::mem::take(&mut self.collected);
        let polled = self.control.poll(wait, &mut collected);
        let mut events = 0;
        for event in collected.events.drain(..) {
            events += match event {
                CollectedEvent::Message(id, header, _) if header.kind == BELL => {
                    self.rouse(id);
                    0
                }
                CollectedEvent::Message(id, header, _) if header.kind.is_data() => {
                    let why = RpcError::protocol("a frame that belongs in the ring came by socket");
                    self.fail(id, why, handler)
                }
                CollectedEvent::Message(id, header, body) if self.peers.contains(id) => {
                    handler.message(self, id, &header, &body);
                    1
                }
                CollectedEvent::Message(..) => 0,
                CollectedEvent::Lost(id, why) => self.lose(id, why, handler),
            };
        }
        self.collected = collected;
        polled.map(|_| events)
    }

    /// The socket has ended: what was sent before counts.
    pub(super) fn lose<H: LinkHandler<Self>>(
        &mut self,
        id: PeerId,
        why: RpcError,
        handler: &mut H,
    ) -> u32 {
        let mut events = 0;
        // No more than there can be: the other side may go on writing.
        for _ in 0..SLOTS / BATCH {
            if !self.peers.contains(id) {
                return events;
            }
            match self.look_at_ring(id.index, handler) {
                0 => break,
                frames => events += frames,
            }
        }
        if !self.peers.contains(id) {
            return events;
        }
        self.forget(id);
        handler.lost(self, id, why);
        events + 1
    }

    /// Sleeps until something comes.
    pub(super) fn sleep<H: LinkHandler<Self>>(
        &mut self,
        wait: Duration,
        handler: &mut H,
    ) -> io::Result<u32> {
        let mut may_sleep = true;
        for &place in &self.busy {
            if let Some((_, peer)) = self.peers.at(place) {
                may_sleep &= matches!(peer.receiver.announce_sleep(), Ok(true));
            }
        }
        let wait = if self.lacks_room {
            wait.min(FULL_NAP)
        } else {
            wait
        };
        let wait = may_sleep.then(|| longest_sleep(wait));
        let events = self.look_at_sockets(wait, handler)?;
        for &place in &self.busy {
            if let Some((_, peer)) = self.peers.at(place) {
                peer.receiver.end_sleep();
            }
        }
        Ok(events + self.look_at_rings(handler))
    }

    /// Hands over moves that are done since the last poll, and connections that broke.
    #[cold]
    pub(super) fn hand_on<H: LinkHandler<Self>>(&mut self, handler: &mut H) -> u32 {
        let mut events = 0;
        while let Some((id, why)) = self.broken.pop() {
            events += self.fail(id, why, handler);
        }
        // Those that a handler asks for meanwhile have their turn in the next round.
        for _ in 0..self.moved.len() {
            if let Some((id, token, result)) = self.moved.pop_front() {
                handler.moved(self, id, token, result);
                events += 1;
            }
        }
        events
    }
}
