//! Options of the engines that touch no file: the network, the processors, other programs.

use super::MAX_32;
use super::needs;
use super::record::{Category, OptionRecord, Scope, option, setting};

const NET: &[&str] = &["net", "netsplice"];
const NET_OR_OTHERS: &[&str] = &["net", "netsplice", "rdma", "libhdfs"];
const CPU: &[&str] = &["cpuio"];
const EXEC: &[&str] = &["exec"];

/// An option of the job that only one engine's jobs have.
const fn of_cpu(name: &'static str, short: &'static str) -> OptionRecord {
    let record = option(name, short);
    OptionRecord {
        category: Category::Engine,
        scope: Scope::Engines(CPU),
        ..record
    }
}

pub(super) static RECORDS: &[OptionRecord] = &[
    setting(
        "hostname",
        "host",
        NET_OR_OTHERS,
        "Name or address of the peer; the path of a Unix socket",
    ),
    setting(
        "port",
        "port",
        NET_OR_OTHERS,
        "Port; each further clone takes the next",
    ),
    setting(
        "protocol",
        "protocol",
        NET,
        "tcp, tcpv6, udp, udpv6 or unix",
    )
    .aliases(&["proto"])
    .default("tcp"),
    setting("listen", "listen", NET, "Wait for the peer's connection").switch(),
    setting(
        "nodelay",
        "no_delay",
        NET,
        "Send small TCP segments at once",
    )
    .needs(needs::TCP),
    setting(
        "pingpong",
        "ping_pong",
        NET,
        "Each block comes back before the next is sent",
    )
    .switch(),
    setting(
        "interface",
        "interface",
        NET,
        "Address of the interface for multicast",
    )
    .needs(needs::UDP),
    setting("ttl", "ttl", NET, "Hops that a multicast datagram may take")
        .needs(needs::UDP)
        .default("1"),
    setting("window_size", "window_bytes", NET, "Buffers of the socket"),
    setting("mss", "segment_bytes", NET, "Largest TCP segment").needs(needs::TCP),
    of_cpu("cpuload", "Busy share of the time in percent")
        .long("Required. A round of cpuchunks is followed by a pause that makes it this share.")
        .integer(0, MAX_32, |d, n| d.cpu_load = n.min(100)),
    setting(
        "cpuchunks",
        "round_us",
        CPU,
        "Microseconds of work in a round",
    )
    .default("50000"),
    setting("cpumode", "work", CPU, "What fills a round: noop or qsort").default("noop"),
    of_cpu("exit_on_io_done", "End when every other job has ended")
        .bool(|d, on| d.until_other_jobs_end = on),
    setting("program", "program", EXEC, "Program to run"),
    setting(
        "arguments",
        "arguments",
        EXEC,
        "Its arguments; %r is the runtime in seconds, %n the job",
    ),
    setting(
        "grace_time",
        "grace_s",
        EXEC,
        "Seconds between asking the program to end and killing it",
    )
    .default("1"),
    setting(
        "std_redirect",
        "redirect",
        EXEC,
        "The output goes to JOB.stdout and JOB.stderr",
    )
    .default("1"),
];
