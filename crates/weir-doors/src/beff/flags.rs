//! The flags of the effective bandwidth door: the peer's, then weir's own.

use super::values;
use crate::flags::Flag;
use crate::given::{FlagNeed, GivenFlags};
use crate::takes::Takes;

const GENERAL: &str = "General";
const SIZES: &str = "Messages";
const DEVICE: &str = "Device";
const WORLD: &str = "Ranks and transport";
const MEASURE: &str = "Measuring";
const OUTPUT: &str = "Output";
const CARD: &str = "Transfers to and from a card";

/// Largest exponent of a message.
pub(super) const LARGEST: i64 = weir_schema::LARGEST_EXPONENT as i64;
const MANY: i64 = u32::MAX as i64;
const NO_PROMPT: &str = "weir never asks; --device and --platform choose";
const NO_OFI: &str = "comm-type ofi, which uses it, is not in this build";

/// True if a model answers alone, or the arguments are only shown.
pub(super) fn is_test(given: &GivenFlags) -> bool {
    given.has("test") || (given.has("simulate") && !given.is("model", "fit"))
}

const CHANNEL_DIR: FlagNeed = FlagNeed::new("with `--channel-dir`", |g| g.has("channel-dir"));
const FULL: FlagNeed = FlagNeed::new("with `--validate full`", |g| g.is("validate", "full"));
const MODEL: FlagNeed = FlagNeed::new("with `--model`", |g| g.has("model"));
const RUN: FlagNeed = FlagNeed::new("where something is measured, not with `--test`", |g| {
    !is_test(g)
});
const TEST: FlagNeed = FlagNeed::new("with `--test`", is_test);
const ANY_DEVICE: FlagNeed = FlagNeed::new("with `--device -1`", |g| g.is("device", "-1"));
const JSON: FlagNeed = FlagNeed::new("with `--dump-json` or `--format json`", |g| {
    g.has("dump-json") || g.is("format", "json")
});
const TRANSFERS: FlagNeed = FlagNeed::new(
    "with `--pcie-read`, `--pcie-write`, `--pcie-reverse` or `--kernel-latency`",
    |g| {
        let transfers = ["pcie-read", "pcie-write", "pcie-reverse", "kernel-latency"];
        transfers.iter().any(|name| g.has(name))
    },
);
const TEXT: FlagNeed = FlagNeed::new("with `--format text`", |g| {
    g.is("format", "text") && !g.is("dump-json", "-")
});

