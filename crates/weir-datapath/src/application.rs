//! A thread's part that makes and takes messages: on a client requests and their answers, on a server the
//! other way round.
//!
//! In: a ring from its dispatcher, a handler. Out: a ring to its dispatcher. Not here: how packets travel.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

use weir_schema::{PacketPathWorkload, PathSide};
use weir_sys::clock::{Clock, Scale};
use weir_units::Nanos;

use crate::counts::{StepClock, ThreadCounts};
use crate::flush::FlushTimer;
use crate::frame::PacketHeader;
use crate::handler::MessageWork;
use crate::message_form::MessageForm;
use crate::outstanding::Outstanding;
use crate::pace::MessagePace;
use crate::partial::{Added, Packets, Partials};
use crate::pool::{BufferReceiver, BufferSender, Pool};
use crate::request_supply::RequestSupply;

mod answer_times;
mod answers;
mod request_origin;
mod requests;

use answer_times::AnswerTimes;
use request_origin::RequestOrigin;

/// Rounds of a stall for buffers, with a look at each, before other stages have their turn.
const LOOKS_FOR_BUFFERS: u32 = 64;

/// Who a part is, and its rings.
#[derive(Debug)]
pub(crate) struct ApplicationParts {
    pub(crate) side: PathSide,
    pub(crate) stream: u8,
    pub(crate) thread: u8,
    /// Dispatchers of the other side.
    pub(crate) peers: Vec<u8>,
    /// Which of all threads with messages it is, and how many these are.
    pub(crate) turn: (usize, usize),
    pub(crate) tx: BufferSender,
    pub(crate) rx: BufferReceiver,
}

/// A thread's part that makes and takes messages.
#[derive(Debug)]
pub(crate) struct Application<W> {
    side: PathSide,
    origin: RequestOrigin,
    thread: u8,
    peers: Vec<u8>,
    next_peer: usize,
    tx: BufferSender,
    rx: BufferReceiver,
    handler: W,
    /// Lengths of the messages that it sends.
    pub(crate) form: MessageForm,
    /// Packets of what it takes.
    taken_packets: u32,
    pub(crate) outstanding: Outstanding,
    /// When messages are to begin, where a rate says so.
    pace: Option<MessagePace>,
    /// Messages that it may begin, and their sizes.
    pub(crate) supply: RequestSupply,
    partials: Partials,
    /// Messages that are whole and were not taken yet.
    whole: VecDeque<Packets>,
    /// Packets of requests while they are made, or of answers while they are looked at, kept for its room.
    made: Packets,
    /// The packets of the message that a server answers, kept for its room.
    answered: Packets,
    batch_tx: usize,
    batch_rx: usize,
    tx_timer: FlushTimer,
    rx_timer: FlushTimer,
    /// In ticks.
    flush: u64,
    timeout: u64,
    /// The tick of the next look for messages that are lost, and that at which it last looked for answers.
    next_look: u64,
    looked: u64,
    spin_per_message: u64,
    work_per_message: u64,
    is_answered: bool,
    new_buffers: bool,
    first_port: u16,
    scale: Scale,
}

impl<W: MessageWork> Application<W> {
    pub(crate) fn new(
        work: &PacketPathWorkload,
        parts: ApplicationParts,
        handler: W,
        scale: Scale,
    ) -> Self {
        let ticks = |span: Nanos| scale.to_ticks(span);
        let (sent, taken) = match parts.side {
            PathSide::Client if work.echoes() => (work.request_bytes, work.request_bytes),
            PathSide::Client => (work.request_bytes, work.whole_response()),
            PathSide::Server => (work.whole_response(), work.request_bytes),
        };
        Self {
            side: parts.side,
            origin: RequestOrigin::of(parts.stream),
            thread: parts.thread,
            peers: parts.peers,
            next_peer: 0,
            tx: parts.tx,
            rx: parts.rx,
            handler,
            form: MessageForm::of(work, sent),
            taken_packets: work.packets(taken),
            outstanding: Outstanding::new(work.in_flight, parts.thread),
            pace: (work.messages_per_s > 0 && parts.side == PathSide::Client)
                .then(|| MessagePace::new(work.messages_per_s, parts.turn, scale)),
            supply: RequestSupply::of(work, parts.turn),
            partials: Partials::default(),
            whole: VecDeque::new(),
            made: Packets::new(),
            answered: Packets::new(),
            batch_tx: work.batches.application_tx as usize,
            batch_rx: work.batches.application_rx as usize,
            tx_timer: FlushTimer::default(),
            rx_timer: FlushTimer::default(),
            flush: ticks(work.flush_ns),
            timeout: ticks(work.message_timeout_ns),
            next_look: 0,
            looked: 0,
            spin_per_message: work.ticks_per_message,
            work_per_message: ticks(work.work_ns),
            is_answered: work.is_answered(),
            new_buffers: work.new_buffers,
            first_port: work.first_port,
            scale,
        }
    }

