//! Result of a packet path: counts and times of each stage, per stretch of time and thread.
//!
//! In: counts of threads. Out: figures by the formulas of the printed table (spec: packet datapath,
//! 2). Not here: how it is printed.

use serde::{Deserialize, Serialize};
use weir_stats::Histogram;
use weir_units::{Bytes, JsonSchema, Nanos};

use crate::outcome::LoopOutcome;
use crate::packet_path::PathStage;

/// Result of a packet path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PacketPathOutcome {
    /// The threads as workers of a loop over messages: those of the client count.
    pub workers: LoopOutcome,
    /// In order; the last may be a part, where the run was ended.
    pub iterations: Vec<PathIteration>,
    /// Buffers that never came back to their pools, once all threads had ended.
    pub buffers_in_use: Option<u64>,
    /// Of one read of the clock, in nanoseconds.
    pub clock_read_ns: f64,
    /// The idle policy that `auto` came to.
    pub idle: crate::packet_path::IdlePolicy,
    /// The pages that the pools were made of.
    #[serde(default)]
    pub pool_pages: Option<crate::packet_path::PoolPages>,
    /// The stage that was alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_stage: Option<PathStage>,
}

/// One stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathIteration {
    /// Clients before servers, each in the order of their numbers.
    pub threads: Vec<PathThread>,
}

/// One thread in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathThread {
    /// Side of the thread.
    pub side: PathSide,
    /// Its number on that side.
    pub thread: u8,
    /// It makes and takes messages.
    pub is_application: bool,
    /// It is between others and the link.
    pub is_dispatcher: bool,
    /// Its length, by the thread's own clock reads.
    pub span_ns: Nanos,
    /// Making messages.
    pub application_tx: StageFigures,
    /// Taking messages.
    pub application_rx: StageFigures,
    /// Collecting packets; its stall is handing them to the link.
    pub dispatch_tx: StageFigures,
    /// Handing packets out; its stall is taking them from the link.
    pub dispatch_rx: StageFigures,
    /// Handing packets to the link.
    pub link_tx: StageFigures,
    /// Taking packets from the link, in all passes; its time is that between looks that found more of them waiting,
    /// where the link says so.
    pub link_rx: StageFigures,
    /// Passes over all stages.
    pub passes: u64,
    /// Of these, such in which nothing moved.
    pub empty_passes: u64,
    /// Passes that were timed.
    pub timed_passes: u64,
    /// Time of timed passes that stages without anything to do took.
    pub idle_ns: Nanos,
    /// Time of timed passes.
    pub timed_ns: Nanos,
    /// Packets that found their ring to the dispatcher full.
    pub application_drops: u64,
    /// Packets that found their ring from the dispatcher full.
    pub dispatch_drops: u64,
    /// Messages without an answer in time.
    pub lost: u64,
    /// Answers to messages that were given up.
    pub late: u64,
    /// Messages that were begun in time and answered after the end of the last iteration: in latencies, not in rates.
    #[serde(default)]
    pub answered_after_end: u64,
    /// Messages of which packets are missing.
    pub incomplete: u64,
    /// Messages whose content was not what it should be.
    pub wrong: u64,
    /// Packets that came to a dispatcher that does not serve their stream, and were handed over.
    pub misrouted: u64,
    /// Packets that nobody here takes.
    pub strays: u64,
    /// Packets that came to the link and found no room, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_drops: Option<u64>,
    /// Times that the link had no room for all that was ready to be sent.
    #[serde(default)]
    pub link_full: u64,
    /// Fill of the link's queue of received packets, 0 to 1: the mean of all looks, where the link
    /// has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_queue_use: Option<f64>,
    /// Messages that a rate asked for.
    #[serde(default)]
    pub intended: u64,
    /// Messages that were begun.
    #[serde(default)]
    pub begun: u64,
    /// Packets that were dropped on purpose.
    pub dropped_on_purpose: u64,
    /// Packets that came faster than the server's sink takes them.
    #[serde(default)]
    pub sink_drops: u64,
    /// Messages of each size that were begun, where requests have several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub request_sizes: Vec<RequestSizeCount>,
    /// Rounds without room for another batch of messages in flight.
    pub rounds_without_credit: u64,
    /// Rounds that found too few buffers.
    pub rounds_without_buffers: u64,
    /// Mean number of buffers in use, where it was looked at.
    pub pool_use: Option<f64>,
    /// From sending a message to its answer, in nanoseconds; of clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Histogram>,
}

/// Number of messages of a size that were begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestSizeCount {
    /// Of a request, its header included.
    pub request_bytes: Bytes,
    /// Number of messages.
    pub messages: u64,
}

