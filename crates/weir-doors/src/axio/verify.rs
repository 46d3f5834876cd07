//! The verifier: what of a configuration does not fit together.
//!
//! In: a configuration. Out: the first rule of the older verifier that is broken, in its words; what weir
//! adds. Not here: values that a key does not take (`plan`).

use std::collections::BTreeMap;

use super::config::AxioConfig;

/// What the verifier finds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The rule of the older verifier that is broken.
    pub broken: Option<String>,
    /// What runs, but not as meant.
    pub warnings: Vec<String>,
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
    None
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
