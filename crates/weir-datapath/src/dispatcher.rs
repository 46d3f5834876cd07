//! A dispatcher: collects packets of threads and hands them to the link; takes packets from the link and
//! hands them to threads.
//!
//! In: rings from threads, the link. Out: the link, rings to threads. A packet of a stream or thread that
//! another dispatcher of the side serves is handed over to that. Not here: what messages mean.

use weir_run::generate::rng::Rng;
use weir_schema::{PacketPathWorkload, PathSide};
use weir_sys::clock::Scale;

use crate::counts::{StepClock, ThreadCounts};
use crate::flush::FlushTimer;
use crate::frame::{LowerHeaders, MESSAGE_AT, PacketHeader, turn_round};
use crate::link::PacketLink;
use crate::packet_handler::{AnyPacketWork, PacketBatch};
use crate::pool::{BufferReceiver, BufferSender, PacketBuffer, Pool};
use crate::sink::PacketSink;

/// Packets that a dispatcher holds each way.
const ARRAY: usize = 2048;

/// Where the packets of a stream go on a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamRoute {
    pub(crate) stream: u8,
    /// Own threads of it.
    pub(crate) own: Vec<usize>,
    /// The dispatcher that serves it, where this one does not.
    pub(crate) other: Option<usize>,
}

/// Where packets go.
#[derive(Clone, Debug)]
pub(crate) enum Routes {
    /// To the thread that made the message.
    Origin(Box<[Route; 16]>),
    /// To the threads of its stream in turn.
    Stream(Vec<StreamRoute>),
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Route {
    /// To this thread's ring.
    Own(usize),
    /// To this dispatcher.
    Other(usize),
    /// Nowhere.
    #[default]
    Nowhere,
}

impl Routes {
    /// Where a packet goes; one that is longer than any of either side is a stranger's.
    #[inline]
    fn of(&self, buffer: &PacketBuffer, longest: usize, pool: &Pool) -> Route {
        let frame = pool.memory.frame(buffer);
        let header = PacketHeader::read(frame).filter(|_| frame.len() <= longest);
        let Some(header) = header else {
            return Route::Nowhere;
        };
        match self {
            Self::Origin(threads) => threads[header.origin() & 15],
            Self::Stream(streams) => {
                let found = streams.iter().find(|one| one.stream == header.stream);
                match found {
                    Some(one) if !one.own.is_empty() => {
                        Route::Own(one.own[header.turn() % one.own.len()])
                    }
                    Some(one) => one.other.map_or(Route::Nowhere, Route::Other),
                    None => Route::Nowhere,
                }
            }
        }
    }
}

/// A ring from a thread.
#[derive(Debug)]
pub(crate) struct ThreadSource {
    pub(crate) ring: BufferReceiver,
    pub(crate) timer: FlushTimer,
}

/// A thread's part as dispatcher.
#[derive(Debug)]
pub(crate) struct Dispatcher<L> {
    sources: Vec<ThreadSource>,
    targets: Vec<BufferSender>,
    routes: Routes,
    /// To the other dispatchers of the side.
    others: Vec<BufferSender>,
    /// From them.
    handed: Vec<BufferReceiver>,
    link: L,
    headers: LowerHeaders,
    /// Bytes of the longest frame of a message.
    longest: usize,
    /// Both are emptied between stages, so that their first entries stay in the cache.
    tx: Vec<PacketBuffer>,
    rx: Vec<PacketBuffer>,
    link_timer: FlushTimer,
    batch_tx: usize,
    batch_rx: usize,
    flush: u64,
    /// Sees packets before threads do.
    packet_work: Option<AnyPacketWork>,
    /// They are turned round where they lie in the memory of the link.
    in_place: bool,
    /// Packets that lie there.
    held: usize,
    /// Of a million.
    drops: u64,
    rng: Rng,
    /// The limit of a server.
    sink: Option<PacketSink>,
    /// Packets that waited in the link after the last look, and when that was.
    left: (u32, u64),
}

/// The ends that a dispatcher is wired with.
#[derive(Debug)]
pub(crate) struct DispatcherParts<L> {
    pub(crate) sources: Vec<ThreadSource>,
    pub(crate) targets: Vec<BufferSender>,
    pub(crate) routes: Routes,
    pub(crate) others: Vec<BufferSender>,
    pub(crate) handed: Vec<BufferReceiver>,
    pub(crate) link: L,
    pub(crate) side: PathSide,
    pub(crate) seed: u64,
}

impl<L: PacketLink> Dispatcher<L> {
    pub(crate) fn new(work: &PacketPathWorkload, parts: DispatcherParts<L>, scale: Scale) -> Self {
        let side = parts.side;
        let echoes = work.echoes() && side == PathSide::Server;
        Self {
            in_place: echoes && parts.link.turns_in_place(),
            held: 0,
            sources: parts.sources,
            targets: parts.targets,
            routes: parts.routes,
            others: parts.others,
            handed: parts.handed,
            link: parts.link,
            headers: LowerHeaders::of(work, side),
            longest: MESSAGE_AT + work.part_bytes() as usize,
            tx: Vec::with_capacity(ARRAY),
            rx: Vec::with_capacity(ARRAY),
            link_timer: FlushTimer::default(),
            batch_tx: work.batches.dispatch_tx as usize,
            batch_rx: work.batches.dispatch_rx as usize,
            flush: scale.to_ticks(work.flush_ns),
            packet_work: AnyPacketWork::of(work, side),
            drops: match side {
                PathSide::Client => u64::from(work.dropped_per_million),
                PathSide::Server => 0,
            },
            rng: Rng::new(parts.seed),
            sink: (side == PathSide::Server)
                .then(|| PacketSink::new(work.sink_packets_per_s, work.dispatchers().len(), scale))
                .flatten(),
            left: (0, 0),
        }
    }

