//! Conversion of a configuration to a plan.
//!
//! In: a configuration. Out: the packet path that it describes; or everything that is wrong with its values,
//! each with its line. Not here: files, the grammar (`config`).

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use weir_schema::{
    EngineChoice, IdlePolicy, Job, PacketPathWorkload, PacketStream, PathGroup, PathSide,
    Placement, Plan, PoolPages, Setting, StageBatches,
};
use weir_units::Nanos;

use super::backend::{TAKES, backend, frames_of_devices, of_device};
use super::config::AxioConfig;
use super::handlers;
use super::keys::TUNABLE;
use super::role::AxioRole;
use super::traffic::{self, LineRate};
use super::values::Values;
use super::window;

/// Default values of the reference.
const DEFAULTS: [(&str, u32); 8] = [
    ("kAppCoreNum", 16),
    ("kAppRxMsgBatchSize", 32),
    ("kAppTxMsgBatchSize", 32),
    ("kDispQueueNum", 16),
    ("kDispRxBatchSize", 32),
    ("kDispTxBatchSize", 32),
    ("kNICRxPostSize", 32),
    ("kNICTxPostSize", 32),
];

/// Message for a configuration without a workload line. It concerns no line.
pub(super) const NO_WORKLOAD: &str = "there is no workload line";

/// `4096`, `256k`, `1m`, `1g`.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (digits, unit) = match lower.strip_suffix(['k', 'm', 'g']) {
        Some(digits) => {
            let unit = match lower.as_bytes().last() {
                Some(b'k') => 1 << 10,
                Some(b'm') => 1 << 20,
                _ => 1 << 30,
            };
            (digits, unit)
        }
        None => (lower.as_str(), 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Six bytes, with `.` or `:` between them.
fn hardware_address(text: &str) -> Option<[u8; 6]> {
    let parts: Vec<&str> = text.split(['.', ':']).collect();
    let byte = |part: &&str| (part.len() <= 2).then(|| u8::from_str_radix(part, 16).ok())?;
    let bytes: Option<Vec<u8>> = parts.iter().map(byte).collect();
    bytes?.try_into().ok()
}

/// Passes between two timed ones; 0 for no timing.
fn timed_pass(text: &str) -> Option<u32> {
    match text {
        "all" => Some(1),
        "off" => Some(0),
        part => part
            .strip_prefix("1/")?
            .parse()
            .ok()
            .filter(|n| (1..=1 << 20).contains(n)),
    }
}

/// The tunable numbers, with the reference's defaults where the file has none.
pub(super) fn tunable(config: &AxioConfig) -> BTreeMap<&'static str, u32> {
    let number = |(key, default): (&'static str, u32)| {
        let text = config.text(key).and_then(|text| text.parse().ok());
        (key, text.unwrap_or(default))
    };
    DEFAULTS.into_iter().map(number).collect()
}

/// The eight lines of `-p`.
pub(super) fn tunable_lines(numbers: &BTreeMap<&'static str, u32>) -> String {
    let mut out = String::from("==========Current Tunable Parameter Values:==========\n");
    for key in TUNABLE {
        let number = numbers.get(key).copied().unwrap_or_default();
        push!(out, "{key}: {number}\n");
    }
    out
}

/// Workload of a configuration, with its engine and placement.
#[derive(Clone, Debug)]
pub(super) struct AxioWork {
    pub(super) work: PacketPathWorkload,
    pub(super) engine: EngineChoice,
    pub(super) placement: Placement,
    /// Rate of the line, where the configuration states it.
    pub(super) line: Option<LineRate>,
}

