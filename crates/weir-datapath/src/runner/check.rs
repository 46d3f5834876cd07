//! Faults of a packet path that can be known before it is run: numbers out of range, streams without what they
//! need, batches that never fill.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::Path;

use weir_run::failure;
use weir_schema::{
    Failure, Job, MOST_PATH_THREADS, PACKET_HEADER_BYTES, PacketPathWorkload, PacketStream,
    PathCallers, PathSide, PathStage, Placement,
};
use weir_sys::token::Token;
use weir_sys::topology::Topology;
use weir_units::{Bytes, Nanos};

use crate::link::LinkChoice;
use crate::pool::BUFFER_BYTES;

/// Largest batch.
const MOST_BATCH: u32 = 512;
/// Sizes in turn, with their repetitions.
const MOST_SIZES_IN_TURN: usize = 4096;

/// Everything that is wrong with a job.
pub(super) fn job(job: &Job, work: &PacketPathWorkload) -> Vec<Failure> {
    let mut wrong: Vec<String> = Vec::new();
    let choice = LinkChoice::of(&job.engine);
    let unfit = match choice {
        Ok(choice) => choice.check(work),
        Err(why) => Some(why),
    };
    let threads = work.thread_count();
    if job.clones != threads {
        wrong.push(format!(
            "`clones` is {}; this run has {threads} threads",
            job.clones
        ));
    }
    wrong.extend(numbers(work));
    wrong.extend(sizes(work));
    wrong.extend(size_cycle(work));
    wrong.extend(other_side_only(work));
    wrong.extend(exposed(work));
    if let PathCallers::Token(file) = &work.callers {
        let unreadable = Token::read(Path::new(file)).err();
        wrong.extend(unreadable.map(|why| why.to_string()));
    }
    wrong.extend(streams(work));
    wrong.extend(batches(work));
    wrong.extend(beside_a_stage(work, &job.engine.name));
    // What the machine lacks matters once the plan is right.
    let unfit = unfit.filter(|found| wrong.is_empty() || found.cause == "plan");
    let wrong = wrong.into_iter().map(|why| failure("plan", None, why));
    let misplaced = placement(&job.placement);
    wrong.chain(unfit).chain(misplaced).collect()
}

/// A server that others than this machine reach, of which nobody has said that everyone may use it.
fn exposed(work: &PacketPathWorkload) -> Option<String> {
    let at = Ipv4Addr::from(work.addresses[1]);
    let is_exposed = work.side == Some(PathSide::Server)
        && work.management_port > 0
        && work.callers == PathCallers::ThisMachine
        && !at.is_loopback();
    is_exposed.then(|| {
        format!(
            "{at}: whoever reaches it can have this server run what fits\n  help: a secret of both sides \
             (--token-file FILE), or everyone may (--open-to-anyone)"
        )
    })
}

/// Numbers out of their range.
fn numbers(work: &PacketPathWorkload) -> Vec<String> {
    let batches = &work.batches;
    let most = u64::from(MOST_BATCH);
    let rate = 1_000_000_000;
    let drops = u64::from(work.dropped_per_million);
    let batches = [
        ("batches.application_tx", batches.application_tx),
        ("batches.application_rx", batches.application_rx),
        ("batches.dispatch_tx", batches.dispatch_tx),
        ("batches.dispatch_rx", batches.dispatch_rx),
        ("batches.link_tx", batches.link_tx),
        ("batches.link_rx", batches.link_rx),
    ];
    let ranges: [(&str, u64, u64, u64); 12] = [
        ("in_flight", work.in_flight.into(), 0, 65535),
        ("packet_bytes", work.packet_bytes.into(), 64, 2048),
        ("pool_buffers", work.pool_buffers.into(), 64, 1 << 20),
        ("ring_slots", work.ring_slots.into(), 64, 1 << 20),
        ("queue_slots", work.queue_slots.into(), 64, 1 << 20),
        ("iterations", work.iterations.into(), 1, 1_000_000),
        ("timed_pass", work.timed_pass.into(), 0, 1 << 20),
        ("dropped_per_million", drops, 0, 999_999),
        ("region_bytes", work.region_bytes.0, 4096, 1 << 32),
        ("touch_bytes", work.touch_bytes.0, 8, 1 << 32),
        ("messages_per_s", work.messages_per_s, 0, rate),
        ("sink_packets_per_s", work.sink_packets_per_s, 0, rate),
    ];
    let of_batches = batches.map(|(name, value)| (name, u64::from(value), 1, most));
    let mut wrong: Vec<String> = of_batches
        .iter()
        .chain(&ranges)
        .filter(|(_, value, low, high)| !(low..=high).contains(&value))
        .map(|(name, value, low, high)| format!("`{name}` is {value}; it takes {low} to {high}"))
        .collect();
    if work.management_port == 0 && work.side == Some(PathSide::Client) {
        let why = "`management_port` is 0, which only a server without a client takes";
        wrong.push(why.to_owned());
    }
    wrong.extend(spans(work));
    wrong
}

