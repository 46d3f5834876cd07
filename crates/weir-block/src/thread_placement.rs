//! Placement of a worker's thread: its CPUs, its memory nodes and its priority.
//!
//! In: the plan's placement, on the worker's own thread before it takes buffers. Out: it holds,
//! as long as what is returned is kept. Not here: buffers.

use weir_run::failure;
use weir_schema::{Failure, MemoryNodes, Placement, ShareCpus};
use weir_sys::buffer::{AlignedBuf, Backing, BufferSpec};
use weir_sys::memory::MemoryFacts;
use weir_sys::mempolicy::MemoryPolicy;
use weir_sys::pin::{nice, set_affinity, set_nice};
use weir_sys::priority::set_io_priority;
use weir_sys::topology::Topology;
use weir_sys::{CpuList, SysError, Tree};
use weir_units::Bytes;

fn refused(error: &SysError) -> Failure {
    failure("placement", None, error.to_string())
}

/// Failure for a placement that no thread of this machine can have.
pub(crate) fn check(placement: &Placement, threads: u32) -> Option<Failure> {
    too_much_memory(placement.lock_bytes, threads).or_else(|| absent_cpu(placement))
}

/// More memory than there is.
fn too_much_memory(each: Bytes, threads: u32) -> Option<Failure> {
    if each.0 == 0 {
        return None;
    }
    let total = MemoryFacts::read(&Tree::real()).total?;
    let all = Bytes(each.0.saturating_mul(threads.into()));
    let message = || {
        format!(
            "`placement.lock_bytes`: its workers keep {all} together, and this machine has {total}"
        )
    };
    (all > total).then(|| failure("missing", Some(libc::ENOMEM), message()))
}

/// A CPU that is not there.
fn absent_cpu(placement: &Placement) -> Option<Failure> {
    if let Some(nodes) = &placement.nodes {
        return cpus_of(nodes).err();
    }
    let cpus = placement.cpus.as_ref()?;
    let online = &Topology::of_this_machine().cpus;
    if online.is_empty() {
        return None;
    }
    let is_online = |cpu: &u32| online.iter().any(|known| known.id == *cpu);
    let absent = cpus.iter().find(|cpu| !is_online(cpu));
    let is_possible = match placement.share {
        ShareCpus::Shared => cpus.iter().any(is_online),
        ShareCpus::Split => absent.is_none(),
    };
    let cpu = absent.filter(|_| !is_possible)?;
    let message = format!("this machine has no CPU {cpu}");
    Some(failure("missing", Some(libc::EINVAL), message))
}

/// Puts the calling thread where the plan wants it; memory that is to be locked stays so until
/// the result is dropped.
///
/// # Errors
/// The kernel's error.
pub(crate) fn place_thread(
    placement: &Placement,
    clone: u32,
) -> Result<Option<AlignedBuf>, Failure> {
    if let Some(cpus) = &placement.cpus {
        set_affinity(&own(cpus, placement.share, clone)).map_err(|e| refused(&e))?;
    } else if let Some(nodes) = &placement.nodes {
        let cpus = cpus_of(nodes)?;
        set_affinity(&own(&cpus, placement.share, clone)).map_err(|e| refused(&e))?;
    }
    if let Some(policy) = policy(&placement.memory) {
        policy.apply_to_thread().map_err(|e| refused(&e))?;
    }
    if placement.nice != 0 {
        let now = nice().map_err(|e| refused(&e))?;
        set_nice(now + placement.nice).map_err(|e| refused(&e))?;
    }
    if let Some(priority) = placement.io_priority {
        set_io_priority(priority.class, priority.level).map_err(|e| refused(&e))?;
    }
    lock(placement.lock_bytes)
}

fn own(cpus: &[u32], share: ShareCpus, clone: u32) -> CpuList {
    match share {
        ShareCpus::Shared => cpus.iter().copied().collect(),
        ShareCpus::Split => {
            let turn = clone as usize % cpus.len().max(1);
            cpus.get(turn).copied().into_iter().collect()
        }
    }
}

/// The CPUs of these nodes.
fn cpus_of(nodes: &[u32]) -> Result<Vec<u32>, Failure> {
    let known = &Topology::of_this_machine().nodes;
    let mut cpus = Vec::new();
    for wanted in nodes {
        let node = known.iter().find(|node| node.id == *wanted);
        let Some(node) = node.filter(|node| !node.cpus.is_empty()) else {
            let message = format!("there is no memory node {wanted} with CPUs on this machine");
            return Err(failure("placement", Some(libc::EINVAL), message));
        };
        cpus.extend_from_slice(node.cpus.as_slice());
    }
    Ok(cpus)
}

fn policy(memory: &MemoryNodes) -> Option<MemoryPolicy> {
    let list = |nodes: &[u32]| nodes.iter().copied().collect::<CpuList>();
    Some(match memory {
        MemoryNodes::Default => return None,
        MemoryNodes::Local => MemoryPolicy::Local,
        MemoryNodes::Prefer { node } => MemoryPolicy::Preferred(*node),
        MemoryNodes::Bind { nodes } => MemoryPolicy::Bind(list(nodes)),
        MemoryNodes::Interleave { nodes } => MemoryPolicy::Interleave(list(nodes)),
    })
}

fn lock(bytes: Bytes) -> Result<Option<AlignedBuf>, Failure> {
    if bytes.0 == 0 {
        return Ok(None);
    }
    let page = rustix::param::page_size() as u64;
    let spec = BufferSpec {
        len: Bytes(bytes.0.next_multiple_of(page)),
        align: Bytes(page),
        backing: Backing::Private,
        policy: None,
        lock: true,
    };
    let memory = AlignedBuf::new(&spec).map_err(|e| failure("memory", None, e.to_string()))?;
    Ok(Some(memory))
}