/// Side of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathSide {
    /// Makes messages.
    #[default]
    Client,
    /// Answers them.
    Server,
}

/// Figures of a stage. Times are of the timed passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageFigures {
    /// Packets, in all passes.
    pub packets: u64,
    /// Packets in timed passes.
    pub timed_packets: u64,
    /// Times it was looked at.
    pub polls: u64,
    /// Of these, without anything to do.
    pub empty_polls: u64,
    /// Time with packets, stalls included.
    pub busy_ns: Nanos,
    /// Of it, time that was waited.
    pub stall_ns: Nanos,
    /// Stalls that were timed.
    pub stalls: u64,
    /// The longest of them.
    pub longest_stall_ns: Option<Nanos>,
    /// The shortest of them.
    pub shortest_stall_ns: Option<Nanos>,
    /// Calls of the work itself that were timed: making or handling a batch.
    pub calls: u64,
    /// Time of these calls.
    pub calls_ns: Nanos,
    /// The longest of them.
    pub longest_call_ns: Option<Nanos>,
    /// The shortest of them.
    pub shortest_call_ns: Option<Nanos>,
    /// Batches by size: 1, 2–3, 4–7 … 256 and more packets.
    pub batches: [u64; 9],
}

impl StageFigures {
    /// Millions of packets per second, over a thread's time.
    pub fn million_per_s(&self, span: Nanos) -> f64 {
        ratio(self.packets, span.0) * 1e3
    }

    /// Microseconds per packet with it, stalls included.
    pub fn mean_us(&self) -> Option<f64> {
        (self.timed_packets > 0).then(|| ratio(self.busy_ns.0, self.timed_packets) / 1e3)
    }

    /// Microseconds per packet that were waited.
    pub fn mean_stall_us(&self) -> Option<f64> {
        (self.timed_packets > 0).then(|| ratio(self.stall_ns.0, self.timed_packets) / 1e3)
    }
}

impl PathThread {
    /// A stage of it, by its word in plans.
    pub fn stage(&self, stage: PathStage) -> &StageFigures {
        self.stages()[stage.row_place()].1
    }

    /// Packets that found no room, at full rings, in the link, at a sink.
    pub fn dropped(&self) -> u64 {
        self.application_drops
            + self.dispatch_drops
            + self.sink_drops
            + self.link_drops.unwrap_or_default()
    }

    /// All of them, in the order of their rows in tables.
    pub fn stages(&self) -> [(&'static str, &StageFigures); 6] {
        [
            ("application_tx", &self.application_tx),
            ("application_rx", &self.application_rx),
            ("dispatch_tx", &self.dispatch_tx),
            ("dispatch_rx", &self.dispatch_rx),
            ("link_tx", &self.link_tx),
            ("link_rx", &self.link_rx),
        ]
    }
}

impl PacketPathOutcome {
    /// A count of the threads of a side, over all iterations.
    pub fn sum(&self, side: PathSide, of: impl Fn(&PathThread) -> u64) -> u64 {
        let threads = self.iterations.iter().flat_map(|one| &one.threads);
        let counts = threads.filter(|one| one.side == side).map(of);
        counts.fold(0, u64::saturating_add)
    }

    /// Packets per second that came to dispatchers of the client, or that a server alone sent, over all iterations; of a stage alone those that
    /// it would move if it did nothing else.
    pub fn packets_per_s(&self) -> Option<f64> {
        if let Some(stage) = self.only_stage {
            let threads = || self.iterations.iter().flat_map(|one| &one.threads);
            let packets = threads().map(|one| one.stage(stage).timed_packets).sum();
            let busy: u64 = threads().map(|one| one.stage(stage).busy_ns.0).sum();
            return (busy > 0).then(|| ratio(packets, busy) * 1e9);
        }
        let rates = self.iterations.iter().map(|one| {
            let has_client = one.threads.iter().any(|t| t.side == PathSide::Client);
            let of = |thread: &PathThread| {
                let stage = match thread.side {
                    PathSide::Client => &thread.dispatch_rx,
                    PathSide::Server if has_client => return 0.0,
                    PathSide::Server => &thread.dispatch_tx,
                };
                stage.million_per_s(thread.span_ns) * 1e6
            };
            // A sum of nothing would be -0.
            one.threads.iter().map(of).fold(0.0, |sum, rate| sum + rate)
        });
        let rates: Vec<f64> = rates.collect();
        let count = u32::try_from(rates.len()).ok().filter(|n| *n > 0)?;
        Some(rates.iter().sum::<f64>() / f64::from(count))
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for the eye")]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    part as f64 / whole as f64
}
