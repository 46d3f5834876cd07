//! The flags of `weir axio`.

use crate::flags::{Flag, history, store_result};

const CONFIG: &str = "Configuration";
const SIDES: &str = "Role";
const LOOK: &str = "Instead of a run";
const MEASURE: &str = "Measuring";
const OUTPUT: &str = "Output";

/// All of them, in the order of the help text.
pub const FLAGS: &[Flag] = &[
    Flag::with_value("config", "FILE", CONFIG, "The configuration file").letter('c'),
    Flag::with_value(
        "example",
        "NAME",
        CONFIG,
        "A configuration of weir's own, in place of a file",
    )
    .choices(&["echo", "scan"]),
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
        "as",
        "FORM",
        LOOK,
        "With `show`: the form of the configuration",
    )
    .choices(&["axio", "toml"])
    .default("axio"),
    Flag::switch("show-plan", LOOK, "Print the plan as JSON and run nothing"),
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
    .long("Of a hundred, at its dispatchers: 1%, 0.01%."),
    Flag::switch(
        "force",
        MEASURE,
        "Run with a window that is smaller than a batch",
    )
    .long("Less than a batch then moves only when flush_us has passed."),
    Flag::switch(
        "strict",
        MEASURE,
        "What the verifier warns of ends the command with 1",
    ),
    Flag::switch("both", OUTPUT, "Print the tables of the server too").prints(),
    Flag::with_value("format", "FORMAT", OUTPUT, "What is printed")
        .choices(&["text", "json"])
        .default("text")
        .prints(),
    store_result(OUTPUT),
    history(OUTPUT),
];
