//! Fingerprints that make two runs comparable: the same plan, the same machine.
//!
//! In: a result. Out: the fingerprint of its plan, the key of its machine. Neither knows where things
//! are or what they are called: a job that reads another file of the same kind is the same work.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use weir_schema::{DeviceFacts, HostFacts, RunResult, json};

/// Parts of a plan that say how it is called, where its words come from, where its output goes.
const OF_PLAN: &[&str] = &[
    "name",
    "door",
    "command",
    "global_words",
    "total_log",
    "extensions",
];
/// The same of a job.
const OF_JOB: &[&str] = &["description", "report", "words", "extensions"];
/// The same of what a job does.
const OF_WORK: &[&[&str]] = &[
    &["seed"],
    &["access", "seed"],
    &["verify", "directory"],
    &["load", "recording", "percentiles"],
    &["load", "recording", "trace"],
    &["load", "recording", "logs"],
    &["load", "recording", "record_operations_to"],
    &["load", "recording", "waiting_operations"],
];

/// SHA-256 of what a run was to do, in hexadecimal.
pub fn plan_fingerprint(result: &RunResult) -> String {
    let mut plan = json::value(&result.plan).unwrap_or_default();
    remove_all(&mut plan, OF_PLAN);
    if let Some(groups) = plan.get_mut("groups").and_then(Value::as_array_mut) {
        groups.retain(|group| group.pointer("/jobs/0/start/is_search_step") != Some(&true.into()));
    }
    let groups = members(plan.get_mut("groups"));
    let jobs = groups.flat_map(|group| members(group.get_mut("jobs")));
    for job in jobs {
        remove_all(job, OF_JOB);
        if let Some(work) = job.get_mut("workload") {
            for path in OF_WORK {
                remove(work, path);
            }
            forget_paths(work);
        }
    }
    let mut devices: Vec<Value> = result.host.devices.iter().map(kind_and_size).collect();
    devices.sort_by_key(ToString::to_string);
    devices.dedup();
    hash(&json!({ "plan": plan, "targets": devices }))
}

/// SHA-256 of what tells machines apart, in hexadecimal; what `WEIR_MACHINE` says instead, where it
/// does.
pub fn machine_key(host: &HostFacts, named: Option<&str>) -> String {
    if let Some(name) = named.filter(|name| !name.is_empty()) {
        return hash(&json!({ "name": name }));
    }
    let models = host.devices.iter().filter_map(|d| d.model.clone());
    let mut models: Vec<String> = models.collect();
    models.sort();
    models.dedup();
    let gibibytes = host.memory_bytes.map(|b| (b.0 + (1 << 29)) >> 30);
    hash(&json!({
        "cpu_model": host.cpu_model,
        "cpus": host.cpus,
        "numa_nodes": host.numa_nodes,
        "memory_gib": gibibytes,
        "device_models": models,
    }))
}

/// A device's size in classes of factors of two. A file has the size that the plan gives it, which may
/// be known only after the first run.
fn kind_and_size(device: &DeviceFacts) -> Value {
    let size = device.size_bytes.filter(|_| device.kind != "file");
    json!([device.kind, size.map(|bytes| bytes.0.checked_ilog2())])
}

/// Removes the files' names; their number and lengths count.
fn forget_paths(work: &mut Value) {
    let Some(files) = work
        .pointer_mut("/targets/files")
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    for list in ["paths", "directories"] {
        if let Some(names) = files.get_mut(list) {
            *names = names.as_array().map_or(0, Vec::len).into();
        }
    }
    files.remove("pattern");
    for file in members(files.get_mut("files")) {
        remove_all(file, &["path"]);
    }
}

fn members(list: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    list.and_then(Value::as_array_mut).into_iter().flatten()
}

fn remove_all(from: &mut Value, names: &[&str]) {
    if let Some(object) = from.as_object_mut() {
        for name in names {
            object.remove(*name);
        }
    }
}

fn remove(from: &mut Value, path: &[&str]) {
    match path {
        [] => {}
        [name] => remove_all(from, &[name]),
        [name, rest @ ..] => {
            if let Some(inner) = from.get_mut(*name) {
                remove(inner, rest);
            }
        }
    }
}

