//! Placement of the view's thread: on CPUs that no worker is bound to, and with a lower priority than all
//! others.
//!
//! In: the plan. Out: the calling thread moved. Not here: where workers run.

use std::collections::BTreeSet;

use weir_schema::Plan;
use weir_sys::cpulist::CpuList;
use weir_sys::pin;
use weir_sys::topology::Topology;

/// Added to the nice value, so that workers go first.
const NICER: i32 = 10;

/// Moves the calling thread off the CPUs of workers. Where that cannot be, it stays: a view is no reason
/// to end a run.
pub(super) fn keep_off_workers(plan: &Plan, topology: &Topology) {
    if let Ok(nice) = pin::nice() {
        let _ = pin::set_nice((nice + NICER).min(19));
    }
    if let Ok(allowed) = pin::affinity() {
        let free = free_of(&allowed, &bound(plan, topology));
        if let Some(free) = free {
            let _ = pin::set_affinity(&free);
        }
    }
}

/// The CPUs that workers are bound to.
fn bound(plan: &Plan, topology: &Topology) -> BTreeSet<u32> {
    let mut bound = BTreeSet::new();
    for (_, job) in plan.jobs() {
        let place = &job.placement;
        bound.extend(place.cpus.iter().flatten());
        let nodes = place.nodes.as_deref().unwrap_or_default();
        let nodes = topology
            .nodes
            .iter()
            .filter(|node| nodes.contains(&node.id));
        bound.extend(nodes.flat_map(|node| node.cpus.as_slice()));
    }
    bound
}

/// CPUs of these that no worker is bound to; `None` where there is no choice.
fn free_of(allowed: &CpuList, bound: &BTreeSet<u32>) -> Option<CpuList> {
    let all = allowed.as_slice().iter().copied();
    let free: CpuList = all.filter(|cpu| !bound.contains(cpu)).collect();
    (!free.is_empty() && free.len() < allowed.len()).then_some(free)
}

#[cfg(test)]
mod tests {
    use weir_schema::sample;

    use super::*;

    fn list(cpus: &[u32]) -> CpuList {
        cpus.iter().copied().collect()
    }

    #[test]
    fn the_cpus_of_workers_are_left_to_them() {
        let mut plan = sample::plan(vec![vec![sample::block_job("a")]]);
        let topology = Topology {
            cpus: Vec::new(),
            caches: Vec::new(),
            nodes: Vec::new(),
        };
        plan.groups[0].jobs[0].placement.cpus = Some(vec![1, 2]);
        let bound = bound(&plan, &topology);
        assert_eq!(free_of(&list(&[0, 1, 2, 3]), &bound), Some(list(&[0, 3])));
        assert_eq!(free_of(&list(&[1, 2]), &bound), None);
        assert_eq!(free_of(&list(&[0, 3]), &bound), None);
    }
}
