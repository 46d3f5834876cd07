//! Outcome of RPCs: measurements of each master, and their part for each endpoint.
//!
//! In: latencies in nanoseconds, exact ones or counted in buckets. Out: figures by the formulas that
//! reports of the family use (spec: RPC self-test, 4). Every RPC is one of three: succeeded, failed,
//! not sent; only the first have a latency. Not here: how it is printed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_stats::Histogram;
use weir_units::{Bytes, JsonSchema, Nanos};

use crate::error_code::ErrorCode;
use crate::outcome::LoopOutcome;
use crate::result::{CpuUse, Failure, Span};
use crate::rpc_endpoints::RpcEndpoint;
use crate::rpc_samples::RpcSample;
use crate::rpc_together::RpcProgress;

/// Outcome of RPCs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RpcOutcome {
    /// The same as operations of a loop, over all masters and endpoints.
    pub workers: LoopOutcome,
    /// By rank and tag.
    pub masters: Vec<RpcMaster>,
}

/// Precision of the histograms: one part in two thousand.
pub const RPC_HISTOGRAM_BITS: u8 = 10;

/// An empty histogram of latencies, as masters and endpoints have it.
pub fn rpc_histogram() -> Histogram {
    let fine = Histogram::with_bits(RPC_HISTOGRAM_BITS).unwrap_or_default();
    fine.with_squares()
}

/// Measurements of one master.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RpcMaster {
    /// The master; this run itself has the rank after the highest of the group, and tag 0.
    pub endpoint: RpcEndpoint,
    /// Reason that it measured nothing.
    pub failure: Option<Failure>,
    /// From the first RPC that counts to the end of the last.
    pub duration_ns: Nanos,
    /// Time of the measurement, on the run's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    /// RPCs that were to be sent; where a time was the bound, as many as came about.
    pub requested: u64,
    /// With a reply that is as it should be.
    pub succeeded: u64,
    /// With another one, or with none.
    pub failed: u64,
    /// Never sent.
    pub not_sent: u64,
    /// Of those that succeeded, from the intended start where there is one.
    pub latency: Histogram,
    /// The same from when they were really sent, where that is another time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Histogram>,
    /// Figures of the latencies; nothing where none succeeded.
    pub figures: Option<LatencyFigures>,
    /// Each endpoint once, by rank and tag.
    pub endpoints: Vec<RpcEndpointResult>,
    /// Transport of the data, as the beginning of a URI.
    pub transport: String,
    /// Path of bulk data: `rma`, `shm`, `emulated-rendezvous`, `emulated-eager`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulk_path: Option<String>,
    /// In flight on the mean, by rate and mean latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_in_flight: Option<f64>,
    /// The share of their time in which its threads worked, and did not look or wait for replies; where no
    /// pace was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<f64>,
    /// Its threads worked nearly all the time: the figures are those of the client.
    #[serde(default)]
    pub client_bound: bool,
    /// The pace was not kept, where one was asked for.
    #[serde(default)]
    pub overload: bool,
    /// Payloads that were not what was sent; their RPCs are among those that failed.
    #[serde(default)]
    pub mismatches: u64,
    /// Payloads of replies that were compared or summed.
    #[serde(default)]
    pub verified: u64,
    /// Time that this check took the master, and writing or summing the data it sent.
    #[serde(default)]
    pub verify_ns: Nanos,
    /// Replies that came after their RPC had timed out.
    #[serde(default)]
    pub late_replies: u64,
    /// Requests that had to wait for a buffer of their server.
    #[serde(default)]
    pub buffer_waits: u64,
    /// RPCs at once that a server allowed a thread, where that is fewer than it wanted; the fewest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credits: Option<u32>,
    /// RPCs that had begun and waited at their master: for room to send, or for a credit that a server kept.
    #[serde(default)]
    pub credit_waits: u64,
    /// Time that those waited together, and in which others did not begin for want of a credit.
    #[serde(default)]
    pub credit_wait_ns: Nanos,
    /// Segments that were sent again, where the transport counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Of messages and data, both ways, with what frames them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_on_wire: Option<Bytes>,
    /// The threads of the master.
    #[serde(default)]
    pub cpu: CpuUse,
    /// The contexts that answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<RpcServerUse>,
    /// Interface of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<RpcInterface>,
    /// Connections that were made, where a number of them was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// Troubles of its connections.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub troubles: Vec<RpcTrouble>,
    /// Progress over time, of a master that others were at work beside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub progress: Vec<RpcProgress>,
    /// Every RPC that was sent, in the order in which they were begun, where they were kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<RpcSample>,
}

