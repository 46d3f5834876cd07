//! The verifier: finds values of a configuration that do not work together.
//!
//! In: a configuration. Out: the first rule of the older verifier that is broken, in its words; what weir
//! adds. Not here: values that a key does not take (`plan`).

use std::collections::{BTreeMap, BTreeSet};

use weir_schema::{PathSide, PoolPages};

use super::config::{AxioConfig, PHASES, WorkloadLine};
use super::plan::AxioWork;
use super::role::AxioRole;

/// Bytes of a buffer of a pool.
const BUFFER_BYTES: u64 = 2304;

/// Findings of the verifier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The rule of the older verifier that is broken.
    pub broken: Option<String>,
    /// Settings that run, but not as meant.
    pub warnings: Vec<String>,
}

/// Facts about a machine that the verifier checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineFacts {
    /// Memory nodes and the number of their CPUs that this process may use; empty where that is unknown.
    pub nodes: Vec<(u32, usize)>,
    /// Free huge pages of 2 MiB and of 1 GiB.
    pub free_huge_pages: [u64; 2],
}

/// The line of a configuration without findings.
pub(super) const PASSED: &str = "==========Tunable Parameter Verification Passed==========";

/// The cores of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CoreCounts {
    pub(super) applications: usize,
    pub(super) dispatchers: usize,
}

impl CoreCounts {
    pub(super) fn of(config: &AxioConfig) -> Self {
        let apps = config.workloads.iter().flat_map(|one| &one.apps);
        let dispatchers = config.workloads.iter().flat_map(|one| &one.dispatchers);
        Self {
            applications: apps.map(Vec::len).sum(),
            dispatchers: dispatchers.map(Vec::len).sum(),
        }
    }
}

/// Looks at everything.
pub(super) fn verify(config: &AxioConfig, numbers: &BTreeMap<&'static str, u32>) -> Findings {
    Findings {
        broken: broken(config, numbers).map(|why| format!("Invalid configuration: {why}")),
        warnings: warnings(config),
    }
}

/// The older verifier's rules, in its order.
fn broken(config: &AxioConfig, numbers: &BTreeMap<&'static str, u32>) -> Option<String> {
    let is = |key: &str, count: usize| numbers.get(key).is_some_and(|n| *n as usize == count);
    let counts = CoreCounts::of(config);
    if !is("kAppCoreNum", counts.applications) {
        return Some(format!("kAppCoreNum should be {}", counts.applications));
    }
    for workload in &config.workloads {
        if workload.dispatchers.len() != workload.apps.len() {
            return Some("disp group should be equal to app group".to_owned());
        }
        if workload.dispatchers.iter().any(|group| group.len() != 1) {
            return Some("each disp group should have only one core".to_owned());
        }
    }
    if !is("kDispQueueNum", counts.dispatchers) {
        return Some(format!("kDispQueueNum should be {}", counts.dispatchers));
    }
    config.workloads.iter().find_map(shared_dispatcher)
}

/// Further errors that a run refuses: groups of several dispatchers, where something else is wrong already,
/// and missing receivers of a loopback. The role may be missing.
pub(super) fn wrong_for_a_run(
    config: &AxioConfig,
    role: Option<AxioRole>,
    is_right_so_far: bool,
) -> Vec<String> {
    let wide = if is_right_so_far {
        Vec::new()
    } else {
        wide_groups(config)
    };
    let absent = match role {
        Some(AxioRole::Loopback) => absent_remotes(config),
        _ => Vec::new(),
    };
    [wide, absent].concat()
}

/// Groups with another number of dispatchers than one, each with its line.
fn wide_groups(config: &AxioConfig) -> Vec<String> {
    let is_wide = |one: &&WorkloadLine| one.dispatchers.iter().any(|group| group.len() != 1);
    let wide = config.workloads.iter().filter(is_wide);
    let line = |one: &WorkloadLine| {
        let (place, id) = (&one.place, one.id);
        format!("{place}: workload {id}: each disp group should have only one core")
    };
    wide.map(line).collect()
}

