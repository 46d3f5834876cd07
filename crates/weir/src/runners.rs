//! Runners of all workloads in this build, and its engines and transports by name.
//!
//! In: nothing. Out: one list of runners, the catalogue of engines, transports. The only place
//! that knows which families there are.

use weir_run::Runner;
use weir_schema::catalogue::{Catalogue, TransportCatalogue};
use weir_sys::Availability;

use crate::store_channel::StoreDial;

pub(crate) use weir_block::source::first_operations;
pub(crate) use weir_block::verify::checksum;
pub(crate) use weir_rpc::links::ofi::FabricSurvey;

/// All runners, with what their jobs share over a run.
#[derive(Default)]
pub(crate) struct Runners {
    block: weir_block::Block,
    exchange: weir_net::ExchangeRunner,
    latency_bandwidth: weir_net::LatencyBandwidthRunner,
    rpc: weir_rpc::RpcRunner,
    packet_path: weir_datapath::PacketPathRunner,
    object_store: weir_object::ObjectRunner<StoreDial>,
}

impl Runners {
    /// Runners, one for each workload.
    pub(crate) fn list(&self) -> Vec<&dyn Runner> {
        vec![
            // A line each.
            &self.block,
            &self.exchange,
            &self.latency_bandwidth,
            &self.rpc,
            &self.packet_path,
            &self.object_store,
        ]
    }
}

/// The engines that job files name.
pub(crate) fn catalogue() -> Catalogue {
    weir_block::catalogue()
}

/// Finds out whether this machine can run an engine.
pub(crate) fn availability(engine: &str) -> Availability {
    weir_block::availability(engine)
}

/// The library of fabrics for RPCs, or the missing part.
pub(crate) fn fabrics() -> Result<FabricSurvey, String> {
    if let Availability::Missing { what, remedy } = weir_rpc::links::ofi::availability() {
        return Err(format!("{what}; {remedy}"));
    }
    FabricSurvey::take().map_err(|why| why.to_string())
}

/// The transports between ranks.
pub(crate) fn transports() -> TransportCatalogue {
    weir_net::catalogue()
}
