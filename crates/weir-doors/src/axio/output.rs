//! The tables: one for each iteration, with the lines before it.
//!
//! In: a result with a packet path. Out: text in the layout of the Axio emulator; weir's own lines at the
//! end. All times are in microseconds; rates in millions of packets per second.

use weir_schema::{
    JobResult, PacketPathOutcome, PacketPathWorkload, PathIteration, PathSide, PathThread, Plan,
    PoolPages, RequestSizeCount, RunResult, StageFigures,
};
use weir_stats::Histogram;
use weir_units::Nanos;

use super::lone_stage;
use super::plan::tunable_lines;
use super::rate_lines::{latency_line, rate_line};
use super::traffic::frame_of_request;
use super::work_of;

const DASHES: usize = 207;
/// Columns of the header.
const COLUMNS: [&str; 10] = [
    "Perf Statistics",
    "Thpl. (Mpps)",
    "Avg. [/P]",
    "Avg. Stall [/P]",
    "Max Stall. [/B]",
    "Min Stall. [/B]",
    "Avg Stall. [/B]",
    "Max Coml. [/B]",
    "Min Coml. [/B]",
    "Avg Coml. [/B]",
];
/// Value printed where there is no shortest time.
const NO_SHORTEST: f64 = 9999.0;

/// Text before the first table; empty where the plan has no packet path.
pub fn head(plan: &Plan) -> String {
    let Some(work) = work_of(plan) else {
        return String::new();
    };
    let batches = &work.batches;
    let counts = [
        ("kAppCoreNum", applications(work)),
        ("kDispQueueNum", dispatchers(work)),
        ("kAppTxMsgBatchSize", batches.application_tx),
        ("kAppRxMsgBatchSize", batches.application_rx),
        ("kDispTxBatchSize", batches.dispatch_tx),
        ("kDispRxBatchSize", batches.dispatch_rx),
        ("kNICTxPostSize", batches.link_tx),
        ("kNICRxPostSize", batches.link_rx),
    ];
    let mut out = format!("Load config file: {}\n", plan.name);
    out += &tunable_lines(&counts.into());
    push!(out, "Total launched {} threads!\n", work.thread_count());
    if let Some(stage) = work.only_stage {
        push!(
            out,
            "Stage {} alone, without link and other side\n",
            stage.row()
        );
        return out;
    }
    for stream in &work.streams {
        for group in &stream.groups {
            for thread in &group.threads {
                push!(
                    out,
                    "Workspace {thread} is assigned to workload {}, dispatcher {}\n",
                    stream.id,
                    group.dispatcher
                );
            }
        }
    }
    out
}

fn applications(work: &PacketPathWorkload) -> u32 {
    let groups = work.streams.iter().flat_map(|stream| &stream.groups);
    count(groups.map(|group| group.threads.len()).sum())
}

