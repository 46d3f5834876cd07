//! Logs and steady state beside fio's: the same files, columns, keys and types.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::left::shape;
use super::stage::{Stage, has, said, skip};

const JOBS: &str = "[global]
ioengine=null
size=64k
bs=4k
[each]
rw=randrw
write_bw_log
write_iops_log=io
write_lat_log=l
log_offset=1
[pair]
numjobs=2
rw=randwrite
write_lat_log=p
log_prio=1
[one]
write_iops_log=joined
per_job_logs=0
[windows]
size=1g
rw=randread
rate_iops=500
runtime=700ms
time_based
log_avg_msec=200
write_bw_log=w
write_lat_log=w
write_hist_log=w
log_hist_msec=200
log_hist_coarseness=2
";

/// Of each log: how many lines it has where that does not depend on time, and what its lines
/// look like, numbers that were measured left out.
fn shapes(stage: &Stage) -> BTreeMap<String, (Option<usize>, BTreeSet<String>)> {
    let logs = stage.list().into_iter().filter(|n| n != "j.fio");
    logs.map(|name| {
        let text = stage.read(&name);
        let by_operation = (!name.starts_with('w')).then(|| text.lines().count());
        let shapes = shape(&text);
        (name, (by_operation, shapes))
    })
    .collect()
}

#[test]
fn logs_have_the_names_lines_and_columns_of_fios() {
    if !has("fio") {
        return skip("logs_have_the_names_lines_and_columns_of_fios", "no fio");
    }
    let (theirs, ours) = (Stage::new(), Stage::new());
    for stage in [&theirs, &ours] {
        stage.file("j.fio", JOBS);
    }
    let mut command = theirs.command("fio");
    command.arg("j.fio");
    said(command).code(0);
    ours.peer_says(&["fio", "j.fio"]).code(0);
    let found = shapes(&ours);
    assert_eq!(found.len(), 17, "{:?}", found.keys());
    for (name, shape) in shapes(&theirs) {
        assert_eq!(found[&name], shape, "{name}");
    }
}

#[test]
fn steady_state_has_the_keys_and_types_of_fios() {
    if !has("fio") {
        return skip("steady_state_has_the_keys_and_types_of_fios", "no fio");
    }
    let words = "--name=a --ioengine=null --size=1g --bs=4k --rate_iops=500 --runtime=1200ms \
                 --time_based --ss=iops:1% --ss_dur=3 --output-format=json";
    let stage = Stage::new();
    let mut command = stage.command("fio");
    command.args(words.split_whitespace());
    let theirs = said(command).code(0).out;
    let mut ours = vec!["fio"];
    ours.extend(words.split_whitespace());
    let ours = stage.peer_says(&ours).code(0).out;
    let kinds = |text: &str| {
        let report: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
        kinds(&report["jobs"][0]["steadystate"])
    };
    assert_eq!(kinds(&ours), kinds(&theirs));
}

/// Keys and the kinds of their values, in order.
fn kinds(value: &Value) -> String {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| [key, ": ", &kinds(value), "\n"].concat())
            .collect(),
        Value::Array(members) => members.iter().map(kinds).collect(),
        Value::String(text) => format!("text {}", text.replace(|c: char| c.is_ascii_digit(), "")),
        Value::Number(n) if n.is_f64() => "float ".to_owned(),
        _ => "whole ".to_owned(),
    }
}
