//! The buffers of a worker: from the plan's words to memory cut into slots.
//!
//! In: a job's memory, its block sizes and content. Out: [`SlotBuffers`], filled if anything is
//! written. Not here: registration with the kernel, which an engine does.

use std::path::Path;

use weir_run::generate::Streams;
use weir_run::{WorkerContext, failure};
use weir_schema::{BlockWorkload, Failure, Job, Kind, Memory, MemoryKind, VerifyMethod};
use weir_sys::buffer::{AlignedBuf, Backing, BufferSpec, HugePage};
use weir_units::Bytes;

use crate::engine::{EngineEntry, kernel};
use crate::generate::payload::Payload;
use crate::source::{SlotBuffers, payload_rule};

/// The widest alignment of a buffer: the next one is longer than an operation can be.
const WIDEST_ALIGNMENT: u64 = 1 << 31;

/// The largest block of any kind that occurs.
pub(crate) fn largest_block(workload: &BlockWorkload) -> u64 {
    let occurs = |kind: &Kind| workload.sizes.by_pattern || workload.mix.has(*kind);
    largest_block_of(workload, Kind::DATA.into_iter().filter(occurs))
}

/// The largest block of these kinds.
pub(crate) fn largest_block_of(workload: &BlockWorkload, kinds: impl Iterator<Item = Kind>) -> u64 {
    let sizes = &workload.sizes.size;
    kinds.map(|kind| sizes.of(kind).max().0).max().unwrap_or(0)
}

/// Operations of a worker that have buffers here at a time.
pub(crate) fn slots(entry: &EngineEntry, job: &Job) -> u32 {
    // The buffers of the kernel's slots are its own.
    if entry.info.synchronous || entry.info.name == kernel::NAME {
        1
    } else {
        job.load().depth.queue_depth.0.max(1)
    }
}

/// The smallest block of any kind that occurs.
pub(crate) fn smallest_block(workload: &BlockWorkload) -> u64 {
    let sizes = &workload.sizes.size;
    let by_pattern = workload.sizes.by_pattern;
    let occurs = |kind: &Kind| by_pattern || workload.mix.has(*kind);
    let smallest = Kind::DATA
        .into_iter()
        .filter(occurs)
        .map(|kind| sizes.of(kind).min().0);
    smallest.min().unwrap_or(0)
}

/// The room that a block of each kind that occurs needs.
pub(crate) fn room_for_each(workload: &BlockWorkload) -> u64 {
    if workload.sizes.by_pattern {
        return smallest_block(workload);
    }
    let occurring = Kind::DATA.into_iter().filter(|k| workload.mix.has(*k));
    let smallest = occurring.map(|kind| workload.sizes.size.of(kind).min().0);
    smallest.max().unwrap_or(0)
}

/// The alignment of every slot.
pub(crate) fn alignment(memory: &Memory) -> u64 {
    let page = rustix::param::page_size() as u64;
    memory.align_bytes.map_or(page, |align| align.0.max(1))
}

/// Checks the words that need no memory to be wrong.
pub(crate) fn check(workload: &BlockWorkload) -> Result<(), Failure> {
    let memory = &workload.memory;
    let align = alignment(memory);
    let odd = [
        (!align.is_power_of_two(), "no power of two"),
        (align > WIDEST_ALIGNMENT, "more than 2 GiB"),
    ];
    if let Some((_, why)) = odd.iter().find(|(is_odd, _)| *is_odd) {
        let message = format!("a buffer alignment of {align} bytes is {why}");
        return Err(failure("memory", Some(libc::EINVAL), message));
    }
    if matches!(memory.kind, MemoryKind::Huge | MemoryKind::SharedHuge) {
        huge_page(memory)?;
    }
    if memory.kind == MemoryKind::File && memory.path.is_none() {
        let message = "memory of a file needs the file's name";
        return Err(failure("memory", Some(libc::EINVAL), message));
    }
    stride(workload, memory).map(|_| ())
}

fn huge_page(memory: &Memory) -> Result<HugePage, Failure> {
    match memory.huge_page_bytes.map_or(2 << 20, |bytes| bytes.0) {
        0x20_0000 => Ok(HugePage::TwoMiB),
        0x4000_0000 => Ok(HugePage::OneGiB),
        other => {
            let message = format!("huge pages of {other} bytes: expected 2 MiB or 1 GiB");
            Err(failure("memory", Some(libc::EINVAL), message))
        }
    }
}

fn stride(workload: &BlockWorkload, memory: &Memory) -> Result<u32, Failure> {
    let largest = largest_block(workload).max(1);
    let stride = largest.checked_next_multiple_of(alignment(memory));
    stride
        .and_then(|stride| u32::try_from(stride).ok())
        .ok_or_else(|| {
            let message = format!(
                "a block of {} is longer than an operation can be",
                Bytes(largest)
            );
            failure("memory", Some(libc::EINVAL), message)
        })
}

fn backing(memory: &Memory, directory: &Path, worker: u32) -> Result<Backing, Failure> {
    Ok(match memory.kind {
        MemoryKind::Private => Backing::Transparent,
        MemoryKind::Shared => Backing::Shared,
        MemoryKind::Huge => Backing::Huge(huge_page(memory)?),
        MemoryKind::SharedHuge => Backing::Memfd(Some(huge_page(memory)?)),
        MemoryKind::File => {
            let name = memory.path.as_deref().unwrap_or_default();
            // A file holds the buffers of one worker.
            let own = if worker == 0 {
                name.to_owned()
            } else {
                format!("{name}.{worker}")
            };
            Backing::File(directory.join(own))
        }
    })
}

/// Maps and fills the buffers of a worker, whose region has `size` bytes.
///
/// # Errors
/// The memory cannot be had.
pub(crate) fn buffers(
    workload: &BlockWorkload,
    directory: &Path,
    worker: &WorkerContext<'_>,
    slots: u32,
    size: u64,
) -> Result<SlotBuffers, Failure> {
    let stride = stride(workload, &workload.memory)?;
    let spec = BufferSpec {
        len: Bytes(u64::from(stride) * u64::from(slots)),
        align: Bytes(alignment(&workload.memory)),
        backing: backing(&workload.memory, directory, worker.clone)?,
        policy: None,
        lock: false,
    };
    let memory = AlignedBuf::new(&spec).map_err(|e| failure("memory", None, e.to_string()))?;
    let content = &workload.content;
    let is_marked = workload
        .verify
        .as_ref()
        .is_some_and(|v| v.method != VerifyMethod::Null)
        || content.sectors.is_some();
    let payload = if workload.carries_out(Kind::Write) && !is_marked {
        let rule = payload_rule(content, workload.sizes.size.write.max().0, size);
        let payload = Payload::new(rule, Streams::new(worker.seed, worker.number).payload());
        Some(payload.map_err(|e| failure("plan", Some(libc::EINVAL), e.to_string()))?)
    } else {
        None
    };
    let refills = content.refill || content.compress_percent > 0 || content.dedupe_percent > 0;
    Ok(SlotBuffers::new(memory, stride, payload, refills))
}
