//! The mirror of the module's interface against the header, and what is refused.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use weir_schema::sample::{JobSample, block_job};
use weir_schema::{Bursts, Workload};

use super::abi::{
    AddDev, AddJob, BurstDirection, Failed, FailedStep, Hist, KernelStep, Start, Stats, Stop, Sum,
    Traced,
};
use super::*;

/// A structure of the header: its name there, and the mirror's layout.
type Layout = (
    &'static str,
    (&'static str, usize, &'static [(&'static str, usize)]),
);

macro_rules! layout {
    ($name:ident: $($field:ident),*) => {
        (stringify!($name), size_of::<$name>(), &[$((stringify!($field), std::mem::offset_of!($name, $field)),)*])
    };
}

fn layouts() -> Vec<Layout> {
    let squares = &[
        ("sum_ns", std::mem::offset_of!(Sum, sum_ns)),
        ("min_ns", std::mem::offset_of!(Sum, min_ns)),
        ("max_ns", std::mem::offset_of!(Sum, max_ns)),
        ("squares_lo", std::mem::offset_of!(Sum, squares)),
    ];
    vec![
        ("kio_add_dev", AddDev::LAYOUT),
        ("kio_add_job", AddJob::LAYOUT),
        ("kio_start", Start::LAYOUT),
        ("kio_stop", Stop::LAYOUT),
        ("kio_stats", Stats::LAYOUT),
        ("kio_hist", Hist::LAYOUT),
        ("kio_records", Failed::LAYOUT),
        ("kio_records", Traced::LAYOUT),
        ("kio_sum", ("Sum", size_of::<Sum>(), squares)),
        ("kio_dir", layout!(BurstDirection: ios, bytes, errors, sums)),
        ("kio_step", layout!(KernelStep: offset, len, op)),
        (
            "kio_err",
            layout!(FailedStep: offset, len, op, code, error, at, expected, got),
        ),
    ]
}

/// Numbers of the header: its name for each, and the mirror's value.
fn numbers() -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> = [
        ("KIO_ABI_VERSION", abi::VERSION),
        ("KIO_STATE_RUNNING", RUNNING),
        ("KIO_DEV_WRITE", abi::DEV_WRITE),
        ("KIO_DEV_EXCL", abi::DEV_EXCL),
        ("KIO_OP_MIX", abi::OP_MIX),
        ("KIO_OP_READ", abi::OP_READ),
        ("KIO_OP_WRITE", abi::OP_WRITE),
        ("KIO_OP_TRIM", abi::OP_TRIM),
        ("KIO_DATA_ZERO", abi::DATA_ZERO),
        ("KIO_DATA_RANDOM", abi::DATA_RANDOM),
        ("KIO_DATA_VERIFY", abi::DATA_VERIFY),
        ("KIO_ERR_DATA", abi::ERR_DATA),
        ("KIO_JOB_FUA", abi::JOB_FUA),
        ("KIO_JOB_NOWAIT", abi::JOB_NOWAIT),
        ("KIO_NOTE_SPLIT", abi::NOTE_SPLIT),
        ("KIO_NOTE_TAG_WAITS", abi::NOTE_TAG_WAITS),
        ("KIO_KIND_SLAT", abi::SLAT),
        ("KIO_KIND_CLAT", abi::CLAT),
        ("KIO_KIND_LAT", abi::LAT),
        ("KIO_ADD_DEV", AddDev::OPCODE),
        ("KIO_ADD_JOB", AddJob::OPCODE),
        ("KIO_START", Start::OPCODE),
        ("KIO_STOP", Stop::OPCODE),
        ("KIO_STATS", Stats::OPCODE),
        ("KIO_HIST", Hist::OPCODE),
        ("KIO_ERRS", Failed::OPCODE),
        ("KIO_TRACE", Traced::OPCODE),
    ]
    .map(|(name, value)| (name.to_owned(), u64::from(value)))
    .into();
    all.push(("KIO_HIST_BUCKETS".to_owned(), abi::BUCKETS as u64));
    all.push(("KIO_PATH_MAX".to_owned(), abi::PATH as u64));
    let codes = (0..).zip(abi::CODE_NAMES);
    all.extend(codes.map(|(code, name)| (format!("KIO_ERR_{name}"), code)));
    all
}

#[test]
fn sizes_offsets_and_numbers_are_those_of_the_header() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kmod/kio");
    if !header.join("kio_uapi.h").is_file() {
        println!("SKIPPED: kio_uapi.h: the module's sources are not in this tree");
        return;
    }
    let folder = std::env::temp_dir().join(format!("weir-kio-abi-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut source =
        String::from("#include <stddef.h>\n#include <linux/ioctl.h>\n#include \"kio_uapi.h\"\n");
    for (name, (_, size, fields)) in layouts() {
        let _ = writeln!(
            source,
            "_Static_assert(sizeof(struct {name}) == {size}, \"{name}\");"
        );
        for (field, offset) in fields {
            let _ = writeln!(
                source,
                "_Static_assert(offsetof(struct {name}, {field}) == {offset}, \"{name}.{field}\");"
            );
        }
    }
    for (name, value) in numbers() {
        let _ = writeln!(source, "_Static_assert({name} == {value}u, \"{name}\");");
    }
    let file = folder.join("abi.c");
    std::fs::write(&file, source).unwrap();
    let compiled = Command::new("cc")
        .args(["-c", "-o", "/dev/null", "-I"])
        .arg(&header)
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&compiled.stderr).into_owned();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(compiled.status.success(), "{said}");
}

#[test]
fn what_the_loop_in_the_kernel_has_not_is_refused_by_name() {
    let job = |change: fn(&mut BlockWorkload)| {
        let job = block_job("a").blocks(|work| {
            work.bursts = Some(Bursts::default());
            change(work);
        });
        let work = match &job.workload {
            Workload::Block(work) => work.as_ref().clone(),
            other => panic!("{other:?}"),
        };
        check(&job, &work)
    };
    assert_eq!(job(|_| ()), None);
    let refused = |change, named: &str| {
        let why = job(change).unwrap();
        assert!(why.contains(named), "{why}");
    };
    refused(|work| work.bursts = None, "bursts");
    refused(|work| work.content.refill = true, "random data");
    refused(
        |work| work.load.pacing.max_latency_ns = Some(Nanos(1)),
        "latency",
    );
    refused(
        |work| work.load.recording.record_operations_to = Some("f".to_owned()),
        "logs",
    );
}

#[test]
fn a_histogram_of_the_module_is_one_of_the_house() {
    let mut house = Histogram::new();
    let values = [0_u64, 5, 127, 128, 1000, 1_000_000, 17_000_000_000];
    for value in values {
        house.record(value);
    }
    // The rule of the module's header.
    let index = |value: u64| -> usize {
        let msb = (value | 1).ilog2();
        if msb <= 6 {
            return usize::try_from(value).unwrap();
        }
        let e = msb - 6;
        (e as usize + 1) * 64 + usize::try_from((value >> e) & 63).unwrap()
    };
    let mut buckets = vec![0; abi::BUCKETS];
    for value in values {
        buckets[index(value)] += 1;
    }
    let taken = Histogram::of_counts(buckets, 0, 17_000_000_000, house.sum());
    assert_eq!(taken, house);
}
