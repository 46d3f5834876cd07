//! From a finished draft to the plan's job: what options mean together.
//!
//! In: a draft with all its options applied. Out: the job and notes. Not here: which options
//! contradict each other ([`crate::conflict`]), groups and the order of jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use weir_schema::catalogue::{ActsOn, EngineInfo};
use weir_schema::{
    Access, BlockSize, BlockSizes, BlockWorkload, Bounds, ByKind, Content, Distribution,
    EngineChoice, ErrorCode, ErrorPolicy, ExitAll, FileNames, Job, JobEnd, JobReport, Kind, Load,
    MinimumRate, Mix, Pacing, PerKind, Recording, Replay, Schedule, Setting, ShellCommand, Start,
    StartDelay, Targets, Timing, Word, Zones,
};
use weir_units::{Bytes, BytesPerSec, Iops, QueueDepth};

use crate::conflict::{Conflict, conflicts};
use crate::draft::{Direction, Draft, ErrorsDraft, ExitWhat, RatesDraft, ReplayDraft};
use crate::report::CompileReport;
use crate::resolve_verify::resolve_verify;
use crate::{Dialect, cpu_load};

/// Block size when none is given.
const DEFAULT_BLOCK: u64 = 4096;
/// The error of a failed transfer.
const EIO: i32 = 5;

/// Makes the plan's job, with what is large taken out of the draft: job files have thousands.
pub(crate) fn finish(
    draft: &mut Draft,
    engine: &EngineInfo,
    read_only: bool,
    words: Vec<Word>,
    report: &mut CompileReport,
) -> Result<Job, Vec<Conflict>> {
    let sizes = block_sizes(draft);
    let conflicts = conflicts(draft, engine, &sizes);
    if !conflicts.is_empty() {
        return Err(conflicts);
    }
    let access = access(draft, report);
    let mix = mix(draft);
    let load = load(draft, engine);
    let verify = resolve_verify(draft, (engine, &mix), report);
    let content = content(draft);
    let chosen = chosen(draft, engine);
    let targets = targets(draft, engine, read_only);
    let (min_ns, max_ns) = draft.delay;
    let before = command(&draft.name, "prerun", draft.command_before.as_deref());
    let after = command(&draft.name, "postrun", draft.command_after.as_deref());
    let work = BlockWorkload {
        mix,
        access,
        sizes,
        targets,
        region: take(&mut draft.region),
        content,
        flush: draft.flush,
        verify,
        passes: draft.passes,
        bursts: None,
        no_overlap: draft.no_overlap,
        memory: take(&mut draft.memory),
        load,
    };
    Ok(Job {
        name: take(&mut draft.name),
        description: take(&mut draft.description),
        clones: draft.clones,
        start: Start {
            barrier: draft.stonewall,
            wait_for: take(&mut draft.wait_for),
            delay: (max_ns.0 > 0).then_some(StartDelay { min_ns, max_ns }),
            before,
            after,
            ..Start::default()
        },
        end: JobEnd {
            exit_all: exit_all(draft),
            until_other_jobs_end: draft.until_other_jobs_end,
        },
        placement: take(&mut draft.placement),
        engine: chosen,
        workload: work.into(),
        report: JobReport {
            merge: draft.merge,
            hidden: draft.hidden,
        },
        words,
        extensions: draft.fio.extensions(),
    })
}

/// The loop over operations.
fn load(draft: &mut Draft, engine: &EngineInfo) -> Load {
    let is_endless = draft.passes.time_based && draft.bounds.runtime_ns.is_some();
    let of_all_passes = |n: u64| n.saturating_mul(draft.passes.loops);
    let operations = draft.bounds.operations.filter(|_| !is_endless);
    Load {
        depth: depth(draft, engine),
        bounds: Bounds {
            operations: operations.map(of_all_passes),
            steady: draft.feedback.steady(),
            ..draft.bounds
        },
        pacing: pacing(draft),
        errors: errors(&draft.errors),
        minimum_rate: minimum_rate(&draft.rate),
        recording: recording(draft, engine),
    }
}

/// The engine with its settings. A peer on the network may be named like a file.
fn chosen(draft: &mut Draft, engine: &EngineInfo) -> EngineChoice {
    const PEER: &str = "host";
    let mut settings = take(&mut draft.engine.settings);
    let takes_peer = engine.settings.iter().any(|known| known.name == PEER);
    if let Some(name) = draft.filenames.first().filter(|_| takes_peer) {
        let named = || Setting::Text(name.clone());
        settings.entry(PEER.to_owned()).or_insert_with(named);
    }
    EngineChoice {
        name: take(&mut draft.engine.name),
        settings,
    }
}

