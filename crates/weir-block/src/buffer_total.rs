//! Check that the buffers of all jobs that run at the same time fit into memory. Where they do not
//! fit, the kernel ends processes, and not always the one that asked for too much.
//!
//! In: jobs of the plan. Out: a failure before anything is touched. Not here: one worker's buffers
//! ([`crate::memory`]).

use weir_run::{JobContext, failure};
use weir_schema::catalogue::ActsOn;
use weir_schema::{Failure, Kind, MemoryKind, Spawn, Workload};
use weir_sys::{Tree, cgroup, memory::MemoryFacts};
use weir_units::Bytes;

use crate::engine::{self, kernel};
use crate::memory::{largest_block_of, slots};
use crate::verify::are_ordered;

/// Holder of buffers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holder {
    /// Processes of weir.
    Process,
    /// The kernel module, which has a limit of its own.
    Module,
}

/// The limit of the kernel module, in MiB.
const MODULE_LIMIT: &str = "sys/module/kio/parameters/max_mem_mb";

/// Refuses jobs whose buffers have no room beside those of the jobs they run with.
pub(crate) fn check_together(contexts: &[JobContext<'_>]) -> Vec<(u32, Failure)> {
    let holders = [Holder::Process, Holder::Module].into_iter();
    let refusal = |holder| {
        let room = room(&Tree::real(), holder)?;
        let (index, total) = too_many(contexts, room, holder)?;
        let (what, remedy) = match holder {
            Holder::Process => (format!("{room} of memory are available"), String::new()),
            Holder::Module => (
                format!("{room} are what the kernel module takes at most"),
                format!(", or write a larger number into /{MODULE_LIMIT}"),
            ),
        };
        let message = format!(
            "{} of buffers at a time, and {what} (take smaller blocks, a lower queue depth or fewer \
             workers{remedy})",
            Bytes(total)
        );
        Some((index, failure("missing", Some(libc::ENOMEM), message)))
    };
    holders.filter_map(refusal).collect()
}

/// Memory that a holder can have. For processes: what the machine has available, within the limit
/// of their control group. For the module: the value of its parameter.
fn room(tree: &Tree, holder: Holder) -> Option<Bytes> {
    if holder == Holder::Module {
        let mebibytes = tree.number::<u64>(MODULE_LIMIT)?;
        return Some(Bytes(mebibytes.saturating_mul(1 << 20)));
    }
    let available = MemoryFacts::read(tree).available;
    let limit = cgroup::limits(tree).memory;
    available.into_iter().chain(limit).min()
}

/// The first job that has no room beside the others, and what all of them together take.
fn too_many(contexts: &[JobContext<'_>], room: Bytes, holder: Holder) -> Option<(u32, u64)> {
    let bytes = |context: &JobContext<'_>| bytes(context, holder);
    let mut begin = 0;
    let mut total: u64 = 0;
    for (at, context) in contexts.iter().enumerate() {
        if context.job.start.barrier {
            (begin, total) = (at, 0);
        }
        total = total.saturating_add(bytes(context));
        if total <= room.0 {
            continue;
        }
        // Some of them may have ended before this one begins.
        let beside = contexts[begin..at].iter();
        let beside = beside.filter(|c| !are_ordered(contexts, c.index, context.index));
        let together = beside.map(bytes).fold(bytes(context), u64::saturating_add);
        if together > room.0 {
            return Some((context.index, together));
        }
    }
    None
}

/// Bytes that a job's filled buffers take of a holder's memory on this machine.
fn bytes(context: &JobContext<'_>, holder: Holder) -> u64 {
    let Workload::Block(workload) = &context.job.workload else {
        return 0;
    };
    let Some(entry) = engine::find(&context.job.engine.name) else {
        return 0;
    };
    // Pages of a pool, and of a file, are not taken from what is available.
    let is_elsewhere = !matches!(
        workload.memory.kind,
        MemoryKind::Private | MemoryKind::Shared
    );
    let fills = workload.carries_out(Kind::Write);
    let is_untouched =
        entry.info.moves_no_data() && !(fills && entry.info.acts_on == ActsOn::Nothing);
    let is_module = entry.info.name == kernel::NAME;
    if is_module != (holder == Holder::Module) || is_elsewhere || is_untouched {
        return 0;
    }
    let moved = [Kind::Read, Kind::Write].into_iter();
    let moved = moved.filter(|kind| workload.carries_out(*kind));
    let largest = largest_block_of(workload, moved.clone());
    if is_module {
        // A buffer for each direction, of a page or more.
        let sides = u64::try_from(moved.count()).unwrap_or(u64::MAX);
        let depth = u64::from(workload.load.depth.queue_depth.0);
        let whole = largest.max(rustix::param::page_size() as u64);
        return sides.saturating_mul(depth).saturating_mul(whole);
    }
    let ranks = context.plan.ranks.filter(|r| r.spawn != Spawn::Launcher);
    [
        u64::from(slots(entry, context.job)),
        u64::from(context.job.clones),
        ranks.map_or(1, |ranks| u64::from(ranks.count.max(1))),
    ]
    .into_iter()
    .fold(largest, u64::saturating_mul)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use weir_run::execute::Signals;
    use weir_schema::{BlockSizes, BlockWorkload, EngineChoice, Job, Mix, Plan};
    use weir_units::QueueDepth;

    use super::*;

    /// A job with 1 GiB of buffers.
    fn job(name: &str) -> Job {
        let mut work = BlockWorkload {
            mix: Mix::only(Kind::Read),
            sizes: BlockSizes::fixed(Bytes(1 << 20)),
            ..BlockWorkload::default()
        };
        work.load.depth.queue_depth = QueueDepth(256);
        let mut job = Job::of_blocks(name, EngineChoice::new("io_uring"), work);
        job.clones = 4;
        job
    }

    fn found(jobs: Vec<Job>, room: u64) -> Option<(u32, u64)> {
        found_in(jobs, room, Holder::Process)
    }

    fn found_in(jobs: Vec<Job>, room: u64, holder: Holder) -> Option<(u32, u64)> {
        let plan = Plan::new("test", "test", jobs);
        let signals = Signals::default();
        let contexts: Vec<JobContext<'_>> = (0..)
            .zip(plan.jobs())
            .map(|(index, (_, job))| JobContext {
                plan: &plan,
                job,
                index,
                first_worker: 0,
                seed: 1,
                run_id: 1,
                directory: Path::new(""),
                announce: &|_| (),
                signals: &signals,
            })
            .collect();
        too_many(&contexts, Bytes(room), holder)
    }

    #[test]
    fn jobs_at_the_same_time_share_the_memory_and_one_after_the_other_do_not() {
        let two = || vec![job("a"), job("b")];
        assert_eq!(found(two(), 2 << 30), None);
        assert_eq!(found(two(), (2 << 30) - 1), Some((1, 2 << 30)));
        let mut behind_a_barrier = two();
        behind_a_barrier[1].start.barrier = true;
        assert_eq!(found(behind_a_barrier, 1 << 30), None);
        let mut awaiting = two();
        awaiting[1].start.wait_for = Some("a".to_owned());
        assert_eq!(found(awaiting, 1 << 30), None);
    }

    #[test]
    fn the_module_has_a_limit_of_its_own_for_both_directions() {
        let in_the_kernel = || {
            let mut job = job("kernel");
            job.engine = EngineChoice::new(kernel::NAME);
            job.clones = 1;
            job
        };
        let two = vec![in_the_kernel(), job("beside"), in_the_kernel()];
        let limit = 512 << 20;
        assert_eq!(found_in(two.clone(), limit, Holder::Module), None);
        let beyond = found_in(two, limit - 1, Holder::Module);
        assert_eq!(beyond, Some((2, limit)));
        let mut mixed = in_the_kernel();
        mixed.workload.blocks_mut().unwrap().mix = Mix {
            read_percent: 50,
            ..Mix::only(Kind::Write)
        };
        let beyond = found_in(vec![mixed], limit - 1, Holder::Module);
        assert_eq!(beyond, Some((0, limit)));
        let folder = std::env::temp_dir().join(format!("weir-limit-{}", std::process::id()));
        let tree = Tree::at(&folder);
        assert_eq!(room(&tree, Holder::Module), None);
        let file = folder.join(MODULE_LIMIT);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "1024\n").unwrap();
        assert_eq!(room(&tree, Holder::Module), Some(Bytes(1 << 30)));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn memory_that_is_never_touched_or_is_another_ones_does_not_count() {
        let mut null = job("null");
        null.engine = EngineChoice::new("null");
        let mut trims = job("trims");
        trims.workload.blocks_mut().unwrap().mix = Mix::only(Kind::Trim);
        let mut in_the_kernel = job("kernel");
        in_the_kernel.engine = EngineChoice::new(kernel::NAME);
        let mut one_at_a_time = job("psync");
        one_at_a_time.engine = EngineChoice::new("psync");
        let all = vec![null, trims, in_the_kernel, one_at_a_time];
        assert_eq!(found(all.clone(), 4 << 20), None);
        assert_eq!(found(all, (4 << 20) - 1), Some((3, 4 << 20)));
    }
}