fn dispatchers(work: &PacketPathWorkload) -> u32 {
    count(work.streams.iter().map(|stream| stream.groups.len()).sum())
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Packet path of a result, where a job has one.
pub fn measured(result: &RunResult) -> Option<&PacketPathOutcome> {
    result.jobs().find_map(JobResult::packet_path)
}

/// Table of an iteration with the lines before it, and on request that of the server.
pub fn table(iteration: &PathIteration, work: &PacketPathWorkload, has_server: bool) -> String {
    if let Some(stage) = work.only_stage {
        return lone_stage::table(iteration, stage);
    }
    if work.side == Some(PathSide::Server) {
        return side(iteration, work, PathSide::Server);
    }
    let mut out = side(iteration, work, PathSide::Client);
    if has_server {
        out += "Server\n";
        out += &side(iteration, work, PathSide::Server);
    }
    out
}

fn side(iteration: &PathIteration, work: &PacketPathWorkload, side: PathSide) -> String {
    let threads = iteration.threads.iter().filter(|one| one.side == side);
    let threads: Vec<&PathThread> = threads.collect();
    let mut out = String::new();
    for thread in &threads {
        workspace_lines(&mut out, thread, work);
    }
    out += "Workspace freqs:";
    for thread in &threads {
        push!(out, " {:.2}", passes_per_us(thread));
    }
    out += "\n";
    if side == PathSide::Client {
        let latency = latency(&threads);
        let at = |percent: f64| percentile_us(&latency, percent);
        push!(
            out,
            "P50: {:.2}, P99: {:.2}, P99.9: {:.2}\n",
            at(50.0),
            at(99.0),
            at(99.9)
        );
    }
    out + &rows(&threads, side, work)
}

/// Passes of a thread per microsecond.
fn passes_per_us(thread: &PathThread) -> f64 {
    quotient(thread.passes, thread.span_ns.0) * 1e3
}

fn workspace_lines(out: &mut String, thread: &PathThread, work: &PacketPathWorkload) {
    let id = thread.thread;
    let used = thread.pool_use.unwrap_or(0.0);
    let rx = &thread.application_rx;
    push!(
        out,
        "[Workspace {id}] Apply mbuf stalls: {}, dispatcher mbuf usage: {:.2}, mbuf reuse interval: {:.6}, App tx \
         drop: {}, Disp rx drop: {} App rx avg num: {:.2}\n",
        thread.rounds_without_buffers,
        used / f64::from(work.pool_buffers.max(1)),
        0.0,
        thread.application_drops,
        thread.dispatch_drops,
        quotient(rx.packets, rx.polls.saturating_sub(rx.empty_polls))
    );
    let rate = |stage: &StageFigures| stage.million_per_s(thread.span_ns);
    let mean = |stage: &StageFigures| stage.mean_us().unwrap_or(0.0);
    let directions = [
        (
            "TX",
            &thread.application_tx,
            &thread.dispatch_tx,
            &thread.link_tx,
        ),
        (
            "RX",
            &thread.application_rx,
            &thread.dispatch_rx,
            &thread.link_rx,
        ),
    ];
    for (name, app, dispatch, link) in directions {
        push!(
            out,
            "[Workspace {id}] {name} Breakdown: throughput(App{:.3}, Disp{:.3}, NIC{:.3}), latency({:.3}, {:.3}, \
             {:.3})\n",
            rate(app),
            rate(dispatch),
            rate(link),
            mean(app),
            mean(dispatch),
            mean(link)
        );
    }
}

pub(super) fn latency(threads: &[&PathThread]) -> Histogram {
    let mut all = Histogram::default();
    for histogram in threads.iter().filter_map(|thread| thread.latency.as_ref()) {
        // All are made alike.
        let _ = all.merge(histogram);
    }
    all
}

pub(super) fn percentile_us(latency: &Histogram, percent: f64) -> f64 {
    let value = latency.percentile(percent);
    value.map_or(0.0, |value| quotient(value, 1000))
}

/// The rows of a table, between dashes.
fn rows(threads: &[&PathThread], side: PathSide, work: &PacketPathWorkload) -> String {
    let mut out = dashes() + &header() + &dashes();
    let rate = |of: fn(&PathThread) -> &StageFigures| -> f64 {
        sum(threads.iter().map(|one| of(one).million_per_s(one.span_ns)))
    };
    let end = match side {
        PathSide::Client => rate(|one| &one.dispatch_rx),
        // Its dispatchers send back themselves.
        PathSide::Server if work.echoes() => rate(|one| &one.link_tx),
        PathSide::Server => rate(|one| &one.dispatch_tx),
    };
    row(&mut out, "End-to-end", &[end, inverse(end)]);
    let apps: Vec<&PathThread> = threads
        .iter()
        .filter(|one| one.is_application)
        .copied()
        .collect();
    application_row(
        &mut out,
        "app_tx",
        &apps,
        |one| &one.application_tx,
        Some(work),
    );
    application_row(&mut out, "app_rx", &apps, |one| &one.application_rx, None);
    let all: Vec<&PathThread> = threads
        .iter()
        .filter(|one| one.is_dispatcher)
        .copied()
        .collect();
    for (name, of) in [
        (
            "disp_tx",
            (|one| &one.dispatch_tx) as fn(&PathThread) -> &StageFigures,
        ),
        ("disp_rx", |one| &one.dispatch_rx),
    ] {
        let avg = mean(&all, |one| of(one).mean_us());
        let stall = mean(&all, |one| of(one).mean_stall_us());
        row(&mut out, name, &[rate(of), avg, stall]);
    }
    let sent = mean(&all, |one| one.link_tx.mean_us());
    nic_row(&mut out, "nic_tx", rate(|one| &one.link_tx), Some(sent));
    let has_gap = all.iter().any(|one| one.link_rx.timed_packets > 0);
    let gap = mean(&all, |one| one.link_rx.mean_us());
    nic_row(
        &mut out,
        "nic_rx",
        rate(|one| &one.link_rx),
        has_gap.then_some(gap),
    );
    out + &dashes() + "\n"
}

pub(super) fn dashes() -> String {
    "-".repeat(DASHES) + "\n"
}

/// The names of columns.
pub(super) fn header() -> String {
    let names = COLUMNS.iter().map(|column| format!("{column:<20}"));
    names.collect::<String>() + "\n"
}

pub(super) fn row(out: &mut String, name: &str, cells: &[f64]) {
    push!(out, "{name:<20}");
    for cell in cells {
        push!(out, "{:<20}", format!("{cell:.3}"));
    }
    out.push('\n');
}

fn nic_row(out: &mut String, name: &str, rate: f64, mean: Option<f64>) {
    let mean = mean.map_or_else(|| "n/a".to_owned(), |mean| format!("{mean:.3}"));
    push!(out, "{name:<20}{:<20}{mean:<15}\n", format!("{rate:.3}"));
}

/// The mean over threads, those without anything included.
fn mean(threads: &[&PathThread], of: impl Fn(&PathThread) -> Option<f64>) -> f64 {
    sum(threads.iter().filter_map(|one| of(one))) / f64::from(count(threads.len()).max(1))
}

/// A row with columns of batches, and for a sender with the use of its pool.
fn application_row(
    out: &mut String,
    name: &str,
    threads: &[&PathThread],
    of: impl Fn(&PathThread) -> &StageFigures,
    sender: Option<&PacketPathWorkload>,
) {
    let us = |nanos: Nanos| quotient(nanos.0, 1000);
    let most = |pick: fn(&StageFigures) -> Option<Nanos>| {
        let all = threads.iter().filter_map(|one| pick(of(one)));
        all.max().map_or(0.0, us)
    };
    let least = |pick: fn(&StageFigures) -> Option<Nanos>| {
        let all = threads.iter().filter_map(|one| pick(of(one)));
        all.min().map_or(NO_SHORTEST, us)
    };
    let is_sender = sender.is_some();
    let stall = mean(threads, |one| of(one).mean_stall_us());
    let per_stall = mean(threads, |one| {
        let stage = of(one);
        (stage.stalls > 0).then(|| quotient(stage.stall_ns.0, stage.stalls) / 1e3)
    });
    let rate = sum(threads.iter().map(|one| of(one).million_per_s(one.span_ns)));
    let stall_cell = match sender {
        None => format!("{per_stall:.3}"),
        Some(work) => {
            let used = mean(threads, |one| one.pool_use) / f64::from(work.pool_buffers.max(1));
            format!("{per_stall:.6}({used:.6})")
        }
    };
    let per_call = mean(threads, |one| {
        let stage = of(one);
        (stage.calls > 0).then(|| quotient(stage.calls_ns.0, stage.calls) / 1e3)
    });
    push!(out, "{name:<20}");
    let mut cells = vec![
        format!("{rate:.3}"),
        format!("{:.3}", mean(threads, |one| of(one).mean_us())),
        format!("{:.3}", if is_sender { stall } else { 0.0 }),
        format!("{:.3}", most(|stage| stage.longest_stall_ns)),
        format!("{:.3}", least(|stage| stage.shortest_stall_ns)),
        stall_cell,
    ];
    cells.extend([
        format!("{:.3}", most(|stage| stage.longest_call_ns)),
        format!("{:.3}", least(|stage| stage.shortest_call_ns)),
        format!("{per_call:.3}"),
    ]);
    for cell in cells {
        push!(out, "{cell:<20}");
    }
    out.push('\n');
}

/// Text after the tables: counts of both sides, and the cost of measuring.
pub fn ending(done: &PacketPathOutcome, work: &PacketPathWorkload) -> String {
    let both = |of: fn(&PathThread) -> u64| {
        done.sum(PathSide::Client, of) + done.sum(PathSide::Server, of)
    };
    let mut out = format!(
        "messages: lost {}, late {}, incomplete {}, wrong {}\n\
         packets: misrouted {}, nobody's {}, App tx drop {}, Disp rx drop {}, dropped on purpose {}\n",
        both(|one| one.lost),
        both(|one| one.late),
        both(|one| one.incomplete),
        both(|one| one.wrong),
        both(|one| one.misrouted),
        both(|one| one.strays),
        both(|one| one.application_drops),
        both(|one| one.dispatch_drops),
        both(|one| one.dropped_on_purpose),
    );
    let threads: Vec<&PathThread> = done
        .iterations
        .iter()
        .flat_map(|one| &one.threads)
        .collect();
    let link_drops = threads.iter().filter_map(|one| one.link_drops);
    if let Some(drops) = link_drops.reduce(|sum, one| sum + one) {
        push!(out, "packets that the kernel had no room for: {drops}\n");
    }
    out += &lone_stage::ending(done);
    let sink_drops = both(|one| one.sink_drops);
    if work.sink_packets_per_s > 0 {
        push!(out, "packets that the sink did not take: {sink_drops}\n");
    }
    out += &buffers_line(done, work);
    out += &size_lines(&threads);
    out += &rate_line(done, work);
    if !work.is_answered() && work.only_stage.is_none() {
        out += UNANSWERED;
    }
    out += &latency_line(&threads, done, work);
    if let Some(in_use) = done.buffers_in_use {
        push!(out, "pool in use {in_use}\n");
    }
    if let Some(pages) = done.pool_pages {
        let pages = match pages {
            PoolPages::TwoMiB => "2 MiB",
            PoolPages::OneGiB => "1 GiB",
            PoolPages::Transparent | PoolPages::Auto => {
                "4 KiB, or 2 MiB where the kernel gives them"
            }
            PoolPages::Off => "4 KiB",
        };
        push!(out, "pages of pools: {pages}\n");
    }
    let timing = lone_stage::timing(done, work);
    let idle = format!("{:?}", done.idle).to_ascii_lowercase();
    push!(
        out,
        "stage timing: {timing}, a read of the clock takes {:.1} ns; idle: {idle}\n",
        done.clock_read_ns
    );
    out
}

/// Line with the number of rounds in which a pool had too few free buffers, and the remedy.
fn buffers_line(done: &PacketPathOutcome, work: &PacketPathWorkload) -> String {
    let [client, server] = [PathSide::Client, PathSide::Server]
        .map(|side| done.sum(side, |one| one.rounds_without_buffers));
    if client + server == 0 {
        return String::new();
    }
    format!(
        "rounds that found too few free buffers: client {client}, server {server} (each workspace has {}: \
         raise `pool`, or lower `inflight`)\n",
        work.pool_buffers
    )
}

/// Messages begun of each size, where there are several sizes.
fn size_lines(threads: &[&PathThread]) -> String {
    let mut sizes: Vec<RequestSizeCount> = Vec::new();
    for count in threads.iter().flat_map(|thread| &thread.request_sizes) {
        match sizes
            .iter_mut()
            .find(|one| one.request_bytes == count.request_bytes)
        {
            Some(one) => one.messages += count.messages,
            None => sizes.push(*count),
        }
    }
    let size = |one: &RequestSizeCount| {
        format!(
            "{} of {}",
            one.messages,
            frame_of_request(one.request_bytes)
        )
    };
    let sizes: Vec<String> = sizes.iter().map(size).collect();
    if sizes.is_empty() {
        return String::new();
    }
    format!(
        "frames of requests, with the frame check: {}\n",
        sizes.join(", ")
    )
}

/// Note on the empty first row and the missing latency.
const UNANSWERED: &str =
    "End-to-end is 0: msg_handler Empty answers nothing (pkt_handler : Echo does)\n";

/// Sum that is 0 for no values, where the library returns -0.
fn sum(all: impl Iterator<Item = f64>) -> f64 {
    all.fold(0.0, |sum, one| sum + one)
}

pub(super) fn inverse(rate: f64) -> f64 {
    if rate > 0.0 { 1.0 / rate } else { 0.0 }
}

#[expect(clippy::cast_precision_loss, reason = "figures for the eye")]
pub(super) fn quotient(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    part as f64 / whole as f64
}
