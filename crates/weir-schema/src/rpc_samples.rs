//! Single RPCs of a master, and the figures that follow from them.
//!
//! In: every RPC that was sent. Out: exact figures in place of those of histograms. Not here: their text.

use std::collections::BTreeMap;

use weir_units::Nanos;

use crate::rpc_endpoints::RpcEndpoint;
use crate::rpc_result::{LatencyFigures, RpcMaster};

/// One RPC that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RpcSample {
    /// Latency.
    pub latency_ns: Nanos,
    /// The called endpoint.
    pub endpoint: RpcEndpoint,
    /// 0, or the negative number of what went wrong.
    pub code: i32,
}

impl RpcMaster {
    /// Takes the figures, and the median of each endpoint, from its RPCs one by one: they are known exactly,
    /// where histograms know the buckets. For a master that is concluded.
    pub fn set_exact_figures(&mut self, samples: &[RpcSample]) {
        let mut all: Vec<u64> = Vec::new();
        let mut by_endpoint: BTreeMap<RpcEndpoint, Vec<u64>> = BTreeMap::new();
        for one in samples.iter().filter(|one| one.code == 0) {
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
}
