//! Packet path: clients send messages in packets through stages to servers, which answer them
//! (spec: packet datapath). What shall be done.
//!
//! Both sides are threads of one run, wired alike, or each is a run of its own: a stream names the threads
//! that make and take its messages and the dispatchers between them and the link, which is the job's
//! engine. Not here: what was measured (`packet_path_result`).

use serde::{Deserialize, Serialize};
use weir_units::{Bytes, JsonSchema, Nanos};

use crate::kind::{KindInfo, Moves};
use crate::packet_path_result::PathSide;
use crate::path_handlers::{MessageHandler, PacketHandler};
use crate::workload::WorkloadFacts;

/// The kinds of a packet path: messages that were answered.
pub const PACKET_PATH_KINDS: &[KindInfo] = &[KindInfo::new("message", Moves::Out)];

/// Threads of a side have numbers below this.
pub const MOST_PATH_THREADS: u8 = 16;

/// Ethernet, IPv4 and UDP headers.
pub const PACKET_HEADER_BYTES: u32 = 42;
/// The header of a message in each of its packets.
pub const MESSAGE_HEADER_BYTES: u32 = 16;

/// Messages in packets through stages, and their answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PacketPathWorkload {
    /// Side that this run is; without it, both.
    #[serde(default)]
    pub side: Option<PathSide>,
    /// This stage alone is measured, on one thread, with what it takes from and gives to done in its stead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_stage: Option<PathStage>,
    /// Streams of messages; every thread of a side is in one of them.
    pub streams: Vec<PacketStream>,
    /// Handler of a server's messages.
    pub handler: MessageHandler,
    /// Handler of packets in a server's dispatchers.
    #[serde(default)]
    pub packet_handler: PacketHandler,
    /// Of a request, its headers of 16 bytes per packet included.
    pub request_bytes: Bytes,
    /// Of an answer, likewise.
    pub response_bytes: Bytes,
    /// Answers are 16 bytes longer per packet, as the older program has them.
    pub long_responses: bool,
    /// Batches of the stages.
    pub batches: StageBatches,
    /// Messages without an answer, per thread that makes them; 0: any number.
    pub in_flight: u32,
    /// The largest IPv4 packet.
    pub packet_bytes: u32,
    /// Buffers of a thread.
    pub pool_buffers: u32,
    /// Slots of a ring between a thread and its dispatcher.
    pub ring_slots: u32,
    /// Slots of a queue of the link.
    pub queue_slots: u32,
    /// Stretches of time that are reported apart.
    pub iterations: u32,
    /// Length of each iteration.
    pub duration_ns: Nanos,
    /// Handlers touch every byte of a packet.
    pub scan: bool,
    /// Answers are written into new buffers, and not over their requests.
    pub new_buffers: bool,
    /// Ticks of the clock that a receiving thread is busy for, per message.
    pub ticks_per_message: u64,
    /// Further work of a server per message.
    pub work_ns: Nanos,
    /// Memory of each server thread that handlers use.
    pub region_bytes: Bytes,
    /// Of it, how much a message touches, where its handler does so.
    pub touch_bytes: Bytes,
    /// Longest wait of less than a batch.
    pub flush_ns: Nanos,
    /// A message without an answer is lost after this time.
    pub message_timeout_ns: Nanos,
    /// Without any answer for so long the run fails.
    pub stall_timeout_ns: Nanos,
    /// A thread begins its next pass over its stages no earlier than this after the last.
    pub pass_interval_ns: Nanos,
    /// Behaviour of a thread that finds nothing to do.
    pub idle: IdlePolicy,
    /// One pass over the stages in so many is timed; 0: none.
    pub timed_pass: u32,
    /// Packets of clients that are dropped on purpose, of a million.
    pub dropped_per_million: u32,
    /// UDP port of the thread with number 0.
    pub first_port: u16,
    /// IPv4 addresses of client and server.
    pub addresses: [[u8; 4]; 2],
    /// Ethernet addresses of client and server; zeros: those of their interfaces.
    pub hardware_addresses: [[u8; 6]; 2],
    /// TCP port of the server at which two runs agree on what they do; 0: a server asks for no client.
    #[serde(default = "first_management_port")]
    pub management_port: u16,
    /// Who may call the server.
    #[serde(default, skip_serializing_if = "PathCallers::is_usual")]
    pub callers: PathCallers,
    /// Messages that all clients together begin per second, whatever comes back; 0: as many as may be in
    /// flight.
    #[serde(default)]
    pub messages_per_s: u64,
    /// Messages that all clients together begin; 0: as many as there is time for.
    #[serde(default)]
    pub most_messages: u64,
    /// Sizes of requests, which each client sends in turn; none: all have `request_bytes`, which is the
    /// largest of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub request_cycle: Vec<Bytes>,
    /// Packets that the server takes per second, by the times that they bear; it drops the others; 0: all.
    #[serde(default)]
    pub sink_packets_per_s: u64,
    /// Length of the server's one pause, in the middle of the run.
    #[serde(default)]
    pub pause_ns: Nanos,
    /// Pages of the pools.
    #[serde(default)]
    pub pool_pages: PoolPages,
    /// Of what handlers draw; 0 asks for another one at each run.
    pub seed: u64,
}

