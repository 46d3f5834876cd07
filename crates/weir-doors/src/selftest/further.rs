//! Lines of weir below a block: always what spoils its figures, the rest where it was asked for.
//!
//! In: what a master measured, how it is shown. Out: lines. Spec: RPC self-test, 4, 7 and 12. Not here:
//! the block itself (`output`).

use weir_schema::{
    ErrorCode, Job, RpcEndpointResult, RpcMaster, RpcOutcome, RpcServerUse, RpcTrouble, RpcVerify,
    RpcWorkload,
};
use weir_stats::Histogram;
use weir_units::{Nanos, parse};

use super::output::{Scale, bandwidth, ordinal, percentile, percentile_of};
use super::{SelfTestOptions, TimeUnit};

/// Percentiles of further lines where no list names others.
const PERCENTILES: [f64; 5] = [90.0, 95.0, 99.0, 99.9, 99.99];
/// The same for the two latencies of an open loop.
const BOTH: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
/// Lines of servers; the result has them all.
const MOST_SERVERS: usize = 16;

/// Every line below the block of a master.
pub(super) fn lines(
    job: &Job,
    work: &RpcWorkload,
    master: &RpcMaster,
    options: &SelfTestOptions,
) -> Vec<String> {
    let mut lines = Vec::new();
    for (label, count) in [
        ("Not sent", master.not_sent),
        ("Wrong payloads", master.mismatches),
        ("Late replies", master.late_replies),
        ("Requests that waited for a buffer", master.buffer_waits),
    ] {
        if count > 0 {
            lines.push(format!("{label}: {count}"));
        }
    }
    if let (Some(asked), Some(made)) = (work.connections, master.connections) {
        lines.push(format!("Connections: {made} of {asked}"));
    }
    let troubles = master.troubles.iter();
    lines.extend(troubles.map(|one| trouble_line(work, master, one)));
    lines.extend(early_end(work, master));
    lines.extend(slow_endpoints(master, options));
    lines.extend(first_lines(master, options));
    if master.overload {
        lines.push("The rate was not kept".to_owned());
    }
    lines.extend(loop_line(work, options));
    lines.extend(both_latencies(master, options));
    lines.extend(client_line(master, options));
    lines.extend(
        master
            .bulk_path
            .as_ref()
            .map(|path| format!("Bulk path: {path}")),
    );
    lines.extend(percentile_lines(master, options));
    lines.extend(verify_line(work, master, options));
    let is_limited = work.credits_per_rank > 0 || work.quota > 0 || master.credits.is_some();
    if let Some(credits) = master.credits {
        lines.push(format!(
            "A server allows no more RPCs at once than {credits}"
        ));
    }
    if is_limited || options.is_verbose {
        let mean = master.effective_in_flight;
        lines.extend(mean.map(|mean| format!("Effective in-flight: {mean:.2}")));
    }
    if is_limited {
        let time = master.credit_wait_ns.0 / 1000;
        lines.push(format!("Waits for credits: together {time} us"));
    }
    if options.is_verbose {
        lines.extend(verbose(master));
        lines.extend(threads_line(job, work, master));
    }
    lines
}

/// Beginning of the lines of latencies, where they have more than those of the older program.
fn loop_line(work: &RpcWorkload, options: &SelfTestOptions) -> Option<String> {
    let is_asked = options.is_verbose || !options.percentiles.is_empty();
    let line = if work.load.pacing.schedule.is_some() {
        "Open loop: latencies count from when an RPC was due"
    } else {
        "Closed loop: an RPC is sent when another has ended, and its latency counts from then"
    };
    is_asked.then(|| line.to_owned())
}

/// True if the threads of this command are pinned: they are where each has one of its CPUs.
fn threads_line(job: &Job, work: &RpcWorkload, master: &RpcMaster) -> Option<String> {
    let own = master
        .interface
        .as_ref()
        .filter(|_| work.masters.is_empty())?;
    let threads = job.clones.max(1);
    let count = parse::cpus(&own.client_cpus).ok()?.len();
    let how = if count == threads as usize {
        "each pinned to a CPU".to_owned()
    } else {
        format!("not pinned: they may move among {count} CPUs (taskset limits them)")
    };
    Some(format!("Threads: {threads}, {how}"))
}

/// Error of RPCs that are on their way when their connection is lost.
const UNREACHED: &str = "DER_UNREACH";