    /// Ports of what is sent now: to the next dispatcher of the other side.
    fn ports(&mut self) -> (u16, u16) {
        let at = self.next_peer % self.peers.len().max(1);
        self.next_peer = self.next_peer.wrapping_add(1);
        let peer = self.peers.get(at).copied().unwrap_or_default();
        let port = |thread: u8| self.first_port.wrapping_add(u16::from(thread));
        (port(self.thread), port(peer))
    }

    /// Makes a batch of requests; packets that moved.
    #[inline]
    pub(crate) fn transmit<const TIMED: bool>(
        &mut self,
        pool: &mut Pool,
        now: u64,
        steps: &mut StepClock<TIMED>,
        counts: &mut ThreadCounts,
    ) -> usize {
        if self.side == PathSide::Server {
            // A server's messages are answers, which are made where messages are taken.
            return 0;
        }
        let credit = self.outstanding.room().min(self.supply.room());
        // Of a rate nothing waits for a batch, and what finds no room stays due.
        let (room, batch) = match &self.pace {
            Some(pace) => (self.fitting(credit.min(pace.due(now))), 1),
            None => (credit, self.batch_tx),
        };
        if !self.tx_timer.is_due(room, batch, now, self.flush) {
            counts.sums.rounds_without_credit += u64::from(credit < batch);
            counts.application_tx.empty();
            counts.idle += steps.step();
            return 0;
        }
        let messages = room.min(self.batch_tx);
        let needed = messages * self.form.packets as usize;
        let mut looks = 0;
        while !pool.has(needed) {
            looks += 1;
            if looks == LOOKS_FOR_BUFFERS {
                counts.sums.rounds_without_buffers += 1;
                counts.application_tx.empty();
                let stall = steps.step();
                if TIMED {
                    counts.application_tx.time(0, stall, stall);
                    counts.application_tx.stall(stall);
                }
                return 0;
            }
            std::hint::spin_loop();
        }
        // Without a wait there is nothing to tell apart.
        let stall = if looks > 0 { steps.step() } else { 0 };
        let sent = self.make(messages, pool, now, counts);
        let call = steps.step();
        counts.application_tx.batch(sent);
        if TIMED {
            counts.application_tx.time(sent, stall + call, stall);
            counts.application_tx.stall(stall);
            counts.application_tx.call(call);
        }
        sent
    }

    /// Takes messages; packets that moved.
    #[inline]
    pub(crate) fn receive<const TIMED: bool>(
        &mut self,
        pool: &mut Pool,
        now: u64,
        clock: &Clock,
        steps: &mut StepClock<TIMED>,
        counts: &mut ThreadCounts,
        stop: &AtomicU32,
    ) -> usize {
        if now >= self.next_look {
            self.look_for_lost(now, counts);
        }
        self.looked = now;
        let messages = self.whole_messages(now, pool, counts);
        let timer = &mut self.rx_timer;
        if !timer.is_due(messages, self.batch_rx, now, self.flush) {
            counts.application_rx.empty();
            counts.idle += steps.step();
            return 0;
        }
        // Where messages have one packet, to see how many there are takes no time.
        let dequeue = if self.taken_packets > 1 {
            steps.step()
        } else {
            0
        };
        let seen = if TIMED { steps.last() } else { now };
        let (taken, packets) = match self.side {
            PathSide::Client => self.take_answers(seen, messages, pool, counts),
            PathSide::Server => self.answer_messages(messages, pool, counts),
        };
        let call = steps.step();
        let busy = if self.be_busy(taken, clock, stop) {
            steps.step()
        } else {
            0
        };
        counts.application_rx.batch(packets);
        if TIMED {
            let stage = &mut counts.application_rx;
            stage.time(packets, dequeue + call + busy, 0);
            stage.call(call);
        }
        packets
    }

    /// Spends the ticks that the plan adds per message, or as many as there are before the run is to stop; whether
    /// there are any.
    fn be_busy(&self, messages: usize, clock: &Clock, stop: &AtomicU32) -> bool {
        let work = match self.side {
            PathSide::Client => 0,
            PathSide::Server => self.work_per_message,
        };
        let ticks = (self.spin_per_message + work).saturating_mul(messages as u64);
        if ticks > 0 {
            let start = clock.now();
            while clock.now().since(start) < ticks && stop.load(Ordering::Relaxed) == 0 {
                std::hint::spin_loop();
            }
        }
        ticks > 0
    }