/// Measurements of one endpoint for one master.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RpcEndpointResult {
    /// The endpoint.
    pub endpoint: RpcEndpoint,
    /// RPCs with a reply that is as it should be.
    pub succeeded: u64,
    /// Others, by code.
    pub failed: BTreeMap<ErrorCode, u64>,
    /// Of those that succeeded.
    pub latency: Histogram,
    /// Median of their latencies; the lower of two middles.
    pub median_ns: Option<Nanos>,
    /// The median is more than half as long again as that of most endpoints, and farther from it than they
    /// are from each other.
    #[serde(default)]
    pub is_slow: bool,
    /// For so long it was called and no other, where each endpoint has a turn of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_ns: Option<Nanos>,
    /// The connection and the first RPC, where they were timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<RpcFirst>,
}

/// Times of the first connection and RPC of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RpcFirst {
    /// Until the server has answered the greeting on a new connection; nothing without a connection.
    pub connect_ns: Option<Nanos>,
    /// The first RPC after that; nothing where it failed.
    pub rpc_ns: Option<Nanos>,
}

/// CPU use of a server's context meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RpcServerUse {
    /// Endpoint of the server.
    pub endpoint: RpcEndpoint,
    /// Of the thread that it runs on, which others may run on as well.
    pub cpu: CpuUse,
}

/// Connections or sessions that were lost or not to be had, those of one code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RpcTrouble {
    /// Endpoint of the first.
    pub endpoint: RpcEndpoint,
    /// Time at which the first was lost, from the first RPC that counts; nothing where connections
    /// were not to be had.
    pub after_ns: Option<Nanos>,
    /// Code of the failure.
    pub code: ErrorCode,
    /// Text of the first one.
    pub cause: String,
    /// Number of troubles.
    pub count: u64,
}

/// A network interface and who used it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RpcInterface {
    /// Its name.
    pub name: String,
    /// The node of memory that it is near to.
    pub node: Option<u32>,
    /// The CPUs that the master may use, as the kernel lists them.
    pub client_cpus: String,
    /// Their node, where they are all of one.
    pub client_node: Option<u32>,
}

/// Figures of latencies, by the formulas of the family's reports: of n sorted values those at n/4, n/2
/// and 3n/4, counted from 0; the deviation is that of all values, not of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyFigures {
    /// The shortest.
    pub min_ns: Nanos,
    /// A quarter was shorter.
    pub p25_ns: Nanos,
    /// Half was shorter.
    pub median_ns: Nanos,
    /// A quarter was longer.
    pub p75_ns: Nanos,
    /// The longest.
    pub max_ns: Nanos,
    /// The mean.
    pub mean_ns: f64,
    /// The deviation from it.
    pub deviation_ns: f64,
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts and sums stay far below 2^53"
)]
impl LatencyFigures {
    /// Of exact values in ascending order; nothing of none.
    pub fn of_sorted(values: &[u64]) -> Option<Self> {
        let n = values.len();
        let at = |index: usize| values.get(index).copied().map(Nanos);
        let mean_ns = values.iter().map(|v| u128::from(*v)).sum::<u128>() as f64 / n as f64;
        let squares = values.iter().map(|v| (*v as f64 - mean_ns).powi(2));
        Some(Self {
            min_ns: at(0)?,
            p25_ns: at(n / 4)?,
            median_ns: at(n / 2)?,
            p75_ns: at(n.checked_mul(3)? / 4)?,
            max_ns: at(n - 1)?,
            mean_ns,
            deviation_ns: (squares.sum::<f64>() / n as f64).sqrt(),
        })
    }

    /// Of values in buckets: minimum, maximum and mean are exact, the quarters as fine as the buckets,
    /// the deviation exact where the squares were kept. Nothing of an empty one.
    pub fn of_histogram(latency: &Histogram) -> Option<Self> {
        let n = latency.count();
        let at = |index: u64| value_at(latency, index).map(Nanos);
        let variance = latency.spread().map_or(0.0, |spread| spread.variance);
        Some(Self {
            min_ns: Nanos(latency.min()?),
            p25_ns: at(n / 4)?,
            median_ns: at(n / 2)?,
            // Three quarters, without a product that may be too large.
            p75_ns: at(n / 4 * 3 + n % 4 * 3 / 4)?,
            max_ns: Nanos(latency.max()?),
            mean_ns: latency.mean()?,
            deviation_ns: (variance * (n - 1) as f64 / n as f64).sqrt(),
        })
    }
}

