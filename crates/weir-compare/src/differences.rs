//! Differences of two results besides their figures: machines, programs, plans.
//!
//! In: a result of either side. Out: the facts that differ; among those of plans the ones by which
//! other work was done, so that figures do not say the same. Not here: figures.

use serde_json::Value;
use weir_schema::{HostFacts, Job, Mix, RunResult, json};

use crate::comparison::Difference;

/// Parts of a job that say nothing about what is measured: names, words, seeds, what is recorded
/// beside, what several runs change between them.
const ASIDE: [&str; 9] = [
    "name",
    "description",
    "words",
    "extensions",
    "report",
    "workload.access.seed",
    "workload.seed",
    "workload.targets",
    "workload.load.recording",
];
/// Parts of the targets that matter: the rest is which ones they are.
const OF_TARGETS: [&str; 4] = ["direct", "sync", "data_sync", "advice"];
/// Parts by which another kind of work is done; all others say how the same work is done.
const WORK: [&str; 10] = [
    "workload.kind",
    "workload.mix",
    "workload.access",
    "workload.sizes",
    "workload.region",
    "workload.flush",
    "workload.verify",
    "workload.load.pacing",
    "workload.layout",
    "workload.tests",
];

/// Facts of machines and programs that differ.
pub(crate) fn of_machines(a: &RunResult, b: &RunResult) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut add = |name: &str, a: Option<String>, b: Option<String>| {
        if a != b {
            found.push(Difference {
                name: name.to_owned(),
                a,
                b,
            });
        }
    };
    let HostFacts {
        hostname,
        kernel,
        os,
        cpu_model,
        cpus,
        governor,
        memory_bytes,
        numa_nodes,
        ..
    } = &a.host;
    let other = &b.host;
    add("host", hostname.clone(), other.hostname.clone());
    add("kernel", kernel.clone(), other.kernel.clone());
    add("system", os.clone(), other.os.clone());
    add("CPU", cpu_model.clone(), other.cpu_model.clone());
    let number = |n: &Option<u32>| n.map(|n| n.to_string());
    add("CPUs", number(cpus), number(&other.cpus));
    add("governor", governor.clone(), other.governor.clone());
    let size = |bytes: &Option<weir_units::Bytes>| bytes.map(|bytes| bytes.to_string());
    add("memory", size(memory_bytes), size(&other.memory_bytes));
    add("NUMA nodes", number(numa_nodes), number(&other.numa_nodes));
    add("devices", devices(a), devices(b));
    let program = |of: &RunResult| {
        let commit = of
            .program
            .as_ref()
            .and_then(|program| program.commit.clone());
        let commit = commit.map_or_else(String::new, |commit| format!(" {commit}"));
        Some(format!("{}{commit}", of.weir_version))
    };
    add("weir", program(a), program(b));
    found
}

/// File system and device of the targets: `ext4 on vda`.
fn devices(run: &RunResult) -> Option<String> {
    let mut all: Vec<String> = Vec::new();
    for device in &run.host.devices {
        let parts = [
            &device.file_system,
            &device.device,
            &device.model,
            &device.scheduler,
        ];
        let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        let text = parts.join(" ");
        if !text.is_empty() && !all.contains(&text) {
            all.push(text);
        }
    }
    (!all.is_empty()).then(|| all.join(", "))
}

/// A difference of two plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlanDifference {
    pub(crate) difference: Difference,
    /// Other work is done.
    pub(crate) is_work: bool,
}

/// Differences of two jobs.
pub(crate) fn of_jobs(a: &Job, b: &Job) -> Vec<PlanDifference> {
    let mut found = Vec::new();
    // A plan came from JSON or goes there: it has such a form.
    let value = |job: &Job| json::value(job).unwrap_or_default();
    differ("", &value(a), &value(b), &mut found);
    found.retain(|found| !is_of_no_operation(&found.difference.name, [a, b]));
    found
}

/// True if a size is that of operations which neither job does: one word gives all kinds theirs.
fn is_of_no_operation(name: &str, jobs: [&Job; 2]) -> bool {
    let Some(of_sizes) = name.strip_prefix("sizes.") else {
        return false;
    };
    let done = |share: fn(&Mix) -> u8| {
        let mut mixes = jobs.iter().filter_map(|job| job.blocks()).map(|b| &b.mix);
        mixes.any(|mix| share(mix) > 0 || mix.trim_then_write)
    };
    let kind = of_sizes.split('.').nth(1);
    match kind {
        Some("read") => !done(|mix| mix.read_percent),
        Some("write") => !done(|mix| mix.write_percent),
        Some("trim") => !done(|mix| mix.trim_percent),
        _ => false,
    }
}

