//! Figures of pairs, each measured while no other was: who calls down, who is called across.
//!
//! In: what came of a job. Out: a matrix for each figure, cells in seconds, bytes or operations per
//! second; a cell is empty where the pair was not measured. Not here: how it is printed or drawn.

#![expect(
    clippy::cast_precision_loss,
    reason = "times and counts far below 2^53"
)]

use std::collections::BTreeSet;

use crate::latency_bandwidth::{LatencyBandwidthResult, MessageTestResult};
use crate::plan::Job;
use crate::result::JobResult;
use crate::rpc::RpcWorkload;
use crate::rpc_endpoints::RpcEndpoint;
use crate::rpc_result::{RpcEndpointResult, RpcMaster, RpcOutcome};
use crate::workload::Workload;

/// Figure in the cells of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairFigure {
    /// The median, or of messages the best, in seconds.
    Latency,
    /// Bytes per second.
    Bandwidth,
    /// Operations per second.
    Throughput,
}

/// One figure of every pair.
#[derive(Clone, Debug, PartialEq)]
pub struct PairMatrix {
    /// Figure of the cells.
    pub figure: PairFigure,
    /// Callers.
    pub rows: Vec<String>,
    /// Called endpoints.
    pub columns: Vec<String>,
    /// By row and column.
    pub cells: Vec<Vec<Option<f64>>>,
}

/// The matrices of a job, where its pairs were measured one by one.
pub fn pair_matrices(job: &Job, done: &JobResult) -> Vec<PairMatrix> {
    match (&job.workload, done.rpc(), done.latency_bandwidth()) {
        (Workload::Rpc(work), Some(outcome), _) => PairMatrix::of_rpcs(work, outcome),
        (Workload::LatencyBandwidth(_), _, Some(done)) => PairMatrix::of_messages(done),
        _ => Vec::new(),
    }
}

impl PairMatrix {
    /// Latency, and bandwidth, or throughput where nothing is sent: masters down, endpoints across. None
    /// where endpoints were called at the same time.
    pub fn of_rpcs(work: &RpcWorkload, outcome: &RpcOutcome) -> Vec<Self> {
        if !work.matrix {
            return Vec::new();
        }
        let masters = || outcome.masters.iter().filter(|one| one.failure.is_none());
        let all = masters().flat_map(|one| &one.endpoints);
        let columns: BTreeSet<RpcEndpoint> = all.map(|one| one.endpoint).collect();
        let matrix = |figure, of: &dyn Fn(&RpcEndpointResult) -> Option<f64>| {
            let cell = |master: &RpcMaster, column: &RpcEndpoint| {
                let mut all = master.endpoints.iter();
                of(all.find(|one| one.endpoint == *column)?)
            };
            let row = |master| columns.iter().map(|at| cell(master, at)).collect();
            Self {
                figure,
                rows: masters().map(|one| one.endpoint.to_string()).collect(),
                columns: columns.iter().map(ToString::to_string).collect(),
                cells: masters().map(row).collect(),
            }
        };
        let latency = |one: &RpcEndpointResult| one.median_ns.map(|ns| ns.0 as f64 / 1e9);
        let rate = |one: &RpcEndpointResult| one.rate().filter(|_| one.succeeded > 0);
        let bytes = work.bytes().0 as f64;
        let second = if bytes > 0.0 {
            matrix(PairFigure::Bandwidth, &|one| Some(rate(one)? * bytes))
        } else {
            matrix(PairFigure::Throughput, &rate)
        };
        vec![matrix(PairFigure::Latency, &latency), second]
    }

    /// Latency of short messages and bandwidth of long ones: clients of ping-pongs down, servers across.
    pub fn of_messages(done: &LatencyBandwidthResult) -> Vec<Self> {
        let bytes = done.bandwidth.bytes.0 as f64;
        let bandwidth = move |seconds: f64| bytes / seconds;
        vec![
            of_pairs(PairFigure::Latency, &done.latency, &|seconds| seconds),
            of_pairs(PairFigure::Bandwidth, &done.bandwidth, &bandwidth),
        ]
    }
}

