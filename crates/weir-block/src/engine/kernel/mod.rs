//! Block I/O that is made inside the kernel, by weir's module: no system call lies in the measured
//! path.
//!
//! In: a job in bursts on one block device. Out: the counters and histograms of its thread in the
//! kernel, in the worker's recorders. The module's loop draws the same operations as every other engine
//! of the family, which is checked. Not here: the module (`kmod/kio`), which jobs run together
//! ([`session`]).

mod abi;
mod described;
mod session;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use weir_run::generate::Streams;
use weir_run::{LoopStop, OpFailure, OpFault, OpTarget, WorkerContext, failure};
use weir_schema::catalogue::{ActsOn, EngineInfo, SettingInfo, SettingKind};
use weir_schema::{BlockWorkload, CpuUse, Failure, Job, Kind};
use weir_stats::Histogram;
use weir_sys::Availability;
use weir_units::{Bytes, Nanos};

use self::abi::{BurstDirection, RUNNING, Stats};
pub(crate) use self::session::KernelSessions;
use self::session::{Session, SessionTiming};
use super::{EngineEntry, EngineRun, Opens, Warnings, number, switch};
use crate::generate::mix::DataKind;
use crate::source::Extent;
use crate::source::bursts::BurstDraws;

/// Its name in plans.
pub(crate) const NAME: &str = "kernel";
/// The module's node.
const NODE: &str = "/dev/kio";
/// Interval between two looks at a running job.
const LOOK: Duration = Duration::from_millis(20);
/// Operations of each job that are compared with those of the family's generator.
const COMPARED: u32 = 256;

pub(super) const ENTRY: EngineEntry = EngineEntry {
    info: EngineInfo {
        name: NAME,
        summary: "block I/O made inside the kernel by weir's module: no system calls in between",
        settings: &[
            SettingInfo {
                name: "complete",
                value: SettingKind::Word(&["irq", "spin", "poll"]),
                default: "irq",
                help: "how completions are taken: asleep, looking, or asking the device",
            },
            switch(
                "no_wait",
                "false",
                "an operation that would wait is handed over again instead",
            ),
            number(
                "cpu",
                (0, 65_535),
                "any",
                "the CPU of the thread in the kernel",
            ),
        ],
        synchronous: false,
        acts_on: ActsOn::Data,
    },
    availability,
    is_inline: |_| false,
    opens: Opens::AsNeeded,
    drive,
};

fn availability() -> Availability {
    if Path::new(NODE).exists() {
        return Availability::Ready;
    }
    Availability::missing(
        "the kernel module kio (no /dev/kio)",
        "`weir kio build`, then `weir kio load`",
    )
}

/// A refusal of the module.
fn refused(target: &str, errno: Errno, why: &str) -> Failure {
    let error = std::io::Error::from(errno);
    let why = if why.is_empty() {
        error.to_string()
    } else {
        why.to_owned()
    };
    let cause = match errno {
        Errno::OPNOTSUPP | Errno::NOMEM => "missing",
        Errno::BUSY => "in_use",
        _ => "engine",
    };
    Failure {
        target: Some(target.to_owned()),
        ..failure(
            cause,
            Some(errno.raw_os_error()),
            format!("{target}: {why}"),
        )
    }
}

