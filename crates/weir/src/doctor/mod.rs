//! `weir doctor`: properties of this machine that would spoil a measurement.
//!
//! In: the arguments after `doctor`. Out: a line a finding, or JSON; the exit code. It looks for some two
//! seconds and changes nothing; with `--ci` it measures instead (`ci`). Not here: from which value on something spoils
//! (`weir_schema::thresholds`), and what it did to a run, which the run's own warnings say.

mod ci;
mod cpus;
mod devices;
mod finding;
mod kernel;
mod targets;
mod watch;

use weir_doors::doctor::{Action, Look, read};
use weir_sys::Tree;
use weir_sys::topology::Topology;

use crate::{Outcome, output, printed};
use finding::{Finding, Status};
use watch::Watched;

/// Machine that the checks examine.
struct Machine {
    tree: Tree,
    topology: Topology,
    /// Activity during the observation.
    watched: Watched,
    /// Targets of the measurement to come.
    targets: Vec<String>,
}

type Check = fn(&Machine) -> Vec<Finding>;

/// Every check, in the order of the lines.
const CHECKS: &[(&str, Check)] = &[
    ("governor", cpus::governor),
    ("cstates", cpus::idle_states),
    ("clock", cpus::clock),
    ("steal", cpus::steal),
    ("load", cpus::load),
    ("smt", cpus::siblings),
    ("numa", devices::nodes),
    ("irq", devices::interrupts),
    ("pcie", devices::links),
    ("nvme", devices::drives),
    ("queue", devices::queues),
    ("fs", targets::file_systems),
    ("never-written", targets::never_written),
    ("limits", kernel::limits),
    ("uring", kernel::io_uring),
    ("hugepages", kernel::huge_pages),
    ("cgroup", kernel::control_group),
    ("net", devices::networks),
    ("libs", kernel::libraries),
    ("libfabric", kernel::fabrics),
    ("libdaos", kernel::daos),
    ("kmod", kernel::modules),
    ("perf", kernel::counters),
];

/// Carries out the arguments after `doctor`.
pub(crate) fn run(words: &[String]) -> Outcome {
    match read(words)? {
        Action::Print(text) => Ok(printed(&text)),
        Action::Look(look) => Ok(look_at(&look)),
        Action::Ci(check) => ci::run(&check),
    }
}

fn look_at(look: &Look) -> u8 {
    let tree = Tree::real();
    let machine = Machine {
        topology: Topology::read(&tree),
        watched: Watched::now(&tree),
        tree,
        targets: look.targets.clone(),
    };
    let findings = findings(&machine);
    let text = if look.json {
        finding::json(&findings)
    } else {
        finding::text(&findings)
    };
    let fails = findings.iter().any(|(_, f)| f.status == Status::Fail);
    let is_printed = output::print(&text);
    u8::from(!is_printed || (look.strict && fails))
}

/// Every finding, under the id of its check.
fn findings(machine: &Machine) -> Vec<(&'static str, Finding)> {
    let of_check = |(id, check): &(&'static str, Check)| {
        let id = *id;
        check(machine).into_iter().map(move |finding| (id, finding))
    };
    CHECKS.iter().flat_map(of_check).collect()
}

#[cfg(test)]
mod tests;
