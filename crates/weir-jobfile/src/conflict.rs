//! Options that contradict each other, with the names of those concerned.
//!
//! In: a draft with all its options applied. Out: faults in the order in which a reader would
//! mend them. Not here: what each option takes by itself.

use weir_schema::catalogue::{ActsOn, EngineInfo, NameUse};
use weir_schema::{BlockSizes, Kind, PerKind, Size};
use weir_units::Bytes;

use crate::cpu_load;
use crate::diagnostic::Fault;
use crate::draft::{Direction, Draft, ExitWhat, RatesDraft};
use crate::finish::room_for_each;
use crate::resolve_verify::verify_conflicts;

/// A conflict and the options that it is about.
pub(crate) type Conflict = (Fault, &'static [&'static str]);

/// Every conflict of a job.
pub(crate) fn conflicts(draft: &Draft, engine: &EngineInfo, sizes: &BlockSizes) -> Vec<Conflict> {
    let mut found: Vec<Conflict> = Vec::new();
    let conflict = |message: &str| Fault::new("job.conflict", message);
    if draft.passes.time_based && draft.bounds.runtime_ns.is_none() {
        found.push((
            conflict("`time_based` needs a runtime")
                .label("how long?")
                .help("add runtime=10s, for example")
                .peer("fio: time_based requires a runtime/timeout setting"),
            &["time_based"],
        ));
    }
    if draft.think.pause_ns.0 == 0 && draft.think.after_ns.is_some() {
        found.push((
            conflict("`thinktime_iotime` without thinktime")
                .label("how long is the pause?")
                .peer("fio: thinktime_iotime requires thinktime to be set"),
            &["thinktime_iotime"],
        ));
    }
    if draft.exit_all_on_error && !draft.exit_all && draft.exit_what != ExitWhat::Group {
        found.push((
            conflict("`exitall_on_error` stops the job's group only")
                .label("not with this")
                .help("leave exit_what out"),
            &["exit_what", "exitall_on_error"],
        ));
    }
    rate_conflicts(&draft.rate, &mut found);
    verify_conflicts(draft, &mut found);
    found.extend(draft.feedback.conflicts());
    size_conflicts(draft, engine, sizes, &mut found);
    if draft.offloaded && engine.synchronous && draft.depth.queue_depth.0 > 1 {
        found.push((
            conflict("a synchronous engine carries out one operation at a time")
                .label("offloaded with a queue depth above 1")
                .help("use libaio or io_uring, or numjobs instead of iodepth"),
            &["io_submit_mode", "iodepth"],
        ));
    }
    if draft.replay.path.is_some() && (draft.passes.loops > 1 || draft.passes.time_based) {
        found.push((
            conflict("a recorded pattern is carried out once")
                .label("not with read_iolog")
                .help("leave it out, or repeat the job's section"),
            &["loops", "time_based"],
        ));
    }
    found.extend(zone_conflict(draft));
    found.extend(depth_conflict(draft));
    found.extend(renewal_conflict(draft, engine));
    found.extend(cpu_load::conflict(draft));
    found.extend(dedupe_conflict(draft));
    found
}

/// Conflict of files removed between loops: they have to come back by writing, and must be nobody
/// else's.
fn renewal_conflict(draft: &Draft, engine: &EngineInfo) -> Option<Conflict> {
    if !draft.renew_each_pass || draft.passes.loops < 2 || engine.no_target() {
        return None;
    }
    let brings_back = match engine.acts_on {
        ActsOn::Names(usage) => usage == NameUse::Makes,
        _ => draft.direction == Direction::Write,
    };
    let is_shared = draft.clones > 1 && !draft.filenames.is_empty();
    let (label, help) = match (brings_back, is_shared) {
        (false, _) => (
            "the second loop would find nothing",
            "leave it out, or write the files with rw=write",
        ),
        (true, true) => (
            "the workers would remove each other's files",
            "leave filename out: each worker has files of its own then",
        ),
        (true, false) => return None,
    };
    let fault = Fault::new(
        "job.conflict",
        "`unlink_each_loop` removes the files between loops",
    );
    Some((fault.label(label).help(help), &["unlink_each_loop"]))
}

/// Each operation in flight has memory of its own, and far fewer keep any device busy.
fn depth_conflict(draft: &Draft) -> Option<Conflict> {
    const MOST: u32 = 1 << 24;
    let fault = Fault::new("job.conflict", "`iodepth` is beyond what memory holds");
    let fault = fault.label(format!("up to {MOST}"));
    (draft.depth.queue_depth.0 > MOST).then_some((fault, &["iodepth"][..]))
}

