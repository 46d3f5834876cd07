//! The own flags of `weir run`.

use crate::flags::{Flag, set};

const PLAN: &str = "What is run";
const MEASURE: &str = "Measuring";

/// All of them, in the order of the help text.
pub const FLAGS: &[Flag] = &[
    set(PLAN),
    Flag::with_value(
        "map",
        "OLD=NEW",
        PLAN,
        "Begin paths with NEW that begin with OLD in the job files",
    )
    .repeats()
    .long("The longest OLD that a filename or directory begins with counts."),
    Flag::with_value(
        "section",
        "NAME",
        PLAN,
        "Run only this section of the job files",
    )
    .repeats(),
    Flag::with_value(
        "example",
        "NAME",
        PLAN,
        "Run a job file that ships inside the program; list: print them",
    ),
    Flag::with_value(
        "destroy",
        "TARGET",
        PLAN,
        "Let this device or file of the command line be written: its data is lost",
    )
    .repeats()
    .long(
        "A target that is mounted, held, or seems to hold a file system is refused all the same.",
    ),
    Flag::switch("readonly", PLAN, "Refuse everything that writes or trims"),
    Flag::with_value(
        "per-rank",
        "HOW",
        PLAN,
        "What each of several ranks does with the plan's targets",
    )
    .choices(&["own", "split", "shared"])
    .default("own")
    .long(
        "own: files of its own, `.<rank>` is appended, devices are everybody's; split: an equal \
         part of each region; shared: the same regions.",
    ),
    Flag::switch(
        "calibrate",
        MEASURE,
        "Measure only the instrument's own cost, then stop",
    ),
];