fn drive(run: EngineRun<'_, '_>) -> Result<LoopStop, Failure> {
    let EngineRun {
        worker,
        recipe,
        setup,
        ..
    } = run;
    let (Some(bursts), Some(&extent), Some(file)) = (
        recipe.workload.bursts,
        recipe.extents.first(),
        setup.files.first(),
    ) else {
        let why = "the kernel engine carries out jobs in bursts on one block device (`weir kio` plans them)";
        return Err(failure("plan", Some(libc::EINVAL), why));
    };
    if !setup.targets.first().is_some_and(|target| target.is_block) {
        let why = format!("{}: it is not a block device", file.path.display());
        return Err(failure("plan", Some(libc::ENOTBLK), why));
    }
    // The module holds the device for itself where it writes.
    drop(setup.targets);
    let mut job = described::job(&recipe, bursts, extent);
    described::apply_settings(&mut job, worker, &setup.choice);
    let load = worker.job.load();
    let timing = SessionTiming {
        runtime_ns: load.bounds.runtime_ns.map_or(0, |time| time.0),
        ramp_ns: load.bounds.ramp_ns.0,
        error_limit: if load.errors.go_on.is_empty() {
            1
        } else {
            load.errors.fail_at.unwrap_or(0)
        },
    };
    let writes =
        recipe.workload.carries_out(Kind::Write) || recipe.workload.carries_out(Kind::Trim);
    let session = setup.sessions.join(timing, &file.path, writes, &mut job)?;
    warn(&setup.warnings, job.notes);
    if !worker.wait_for_release() {
        return Ok(LoopStop::Asked);
    }
    session.start()?;
    let streams = Streams::new(recipe.seed, bursts.stream.unwrap_or(recipe.worker));
    let mut draws = BurstDraws::of(recipe.workload, bursts, extent, streams);
    let writes = writes_of(worker);
    let ended = watch(worker, &session, job.job, timing)?;
    if !bursts.flush_only {
        check_draws(&session, job.job, &mut draws, extent)?;
    }
    take_histograms(worker, &session, job.job, writes)?;
    let is_counted = timing.error_limit != 1 && !matches!(ended, LoopStop::Failed(_));
    match first_fault(&session, job.job, &file.path, is_counted) {
        Some(fault) => Err(fault),
        None => Ok(ended),
    }
}

/// Adds a warning for each note that the module made of a job.
fn warn(warnings: &Warnings, notes: u32) {
    for (note, id, text) in [
        (
            abi::NOTE_SPLIT,
            "split-blocks",
            "Each I/O is split by the block layer: its latency is that of several.",
        ),
        (
            abi::NOTE_TAG_WAITS,
            "tag-waits",
            "The depth is larger than the device's queue: submission includes waits for its tags.",
        ),
    ] {
        if notes & note != 0 {
            warnings.add(id, text.to_owned());
        }
    }
}

/// Looks at the job until it has ended, and passes on what is asked of the worker.
fn watch(
    worker: &mut WorkerContext<'_>,
    session: &Arc<Session>,
    job: u32,
    timing: SessionTiming,
) -> Result<LoopStop, Failure> {
    let scale = worker.scale.load();
    let began = worker.clock.now();
    worker.begin_elsewhere(began);
    let ramp_end = began.after(scale.to_ticks(Nanos(timing.ramp_ns)));
    let counts_from = if timing.ramp_ns > 0 { ramp_end } else { began };
    let mut in_ramp = timing.ramp_ns > 0;
    let mut asked = false;
    let mut shown = 0;
    let writes = writes_of(worker);
    let stats = loop {
        let stats = session
            .stats(job)
            .map_err(|errno| refused(NODE, errno, "the job cannot be looked at"))?;
        let done = stats.dirs.iter().map(|dir| dir.ios).sum();
        // The module's ramp ends a moment before or after this clock says so: its counters then begin
        // anew, and those of the worker must never go back without a word.
        let is_over = in_ramp && worker.clock.now() >= ramp_end;
        if is_over || done < shown {
            in_ramp &= !is_over;
            worker.live.reset();
            worker.live.started.set(counts_from.0);
        }
        shown = done;
        count(worker, &stats, writes);
        if stats.state != RUNNING {
            break stats;
        }
        if worker.stop.load(Ordering::Relaxed) != 0 && !asked {
            asked = true;
            session.stop();
            continue;
        }
        thread::sleep(LOOK);
    };
    let end = counts_from.after(scale.to_ticks(Nanos(stats.runtime_ns)));
    worker.end_elsewhere(
        end,
        CpuUse {
            system_ns: Nanos(stats.cpu_ns),
            voluntary_switches: stats.wakeups,
            first_cpu: Some(stats.cpu),
            last_cpu: Some(stats.cpu),
            ..CpuUse::default()
        },
    );
    Ok(stop_of(&stats, asked, timing))
}

