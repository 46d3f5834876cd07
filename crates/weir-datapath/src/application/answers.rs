//! A server's answers: its handler takes messages, and answers go over their requests or into new
//! buffers.

use super::Application;
use crate::counts::ThreadCounts;
use crate::frame::{PAYLOAD_AT, PacketHeader, payload, write_ports};
use crate::handler::{AnswerSource, HandlerVerdict, MessageWork};
use crate::partial::Packets;
use crate::pool::{PacketBuffer, Pool};

impl<W: MessageWork> Application<W> {
    /// A server answers its messages: how many, and their packets. What there are no buffers for is
    /// left for the next pass.
    pub(super) fn answer_messages(
        &mut self,
        messages: usize,
        pool: &mut Pool,
        counts: &mut ThreadCounts,
    ) -> (usize, usize) {
        let ports = self.ports();
        let (mut taken, mut count) = (0, 0);
        let mut packets = std::mem::take(&mut self.answered);
        for _ in 0..messages {
            let needs_new = self.needs_new_buffers();
            if needs_new && !pool.has(self.form.packets as usize) {
                counts.sums.rounds_without_buffers += 1;
                break;
            }
            if !self.next_message(&mut packets) {
                break;
            }
            count += packets.len();
            taken += 1;
            let verdict = self.handler.take(&pool.memory, &packets);
            counts.sums.wrong += u64::from(verdict == HandlerVerdict::Wrong);
            if verdict != HandlerVerdict::Silence {
                self.answer(&mut packets, needs_new, ports, pool, counts);
            }
            packets.drain(..).for_each(|buffer| pool.free(buffer));
        }
        self.answered = packets;
        self.rx.release();
        self.tx.publish();
        (taken, count)
    }

    /// Answers of several packets are always new: their requests have fewer.
    fn needs_new_buffers(&self) -> bool {
        self.new_buffers || self.form.packets > 1
    }

    /// Writes an answer and hands it on.
    fn answer(
        &mut self,
        request: &mut Packets,
        needs_new: bool,
        ports: (u16, u16),
        pool: &mut Pool,
        counts: &mut ThreadCounts,
    ) {
        let first = request.first();
        let Some(header) = first.and_then(|first| PacketHeader::read(pool.memory.frame(first)))
        else {
            return;
        };
        if !needs_new {
            let buffer = request.swap_remove(0);
            self.write_answer(&header, 0, (buffer, None), ports, pool, counts);
            return;
        }
        for segment in 0..self.form.packets {
            let Some(buffer) = pool.take() else {
                break;
            };
            let from = request.get(segment as usize);
            self.write_answer(&header, segment, (buffer, from), ports, pool, counts);
        }
    }

    fn write_answer(
        &mut self,
        header: &PacketHeader,
        segment: u32,
        (mut buffer, request): (PacketBuffer, Option<&PacketBuffer>),
        (source, target): (u16, u16),
        pool: &mut Pool,
        counts: &mut ThreadCounts,
    ) {
        let is_in_place = !self.needs_new_buffers();
        let length = self.form.frames[segment as usize];
        let frame = pool.memory.resize(&mut buffer, length);
        write_ports(frame, source, target);
        let header = PacketHeader {
            packets: u16::try_from(self.form.packets).unwrap_or(u16::MAX),
            segment: u16::try_from(segment).unwrap_or(u16::MAX),
            ..*header
        };
        header.write(frame);
        let room = &mut frame[PAYLOAD_AT..];
        let source = match request {
            _ if is_in_place => AnswerSource::InPlace,
            Some(from) => AnswerSource::Payload(payload(pool.memory.frame(from))),
            None => AnswerSource::Payload(&[]),
        };
        self.handler.answer(segment, source, room);
        if let Err(buffer) = self.tx.push(buffer) {
            counts.sums.application_drops += 1;
            pool.free(buffer);
        }
    }
}
