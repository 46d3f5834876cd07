//! A job as the module takes it.
//!
//! In: a job of the plan with its region, the engine's settings. Out: the message that adds it. Not here:
//! when it is sent ([`super::session`]).

use weir_run::WorkerContext;
use weir_schema::{Bursts, EngineChoice, Kind};

use super::COMPARED;
use super::abi::{self, AddJob};
use crate::source::bursts::{block_of, stride_of};
use crate::source::{Extent, Recipe};

/// The job without what the engine's settings say.
pub(super) fn job(recipe: &Recipe<'_>, bursts: Bursts, extent: Extent) -> AddJob {
    let work = recipe.workload;
    let load = &work.load;
    let mut job: AddJob = abi::message();
    job.block_size = u32::try_from(block_of(work)).unwrap_or(u32::MAX);
    job.queue_depth = load.depth.queue_depth.0;
    job.offset_random = u32::from(work.access.random);
    job.read_mix_percent = u32::from(work.mix.read_percent);
    job.offset_stride = stride_of(work);
    job.offset_low = extent.start;
    job.offset_high = extent.start + extent.length;
    job.read_burst = bursts.reads;
    job.write_burst = bursts.writes;
    job.burst_finish = u32::from(bursts.drain);
    job.burst_delay = u32::from(bursts.pause_behind);
    let pause = |kind: Kind| {
        let pause = load.pacing.pause_after_ns.get(&kind.into());
        pause.map_or(0, |pause| u32::try_from(pause.0 / 1000).unwrap_or(u32::MAX))
    };
    job.read_sleep_usec = pause(Kind::Read);
    job.write_sleep_usec = pause(Kind::Write);
    job.op = match (
        work.mix.read_percent,
        work.mix.write_percent,
        work.mix.trim_percent,
    ) {
        _ if bursts.flush_only => abi::OP_FLUSH,
        (100, ..) => abi::OP_READ,
        (_, 100, _) => abi::OP_WRITE,
        (.., 100) => abi::OP_TRIM,
        _ => abi::OP_MIX,
    };
    job.batch = load.depth.submit_batch;
    job.data = match work.content.sectors {
        Some(data) => {
            (job.verify_seed, job.generation) = (data.seed, data.generation);
            abi::DATA_VERIFY
        }
        None if work.content.zero => abi::DATA_ZERO,
        None => abi::DATA_RANDOM,
    };
    if work.targets.open.data_sync {
        job.flags |= abi::JOB_FUA;
    }
    job.seed = recipe.seed;
    job.stream = bursts.stream.unwrap_or(recipe.worker);
    job.trace = COMPARED;
    job.align = work.access.align_bytes.map_or(0, |align| align.read.0);
    let bounded = |limit: u64| if limit == u64::MAX { 0 } else { limit };
    job.limit_ios = bounded(recipe.limits.operations);
    job.limit_bytes = bounded(recipe.limits.bytes);
    job
}

/// Fills in the fields that follow from the engine's settings and the job's placement.
pub(super) fn apply_settings(job: &mut AddJob, worker: &WorkerContext<'_>, choice: &EngineChoice) {
    job.complete = match choice.text("complete") {
        Some("spin") => 1,
        Some("poll") => 2,
        _ => 0,
    };
    if choice.flag("no_wait", false) {
        job.flags |= abi::JOB_NOWAIT;
    }
    let pinned = worker
        .job
        .placement
        .cpus
        .as_deref()
        .and_then(<[u32]>::first);
    let cpu = pinned.and_then(|cpu| i32::try_from(*cpu).ok());
    job.cpu = choice
        .number("cpu")
        .and_then(|cpu| cpu.try_into().ok())
        .or(cpu)
        .unwrap_or(-1);
    let nodes = worker.job.placement.nodes.as_deref();
    let node = nodes.and_then(<[u32]>::first);
    job.node = node.and_then(|node| (*node).try_into().ok()).unwrap_or(-1);
}
