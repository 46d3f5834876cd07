//! The flags of `weir nvme-perf`: those of the peer, in the order of its manual, then weir's own.
//!
//! Not here: values with a grammar of their own (`values`), what the flags ask for (`plan`).

use super::{prepare, values};
use crate::flags::Flag;
use crate::given::FlagNeed;
use crate::takes::Takes;

const BASIC: &str = "Basic options of the peer, which may be cut short";
const FURTHER: &str = "Further options of the peer";
const DRIVES: &str = "Drives";
const OUTPUT: &str = "What is printed";
/// Heading of weir's own flags.
pub(super) const OWN: &str = "weir's own";

const RANDOM: FlagNeed = FlagNeed::new("with a pattern that begins with `rand`", |given| {
    given
        .text("io-pattern")
        .is_some_and(|word| word.starts_with("rand"))
});
const SEQUENTIAL: FlagNeed =
    FlagNeed::new("with a pattern that does not begin with `rand`", |given| {
        given
            .text("io-pattern")
            .is_some_and(|word| !word.starts_with("rand"))
    });
const MIXED: FlagNeed = FlagNeed::new("with `-w rw` or `-w randrw`", |given| {
    given
        .text("io-pattern")
        .is_some_and(|word| word.ends_with("rw"))
});
const WRITES: FlagNeed = FlagNeed::new("with a pattern that writes", |given| {
    given
        .text("io-pattern")
        .is_some_and(|word| !word.ends_with("read"))
});
const VFIO: FlagNeed = FlagNeed::new("with `--engine vfio`", |given| {
    given
        .text("engine")
        .is_some_and(|list| values::engines(list).is_ok_and(|all| all.contains(&"vfio")))
});
const DESTROYS: FlagNeed =
    FlagNeed::new("with a pattern that writes, or --precondition", |given| {
        given.has("precondition")
            || given
                .text("io-pattern")
                .is_some_and(|word| !word.ends_with("read"))
    });
const PACED: FlagNeed = FlagNeed::new("with `--rate`", |given| given.has("rate"));

/// Why options of a driver in user space are refused.
const DRIVER: &str =
    "drives are reached by the kernel's driver, which is not set up from here; leave it out";
/// Why options of drives on a network are refused.
const NETWORK: &str = "drives on a network are reached by the kernel's driver: `nvme connect` has such \
                       options; then name the device, as /dev/nvme1n1";
/// Why options of DPDK's surroundings are refused.
const SURROUNDINGS: &str = "no DPDK is started, which it would set up; leave it out";
/// Why options of the peer's log are refused.
const LOG: &str =
    "weir has no log of components; its report has warnings, and --show-plan what is done";

const fn number(name: &'static str, letter: char, takes: Takes, help: &'static str) -> Flag {
    Flag::with_value(name, "N", BASIC, help)
        .letter(letter)
        .takes(takes)
}

const fn of_network(name: &'static str, value: Option<&'static str>) -> Flag {
    Flag {
        value,
        ..Flag::switch(name, FURTHER, "Of drives on a network").refused(NETWORK)
    }
}