fn differ(path: &str, a: &Value, b: &Value, found: &mut Vec<PlanDifference>) {
    if a == b || is_aside(path) {
        return;
    }
    if let (Value::Object(of_a), Value::Object(of_b)) = (a, b) {
        let mut names: Vec<&String> = of_a.keys().collect();
        names.extend(of_b.keys().filter(|name| !of_a.contains_key(*name)));
        for name in names {
            let dot = if path.is_empty() { "" } else { "." };
            let [a, b] = [of_a, of_b].map(|of| of.get(name).unwrap_or(&Value::Null));
            differ(&format!("{path}{dot}{name}"), a, b, found);
        }
        return;
    }
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let is_work = WORK.iter().any(|work| is_below(path, work));
    let name = path.strip_prefix("workload.").unwrap_or(path);
    let name = name.strip_prefix("load.").unwrap_or(name);
    found.push(PlanDifference {
        difference: Difference {
            name: name.to_owned(),
            a: text(a),
            b: text(b),
        },
        is_work,
    });
}

fn is_aside(path: &str) -> bool {
    let open = "workload.targets.open";
    let is_kept = is_below(open, path)
        || path
            .strip_prefix(open)
            .is_some_and(|rest| OF_TARGETS.iter().any(|part| rest == format!(".{part}")));
    !is_kept && ASIDE.iter().any(|aside| is_below(path, aside))
}

/// True if a path is this one or leads further.
fn is_below(path: &str, top: &str) -> bool {
    let rest = path.strip_prefix(top);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use weir_schema::sample::{self, JobSample};
    use weir_schema::{Kind, RpcWorkload, RunResult};

    use super::*;

    fn names(a: &Job, b: &Job) -> Vec<(String, bool)> {
        let all = of_jobs(a, b).into_iter();
        all.map(|d| (d.difference.name, d.is_work)).collect()
    }

    #[test]
    fn names_seeds_and_files_are_no_difference() {
        let a = sample::block_job("a");
        let b = sample::block_job("b")
            .worded(&[("bs", "4k")])
            .blocks(|work| {
                work.access.seed = 99;
                work.targets.open.drop_cache = !work.targets.open.drop_cache;
            });
        assert_eq!(names(&a, &b), []);
        let of_rpcs = |seed| {
            let work = RpcWorkload::default();
            Job::of_rpcs("rpcs", RpcWorkload { seed, ..work })
        };
        assert_eq!(names(&of_rpcs(1), &of_rpcs(2)), []);
        let direct = a.clone().blocks(|work| work.targets.open.direct = true);
        assert_eq!(
            names(&a, &direct),
            [("targets.open.direct".to_owned(), false)]
        );
    }

    #[test]
    fn how_work_is_done_is_told_apart_from_what_is_done() {
        let a = sample::random_job("a", &[Kind::Read], 4096);
        let deep = a.clone().deep(64).over("psync");
        let names_of = names(&a, &deep);
        assert_eq!(
            names_of,
            [
                ("engine.name".to_owned(), false),
                ("depth.queue_depth".to_owned(), false)
            ]
        );
        let found = of_jobs(&a, &deep);
        assert_eq!(found[1].difference.b, Some("64".to_owned()));
        let large = sample::random_job("a", &[Kind::Read], 8192);
        assert_eq!(
            names(&a, &large),
            [("sizes.size.read.bytes".to_owned(), true)]
        );
        let writes = sample::random_job("a", &[Kind::Write], 4096);
        assert!(names(&a, &writes).iter().any(|(_, is_work)| *is_work));
    }

    #[test]
    fn machines_that_differ_are_listed() {
        let mut a = sample::result(sample::plan(vec![vec![sample::block_job("a")]]));
        a.host = sample::host();
        let mut b: RunResult = a.clone();
        assert_eq!(of_machines(&a, &b), []);
        b.host.kernel = Some("Linux 6.18".to_owned());
        b.host.devices[0].scheduler = Some("kyber".to_owned());
        b.host.governor = None;
        let found = of_machines(&a, &b);
        let names: Vec<&str> = found.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["kernel", "governor", "devices"]);
        assert_eq!(found[1].b, None);
    }
}
