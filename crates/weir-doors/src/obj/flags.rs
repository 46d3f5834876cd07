//! The verbs of `weir obj` and their flags.

use super::PoolTask;
use crate::flags::{Flag, tables};
use crate::given::FlagNeed;
use crate::object::flags::uuid;
use crate::rpc::SHARED_FLAGS;
use crate::selftest::values::listen_uris;
use crate::takes::Takes;

const STORE: &str = "The store";

/// A verb.
pub(super) struct VerbRecord {
    pub(super) name: &'static str,
    /// The verb with its arguments.
    pub(super) usage: &'static str,
    pub(super) about: &'static str,
    pub(super) flags: &'static [Flag],
    /// The end of its page: examples, exit codes.
    pub(super) help: &'static str,
    /// Task on a pool that exists; the one without it serves.
    pub(super) task: Option<PoolTask>,
}

const FILES: FlagNeed = FlagNeed::new("with `--dir`", |given| given.has("dir"));

const SERVE: [Flag; 9] = [
    Flag::with_value("dir", "DIR", STORE, "Directory of the pool's files")
        .letter('D')
        .long("Without it the pool is in memory and ends with the server."),
    Flag::with_value("size", "SIZE", STORE, "Size of a new pool, all its targets together")
        .letter('P')
        .needs(FlagNeed::new("without `--pool`", |given| !given.has("pool")))
        .takes(Takes::Size(1 << 60))
        .default("2g"),
    Flag::with_value("targets", "N", STORE, "Parts of the pool, each with keys of its own")
        .range(1, 1024)
        .default("1")
        .long("Each has a thread and a file. A pool that exists has as many as files."),
    Flag::with_value("pool", "UUID", STORE, "Serve this pool, which exists, and keep it")
        .takes(Takes::Grammar(uuid))
        .needs(FILES),
    Flag::switch("keep", STORE, "Keep the files of a new pool at the end").needs(FILES),
    Flag::with_value("engine", "NAME", STORE, "In memory over files")
        .choices(&["mem"])
        .default("mem"),
    Flag::with_value(
        "durability",
        "LEVEL",
        STORE,
        "Fate that an acknowledged update survives: none, process or power",
    )
    .choices(&["none", "process", "power"])
    .long("Without it the best that the directory has; none without --dir."),
    Flag::with_value("csum", "SUM", STORE, "Sums over values, compared at each read and on their way")
        .choices(&["none", "crc32c", "xxh3"])
        .default("crc32c")
        .long("A pool that exists keeps its own."),
    Flag::with_value("listen", "URI,…", "How it is reached", "Where it listens")
        .takes(Takes::Grammar(|text| listen_uris(text).map(drop)))
        .default("tcp://127.0.0.1:0")
        .long("tcp://HOST[:PORT], shm://, ofi+PROVIDER://IFACE[:PORT]; several with commas. Port 0 is any free one."),
];

const FORMAT: Flag = Flag::with_value("format", "FORMAT", "Output", "How it is printed")
    .choices(&["text", "json"])
    .default("text");

/// All of them.
pub(super) const VERBS: &[VerbRecord] = &[
    VerbRecord {
        name: "serve",
        usage: "serve [OPTIONS]",
        about: "serve a pool",
        flags: &tables::<19>(&[&SERVE, &SHARED_FLAGS]),
        help: include_str!("serve.md"),
        task: None,
    },
    VerbRecord {
        name: "info",
        usage: "info FILE",
        about: "show what pools hold",
        flags: &[FORMAT],
        help: "\
Its UUID, size, containers, counters, and the level of durability that its place
can have. The file is locked meanwhile.

Examples:
    weir obj info /dev/shm/obj0
    weir obj info /dev/shm
    weir obj info --format json /dev/shm/obj0
",
        task: Some(PoolTask::Info),
    },
    VerbRecord {
        name: "check",
        usage: "check FILE",
        about: "compare every value with its sum",
        flags: &[FORMAT],
        help: "\
Each damaged value is named, and the exit code is 1 if there is one. Values of a
pool without sums (weir obj serve --csum none) cannot be compared, which is said.

Examples:
    weir obj check /dev/shm/obj0
    weir obj check /dev/shm
    weir obj check --format json /dev/shm/obj0
",
        task: Some(PoolTask::Check),
    },
    VerbRecord {
        name: "aggregate",
        usage: "aggregate FILE",
        about: "drop versions that no reader sees any more",
        flags: &[FORMAT],
        help: "\
What is visible now or in a snapshot stays. The space of the rest is free for new
values; the file keeps its length.

Examples:
    weir obj aggregate /dev/shm/obj0
    weir obj aggregate /dev/shm
    weir obj aggregate --format json /dev/shm/obj0
",
        task: Some(PoolTask::Aggregate),
    },
];