/// The first operation that failed, unless failures are no more than counted, or that read what was not
/// written.
fn first_fault(session: &Session, job: u32, device: &Path, is_counted: bool) -> Option<Failure> {
    let step = abi::first_failure(session.file(), job)?;
    let shown = device.display().to_string();
    let is_wrong = step.code == abi::ERR_DATA;
    if is_counted && !is_wrong {
        return None;
    }
    let (kind, action) = match step.op {
        abi::OP_READ => (Kind::Read, "read"),
        abi::OP_TRIM => (Kind::Trim, "trim"),
        abi::OP_FLUSH => (Kind::Sync, "flush"),
        _ => (Kind::Write, "write"),
    };
    let (cause, message) = if is_wrong {
        let within = step.at.saturating_sub(step.offset);
        let message = format!(
            "{shown}: the data at offset {} is not what was written (from byte {within} on: {:016x} \
             instead of {:016x})",
            step.offset, step.got, step.expected
        );
        ("mismatch", message)
    } else {
        let code = usize::try_from(step.code).unwrap_or(usize::MAX);
        let name = abi::CODE_NAMES.get(code).copied().unwrap_or("OTHER");
        let error = std::io::Error::from_raw_os_error(step.error.abs());
        let message = format!(
            "{shown}: the {action} of {} bytes at offset {} failed: {name} ({error})",
            step.len, step.offset
        );
        ("io", message)
    };
    Some(Failure {
        target: Some(shown),
        kind: Some(kind.into()),
        offset_bytes: Some(Bytes(step.offset)),
        length_bytes: Some(Bytes(step.len.into())),
        ..failure(cause, Some(step.error.abs()), message)
    })
}

/// Reason that the job has ended.
fn stop_of(stats: &Stats, asked: bool, timing: SessionTiming) -> LoopStop {
    if stats.error != 0 {
        return LoopStop::Failed(OpFailure {
            fault: OpFault::Engine(stats.error.abs()),
            kind: 0,
            acts_on: OpTarget::default(),
            length: 0,
            moved: 0,
        });
    }
    if asked {
        LoopStop::Asked
    } else if timing.runtime_ns > 0 && stats.runtime_ns >= timing.runtime_ns {
        LoopStop::TimeUp
    } else {
        LoopStop::WorkDone
    }
}

/// The kind of what the module counts as a write, of a worker's job.
fn writes_of(worker: &WorkerContext<'_>) -> Kind {
    match worker.job.blocks() {
        Some(work) if work.bursts.is_some_and(|bursts| bursts.flush_only) => Kind::Sync,
        Some(work) if work.mix.trim_percent == 100 => Kind::Trim,
        _ => Kind::Write,
    }
}

/// Puts what the module has counted into the worker's counters, for whoever looks at them.
fn count(worker: &WorkerContext<'_>, stats: &Stats, writes: Kind) {
    let have_failed = stats.dirs.iter().filter(|dir| dir.errors > 0).count();
    for (dir, kind) in stats.dirs.iter().zip([Kind::Read, writes]) {
        let live = &worker.live.kinds[kind.index()];
        live.completed.set(dir.ios);
        live.bytes.set(dir.bytes);
        // Where both directions have failures the module does not say which failed how.
        if have_failed > 1 {
            live.set_failed([(libc::EIO, dir.errors)]);
        } else if dir.errors > 0 {
            live.set_failed(
                abi::ERRNOS
                    .into_iter()
                    .zip(stats.codes)
                    .filter(|(e, _)| *e != 0),
            );
        }
        live.issued.set(dir.ios + dir.errors);
    }
    let reads = &worker.live.kinds[Kind::Read.index()];
    if stats.state == RUNNING {
        reads.issued.add(u64::from(stats.inflight));
    }
}