/// The packet path of a configuration.
///
/// # Errors
/// Everything that is wrong with it, a line for each.
pub(super) fn workload(config: &AxioConfig, role: AxioRole) -> Result<AxioWork, Vec<String>> {
    let mut values = Values {
        config,
        wrong: Vec::new(),
    };
    let placement = placement(&mut values);
    let mut work = PacketPathWorkload {
        side: role.side(),
        streams: streams(config),
        batches: batches(&mut values),
        ..PacketPathWorkload::default()
    };
    messages(&mut values, &mut work);
    let mut engine = link(&mut values, role);
    limits(&mut values, &mut work, &engine);
    let line = traffic(&mut values, &mut work);
    for (field, why) in work.short_messages() {
        let key = if field == "request_bytes" {
            "req_size"
        } else {
            "resp_size"
        };
        values.refuse(key, &why);
    }
    let first = values.number("first_packets", 0, 1024, 0);
    if first > 0 {
        // Links that have no such setting say so.
        let first = Setting::Number(first.into());
        engine.settings.insert("first_packets".to_owned(), first);
    }
    let index = |text: &str| match text {
        "auto" => Some(None),
        number => number.parse::<u8>().ok().map(Some),
    };
    if let Some(index) = values.read("gid_index", index).flatten() {
        let index = Setting::Number(index.into());
        engine.settings.insert("gid_index".to_owned(), index);
    }
    addresses(&mut values, &engine, &mut work);
    if config.workloads.is_empty() {
        values.wrong.push(NO_WORKLOAD.to_owned());
    }
    let mut wrong = values.wrong;
    wrong.extend(batches_that_never_fit(config, &work));
    if wrong.is_empty() {
        Ok(AxioWork {
            work,
            engine,
            placement,
            line,
        })
    } else {
        Err(wrong)
    }
}

/// The link that carries packets: `backend`, else rings for both sides, else the device of the one side.
fn link(values: &mut Values<'_>, role: AxioRole) -> EngineChoice {
    let config = values.config;
    if config.text("backend").is_some() {
        let read = values.read("backend", backend);
        return read.unwrap_or_else(|| EngineChoice::new("ring"));
    }
    if role.side().is_none() {
        return EngineChoice::new("ring");
    }
    let device = of_device(config.text("device_pcie"), config.text("device_name"));
    device.unwrap_or_else(|| {
        let why = format!("backend: it is missing: a side alone has no ring (valid: {TAKES})");
        values.wrong.push(why);
        EngineChoice::new("ring")
    })
}

fn streams(config: &AxioConfig) -> Vec<PacketStream> {
    let of = |line: &super::config::WorkloadLine| {
        let groups = line.apps.iter().zip(&line.dispatchers);
        let group = |(threads, dispatchers): (&Vec<u8>, &Vec<u8>)| PathGroup {
            threads: threads.clone(),
            dispatcher: dispatchers.first().copied().unwrap_or_default(),
        };
        PacketStream {
            id: line.id,
            stages: line.stages.clone(),
            peers: line.remote.clone(),
            groups: groups.map(group).collect(),
        }
    };
    config.workloads.iter().map(of).collect()
}

fn batches(values: &mut Values<'_>) -> StageBatches {
    values.number("kAppCoreNum", 1, 16, 16);
    values.number("kDispQueueNum", 1, 16, 16);
    let mut batch = |key| values.number(key, 1, 512, 32);
    StageBatches {
        application_tx: batch("kAppTxMsgBatchSize"),
        application_rx: batch("kAppRxMsgBatchSize"),
        dispatch_tx: batch("kDispTxBatchSize"),
        dispatch_rx: batch("kDispRxBatchSize"),
        link_tx: batch("kNICTxPostSize"),
        link_rx: batch("kNICRxPostSize"),
    }
}

fn messages(values: &mut Values<'_>, work: &mut PacketPathWorkload) {
    let handler = values.read("msg_handler", handlers::message_handler);
    work.handler = handler.unwrap_or(handlers::DEFAULT);
    let facts = work.handler.facts();
    let packets = values.read("pkt_handler", handlers::packet_handler);
    work.packet_handler = packets.unwrap_or_default();
    work.request_bytes = values.bytes("req_size", 16, 64 << 20, facts.request.0);
    work.response_bytes = values.bytes("resp_size", 16, 64 << 20, facts.response.0);
    let rule = |text: &str| match text {
        "same" => Some(false),
        "reference" => Some(true),
        _ => None,
    };
    work.long_responses = values.read("resp_size_rule", rule).unwrap_or(false);
    work.scan = values.switch("scan", true);
    work.new_buffers = values.switch("new_buffers", false);
    work.ticks_per_message = u64::from(values.number("ticks_per_msg", 0, u32::MAX, 0));
    work.work_ns = values.time("work_ns", 1.0, 0.0, Nanos::ZERO);
    work.region_bytes = values.bytes("mem_region", 4096, 4 << 30, 256 << 10);
    work.touch_bytes = values.bytes("mem_touch", 8, 4 << 30, 1 << 10);
}

