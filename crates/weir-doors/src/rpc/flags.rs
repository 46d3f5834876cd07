//! The flags of `weir rpc serve`, some of which other servers have too.

use super::settings;
use crate::flags::{Flag, tables};
use crate::given::FlagNeed;
use crate::selftest::values;
use crate::takes::Takes;

const GROUP: &str = "Group";
const WAY: &str = "How it is reached";
const LIMITS: &str = "Limits";
const END: &str = "Start and end";

const NO_TOKEN: FlagNeed = FlagNeed::new("without `--token-file`", |g| !g.has("token-file"));
/// Reason for refusing flags that need TLS.
const NO_TLS: &str = "this build has no TLS";

/// All of them, in the order of the help text.
pub(super) const FLAGS: &[Flag] = &tables::<27>(&[&OWN, &SHARED_FLAGS]);

/// Flags of every server.
pub(crate) const SHARED_FLAGS: [Flag; 10] = [
    Flag::with_value(
        "poll",
        "HOW",
        WAY,
        "How pollers wait: auto, busy, block, spin:US",
    )
    .takes(values::POLL),
    Flag::with_value(
        "token-file",
        "FILE",
        WAY,
        "The secret that clients must know",
    )
    .long("Both sides prove it to each other when they connect; what follows is neither secret nor sealed."),
    Flag::switch(
        "open-to-anyone",
        WAY,
        "Listen beyond this machine without a secret",
    )
    .needs(NO_TOKEN)
    .long("Whoever reaches it can have it use memory, and start tests against its group."),
    Flag::with_value("max-msg", "SIZE", LIMITS, "Longest in-line payload, 1g at most")
    .takes(Takes::Size(1 << 30))
        .default("16m")
        .long("Of requests and replies. Bulk is bounded by --mem-limit."),
    Flag::with_value(
        "mem-limit",
        "SIZE",
        LIMITS,
        "Memory of sessions, messages and ordered tests; 1g or a quarter of the memory, the smaller",
    )
    .takes(Takes::Size(u64::MAX))
    .long("Calls that wait and answers that nobody reads have 48 MiB besides."),
    Flag::with_value("max-conns", "N", LIMITS, "Connections")
    .range(1, 1 << 20).default("16384"),
    Flag::with_value(
        "max-sessions",
        "N",
        LIMITS,
        "Sessions at once, of all its ranks and connections together",
    )
    .range(1, 1 << 20)
    .default("65536")
    .long(
        "A client opens one for each thread and entry of its list of endpoints, none where both sizes are 0. \
         More are refused with DER_NOMEM, as are more than 1024 on one connection.",
    ),
    Flag::with_value(
        "half-frame-timeout",
        "T",
        LIMITS,
        "A message that is not whole, or not taken, by then ends its connection",
    )
    .takes(Takes::Time)
    .default("30s"),
    Flag::with_value(
        "ready-fd",
        "N",
        END,
        "Write a line to this descriptor when it is ready",
    )
    .range(1, 1 << 20),
    Flag::with_value(
        "exit-after",
        "N|idle:S",
        END,
        "End soon after N requests, or after S idle seconds",
    )
    .takes(Takes::Grammar(|text| settings::end(text).map(drop))),
];

/// Those of this one alone.
const OWN: [Flag; 17] = [
    Flag::with_value("group", "NAME", GROUP, "Name of the group")
        .takes(values::GROUP)
        .default("daos_server"),
    Flag::with_value(
        "rank",
        "N",
        GROUP,
        "Rank in the group; else the launcher's (mpirun, srun), else the next free one",
    )
    .range(0, 4_294_967_294),
    Flag::with_value("ranks", "N-M", GROUP, "These ranks, all in this process")
        .takes(Takes::Grammar(|text| settings::ranks(text).map(drop))),
    Flag::with_value(
        "tags",
        "T",
        GROUP,
        "Endpoints of each rank; 1 if nothing is said",
    )
    .range(1, 65_536),
    Flag::with_value(
        "layout",
        "daos,targets=T,helpers=H",
        GROUP,
        "The tags of a DAOS engine: T + H + 2",
    )
    .takes(Takes::Grammar(|text| settings::layout(text).map(drop)))
    .long("Tag 0 metadata, 1 monitoring, 2 to T+1 targets, then helpers."),
    Flag::with_value(
        "path",
        "DIR",
        GROUP,
        "Directory of the table of the group, which names this server",
    )
    .long(
        "Without it WEIR_GROUP_DIR, else CRT_ATTACH_INFO_PATH, else the first that can be used of \
         XDG_RUNTIME_DIR/weir, /run/weir and /tmp.",
    ),
    Flag::switch("public", GROUP, "Let everyone read the table"),
    Flag::with_value("table-format", "FORM", GROUP, "Of the table's lines")
        .choices(&["weir", "cart"])
        .default("weir")
        .long("cart leaves out what the older program would take for further entries."),
    Flag::with_value(
        "transport",
        "URI,…",
        WAY,
        "Where it listens and how data moves",
    )
    .takes(Takes::Grammar(|text| values::listen_uris(text).map(drop)))
    .default("tcp://127.0.0.1:0")
    .long(
        "tcp://HOST[:PORT], shm://, ofi+PROVIDER://IFACE[:PORT]; several with commas. Port 0 is \
             any free one. Without it D_PROVIDER, D_INTERFACE and D_PORT say it.",
    ),
    Flag::with_value(
        "pollers",
        "N",
        WAY,
        "Threads that answer; as many as there are CPUs for",
    )
    .range(1, 1024)
    .long("Tag t is answered by poller t mod N. Without it the tags or the CPUs, the fewer."),
    Flag::with_value("cpus", "LIST", WAY, "A CPU for each poller, 0,2,4-7")
        .takes(Takes::Cpus)
        .long(
            "Without --pollers as many pollers, if there are so many tags. They have to be among the CPUs \
             that it was started with.",
        ),
    Flag::with_value(
        "allow-master",
        "yes|no",
        WAY,
        "Tests may be started from here",
    )
    .choices(&["yes", "no"])
    .default("yes"),
    Flag::with_value("tls-cert", "FILE", WAY, "Certificate").refused(NO_TLS),
    Flag::with_value("tls-key", "FILE", WAY, "Key").refused(NO_TLS),
    Flag::with_value("tls-ca", "FILE", WAY, "Authority").refused(NO_TLS),
    Flag::with_value(
        "service-time",
        "DIST",
        END,
        "Busy time of each request: const:US, exp:US, bimodal:US1,P,US2",
    )
    .takes(Takes::Grammar(|text| settings::service_time(text).map(drop))),
    Flag::switch(
        "dry-run",
        END,
        "Print what would be served, and serve nothing",
    ),
];