    /// Collects and hands to the link; packets that moved.
    #[inline]
    pub(crate) fn transmit<const TIMED: bool>(
        &mut self,
        pool: &mut Pool,
        now: u64,
        steps: &mut StepClock<TIMED>,
        counts: &mut ThreadCounts,
    ) -> usize {
        if self.in_place {
            return self.give_back(steps, counts);
        }
        let collected = self.collect(pool, now, counts);
        let collect = steps.step();
        let is_due = self
            .link_timer
            .is_due(self.tx.len(), self.batch_tx, now, self.flush);
        let sent = if is_due {
            self.link.send(pool, &mut self.tx)
        } else {
            0
        };
        if !is_due {
            counts.link_tx.empty();
            if collected == 0 {
                counts.dispatch_tx.empty();
                counts.idle += collect;
                return 0;
            }
        }
        let flush = if is_due { steps.step() } else { 0 };
        counts.dispatch_tx.batch(collected);
        if is_due {
            counts.link_tx.batch(sent);
            counts.sums.link_full += u64::from(!self.tx.is_empty());
        }
        if TIMED {
            counts.dispatch_tx.time(collected, collect + flush, flush);
            if is_due {
                counts.link_tx.time(sent, flush, 0);
                counts.dispatch_tx.stall(flush);
            }
        }
        collected + sent
    }

    fn collect(&mut self, pool: &mut Pool, now: u64, counts: &mut ThreadCounts) -> usize {
        let before = self.tx.len();
        for source in &mut self.sources {
            let room = ARRAY - self.tx.len();
            let there = (source.ring.look() as usize).min(room);
            if !source.timer.is_due(there, self.batch_tx, now, self.flush) {
                continue;
            }
            source.ring.pop_into(there, &mut self.tx);
            source.ring.release();
        }
        for buffer in &mut self.tx[before..] {
            self.headers.write(pool.memory.frame_mut(buffer));
        }
        if self.drops > 0 {
            self.drop_some(before, pool, counts);
        }
        self.tx.len() - before
    }

