//! One stage of a packet path alone: what is before and behind it is done between its calls and not timed.
//!
//! In: a plan that names a stage. Out: what that stage counted. 256 buffers go through it in a round, or more where
//! its batches of messages do not divide that; they come from nothing and go nowhere, so there is neither link nor other side. The
//! stages of the link are the ring in memory alone. Not here: the run around it (`runner::alone`).

use std::sync::atomic::{AtomicU32, Ordering};

use weir_schema::{PacketPathWorkload, PathSide, PathStage};
use weir_sys::clock::{Clock, Scale};
use weir_units::Nanos;

use crate::application::{Application, ApplicationParts};
use crate::counts::{StepClock, ThreadCounts};
use crate::dispatcher::{Dispatcher, DispatcherParts, Routes, StreamRoute, ThreadSource};
use crate::flush::FlushTimer;
use crate::frame::{LowerHeaders, PacketHeader};
use crate::handler::{HandlerStart, MessageWork};
use crate::link::{PacketLink, RingLink, RingLinkParts};
use crate::pool::{BufferReceiver, BufferSender, PacketBuffer, Pool, buffer_ring};

/// Buffers of a round.
const BUFFERS: usize = 256;

/// A link without anything behind it: what is sent lies in it, and what lies in it comes.
#[derive(Debug, Default)]
pub(crate) struct Nowhere {
    packets: Vec<PacketBuffer>,
}

impl PacketLink for Nowhere {
    fn send(&mut self, _: &mut Pool, packets: &mut Vec<PacketBuffer>) -> usize {
        let sent = packets.len();
        self.packets.append(packets);
        sent
    }

    fn receive(&mut self, _: &mut Pool, into: &mut Vec<PacketBuffer>, most: usize) -> usize {
        let first = self.packets.len().saturating_sub(most);
        let received = self.packets.len() - first;
        into.extend(self.packets.drain(first..));
        received
    }

    fn close(&mut self, pool: &mut Pool) {
        self.packets.drain(..).for_each(|buffer| pool.free(buffer));
    }
}

/// A part that makes or takes messages, and the far ends of its rings.
#[derive(Debug)]
struct LoneApplication<W> {
    part: Application<W>,
    sent: BufferReceiver,
    to_it: BufferSender,
}

/// The stage, with what it takes from and gives to.
#[derive(Debug)]
enum Arrangement<W> {
    Making,
    Taking(Box<LoneApplication<W>>),
    Collecting(Box<Dispatcher<Nowhere>>, BufferSender),
    HandingOut(Box<Dispatcher<Nowhere>>, Vec<BufferReceiver>),
    Sending(Box<RingLink>, BufferReceiver),
    Receiving(Box<RingLink>, BufferSender),
}

/// A stage alone.
#[derive(Debug)]
pub(crate) struct OneStage<W> {
    pub(crate) stage: PathStage,
    arrangement: Arrangement<W>,
    /// Maker of requests.
    maker: LoneApplication<W>,
    headers: LowerHeaders,
    /// Packets on their way round.
    packets: Vec<PacketBuffer>,
    pool: Pool,
    clock: Clock,
    batch_tx: usize,
    batch_rx: usize,
    /// Buffers of a round.
    buffers: usize,
    /// Ticks without any packet after which a round is over.
    patience: u64,
}

/// The side that has a stage, where it is alone.
pub(crate) fn side_of(stage: PathStage) -> PathSide {
    match stage {
        PathStage::ApplicationTx | PathStage::DispatchTx | PathStage::LinkTx => PathSide::Client,
        PathStage::ApplicationRx | PathStage::DispatchRx | PathStage::LinkRx => PathSide::Server,
    }
}