/// The value at a place of the sorted ones, from 0.
pub fn value_at(latency: &Histogram, index: u64) -> Option<u64> {
    let (min, max) = (latency.min()?, latency.max()?);
    let mut before = 0;
    let reaches = |bucket: &weir_stats::Bucket| {
        before += bucket.count;
        before > index
    };
    let bucket = latency.buckets().find(reaches)?;
    Some(bucket.middle.clamp(min, max))
}

impl RpcMaster {
    /// One that has measured nothing yet.
    pub fn new(endpoint: RpcEndpoint, transport: &str) -> Self {
        Self {
            endpoint,
            failure: None,
            duration_ns: Nanos::ZERO,
            span: None,
            requested: 0,
            succeeded: 0,
            failed: 0,
            not_sent: 0,
            latency: rpc_histogram(),
            service: None,
            figures: None,
            endpoints: Vec::new(),
            transport: transport.to_owned(),
            bulk_path: None,
            effective_in_flight: None,
            busy: None,
            client_bound: false,
            overload: false,
            mismatches: 0,
            verified: 0,
            verify_ns: Nanos::ZERO,
            late_replies: 0,
            buffer_waits: 0,
            credits: None,
            credit_waits: 0,
            credit_wait_ns: Nanos::ZERO,
            retransmits: None,
            bytes_on_wire: None,
            cpu: CpuUse::default(),
            servers: Vec::new(),
            interface: None,
            connections: None,
            troubles: Vec::new(),
            progress: Vec::new(),
            samples: Vec::new(),
        }
    }

    /// Adds up what the endpoints have; the rest of what was requested was not sent. Takes the figures
    /// from the histograms: of the master, and of each endpoint the median.
    pub fn conclude(&mut self) {
        self.endpoints.sort_by_key(|one| one.endpoint);
        for one in &mut self.endpoints {
            let middle = one.latency.count().saturating_sub(1) / 2;
            one.median_ns = value_at(&one.latency, middle).map(Nanos);
        }
        mark_slow(&mut self.endpoints);
        let sum = |of: fn(&RpcEndpointResult) -> u64| self.endpoints.iter().map(of).sum();
        (self.succeeded, self.failed) =
            (sum(|one| one.succeeded), sum(RpcEndpointResult::failures));
        let sent = self.succeeded.saturating_add(self.failed);
        self.not_sent = self.requested.saturating_sub(sent);
        let wrong = ErrorCode::from(WRONG_PAYLOAD);
        let wrong = |one: &RpcEndpointResult| one.failed.get(&wrong).copied();
        self.mismatches = self.endpoints.iter().filter_map(wrong).sum();
        self.figures = LatencyFigures::of_histogram(&self.latency);
    }

    /// RPCs per second that succeeded; 0 where it took no time.
    pub fn rate(&self) -> f64 {
        rate(self.succeeded, self.duration_ns)
    }

    /// RPCs per second that failed.
    pub fn failed_rate(&self) -> f64 {
        rate(self.failed, self.duration_ns)
    }

    /// Something of it is not as it should be.
    pub fn has_failed(&self) -> bool {
        self.failure.is_some() || self.failed > 0 || self.not_sent > 0 || self.mismatches > 0
    }
}

/// Code of RPCs whose payload was not what was sent.
const WRONG_PAYLOAD: &str = "DER_CSUM";
/// Fewer endpoints show nothing of what is usual.
const FEWEST_COMPARED: usize = 4;
/// Multiple of the usual distance from the usual median that is far; of medians that scatter as by
/// chance one in some thousand is farther.
const FAR: u64 = 5;

