//! A link that copies packets between buffers and a queue with memory of its own.
//!
//! In: a [`FrameQueue`], packets. Out: what was sent is free again in its pool; what comes is in buffers of
//! the dispatcher's pool. Without a free buffer what came stays in the queue. Not here: the queues
//! (`xdp_link`).

use std::fmt;

use weir_schema::StageBatches;

use crate::arp::OwnAddress;
use crate::frame::is_udp;
use crate::link::PacketLink;
use crate::pool::{BUFFER_BYTES, PacketBuffer, Pool};

/// A queue of a device, both ways.
pub(crate) trait FrameQueue: fmt::Debug + Send {
    /// Takes a frame, to be sent at the next flush; false where there is no room now.
    fn push(&mut self, frame: &[u8]) -> bool;

    /// Has the device send what was taken, as far as it can now.
    fn flush(&mut self);

    /// True if frames were taken that the device has not looked at yet.
    fn has_unsent(&mut self) -> bool;

    /// Copies the oldest frame that came: its length.
    fn pop(&mut self, into: &mut [u8]) -> Option<usize>;

    /// Gives the device the room back of what was taken.
    fn release(&mut self);

    /// Takes frames where they lie, at most so many, where the device can; how many.
    fn take(&mut self, _most: usize) -> usize {
        0
    }

    /// Has each of them changed.
    fn change(&mut self, _change: impl FnMut(&mut [u8])) {}

    /// Sends them back, as far as there is room; how many.
    fn give_back(&mut self) -> usize {
        0
    }

    /// Frames that came and were not taken, where the device can say, and how many there can be.
    fn waiting(&mut self) -> Option<(u32, u32)>;

    /// Frames that came and found no room, where the device knows.
    fn dropped(&self) -> Option<u64> {
        None
    }

    /// Why it carries nothing any more, said once.
    fn trouble(&mut self) -> Option<String> {
        None
    }
}

/// The link of a dispatcher.
#[derive(Debug)]
pub(crate) struct CopyLink<Q> {
    queue: Q,
    /// Packets sent before the device is notified.
    post_tx: usize,
    /// Packets taken before their room is given back.
    post_rx: usize,
    taken: usize,
    /// Questions for it are answered here.
    address: Option<OwnAddress>,
}

impl<Q> CopyLink<Q> {
    pub(crate) fn new(queue: Q, batches: &StageBatches, address: Option<OwnAddress>) -> Self {
        Self {
            queue,
            address,
            post_tx: batches.link_tx.max(1) as usize,
            post_rx: batches.link_rx.max(1) as usize,
            taken: 0,
        }
    }
}

impl<Q: FrameQueue> PacketLink for CopyLink<Q> {
    #[inline]
    fn send(&mut self, pool: &mut Pool, packets: &mut Vec<PacketBuffer>) -> usize {
        let mut sent = 0;
        for buffer in packets.iter() {
            if !self.queue.push(pool.memory.frame(buffer)) {
                break;
            }
            sent += 1;
            if sent % self.post_tx == 0 {
                self.queue.flush();
            }
        }
        packets.drain(..sent).for_each(|buffer| pool.free(buffer));
        self.queue.flush();
        sent
    }

    #[inline]
    fn receive(&mut self, pool: &mut Pool, into: &mut Vec<PacketBuffer>, most: usize) -> usize {
        let mut received = 0;
        let mut has_answered = false;
        for _ in 0..most {
            let Some(mut buffer) = pool.take() else {
                break;
            };
            let room = pool.memory.resize(&mut buffer, BUFFER_BYTES);
            let Some(length) = self.queue.pop(room) else {
                pool.free(buffer);
                break;
            };
            self.taken += 1;
            let frame = &mut room[..length];
            let is_message = is_udp(frame);
            if !is_message && self.address.is_some_and(|own| own.answer(frame)) {
                // Without room for the answer whoever asks does so again.
                has_answered |= self.queue.push(frame);
                pool.free(buffer);
            } else {
                // What others send to the device has no header of a message: a stray, as what is too short.
                pool.memory
                    .resize(&mut buffer, if is_message { length } else { 0 });
                into.push(buffer);
                received += 1;
            }
            if self.taken >= self.post_rx {
                self.queue.release();
                self.taken = 0;
            }
        }
        if has_answered {
            self.queue.flush();
        }
        if received == 0 {
            self.queue.release();
            self.taken = 0;
            if self.queue.has_unsent() {
                self.queue.flush();
            }
        }
        received
    }

    #[inline]
    fn take_in_place(&mut self, most: usize) -> usize {
        self.queue.take(most)
    }

    #[inline]
    fn change_in_place(&mut self, change: impl FnMut(&mut [u8])) {
        self.queue.change(change);
    }

    #[inline]
    fn give_back(&mut self) -> usize {
        self.queue.give_back()
    }

    fn waiting(&mut self) -> Option<(u32, u32)> {
        self.queue.waiting()
    }

    fn dropped(&self) -> Option<u64> {
        self.queue.dropped()
    }