/// All of them, in the order of the help text.
pub const FLAGS: &[Flag] = &[
    Flag::switch("help", GENERAL, "Print this page").letter('h'),
    Flag::with_value(
        "file",
        "FILE",
        GENERAL,
        "Kernel file; recorded, a hint of AUTO, run by --kernel-latency",
    )
    .letter('f'),
    Flag::with_value("n", "N", GENERAL, "Timed runs per message size")
        .range(1, 1_000_000)
        .default("10"),
    Flag::with_value("r", "N", GENERAL, "Replications: channels per rank")
        .range(1, 64)
        .default("2"),
    Flag::switch("i", GENERAL, "Interleaved memory; recorded, without effect"),
    Flag::switch("skip-validation", GENERAL, "Check nothing that arrives"),
    Flag::switch("test", GENERAL, "Print the configuration and stop"),
    Flag::switch(
        "selftest",
        GENERAL,
        "Test the door and its transports on this machine",
    ),
    Flag::switch(
        "list-comm",
        GENERAL,
        "List the transports and what they lack here",
    ),
    Flag::with_value("upper", "N", SIZES, "Longest loop of exchanges")
        .letter('u')
        .range(1, MANY)
        .default("65536"),
    Flag::with_value("lower", "N", SIZES, "Shortest loop of exchanges")
        .letter('l')
        .range(1, MANY)
        .default("256"),
    Flag::with_value("min-size", "E", SIZES, "Smallest message: 2^E bytes")
        .range(0, LARGEST)
        .default("0"),
    Flag::with_value("m", "E", SIZES, "Largest message: 2^E bytes")
        .range(0, LARGEST)
        .default("20"),
    Flag::with_value(
        "o",
        "E",
        SIZES,
        "Messages up to 2^E bytes keep the longest loop",
    )
    .range(0, 63)
    .default("11"),
    Flag::with_value(
        "d",
        "N",
        SIZES,
        "Steps from the longest loop to the shortest",
    )
    .range(1, MANY)
    .default("7"),
    Flag::with_value("step-size", "N", SIZES, "Step between exponents")
        .range(1, LARGEST)
        .default("1"),
    Flag::with_value(
        "sizes",
        "E,E,…",
        SIZES,
        "These exponents, instead of a range",
    )
    .takes(Takes::Grammar(|text| values::exponents(text).map(drop))),
    Flag::with_value("comm-type", "TYPE", WORLD, "Transport; see --list-comm").default("AUTO"),
    Flag::with_value(
        "ranks",
        "N",
        WORLD,
        "Ranks; under a launcher it says how many",
    )
    .range(1, 1024)
    .default("1"),
    Flag::with_value("spawn", "KIND", WORLD, "What a rank is without a launcher")
        .choices(&["threads", "procs"])
        .default("threads"),
    Flag::with_value(
        "pin",
        "WHERE",
        WORLD,
        "One CPU per rank: auto, none, or a list 0,2,4",
    )
    .choices(&["auto", "none"])
    .takes(Takes::Cpus)
    .default("none"),
    Flag::with_value("pairing", "RULE", WORLD, "Who exchanges with whom")
        .choices(&["auto", "pairs", "ring"])
        .default("auto"),
    Flag::with_value("method", "M", WORLD, "How a message goes there and back")
        .choices(&["sendrecv", "nonblocking", "alltoallv", "best"])
        .default("sendrecv"),
    Flag::with_value(
        "channel-width",
        "B",
        WORLD,
        "file: bytes per channel and step",
    )
    .range(1, 1024)
    .default("32"),
    Flag::with_value(
        "channel-dir",
        "DIR",
        WORLD,
        "file: a directory for the channel files",
    ),
    Flag::switch("keep-channels", WORLD, "file: leave the channel files").needs(CHANNEL_DIR),
    Flag::with_value("payload-size", "E", WORLD, "udp: datagrams of 64*2^E bytes")
        .range(0, 7)
        .default("4"),
    Flag::with_value(
        "iface",
        "WHERE",
        WORLD,
        "tcp, udp: own address or interface; RANK=WHERE,… if they differ",
    ),
    Flag::with_value(
        "port",
        "N",
        WORLD,
        "tcp, udp: first port; the system picks one at 0",
    )
    .range(0, 65535)
    .default("0"),
    Flag::with_value(
        "rate",
        "BITS",
        WORLD,
        "tcp, udp: no faster than this, such as 10G",
    )
    .takes(Takes::BitsPerSecond),
    Flag::with_value("provider", "NAME", WORLD, "ofi: the provider").refused(NO_OFI),
    Flag::with_value("device", "I", DEVICE, "Device index; -1: rank mod devices")
        .range(-1, MANY)
        .default("-1"),
    Flag::with_value(
        "platform",
        "I",
        DEVICE,
        "Platform index; -1: the first that has a device",
    )
    .range(-1, MANY)
    .default("-1"),
    Flag::with_value(
        "platform_str",
        "NAME",
        DEVICE,
        "Exact platform name; wins over --platform",
    )
    .takes_empty(),
    Flag::with_value(
        "device-map",
        "RULE",
        DEVICE,
        "Ranks that --device -1 counts: of each machine, or all",
    )
    .choices(&["local", "global"])
    .default("local")
    .needs(ANY_DEVICE),
    Flag::with_value("fake-devices", "N", DEVICE, "As if there were N devices")
        .range(1, 1024)
        .needs(TEST),
    Flag::switch("ask", DEVICE, "Ask for the device").refused(NO_PROMPT),
    Flag::with_value("device-type", "TYPE", DEVICE, "Devices of this kind alone")
        .choices(&["accelerator", "gpu", "cpu", "all"])
        .long("Without it: accelerators, else GPUs, else CPUs."),
    Flag::with_value(
        "warmup",
        "N",
        MEASURE,
        "Exchanges per size before the first timed run",
    )
    .range(0, MANY)
    .default("0"),
    Flag::with_value(
        "min-time",
        "S",
        MEASURE,
        "Make loops longer until a run takes S seconds",
    )
    .takes(Takes::Seconds),
    Flag::with_value(
        "max-time",
        "S",
        MEASURE,
        "Begin no further size after S seconds, end warming up",
    )
    .takes(Takes::Seconds),
    Flag::with_value(
        "timeout",
        "S",
        MEASURE,
        "Without progress for S seconds the run ends",
    )
    .takes(Takes::Seconds)
    .default("60"),
    Flag::with_value("validate", "HOW", MEASURE, "How what arrives is checked")
        .choices(&["none", "const", "sample", "full"])
        .default("const"),
    Flag::with_value("seed", "N", MEASURE, "Of the pattern of --validate=full")
        .range(0, i64::MAX)
        .default("1")
        .needs(FULL),
    Flag::with_value(
        "inject",
        "FAULT",
        MEASURE,
        "Damage on purpose: flip:rank=1,size=8,byte=3",
    )
    .takes(Takes::Grammar(|text| values::fault(text).map(drop)))
    .repeats()
    .long("Also stall:rank=R,size=E,after=N and die:rank=R,size=E,after=N."),
    Flag::with_value(
        "model",
        "SPEC",
        MEASURE,
        "Set a prediction beside: 520n, 520n-parallel, fit",
    )
    .takes(Takes::Grammar(|text| values::model(text).map(drop)))
    .long("Or c=2,w=32,f=156.25e6,lat=520e-9[,dup=1|2]."),
    Flag::with_value("simulate", "N", MEASURE, "Predict N ranks")
        .range(1, 1_000_000)
        .needs(MODEL)
        .long("Every rank is as fast as one alone: no link is shared.")
        .prints(),
    Flag::with_value(
        "baseline",
        "FILE",
        MEASURE,
        "Compare with a result that --dump-json stored",
    )
    .needs(RUN)
    .prints(),
    Flag::with_value(
        "dump-json",
        "FILE",
        OUTPUT,
        "Store the result; `-`: print it instead",
    ),
    Flag::with_value(
        "format",
        "FORMAT",
        OUTPUT,
        "What is printed on standard output",
    )
    .choices(&["text", "table", "json", "csv", "md"])
    .default("text")
    .prints(),
    Flag::with_value(
        "json-compat",
        "VERSION",
        OUTPUT,
        "JSON with the types of this version alone",
    )
    .choices(&["hpcc-1.3"])
    .needs(JSON)
    .prints(),
    Flag::with_value(
        "text-compat",
        "VERSION",
        OUTPUT,
        "Text with the headings of this version",
    )
    .choices(&["1.2", "1.3"])
    .default("1.3")
    .needs(TEXT)
    .prints(),
    Flag::with_value(
        "line-rate",
        "BITS",
        OUTPUT,
        "Print percentages of this rate, such as 100G",
    )
    .takes(Takes::BitsPerSecond)
    .prints(),
    Flag::switch("quiet", OUTPUT, "Only the table, b_eff and the verdict").prints(),
    Flag::switch(
        "pcie-read",
        CARD,
        "Copies from host to device, in place of exchanges",
    ),
    Flag::switch(
        "pcie-write",
        CARD,
        "Copies from device to host, in place of exchanges",
    ),
    Flag::switch("pcie-reverse", CARD, "Both directions, one after the other"),
    Flag::switch(
        "kernel-latency",
        CARD,
        "Launches of a kernel, in place of exchanges",
    ),
    Flag::switch(
        "pcie-batch",
        CARD,
        "Begin all steps of a loop, then wait for them",
    )
    .needs(TRANSFERS),
];
