//! The flags of `weir selftest`: those of the older program, then weir's own.

use super::endpoints::endpoint_set;
use super::sizes::message_pairs;
use super::values::{self, MOST};
use super::{rate_search, sweep};
use crate::flags::Flag;
use crate::takes::Takes;

/// Heading of the flags of the older program, whose names may be cut short.
pub(super) const REFERENCE: &str = "Options of self_test, which may be cut short";
const LOAD: &str = "Load";
const SERVERS: &str = "Servers";
const OUTPUT: &str = "Output";
/// Results are compared by a door of their own.
const COMPARE: &str = "results are compared once they are stored: --repeat 10 --store-result B.json, then \
                       `weir compare A.json B.json --fail-if 'rate<-5%,p99>5%'`";

const ENDPOINTS: Takes = Takes::Grammar(|text| {
    let read = endpoint_set(text).map(drop);
    read.map_err(|wrong| wrong.sentence(text))
});

/// All of them, in the order of the help text.
pub const FLAGS: &[Flag] = &[
    Flag::with_value(
        "group-name",
        "NAME",
        REFERENCE,
        "Group of servers to test against",
    )
    .letter('g')
    .takes(values::GROUP)
    .default("daos_server"),
    Flag::with_value("endpoint", "RANKS:TAGS", REFERENCE, "Who is asked (default 0:0)")
        .letter('e')
        .takes(ENDPOINTS)
        .repeats()
        .long(
            "Lists and ranges, 1-3,5:0-1; all: every one of the group; !2: not this one. Without it \
             0:2 with -u, else 0:0.",
        ),
    Flag::with_value(
        "message-sizes",
        "LIST",
        REFERENCE,
        "Pairs of sizes sent and sent back",
    )
    .letter('s')
    .takes(Takes::Grammar(|text| {
        let read = message_pairs(text).map(drop);
        read.map_err(|wrong| wrong.sentence(text))
    }))
    .default("0 0,0 b1048578,b1048578 0")
    .long("(0 0) (b1m 0): letters e empty, i in the message, b bulk; k, m and g count by 1024."),
    Flag::with_value(
        "master-endpoint",
        "RANKS:TAGS",
        REFERENCE,
        "Who asks, in place of this command",
    )
    .letter('m')
    .takes(ENDPOINTS)
    .repeats(),
    Flag::with_value(
        "repetitions-per-size",
        "N",
        REFERENCE,
        "RPCs per endpoint and pair of sizes",
    )
    .letter('r')
    .range(1, MOST)
    .default("10000"),
    Flag::with_value(
        "max-inflight-rpcs",
        "N",
        REFERENCE,
        "RPCs at once of a master, over all endpoints",
    )
    .letter('i')
    .range(1, MOST)
    .default("16"),
    Flag::with_value(
        "align",
        "0..255",
        REFERENCE,
        "Low byte of the address of every buffer",
    )
    .letter('a')
    .range(0, 255),
    Flag::switch("Mbits", REFERENCE, "Bandwidth in 10^6 bit/s, not MiB/s")
        .letter('b')
        .prints(),
    Flag::switch(
        "randomize-endpoints",
        REFERENCE,
        "Put the endpoints into random order first",
    )
    .letter('q'),
    Flag::with_value(
        "path",
        "DIR",
        REFERENCE,
        "Directory of the table of the group",
    )
    .letter('p')
    .long("Without it WEIR_GROUP_DIR, CRT_ATTACH_INFO_PATH, /tmp; more places with -u."),
    Flag::switch(
        "use-daos-agent-env",
        REFERENCE,
        "Use the defaults of the site: look for the table in more places",
    )
    .letter('u'),
    Flag::switch("no-sync", REFERENCE, "Do not ask every rank before the run")
        .letter('n')
        .long("It is done without -u alone."),
    Flag::switch("help", REFERENCE, "This page").letter('h'),
    Flag::switch("singleton", REFERENCE, "Of older versions")
        .letter('t')
        .without_effect("ignored, has no meaning"),
    Flag::switch("nopmix", REFERENCE, "Of older versions")
        .without_effect("ignored, has no meaning"),
    // Load
    Flag::with_value("threads", "N", LOAD, "Threads of this command as master; absent: 1, or CRT_CTX_NUM")
        .range(1, 1024),
    Flag::with_value(
        "rate",
        "R",
        LOAD,
        "RPCs per second of a master, whatever the replies do",
    )
    .takes(Takes::Rate("RPCs"))
    .long("Latency counts from the time at which an RPC was due."),
    Flag::with_value("arrival", "WORD", LOAD, "Gaps between RPCs at a --rate")
        .choices(&["const", "poisson"])
        .needs(crate::given::FlagNeed::new(
            "with `--rate` or `--find-max`",
            |given| given.has("rate") || given.has("find-max"),
        )),
    Flag::with_value("duration", "T", LOAD, "So long per pair of sizes, 3 or 500ms").takes(Takes::Time),
    Flag::with_value(
        "warmup",
        "T|N",
        LOAD,
        "RPCs before anything counts: a number, or a time such as 1s; 0 for none",
    )
    .takes(Takes::Grammar(|text| values::warmup(text).map(drop)))
    .long(
        "Without it 1000, for half a second at least; no more than --repetitions-per-size asks for, and none \
         begins after a second. With -u, and by the name self_test, two for each of --max-inflight-rpcs. One \
         that fails counts as a failure and ends it.",
    ),
    Flag::with_value(
        "sweep-inflight",
        "LIST",
        LOAD,
        "One after another so many RPCs at once, 1,2,4,8; a table, and its knee",
    )
    .takes(Takes::Grammar(|text| sweep::depths(text).map(drop))),
    Flag::with_value("spread", "WORD", LOAD, "Which endpoint is next")
        .choices(&["rr", "least", "random", "per-endpoint"])
        .default("rr"),
    Flag::with_value(
        "inflight-per-endpoint",
        "N",
        LOAD,
        "RPCs at once to one endpoint",
    )
    .range(1, MOST),
    Flag::with_value("verify", "WORD", LOAD, "How payloads are checked")
        .choices(&["off", "first", "crc", "full"])
        .default("first"),
    Flag::with_value("bulk-mode", "WORD", LOAD, "How bulk data moves: tcp rendezvous or eager, shm and RMA fabrics rma")
        .choices(&["auto", "rma", "rendezvous", "eager"])
        .default("auto"),
    Flag::with_value("poll", "HOW", LOAD, "How threads wait: auto, busy, block, spin:US")
        .takes(values::POLL),
    Flag::switch(
        "matrix",
        LOAD,
        "Measure each pair of a master and an endpoint on its own",
    )
    .long("One after another; the text ends with a table of masters and endpoints."),
    Flag::with_value("timeout", "S", LOAD, "An RPC that takes longer has failed")
        .takes(Takes::Seconds)
        .long("Without it CRT_TIMEOUT, else 60."),
    Flag::with_value("seed", "N", LOAD, "Of random order and random spread").range(1, i64::MAX),
    Flag::with_value(
        "find-max",
        "pN<US",
        LOAD,
        "Highest --rate at which a percentile stays below a limit, as p99<200",
    )
    .takes(Takes::Grammar(|text| rate_search::goal(text, false).map(drop)))
    .long("Steps of a second each, unless --duration or the repetitions say otherwise."),
    Flag::switch(
        "first",
        LOAD,
        "Time the connection to each endpoint and the first RPC on it",
    ),
    Flag::with_value(
        "connect-storm",
        "N",
        LOAD,
        "N connections to the endpoints in turn, and one RPC on each",
    )
    .range(1, 65_536),
    Flag::with_value(
        "stall-timeout",
        "S",
        LOAD,
        "Say on standard error when no RPC has ended for so long",
    )
    .takes(Takes::Seconds)
    .default("5"),
    // Servers
    Flag::with_value(
        "transport",
        "WORD",
        SERVERS,
        "How data moves: tcp, shm, ofi+PROVIDER; null calls nobody",
    )
    .takes(Takes::Grammar(|text| values::transport_or_null(text).map(drop)))
    .long("Without it D_PROVIDER, else what the table of the group says."),
    Flag::with_value(
        "target",
        "URI,…",
        SERVERS,
        "Where the servers are, rank 0 first, in place of a table",
    )
    .takes(Takes::Grammar(|text| values::server_uris(text).map(drop))),
    Flag::with_value(
        "loopback",
        "TAGS",
        SERVERS,
        "Start a server for this run alone, of 3 tags if nothing is said",
    )
    .range(1, 65_536)
    .optional(),
    Flag::with_value(
        "attach-timeout",
        "S",
        SERVERS,
        "A server that takes longer to be reached is not there",
    )
    .takes(Takes::Seconds)
    .default("10"),
    Flag::with_value(
        "reconnect",
        "S",
        SERVERS,
        "Look so long for a server while there is no other",
    )
    .takes(Takes::Seconds),
    Flag::with_value("token-file", "FILE", SERVERS, "The secret that servers ask for"),
    // Output
    Flag::with_value("output", "FORM", OUTPUT, "What is printed")
        .choices(&["text", "json", "json-cart", "csv", "prom"])
        .default("text")
        .prints(),
    Flag::with_value("time-unit", "UNIT", OUTPUT, "Of latencies in the text")
        .choices(&["us", "ns", "auto"])
        .default("us")
        .prints(),
    Flag::switch("verbose", OUTPUT, "Further lines: percentiles, transport, CPU").prints(),
    Flag::with_value("replay", "FILE", OUTPUT, "Print the report of stored samples"),
    Flag::with_value("samples", "FILE", OUTPUT, "Store every RPC, for --replay"),
    Flag::switch("net-test", OUTPUT, "As `daos health net-test`")
        .refused("this build does not have that form; --output json-cart is its JSON"),
    Flag::with_value("baseline", "FILE", OUTPUT, "Compare with an earlier result")
        .refused(COMPARE),
    Flag::with_value("tolerance", "P%", OUTPUT, "How much worse is still good").refused(COMPARE),
    Flag::switch("strict-rate", OUTPUT, "Exit with 1 where --rate is not kept")
        .refused("--strict=rate-not-reached does it"),
];
