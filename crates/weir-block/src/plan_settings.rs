//! Settings of a block workload that say nothing sensible, each by its name.
//!
//! In: a workload of a plan. Out: why it is refused. Not here: numbers that a generator refuses
//! ([`crate::source`]), settings that every job has (`weir-run`).

use weir_schema::{BlockWorkload, Kind};

use crate::source::bursts;

/// The longest operation.
const LONGEST: u64 = u32::MAX as u64;

/// Reasons that these settings make no sense.
pub(crate) fn senseless_settings(workload: &BlockWorkload) -> Vec<String> {
    let (access, content) = (&workload.access, &workload.content);
    let (flush, mix, passes) = (&workload.flush, &workload.mix, &workload.passes);
    let shares = [mix.read_percent, mix.write_percent, mix.trim_percent];
    // The kinds of a recorded pattern are its own.
    let is_odd_mix = shares.map(u32::from).iter().sum::<u32>() != 100 && access.replay.is_none();
    let align = access.align_bytes;
    let is_far = align.is_some_and(|align| Kind::DATA.iter().any(|k| align.of(*k).0 > LONGEST));
    let is_squeezed = content.compress_percent > 0;
    let never = "is 0: leave it out where nothing is flushed";
    let unfit = workload.bursts.and_then(|_| bursts::unfit(workload));
    let settings = [
        ("mix", is_odd_mix, "has shares that do not add up to 100"),
        (
            "passes.loops",
            passes.loops == 0,
            "is 0: nothing would be done",
        ),
        (
            "passes.time_based",
            passes.time_based && workload.load.bounds.runtime_ns.is_none(),
            "starts over until a runtime is reached, and there is none",
        ),
        (
            "access.steps",
            access.steps == 0,
            "is 0: a position has at least one operation",
        ),
        (
            "access.align_bytes",
            is_far,
            "is longer than an operation can be",
        ),
        (
            "content.compress_chunk_bytes",
            is_squeezed && content.compress_chunk_bytes.0 == 0,
            "is 0: the compressible share is that of a length",
        ),
        (
            "content.sectors",
            content.sectors.is_some() && workload.bursts.is_none(),
            "is for jobs in bursts",
        ),
        ("bursts", unfit.is_some(), unfit.unwrap_or_default()),
        ("flush.fsync_every", flush.fsync_every == Some(0), never),
        (
            "flush.fdatasync_every",
            flush.fdatasync_every == Some(0),
            never,
        ),
        (
            "flush.range.every",
            flush.range.is_some_and(|range| range.every == 0),
            never,
        ),
    ];
    let senseless = settings.iter().filter(|(_, is_senseless, _)| *is_senseless);
    senseless
        .map(|(setting, _, why)| format!("`{setting}` {why}"))
        .collect()
}
