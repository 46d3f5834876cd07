//! RPC: requests to the endpoints of a group of servers, each with a reply, through one thread or
//! several (spec: RPC self-test). What shall be done.
//!
//! One job is one pair of message sizes. Not here: which endpoints a set names (`rpc_endpoints`); what
//! was measured (`rpc_result`).

use serde::{Deserialize, Serialize};
use weir_units::{Bytes, JsonSchema, Nanos};

use crate::kind::{KindInfo, Moves};
use crate::load_of_loop::Load;
use crate::rpc_endpoints::EndpointSet;
use crate::workload::WorkloadFacts;

/// The kinds of an RPC workload: there is one.
pub const RPC_KINDS: &[KindInfo] = &[KindInfo::new("rpc", Moves::In)];

/// Requests of one size, with replies of one size, to every endpoint of some sets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct RpcWorkload {
    /// Name of the group of servers.
    pub group: String,
    /// The directory that holds the table of the group.
    pub table: Option<String>,
    /// Addresses of the servers, in place of a table: ranks 0, 1 and so on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    /// In place of both, a server of this run's own with so many tags.
    pub loopback: Option<u32>,
    /// Transport, as the beginning of a URI names it: `tcp`, `shm`, `ofi+tcp`; absent: as the table
    /// has it.
    pub transport: Option<String>,
    /// Addresses of servers that are used.
    #[serde(default)]
    pub addresses: RpcAddresses,
    /// The network interface; absent: one that is near.
    pub interface: Option<String>,
    /// The fabric domain of it.
    pub domain: Option<String>,
    /// Endpoints that are called, in order; one listed twice gets twice the load.
    pub endpoints: Vec<EndpointSet>,
    /// Masters that call, all at the same time; none: this run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub masters: Vec<EndpointSet>,
    /// Payload of requests.
    pub request: RpcPayload,
    /// Payload of replies.
    pub reply: RpcPayload,
    /// Per endpoint; 0 where only the time is bounded.
    pub repetitions: u64,
    /// The low byte of the address of every buffer.
    pub buffer_low_byte: Option<u8>,
    /// Check of arriving data.
    pub verify: RpcVerify,
    /// Order of endpoints.
    pub spread: RpcSpread,
    /// RPCs in flight to one endpoint.
    pub in_flight_per_endpoint: Option<u32>,
    /// Path of bulk data.
    pub bulk_path: BulkPath,
    /// The endpoints are put into an order first that the seed decides.
    pub shuffle: bool,
    /// Every rank of the group is asked first whether it is there.
    #[serde(default)]
    pub ping: bool,
    /// Each pair of a master and an endpoint is measured on its own, one after another.
    #[serde(default)]
    pub matrix: bool,
    /// The connection to each endpoint and the first RPC to it are timed; nothing warms up before.
    #[serde(default)]
    pub first: bool,
    /// Connections to all endpoints together, each with an entry of the list of its own; absent:
    /// one of each thread to each endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// Every RPC is kept, with its latency and endpoint, until the run has ended.
    #[serde(default)]
    pub samples: bool,
    /// Of random choices.
    pub seed: u64,
    /// An RPC that takes longer has failed.
    pub timeout_ns: Nanos,
    /// A server that takes longer to be reached is not there.
    pub attach_timeout_ns: Nanos,
    /// For so long a lost server is looked for, while there is no other.
    pub reconnect_ns: Option<Nanos>,
    /// The file with the secret that servers ask for.
    pub token_file: Option<String>,
    /// Wait of a thread for replies.
    pub poll: RpcPoll,
    /// Warm-up before anything counts.
    pub warmup: RpcWarmup,
    /// RPCs in flight from one thread to one rank; 0: any number.
    pub credits_per_rank: u32,
    /// RPCs in flight from one thread; 0: any number.
    pub quota: u32,
    /// RPCs at once and in all, of a whole master, and their time; the pace, of each thread.
    pub load: Load,
}

impl RpcWorkload {
    /// Of one RPC: request and reply.
    pub fn bytes(&self) -> Bytes {
        Bytes(u64::from(self.request.bytes) + u64::from(self.reply.bytes))
    }

    /// In flight per master, over all its endpoints.
    pub fn in_flight(&self) -> u64 {
        u64::from(self.load.depth.queue_depth.0)
    }
}

impl WorkloadFacts for RpcWorkload {
    fn title(&self) -> String {
        let part = |payload: &RpcPayload| match payload.kind {
            RpcPayloadKind::Empty => "nothing".to_owned(),
            RpcPayloadKind::Inline => format!("{} B", payload.bytes),
            RpcPayloadKind::Bulk => format!("{} B in bulk", payload.bytes),
        };
        let (request, reply) = (part(&self.request), part(&self.reply));
        format!("RPC, {request} there and {reply} back")
    }

    fn load(&self) -> Option<&Load> {
        Some(&self.load)
    }