/// Errors after which the job goes on: for each kind with `go_on`, those that are listed, or else
/// failed transfers; every other error ends it.
fn errors(given: &ErrorsDraft) -> ErrorPolicy {
    let after = |kind: Kind| match (*given.go_on.of(kind), given.ignore.of(kind)) {
        (true, list) if list.is_empty() => Some(vec![EIO.into()]),
        (true, list) => Some(list.iter().copied().map(ErrorCode::from).collect()),
        (false, _) => None,
    };
    let mut ignore = PerKind::from_fn(after).given_by_name();
    if let Some(list) = ignore.get(&Kind::Write.into()) {
        // Flushes serve writes.
        ignore.insert(Kind::Sync.into(), list.clone());
    }
    ErrorPolicy {
        ignore,
        go_on: BTreeSet::new(),
        fail_at: None,
        go_on_mismatch: given.go_on_mismatch,
        report_errors: given.report_errors,
    }
}

/// The room that a block of each kind that occurs needs.
pub(crate) fn room_for_each(draft: &Draft, sizes: &BlockSizes) -> u64 {
    let mix = mix(draft);
    let smallest = |k: Kind| sizes.size.of(k).min().0;
    let needed = if sizes.by_pattern {
        Kind::DATA.into_iter().map(smallest).min()
    } else {
        let occurring = Kind::DATA.into_iter().filter(|k| mix.has(*k));
        occurring.map(smallest).max()
    };
    needed.unwrap_or(DEFAULT_BLOCK)
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
        size: PerKind::from_fn(one),
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

fn access(draft: &Draft, report: &mut CompileReport) -> Access {
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
        PerKind::from_fn(one)
    });
    Access {
        random: draft.random,
        distribution: draft.distribution.clone(),
        generator: draft.generator,
        map: draft.map && uniform && draft.align.is_none(),
        random_percent: PerKind::from_fn(|kind| percent(*share.of(kind))),
        skip_bytes: draft.skip_bytes,
        step: draft.step,
        steps: draft.steps,
        align_bytes: align,
        seed: draft.seed.value(),
        zones: zones(draft),
        replay: replay(&draft.replay),
    }
}

/// Shell command whose output goes where fio puts it; a job named like a device has no directory
/// there.
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
        in_pieces: given.in_pieces,
    })
}

/// Names of generated files; `name=` renames the job and not its files.
fn pattern(draft: &mut Draft) -> String {
    if draft.name == draft.section {
        take(&mut draft.filename_format)
    } else {
        draft.filename_format.replace("$jobname", &draft.section)
    }
}

fn targets(draft: &mut Draft, engine: &EngineInfo, read_only: bool) -> Targets {
    let directories = take(&mut draft.directories);
    let files = if engine.no_target() && draft.filenames.is_empty() {
        FileNames::None
    } else if !draft.opened_below.is_empty() {
        FileNames::Below {
            directories: take(&mut draft.opened_below),
            paths: take(&mut draft.filenames),
        }
    } else if draft.filenames.is_empty() {
        FileNames::Generated {
            pattern: pattern(draft),
            directories,
            count: draft.file_count,
        }
    } else {
        FileNames::Listed {
            paths: take(&mut draft.filenames),
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
        renew_each_pass: draft.renew_each_pass,
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

fn depth(draft: &Draft, engine: &EngineInfo) -> weir_schema::Depth {
    let mut depth = draft.depth;
    if engine.synchronous {
        depth.queue_depth = QueueDepth(1);
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

fn each<T>(given: &PerKind<Option<u64>>, unit: fn(f64) -> T) -> Option<ByKind<T>> {
    let one = |kind: Kind| given.of(kind).filter(|n| *n > 0).map(|n| unit(float(n)));
    let limits = PerKind::from_fn(one);
    let is_any = Kind::DATA.iter().any(|kind| limits.of(*kind).is_some());
    is_any.then(|| limits.given_by_name())
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
        thinktime: cpu_load::pause(draft).or((draft.think.pause_ns.0 > 0).then_some(draft.think)),
        pause_after_ns: BTreeMap::new(),
        max_latency_ns: draft.max_latency,
        latency_target: draft.feedback.latency_target(),
        flow: draft.feedback.flow(),
    }
}

fn minimum_rate(rate: &RatesDraft) -> Option<MinimumRate> {
    let bytes = each(&rate.min_bytes, BytesPerSec);
    let ops = each(&rate.min_ops, Iops);
    (bytes.is_some() || ops.is_some()).then(|| MinimumRate {
        bytes_per_s: bytes.unwrap_or_default(),
        ops_per_s: ops.unwrap_or_default(),
        cycle_ns: rate.cycle,
    })
}

/// Without latencies the clock is read at the ends only, unless something needs each one.
fn recording(draft: &mut Draft, engine: &EngineInfo) -> Recording {
    let percentiles = take(&mut draft.recording.percentiles);
    let r = &draft.recording;
    // fio prints the latency of what is done to whole files as the completion's alone.
    let by_name = matches!(engine.acts_on, ActsOn::Names(_)) && draft.dialect == Dialect::Fio;
    let searches = draft.feedback.latency_target().is_some();
    let needed = draft.max_latency.is_some() || searches || draft.logs.wants_operations();
    Recording {
        timing: if r.slat || r.clat || r.lat || needed {
            r.timing
        } else {
            Timing::EndsOnly
        },
        lat: (r.lat && !by_name) || searches,
        logs: draft.logs.plan(&draft.name, [r.slat, r.clat, r.lat]),
        percentiles,
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