/// Each block of the working set is there once before it comes again.
fn zone_conflict(draft: &Draft) -> Option<Conflict> {
    let conflict = match (draft.zones.on, draft.zones.bytes) {
        (true, 0) => {
            let fault = Fault::new("job.conflict", "`zonemode=strided` needs a zonesize")
                .label("how much of each zone?")
                .peer("fio: --zonesize must be specified when using --zonemode=strided.");
            (fault, &["zonemode"][..])
        }
        (false, 1..) => {
            let fault = Fault::new("job.conflict", "`zonesize` without a zonemode")
                .label("there are no zones")
                .help("add zonemode=strided")
                .peer("fio: --zonemode=none and --zonesize are not compatible.");
            (fault, &["zonesize", "zonemode"][..])
        }
        _ => return None,
    };
    Some(conflict)
}

fn dedupe_conflict(draft: &Draft) -> Option<Conflict> {
    let (again, set) = (draft.content.dedupe_percent, draft.dedupe_set_percent);
    (draft.dedupe_set && again + set > 100).then(|| {
        let fault = Fault::new(
            "job.conflict",
            format!("{again}% repeated blocks leave no room for a working set of {set}%"),
        )
        .label("more than 100% together")
        .peer(format!(
            "fio: impossible to reach expected dedupe percentage {again} since {set} percentage \
             of size is reserved to dedupe working set (those are unique pages)"
        ));
        (
            fault,
            &["dedupe_working_set_percentage", "dedupe_percentage"][..],
        )
    })
}

fn rate_conflicts(rate: &RatesDraft, found: &mut Vec<Conflict>) {
    let any = |p: &PerKind<Option<u64>>| {
        [p.read, p.write, p.trim]
            .into_iter()
            .flatten()
            .any(|n| n > 0)
    };
    if (any(&rate.bytes) && any(&rate.ops)) || (any(&rate.min_bytes) && any(&rate.min_ops)) {
        found.push((
            Fault::new(
                "job.conflict",
                "rates in bytes and in operations at the same time",
            )
            .label("one of both")
            .peer("fio: rate and rate_iops are mutually exclusive"),
            &["rate_iops", "rate", "rate_iops_min", "rate_min"],
        ));
    }
    for (index, kind) in Kind::DATA.into_iter().enumerate() {
        let above = |min: &PerKind<Option<u64>>, rate: &PerKind<Option<u64>>| {
            rate.of(kind)
                .filter(|r| *r > 0)
                .is_some_and(|r| min.of(kind).unwrap_or(0) > r)
        };
        if above(&rate.min_bytes, &rate.bytes) || above(&rate.min_ops, &rate.ops) {
            found.push((
                Fault::new(
                    "job.conflict",
                    format!("the minimum rate of {}s exceeds the rate", kind.name()),
                )
                .label("more than the job may reach")
                .peer(format!("fio: minimum rate exceeds rate, ddir {index}")),
                &["rate_min", "rate_iops_min"],
            ));
            return;
        }
    }
}

fn size_conflicts(
    draft: &Draft,
    engine: &EngineInfo,
    sizes: &BlockSizes,
    found: &mut Vec<Conflict>,
) {
    let bounded = draft.replay.path.is_some()
        || draft.region.size.is_some()
        || draft.region.file_size_bytes.is_some();
    if engine.acts_on == ActsOn::Size && !bounded {
        found.push((
            Fault::new("job.conflict", format!("`{}` has no size", draft.name))
                .label(format!(
                    "engine {} has no file to ask for its size",
                    engine.name
                ))
                .help("add size=1g, for example")
                .peer(format!("{}: you need to specify size=", draft.name)),
            &["ioengine"],
        ));
    }
    let smallest = room_for_each(draft, sizes);
    if let Some(Size::Bytes(Bytes(size))) = draft.region.size
        && size < smallest
    {
        found.push((
            Fault::new(
                "job.conflict",
                format!("the size {size} is below the block size {smallest}"),
            )
            .label("not one block fits")
            .peer(format!(
                "fio: size too small, must not be less than minimum block size: {size} < {smallest}"
            )),
            &["size", "bs", "bsrange", "bssplit"],
        ));
    }
}
