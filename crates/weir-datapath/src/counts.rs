//! Counts of a thread's stages: plain numbers of its own, in ticks, reset after each iteration.
//!
//! In: packets, and chained reads of the clock. Out: figures in nanoseconds ([`ThreadCounts::figures`]).

use weir_schema::{PathThread, StageFigures};
use weir_stats::Histogram;
use weir_sys::clock::Scale;
use weir_units::Nanos;

/// Counts of a stage.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StageCount {
    packets: u64,
    timed_packets: u64,
    polls: u64,
    empty_polls: u64,
    busy: u64,
    stall: u64,
    stalls: u64,
    stall_range: TickRange,
    calls: u64,
    call: u64,
    call_range: TickRange,
    batches: [u64; 9],
}

/// The shortest and longest of some spans.
#[derive(Clone, Copy, Debug, Default)]
struct TickRange(Option<(u64, u64)>);

impl TickRange {
    fn add(&mut self, ticks: u64) {
        let (low, high) = self.0.unwrap_or((ticks, ticks));
        self.0 = Some((low.min(ticks), high.max(ticks)));
    }
}

impl StageCount {
    /// It was looked at and had nothing to do.
    #[inline]
    pub(crate) fn empty(&mut self) {
        self.polls += 1;
        self.empty_polls += 1;
    }

    /// It moved so many packets.
    #[inline]
    pub(crate) fn batch(&mut self, packets: usize) {
        let packets = packets as u64;
        self.polls += 1;
        self.packets += packets;
        if packets > 0 {
            let class = packets.ilog2().min(8);
            self.batches[class as usize] += 1;
        }
    }

    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    /// It took so many packets, or none.
    #[inline]
    pub(crate) fn take(&mut self, packets: usize) {
        if packets == 0 {
            self.empty();
        } else {
            self.batch(packets);
        }
    }

    /// That took so many ticks, of which it waited for some.
    #[inline]
    pub(crate) fn time(&mut self, packets: usize, busy: u64, stall: u64) {
        self.timed_packets += packets as u64;
        self.busy += busy;
        self.stall += stall;
    }

    /// A wait of this length.
    #[inline]
    pub(crate) fn stall(&mut self, ticks: u64) {
        self.stalls += 1;
        self.stall_range.add(ticks);
    }

    /// A call of the work itself.
    #[inline]
    pub(crate) fn call(&mut self, ticks: u64) {
        self.calls += 1;
        self.call += ticks;
        self.call_range.add(ticks);
    }

    fn figures(&self, scale: Scale) -> StageFigures {
        let nanos = |ticks| Nanos(scale.to_nanos(ticks));
        let [stall, call] = [self.stall_range, self.call_range].map(|range| range.0);
        StageFigures {
            packets: self.packets,
            timed_packets: self.timed_packets,
            polls: self.polls,
            empty_polls: self.empty_polls,
            busy_ns: nanos(self.busy),
            stall_ns: nanos(self.stall),
            stalls: self.stalls,
            longest_stall_ns: stall.map(|(_, high)| nanos(high)),
            shortest_stall_ns: stall.map(|(low, _)| nanos(low)),
            calls: self.calls,
            calls_ns: nanos(self.call),
            longest_call_ns: call.map(|(_, high)| nanos(high)),
            shortest_call_ns: call.map(|(low, _)| nanos(low)),
            batches: self.batches,
        }
    }
}

/// Counts of a thread in an iteration.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadCounts {
    pub(crate) application_tx: StageCount,
    pub(crate) application_rx: StageCount,
    pub(crate) dispatch_tx: StageCount,
    pub(crate) dispatch_rx: StageCount,
    pub(crate) link_tx: StageCount,
    pub(crate) link_rx: StageCount,
    /// Sums that results have as they are here.
    pub(crate) sums: PathThread,
    /// In ticks.
    pub(crate) idle: u64,
    /// In ticks.
    pub(crate) timed: u64,
    /// Packets that waited in the link at all looks, and what it could have held at these.
    pub(crate) receive_queue: (u64, u64),
    /// Sum and number of looks at the pool.
    pub(crate) pool_use: (u64, u64),
    /// Messages that came back, and their bytes.
    pub(crate) answered: u64,
    /// In nanoseconds.
    pub(crate) latency: Histogram,
}

impl ThreadCounts {
    /// The same in the form of results, over so many ticks; who the thread is stays to be said.
    pub(crate) fn figures(self, span: u64, scale: Scale) -> PathThread {
        let nanos = |ticks| Nanos(scale.to_nanos(ticks));
        let (sum, looks) = self.pool_use;
        let (waited, room) = self.receive_queue;
        PathThread {
            span_ns: nanos(span),
            application_tx: self.application_tx.figures(scale),
            application_rx: self.application_rx.figures(scale),
            dispatch_tx: self.dispatch_tx.figures(scale),
            dispatch_rx: self.dispatch_rx.figures(scale),
            link_tx: self.link_tx.figures(scale),
            link_rx: self.link_rx.figures(scale),
            idle_ns: nanos(self.idle),
            timed_ns: nanos(self.timed),
            receive_queue_use: (room > 0).then(|| mean(waited, room)),
            pool_use: (looks > 0).then(|| mean(sum, looks)),
            latency: (!self.latency.is_empty()).then_some(self.latency),
            ..self.sums
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a mean of small numbers")]
fn mean(sum: u64, count: u64) -> f64 {
    sum as f64 / count as f64
}

/// The clock at a step of a timed pass; nothing is read where the pass is not timed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepClock<const TIMED: bool> {
    clock: weir_sys::clock::Clock,
    /// The end of the last step, which is the start of the next.
    last: u64,
}

impl<const TIMED: bool> StepClock<TIMED> {
    pub(crate) fn new(clock: weir_sys::clock::Clock, now: u64) -> Self {
        Self { clock, last: now }
    }

    /// Ticks since the last step's end, which is now; 0 where nothing is timed.
    #[inline]
    pub(crate) fn step(&mut self) -> u64 {
        if !TIMED {
            return 0;
        }
        let now = self.clock.now().0;
        let step = now.saturating_sub(self.last);
        self.last = now;
        step
    }

    /// The last read.
    #[inline]
    pub(crate) fn last(&self) -> u64 {
        self.last
    }
}