    /// Drops packets on purpose of those that were collected behind so many.
    #[cold]
    fn drop_some(&mut self, before: usize, pool: &mut Pool, counts: &mut ThreadCounts) {
        let mut at = before;
        while at < self.tx.len() {
            if self.rng.below(1_000_000) < self.drops {
                counts.sums.dropped_on_purpose += 1;
                pool.free(self.tx.remove(at));
            } else {
                at += 1;
            }
        }
    }

    /// Takes from the link and hands out; packets that moved.
    #[inline]
    pub(crate) fn receive<const TIMED: bool>(
        &mut self,
        pool: &mut Pool,
        now: u64,
        steps: &mut StepClock<TIMED>,
        counts: &mut ThreadCounts,
    ) -> usize {
        if TIMED {
            self.watch(now, counts);
        }
        if self.in_place {
            return self.take_in_place(steps, counts);
        }
        let room = if self.packet_work.is_some() {
            ARRAY - self.tx.len()
        } else {
            ARRAY
        };
        let mut received = self
            .link
            .receive(pool, &mut self.rx, self.batch_rx.min(room));
        counts.link_rx.take(received);
        self.link.count(counts);
        if TIMED {
            let received = u32::try_from(received).unwrap_or(0);
            self.left.0 = self.left.0.saturating_sub(received);
        }
        if self.sink.is_some() {
            self.drop_at_sink(pool, counts);
        }
        received += self.take_handed();
        for buffer in &self.rx {
            pool.memory.prefetch(buffer);
        }
        let burst = steps.step();
        if received == 0 {
            counts.dispatch_rx.empty();
            counts.idle += burst;
            return 0;
        }
        let sent_back = self.handle_packets(pool);
        let moved = sent_back + self.hand_out(pool, counts);
        let hand_out = steps.step();
        counts.dispatch_rx.batch(moved);
        if TIMED {
            counts.dispatch_rx.time(moved, burst + hand_out, burst);
            counts.dispatch_rx.stall(burst);
        }
        received
    }

    /// Frees what came faster than the sink takes it.
    fn drop_at_sink(&mut self, pool: &mut Pool, counts: &mut ThreadCounts) {
        let Some(sink) = &mut self.sink else {
            return;
        };
        for buffer in std::mem::take(&mut self.rx) {
            let header = PacketHeader::read(pool.memory.frame(&buffer));
            if header.is_none_or(|header| sink.takes(header.stamp)) {
                self.rx.push(buffer);
            } else {
                counts.sums.sink_drops += 1;
                pool.free(buffer);
            }
        }
    }

    /// Takes packets where they lie and turns them round; packets that moved.
    #[inline]
    fn take_in_place<const TIMED: bool>(
        &mut self,
        steps: &mut StepClock<TIMED>,
        counts: &mut ThreadCounts,
    ) -> usize {
        let taken = self.link.take_in_place(self.batch_rx);
        counts.link_rx.take(taken);
        let burst = steps.step();
        if taken == 0 {
            counts.dispatch_rx.empty();
            counts.idle += burst;
            return 0;
        }
        self.held = taken;
        self.link.change_in_place(turn_round);
        let turn = steps.step();
        counts.dispatch_rx.batch(taken);
        if TIMED {
            counts.dispatch_rx.time(taken, burst + turn, burst);
            counts.dispatch_rx.stall(burst);
            let taken = u32::try_from(taken).unwrap_or(0);
            self.left.0 = self.left.0.saturating_sub(taken);
        }
        taken
    }

    /// Sends the packets back that lie turned round; packets that moved.
    #[inline]
    fn give_back<const TIMED: bool>(
        &mut self,
        steps: &mut StepClock<TIMED>,
        counts: &mut ThreadCounts,
    ) -> usize {
        if self.held == 0 {
            counts.dispatch_tx.empty();
            counts.link_tx.empty();
            counts.idle += steps.step();
            return 0;
        }
        let sent = self.link.give_back();
        self.held = self.held.saturating_sub(sent);
        let flush = steps.step();
        counts.dispatch_tx.batch(0);
        counts.link_tx.batch(sent);
        if TIMED {
            counts.dispatch_tx.time(0, flush, flush);
            counts.dispatch_tx.stall(flush);
            counts.link_tx.time(sent, flush, 0);
        }
        sent
    }

