//! The link of a stage alone: all that is before and behind the stage is done here, in calls that are not timed as its own.
//!
//! In: ends of the rings of the stage, what makes requests. Out: packets that go round through the stage, 256 or as
//! many as a batch has. A call of `receive` that brings nothing counts as time without work: what
//! came through is taken back in it, and goes round once more. Not here: the thread around it (`path_thread`).

use weir_schema::{PathSide, PathStage};
use weir_sys::clock::{Clock, Scale};

use super::{AnyLink, PacketLink};
use crate::application::{Application, ApplicationParts};
use crate::counts::{StepClock, ThreadCounts};
use crate::frame::LowerHeaders;
use crate::handler::{HandlerStart, MessageWork};
use crate::pool::{BufferReceiver, BufferSender, PacketBuffer, Pool, buffer_ring};

/// Buffers of a round.
const BUFFERS: usize = 256;

/// Makes packets of requests, where there are buffers; how many.
type RequestMaker = Box<dyn FnMut(&mut Pool, &mut Vec<PacketBuffer>) -> usize + Send>;

/// The maker of a client's requests for a thread of any side.
pub(crate) fn request_maker<W: MessageWork>(
    start: &HandlerStart<'_>,
    (clock, scale): (Clock, Scale),
) -> RequestMaker {
    let work = start.work;
    let (tx, mut sent) = buffer_ring(work.ring_slots);
    let parts = ApplicationParts {
        side: PathSide::Client,
        stream: work.streams.first().map_or(1, |stream| stream.id),
        thread: 0,
        peers: vec![0],
        turn: (0, 1),
        tx,
        rx: buffer_ring(work.ring_slots).1,
    };
    let mut part = Application::new(work, parts, W::new(start), scale);
    let mut headers = LowerHeaders::of(work, PathSide::Client);
    let mut unseen = ThreadCounts::default();
    Box::new(move |pool, into| {
        let (now, before) = (clock.now().0, into.len());
        let mut steps = StepClock::<false>::new(clock, now);
        let made = part.transmit(pool, now, &mut steps, &mut unseen);
        sent.pop_into(usize::MAX, into);
        sent.release();
        for buffer in &mut into[before..] {
            headers.write(pool.memory.frame_mut(buffer));
        }
        made
    })
}

/// A link with one stage before it and nothing behind it.
pub(crate) struct LoneLink {
    pub(crate) stage: PathStage,
    /// The clock, and the maker of requests, once the thread has them.
    pub(crate) source: Option<(Clock, RequestMaker)>,
    /// To the stage, and from it.
    pub(crate) to: BufferSender,
    pub(crate) from: Vec<BufferReceiver>,
    /// The link that is the stage.
    pub(crate) ring: AnyLink,
    /// Packets that it sends at once.
    pub(crate) batch: usize,
    pub(crate) round: LoneRound,
}

/// State of a round.
#[derive(Default)]
pub(crate) struct LoneRound {
    /// Packets that have yet to go through the stage, and that went.
    left: Vec<PacketBuffer>,
    came: Vec<PacketBuffer>,
    /// The next call is the stage's own.
    is_own: bool,
    /// Packets of the last call of a link, and its ticks.
    timed: (usize, u64),
}

impl LoneLink {
    /// Takes back what came through the stage, and gives it what goes through next.
    fn turn_round(&mut self, pool: &mut Pool) {
        let before = self.round.came.len();
        self.take_back(pool);
        let (all, most) = (self.round.came.len(), BUFFERS.max(self.batch));
        // Less than a round waits while more of it comes.
        if self.round.left.is_empty() && (all == before || all >= most) {
            std::mem::swap(&mut self.round.left, &mut self.round.came);
            // A stage that makes messages has these back as answers.
            if self.stage != PathStage::ApplicationTx
                && let Some((_, make)) = &mut self.source
            {
                while pool.in_use() < most as u64 && make(pool, &mut self.round.left) > 0 {}
            }
        }
        let most = match self.stage {
            PathStage::DispatchRx => 0,
            PathStage::LinkTx => self.batch,
            _ => usize::MAX,
        };
        let most = self.to.room(self.round.left.len().min(most));
        self.to.push_many(&mut self.round.left.drain(..most), most);
        self.to.publish();
    }

    fn take_back(&mut self, pool: &mut Pool) {
        for ring in &mut self.from {
            ring.pop_into(usize::MAX, &mut self.round.came);
            ring.release();
        }
        if self.stage == PathStage::ApplicationRx {
            // Answers are no requests.
            pool.free_many(&mut self.round.came);
        }
    }
}

impl PacketLink for LoneLink {
    fn send(&mut self, pool: &mut Pool, packets: &mut Vec<PacketBuffer>) -> usize {
        if self.stage == PathStage::LinkTx {
            return self.ring.send(pool, packets);
        }
        let sent = packets.len();
        self.round.came.append(packets);
        sent
    }

    fn receive(&mut self, pool: &mut Pool, into: &mut Vec<PacketBuffer>, most: usize) -> usize {
        let before = into.len();
        self.round.is_own = !self.round.is_own;
        match (self.stage, &self.source) {
            (PathStage::DispatchRx, _) if self.round.is_own => {
                let first = self.round.left.len().saturating_sub(most);
                into.extend(self.round.left.drain(first..));
            }
            (PathStage::LinkRx, Some((clock, _))) if self.round.is_own => {
                let mut steps = StepClock::<true>::new(*clock, clock.now().0);
                let received = self.ring.receive(pool, into, most);
                self.round.timed = (received, steps.step());
            }
            _ => self.turn_round(pool),
        }
        into.len() - before
    }

    #[cold]
    fn count(&mut self, counts: &mut ThreadCounts) {
        let (packets, ticks) = std::mem::take(&mut self.round.timed);
        if packets > 0 {
            counts.link_rx.time(packets, ticks, 0);
        }
    }

    fn close(&mut self, pool: &mut Pool) {
        self.take_back(pool);
        pool.free_many(&mut self.round.came);
        pool.free_many(&mut self.round.left);
        self.ring.close(pool);
    }
}