    fn load_mut(&mut self) -> Option<&mut Load> {
        Some(&mut self.load)
    }

    fn seed(&self) -> Option<u64> {
        Some(self.seed)
    }
}

impl Default for RpcWorkload {
    /// Ten thousand empty RPCs per endpoint of none yet.
    fn default() -> Self {
        Self {
            group: "daos_server".to_owned(),
            table: None,
            targets: Vec::new(),
            loopback: None,
            transport: None,
            addresses: RpcAddresses::default(),
            interface: None,
            domain: None,
            endpoints: Vec::new(),
            masters: Vec::new(),
            request: RpcPayload::default(),
            reply: RpcPayload::default(),
            repetitions: 10_000,
            buffer_low_byte: None,
            verify: RpcVerify::default(),
            spread: RpcSpread::default(),
            in_flight_per_endpoint: None,
            bulk_path: BulkPath::default(),
            shuffle: false,
            ping: false,
            matrix: false,
            first: false,
            connections: None,
            samples: false,
            seed: 0,
            timeout_ns: Nanos::from_secs(60),
            attach_timeout_ns: Nanos::from_secs(10),
            reconnect_ns: None,
            token_file: None,
            poll: RpcPoll::default(),
            warmup: RpcWarmup::default(),
            credits_per_rank: 0,
            quota: 0,
            load: Load::default(),
        }
    }
}

/// Addresses of servers that are used, where a host has several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RpcAddresses {
    /// The first that the system names.
    #[default]
    Any,
    /// Those of version 4.
    Ipv4,
    /// Those of version 6.
    Ipv6,
}

/// Payload of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RpcPayload {
    /// Kind of payload.
    pub kind: RpcPayloadKind,
    /// Its size.
    pub bytes: u32,
}

impl RpcPayload {
    /// Nothing is empty whatever it shall be, and what is not empty travels in the message unless it
    /// shall be bulk.
    pub const fn of(kind: RpcPayloadKind, bytes: u32) -> Self {
        let kind = match (kind, bytes) {
            (_, 0) => RpcPayloadKind::Empty,
            (RpcPayloadKind::Empty, _) => RpcPayloadKind::Inline,
            (kind, _) => kind,
        };
        Self { kind, bytes }
    }
}

/// Kind of a payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RpcPayloadKind {
    /// There is none.
    #[default]
    Empty,
    /// In the message.
    Inline,
    /// From memory to memory: the server gets what is sent and puts what comes back.
    Bulk,
}

/// Check of arriving data, at both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RpcVerify {
    /// Not at all.
    Off,
    /// Every byte of the first RPC of each slot.
    #[default]
    First,
    /// A checksum of each payload.
    Checksum,
    /// Every byte of each payload.
    Full,
}

/// Rule by which the next endpoint is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RpcSpread {
    /// One after another.
    #[default]
    RoundRobin,
    /// The one with the fewest in flight.
    Least,
    /// Any.
    Random,
    /// Each has slots of its own.
    PerEndpoint,
}

/// Path of bulk data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BulkPath {
    /// As the transport does it best.
    #[default]
    Automatic,
    /// The server reads and writes the memory of who asks.
    Rma,
    /// The server asks for the data of a request, and pushes that of a reply.
    Rendezvous,
    /// The data of a request follow it.
    Eager,
}

/// Wait of a thread for messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum RpcPoll {
    /// Busy where there are CPUs enough, else asleep.
    #[default]
    Automatic,
    /// It looks again and again.
    Busy,
    /// It looks for so long, then sleeps.
    Spin {
        /// Without anything coming.
        for_ns: Nanos,
    },
    /// It sleeps.
    Block,
}

/// Warm-up before anything counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum RpcWarmup {
    /// 1000 RPCs and half a second, no more RPCs than the job has, and none that begins after a second.
    #[default]
    Automatic,
    /// A number of RPCs.
    Requests {
        /// Of each master.
        count: u64,
    },
    /// RPCs for so long.
    Time {
        /// From the first one.
        for_ns: Nanos,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_empty_and_what_is_not_empty_is_in_the_message_unless_it_is_bulk() {
        use RpcPayloadKind::{Bulk, Empty, Inline};
        for (kind, bytes, resolved) in [
            (Bulk, 0, Empty),
            (Inline, 0, Empty),
            (Empty, 1000, Inline),
            (Inline, 1000, Inline),
            (Bulk, 1000, Bulk),
        ] {
            assert_eq!(
                RpcPayload::of(kind, bytes).kind,
                resolved,
                "{kind:?} {bytes}"
            );
        }
    }

    #[test]
    fn both_ways_may_be_as_long_as_they_can_be() {
        let whole = RpcPayload::of(RpcPayloadKind::Bulk, u32::MAX);
        let work = RpcWorkload {
            request: whole,
            reply: whole,
            ..RpcWorkload::default()
        };
        assert_eq!(work.bytes(), Bytes(2 * u64::from(u32::MAX)));
    }
}