impl<W: MessageWork> OneStage<W> {
    pub(crate) fn new(
        stage: PathStage,
        (start, pool): (HandlerStart<'_>, Pool),
        (clock, scale): (Clock, Scale),
    ) -> Self {
        let work = start.work;
        let application = |side| LoneApplication::new(work, side, W::new(&start), scale);
        let dispatcher = |sources, targets| dispatcher(work, stage, sources, targets, scale);
        let arrangement = match stage {
            PathStage::ApplicationTx => Arrangement::Making,
            PathStage::ApplicationRx => {
                Arrangement::Taking(Box::new(application(PathSide::Server)))
            }
            PathStage::DispatchTx => {
                let (to, ring) = buffer_ring(work.ring_slots);
                let timer = FlushTimer::default();
                let dispatcher = dispatcher(vec![ThreadSource { ring, timer }], Vec::new());
                Arrangement::Collecting(Box::new(dispatcher), to)
            }
            PathStage::DispatchRx => {
                let threads = work.streams.first().and_then(|one| one.groups.first());
                let threads = threads.map_or(1, |group| group.threads.len().max(1));
                let rings = (0..threads).map(|_| buffer_ring(work.ring_slots));
                let (targets, ends) = rings.unzip();
                Arrangement::HandingOut(Box::new(dispatcher(Vec::new(), targets)), ends)
            }
            PathStage::LinkTx => {
                let (to, far) = buffer_ring(work.queue_slots);
                Arrangement::Sending(Box::new(ring_link(work, vec![(0, to)], Vec::new())), far)
            }
            PathStage::LinkRx => {
                let (far, from) = buffer_ring(work.queue_slots);
                Arrangement::Receiving(Box::new(ring_link(work, Vec::new(), vec![from])), far)
            }
        };
        let batches = &work.batches;
        Self {
            stage,
            arrangement,
            maker: application(PathSide::Client),
            headers: LowerHeaders::of(work, PathSide::Client),
            packets: Vec::new(),
            pool,
            clock,
            batch_tx: batches.dispatch_tx as usize,
            batch_rx: batches.dispatch_rx as usize,
            buffers: BUFFERS.max(batches.dispatch_tx as usize),
            patience: scale
                .to_ticks(work.flush_ns.max(Nanos(1_000_000)))
                .saturating_mul(2),
        }
    }

    /// Has the buffers of a round go through the stage, each call timed; packets that did.
    pub(crate) fn round(&mut self, counts: &mut ThreadCounts, stop: &AtomicU32) -> usize {
        if self.stage != PathStage::ApplicationTx {
            self.make_packets();
        }
        let clock = self.clock;
        let now = clock.now().0;
        let mut steps = StepClock::<true>::new(clock, now);
        let (pool, packets) = (&mut self.pool, &mut self.packets);
        let mut moved = 0;
        match &mut self.arrangement {
            Arrangement::Making => {
                while moved < self.buffers {
                    let made = self.maker.part.transmit(pool, now, &mut steps, counts);
                    if made == 0 {
                        break;
                    }
                    moved += made;
                }
                self.maker.take_back(packets, pool);
                packets.drain(..).for_each(|buffer| pool.free(buffer));
            }
            Arrangement::Taking(taker) => {
                push_some(&mut taker.to_it, packets);
                moved = taker.handle_all(pool, (clock, self.patience), counts, stop);
            }
            Arrangement::Collecting(dispatcher, to) => {
                push_some(to, packets);
                let now = clock.now().0;
                let mut steps = StepClock::<true>::new(clock, now);
                moved = dispatcher.transmit(pool, now, &mut steps, counts);
                packets.append(&mut dispatcher.link_mut().packets);
            }
            Arrangement::HandingOut(dispatcher, ends) => {
                dispatcher.link_mut().packets.append(packets);
                moved = hand_out_all(dispatcher, ends, (pool, packets), clock, counts);
            }
            Arrangement::Sending(link, far) => {
                moved = send_all(link, (pool, packets), self.batch_tx, clock, counts);
                far.pop_many(usize::MAX, |buffer| packets.push(buffer));
                far.release();
            }
            Arrangement::Receiving(link, near) => {
                push_some(near, packets);
                moved = receive_all(link, (pool, packets), self.batch_rx, clock, counts);
            }
        }
        moved
    }

    /// Makes requests until a round has its buffers, or the pool has no more.
    fn make_packets(&mut self) {
        let mut unseen = ThreadCounts::default();
        while self.packets.len() < self.buffers {
            let now = self.clock.now().0;
            let mut steps = StepClock::<false>::new(self.clock, now);
            let (maker, pool) = (&mut self.maker.part, &mut self.pool);
            let made = maker.transmit(pool, now, &mut steps, &mut unseen);
            let before = self.packets.len();
            self.maker.take_back(&mut self.packets, &self.pool);
            for buffer in &mut self.packets[before..] {
                self.headers.write(self.pool.memory.frame_mut(buffer));
            }
            if made == 0 {
                break;
            }
        }
    }

    /// Frees all that it holds; buffers that never came home.
    pub(crate) fn close(mut self) -> u64 {
        let mut unseen = ThreadCounts::default();
        let pool = &mut self.pool;
        self.packets.drain(..).for_each(|buffer| pool.free(buffer));
        self.maker.part.close(pool, &mut unseen);
        match self.arrangement {
            Arrangement::Making => {}
            Arrangement::Taking(mut taker) => taker.part.close(pool, &mut unseen),
            Arrangement::Collecting(mut one, _) | Arrangement::HandingOut(mut one, _) => {
                one.close(pool);
            }
            Arrangement::Sending(mut link, mut far) => {
                link.close(pool);
                far.pop_many(usize::MAX, |buffer| pool.free(buffer));
            }
            Arrangement::Receiving(mut link, _) => link.close(pool),
        }
        pool.collect();
        pool.in_use()
    }
}

impl<W: MessageWork> LoneApplication<W> {
    fn new(work: &PacketPathWorkload, side: PathSide, handler: W, scale: Scale) -> Self {
        let (tx, sent) = buffer_ring(work.ring_slots);
        let (to_it, rx) = buffer_ring(work.ring_slots);
        let parts = ApplicationParts {
            side,
            stream: work.streams.first().map_or(1, |stream| stream.id),
            thread: 0,
            peers: vec![0],
            turn: (0, 1),
            tx,
            rx,
        };
        Self {
            part: Application::new(work, parts, handler, scale),
            sent,
            to_it,
        }
    }

