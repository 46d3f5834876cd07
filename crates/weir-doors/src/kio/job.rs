//! A thread of the plan as a job of block I/O, and back.
//!
//! In: the settings of a thread, flags for all threads. Out: a job of the house; of a job the settings
//! that it has. Not here: which threads there are.

use weir_schema::{
    BlockSizes, BlockWorkload, Bursts, EngineChoice, ExitAll, FileNames, Job, Kind, KindName, Mix,
    PerKind, SectorData, Setting, Size,
};
use weir_units::{Bytes, Nanos, QueueDepth};

use super::TargetFacts;
use super::settings::{Field, Settings};
use crate::given::GivenFlags;
use crate::machine::Machine;
use crate::refusal::Refusal;

/// Flags without meaning where no data is moved.
const OF_DATA: [&str; 6] = [
    "data",
    "size",
    "fua",
    "offset-align",
    "mix-unit",
    "thread-partition",
];

/// Inputs to a job.
pub(super) struct JobRequest<'a> {
    pub(super) given: &'a GivenFlags,
    pub(super) settings: Settings,
    pub(super) path: &'a str,
    pub(super) facts: &'a TargetFacts,
    pub(super) machine: &'a dyn Machine,
    pub(super) engine: &'static str,
    pub(super) runtime: u32,
    pub(super) thread: u32,
    pub(super) threads: u32,
    /// Number among all threads of the group.
    pub(super) index: usize,
    pub(super) cpus: Option<&'a [u32]>,
}

/// Note on the part of `--size` that is used, where that is less: only whole blocks are read and written.
pub(super) fn rounded(given: &GivenFlags, settings: &Settings) -> Option<String> {
    let block = settings.size(Field::BlockSize);
    let size: u64 = given.number("size");
    let whole = size - size % block;
    let note = format!("--size {size} is no multiple of {block}: {whole} bytes are done");
    (0 < whole && whole < size).then_some(note)
}

/// Makes the job.
///
/// # Errors
/// Settings that exclude each other.
pub(super) fn of(request: &JobRequest<'_>) -> Result<Job, Refusal> {
    let JobRequest { given, facts, .. } = request;
    let mut work = workload(request)?;
    let writes = work.mix.has(Kind::Write) || work.mix.has(Kind::Trim);
    let refuse = |why: String| Refusal::usage(format!("{}: {why}", request.path));
    if writes && facts.is_read_only {
        return Err(refuse(
            "it is read-only: take --read-mix-percent 100".to_owned(),
        ));
    }
    let is_guarded = writes && !given.has("force");
    if let Some(holds) = is_guarded
        .then(|| request.machine.held_data(request.path))
        .flatten()
    {
        return Err(refuse(format!(
            "it seems to hold {holds}, which would be overwritten\n  help: --force writes all the same"
        )));
    }
    if given.has("force") && !writes {
        return Err(Refusal::usage(
            "--force is about writes, and nothing is written; leave it out",
        ));
    }
    if writes && facts.is_zoned {
        return Err(refuse(
            "its zones are written in order, which this build does not do: take \
             --read-mix-percent 100"
                .to_owned(),
        ));
    }
    if given.has("fua") && !work.mix.has(Kind::Write) {
        return Err(Refusal::usage(
            "--fua is about writes, and nothing is written; leave it out",
        ));
    }
    work.targets.open.direct = facts.is_direct;
    work.targets.open.data_sync = given.has("fua");
    let engine = engine(request)?;
    let mut job = Job::of_blocks(&name(request), engine, work);
    let cpu = |cpus: &[u32]| cpus.get(request.index % cpus.len().max(1)).copied();
    job.placement.cpus = request.cpus.and_then(cpu).map(|cpu| vec![cpu]);
    // The limit is that of all threads together.
    let is_limited = job.load().errors.go_on.is_empty() || job.load().errors.fail_at.is_some();
    job.end.exit_all = is_limited.then_some(ExitAll::GroupOnError);
    job.placement.nodes = node(request).map(|node| vec![node]);
    Ok(job)
}

/// `thread 0`, with the device where a thread has several.
fn name(request: &JobRequest<'_>) -> String {
    if request.given.all("device").count() > 1 {
        format!("thread {} {}", request.thread, request.path)
    } else {
        format!("thread {}", request.thread)
    }
}

fn node(request: &JobRequest<'_>) -> Option<u32> {
    if request.given.is("numa", "auto") {
        request.facts.node
    } else {
        request.given.whole("numa")
    }
}