/// Who may call a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathCallers {
    /// Programs of its machine.
    #[default]
    ThisMachine,
    /// Whoever reaches it.
    Anyone,
    /// Whoever knows the secret in this file; of a client: the server has to know it too.
    Token(String),
}

impl PathCallers {
    fn is_usual(&self) -> bool {
        *self == Self::ThisMachine
    }
}

fn first_management_port() -> u16 {
    20086
}

impl WorkloadFacts for PacketPathWorkload {
    fn title(&self) -> String {
        format!(
            "packets of {} to {}",
            Bytes(u64::from(self.frame_bytes(self.request_bytes))),
            self.handler.facts().title
        )
    }

    fn seed(&self) -> Option<u64> {
        Some(self.seed)
    }
}

impl Default for PacketPathWorkload {
    /// One thread on each side; requests and answers of 64 bytes on the wire.
    fn default() -> Self {
        Self {
            side: None,
            only_stage: None,
            streams: vec![PacketStream::default()],
            handler: MessageHandler::Same,
            packet_handler: PacketHandler::None,
            request_bytes: Bytes(22),
            response_bytes: Bytes(22),
            long_responses: false,
            batches: StageBatches::default(),
            in_flight: 1024,
            packet_bytes: 2048,
            pool_buffers: 8192,
            ring_slots: 4096,
            queue_slots: 2048,
            iterations: 10,
            duration_ns: Nanos::from_secs(1),
            scan: true,
            new_buffers: false,
            ticks_per_message: 0,
            work_ns: Nanos::ZERO,
            region_bytes: Bytes(256 << 10),
            touch_bytes: Bytes(1 << 10),
            flush_ns: Nanos(10_000),
            message_timeout_ns: Nanos::from_secs(1),
            stall_timeout_ns: Nanos::from_secs(5),
            pass_interval_ns: Nanos::ZERO,
            idle: IdlePolicy::Auto,
            timed_pass: 1,
            dropped_per_million: 0,
            first_port: 10010,
            addresses: [[10, 77, 0, 1], [10, 77, 0, 2]],
            hardware_addresses: [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]],
            management_port: first_management_port(),
            callers: PathCallers::ThisMachine,
            messages_per_s: 0,
            most_messages: 0,
            request_cycle: Vec::new(),
            sink_packets_per_s: 0,
            pause_ns: Nanos::ZERO,
            pool_pages: PoolPages::Auto,
            seed: 0,
        }
    }
}

impl PacketPathWorkload {
    /// Bytes of the message that a packet holds at most, its header included.
    pub fn part_bytes(&self) -> u32 {
        self.packet_bytes.saturating_sub(28)
    }

    /// Packets of a message.
    pub fn packets(&self, message: Bytes) -> u32 {
        let part = u64::from(self.part_bytes().max(1));
        u32::try_from(message.0.div_ceil(part).max(1)).unwrap_or(u32::MAX)
    }