fn of_pairs(figure: PairFigure, test: &MessageTestResult, of: &dyn Fn(f64) -> f64) -> PairMatrix {
    let pairs = test.pairs.iter();
    let ranks: BTreeSet<u32> = pairs.flat_map(|pair| [pair.client, pair.server]).collect();
    let cell = |client: u32, server: u32| {
        let mut pairs = test.pairs.iter();
        let pair = pairs.find(|pair| (pair.client, pair.server) == (client, server));
        pair?.latency_s().map(of)
    };
    let names: Vec<String> = ranks.iter().map(ToString::to_string).collect();
    let row = |client: &u32| ranks.iter().map(|server| cell(*client, *server)).collect();
    PairMatrix {
        figure,
        rows: names.clone(),
        columns: names,
        cells: ranks.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use weir_units::{Bytes, Nanos};

    use super::*;
    use crate::latency_bandwidth::PairResult;
    use crate::rpc::{RpcPayload, RpcPayloadKind};

    #[test]
    fn pairs_of_messages_stand_by_client_and_server() {
        let pair = |client, server, ns| PairResult {
            client,
            server,
            loop_length: 1,
            times_ns: vec![Nanos(ns)],
        };
        let test = |bytes| MessageTestResult {
            bytes: Bytes(bytes),
            pairs: vec![pair(0, 3, 2000), pair(3, 0, 4000)],
            ..MessageTestResult::default()
        };
        let done = LatencyBandwidthResult {
            latency: test(8),
            bandwidth: test(1000),
            ..LatencyBandwidthResult::default()
        };
        let [latency, bandwidth] = &PairMatrix::of_messages(&done)[..] else {
            panic!()
        };
        assert_eq!(
            (&latency.rows, &latency.columns),
            (&bandwidth.rows, &bandwidth.rows)
        );
        assert_eq!(latency.rows, ["0", "3"]);
        let cells = [vec![None, Some(1e-6)], vec![Some(2e-6), None]];
        assert_eq!(latency.cells, cells);
        assert_eq!(bandwidth.cells[1][0], Some(1000.0 / 2e-6));
    }

    #[test]
    fn endpoints_have_cells_where_each_had_its_turn() {
        let at = |rank| RpcEndpoint { rank, tag: 0 };
        let mut one = RpcEndpointResult::new(at(1));
        one.latency.record_n(1 << 14, 10);
        one.succeeded = 10;
        one.turn_ns = Some(Nanos::from_millis(1));
        let mut masters = [at(0), at(1)].map(|master| RpcMaster::new(master, "tcp"));
        masters[0].endpoints = vec![one, RpcEndpointResult::new(at(0))];
        masters.iter_mut().for_each(RpcMaster::conclude);
        let outcome = RpcOutcome {
            masters: masters.to_vec(),
            ..RpcOutcome::default()
        };
        let mut work = RpcWorkload {
            matrix: true,
            ..RpcWorkload::default()
        };
        let found = PairMatrix::of_rpcs(&work, &outcome);
        assert_eq!(found[1].figure, PairFigure::Throughput);
        assert_eq!(
            (found[0].rows.len(), &found[0].columns),
            (2, &found[0].rows)
        );
        let near = |value: Option<f64>, wanted: f64| (value.unwrap() / wanted - 1.0).abs() < 1e-3;
        assert!(near(found[0].cells[0][1], 16.384e-6), "{found:?}");
        assert!(near(found[1].cells[0][1], 10_000.0), "{found:?}");
        assert_eq!((found[1].cells[0][0], found[0].cells[1][1]), (None, None));
        work.reply = RpcPayload::of(RpcPayloadKind::Bulk, 1000);
        let found = PairMatrix::of_rpcs(&work, &outcome);
        assert!(near(found[1].cells[0][1], 10_000_000.0), "{found:?}");
        work.matrix = false;
        assert_eq!(PairMatrix::of_rpcs(&work, &outcome), []);
    }
}