/// Spans of time out of their range.
fn spans(work: &PacketPathWorkload) -> Vec<String> {
    let spans = [
        ("duration_ns", work.duration_ns, 1_000_000),
        ("message_timeout_ns", work.message_timeout_ns, 1_000_000),
        ("stall_timeout_ns", work.stall_timeout_ns, 1_000_000),
    ];
    let high = Nanos::from_secs(1_000_000);
    let wrong = |(name, span, low): (&str, Nanos, u64)| {
        let low = Nanos(low);
        (span < low || span > high).then(|| format!("`{name}` is {span}; it takes {low} to {high}"))
    };
    spans.into_iter().filter_map(wrong).collect()
}

fn sizes(work: &PacketPathWorkload) -> Vec<String> {
    let mut wrong = Vec::new();
    let response = work.whole_response();
    let most = work.pool_buffers.min(work.ring_slots);
    let most = most.min(u16::MAX.into());
    for (name, bytes) in [
        ("request_bytes", work.request_bytes),
        ("response_bytes", response),
    ] {
        let packets = work.packets(bytes);
        if bytes.0 < 16 || bytes.0 > 64 << 20 {
            wrong.push(format!("`{name}` is {bytes}; a message has 16 B to 64 MiB"));
        } else if packets > most {
            wrong.push(format!(
                "`{name}`: a message of {packets} packets does not fit into a pool of {} and rings of {}",
                work.pool_buffers, work.ring_slots
            ));
        }
    }
    let longest = PACKET_HEADER_BYTES + work.part_bytes();
    if longest as usize > BUFFER_BYTES {
        wrong.push(format!(
            "`packet_bytes`: a buffer has {BUFFER_BYTES} bytes, a frame {longest}"
        ));
    }
    let short = work.short_messages().into_iter();
    wrong.extend(short.map(|(field, why)| format!("`{field}`: {why}")));
    wrong
}

/// Sizes in turn that cannot be.
fn size_cycle(work: &PacketPathWorkload) -> Vec<String> {
    let mut wrong = Vec::new();
    let sizes = work.request_sizes();
    let Some(largest) = sizes.iter().max() else {
        return wrong;
    };
    if *largest != work.request_bytes {
        wrong.push(format!(
            "`request_cycle`: its largest size is {largest}, `request_bytes` is {}",
            work.request_bytes
        ));
    }
    if work.request_cycle.len() > MOST_SIZES_IN_TURN {
        wrong.push(format!(
            "`request_cycle` has {} sizes; it takes up to {MOST_SIZES_IN_TURN}",
            work.request_cycle.len()
        ));
    }
    if sizes
        .iter()
        .any(|size| size.0 < 16 || work.packets(*size) > 1)
    {
        wrong.push(format!(
            "`request_cycle`: each size is of one packet, 16 to {} bytes",
            work.part_bytes()
        ));
    }
    if !work.takes_any_size() {
        wrong.push("`request_cycle`: the messages of this handler have one size".to_owned());
    }
    wrong
}

/// Settings that act on the side that another run is.
fn other_side_only(work: &PacketPathWorkload) -> Vec<String> {
    let (server, client) = (PathSide::Server, PathSide::Client);
    let given = [
        ("sink_packets_per_s", work.sink_packets_per_s > 0, server),
        ("pause_ns", work.pause_ns > Nanos::ZERO, server),
        ("dropped_per_million", work.dropped_per_million > 0, client),
    ];
    let given = given
        .into_iter()
        .filter(|(_, is_given, acts_on)| *is_given && work.side.is_some_and(|own| own != *acts_on));
    let words = |(name, _, acts_on)| {
        let acts_on = if acts_on == server {
            "server"
        } else {
            "client"
        };
        format!("`{name}` acts on the {acts_on}, which is a run of its own")
    };
    given.map(words).collect()
}

/// Settings that mean nothing where a stage is alone.
fn beside_a_stage(work: &PacketPathWorkload, link: &str) -> Vec<String> {
    let given = [
        ("side", work.side.is_some()),
        ("messages_per_s", work.messages_per_s > 0),
        ("most_messages", work.most_messages > 0),
        ("sink_packets_per_s", work.sink_packets_per_s > 0),
        ("pause_ns", work.pause_ns.0 > 0),
        ("dropped_per_million", work.dropped_per_million > 0),
        ("timed_pass", work.timed_pass != 1),
        ("pass_interval_ns", work.pass_interval_ns.0 > 0),
        ("engine", link != "ring"),
    ];
    let is_alone = work.only_stage.is_some();
    let given = given
        .into_iter()
        .filter(|(_, is_given)| is_alone && *is_given);
    let words = |(name, _)| {
        format!(
            "`{name}` means nothing with `only_stage`: a stage alone has no link and no other side, and each of its calls is timed"
        )
    };
    given.map(words).collect()
}