/// Marks endpoints whose median stands out among the others.
fn mark_slow(endpoints: &mut [RpcEndpointResult]) {
    let middle = |mut all: Vec<u64>| {
        all.sort_unstable();
        all.get(all.len() / 2).copied()
    };
    let medians = || endpoints.iter().filter_map(|one| one.median_ns);
    let medians: Vec<u64> = medians().map(|median| median.0).collect();
    if medians.len() < FEWEST_COMPARED {
        return;
    }
    let Some(usual) = middle(medians.clone()) else {
        return;
    };
    let distances = medians.iter().map(|median| median.abs_diff(usual));
    let distance = middle(distances.collect()).unwrap_or(0);
    let far = (usual / 2).max(distance.saturating_mul(FAR));
    for one in endpoints {
        let above = one.median_ns.map(|median| median.0.saturating_sub(usual));
        one.is_slow = above.is_some_and(|above| above > far);
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
fn rate(count: u64, time: Nanos) -> f64 {
    let seconds = time.as_secs_f64();
    if seconds > 0.0 {
        count as f64 / seconds
    } else {
        0.0
    }
}

impl RpcEndpointResult {
    /// One that was asked nothing yet.
    pub fn new(endpoint: RpcEndpoint) -> Self {
        Self {
            endpoint,
            succeeded: 0,
            failed: BTreeMap::new(),
            latency: rpc_histogram(),
            median_ns: None,
            is_slow: false,
            turn_ns: None,
            first: None,
        }
    }

    /// RPCs per second that succeeded in its turn; nothing where it had none of its own.
    pub fn rate(&self) -> Option<f64> {
        self.turn_ns.map(|time| rate(self.succeeded, time))
    }

    /// RPCs that failed, whatever the code.
    pub fn failures(&self) -> u64 {
        self.failed.values().sum()
    }

    /// RPCs that were sent.
    pub fn sent(&self) -> u64 {
        self.succeeded + self.failures()
    }
}

impl RpcOutcome {
    /// RPCs of all masters that failed.
    pub fn failures(&self) -> u64 {
        self.masters.iter().map(|master| master.failed).sum()
    }

    /// Something of it is not as it should be.
    pub fn has_failed(&self) -> bool {
        self.masters.iter().any(RpcMaster::has_failed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Eight values of 10.5 to 84 µs.
    fn eight() -> Vec<u64> {
        (1..=8).map(|i| i * 10_500).collect()
    }

    #[test]
    fn figures_follow_the_formulas_of_the_family() {
        let figures = LatencyFigures::of_sorted(&eight()).unwrap();
        assert_eq!(figures.min_ns, Nanos(10_500));
        assert_eq!(figures.p25_ns, Nanos(31_500));
        assert_eq!(figures.median_ns, Nanos(52_500));
        assert_eq!(figures.p75_ns, Nanos(73_500));
        assert_eq!(figures.max_ns, Nanos(84_000));
        assert!((figures.mean_ns - 47_250.0).abs() < 1e-9);
        assert!((figures.deviation_ns - 10_500.0 * 5.25_f64.sqrt()).abs() < 1e-6);
        assert_eq!(LatencyFigures::of_sorted(&[]), None);
        assert_eq!(LatencyFigures::of_histogram(&rpc_histogram()), None);
    }

    proptest! {
        #[test]
        fn percentiles_are_within_a_thousandth_of_the_exact_ones(
            mut values in proptest::collection::vec(0_u64..60_000_000_000, 1..500),
            shift in 0_u32..30,
        ) {
            // Short times as well as long ones.
            for value in &mut values {
                *value >>= shift;
            }
            let mut latency = rpc_histogram();
            for value in &values {
                latency.record(*value);
            }
            values.sort_unstable();
            // The percentiles with their numerators and denominators.
            for (percent, part, whole) in [(50.0, 1, 2), (90.0, 9, 10), (99.0, 99, 100), (99.9, 999, 1000)] {
                let place = (values.len() * part).div_ceil(whole);
                let exact = values[place.clamp(1, values.len()) - 1];
                let found = latency.percentile(percent).unwrap();
                prop_assert!(found.abs_diff(exact) * 1000 <= exact, "{found} {exact}");
            }
            let exact = values[values.len() / 2];
            let found = value_at(&latency, values.len() as u64 / 2).unwrap();
            prop_assert!(found.abs_diff(exact) * 1000 <= exact, "{found} {exact}");
        }
    }

    #[test]
    fn a_master_adds_up_its_endpoints() {
        let mut master = RpcMaster::new(RpcEndpoint { rank: 1, tag: 0 }, "tcp");
        for (rank, values) in [(1, [42_000_u64, 84_000]), (0, [10_500, 31_500])] {
            let mut one = RpcEndpointResult::new(RpcEndpoint { rank, tag: 2 });
            for value in values {
                one.latency.record(value);
                master.latency.record(value);
            }
            one.succeeded = 2;
            one.failed.insert("DER_UNREACH".into(), u64::from(rank));
            master.endpoints.push(one);
        }
        master.duration_ns = Nanos::from_millis(2);
        master.requested = 7;
        master.conclude();
        assert_eq!(
            (master.succeeded, master.failed, master.not_sent),
            (4, 1, 2)
        );
        assert!((master.rate() - 2000.0).abs() < 1e-9 && master.has_failed());
        let first = &master.endpoints[0];
        assert_eq!(first.endpoint.rank, 0);
        let median = first.median_ns.unwrap().0;
        assert!(median.abs_diff(10_500) <= 10, "{median}");
    }

    #[test]
    fn an_endpoint_is_slow_where_it_stands_out_among_the_others() {
        let slow = |medians: &[u64]| {
            let mut master = RpcMaster::new(RpcEndpoint { rank: 9, tag: 0 }, "tcp");
            for (rank, median) in (0..).zip(medians) {
                let mut one = RpcEndpointResult::new(RpcEndpoint { rank, tag: 0 });
                one.latency.record(*median);
                one.succeeded = 1;
                master.endpoints.push(one);
            }
            master.conclude();
            let slow = master.endpoints.iter().filter(|one| one.is_slow);
            slow.map(|one| one.endpoint.rank).collect::<Vec<_>>()
        };
        assert_eq!(slow(&[50_000, 51_000, 49_000, 52_000, 90_000]), [4]);
        assert_eq!(slow(&[50_000, 51_000, 90_000, 49_000, 52_000, 20_000]), [2]);
        // Half as long again is not enough, few say nothing, and those that differ anyway less.
        assert_eq!(slow(&[50_000, 51_000, 49_000, 52_000, 74_000]), [0; 0]);
        assert_eq!(slow(&[50_000, 51_000, 90_000]), [0; 0]);
        assert_eq!(slow(&[10_000, 30_000, 50_000, 70_000, 110_000]), [0; 0]);
    }

    #[test]
    fn a_result_is_read_as_it_was_written_and_merges() {
        let job = crate::Job::of_rpcs("a", crate::RpcWorkload::default());
        let plan = crate::Plan::new("p", "run", vec![job]);
        let mut result = crate::sample::everything(plan);
        let text = result.to_json().unwrap();
        assert_eq!(crate::RunResult::from_json(&text).unwrap(), result);
        let failures = |result: &crate::RunResult| {
            let metrics = &result.groups[0].jobs[0].metrics;
            let found = metrics.iter().find(|m| m.name == "rpc failures");
            found.unwrap().value
        };
        assert!((failures(&result) - 1.0).abs() < 1e-9);
        result.merge(result.clone()).unwrap();
        assert_eq!(result.groups[0].jobs[0].rpc().unwrap().masters.len(), 2);
        assert!((failures(&result) - 2.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn figures_of_buckets_are_those_of_the_values(
            mut values in prop::collection::vec(1_u64..60_000_000_000, 1..200),
        ) {
            let mut histogram = rpc_histogram();
            for value in &values {
                histogram.record(*value);
            }
            values.sort_unstable();
            let exact = LatencyFigures::of_sorted(&values).unwrap();
            let found = LatencyFigures::of_histogram(&histogram).unwrap();
            prop_assert_eq!((found.min_ns, found.max_ns), (exact.min_ns, exact.max_ns));
            for (found, exact) in [
                (found.p25_ns, exact.p25_ns),
                (found.median_ns, exact.median_ns),
                (found.p75_ns, exact.p75_ns),
            ] {
                let apart = found.0.abs_diff(exact.0);
                prop_assert!(apart <= exact.0 / 1000, "{} {}", found.0, exact.0);
            }
            prop_assert!((found.mean_ns - exact.mean_ns).abs() <= 1e-9 * exact.mean_ns);
            let apart = (found.deviation_ns - exact.deviation_ns).abs();
            prop_assert!(apart <= 1e-6 * exact.mean_ns, "{found:?} {exact:?}");
        }
    }
}