/// Ends of connections: which, when, why, and the remedy.
fn trouble_line(work: &RpcWorkload, master: &RpcMaster, one: &RpcTrouble) -> String {
    let RpcTrouble {
        endpoint,
        after_ns,
        code,
        cause,
        count,
    } = one;
    let Some(after) = after_ns else {
        return format!("Refused: {count}, the first of {endpoint}: {cause} ({code})");
    };
    // Whatever ends a connection, its RPCs have reached nobody.
    let unreached: ErrorCode = UNREACHED.into();
    let endpoints = master.endpoints.iter();
    let failed: u64 = endpoints.filter_map(|one| one.failed.get(&unreached)).sum();
    let why = if *code == unreached {
        String::new()
    } else {
        format!(" ({code})")
    };
    let others = match count {
        1 => String::new(),
        _ => format!(", the first of {count}"),
    };
    let remedy = match work.reconnect_ns {
        Some(_) => "",
        None => " (--reconnect S looks for a server that comes back)",
    };
    let when = match *after {
        Nanos::ZERO => "before the first RPC that counts".to_owned(),
        after => format!("after {:.3} s", after.as_secs_f64()),
    };
    format!(
        "Connection to {endpoint} lost {when}{others}: {cause}{why}; {failed} RPCs failed with \
         {UNREACHED}{remedy}"
    )
}

/// A test whose time was not up when nobody was left to call.
fn early_end(work: &RpcWorkload, master: &RpcMaster) -> Option<String> {
    let asked = work.load.bounds.runtime_ns?;
    let was_lost = master.troubles.iter().any(|one| one.after_ns.is_some());
    let took = master.duration_ns;
    // The last tenth may have been its last RPCs'.
    let is_early = was_lost && took < Nanos(asked.0 / 10 * 9);
    is_early.then(|| {
        let (took, asked) = (took.as_secs_f64(), asked.as_secs_f64());
        format!("Ended after {took:.3} s of {asked} s")
    })
}

/// In an open loop an RPC may wait before it is sent: latency from when it was due, and that of the server.
fn both_latencies(master: &RpcMaster, options: &SelfTestOptions) -> Vec<String> {
    let (Some(service), Some(figures)) = (&master.service, &master.figures) else {
        return Vec::new();
    };
    let scale = Scale::of(options.unit, figures);
    let list = match options.percentiles.as_slice() {
        [] => &BOTH,
        list => list,
    };
    let line = |what: &str, of: &Histogram| {
        let at = |percent: &f64| {
            let time = percentile_of(of, *percent)?;
            Some(format!("{} {}", ordinal(*percent), scale.text(time)))
        };
        let longest = of
            .max()
            .map(|time| format!("max {}", scale.text(Nanos(time))));
        let all: Vec<String> = list.iter().filter_map(at).chain(longest).collect();
        format!("{what} ({}): {}", scale.unit(), all.join(", "))
    };
    vec![
        line("Latency, from when due", &master.latency),
        line("Service, from when sent", service),
    ]
}

/// True if the figures are those of the client.
fn client_line(master: &RpcMaster, options: &SelfTestOptions) -> Option<String> {
    let share = 100.0 * master.busy?;
    if master.client_bound {
        return Some(format!(
            "Client-bound: its threads worked {share:.0} % of the time (more of them: --threads)"
        ));
    }
    options
        .is_verbose
        .then(|| format!("Client at work: {share:.0} % of the time"))
}

/// Cost of checking payloads, where every one was checked.
fn verify_line(
    work: &RpcWorkload,
    master: &RpcMaster,
    options: &SelfTestOptions,
) -> Option<String> {
    let is_asked = matches!(work.verify, RpcVerify::Checksum | RpcVerify::Full);
    let is_shown = (is_asked || options.is_verbose) && master.verify_ns > Nanos::ZERO;
    is_shown.then(|| {
        let (count, time) = (master.verified, master.verify_ns.0 / 1000);
        format!("Payloads checked: {count}; checking took the client {time} us")
    })
}

/// Endpoints that stand out by their latency.
fn slow_endpoints(master: &RpcMaster, options: &SelfTestOptions) -> Option<String> {
    let scale = Scale::of(options.unit, master.figures.as_ref()?);
    let slow = master.endpoints.iter().filter(|one| one.is_slow);
    let slow: Vec<String> = slow
        .filter_map(|one| Some(format!("{} - {}", one.endpoint, scale.text(one.median_ns?))))
        .collect();
    (!slow.is_empty()).then(|| format!("Slow endpoints ({}): {}", scale.unit(), slow.join(", ")))
}

/// The first RPC of each endpoint, where it was timed.
fn first_lines(master: &RpcMaster, options: &SelfTestOptions) -> Vec<String> {
    let scale = match options.unit {
        TimeUnit::Nanos => Scale::Nanos,
        TimeUnit::Micros | TimeUnit::Auto => Scale::FineMicros,
    };
    let text = |time: Option<Nanos>| time.map_or_else(|| "NA".to_owned(), |time| scale.text(time));
    let line = |one: &RpcEndpointResult| {
        let first = one.first?;
        let (connect, rpc) = (text(first.connect_ns), text(first.rpc_ns));
        let (at, unit) = (one.endpoint, scale.unit());
        Some(format!(
            "First of {at} ({unit}): connection {connect}, RPC {rpc}"
        ))
    };
    master.endpoints.iter().filter_map(line).collect()
}