    /// Length of the first frame of a message.
    pub fn frame_bytes(&self, message: Bytes) -> u32 {
        let part = message.0.min(u64::from(self.part_bytes()));
        PACKET_HEADER_BYTES + u32::try_from(part).unwrap_or(u32::MAX)
    }

    /// True if the server can handle requests of any size.
    pub fn takes_any_size(&self) -> bool {
        self.echoes() || self.handler.facts().takes_any_size
    }

    /// Messages that have less room than the handler needs: the field of each, and what is wrong with it.
    pub fn short_messages(&self) -> Vec<(&'static str, String)> {
        let facts = self.handler.facts();
        let sizes = [
            ("request_bytes", self.request_bytes, facts.least_request),
            (
                "response_bytes",
                self.whole_response(),
                facts.least_response,
            ),
        ];
        let short = |(field, message, least): (&'static str, Bytes, Bytes)| {
            let room = message.0.saturating_sub(self.header_bytes(message));
            let why = format!(
                "{message} has room for {room} bytes of payload; {} needs {}, a message of {}",
                facts.title,
                least.0,
                self.least_message(least)
            );
            (room < least.0 && !self.echoes()).then_some((field, why))
        };
        sizes.into_iter().filter_map(short).collect()
    }

    /// Headers in all packets of a message.
    fn header_bytes(&self, message: Bytes) -> u64 {
        u64::from(MESSAGE_HEADER_BYTES) * u64::from(self.packets(message))
    }

    /// The smallest message with so much payload.
    fn least_message(&self, payload: Bytes) -> Bytes {
        let whole = |message| Bytes(payload.0 + self.header_bytes(message));
        let mut message = whole(payload);
        // A header more may need a packet more, which has a header too.
        while whole(message) > message && self.part_bytes() > MESSAGE_HEADER_BYTES {
            message = whole(message);
        }
        message
    }

    /// Sizes that requests have, each once, in the order in which they first come.
    pub fn request_sizes(&self) -> Vec<Bytes> {
        let mut sizes = Vec::new();
        for size in &self.request_cycle {
            if !sizes.contains(size) {
                sizes.push(*size);
            }
        }
        sizes
    }

    /// Of an answer, with what the older program adds where that is asked for.
    pub fn whole_response(&self) -> Bytes {
        let more = u64::from(MESSAGE_HEADER_BYTES) * u64::from(self.long_responses);
        Bytes(self.response_bytes.0.saturating_add(more))
    }

    /// Numbers of the threads of a side, each once, in ascending order.
    pub fn threads(&self) -> Vec<u8> {
        let of = |stream: &PacketStream| {
            let apps = stream.groups.iter().flat_map(|group| group.threads.clone());
            let dispatchers = stream.groups.iter().map(|group| group.dispatcher);
            apps.chain(dispatchers).collect::<Vec<_>>()
        };
        let mut all: Vec<u8> = self.streams.iter().flat_map(of).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The sides that this run is.
    pub fn sides(&self) -> &'static [PathSide] {
        match self.side {
            None => &[PathSide::Client, PathSide::Server],
            Some(PathSide::Client) => &[PathSide::Client],
            Some(PathSide::Server) => &[PathSide::Server],
        }
    }

    /// Threads of this run.
    pub fn thread_count(&self) -> u32 {
        if self.only_stage.is_some() {
            return 1;
        }
        u32::try_from(self.threads().len() * self.sides().len()).unwrap_or(u32::MAX)
    }

    /// Numbers of the dispatchers, each once, in ascending order.
    pub fn dispatchers(&self) -> Vec<u8> {
        let groups = self.streams.iter().flat_map(|stream| &stream.groups);
        let mut all: Vec<u8> = groups.map(|group| group.dispatcher).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// True if clients get an answer to their messages.
    pub fn is_answered(&self) -> bool {
        self.echoes() || self.handler.facts().is_answered
    }

    /// True if dispatchers of the server send every packet back themselves.
    pub fn echoes(&self) -> bool {
        self.packet_handler == PacketHandler::Echo
    }
}

/// Messages of one kind, and who has to do with them. The same on both sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PacketStream {
    /// Its number, which packets bear.
    pub id: u8,
    /// Stages of its threads, in this order.
    pub stages: Vec<PathStage>,
    /// Dispatchers of the other side, in turn.
    pub peers: Vec<u8>,
    /// Threads and the dispatcher that serves them.
    pub groups: Vec<PathGroup>,
}

