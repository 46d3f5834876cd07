//! Latency and bandwidth of messages between ranks: ping-pong of pairs one after another, rings
//! of all ranks at once (spec: effective bandwidth, 9). What shall be done, and what was.

use serde::{Deserialize, Serialize};
use weir_units::{Bytes, JsonSchema, Nanos};

use crate::workload::WorkloadFacts;
use crate::world::{MpiFacts, RankFacts};

/// Short messages for the latency, long ones for the bandwidth, over the engine of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatencyBandwidthWorkload {
    /// Test that the latency is taken from.
    pub latency: MessageTest,
    /// Test that the bandwidth is taken from.
    pub bandwidth: MessageTest,
    /// Pairs of all ranks are measured, however long it takes, and each is shown.
    #[serde(default)]
    pub matrix: bool,
    /// Of the random orders.
    pub seed: u64,
    /// Loops are made longer until one takes this long.
    pub min_time_ns: Option<Nanos>,
    /// Time limit: when half of it is over, no further random ring of the short messages is begun,
    /// and none of the long ones when all of it is; one of each is always measured.
    pub max_time_ns: Option<Nanos>,
    /// Without progress for this long the run ends.
    pub timeout_ns: Nanos,
}

impl WorkloadFacts for LatencyBandwidthWorkload {
    fn title(&self) -> String {
        "latency and bandwidth".to_owned()
    }

    fn timeout_ns(&self) -> Option<Nanos> {
        Some(self.timeout_ns)
    }

    fn set_timeout(&mut self, timeout: Nanos) {
        self.timeout_ns = timeout;
    }
}

impl Default for LatencyBandwidthWorkload {
    /// As HPCC has it.
    fn default() -> Self {
        Self {
            latency: MessageTest {
                bytes: Bytes(8),
                ping_pong: Loop::of(8, 5),
                ping_pong_limit_ns: Nanos::from_secs(10),
                ring: Loop::of(8, 5),
                random_rings: 30,
            },
            bandwidth: MessageTest {
                bytes: Bytes(2_000_000),
                ping_pong: Loop::of(1, 2),
                ping_pong_limit_ns: Nanos::from_secs(30),
                ring: Loop::of(3, 2),
                random_rings: 10,
            },
            matrix: false,
            seed: 1,
            min_time_ns: None,
            max_time_ns: None,
            timeout_ns: Nanos::from_secs(60),
        }
    }
}

/// Messages of one size: pairs, the ring in rank order, rings in random orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageTest {
    /// Of one message.
    pub bytes: Bytes,
    /// Of each pair.
    pub ping_pong: Loop,
    /// All pairs together take about this long at most: where there are many ranks, pairs of some
    /// of them alone are measured.
    pub ping_pong_limit_ns: Nanos,
    /// Of each ring.
    pub ring: Loop,
    /// Random orders.
    pub random_rings: u32,
}

/// Repetitions and measurements of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Loop {
    /// Iterations that are timed together. Loops that the clock is too coarse for, and those
    /// shorter than `min_time_ns`, are made longer.
    pub loop_length: u64,
    /// Number of timed measurements; the best counts.
    pub measurements: u32,
}

impl Loop {
    const fn of(loop_length: u64, measurements: u32) -> Self {
        Self {
            loop_length,
            measurements,
        }
    }
}

/// Result of the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyBandwidthResult {
    /// The transport.
    pub transport: String,
    /// Host and CPU of each rank.
    pub ranks: Vec<RankFacts>,
    /// The MPI library, where there is one.
    pub mpi: Option<MpiFacts>,
    /// A loop is at least ten of these long.
    pub tick_ns: Nanos,
    /// Of the short messages.
    pub latency: MessageTestResult,
    /// Of the long messages.
    pub bandwidth: MessageTestResult,
    /// First and last bytes of messages, of all ranks, that were not what was sent.
    pub wrong_bytes: u64,
}

/// Messages of one size. What a run that ended early did not come to is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessageTestResult {
    /// Of one message.
    pub bytes: Bytes,
    /// Pairs are of rank 0, and of one rank in so many after it.
    pub stride: Option<u32>,
    /// In the order in which they were measured.
    pub pairs: Vec<PairResult>,
    /// In rank order.
    pub natural: Option<RingResult>,
    /// In random orders.
    pub random: Vec<RingResult>,
}

/// One message there and one back, again and again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PairResult {
    /// The rank that begins, and that has the clock.
    pub client: u32,
    /// The rank that answers.
    pub server: u32,
    /// Iterations of a measurement, as they were.
    pub loop_length: u64,
    /// Of each measurement, all its iterations.
    pub times_ns: Vec<Nanos>,
}

/// Every rank sends to both its neighbours and receives from both, again and again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RingResult {
    /// The ranks, each one's right neighbour after it.
    pub order: Vec<u32>,
    /// Iterations of a measurement, as they were.
    pub loop_length: u64,
    /// With one combined call for each direction: of each measurement the slowest rank's time.
    pub sendrecv_ns: Vec<Nanos>,
    /// With both directions begun at once and then waited for.
    pub nonblocking_ns: Vec<Nanos>,
}
