//! Single RPCs of a master, and what follows from them.
//!
//! In: every RPC that was sent, or masters of which nothing else was recorded. Out: exact figures in place of those
//! of histograms; the result of their job. Not here: their text.

use std::collections::BTreeMap;
use std::mem::take;

use serde::{Deserialize, Serialize};
use weir_units::{Bytes, JsonSchema, Nanos};

use crate::error_code::ErrorCode;
use crate::outcome::{LoopOutcome, Outcome};
use crate::result::{JobResult, KindResult, Span, Stage, StageHistogram, State, WorkerResult};
use crate::rpc::RPC_KINDS;
use crate::rpc_endpoints::RpcEndpoint;
use crate::rpc_error::rpc_error_name;
use crate::rpc_result::{LatencyFigures, RpcEndpointResult, RpcMaster, RpcOutcome};

/// One RPC that was sent; in JSON its latency, rank, tag and code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Row", into = "Row")]
#[schemars(with = "Row")]
pub struct RpcSample {
    /// Latency.
    pub latency_ns: Nanos,
    /// The called endpoint.
    pub endpoint: RpcEndpoint,
    /// 0, or the negative number of what went wrong.
    pub code: i32,
}

/// JSON form of a sample.
type Row = (Nanos, u32, u32, i32);

impl From<Row> for RpcSample {
    fn from((latency_ns, rank, tag, code): Row) -> Self {
        Self {
            latency_ns,
            endpoint: RpcEndpoint { rank, tag },
            code,
        }
    }
}

impl From<RpcSample> for Row {
    fn from(one: RpcSample) -> Self {
        (
            one.latency_ns,
            one.endpoint.rank,
            one.endpoint.tag,
            one.code,
        )
    }
}

impl RpcMaster {
    /// Counts its samples into its endpoints, and concludes it with exact figures. Endpoints that none of them is of
    /// are left out.
    pub fn conclude_samples(&mut self) {
        let known = take(&mut self.endpoints).into_iter();
        let mut endpoints: BTreeMap<_, _> = known.map(|one| (one.endpoint, one)).collect();
        for one in &self.samples {
            let new = || RpcEndpointResult::new(one.endpoint);
            let endpoint = endpoints.entry(one.endpoint).or_insert_with(new);
            if one.code == 0 {
                endpoint.succeeded += 1;
                endpoint.latency.record(one.latency_ns.0);
                self.latency.record(one.latency_ns.0);
            } else {
                // A code without a name stays a number.
                let name = rpc_error_name(one.code);
                let code = name.map_or(ErrorCode::Errno(one.code), ErrorCode::from);
                *endpoint.failed.entry(code).or_default() += 1;
            }
        }
        let called = endpoints.into_values().filter(|one| one.sent() > 0);
        self.endpoints = called.collect();
        self.conclude();
        self.set_exact_figures();
    }

    /// Takes the figures, and the median of each endpoint, from its samples: they are known exactly, where
    /// histograms know the buckets. For a master that is concluded.
    pub fn set_exact_figures(&mut self) {
        let mut all: Vec<u64> = Vec::new();
        let mut by_endpoint: BTreeMap<RpcEndpoint, Vec<u64>> = BTreeMap::new();
        for one in self.samples.iter().filter(|one| one.code == 0) {
            all.push(one.latency_ns.0);
            let of_endpoint = by_endpoint.entry(one.endpoint).or_default();
            of_endpoint.push(one.latency_ns.0);
        }
        all.sort_unstable();
        self.figures = LatencyFigures::of_sorted(&all);
        for one in &mut self.endpoints {
            let mut own = by_endpoint.remove(&one.endpoint).unwrap_or_default();
            own.sort_unstable();
            let middle = own.len().saturating_sub(1) / 2;
            one.median_ns = own.get(middle).copied().map(Nanos);
        }
    }

    /// The same as the work of a loop, where an RPC moves so many bytes.
    fn as_worker(&self, number: u32, bytes: Bytes) -> WorkerResult {
        let mut errors: BTreeMap<ErrorCode, u64> = BTreeMap::new();
        for (code, count) in self.endpoints.iter().flat_map(|one| &one.failed) {
            *errors.entry(code.clone()).or_default() += count;
        }
        let rpcs = KindResult {
            issued: self.succeeded + self.failed,
            operations: self.succeeded,
            bytes: Bytes(bytes.0.saturating_mul(self.succeeded)),
            errors,
            runtime_ns: self.duration_ns,
            stages: vec![StageHistogram {
                stage: Stage::Lat,
                histogram: self.latency.clone(),
            }],
            ..KindResult::new(&RPC_KINDS[0])
        };
        WorkerResult {
            clone: number,
            number,
            span: Some(Span {
                start_ns: Nanos::ZERO,
                end_ns: self.duration_ns,
            }),
            state: State::Done,
            kinds: vec![rpcs],
            ..WorkerResult::default()
        }
    }
}

impl JobResult {
    /// A job of RPCs by what its masters measured, where an RPC moves so many bytes; one worker stands for each of
    /// them.
    pub fn of_masters(name: &str, masters: Vec<RpcMaster>, bytes: Bytes) -> Self {
        let workers = (0..).zip(&masters).map(|(i, one)| one.as_worker(i, bytes));
        let workers = LoopOutcome {
            workers: workers.collect(),
            ..LoopOutcome::default()
        };
        let spans = workers.workers.iter().filter_map(|worker| worker.span);
        let mut job = Self {
            state: State::Done,
            span: spans.reduce(Span::hull),
            outcome: Outcome::Rpc(Box::new(RpcOutcome { workers, masters })),
            ..Self::not_started(name)
        };
        job.conclude();
        job
    }
}