/// Dispatchers that a loopback sends to and has not, each with its line: its other side is laid out alike.
pub(super) fn absent_remotes(config: &AxioConfig) -> Vec<String> {
    let all = config.workloads.iter().flat_map(|one| &one.dispatchers);
    let there: BTreeSet<u8> = all.flatten().copied().collect();
    let absent = |one: &WorkloadLine| {
        let (place, id) = (one.place.clone(), one.id);
        let remote = one.remote.iter().filter(|remote| !there.contains(remote));
        let line = |remote: &u8| {
            format!(
                "{place}: workload {id} sends to {remote}, which is no dispatcher of the other side"
            )
        };
        remote.map(line).collect::<Vec<String>>()
    };
    config.workloads.iter().flat_map(absent).collect()
}

/// A dispatcher that serves two groups of a workload.
fn shared_dispatcher(workload: &WorkloadLine) -> Option<String> {
    let mut served = BTreeSet::new();
    let mut all = workload.dispatchers.iter().flatten();
    let twice = all.find(|one| !served.insert(**one))?;
    Some(format!(
        "workload {} has dispatcher {twice} twice: each serves one group",
        workload.id
    ))
}

/// Phases without which a side waits for ever.
pub(super) fn missing_phases(config: &AxioConfig, side: Option<PathSide>) -> Vec<String> {
    let needed: &[&str] = match side {
        Some(PathSide::Server) => &["TxDispatcher", "RXDispatcher", "RxApplication"],
        _ => &[
            "TxApplication",
            "TxDispatcher",
            "RXDispatcher",
            "RxApplication",
        ],
    };
    let mut all = Vec::new();
    for workload in &config.workloads {
        let has = |word: &str| {
            let stage = PHASES.iter().find(|(name, _)| *name == word);
            stage.is_none_or(|(_, stage)| workload.stages.contains(stage))
        };
        let missing = needed.iter().filter(|word| !has(word));
        all.extend(missing.map(|word| {
            format!(
                "workload {} has no {word}, without which nothing flows",
                workload.id
            )
        }));
    }
    all
}

/// Requests that exceed the machine.
pub(super) fn beyond_machine(
    config: &AxioConfig,
    asked: &AxioWork,
    machine: &MachineFacts,
) -> Vec<String> {
    let mut all = Vec::new();
    let nodes = asked.placement.nodes.as_deref().unwrap_or_default();
    for node in nodes {
        if !machine.nodes.is_empty() && machine.nodes.iter().all(|(known, _)| known != node) {
            let there: Vec<String> = machine.nodes.iter().map(|(id, _)| id.to_string()).collect();
            let there = there.join(", ");
            let place = config.place_of("numa");
            all.push(format!(
                "{place}: this machine has no node {node} (it has {there})"
            ));
        }
    }
    let is_used = |node: u32| nodes.is_empty() || nodes.contains(&node);
    let cpus: usize = machine
        .nodes
        .iter()
        .filter(|(id, _)| is_used(*id))
        .map(|(_, n)| n)
        .sum();
    let threads = asked.work.thread_count() as usize;
    if cpus > 0 && threads > cpus {
        all.push(format!(
            "{threads} workspaces share {cpus} CPUs: none has one of its own"
        ));
    }
    let (pages, page) = match asked.work.pool_pages {
        PoolPages::TwoMiB => (machine.free_huge_pages[0], 2 << 20),
        PoolPages::OneGiB => (machine.free_huge_pages[1], 1 << 30),
        _ => return all,
    };
    let bytes = u64::from(asked.work.pool_buffers) * threads as u64 * BUFFER_BYTES;
    let needed = bytes.div_ceil(page);
    if needed > pages {
        let place = config.place_of("hugepages");
        all.push(format!(
            "{place}: the pools need {needed} pages, {pages} are free"
        ));
    }
    all
}

fn warnings(config: &AxioConfig) -> Vec<String> {
    let mut all = Vec::new();
    let mut serves: BTreeMap<u8, u8> = BTreeMap::new();
    for workload in &config.workloads {
        for dispatcher in workload.dispatchers.iter().flatten() {
            match serves.get(dispatcher) {
                Some(earlier) if *earlier != workload.id => all.push(format!(
                    "dispatcher {dispatcher} serves workloads {earlier} and {}: it is to have one",
                    workload.id
                )),
                _ => {
                    serves.insert(*dispatcher, workload.id);
                }
            }
        }
    }
    all
}
