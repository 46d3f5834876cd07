//! The flags of `weir vos-perf`: those of the peers, common and its own, then older ones and weir's.
//!
//! Not here: what they ask for (`plan`).

use weir_units::Bytes;

use crate::flags::Flag;
use crate::takes::Takes;

/// Heading of the peers' flags, whose names may be cut short.
pub(super) const REFERENCE: &str = "Options of the peer, which may be cut short";
const OLDER: &str = "Older names";
const OWN: &str = "weir's own";

const NUMBER: Takes = Takes::Grammar(|text| number(text).map(drop));
const UUID: Takes = Takes::Grammar(|text| {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    let is_uuid =
        lengths == [8, 4, 4, 4, 12] && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
    let wrong = || "it takes a UUID, as 3ad5b1c6-0c22-4f1c-8f51-2b7a5a1b6c1d".to_owned();
    is_uuid.then_some(()).ok_or_else(wrong)
});

/// Flags of both peers.
const COMMON: [Flag; 14] = [
    Flag::switch("help", REFERENCE, "This page").letter('h'),
    Flag::with_value("pool_scm", "SIZE", REFERENCE, "Size of the pool; 0 is 1G")
        .letter('P')
        .takes(NUMBER)
        .default("2G"),
    Flag::with_value(
        "pool_nvme",
        "SIZE",
        REFERENCE,
        "Of it on blocks; only 0 so far",
    )
    .letter('N')
    .takes(NUMBER)
    .default("0"),
    Flag::with_value("obj", "N", REFERENCE, "Objects per container")
        .letter('o')
        .takes(NUMBER)
        .default("1"),
    Flag::with_value("dkey", "N", REFERENCE, "Distribution keys per object")
        .letter('d')
        .takes(NUMBER)
        .default("256"),
    Flag::with_value(
        "akey",
        "N",
        REFERENCE,
        "Attribute keys per distribution key",
    )
    .letter('a')
    .takes(NUMBER)
    .default("16"),
    Flag::with_value(
        "num",
        "N",
        REFERENCE,
        "Extents per key; of single values, times each is written",
    )
    .letter('n')
    .takes(NUMBER)
    .default("16"),
    Flag::with_value(
        "size",
        "SIZE",
        REFERENCE,
        "Length of a value or extent, at least 4",
    )
    .letter('s')
    .takes(NUMBER)
    .default("64")
    .long("Older versions call it --stride."),
    Flag::with_value(
        "array",
        "R",
        REFERENCE,
        "Values are arrays of bytes; R: extents in random order",
    )
    .letter('A')
    .optional()
    .takes(Takes::Grammar(|text| {
        let is_known = text.is_empty() || text.eq_ignore_ascii_case("r");
        is_known
            .then_some(())
            .ok_or_else(|| "it takes R or nothing".to_owned())
    })),
    Flag::with_value("run", "COMMANDS", REFERENCE, "Tests to run, as \"U;p F;p\"")
        .letter('R')
        .takes_empty(),
    Flag::switch("wait", REFERENCE, "Ask on standard input before each test").letter('w'),
    Flag::with_value(
        "seed",
        "N",
        REFERENCE,
        "Of ids and of random orders; 0: another one at each run",
    )
    .letter('G')
    .takes(NUMBER)
    .default("0"),
    Flag::with_value(
        "pool",
        "UUID",
        REFERENCE,
        "Use this pool, which exists, and keep it",
    )
    .letter('u')
    .takes(UUID),
    Flag::with_value(
        "cont",
        "UUID",
        REFERENCE,
        "Container: opened in a pool of -u, else made",
    )
    .letter('X')
    .takes(UUID),
];

/// Flags of the store's peer alone.
const VOS: [Flag; 6] = [
    Flag::with_value("dir", "DIR", REFERENCE, "Directory of the pool files")
        .letter('D')
        .default("/mnt/daos")
        .long("What is no directory is the beginning of the files' names, as in older versions."),
    Flag::switch(
        "zcopy",
        REFERENCE,
        "Copy values in place, between a begin and an end",
    )
    .letter('z'),
    Flag::switch("int_dkey", REFERENCE, "Distribution keys are numbers").letter('i'),
    Flag::switch("const_akey", REFERENCE, "All attribute keys are one").letter('I'),
    Flag::switch(
        "flat_dkey",
        REFERENCE,
        "Objects without attribute keys; implies -I",
    )
    .letter('f'),
    Flag::switch(
        "abt_ult",
        REFERENCE,
        "Each operation is a thread of its own on the next CPU",
    )
    .letter('x'),
];

