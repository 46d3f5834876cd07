//! The flags of `weir axio`.

use weir_schema::PathStage;

use crate::flags::Flag;
use crate::given::FlagNeed;
use crate::takes::Takes;

const CONFIG: &str = "Configuration";
const SIDES: &str = "Role";
const LOOK: &str = "Instead of a run";
const MEASURE: &str = "Measuring";
/// Longest trial, in seconds.
const LONGEST: f64 = 86_400.0;
const SEARCH: &str = "Searches (ndr, rfc2544)";
const OUTPUT: &str = "Output";

const NO_TOKEN: FlagNeed = FlagNeed::new("without `--token-file`", |g| !g.has("token-file"));

/// All of them, in the order of the help text.
pub const FLAGS: &[Flag] = &[
    Flag::with_value("config", "FILE", CONFIG, "The configuration file, or - for standard input")
        .letter('c')
        .long(
            "The configuration on standard input goes to its end, or to a line `end`. After such a line the run lasts \
             as long as standard input does, a server prints READY and its address once it listens, and the history \
             does not keep the result: `weir tune --server-command` starts servers so. Without this flag a server \
             reads config/recv_config and a client config/send_config, where there is such a file.",
        ),
    Flag::with_value(
        "example",
        "NAME",
        CONFIG,
        "A configuration of weir's own, in place of a file: echo, scan; list: print them",
    ),
    Flag::with_value(
        "set",
        "KEY=VALUE",
        CONFIG,
        "Replace a value of the configuration",
    )
    .repeats(),
    Flag::with_value(
        "backend",
        "WORDS",
        CONFIG,
        "What carries packets (backend : WORDS); list: what this machine has",
    ),
    Flag::switch(
        "lenient",
        CONFIG,
        "Note keys that there are not and leave them out",
    ),
    Flag::switch(
        "loopback",
        SIDES,
        "Client and server as threads of this process (role : loopback)",
    ),
    Flag::switch(
        "server",
        SIDES,
        "The server alone, which waits for its client (role : server)",
    ),
    Flag::switch(
        "client",
        SIDES,
        "The client alone, which calls its server for half a minute (role : client)",
    ),
    Flag::with_value(
        "token-file",
        "FILE",
        SIDES,
        "The secret that both sides must know",
    )
    .long("Both prove it to each other when they meet; what follows is neither secret nor sealed."),
    Flag::switch(
        "open-to-anyone",
        SIDES,
        "A server listens beyond this machine without a secret",
    )
    .needs(NO_TOKEN)
    .long(
        "Whoever reaches it can have it run what fits its own configuration. While it waits, 64 callers at once \
         may greet, with 64 KiB each.",
    ),
    Flag::switch(
        "verify",
        LOOK,
        "Say whether the configuration fits together",
    )
    .letter('v'),
    Flag::switch("print", LOOK, "Print the tunable numbers").letter('p'),
    Flag::with_value(
        "peer",
        "FILE",
        LOOK,
        "With -v: the configuration of the other side, which has to fit",
    ),
    Flag::with_value(
        "diagnose",
        "LOG",
        LOOK,
        "As `tools`: say what holds the path back, as weir diagnose",
    )
    .letter('d'),
    Flag::with_value(
        "metric",
        "REPORT",
        LOOK,
        "As `tools`: the report of the host, as of weir monitor",
    )
    .letter('m'),
    Flag::with_value(
        "tune",
        "N",
        LOOK,
        "As `tools`: search for better batches in so many trials, as weir tune",
    )
    .letter('t'),
    Flag::switch(
        "list-packages",
        LOOK,
        "As `tools`: print what to install for links that are not part of weir",
    )
    .letter('i'),
    Flag::with_value(
        "stage",
        "STAGE",
        MEASURE,
        "Measure this stage alone, on 256 buffers, without link and other side",
    )
    .choices(&PathStage::ROW_NAMES)
    .long(
        "Its row is that of the table, and its rate what its own time allows. It needs no role. nic_tx and nic_rx are the \
         rings of backend ring alone.",
    ),
    Flag::with_value(
        "stage-timing",
        "WHICH",
        MEASURE,
        "Passes that are timed: all, off, 1/N",
    )
    .long("As the key stage_timing. Packets are counted in all passes."),
    Flag::with_value(
        "inject-loss",
        "PERCENT",
        MEASURE,
        "Drop so many of the client's packets",
    )
    .takes(Takes::Percent(0.0001, 99.9999))
    .long("Of a hundred, at its dispatchers: 1%, 0.01%."),
    Flag::with_value(
        "inject-pause",
        "TIME",
        MEASURE,
        "The server stands still for so long, once, in the middle of the run",
    )
    .long("With its unit: 10ms, 500us. Messages that a rate begins meanwhile wait for its end."),
    Flag::with_value(
        "sink-rate",
        "RATE",
        MEASURE,
        "The server takes so many packets per second and drops the others",
    )
    .long(
        "As 300k. A bucket of 64 packets fills by the times at which packets were made or intended, and not by \
         when they come: what a busy machine delays does not change what is dropped.",
    ),
    Flag::switch(
        "force",
        MEASURE,
        "Run with a window that is smaller than a batch",
    )
    .long("Less than a batch then moves only when flush_us has passed."),
    Flag::with_value("search", "WAY", SEARCH, "How rates are chosen: binary, mlr")
        .choices(&["binary", "mlr"])
        .default("binary")
        .long(
            "binary halves what lies between nothing and the maximum. mlr begins with what arrives of the maximum, in \
             trials of a tenth of the time, and ends in whole ones.",
        ),
    Flag::with_value(
        "precision",
        "PERCENT",
        SEARCH,
        "Rates that differ by less are not told apart",
    )
    .takes(Takes::Percent(0.01, 50.0))
    .long("0.5% without it."),
    Flag::with_value(
        "loss",
        "PERCENT",
        SEARCH,
        "What may be lost at the higher of the two rates of ndr",
    )
    .takes(Takes::Percent(0.0001, 50.0))
    .long("0.5% without it."),
    Flag::with_value("trial-time", "SECONDS", SEARCH, "How long a trial is")
    .takes(Takes::SecondsWithin(0.001, LONGEST))
        .long("1 without it, of rfc2544 60; the other times of rfc2544 go with it."),
    Flag::with_value(
        "residual",
        "SECONDS",
        SEARCH,
        "How long the last answers of a trial are waited for",
    )
    .takes(Takes::SecondsWithin(0.002, LONGEST))
    .long("A thirtieth of a trial without it, from 0.1 to 2."),
    Flag::with_value("rest", "SECONDS", SEARCH, "Between two trials")
    .takes(Takes::SecondsWithin(0.0, LONGEST))
        .long("None without it, of rfc2544 a twelfth of a trial, up to 5."),
    Flag::with_value(
        "frames",
        "LIST",
        SEARCH,
        "Sizes of frames of rfc2544, with the frame check",
    )
    .long("64,128,256,512,1024,1280,1518 without it."),
    Flag::with_value(
        "tests",
        "LIST",
        SEARCH,
        "Tests of rfc2544: throughput, latency, frame-loss, back-to-back",
    ),
    Flag::with_value(
        "repeats",
        "N",
        SEARCH,
        "Repetitions of latency and back-to-back of rfc2544",
    )
    .range(1, 1000)
    .long("20 and 50 without it."),
    Flag::with_value(
        "monitor",
        "FILE",
        OUTPUT,
        "Write what the host did meanwhile, as weir monitor --pid of this run",
    )
    .long("`weir diagnose` takes it beside the log or the result."),
    Flag::switch("both", OUTPUT, "Print the tables of the server too").prints(),
];