    fn trouble(&mut self) -> Option<String> {
        let why = self.queue.trouble()?;
        Some(format!("the link failed: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::pool::plain_pools;

    /// A queue whose frames come back; there is room for three frames until they are flushed, and for none
    /// before the room of what came is given back.
    #[derive(Debug, Default)]
    struct Echo {
        pushed: VecDeque<Vec<u8>>,
        came: VecDeque<Vec<u8>>,
        flushes: usize,
        releases: usize,
    }

    impl FrameQueue for Echo {
        fn push(&mut self, frame: &[u8]) -> bool {
            let has_room = self.pushed.len() < 3 && self.came.len() < 4;
            if has_room {
                self.pushed.push_back(frame.to_vec());
            }
            has_room
        }

        fn flush(&mut self) {
            self.flushes += 1;
            self.came.append(&mut self.pushed);
        }

        fn has_unsent(&mut self) -> bool {
            !self.pushed.is_empty()
        }

        fn pop(&mut self, into: &mut [u8]) -> Option<usize> {
            let frame = self.came.pop_front()?;
            into[..frame.len()].copy_from_slice(&frame);
            Some(frame.len())
        }

        fn release(&mut self) {
            self.releases += 1;
        }

        fn waiting(&mut self) -> Option<(u32, u32)> {
            None
        }
    }

    /// A frame with what tells a packet of UDP.
    fn udp(frame: &mut [u8]) {
        frame.fill(7);
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[23] = 17;
    }

    #[test]
    fn frames_of_others_come_without_what_might_be_a_message() {
        let mut pool = plain_pools(1, 8).remove(0);
        let mut link = CopyLink::new(Echo::default(), &StageBatches::default(), None);
        let mut good = vec![0; 60];
        udp(&mut good);
        let (mut address_question, mut other_protocol) = (good.clone(), good.clone());
        address_question[13] = 6;
        other_protocol[23] = 6;
        let foreign = [address_question, other_protocol, vec![8; 20]];
        link.queue.came.extend(foreign.into_iter().chain([good]));
        let mut came = Vec::new();
        assert_eq!(link.receive(&mut pool, &mut came, 32), 4);
        let lengths: Vec<_> = came.iter().map(|b| pool.memory.frame(b).len()).collect();
        assert_eq!(lengths, [0, 0, 0, 60]);
        came.drain(..).for_each(|buffer| pool.free(buffer));
    }

    #[test]
    fn questions_for_the_own_address_between_messages_are_answered_and_take_no_buffer() {
        let mut pool = plain_pools(1, 64).remove(0);
        let address = OwnAddress {
            ip: [10, 0, 0, 2],
            ethernet: [2; 6],
        };
        let batches = StageBatches::default();
        let mut link = CopyLink::new(Echo::default(), &batches, Some(address));
        let (mut message, mut question) = (vec![0; 60], vec![0; 60]);
        udp(&mut message);
        question[12..22].copy_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
        question[38..42].copy_from_slice(&address.ip);
        // One in ten of those that come.
        for number in 0..10 {
            let frame = if number == 8 { &question } else { &message };
            link.queue.came.push_back(frame.clone());
        }
        let mut came = Vec::new();
        assert_eq!(link.receive(&mut pool, &mut came, 32), 9);
        assert!(came.iter().all(|b| pool.memory.frame(b).len() == 60));
        came.drain(..).for_each(|buffer| pool.free(buffer));
        // What is sent comes back here: the answer.
        assert_eq!(link.queue.came.len(), 1);
        assert_eq!(link.queue.came[0][20..22], [0, 2]);
        assert_eq!(link.queue.came[0][28..32], address.ip);
        assert_eq!(pool.in_use(), 0);
    }

    #[test]
    fn what_was_sent_is_free_again_and_what_finds_no_room_or_no_buffer_stays() {
        let mut pool = plain_pools(1, 8).remove(0);
        let batches = StageBatches {
            link_tx: 2,
            link_rx: 3,
            ..StageBatches::default()
        };
        let mut link = CopyLink::new(Echo::default(), &batches, None);
        let mut packets = Vec::new();
        for number in 0..6 {
            let mut buffer = pool.take().unwrap();
            udp(pool.memory.resize(&mut buffer, 60 + number));
            packets.push(buffer);
        }
        // Flushed after the second and the fourth; the fifth finds no room.
        assert_eq!(link.send(&mut pool, &mut packets), 4);
        assert_eq!((packets.len(), link.queue.flushes), (2, 3));
        assert_eq!(pool.in_use(), 2);
        // Three buffers are left of eight.
        let held: Vec<_> = (0..3).map(|_| pool.take().unwrap()).collect();
        let mut came = Vec::new();
        assert_eq!(link.receive(&mut pool, &mut came, 32), 3);
        assert_eq!((link.queue.came.len(), link.queue.releases), (1, 1));
        let lengths: Vec<_> = came.iter().map(|b| pool.memory.frame(b).len()).collect();
        assert_eq!(lengths, [60, 61, 62]);
        assert!(
            came.iter()
                .all(|b| pool.memory.frame(b)[24..].iter().all(|byte| *byte == 7))
        );
        let all = held.into_iter().chain(came.drain(..)).chain(packets);
        all.for_each(|buffer| pool.free(buffer));
        assert_eq!(link.receive(&mut pool, &mut came, 32), 1);
        came.drain(..).for_each(|buffer| pool.free(buffer));
        link.queue.pushed.push_back(vec![0; 60]);
        assert_eq!(link.receive(&mut pool, &mut came, 32), 0);
        assert_eq!(
            link.queue.came.len(),
            1,
            "what was left is sent when nothing comes"
        );
        assert_eq!(pool.in_use(), 0);
    }
}
