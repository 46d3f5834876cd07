//! From a finished draft to the plan's job: what options mean together.
//!
//! In: a draft with all its options applied. Out: the job, notes, and every conflict between
//! options with the names of those concerned. Not here: groups and the order of jobs.

use weir_schema::catalogue::{ActsOn, EngineInfo};
use weir_schema::{
    Access, BlockSize, BlockSizes, BlockWorkload, Bounds, Content, Distribution, EngineChoice,
    ExitAll, FileNames, Job, Kind, MinimumRate, Mix, Pacing, PerKind, Recording, Replay, Schedule,
    ShellCommand, Size, Start, StartDelay, Targets, Timing, Word, Workload, Zones,
};
use weir_units::{Bytes, BytesPerSec, Iops, QueueDepth};

use crate::diagnostic::Fault;
use crate::draft::{Direction, Draft, ExitWhat, Rates, ReplayDraft};
use crate::report::Report;
use crate::verified::{verified, verify_conflicts};
use crate::{Door, busy};

/// A conflict and the options that it is about.
pub(crate) type Conflict = (Fault, &'static [&'static str]);

/// Block size when none is given.
const DEFAULT_BLOCK: u64 = 4096;

/// Makes the plan's job.
pub(crate) fn finish(
    draft: Draft,
    engine: &EngineInfo,
    read_only: bool,
    words: Vec<Word>,
    report: &mut Report,
) -> Result<Job, Vec<Conflict>> {
    let sizes = block_sizes(&draft);
    let conflicts = conflicts(&draft, engine, &sizes);
    if !conflicts.is_empty() {
        return Err(conflicts);
    }
    let access = access(&draft, report);
    let mix = mix(&draft);
    let targets = targets(&draft, engine, read_only);
    let depth = depth(&draft, engine, report);
    let pacing = pacing(&draft);
    let recording = recording(&draft, engine);
    let exit_all = exit_all(&draft);
    let verify = verified(&draft, engine, report);
    let content = content(&draft);
    draft.steer.note_idle(&draft.name, report);
    let (min_ns, max_ns) = draft.delay;
    let before = command(&draft.name, "prerun", draft.command_before.as_deref());
    let after = command(&draft.name, "postrun", draft.command_after.as_deref());
    Ok(Job {
        name: draft.name,
        description: draft.description,
        clones: draft.clones,
        merge: draft.merge,
        hidden: draft.hidden,
        start: Start {
            barrier: draft.stonewall,
            wait_for: draft.wait_for,
            delay: (max_ns.0 > 0).then_some(StartDelay { min_ns, max_ns }),
            before,
            after,
        },
        workload: Workload::Block(Box::new(BlockWorkload {
            mix,
            access,
            sizes,
            targets,
            region: draft.region,
            content,
            flush: draft.flush,
            verify,
        })),
        engine: EngineChoice {
            name: draft.engine.name,
            settings: draft.engine.settings,
        },
        depth,
        bounds: Bounds {
            steady: draft.steer.steady(),
            ..draft.bounds
        },
        pacing,
        minimum_rate: minimum_rate(&draft.rate),
        placement: draft.placement,
        memory: draft.memory,
        recording,
        errors: draft.errors,
        exit_all,
        words,
    })
}