fn limits(values: &mut Values<'_>, work: &mut PacketPathWorkload, engine: &EngineChoice) {
    let times = PacketPathWorkload::default();
    work.iterations = values.number("iteration", 1, 1_000_000, 10);
    work.duration_ns = values.time("duration", 1e9, 0.001, times.duration_ns);
    work.packet_bytes = values.number("mtu", 64, 2048, 2048);
    work.pool_buffers = values.number("pool", 64, 1 << 20, 8192);
    work.ring_slots = values.number("ring", 64, 1 << 20, 4096);
    work.queue_slots = values.number("nic_ring", 64, 1 << 20, 2048);
    let frames = frames_of_devices(engine, work.queue_slots);
    let window = window::default_window(work, frames);
    work.in_flight = values.number("inflight", 0, 65535, window);
    work.flush_ns = values.time("flush_us", 1e3, 0.0, times.flush_ns);
    work.message_timeout_ns = values.time("msg_timeout_ms", 1e6, 1.0, times.message_timeout_ns);
    work.stall_timeout_ns = values.time("stall_timeout", 1e9, 0.001, times.stall_timeout_ns);
    work.pass_interval_ns = values.time("loop_interval_ns", 1.0, 0.0, Nanos::ZERO);
    work.timed_pass = values.read("stage_timing", timed_pass).unwrap_or(1);
    let idle = |text: &str| {
        Some(match text {
            "auto" => IdlePolicy::Auto,
            "spin" => IdlePolicy::Spin,
            "pause" => IdlePolicy::Pause,
            "yield" => IdlePolicy::Yield,
            "sleep" => IdlePolicy::Sleep,
            _ => return None,
        })
    };
    work.idle = values.read("idle", idle).unwrap_or_default();
    let pages = |text: &str| {
        Some(match text {
            "auto" => PoolPages::Auto,
            "2M" => PoolPages::TwoMiB,
            "1G" => PoolPages::OneGiB,
            "off" => PoolPages::Off,
            _ => return None,
        })
    };
    work.pool_pages = values.read("hugepages", pages).unwrap_or_default();
}

/// Reads number, sizes and rate of messages, and returns the rate of the line.
fn traffic(values: &mut Values<'_>, work: &mut PacketPathWorkload) -> Option<LineRate> {
    let most = |text: &str| {
        text.parse()
            .ok()
            .filter(|n| (1..=u64::MAX >> 1).contains(n))
    };
    work.most_messages = values.read("messages", most).unwrap_or(0);
    if let Some(frames) = values.read("imix", traffic::imix) {
        mix(values, &frames, work);
    }
    let line = values.read("line_rate", traffic::line_rate);
    let line = line.map(|bits_per_s| LineRate { bits_per_s });
    if let Some(rate) = values.read("rate", traffic::rate) {
        match traffic::messages_per_s(rate, work, line) {
            Ok(per_s) => work.messages_per_s = per_s,
            Err(why) => values.refuse("rate", &why),
        }
    }
    line
}

/// Reads a mix of requests with these sizes of frames.
fn mix(values: &mut Values<'_>, frames: &[u64], work: &mut PacketPathWorkload) {
    let most = traffic::largest_frame(work);
    if let Some(frame) = frames.iter().find(|frame| **frame > most) {
        let why = format!(
            "frames of {frame} bytes do not fit: mtu {} takes up to {most}",
            work.packet_bytes
        );
        values.refuse("imix", &why);
    } else if values.config.values.contains_key("req_size") {
        values.refuse("imix", "req_size says another size; leave one of them out");
    } else if work.takes_any_size() {
        work.request_cycle = frames
            .iter()
            .map(|f| traffic::request_of_frame(*f))
            .collect();
        let largest = work.request_cycle.iter().max().copied();
        work.request_bytes = largest.unwrap_or(work.request_bytes);
    } else {
        let words = handlers::any_size_words();
        let why = format!(
            "the messages of this msg_handler have one size (valid: {words}, or pkt_handler : Echo)"
        );
        values.refuse("imix", &why);
    }
}