/// Names in order, and nothing that says nothing: a setting that a later version adds changes no
/// fingerprint as long as nobody uses it.
fn canonical(value: &Value) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::Array(list) if list.is_empty() => None,
        Value::String(text) if text.is_empty() => None,
        // Members of a list have a place, which stays.
        Value::Array(list) => Some(Value::Array(
            list.iter()
                .map(|member| canonical(member).unwrap_or_default())
                .collect(),
        )),
        Value::Object(object) => {
            let mut names: Vec<&String> = object.keys().collect();
            names.sort();
            let kept = names
                .into_iter()
                .filter_map(|name| Some((name.clone(), canonical(&object[name])?)));
            let kept: Map<String, Value> = kept.collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        other => Some(other.clone()),
    }
}

fn hash(value: &Value) -> String {
    let text = canonical(value).unwrap_or_default().to_string();
    let digest = Sha256::digest(text.as_bytes());
    let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

#[cfg(test)]
mod tests {
    use weir_schema::sample::{self, JobSample};
    use weir_schema::{FileNames, Plan};
    use weir_units::Bytes;

    use super::*;

    fn result(change: impl FnOnce(&mut Plan)) -> RunResult {
        let job = sample::block_job("a").blocks(|work| {
            work.targets.files = FileNames::Listed {
                paths: vec!["/data/x".to_owned()],
                directories: Vec::new(),
            };
        });
        let mut plan = Plan::new("p", "run", vec![job]);
        change(&mut plan);
        RunResult::of(plan)
    }

    fn work(plan: &mut Plan) -> &mut weir_schema::BlockWorkload {
        plan.groups[0].jobs[0].workload.blocks_mut().unwrap()
    }

    #[test]
    fn names_places_and_seeds_make_no_other_plan() {
        let first = plan_fingerprint(&result(|_| ()));
        assert_eq!(first.len(), 64);
        for change in [
            (|plan| plan.name = "q".to_owned()) as fn(&mut Plan),
            |plan| plan.door = "fio".to_owned(),
            |plan| plan.command = vec!["weir".to_owned()],
            |plan| work(plan).access.seed = 99,
            |plan| work(plan).load.recording.percentiles.clear(),
            |plan| {
                work(plan).targets.files = FileNames::Listed {
                    paths: vec!["/other/y".to_owned()],
                    directories: Vec::new(),
                };
            },
        ] {
            assert_eq!(plan_fingerprint(&result(change)), first);
        }
    }

    #[test]
    fn other_work_is_another_plan() {
        let first = plan_fingerprint(&result(|_| ()));
        for change in [
            (|plan| plan.groups[0].jobs[0].clones = 4) as fn(&mut Plan),
            |plan| plan.groups[0].jobs[0].name = "b".to_owned(),
            |plan| work(plan).load.depth.queue_depth.0 += 1,
            |plan| {
                work(plan).targets.files = FileNames::Listed {
                    paths: vec!["x".to_owned(), "y".to_owned()],
                    directories: Vec::new(),
                };
            },
        ] {
            assert_ne!(plan_fingerprint(&result(change)), first);
        }
        let mut device = result(|_| ());
        device.host.devices = vec![DeviceFacts {
            kind: "block device".to_owned(),
            size_bytes: Some(Bytes(1 << 40)),
            ..DeviceFacts::default()
        }];
        assert_ne!(plan_fingerprint(&device), first);
    }

    #[test]
    fn a_setting_that_is_not_used_changes_no_fingerprint() {
        let without = json!({"a": 1, "b": [null, 2]});
        let with = json!({"b": [null, 2], "new": null, "other": {"x": false}, "a": 1});
        assert_eq!(hash(&without), hash(&with));
        assert_ne!(hash(&without), hash(&json!({"a": 1, "b": [2]})));
    }

    #[test]
    fn a_machine_is_known_by_its_parts_or_its_given_name() {
        let mut host = HostFacts {
            cpu_model: Some("x".to_owned()),
            memory_bytes: Some(Bytes(64 << 30)),
            ..HostFacts::default()
        };
        let key = machine_key(&host, None);
        host.hostname = Some("other".to_owned());
        host.memory_bytes = Some(Bytes((64 << 30) - 5000));
        assert_eq!(machine_key(&host, None), key);
        assert_eq!(machine_key(&host, Some("")), key);
        assert_ne!(machine_key(&host, Some("lab")), key);
        host.cpus = Some(9);
        assert_ne!(machine_key(&host, None), key);
    }
}