fn percentile_lines(master: &RpcMaster, options: &SelfTestOptions) -> Vec<String> {
    let list: &[f64] = match (options.percentiles.as_slice(), options.is_verbose) {
        ([], true) => &PERCENTILES,
        (list, _) => list,
    };
    let Some(figures) = &master.figures else {
        return Vec::new();
    };
    let scale = Scale::of(options.unit, figures);
    // As wide as `25th  %` of the block, and a blank before each sign.
    let longest = list.iter().map(|percent| ordinal(*percent).len()).max();
    let width = longest.map_or(0, |longest| longest + 1).max(6);
    let one = |percent: &f64| {
        let time = scale.text(percentile(master, *percent)?);
        let label = ordinal(*percent);
        Some(format!("{label:<width$}%: {time} {}", scale.unit()))
    };
    list.iter().filter_map(one).collect()
}

fn verbose(master: &RpcMaster) -> Vec<String> {
    let mut lines = Vec::new();
    if !master.transport.is_empty() {
        lines.push(format!("Transport: {}", master.transport));
    }
    if let Some(interface) = &master.interface {
        let node = |node: Option<u32>| node.map_or_else(|| "?".to_owned(), |n| n.to_string());
        lines.push(format!(
            "Interface: {} (node {}), CPUs {} (node {})",
            interface.name,
            node(interface.node),
            interface.client_cpus,
            node(interface.client_node)
        ));
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "times and counts far below 2^53"
    )]
    let cpu = (master.cpu.user_ns.0 + master.cpu.system_ns.0) as f64 / 1000.0;
    #[expect(
        clippy::cast_precision_loss,
        reason = "times and counts far below 2^53"
    )]
    let rpcs = (master.succeeded + master.failed) as f64;
    if cpu > 0.0 && rpcs > 0.0 {
        lines.push(format!("CPU (us per RPC): {:.3}", cpu / rpcs));
    }
    lines.extend(
        master
            .retransmits
            .map(|count| format!("Retransmits: {count}")),
    );
    let bytes = master.bytes_on_wire;
    lines.extend(bytes.map(|bytes| format!("Bytes on the wire: {}", bytes.0)));
    lines.extend(master.servers.iter().take(MOST_SERVERS).map(of_server));
    lines
}

fn of_server(one: &RpcServerUse) -> String {
    let RpcServerUse { endpoint, cpu } = one;
    format!(
        "Server {endpoint} CPU (us): {} user, {} system; {} switches, {} forced",
        cpu.user_ns.0 / 1000,
        cpu.system_ns.0 / 1000,
        cpu.voluntary_switches,
        cpu.involuntary_switches
    )
}

/// All masters at once: the sum of their rates while all were at work, and for how much of their time
/// that was.
pub(super) fn together(
    out: &mut String,
    work: &RpcWorkload,
    done: &RpcOutcome,
    options: &SelfTestOptions,
) {
    let good = done.masters.iter().filter(|one| one.failure.is_none());
    let (good, all) = (good.count(), done.masters.len());
    match all - good {
        0 => push!(out, "Aggregate of {good} masters\n"),
        failed => push!(
            out,
            "Aggregate of {good} of {all} masters: {failed} failed\n"
        ),
    }
    if done.masters.iter().all(|one| one.span.is_none()) {
        out.push_str(
            "\t+ Samples do not say when each was at work, and so not what they did together\n\n",
        );
        return;
    }
    let Some(together) = done.together() else {
        out.push_str("\t+ They were never all at work at the same time\n\n");
        return;
    };
    let (label, bandwidth) = bandwidth(work, together.rate, options);
    push!(out, "\t+ RPC Bandwidth ({label}): {bandwidth:.2}\n");
    push!(out, "\t+ RPC Throughput (RPCs/sec): {:.0}\n", together.rate);
    let share = 100.0 * together.share;
    push!(out, "\t+ At work at the same time: {share:.0} %\n\n");
}

#[cfg(test)]
mod tests {
    use weir_schema::RpcEndpoint;

    use super::*;

    #[test]
    fn rpcs_of_a_lost_connection_are_counted_whatever_ended_it() {
        let endpoint = RpcEndpoint { rank: 1, tag: 0 };
        let mut one = RpcEndpointResult::new(endpoint);
        one.failed.insert(UNREACHED.into(), 7);
        let mut master = RpcMaster::new(endpoint, "tcp");
        master.endpoints.push(one);
        let line = |code: &str, after_ms| {
            let trouble = RpcTrouble {
                endpoint,
                after_ns: Some(Nanos::from_millis(after_ms)),
                code: code.into(),
                cause: "half a frame".to_owned(),
                count: 1,
            };
            trouble_line(&RpcWorkload::default(), &master, &trouble)
        };
        let end =
            "7 RPCs failed with DER_UNREACH (--reconnect S looks for a server that comes back)";
        let begin = "Connection to 1:0 lost after 0.001 s: half a frame";
        assert_eq!(line(UNREACHED, 1), format!("{begin}; {end}"));
        assert_eq!(line("DER_PROTO", 1), format!("{begin} (DER_PROTO); {end}"));
        let begin = "Connection to 1:0 lost before the first RPC that counts: half a frame";
        assert_eq!(line(UNREACHED, 0), format!("{begin}; {end}"));
    }
}