fn streams(work: &PacketPathWorkload) -> Vec<String> {
    let mut wrong = Vec::new();
    if work.streams.is_empty() {
        wrong.push("there is no stream".to_owned());
    }
    let (mut ids, mut makers) = (BTreeSet::new(), BTreeSet::new());
    let dispatchers = work.dispatchers();
    for stream in &work.streams {
        let id = stream.id;
        if !ids.insert(id) {
            wrong.push(format!("stream {id} is there twice"));
        }
        if stream.groups.is_empty() || stream.groups.iter().any(|group| group.threads.is_empty()) {
            wrong.push(format!("stream {id} has a dispatcher without threads"));
        }
        let mut own = BTreeSet::new();
        for group in &stream.groups {
            if !own.insert(group.dispatcher) {
                wrong.push(format!(
                    "stream {id} has dispatcher {} twice; each serves one group",
                    group.dispatcher
                ));
            }
            for &thread in &group.threads {
                if !makers.insert(thread) {
                    wrong.push(format!("thread {thread} makes messages of two groups"));
                }
            }
        }
        wrong.extend(missing_stage(stream, work.side));
        if stream.peers.is_empty() {
            wrong.push(format!("stream {id} has nobody to send to"));
        }
        let mut peers = BTreeSet::new();
        if let Some(peer) = stream.peers.iter().find(|peer| !peers.insert(**peer)) {
            wrong.push(format!("stream {id} sends to {peer} twice"));
        }
        let absent = stream.peers.iter();
        let absent = absent.filter(|peer| work.side.is_none() && !dispatchers.contains(peer));
        wrong.extend(absent.map(|peer| {
            format!("stream {id} sends to {peer}, which is no dispatcher of the other side")
        }));
    }
    let above = work.threads().into_iter();
    let above = above.filter(|id| *id >= MOST_PATH_THREADS);
    let why = |thread| format!("thread {thread}: they have numbers below {MOST_PATH_THREADS}");
    wrong.extend(above.map(why));
    wrong
}

/// Without one of these a side waits for ever; a lone server makes no messages.
fn missing_stage(stream: &PacketStream, side: Option<PathSide>) -> Option<String> {
    let needed = [
        ("dispatch_tx", PathStage::DispatchTx),
        ("dispatch_rx", PathStage::DispatchRx),
        ("application_rx", PathStage::ApplicationRx),
        ("application_tx", PathStage::ApplicationTx),
    ];
    let count = if side == Some(PathSide::Server) { 3 } else { 4 };
    let mut needed = needed.iter().take(count);
    let missing = needed.find(|(_, stage)| !stream.stages.contains(stage))?;
    Some(format!(
        "stream {} has no stage `{}`, without which nothing flows",
        stream.id, missing.0
    ))
}

/// Batches that never fill, or for which there are never enough buffers.
fn batches(work: &PacketPathWorkload) -> Vec<String> {
    let (request, response) = (work.request_bytes, work.whole_response());
    let sides = [
        ("application_tx", work.batches.application_tx, request),
        ("application_rx", work.batches.application_rx, response),
    ];
    let too_many = |(name, batch, bytes): (&str, u32, Bytes)| {
        let (packets, most) = (work.packets(bytes), work.pool_buffers);
        (u64::from(batch) * u64::from(packets) > u64::from(most)).then(|| {
            format!(
                "`batches.{name}`: {batch} messages of {packets} packets are more than the {most} buffers of a pool"
            )
        })
    };
    sides.into_iter().filter_map(too_many).collect()
}

/// The part of a placement that cannot be had.
fn placement(placement: &Placement) -> Option<Failure> {
    let known = Placement {
        nodes: placement.nodes.clone(),
        ..Placement::default()
    };
    if *placement != known {
        let why =
            "a packet path takes `placement.nodes` alone: each thread has the CPU of its number";
        return Some(failure("plan", None, why));
    }
    let nodes = Topology::of_this_machine().nodes.iter();
    let mut there: Vec<u32> = nodes.map(|node| node.id).collect();
    if there.is_empty() {
        there.push(0);
    }
    let mut asked = placement.nodes.iter().flatten();
    let absent = asked.find(|node| !there.contains(node))?;
    let list: Vec<String> = there.iter().map(ToString::to_string).collect();
    let why = format!(
        "there is no memory node {absent} (there is {})",
        list.join(", ")
    );
    Some(failure("missing", None, why))
}
