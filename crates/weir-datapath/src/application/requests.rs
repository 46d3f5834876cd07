//! Making messages: a client's requests, in buffers of its pool.
//!
//! In: how many are to be made. Out: their packets in the ring to the dispatcher; what found no room is freed and
//! counted. Not here: how many may be made, and when.

use super::Application;
use crate::counts::ThreadCounts;
use crate::frame::{PAYLOAD_AT, PacketHeader, stamp_of, write_ports};
use crate::handler::MessageWork;
use crate::pace::MessagePace;
use crate::pool::{PacketBuffer, Pool};

/// Writes a packet of a request.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "by itself the compiler makes a call of it for every packet"
)]
fn write_request<W: MessageWork>(
    handler: &mut W,
    header: &PacketHeader,
    (source, target): (u16, u16),
    frame: &mut [u8],
) {
    // One look at the length for all that is written.
    let Some((head, payload)) = frame.split_first_chunk_mut::<PAYLOAD_AT>() else {
        return;
    };
    write_ports(head, source, target);
    header.write(head);
    handler.request(u32::from(header.segment), payload);
}

impl<W: MessageWork> Application<W> {
    /// Number of these messages that the ring to the dispatcher has room for, of a batch at most.
    pub(super) fn fitting(&mut self, messages: usize) -> usize {
        let packets = self.form.packets as usize;
        if packets > self.tx.capacity() as usize {
            return messages;
        }
        let wanted = messages.min(self.batch_tx) * packets;
        self.tx.room(wanted) / packets.max(1)
    }

    pub(super) fn make(
        &mut self,
        messages: usize,
        pool: &mut Pool,
        now: u64,
        counts: &mut ThreadCounts,
    ) -> usize {
        let ports = self.ports();
        let packets = self.form.packets as usize;
        let mut made = std::mem::take(&mut self.made);
        pool.take_many(messages * packets, &mut made);
        if let [length] = self.form.frames[..] {
            for buffer in &mut made {
                // Where sizes differ each message has a packet of its own length.
                let own = self.supply.begin().unwrap_or(length);
                let header = self.begin_message(now, counts);
                write_request(
                    &mut self.handler,
                    &header,
                    ports,
                    pool.memory.resize(buffer, own),
                );
            }
        } else {
            self.make_of_several(&mut made, ports, pool, now, counts);
        }
        self.made = made;
        let mut made = self.made.drain(..);
        let sent = self.tx.push_many(&mut made, usize::MAX);
        self.tx.publish();
        for buffer in made {
            counts.sums.application_drops += 1;
            // A message of one packet was never sent, and is none that is lost on its way.
            let header = PacketHeader::read(pool.memory.frame(&buffer));
            match header.filter(|header| header.packets == 1) {
                Some(header) if self.is_answered => _ = self.outstanding.end(header.message),
                Some(_) => counts.answered -= 1,
                None => {}
            }
            pool.free(buffer);
        }
        sent
    }

    /// Makes messages of several packets each of so many buffers.
    fn make_of_several(
        &mut self,
        made: &mut [PacketBuffer],
        ports: (u16, u16),
        pool: &Pool,
        now: u64,
        counts: &mut ThreadCounts,
    ) {
        for of_message in made.chunks_exact_mut(self.form.frames.len().max(1)) {
            self.supply.begin();
            let header = self.begin_message(now, counts);
            let parts = self.form.frames.iter().zip(of_message).zip(0..);
            for ((length, buffer), segment) in parts {
                let frame = pool.memory.resize(buffer, *length);
                let header = PacketHeader { segment, ..header };
                write_request(&mut self.handler, &header, ports, frame);
            }
        }
    }

    /// A message begins: the header of its first packet. There is room for it, as the caller saw.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "by itself the compiler makes a call of it for every message"
    )]
    fn begin_message(&mut self, now: u64, counts: &mut ThreadCounts) -> PacketHeader {
        let message = self.outstanding.begin(now).unwrap_or_default();
        if !self.is_answered {
            // Nothing will come back: what is sent is done.
            self.outstanding.end(message);
            counts.answered += 1;
        }
        PacketHeader {
            stream: self.origin.stream,
            stamp: stamp_of(self.pace.as_mut().map_or(now, MessagePace::take)),
            packets: u16::try_from(self.form.packets).unwrap_or(u16::MAX),
            segment: 0,
            message,
        }
    }
}