    /// Number of whole messages that there are.
    fn whole_messages(&mut self, now: u64, pool: &mut Pool, counts: &mut ThreadCounts) -> usize {
        let there = self.rx.look() as usize;
        if self.taken_packets == 1 {
            return there + self.whole.len();
        }
        for _ in 0..there {
            let Some(buffer) = self.rx.pop() else {
                break;
            };
            let Some(header) = PacketHeader::read(pool.memory.frame(&buffer)) else {
                pool.free(buffer);
                continue;
            };
            if self.side == PathSide::Client && !self.origin.has_made(&header, now) {
                counts.sums.strays += 1;
                pool.free(buffer);
                continue;
            }
            match self.partials.add(&header, buffer) {
                Added::Partial => {}
                Added::Whole(packets) => self.whole.push_back(packets),
            }
        }
        self.rx.release();
        counts.sums.incomplete += std::mem::take(&mut self.partials.incomplete);
        let broken = self.partials.broken.drain(..);
        broken.for_each(|buffer| pool.free(buffer));
        self.whole.len()
    }

    /// Puts the packets of the next message into an empty list; whether there is one.
    #[inline]
    fn next_message(&mut self, into: &mut Packets) -> bool {
        if let Some(packets) = self.whole.pop_front() {
            *into = packets;
            return true;
        }
        if self.taken_packets > 1 {
            return false;
        }
        let buffer = self.rx.pop();
        let has_one = buffer.is_some();
        into.extend(buffer);
        has_one
    }

    /// A client hears of its messages again: how many, and their packets.
    fn take_answers(
        &mut self,
        seen: u64,
        there: usize,
        pool: &mut Pool,
        counts: &mut ThreadCounts,
    ) -> (usize, usize) {
        let (mut messages, mut count) = (0, 0);
        let mut times = AnswerTimes::new(seen, self.origin, self.scale);
        while let Some(mut packets) = self.whole.pop_front() {
            if let Some(first) = packets.first() {
                times.hear(first, &mut self.outstanding, pool, counts);
            }
            messages += 1;
            count += packets.len();
            packets.drain(..).for_each(|buffer| pool.free(buffer));
        }
        // A message of one packet needs no list of them.
        if self.taken_packets == 1 {
            let single = self.rx.pop_into(there, &mut self.made);
            for buffer in &self.made {
                times.hear(buffer, &mut self.outstanding, pool, counts);
            }
            pool.free_many(&mut self.made);
            messages += single;
            count += single;
        }
        times.record(counts);
        self.rx.release();
        (messages, count)
    }

    /// Messages whose answer does not come any more. What may have come while this thread was not run is looked
    /// at first.
    fn look_for_lost(&mut self, now: u64, counts: &mut ThreadCounts) {
        self.next_look = now + self.timeout / 8 + 1;
        if self.is_answered {
            counts.sums.lost += self.outstanding.expire(self.looked, self.timeout);
        }
    }

    /// The common beginning and end are at these ticks.
    pub(crate) fn begin(&mut self, began: u64, until: u64) {
        self.origin.began = began;
        if let Some(pace) = &mut self.pace {
            pace.begin(began, until);
        }
    }

    /// Messages that a rate asked for up to a tick.
    pub(crate) fn intended(&self, now: u64) -> u64 {
        let intended = self.pace.as_ref().map_or(0, |pace| pace.intended(now));
        intended.min(self.supply.most())
    }

    /// True if messages are due that a rate asked for and that may be begun.
    pub(crate) fn is_behind(&self, now: u64) -> bool {
        self.supply.room() > 0 && self.pace.as_ref().is_some_and(|pace| pace.due(now) > 0)
    }

    /// Frees whatever it holds and what has come to it: nobody sends any more.
    pub(crate) fn close(&mut self, pool: &mut Pool, counts: &mut ThreadCounts) {
        let lost = self.outstanding.give_up();
        if self.is_answered {
            counts.sums.lost += lost;
        }
        self.partials.close();
        counts.sums.incomplete += std::mem::take(&mut self.partials.incomplete);
        let whole = self.whole.drain(..).flatten();
        let held = self.partials.broken.drain(..).chain(whole);
        held.for_each(|buffer| pool.free(buffer));
        while let Some(buffer) = self.rx.pop() {
            pool.free(buffer);
        }
    }
}
