//! The flags of `weir new`, which writes job files for a card with DMA channels.

use crate::flags::Flag;
use crate::takes::Takes;

const CARD: &str = "The card";
const FILES: &str = "The files";

/// All of them, in the order of the help text.
pub const FLAGS: &[Flag] = &[
    Flag::with_value("channels", "N", CARD, "Channels of each direction, 1 to 64")
        .range(1, 64)
        .default("4"),
    Flag::with_value("memory", "SIZE", CARD, "Memory of the card, 1m to 1024t")
        .takes(Takes::Scaled(1 << 20, 1 << 50))
        .default("64g"),
    Flag::with_value("driver", "NAME", CARD, "The driver that names the nodes")
        .takes(Takes::Grammar(|text| {
            let is_odd = |c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            let wrong = || "it takes small letters, digits and -".to_owned();
            (!text.contains(is_odd)).then_some(()).ok_or_else(wrong)
        }))
        .default("xdma")
        .long(
            "NAME0_h2c_N and NAME0_c2h_N below /dev; edma has /dev/edma0_queue_N for both \
             directions and posts writes, so its files flush.",
        ),
    Flag::with_value(
        "workers",
        "N",
        FILES,
        "Workers, 1 to 256, each with a section of its own",
    )
    .range(1, 256)
    .default("4"),
    Flag::with_value("size", "SIZE", FILES, "Bytes of an operation, 512 to 1g")
        .takes(Takes::Scaled(512, 1 << 30))
        .choices(&["X", "var"])
        .default("1M")
        .long("X: a sweep from 4k to 2m. var: left to the command line, --blocksize=SIZE."),
    Flag::with_value("mode", "MODE", FILES, "What the file does")
        .choices(&["verify", "write", "read", "all"])
        .default("all"),
    Flag::with_value("output", "DIR", FILES, "Where the files go")
        .letter('o')
        .default("."),
    Flag::switch("force", FILES, "Replace files that are there"),
];