    /// Counts the rate at which packets come: each time more of them wait than were left, over the time since
    /// the last look. A full queue hides how many came.
    fn watch(&mut self, now: u64, counts: &mut ThreadCounts) {
        let Some((waiting, most)) = self.link.waiting() else {
            return;
        };
        counts.receive_queue.0 += u64::from(waiting);
        counts.receive_queue.1 += u64::from(most);
        let (left, then) = self.left;
        if waiting > left && waiting < most && then > 0 {
            let grown = (waiting - left) as usize;
            counts.link_rx.time(grown, now.saturating_sub(then), 0);
        }
        self.left = (waiting, now);
    }

    /// Takes what other dispatchers handed over; how many packets.
    fn take_handed(&mut self) -> usize {
        let before = self.rx.len();
        for ring in &mut self.handed {
            ring.pop_into(ARRAY.saturating_sub(self.rx.len()), &mut self.rx);
            ring.release();
        }
        self.rx.len() - before
    }

    /// Has the packet handler see what came; packets that it sends.
    #[inline]
    fn handle_packets(&mut self, pool: &mut Pool) -> usize {
        let Some(work) = &mut self.packet_work else {
            return 0;
        };
        let before = self.tx.len();
        work.handle(PacketBatch {
            pool,
            came: &mut self.rx,
            back: &mut self.tx,
        });
        self.tx.len() - before
    }

    /// Hands packets to threads; how many fitted. What does not fit is dropped, packet by packet; what fits
    /// behind it is not.
    fn hand_out(&mut self, pool: &mut Pool, counts: &mut ThreadCounts) -> usize {
        let mut handed = 0;
        let mut all = self.rx.drain(..);
        // Packets in a row that go to the same place go together.
        let first = all.as_slice().first();
        let mut next = first.map(|one| self.routes.of(one, self.longest, pool));
        while let Some(to) = next {
            next = None;
            let mut run = 1;
            for buffer in &all.as_slice()[1..] {
                let other = self.routes.of(buffer, self.longest, pool);
                if other != to {
                    next = Some(other);
                    break;
                }
                run += 1;
            }
            let fitted = match to {
                Route::Own(at) => self.targets[at].push_many(&mut all, run),
                Route::Other(at) => {
                    counts.sums.misrouted += run as u64;
                    self.others[at].push_many(&mut all, run)
                }
                Route::Nowhere => {
                    counts.sums.strays += run as u64;
                    all.by_ref().take(run).for_each(|buffer| pool.free(buffer));
                    continue;
                }
            };
            handed += fitted;
            counts.sums.dispatch_drops += (run - fitted) as u64;
            let left = all.by_ref().take(run - fitted);
            left.for_each(|buffer| pool.free(buffer));
        }
        drop(all);
        self.targets.iter_mut().for_each(BufferSender::publish);
        self.others.iter_mut().for_each(BufferSender::publish);
        handed
    }

    /// Packets that the link had no room for, since the beginning.
    pub(crate) fn link_drops(&self) -> Option<u64> {
        self.link.dropped()
    }

    /// Why the link carries nothing any more, said once.
    pub(crate) fn trouble(&mut self) -> Option<String> {
        self.link.trouble()
    }

    /// Frees whatever it holds and what has come to it: nobody sends any more.
    pub(crate) fn close(&mut self, pool: &mut Pool) {
        let held = self.tx.drain(..).chain(self.rx.drain(..));
        held.for_each(|buffer| pool.free(buffer));
        self.link.close(pool);
        let sources = self.sources.iter_mut().map(|source| &mut source.ring);
        for ring in sources.chain(&mut self.handed) {
            while let Some(buffer) = ring.pop() {
                pool.free(buffer);
            }
        }
    }
}

#[cfg(test)]
mod tests;
