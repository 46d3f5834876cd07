//! The flags of `weir vos-perf` and `weir daos-perf`: those that both peers have, those of each, older ones,
//! weir's.
//!
//! Not here: what they ask for (`plan`).

use weir_units::Bytes;

use crate::flags::{Flag, tables};
use crate::selftest::values::server_uris;
use crate::takes::Takes;

/// Heading of the peers' flags, whose names may be cut short.
pub(super) const REFERENCE: &str = "Options of the peer, which may be cut short";
const OLDER: &str = "Older names";
const OWN: &str = "weir's own";

const NUMBER: Takes = Takes::Grammar(|text| number(text).map(drop));
const UUID: Takes = Takes::Grammar(uuid);
/// The name of a pool: DAOS has labels too.
const POOL: Takes = Takes::Grammar(|text| {
    let is_label = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
    let is_name = !text.is_empty() && text.len() <= 127 && text.chars().all(is_label);
    if is_name { Ok(()) } else { uuid(text) }
});

/// A UUID of its usual form.
pub(crate) fn uuid(text: &str) -> Result<(), String> {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    let is_uuid =
        lengths == [8, 4, 4, 4, 12] && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
    let wrong = || "it takes a UUID, as 3ad5b1c6-0c22-4f1c-8f51-2b7a5a1b6c1d".to_owned();
    is_uuid.then_some(()).ok_or_else(wrong)
}

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
    .takes(POOL)
    .long("Of DAOS also by its label."),
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

/// Flags of the peer over a network alone.
const DAOS: [Flag; 5] = [
    Flag::with_value(
        "type",
        "TYPE",
        REFERENCE,
        "daos: the whole stack; echo: the network alone",
    )
    .letter('T')
    .choices(&["daos", "echo", "vos"])
    .default("daos")
    .long("vos is what older versions call the store of this process, as `weir vos-perf` has it."),
    Flag::with_value(
        "credits",
        "N",
        REFERENCE,
        "Operations in flight, 1024 at most; 0 or less: one, and each is waited for",
    )
    .letter('C')
    .takes(Takes::Grammar(|text| credits(text).map(drop)))
    .default("-1"),
    Flag::with_value(
        "class",
        "CLASS",
        REFERENCE,
        "TINY: an object is on one target; LARGE: on all",
    )
    .letter('c')
    .default("LARGE")
    .long("With --engine daos also R2S, R3S, R4S, EC2P1, EC2P2, EC4P2, EC8P2."),
    Flag::with_value("dmg_conf", "FILE", REFERENCE, "Settings of dmg")
        .letter('g')
        .refused("weir makes no pools by dmg; name one that is there with -u"),
    Flag::switch("zcopy", REFERENCE, "Copy values in place")
        .letter('z')
        .refused("only a store of this process has it; `weir vos-perf -z`"),
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

/// The older name of what `-D` of the store's peer is.
const OLD_PATH: [Flag; 1] = [Flag::with_value(
    "f",
    "PATH",
    OLDER,
    "Beginning of the pool files' names, with -T vos",
)
.default("/mnt/daos/vos")];

/// Which store the store's peer has.
const EMBEDDED: [Flag; 1] = [Flag::with_value(
    "engine",
    "NAME",
    OWN,
    "The store: in memory over a file, or a library on a disk",
)
.choices(&["mem", "disk", "redb", "fjall", "lmdb"])
.long("disk is redb. fjall and lmdb are there where weir was built with them.")
.default("mem")];

/// Which store the peer over a network has.
const REACHED: [Flag; 3] = [
    Flag::with_value(
        "server",
        "URI,…",
        OWN,
        "Servers: the lines READY of `weir obj serve`",
    )
    .takes(Takes::Grammar(|text| server_uris(text).map(drop)))
    .long("Without it WEIR_OBJ_SERVER; with neither the library of DAOS."),
    Flag::with_value(
        "token-file",
        "FILE",
        OWN,
        "The secret that the servers ask for",
    ),
    Flag::with_value(
        "engine",
        "NAME",
        OWN,
        "The store: weir's servers, DAOS, or as -T vos one of this process",
    )
    .choices(&["remote", "daos", "mem", "disk", "redb", "fjall", "lmdb"]),
];

/// Flags of weir itself.
const OURS: [Flag; 5] = [
    Flag::with_value(
        "durability",
        "LEVEL",
        OWN,
        "Fate that an acknowledged update survives",
    )
    .choices(&["none", "process", "power"])
    .long(
        "Without it: power where the file is on memory that keeps its content (DAX), else process. The engine \
         disk has power alone; that of a server is the server's.",
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
pub const VOS_FLAGS: &[Flag] = &tables::<29>(&[&COMMON, &VOS, &OLD, &EMBEDDED, &OURS]);

/// All of `weir daos-perf`, in the order of the help text.
pub const DAOS_FLAGS: &[Flag] = &tables::<31>(&[&COMMON, &DAOS, &OLD, &OLD_PATH, &REACHED, &OURS]);

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

/// Most operations in flight.
pub(super) const MOST_CREDITS: u32 = 1024;

/// Operations in flight; 0 or less is one at a time.
pub(super) fn credits(text: &str) -> Result<i64, String> {
    let is_below = text.strip_prefix('-');
    let size = number(is_below.unwrap_or(text));
    let size = size.map_err(|_| "it takes a whole number, as 16 or -1".to_owned())?;
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    Ok(if is_below.is_some() { -size } else { size })
}

/// The same of a flag whose value was checked.
pub(super) fn given_number(given: &crate::given::GivenFlags, name: &str) -> u64 {
    given.parsed(name, number).unwrap_or_default()
}

/// The same as a size.
pub(super) fn given_size(given: &crate::given::GivenFlags, name: &str) -> Bytes {
    Bytes(given_number(given, name))
}
