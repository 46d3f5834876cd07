//! The flags of `weir axio`.

use crate::flags::{Flag, history, store_result};

const CONFIG: &str = "Configuration";
const SIDES: &str = "Role";
const LOOK: &str = "Instead of a run";
const MEASURE: &str = "Measuring";
const OUTPUT: &str = "Output";

const NO_DIAGNOSIS: &str = "here configurations are run, verified (-v) and printed (-p)";

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
    Flag::switch("show-plan", LOOK, "Print the plan as JSON and run nothing"),
    Flag::with_value("diagnose", "LOG", LOOK, "Say where the pipeline waits")
        .letter('d')
        .refused(NO_DIAGNOSIS),
    Flag::with_value("metric", "REPORT", LOOK, "What the host's counters said")
        .letter('m')
        .refused(NO_DIAGNOSIS),
    Flag::with_value("tune", "N", LOOK, "Look for better numbers")
        .letter('t')
        .refused(NO_DIAGNOSIS),
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