impl Default for PacketStream {
    /// Thread 0 does everything.
    fn default() -> Self {
        Self {
            id: 1,
            stages: vec![
                PathStage::ApplicationTx,
                PathStage::DispatchTx,
                PathStage::DispatchRx,
                PathStage::ApplicationRx,
            ],
            peers: vec![0],
            groups: vec![PathGroup {
                threads: vec![0],
                dispatcher: 0,
            }],
        }
    }
}

/// Threads of a stream and the one dispatcher that serves them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathGroup {
    /// Threads that make and take messages.
    pub threads: Vec<u8>,
    /// Thread between them and the link.
    pub dispatcher: u8,
}

/// Stage of a packet path, which a thread runs in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathStage {
    /// Makes messages.
    ApplicationTx,
    /// Collects packets of threads and hands them to the link.
    DispatchTx,
    /// The link sends: no function of a thread.
    LinkTx,
    /// The link receives: no function of a thread.
    LinkRx,
    /// Takes packets from the link and hands them to threads.
    DispatchRx,
    /// Takes messages.
    ApplicationRx,
}

impl PathStage {
    /// All, in the order of their rows in tables.
    pub const ROWS: [Self; 6] = [
        Self::ApplicationTx,
        Self::ApplicationRx,
        Self::DispatchTx,
        Self::DispatchRx,
        Self::LinkTx,
        Self::LinkRx,
    ];

    /// Names of these rows.
    pub const ROW_NAMES: [&str; 6] = ["app_tx", "app_rx", "disp_tx", "disp_rx", "nic_tx", "nic_rx"];

    /// Name of its row in tables.
    pub fn row(self) -> &'static str {
        Self::ROW_NAMES[self.row_place()]
    }

    /// Place of its row in tables, from 0.
    pub fn row_place(self) -> usize {
        let place = Self::ROWS.iter().position(|stage| *stage == self);
        place.unwrap_or_default()
    }
}

/// Batches of stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StageBatches {
    /// Messages made.
    pub application_tx: u32,
    /// Messages waited for.
    pub application_rx: u32,
    /// Packets collected.
    pub dispatch_tx: u32,
    /// Packets taken from the link at most.
    pub dispatch_rx: u32,
    /// Packets handed to the link before it is notified.
    pub link_tx: u32,
    /// Packets taken before their slots are given back to the link.
    pub link_rx: u32,
}

impl Default for StageBatches {
    fn default() -> Self {
        Self {
            application_tx: 32,
            application_rx: 32,
            dispatch_tx: 32,
            dispatch_rx: 32,
            link_tx: 32,
            link_rx: 32,
        }
    }
}

/// Pages that the pools of buffers are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PoolPages {
    /// Huge pages of 2 MiB that are reserved, else what the kernel gives on request, else plain ones.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// Reserved ones of 2 MiB.
    #[serde(rename = "2M")]
    TwoMiB,
    /// Reserved ones of 1 GiB.
    #[serde(rename = "1G")]
    OneGiB,
    /// Plain ones, or huge ones that the kernel gives on request.
    #[serde(rename = "transparent")]
    Transparent,
    /// Plain ones.
    #[serde(rename = "off")]
    Off,
}

/// Behaviour of a thread that finds nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IdlePolicy {
    /// Looks again at once where every thread has a CPU of its own and others are left, else as
    /// `yield`.
    #[default]
    Auto,
    /// Looks again at once.
    Spin,
    /// Lets the other thread of its core work for a moment.
    Pause,
    /// Lets another thread have the CPU after 64 passes for nothing.
    Yield,
    /// Sleeps for 50 µs after 64 passes for nothing.
    Sleep,
}