/// The module has to draw what every engine of the family draws.
fn check_draws(
    session: &Session,
    job: u32,
    draws: &mut BurstDraws,
    extent: Extent,
) -> Result<(), Failure> {
    let steps = abi::steps(session.file(), job, COMPARED)
        .map_err(|errno| refused(NODE, errno, "the first operations cannot be read"))?;
    for (number, step) in steps.iter().enumerate() {
        let (kind, offset) = draws.next_operation();
        let op = match kind {
            DataKind::Read => abi::OP_READ,
            DataKind::Write => abi::OP_WRITE,
            DataKind::Trim => abi::OP_TRIM,
        };
        let offset = extent.start + offset;
        if (step.op, step.offset) != (op, offset) {
            let why = format!(
                "operation {number} was a {} at {}, and a {op} at {offset} was to be drawn: the \
                 module is of another version than weir (build and load it again)",
                step.op, step.offset
            );
            return Err(failure("engine", None, why));
        }
    }
    Ok(())
}

/// Takes the histograms of the job into the worker's recorders.
fn take_histograms(
    worker: &WorkerContext<'_>,
    session: &Session,
    job: u32,
    writes: Kind,
) -> Result<(), Failure> {
    let unreadable = |errno| refused(NODE, errno, "the histograms cannot be read");
    let stats = session.stats(job).map_err(unreadable)?;
    for (dir, kind) in [(0, Kind::Read), (1, writes)] {
        let counted = &stats.dirs[dir];
        if counted.ios == 0 {
            continue;
        }
        let live = &worker.live.kinds[kind.index()];
        for (which, recorder) in [
            (abi::SLAT, &live.slat),
            (abi::CLAT, &live.clat),
            (abi::LAT, &live.lat),
        ] {
            let number = u32::try_from(dir).unwrap_or(0);
            let buckets = abi::histogram(session.file(), job, which, number).map_err(unreadable)?;
            recorder.add(&histogram(buckets, counted, which));
        }
    }
    Ok(())
}

/// A histogram of the module: its buckets are the house's, the last one holds everything longer.
fn histogram(buckets: Vec<u64>, counted: &BurstDirection, which: u32) -> Histogram {
    let sum = &counted.sums[which as usize];
    Histogram::of_counts(buckets, sum.min_ns, sum.max_ns, u128::from(sum.sum_ns))
}

/// Settings of a job that the loop in the kernel does not have, each with why it is refused.
pub(crate) fn check(job: &Job, work: &BlockWorkload) -> Option<String> {
    let load = &work.load;
    let pacing = &load.pacing;
    let content = &work.content;
    let is_paced = pacing.schedule.is_some() || pacing.thinktime.is_some() || pacing.flow.is_some();
    let is_watched = pacing.max_latency_ns.is_some() || pacing.latency_target.is_some();
    let records = &load.recording;
    let is_logged = records.trace.is_some()
        || !records.logs.is_empty()
        || records.record_operations_to.is_some();
    let is_made = content.pattern.is_some()
        || content.compress_percent > 0
        || content.dedupe_percent > 0
        || content.refill;
    let rules = [
        (
            work.bursts.is_none(),
            "carries out jobs in bursts (`weir kio` plans them)",
        ),
        (is_paced, "has pauses after I/Os alone, and no rates"),
        (is_watched, "bounds no latency"),
        (is_logged, "logs no single I/O"),
        (is_made, "writes zeros or random data"),
        (work.passes.until_full, "goes on until its time is up"),
        (
            job.placement
                .cpus
                .as_ref()
                .is_some_and(|cpus| cpus.len() > 1),
            "runs a thread on one CPU, or on any",
        ),
    ];
    let broken = rules.into_iter().find(|(is_broken, _)| *is_broken);
    broken.map(|(_, rule)| format!("the kernel engine {rule}"))
}