fn workload(request: &JobRequest<'_>) -> Result<BlockWorkload, Refusal> {
    use Field as F;
    let JobRequest {
        given, settings, ..
    } = request;
    let block = settings.size(F::BlockSize);
    let (low, length) = region(request);
    let stride = settings.get(F::OffsetStride);
    let mut work = BlockWorkload {
        mix: mix(given, settings)?,
        sizes: BlockSizes::fixed(Bytes(block)),
        bursts: Some(Bursts {
            reads: settings.count(F::ReadBurst),
            writes: settings.count(F::WriteBurst),
            drain: settings.get(F::BurstFinish) == 1,
            pause_behind: settings.get(F::BurstDelay) == 1,
            stream: u32::try_from(request.index).ok(),
            flush_only: given.is("op", "flush"),
        }),
        ..BlockWorkload::default()
    };
    work.access.random = settings.get(F::OffsetRandom) == 1;
    work.access.map = false;
    work.access.skip_bytes = stride - i64::try_from(block).unwrap_or(0);
    work.access.align_bytes = align(request)?.map(|align| PerKind::all(Bytes(align)));
    let seed = given.number("seed");
    work.access.seed = seed;
    work.region.offset = Some(Size::Bytes(Bytes(low)));
    work.region.size = Some(Size::Bytes(Bytes(length)));
    work.targets.files = FileNames::of(request.path);
    work.targets.create.allow = Some(false);
    work.content.zero = given.is("data", "zero");
    if given.is("data", "verify") {
        if work.mix.read_percent != 100 && work.mix.write_percent != 100 {
            return Err(Refusal::usage(
                "--data verify: reads between writes would meet blocks that nobody has written\n  help: \
                 take --op write --verify, or --op read",
            ));
        }
        work.content.sectors = Some(SectorData {
            seed,
            generation: 0,
        });
    }
    bound(request, length, &mut work)?;
    Ok(work)
}

/// Sets depth, bounds, pauses and the treatment of errors.
fn bound(request: &JobRequest<'_>, length: u64, work: &mut BlockWorkload) -> Result<(), Refusal> {
    use Field as F;
    let JobRequest {
        given, settings, ..
    } = request;
    let load = &mut work.load;
    load.depth.queue_depth = QueueDepth(settings.count(F::QueueDepth));
    load.depth.submit_batch = given.number("batch");
    load.depth.reap_min = u32::from(!given.is("complete", "spin"));
    load.bounds.runtime_ns = Some(Nanos::from_secs(request.runtime.into()));
    load.bounds.ramp_ns = Nanos::from_secs(given.number("ramp"));
    load.recording.interval_ns = Nanos::from_millis(given.number("interval"));
    load.bounds.operations = given.whole("ios");
    let size = given.whole::<u64>("size");
    let block = settings.size(F::BlockSize);
    if let Some(size) = size.filter(|size| *size < block) {
        return Err(Refusal::usage(format!(
            "--size {size}: less than an I/O, which has {block} bytes\n  help: take {block} or more, or a \
             smaller --block-size"
        )));
    }
    if given.has("verify") {
        if given.has("runtime") {
            return Err(Refusal::usage(
                "--verify: what is read back is what was written, which time alone does not say\n  help: \
                 take --ios or --size instead of --runtime; without them it is the region once",
            ));
        }
        load.bounds.runtime_ns = None;
        let once = (size.is_none() && load.bounds.operations.is_none()).then_some(length);
        work.passes.io_size = size.or(once).map(|bytes| Size::Bytes(Bytes(bytes)));
    } else {
        work.passes.io_size = size.map(|bytes| Size::Bytes(Bytes(bytes)));
    }
    let fail_at = given.number("error-limit");
    if fail_at != 1 {
        let errors = &mut work.load.errors;
        let kinds = Kind::DATA.into_iter().chain([Kind::Sync]);
        errors.go_on = kinds.map(KindName::from).collect();
        errors.go_on_mismatch = given.is("data", "verify");
        errors.fail_at = Some(fail_at).filter(|limit| *limit > 0);
    }
    for (kind, field) in [
        (Kind::Read, F::ReadSleepUsec),
        (Kind::Write, F::WriteSleepUsec),
    ] {
        let pause = settings.size(field);
        if pause > 0 {
            let pauses = &mut work.load.pacing.pause_after_ns;
            pauses.insert(kind.into(), Nanos::from_micros(pause));
        }
    }
    Ok(())
}

/// First byte and length of the thread's part.
fn region(request: &JobRequest<'_>) -> (u64, u64) {
    let settings = &request.settings;
    let (low, high) = (
        settings.size(Field::OffsetLow),
        settings.size(Field::OffsetHigh),
    );
    let length = high.saturating_sub(low);
    if !request.given.has("thread-partition") {
        return (low, length);
    }
    let block = settings.size(Field::BlockSize).max(1);
    let threads = u64::from(request.threads.max(1));
    let part = length / threads / block * block;
    let first = low + part * u64::from(request.thread);
    if request.thread + 1 == request.threads {
        (first, high - first)
    } else {
        (first, part)
    }
}

fn mix(given: &GivenFlags, settings: &Settings) -> Result<Mix, Refusal> {
    Ok(match given.text("op") {
        Some("read") => Mix::only(Kind::Read),
        Some("write") => Mix::only(Kind::Write),
        Some("trim") => Mix::only(Kind::Trim),
        Some("zone-append") => {
            return Err(Refusal::usage(
                "--op zone-append: zones are not written by this build\n  help: --op write is the \
                 nearest, on a device without zones",
            ));
        }
        Some("flush") => {
            if let Some(flag) = OF_DATA.into_iter().find(|flag| given.has(flag)) {
                return Err(Refusal::usage(format!(
                    "--{flag} is about what is read or written, and --op flush moves nothing; leave it out"
                )));
            }
            Mix::only(Kind::Write)
        }
        _ => {
            let read = u8::try_from(settings.get(Field::ReadMixPercent)).unwrap_or(100);
            Mix {
                read_percent: read,
                write_percent: 100_u8.saturating_sub(read),
                ..Mix::only(Kind::Read)
            }
        }
    })
}

