//! The keys of configuration files, as records.

use std::borrow::Cow;

use super::handlers;

/// A key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name as written in a file.
    pub name: &'static str,
    /// Values that it takes, in a few words, where they are not a list of handlers.
    takes: &'static str,
    /// Purpose of the key.
    pub meaning: &'static str,
    /// Effect of the key.
    pub state: KeyState,
}

/// Effect of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// The key works.
    Works,
    /// Read and checked; it has nothing to act on, for this reason.
    WithoutEffect(&'static str),
    /// Without `backend` the key determines the link that carries the packets of one side.
    WithoutBackend,
}

const fn key(name: &'static str, takes: &'static str, meaning: &'static str) -> Key {
    Key {
        name,
        takes,
        meaning,
        state: KeyState::Works,
    }
}

impl Key {
    /// Values that the key takes, in a few words.
    pub fn takes(&self) -> Cow<'static, str> {
        match self.name {
            "msg_handler" => handlers::message_words().into(),
            "pkt_handler" => handlers::packet_words().into(),
            _ => self.takes.into(),
        }
    }

    const fn idle(self, why: &'static str) -> Self {
        Self {
            state: KeyState::WithoutEffect(why),
            ..self
        }
    }

    const fn without_backend(self) -> Self {
        Self {
            state: KeyState::WithoutBackend,
            ..self
        }
    }
}

const FIRST_PORT: &str = "a backend takes the first port of its device";

/// The keys whose values `-p` prints, in that order.
pub(super) const TUNABLE: [&str; 8] = [
    "kAppCoreNum",
    "kAppRxMsgBatchSize",
    "kAppTxMsgBatchSize",
    "kDispQueueNum",
    "kDispRxBatchSize",
    "kDispTxBatchSize",
    "kNICRxPostSize",
    "kNICTxPostSize",
];

/// All keys but `workload`.
pub const KEYS: &[Key] = &[
    key(
        "kAppCoreNum",
        "1 to 16",
        "workspaces that run the application, over all workloads",
    ),
    key(
        "kDispQueueNum",
        "1 to 16",
        "dispatchers, over all workloads",
    ),
    key("kAppTxMsgBatchSize", "1 to 512", "messages made at once"),
    key("kAppRxMsgBatchSize", "1 to 512", "messages waited for"),
    key("kDispTxBatchSize", "1 to 512", "packets collected at once"),
    key(
        "kDispRxBatchSize",
        "1 to 512",
        "packets taken from the NIC at most",
    ),
    key(
        "kNICTxPostSize",
        "1 to 512",
        "packets handed to the NIC before it is notified",
    ),
    key(
        "kNICRxPostSize",
        "1 to 512",
        "packets taken before their slots are given back",
    ),
    key(
        "numa",
        "a node, or auto",
        "the memory node whose CPUs are used",
    ),
    key("phy_port", "0 or 1", "the port of the device").idle(FIRST_PORT),
    key("iteration", "1 to 1000000", "tables"),
    key("duration", "seconds, 0.001 to 1000000", "of each iteration"),
    key(
        "local_ip",
        "an IPv4 address",
        "of this side; of both, the client",
    ),
    key("remote_ip", "an IPv4 address", "of the other side"),
    key(
        "local_mac",
        "six bytes",
        "of this side; of both, the client",
    ),
    key("remote_mac", "six bytes", "of the other side"),
    key(
        "device_pcie",
        "a PCIe address, as 0000:98:00.0",
        "of a side without backend: the device of its link by DPDK",
    )
    .without_backend(),
    key(
        "device_name",
        "a name",
        "of a side without backend and device_pcie: the verbs device",
    )
    .without_backend(),
    key("role", "loopback, server, client", "what this run is"),
    key("backend", super::backend::TAKES, "what carries packets"),
    key("msg_handler", "", "what a server does with a message"),
    key("pkt_handler", "", "what its dispatchers do with packets"),
    key(
        "req_size",
        "bytes, 16 to 64m",
        "of a request, its headers of 16 bytes per packet included",
    ),
    key("resp_size", "bytes, 16 to 64m", "of a response, likewise"),
    key(
        "resp_size_rule",
        "same or reference",
        "reference: responses are 16 bytes longer",
    ),
    key("scan", "0 or 1", "handlers touch every byte of a packet"),
    key(
        "new_buffers",
        "0 or 1",
        "responses get new buffers (ApplyNewMbuf)",
    ),
    key(
        "ticks_per_msg",
        "ticks, 0 to 4294967295",
        "a receiving workspace is busy for so long per message",
    ),
    key(
        "work_ns",
        "nanoseconds, 0 to 1000000000000000",
        "a server is busy for so long per message",
    ),
    key(
        "inflight",
        "0 to 65535",
        "messages without a response per workspace; 0: any number",
    ),
    key(
        "rate",
        super::traffic::RATE_TAKES,
        "that all clients together begin, whatever comes back",
    ),
    key(
        "line_rate",
        super::traffic::LINE_TAKES,
        "of the line, of which a rate is a share and which a search begins with",
    ),
    key(
        "messages",
        "a number, from 1",
        "that all clients together begin at most",
    ),
    key(
        "imix",
        super::traffic::IMIX_TAKES,
        "frames of requests, with the frame check, in turn",
    ),
    key("mtu", "64 to 2048", "the largest IPv4 packet"),
    key("pool", "64 to 1048576", "buffers of a workspace"),
    key(
        "ring",
        "64 to 1048576",
        "slots of a ring between workspace and dispatcher",
    ),
    key("nic_ring", "64 to 1048576", "slots of a queue of the NIC"),
    key(
        "flush_us",
        "microseconds, 0 to 1000000000000",
        "less than a batch waits no longer than this",
    ),
    key(
        "msg_timeout_ms",
        "milliseconds, 1 to 1000000000",
        "after it a message is lost",
    ),
    key(
        "stall_timeout",
        "seconds, 0.001 to 1000000",
        "without any response for so long the run fails",
    ),
    key(
        "loop_interval_ns",
        "nanoseconds, 0 to 1000000000000000",
        "between the starts of two passes; 1000 as the reference",
    ),
    key(
        "idle",
        "auto, spin, pause, yield, sleep",
        "what a workspace without work does",
    ),
    key("stage_timing", "all, off, 1/N", "which passes are timed"),
    key(
        "mem_region",
        "bytes, 4k to 4g",
        "memory of a workspace that handlers use",
    ),
    key(
        "mem_touch",
        "bytes, 8 to 4g",
        "of it, what M_APP touches per packet",
    ),
    key("hugepages", "auto, 2M, 1G, off", "pages of the pools"),
    key("udp_port_base", "1 to 65000", "UDP port of workspace 0"),
    key(
        "mgmt_port",
        "1 to 65535, 0: none",
        "TCP port at which client and server agree, of role loopback without effect; with 0 a server asks for \
         no client and serves what comes",
    ),
    key(
        "first_packets",
        "0 to 1024",
        "packets that backend dpdk sends at the start, for a device whose packets come back to it",
    ),
    key(
        "gid_index",
        "0 to 255, or auto",
        "place of the own address among those of the port of backend verbs; auto: the first of RoCE v2 over IPv4",
    ),
];
