//! Cores of a run, and the targets that each of them works on.
//!
//! In: arguments, targets, the CPUs of the machine. Out: pairs of a core and a target. Not here: their jobs
//! (`plan`).

use super::refuse;
use super::targets::Target;
use super::values::{Cores, cores, ranges};
use crate::given::Given;
use crate::machine::Machine;
use crate::refusal::Refusal;

/// A core on a target.
pub(super) struct Context {
    pub(super) core: u32,
    /// Place among the targets.
    pub(super) target: usize,
    /// Number among the contexts of the target, and of how many.
    pub(super) part: (u64, u64),
}

/// Deals cores and targets to each other, and orders the pairs by core.
pub(super) fn contexts(cores: &[u32], targets: usize, is_each_on_each: bool) -> Vec<Context> {
    let mut pairs: Vec<(usize, usize)> = if is_each_on_each {
        (0..cores.len())
            .flat_map(|core| (0..targets).map(move |target| (core, target)))
            .collect()
    } else {
        let longer = cores.len().max(targets);
        (0..longer)
            .map(|at| (at % cores.len(), at % targets))
            .collect()
    };
    pairs.sort_unstable();
    let mut seen = vec![0; targets];
    let mut all: Vec<Context> = Vec::with_capacity(pairs.len());
    for (core, target) in pairs {
        all.push(Context {
            core: cores[core],
            target,
            part: (seen[target], 0),
        });
        seen[target] += 1;
    }
    for context in &mut all {
        context.part.1 = seen[context.target];
    }
    all
}

/// The cores of `-c`.
///
/// # Errors
/// CPUs that are not there.
pub(super) fn chosen(
    given: &Given,
    all: &[Target],
    machine: &dyn Machine,
) -> Result<Vec<u32>, Refusal> {
    let present = machine.cpus();
    let named = match given.parsed("core-mask", cores) {
        Some(Cores::Named(named)) if given.has("core-mask") || present.contains(&0) => named,
        Some(Cores::Auto) => return Ok(near(all, machine)),
        _ => return Ok(vec![present.first().copied().unwrap_or(0)]),
    };
    let absent = named.iter().copied().filter(|cpu| !present.contains(cpu));
    let absent: Vec<u32> = absent.filter(|_| !present.is_empty()).collect();
    if absent.is_empty() {
        return Ok(named);
    }
    let text = given.text("core-mask").unwrap_or_default();
    Err(refuse(&format!(
        "-c (--core-mask) {text}: there is no CPU {}\n  help: the CPUs here are {}",
        ranges(&absent),
        ranges(&present)
    )))
}

/// A core for each target, on the memory node that it is attached to.
fn near(all: &[Target], machine: &dyn Machine) -> Vec<u32> {
    let present = machine.cpus();
    let mut taken: Vec<u32> = Vec::new();
    for target in all {
        let is_near = |cpu: &&u32| {
            target
                .facts
                .node
                .is_none_or(|node| machine.memory_node(**cpu) == Some(node))
        };
        let is_free = |cpu: &&u32| !taken.contains(cpu);
        let found = present.iter().find(|cpu| is_free(cpu) && is_near(cpu));
        let found = found.or_else(|| present.iter().find(is_free));
        taken.extend(found.or(present.first()));
    }
    if taken.is_empty() {
        taken.push(0);
    }
    taken.dedup();
    taken
}
