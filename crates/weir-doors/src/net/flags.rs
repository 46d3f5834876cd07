//! The flags of `weir net lat-bw`.

use crate::flags::Flag;
use crate::takes::Takes;

const WORLD: &str = "Ranks and transport";
const MEASURE: &str = "Measuring";

/// All of them, in the order of the help text.
pub const FLAGS: &[Flag] = &[
    Flag::with_value(
        "ranks",
        "N",
        WORLD,
        "Ranks; a launcher says itself how many",
    )
    .range(2, 1024)
    .default("2"),
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
    .default("auto")
    .long("A launcher places its ranks itself: there it is none unless it is given."),
    Flag::with_value(
        "comm-type",
        "TYPE",
        WORLD,
        "Transport; AUTO: MPI under a launcher, else memory",
    )
    .default("AUTO"),
    Flag::switch(
        "matrix",
        MEASURE,
        "Measure the pairs of all ranks, and print a table of them",
    )
    .long("Without it one rank in so many is in pairs where all would take too long."),
    Flag::with_value("seed", "N", MEASURE, "Of the random orders of the rings")
        .range(0, i64::MAX)
        .default("1"),
    Flag::with_value(
        "min-time",
        "S",
        MEASURE,
        "Make loops longer until each takes S seconds",
    )
    .takes(Takes::Seconds),
    Flag::with_value(
        "max-time",
        "S",
        MEASURE,
        "Begin no further random ring after S seconds",
    )
    .takes(Takes::Seconds)
    .long("Half of it is for the short messages. One ring of each size is always measured."),
    Flag::with_value(
        "timeout",
        "S",
        MEASURE,
        "Without progress for S seconds the run ends",
    )
    .takes(Takes::Seconds)
    .default("60"),
];