/// All of them.
pub const FLAGS: &[Flag] = &[
    number("io-depth", 'q', values::CAPACITY, "I/Os in flight, of each core on each target"),
    number("io-size", 'o', values::CAPACITY, "Bytes of an I/O, a multiple of the target's sector"),
    Flag::with_value("io-pattern", "PATTERN", BASIC, "What is done")
        .letter('w')
        .choices(&["read", "write", "rw", "randread", "randwrite", "randrw"]),
    number("rwmixread", 'M', Takes::Whole(0, 100), "Percent of reads of rw and randrw, which need it")
        .needs(MIXED),
    Flag::with_value("time", "TIME", BASIC, "Time that is measured, in seconds unless it has s, m or h")
        .letter('t')
        .takes(values::DURATION),
    Flag::with_value("warmup-time", "TIME", BASIC, "Run so long first without counting")
        .letter('a')
        .takes(values::WARM_UP)
        .default("0"),
    Flag::with_value("core-mask", "CORES", BASIC, "A worker on each of these cores")
        .letter('c')
        .takes(values::CORES)
        .default("1")
        .long(
            "auto: a core for each target, on the memory node that the target is attached to.",
        ),
    Flag::with_value("transport", "KEY:VALUE ...", BASIC, "Drives by trtype:PCIe, traddr and ns")
        .letter('r')
        .takes(values::TRANSPORT)
        .repeats(),
    Flag::switch("use-every-core", FURTHER, "Every core works on every target"),
    Flag::with_value("io-queue-size", "N", FURTHER, "Entries of a queue of the drive").refused(
        "the kernel's driver has set the drive's queues up (`nvme.io_queue_depth`); -q is how many I/Os are in \
         flight",
    ),
    number("io-unit-size", 'O', values::UNIT, "Bytes of a part of a buffer; only -o or more: an I/O has one part"),
    number("num-qpairs", 'P', values::ONE_QUEUE, "Queues of each worker; only 1").default("1"),
    number("num-unused-qpairs", 'U', values::NO_QUEUE, "Idle queues; only 0").default("0"),
    number("buffer-alignment", 'A', values::ALIGNMENT, "Alignment of buffers, a power of two from 64; a page at least"),
    number("hugemem-size", 's', Takes::Whole(1, 1 << 30), "Buffers are huge pages, of so many MiB at most"),
    Flag::switch("mem-single-seg", FURTHER, "Memory in one file").letter('g').refused(SURROUNDINGS),
    number(
        "max-completion-per-poll",
        'C',
        Takes::Whole(0, 0xFFFF_FFFF),
        "Completions taken at once; 0: all that there are",
    )
    .default("0"),
    number("shmem-grp-id", 'i', Takes::Text, "Group of processes that share a drive").refused(
        "the kernel's driver shares a drive among processes without it; leave it out",
    ),
    number("number-ios", 'd', values::COUNT, "End after so many I/Os of each core on each target, or percent of it"),
    Flag::with_value("metadata", "SPEC", FURTHER, "Protection information").letter('e').refused(
        "protection information cannot be passed through the block layer; a target formatted without it is \
         measured without -e",
    ),
    Flag::with_value("zipf", "THETA", FURTHER, "Random offsets by Zipf's law")
        .letter('F')
        .takes(values::ZIPF)
        .default("0")
        .needs(RANDOM),
    Flag::switch("enable-uring", FURTHER, "Files and block devices by io_uring, which is usual here").letter('R'),
    Flag::with_value("iova-mode", "MODE", FURTHER, "Addresses of DMA").refused(DRIVER),
    Flag::switch("no-huge", FURTHER, "No huge pages, which is usual here"),
    Flag::switch("enforce-numa", FURTHER, "Memory from the node of each worker's core"),
    Flag::with_value("env-context", "TEXT", FURTHER, "Arguments of DPDK").refused(SURROUNDINGS),
    Flag::with_value("vfio-vf-token", "UUID", FURTHER, "Token of a virtual function").refused(DRIVER),
    Flag::switch("fua", FURTHER, "A write is over when it is on the medium").needs(WRITES),
    Flag::with_value("tpoint-group-mask", "MASK", FURTHER, "Groups of trace points").letter('y').refused(
        "weir has no trace points; `perf trace -e block:*` has those of the kernel",
    ),
    Flag::with_value("allowed-pci-addr", "BDF", DRIVES, "Only the drive of this PCI address")
        .letter('b')
        .takes(values::ADDRESS)
        .repeats(),
    Flag::switch("enable-vmd", DRIVES, "Drives behind Intel's VMD too").letter('V'),
    Flag::switch("disable-sq-cmb", DRIVES, "No queues in the drive's memory").letter('D').refused(
        "the kernel's driver has set the drive's queues up (`nvme.use_cmb_sqes=0`); leave it out",
    ),
    Flag::switch("enable-interrupt", DRIVES, "Completions by interrupts, which is usual here; excludes --polled")
        .letter('E'),
    Flag { letter: Some('S'), ..of_network("default-sock-impl", Some("NAME")) },
    of_network("disable-ktls", None),
    of_network("enable-ktls", None),
    of_network("tls-version", Some("N")),
    of_network("psk-path", Some("FILE")),
    of_network("psk-identity", Some("NAME")),
    of_network("dhchap-key", Some("KEY")),
    of_network("dhchap-ctrlr-key", Some("KEY")),
    of_network("zerocopy-threshold", Some("N")),
    of_network("zerocopy-threshold-sock-impl", Some("NAME")),
    Flag { letter: Some('z'), ..of_network("disable-zcopy", Some("NAME")) },
    Flag { letter: Some('Z'), ..of_network("enable-zcopy", Some("NAME")) },
    Flag { letter: Some('H'), ..of_network("enable-tcp-hdgst", None) },
    Flag { letter: Some('I'), ..of_network("enable-tcp-ddgst", None) },
    Flag { letter: Some('k'), ..of_network("keepalive", Some("MS")) },
    of_network("transport-tos", Some("N")),
    of_network("rdma-srq-size", Some("N")),
    of_network("disable-sq-flow-control", None),
    Flag::with_value("log-level", "LEVEL", OUTPUT, "Least level of messages").refused(LOG),
    Flag::switch("enable-sw-latency-tracking", OUTPUT, "Percentiles of latencies; twice: their histograms too")
        .letter('L')
        .repeats()
        .prints(),
    Flag::switch("enable-ssd-latency-tracking", OUTPUT, "Latencies that the drive has counted").letter('l').refused(
        "pages of a drive's maker cannot be read through the block layer; -L has latencies that weir measures",
    ),
    Flag::switch("no-shst-notification", DRIVES, "No notice of a shutdown").letter('N').refused(
        "the kernel keeps the drive, which is not shut down; leave it out",
    ),
    number("continue-on-error", 'Q', Takes::Whole(1, 0xFFFF_FFFF), "Print only each N-th error"),
    Flag::with_value("logflag", "NAME", OUTPUT, "Component that logs").letter('T').refused(LOG),
    Flag::switch("cpu-usage", OUTPUT, "Busy time of cores").letter('m').refused(
        "weir's workers sleep where nothing is done, and its report (--voice weir) has their CPU time",
    ),
    Flag::switch("transport-stats", OUTPUT, "Counters of the transport").refused(
        "the kernel's driver has no such counters; weir's report (--voice weir) has those of the disk",
    ),
    Flag::switch("help", OUTPUT, "Print this page").letter('h'),
    Flag::switch("help-full", OUTPUT, "Print this page").letter('v'),
    Flag::switch("list", OWN, "List the NVMe namespaces of this machine, and what uses them"),
    Flag::with_value("engine", "NAME,...", OWN, "What carries the I/Os out; of several one after the other, in one table")
        .takes(values::ENGINES)
        .default("auto")
        .long(
            "auto: uring; uring-cmd: NVMe commands past the block layer; vfio: a driver of weir's own, which has the \
             drive for itself and needs --takeover; libaio, psync: kernels without io_uring.",
        ),
    Flag::switch("polled", OWN, "The drive is polled (io_uring's IOPOLL)"),
    Flag::with_value("seq-layout", "LAYOUT", OWN, "Sequential: each core has a part of the target, or all of it as the peer's")
        .choices(&["split", "shared"])
        .default("split")
        .needs(SEQUENTIAL),
    Flag::with_value("destroy", "TARGET", OWN, "The data of this device or PCI address may be lost")
        .repeats()
        .needs(DESTROYS),
    Flag::with_value("takeover", "TARGET", OWN, "This drive may be taken from the kernel for the run")
        .repeats()
        .needs(VFIO),
    Flag::with_value("release", "BDF", OWN, "Give a drive back to the kernel that a run was killed with")
        .takes(values::ADDRESS),
    Flag::with_value("precondition", "ORDER:Nx", OWN, "First write the whole of each target N times, in order (seq) or at random (rand)")
        .takes(prepare::PASSES)
        .repeats()
        .long("Several are done one after the other, as seq:1x,rand:2x. --destroy is needed as for writes."),
    Flag::with_value("steady-state", "RATE:LIMIT%", OWN, "End within -t once the rate of all cores is steady")
        .takes(prepare::STEADY)
        .long(
            "iops or bw: the largest distance from the mean of one-second samples; iops_slope or bw_slope: their \
             slope per second. The last 5 s have to be steady, or a time behind the limit, as iops:3%:5m.",
        ),
    Flag::with_value("max-temp", "C", OWN, "End early once a drive has so many degrees Celsius")
        .takes(Takes::Whole(1, 1000)),
    Flag::with_value("rate", "N", OWN, "I/Os per second of all cores; latency counts from the intended start")
        .takes(Takes::Rate("I/Os")),
    Flag::with_value("arrival", "HOW", OWN, "Distance of intended starts")
        .choices(&["even", "poisson"])
        .default("even")
        .needs(PACED),
    Flag::with_value("buffer-compress-percentage", "N", OWN, "Share of what is written that a compressor can remove")
        .range(0, 100)
        .default("0")
        .needs(DESTROYS),
    Flag::with_value("dedupe-percentage", "N", OWN, "Share of written blocks that repeat an earlier one")
        .range(0, 100)
        .default("0")
        .needs(DESTROYS),
    Flag::with_value("seed", "N", OWN, "Seed of offsets, mix and content").range(0, i64::MAX).default("1"),
];