fn conflicts(draft: &Draft, engine: &EngineInfo, sizes: &BlockSizes) -> Vec<Conflict> {
    let mut found: Vec<Conflict> = Vec::new();
    let conflict = |message: &str| Fault::new("job.conflict", message);
    if draft.bounds.time_based && draft.bounds.runtime_ns.is_none() {
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
    found.extend(draft.steer.conflicts());
    size_conflicts(draft, engine, sizes, &mut found);
    if draft.offloaded && engine.synchronous && draft.depth.queue_depth.0 > 1 {
        found.push((
            conflict("a synchronous engine carries out one operation at a time")
                .label("offloaded with a queue depth above 1")
                .help("use libaio or io_uring, or numjobs instead of iodepth"),
            &["io_submit_mode", "iodepth"],
        ));
    }
    if draft.replay.path.is_some() && (draft.bounds.loops > 1 || draft.bounds.time_based) {
        found.push((
            conflict("a recorded pattern is carried out once")
                .label("not with read_iolog")
                .help("leave it out, or repeat the job's section"),
            &["loops", "time_based"],
        ));
    }
    if draft.zones.on && draft.zones.bytes == 0 {
        found.push((
            conflict("`zonemode=strided` needs a zonesize")
                .label("how much of each zone?")
                .peer("fio: --zonesize must be specified when using --zonemode=strided."),
            &["zonemode"],
        ));
    }
    found.extend(busy::conflict(draft));
    found.extend(dedupe_conflict(draft));
    found
}

/// Each block of the working set is there once before it comes again.
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

fn rate_conflicts(rate: &Rates, found: &mut Vec<Conflict>) {
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
    let smallest = smallest_block(draft, sizes);
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

/// The smallest block of the kinds that occur.
fn smallest_block(draft: &Draft, sizes: &BlockSizes) -> u64 {
    let mix = mix(draft);
    let kinds = Kind::DATA
        .into_iter()
        .filter(|k| sizes.by_pattern || mix.has(*k));
    kinds
        .map(|k| sizes.size.of(k).min().0)
        .min()
        .unwrap_or(DEFAULT_BLOCK)
}

fn block_sizes(draft: &Draft) -> BlockSizes {
    let given = &draft.sizes;
    let one = |kind: Kind| {
        if let Some(split) = &given.split {
            BlockSize::Split {
                entries: split.of(kind).clone(),
            }
        } else if let Some((min, max)) = given.range.as_ref().map(|r| *r.of(kind)) {
            BlockSize::Range {
                min_bytes: Bytes(min),
                max_bytes: Bytes(max),
                unaligned: given.unaligned,
            }
        } else {
            BlockSize::Fixed {
                bytes: Bytes(given.fixed.of(kind).unwrap_or(DEFAULT_BLOCK)),
            }
        }
    };
    BlockSizes {
        size: PerKind {
            read: one(Kind::Read),
            write: one(Kind::Write),
            trim: one(Kind::Trim),
        },
        by_pattern: given.by_pattern,
    }
}

fn mix(draft: &Draft) -> Mix {
    match draft.direction {
        Direction::Read => Mix::only(Kind::Read),
        Direction::Write => Mix::only(Kind::Write),
        Direction::Trim => Mix::only(Kind::Trim),
        Direction::TrimWrite => Mix {
            trim_then_write: true,
            ..Mix::only(Kind::Trim)
        },
        Direction::Mixed => Mix {
            read_percent: draft.read_percent,
            write_percent: 100 - draft.read_percent,
            trim_percent: 0,
            trim_then_write: false,
        },
    }
}

fn access(draft: &Draft, report: &mut Report) -> Access {
    let percent = |p: Option<u64>| u8::try_from(p.unwrap_or(100)).unwrap_or(100);
    let share = &draft.random_percent;
    let uniform = draft.distribution == Distribution::Uniform;
    if draft.align.is_some() && draft.random && draft.map && uniform {
        report.note(format!(
            "{}: with blockalign the random map is off",
            draft.name
        ));
    }
    let align = draft.align.map(|align| {
        let sizes = block_sizes(draft);
        let one = |kind| {
            align
                .of(kind)
                .map_or_else(|| sizes.size.of(kind).min(), Bytes)
        };
        PerKind {
            read: one(Kind::Read),
            write: one(Kind::Write),
            trim: one(Kind::Trim),
        }
    });
    Access {
        random: draft.random,
        distribution: draft.distribution.clone(),
        generator: draft.generator,
        map: draft.map && uniform && draft.align.is_none(),
        random_percent: PerKind {
            read: percent(share.read),
            write: percent(share.write),
            trim: percent(share.trim),
        },
        skip_bytes: draft.skip_bytes,
        step: draft.step,
        steps: draft.steps,
        align_bytes: align,
        seed: draft.seed.value(),
        zones: zones(draft),
        replay: replay(&draft.replay),
    }
}

/// What a command says goes where fio puts it; a job named like a device has no directory there.
fn command(job: &str, when: &str, text: Option<&str>) -> Option<ShellCommand> {
    Some(ShellCommand {
        text: text?.to_owned(),
        output: format!("{}.{when}.txt", job.replace('/', ".")),
    })
}

fn zones(draft: &Draft) -> Option<Zones> {
    let given = draft.zones;
    let bytes = given.bytes;
    let range = if given.range == 0 { bytes } else { given.range };
    given.on.then_some(Zones {
        bytes: Bytes(bytes),
        range: Bytes(range),
        skip: Bytes(given.skip),
    })
}

fn replay(given: &ReplayDraft) -> Option<Replay> {
    Some(Replay {
        path: given.path.clone()?,
        no_pauses: given.no_pauses,
        onto: given.onto.clone(),
        divide_offsets: given.divide_offsets,
        align_bytes: Bytes(given.align),
        rate_percent: given.rate_percent,
        leave_out: given.leave_out.clone(),
    })
}

/// Names of generated files; `name=` renames the job and not its files.
fn pattern(draft: &Draft) -> String {
    if draft.name == draft.section {
        draft.filename_format.clone()
    } else {
        draft.filename_format.replace("$jobname", &draft.section)
    }
}

fn targets(draft: &Draft, engine: &EngineInfo, read_only: bool) -> Targets {
    let directories = draft.directories.clone();
    let files = if engine.no_target() && draft.filenames.is_empty() {
        FileNames::None
    } else if !draft.opened_below.is_empty() {
        FileNames::Below {
            directories: draft.opened_below.clone(),
            paths: draft.filenames.clone(),
        }
    } else if draft.filenames.is_empty() {
        FileNames::Generated {
            pattern: pattern(draft),
            directories,
            count: draft.file_count,
        }
    } else {
        FileNames::Listed {
            paths: draft.filenames.clone(),
            directories,
        }
    };
    let mut open = draft.open;
    open.read_only = read_only;
    open.drop_cache &= !open.read_first;
    Targets {
        files,
        create: draft.create,
        open,
        remove_after: draft.remove_after,
        allow_mounted_write: draft.allow_mounted_write,
        service: draft.service,
        append: draft.append,
    }
}

/// Scrambling is for content that stays the same: other content already differs, or must not.
fn content(draft: &Draft) -> Content {
    let mut content = draft.content.clone();
    let fixed = content.zero || content.pattern.is_some();
    content.scramble = !fixed && draft.scramble.unwrap_or(!content.refill);
    let set = draft.dedupe_set && content.dedupe_percent > 0;
    content.dedupe_set_percent = set.then_some(draft.dedupe_set_percent);
    content
}

fn depth(draft: &Draft, engine: &EngineInfo, report: &mut Report) -> weir_schema::Depth {
    let mut depth = draft.depth;
    if engine.synchronous && depth.queue_depth.0 > 1 {
        depth.queue_depth = QueueDepth(1);
        report.note(
            "both iodepth >= 1 and synchronous I/O engine are selected, queue depth will be \
             capped at 1"
                .to_owned(),
        );
    }
    let most = depth.queue_depth.0;
    depth.submit_batch = if depth.submit_batch == 0 {
        most
    } else {
        depth.submit_batch.min(most)
    };
    depth.reap_min = depth.reap_min.min(most);
    if depth.reap_max > 0 {
        depth.reap_max = depth.reap_max.clamp(depth.reap_min.max(1), most);
    }
    depth.refill_below = depth.refill_below.filter(|low| *low < most);
    depth
}

fn float(n: u64) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a rate needs no more than 53 bits"
    )]
    let float = n as f64;
    float
}