/// Alignment of random offsets, where it differs from the block size.
fn align(request: &JobRequest<'_>) -> Result<Option<u64>, Refusal> {
    let Some(text) = request.given.text("offset-align") else {
        return Ok(None);
    };
    if request.settings.get(Field::OffsetRandom) == 0 {
        return Err(Refusal::usage(
            "--offset-align is about random offsets: take --offset-random 1, or leave it out",
        ));
    }
    let unit = request.facts.logical_block.max(1);
    if text == "lbs" {
        return Ok(Some(unit));
    }
    let align: u64 = request.given.number("offset-align");
    if align.is_multiple_of(unit) {
        return Ok(Some(align));
    }
    Err(Refusal::usage(format!(
        "--offset-align {text}: {} has blocks of {unit} bytes; take a multiple of that",
        request.path
    )))
}

/// The engine with its settings.
fn engine(request: &JobRequest<'_>) -> Result<EngineChoice, Refusal> {
    let given = request.given;
    let depth = request.settings.get(Field::QueueDepth);
    let how = given.text("complete").unwrap_or("irq");
    let mut engine = EngineChoice::new(request.engine);
    let refuse = |why: &str| Err(Refusal::usage(why));
    if how == "poll" && request.facts.has_polling == Some(false) {
        return Err(Refusal::lacks(format!(
            "--complete poll: {} has no queues to poll\n  help: load its driver with some, for example \
             nvme.poll_queues=1 or null_blk poll_queues=1; or take --complete spin",
            request.path
        )));
    }
    match request.engine {
        "psync" if depth > 1 => {
            return refuse(
                "--engine sync has one I/O in flight, and queue_depth asks for more\n  help: take \
                 --queue-depth 1, or --engine uring",
            );
        }
        "psync" if how != "irq" => {
            return refuse(
                "--complete: the calls of --engine sync wait by themselves; leave it out",
            );
        }
        "libaio" if how == "poll" => {
            return refuse(
                "--complete poll: --engine aio cannot poll a device; --engine uring can",
            );
        }
        "psync" | "libaio" if given.has("nowait") => {
            return refuse(
                "--nowait: --engine uring and --engine kernel have it; leave it out here",
            );
        }
        "io_uring" => {
            if how == "poll" {
                set(&mut engine, "polled", Setting::Bool(true));
            }
            if given.has("nowait") {
                set(&mut engine, "no_wait", Setting::Bool(true));
            }
        }
        "kernel" => {
            set(&mut engine, "complete", Setting::Text(how.to_owned()));
            if given.has("nowait") {
                set(&mut engine, "no_wait", Setting::Bool(true));
            }
        }
        _ => {}
    }
    if given.number::<i64>("batch") > depth {
        return Err(Refusal::usage(format!(
            "--batch {}: no more than queue_depth, which is {depth}, can be handed over at once",
            given.text("batch").unwrap_or_default()
        )));
    }
    Ok(engine)
}

fn set(engine: &mut EngineChoice, name: &str, value: Setting) {
    engine.settings.insert(name.to_owned(), value);
}

/// Settings of a job, whatever door planned it; `None` where it does no block I/O.
pub(super) fn settings(job: &Job) -> Option<Settings> {
    use Field as F;
    let work = job.blocks()?;
    let bytes = |size: Option<Size>| match size {
        Some(Size::Bytes(bytes)) => i64::try_from(bytes.0).unwrap_or(i64::MAX),
        _ => 0,
    };
    let small = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let bursts = work.bursts.unwrap_or_default();
    let block = small(work.sizes.size.read.max().0);
    let low = bytes(work.region.offset);
    let pause = |kind: Kind| {
        let pause = work.load.pacing.pause_after_ns.get(&kind.into());
        pause.map_or(0, |pause| small(pause.0 / 1000))
    };
    let mut settings = Settings::default();
    for (field, value) in [
        (F::BlockSize, block),
        (F::BurstDelay, i64::from(bursts.pause_behind)),
        (F::BurstFinish, i64::from(bursts.drain)),
        (F::OffsetHigh, low.saturating_add(bytes(work.region.size))),
        (F::OffsetLow, low),
        (F::OffsetRandom, i64::from(work.access.random)),
        (
            F::OffsetStride,
            work.access.skip_bytes.saturating_add(block),
        ),
        (F::QueueDepth, i64::from(work.load.depth.queue_depth.0)),
        (F::ReadBurst, i64::from(bursts.reads)),
        (F::ReadMixPercent, i64::from(work.mix.read_percent)),
        (F::ReadSleepUsec, pause(Kind::Read)),
        (F::WriteBurst, i64::from(bursts.writes)),
        (F::WriteSleepUsec, pause(Kind::Write)),
    ] {
        settings.set(field, value);
    }
    Some(settings)
}