fn addresses(values: &mut Values<'_>, engine: &EngineChoice, work: &mut PacketPathWorkload) {
    if engine.name == "shm" || engine.name == "udp" && work.side.is_none() {
        work.addresses = [[127, 0, 0, 1], [127, 0, 0, 2]];
    }
    if engine.name == "packet" || engine.name == "xdp" && work.side.is_some() {
        work.hardware_addresses = [[0; 6]; 2];
    }
    // The first is the client's.
    let own = usize::from(work.side == Some(PathSide::Server));
    for (at, key) in [(own, "local_ip"), (1 - own, "remote_ip")] {
        let of = |text: &str| text.parse::<Ipv4Addr>().ok().map(|ip| ip.octets());
        if let Some(address) = values.read(key, of) {
            work.addresses[at] = address;
        }
    }
    if engine.name == "udp" && work.addresses[0] == work.addresses[1] {
        // Both sides would have the same ports of it.
        let address = Ipv4Addr::from(work.addresses[0]);
        let key = ["remote_ip", "local_ip"].into_iter();
        let key = key.max_by_key(|key| values.config.values.contains_key(*key));
        let place = values.config.place_of(key.unwrap_or("local_ip"));
        values.wrong.push(format!(
            "{place}: `local_ip` and `remote_ip` are both {address}; over udp each side has its own, as 127.0.0.1 and \
             127.0.0.2 on one machine"
        ));
    }
    for (at, key) in [(own, "local_mac"), (1 - own, "remote_mac")] {
        if let Some(address) = values.read(key, hardware_address) {
            work.hardware_addresses[at] = address;
        }
    }
    let port = values.number("udp_port_base", 1, 65000, 10010);
    work.first_port = u16::try_from(port).unwrap_or(10010);
    let port = values.number("mgmt_port", 0, 65535, work.management_port.into());
    work.management_port = u16::try_from(port).unwrap_or(work.management_port);
    values.number("phy_port", 0, 1, 0);
}

fn placement(values: &mut Values<'_>) -> Placement {
    let node = |text: &str| match text {
        "auto" => Some(None),
        number => number.parse::<u32>().ok().map(Some),
    };
    let node = values.read("numa", node).flatten();
    Placement {
        nodes: node.map(|node| vec![node]),
        ..Placement::default()
    }
}

/// Batches that are larger than the window, or for which a pool has too few buffers.
fn batches_that_never_fit(config: &AxioConfig, work: &PacketPathWorkload) -> Vec<String> {
    let sides = [
        (
            "kAppTxMsgBatchSize",
            work.batches.application_tx,
            work.packets(work.request_bytes),
        ),
        (
            "kAppRxMsgBatchSize",
            work.batches.application_rx,
            work.packets(work.whole_response()),
        ),
    ];
    let mut wrong = Vec::new();
    for (key, batch, packets) in sides {
        let needed = u64::from(batch) * u64::from(packets);
        if needed > u64::from(work.pool_buffers) {
            wrong.push(format!(
                "{}: Mempool size is too small: {batch} messages of {packets} packets need {needed} buffers, \
                 pool is {}",
                config.place_of(key),
                work.pool_buffers
            ));
        }
    }
    wrong
}

/// The plan of a packet path, of a configuration of this name.
pub(super) fn plan(name: &str, asked: AxioWork, command: Vec<String>) -> Plan {
    let threads = asked.work.thread_count();
    let mut job = Job::alone("packets", asked.engine, asked.work);
    job.clones = threads;
    job.placement = asked.placement;
    Plan {
        command,
        ..Plan::new(name, "axio", vec![job])
    }
}