fn each<T>(given: &PerKind<Option<u64>>, unit: fn(f64) -> T) -> Option<PerKind<Option<T>>> {
    let one = |kind: Kind| given.of(kind).filter(|n| *n > 0).map(|n| unit(float(n)));
    let all = PerKind {
        read: one(Kind::Read),
        write: one(Kind::Write),
        trim: one(Kind::Trim),
    };
    let some = all.read.is_some() || all.write.is_some() || all.trim.is_some();
    some.then_some(all)
}

fn pacing(draft: &Draft) -> Pacing {
    let rate = &draft.rate;
    let (poisson, ignore_thinktime) = (rate.poisson, rate.ignore_thinktime);
    let open_loop = rate.open_loop || draft.offloaded || poisson;
    let ops = each(&rate.ops, Iops).map(|limit_per_s| Schedule::OpsPerSecond {
        limit_per_s,
        poisson,
        open_loop,
        ignore_thinktime,
    });
    let schedule = ops.or_else(|| {
        each(&rate.bytes, BytesPerSec).map(|limit_bytes_per_s| Schedule::BytesPerSecond {
            limit_bytes_per_s,
            poisson,
            open_loop,
            ignore_thinktime,
        })
    });
    Pacing {
        schedule,
        thinktime: busy::pause(draft).or((draft.think.pause_ns.0 > 0).then_some(draft.think)),
        max_latency_ns: draft.max_latency,
        latency_target: draft.steer.latency_target(),
        flow: draft.steer.flow(),
    }
}

fn minimum_rate(rate: &Rates) -> Option<MinimumRate> {
    let bytes = each(&rate.min_bytes, BytesPerSec);
    let ops = each(&rate.min_ops, Iops);
    (bytes.is_some() || ops.is_some()).then(|| MinimumRate {
        bytes_per_s: bytes.unwrap_or_default(),
        ops_per_s: ops.unwrap_or_default(),
        cycle_ns: rate.cycle,
    })
}

/// Without latencies the clock is read at the ends only, unless something needs each one.
fn recording(draft: &Draft, engine: &EngineInfo) -> Recording {
    let r = &draft.recording;
    // fio prints the latency of what is done to whole files as the completion's alone.
    let by_name = matches!(engine.acts_on, ActsOn::Names(_)) && draft.door == Door::Fio;
    let searches = draft.steer.latency_target().is_some();
    let needed = draft.max_latency.is_some() || searches || draft.logs.wants_operations();
    Recording {
        timing: if r.slat || r.clat || r.lat || needed {
            r.timing
        } else {
            Timing::EndsOnly
        },
        lat: (r.lat && !by_name) || searches,
        logs: draft.logs.plan(&draft.name),
        ..r.clone()
    }
}

fn exit_all(draft: &Draft) -> Option<ExitAll> {
    if draft.exit_all {
        return Some(match draft.exit_what {
            ExitWhat::Group => ExitAll::Group,
            ExitWhat::Running => ExitAll::Running,
            ExitWhat::Everything => ExitAll::Everything,
        });
    }
    draft.exit_all_on_error.then_some(ExitAll::GroupOnError)
}