/// Flags of older versions.
const OLD: [Flag; 3] = [
    Flag::switch("B", OLDER, "Update and fetch, as -R \"U;p F;p\""),
    Flag::switch("p", OLDER, "Profile").without_effect(
        "weir keeps a histogram of each test anyway; `perf record` profiles the program",
    ),
    Flag::switch("t", OLDER, "All writes to one extent and epoch").refused(
        "every write has an epoch of its own here; without -A, -n N writes each value N times",
    ),
];

/// Flags of weir itself.
const OURS: [Flag; 6] = [
    Flag::with_value(
        "engine",
        "NAME",
        OWN,
        "The store: in memory over a file, or a library on a disk",
    )
    .choices(&["mem", "disk"])
    .default("mem"),
    Flag::with_value(
        "durability",
        "LEVEL",
        OWN,
        "Fate that an acknowledged update survives",
    )
    .choices(&["none", "process", "power"])
    .long(
        "Without it: power where the file is on memory that keeps its content (DAX), else process. The engine \
         disk has power alone.",
    ),
    Flag::with_value(
        "prefault",
        "WHAT",
        OWN,
        "Pages of the pool that are mapped in before the first test",
    )
    .choices(&["plan", "all", "none"])
    .default("plan")
    .long(
        "plan: as many as the updates write. none: as the peer, whose updates wait for each page.",
    ),
    Flag::with_value(
        "output-style",
        "STYLE",
        OWN,
        "Of the peer's text: that of the tuning guide, or of 2.9",
    )
    .choices(&["seed", "2.9"])
    .default("seed")
    .long("With 2.9 the pool file is called vos_perf0.pmem, and not vos0."),
    Flag::switch(
        "compat-truncate",
        OWN,
        "Print each result also with times cut to whole microseconds",
    )
    .prints()
    .long("The peer cuts the time of each operation, so its rates are too high."),
    Flag::switch(
        "compat-payload",
        OWN,
        "Contents of the peer: one letter at 16 places of a page",
    )
    .long("Without it every byte says where it belongs, and a test V compares all."),
];

/// All of `weir vos-perf`, in the order of the help text.
pub const VOS_FLAGS: &[Flag] = &all::<29>(&[&COMMON, &VOS, &OLD, &OURS]);

/// Several tables as one.
const fn all<const N: usize>(tables: &[&[Flag]]) -> [Flag; N] {
    let mut out = [COMMON[0]; N];
    let (mut table, mut at) = (0, 0);
    while table < tables.len() {
        let mut row = 0;
        while row < tables[table].len() {
            out[at] = tables[table][row];
            (row, at) = (row + 1, at + 1);
        }
        table += 1;
    }
    assert!(at == N);
    out
}

/// A count or size: plain, in base 16 after 0x, in base 8 after 0; k, m or g multiply by powers of 1024.
pub(super) fn number(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let shift = |suffix| match suffix {
        Some('k') => 10,
        Some('m') => 20,
        Some('g') => 30,
        _ => 0,
    };
    let shift = shift(lower.chars().last());
    let digits = lower.strip_suffix(['k', 'm', 'g']).unwrap_or(&lower);
    let (digits, radix) = match digits.strip_prefix("0x") {
        Some(rest) => (rest, 16),
        None if digits.len() > 1 && digits.starts_with('0') => (digits, 8),
        None => (digits, 10),
    };
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    if !is_number {
        return Err("it takes a whole number, also as 10k, 4M, 2G or 0x40".to_owned());
    }
    let number = u64::from_str_radix(digits, radix).ok();
    let number = number.and_then(|number| number.checked_mul(1 << shift));
    number.ok_or_else(|| "it is above 2^64".to_owned())
}

/// The same of a flag whose value was checked.
pub(super) fn given_number(given: &crate::given::GivenFlags, name: &str) -> u64 {
    given.parsed(name, number).unwrap_or_default()
}

/// The same as a size.
pub(super) fn given_size(given: &crate::given::GivenFlags, name: &str) -> Bytes {
    Bytes(given_number(given, name))
}