    /// Takes what it sent; its messages count as answered.
    fn take_back(&mut self, into: &mut Vec<PacketBuffer>, pool: &Pool) {
        let before = into.len();
        self.sent.pop_many(usize::MAX, |buffer| into.push(buffer));
        self.sent.release();
        for buffer in &into[before..] {
            let header = PacketHeader::read(pool.memory.frame(buffer));
            if let Some(header) = header.filter(|header| header.segment == 0) {
                self.part.outstanding.end(header.message);
            }
        }
    }

    /// Has it handle all that came to it, and drops its answers; packets that it took.
    fn handle_all(
        &mut self,
        pool: &mut Pool,
        (clock, patience): (Clock, u64),
        counts: &mut ThreadCounts,
        stop: &AtomicU32,
    ) -> usize {
        let mut moved = 0;
        let mut last = clock.now().0;
        while stop.load(Ordering::Relaxed) == 0 {
            let now = clock.now().0;
            let mut steps = StepClock::<true>::new(clock, now);
            let part = &mut self.part;
            let taken = part.receive(pool, now, &clock, &mut steps, counts, stop);
            self.sent.pop_many(usize::MAX, |buffer| pool.free(buffer));
            self.sent.release();
            moved += taken;
            if taken > 0 {
                last = now;
            } else if self.part.has_nothing() || now.saturating_sub(last) > patience {
                // Less than a batch waits for its time; what there are no buffers for waits for the next round.
                break;
            }
        }
        moved
    }
}

/// Has a dispatcher hand out all that lies in its link; packets that it took.
fn hand_out_all(
    dispatcher: &mut Dispatcher<Nowhere>,
    ends: &mut [BufferReceiver],
    (pool, packets): (&mut Pool, &mut Vec<PacketBuffer>),
    clock: Clock,
    counts: &mut ThreadCounts,
) -> usize {
    let mut moved = 0;
    loop {
        let now = clock.now().0;
        let mut steps = StepClock::<true>::new(clock, now);
        let came = dispatcher.receive(pool, now, &mut steps, counts);
        if came == 0 {
            // What a packet handler sends back.
            let mut untimed = StepClock::<false>::new(clock, now);
            let mut unseen = ThreadCounts::default();
            dispatcher.transmit(pool, now, &mut untimed, &mut unseen);
            packets.append(&mut dispatcher.link_mut().packets);
            return moved;
        }
        moved += came;
        for end in &mut *ends {
            end.pop_many(usize::MAX, |buffer| packets.push(buffer));
            end.release();
        }
    }
}

/// Moves as many packets into a ring as it has room for.
fn push_some(to: &mut BufferSender, packets: &mut Vec<PacketBuffer>) {
    let room = to.room(packets.len());
    to.push_many(&mut packets.drain(..room), usize::MAX);
    to.publish();
}

/// Hands packets to a link, a batch at a time; how many.
fn send_all(
    link: &mut RingLink,
    (pool, packets): (&mut Pool, &mut Vec<PacketBuffer>),
    batch: usize,
    clock: Clock,
    counts: &mut ThreadCounts,
) -> usize {
    let mut moved = 0;
    let mut now_sent = Vec::with_capacity(batch);
    while !packets.is_empty() {
        let first = packets.len().saturating_sub(batch);
        now_sent.extend(packets.drain(first..));
        let mut steps = StepClock::<true>::new(clock, clock.now().0);
        let sent = link.send(pool, &mut now_sent);
        let flush = steps.step();
        counts.link_tx.batch(sent);
        counts.link_tx.time(sent, flush, 0);
        moved += sent;
        if !now_sent.is_empty() {
            packets.append(&mut now_sent);
            break;
        }
    }
    moved
}

/// Takes packets from a link, a burst at a time; how many.
fn receive_all(
    link: &mut RingLink,
    (pool, packets): (&mut Pool, &mut Vec<PacketBuffer>),
    burst: usize,
    clock: Clock,
    counts: &mut ThreadCounts,
) -> usize {
    let mut moved = 0;
    loop {
        let mut steps = StepClock::<true>::new(clock, clock.now().0);
        let received = link.receive(pool, packets, burst);
        let took = steps.step();
        counts.link_rx.take(received);
        if received == 0 {
            return moved;
        }
        counts.link_rx.time(received, took, 0);
        moved += received;
    }
}

fn ring_link(
    work: &PacketPathWorkload,
    to: Vec<(u8, BufferSender)>,
    from: Vec<BufferReceiver>,
) -> RingLink {
    RingLink::new(RingLinkParts {
        to,
        from,
        first_port: work.first_port,
        post_tx: work.batches.link_tx,
        post_rx: work.batches.link_rx,
    })
}

fn dispatcher(
    work: &PacketPathWorkload,
    stage: PathStage,
    sources: Vec<ThreadSource>,
    targets: Vec<BufferSender>,
    scale: Scale,
) -> Dispatcher<Nowhere> {
    let route = StreamRoute {
        stream: work.streams.first().map_or(1, |stream| stream.id),
        own: (0..targets.len()).collect(),
        other: None,
    };
    let parts = DispatcherParts {
        sources,
        targets,
        routes: Routes::Stream(vec![route]),
        others: Vec::new(),
        handed: Vec::new(),
        link: Nowhere::default(),
        side: side_of(stage),
        seed: 1,
    };
    let mut work = work.clone();
    if stage == PathStage::DispatchRx {
        // What a packet handler sends back does not wait for more.
        work.batches.dispatch_tx = 1;
    }
    Dispatcher::new(&work, parts, scale)
}
