//! Plans that no door writes: each is refused by the name of what is odd, and nothing is touched.

use serde_json::{Value as Json, json};

use crate::mixed::{after, exchange, latency_bandwidth, plan, writes};
use crate::stage::Stage;

/// A plan is refused with this code for this reason; nothing is printed and no file is made.
#[track_caller]
fn refused_plan(stage: &Stage, plan: &Json, words: &[&str], code: i32, why: &str) {
    let file = stage.file("odd.json", plan.to_string());
    let before = stage.list();
    let words = [&["run"], words, &[&file]].concat();
    let said = stage.say(&words).code(code).silent().err(why);
    assert_eq!(stage.list(), before, "a file was made: {said}");
}

/// A plan of one job that writes, changed.
#[track_caller]
fn refused_with(stage: &Stage, code: i32, change: impl Fn(&mut Json), why: &str) {
    let mut job = writes(stage, "file", 1);
    change(&mut job);
    refused_plan(stage, &plan(stage, &[&[job]]), &[], code, why);
}

#[track_caller]
fn refused(stage: &Stage, change: impl Fn(&mut Json), why: &str) {
    refused_with(stage, 2, change, why);
}

/// A plan of a job that writes and this one, changed, on as many ranks.
#[track_caller]
fn refused_on(stage: &Stage, ranks: u32, job: &Json, change: impl Fn(&mut Json), why: &str) {
    let mut job = after(job.clone());
    change(&mut job);
    let plan = plan(stage, &[&[writes(stage, "file", 1)], &[job]]);
    let ranks = format!("--ranks={ranks}");
    refused_plan(stage, &plan, &[&ranks], 2, why);
}

/// The same, of exchanges between two ranks.
#[track_caller]
fn refused_exchange(stage: &Stage, change: impl Fn(&mut Json), why: &str) {
    refused_on(stage, 2, &exchange(stage), change, why);
}

/// Another value at this place of a document.
fn put(path: &str, value: Json) -> impl Fn(&mut Json) + use<> {
    let path = path.to_owned();
    move |document| *document.pointer_mut(&path).unwrap() = value.clone()
}

/// Another value at this place of a job's workload.
fn work(path: &str, value: Json) -> impl Fn(&mut Json) + use<> {
    put(&format!("/workload{path}"), value)
}

#[test]
fn what_no_plan_can_mean_is_refused_by_name() {
    let stage = &Stage::new();
    let waits = put("/start/wait_for", json!("nobody"));
    let why = "`start.wait_for` names `nobody`, and no earlier job";
    refused(stage, waits, why);
    for (place, value, why) in [
        ("/clones", json!(0), "file: `clones` is 0"),
        ("/placement/nice", json!(5000), "`placement.nice` is 5000"),
        (
            "/placement/cpus",
            json!([]),
            "error: file: `placement.cpus` names no CPU",
        ),
        (
            "/placement/nodes",
            json!([]),
            "error: file: `placement.nodes` names no memory node",
        ),
    ] {
        refused(stage, put(place, value), why);
    }
    let pause = json!({"pause_ns": 5, "spin_ns": 0, "every": 0, "after_ns": null});
    for (place, value, why) in [
        (
            "recording/percentiles",
            json!([-1.0]),
            "has -1, which is not from 0",
        ),
        ("bounds/operations", json!(0), "is 0: nothing would be done"),
        ("bounds/runtime_ns", json!(0), "is 0: nothing would be done"),
        (
            "depth/submit_batch",
            json!(0),
            "is 0: nothing could be handed over",
        ),
        (
            "depth/refill_below",
            json!(1),
            "is not below the queue depth",
        ),
    ] {
        let why = format!("error: file: `load.{}` {why}", place.replace('/', "."));
        refused(stage, work(&format!("/load/{place}"), value), &why);
    }
    let why = "`load.pacing.thinktime.every` is 0";
    refused(stage, work("/load/pacing/thinktime", pause), why);

    // The answer does not take as long as going over all of them would.
    let many = put("/clones", json!(4_000_000_000_u32));
    refused_with(stage, 3, many, "workers at a time");

    let mut crowd = plan(stage, &[&[exchange(stage)]]);
    crowd["ranks"] = json!({ "count": 100_000, "spawn": "threads" });
    let why = "the plan says `ranks.count` 100000: 1 to 1024 can carry it out";
    refused_plan(stage, &crowd, &[], 2, why);
    refused_plan(stage, &plan(stage, &[]), &[], 2, "the plan has no job");
}

#[test]
fn numbers_that_no_block_has_are_refused_before_a_file_is_made() {
    let stage = &Stage::new();
    let range = json!({"every": 0, "wait_before": true, "write": true, "wait_after": true});
    for (place, value, why) in [
        ("passes/loops", json!(0), "is 0: nothing would be done"),
        (
            "passes/time_based",
            json!(true),
            "starts over until a runtime is reached",
        ),
        ("access/steps", json!(0), "is 0: a position has"),
        ("flush/fsync_every", json!(0), "is 0: leave it out"),
        ("flush/fdatasync_every", json!(0), "is 0: leave it out"),
    ] {
        let why = format!("error: file: `{}` {why}", place.replace('/', "."));
        refused(stage, work(&format!("/{place}"), value), &why);
    }
    let why = "error: file: `flush.range.every` is 0";
    refused(stage, work("/flush/range", range), why);
    let chunk = |job: &mut Json| {
        work("/content/compress_percent", json!(50))(job);
        work("/content/compress_chunk_bytes", json!(0))(job);
    };
    refused(
        stage,
        chunk,
        "error: file: `content.compress_chunk_bytes` is 0",
    );
    let all = work("/content/compress_percent", json!(200));
    let why = "error: file: compressible share must be at most 100 percent (got 200)";
    refused(stage, all, why);
    let all = work("/content/dedupe_percent", json!(101));
    refused(stage, all, "repeated share must be at most 100 percent");
    let skewed = |job: &mut Json| {
        let access = &mut job["workload"]["access"];
        access["random"] = json!(true);
        access["distribution"] = json!({"name": "zipf", "theta": 1.0, "center": null});
    };
    refused(stage, skewed, "zipf theta must be positive");
    let nameless = work(
        "/targets/files",
        json!({"name": "listed", "paths": [""], "directories": []}),
    );
    refused(stage, nameless, "a file has no name");
}

#[test]
fn shares_of_a_mix_add_up_to_the_whole() {
    let stage = &Stage::new();
    for (read, write) in [(0, 50), (0, 200), (60, 60), (0, 0)] {
        let mix = |job: &mut Json| {
            work("/mix/read_percent", json!(read))(job);
            work("/mix/write_percent", json!(write))(job);
        };
        let why = "error: file: `mix` has shares that do not add up to 100\n";
        refused(stage, mix, why);
    }
}

#[test]
fn lengths_beyond_what_there_can_be_are_refused_with_their_own_reason() {
    let stage = &Stage::new();
    let far = json!({"bytes": 1_u64 << 63});
    let why =
        "error: file: file.0.0: the region ends at byte 9223372036854775808, and no file is longer";
    refused(stage, work("/region/size", far.clone()), why);
    refused(
        stage,
        work("/region/offset", far.clone()),
        "no file is longer",
    );
    let second = |job: &mut Json| {
        work("/region/offset_step", far.clone())(job);
        job["clones"] = json!(2);
    };
    refused(stage, second, "no file is longer");
    let wide = work("/memory/align_bytes", json!(1_u64 << 60));
    let why = "error: file: a buffer alignment of 1152921504606846976 bytes is more than 2 GiB";
    refused(stage, wide, why);
    let wide = json!({"read": 1_u64 << 60, "write": 1_u64 << 60, "trim": 1_u64 << 60});
    let why = "error: file: `access.align_bytes` is longer than an operation can be";
    refused(stage, work("/access/align_bytes", wide), why);
}

#[test]
fn what_the_machine_does_not_have_is_refused_before_a_file_is_made() {
    let stage = &Stage::new();
    let cpu = put("/placement/cpus", json!([99_999]));
    refused_with(stage, 3, cpu, "this machine has no CPU 99999");
    for bytes in [1 << 60, u64::MAX] {
        let lock = put("/placement/lock_bytes", json!(bytes));
        refused_with(
            stage,
            3,
            lock,
            "error: file: `placement.lock_bytes`: its workers",
        );
    }
}

#[test]
fn exchanges_that_no_ranks_can_do_are_refused() {
    let stage = &Stage::new();
    let wide = work("/replications", json!(4_000_000_000_u32));
    refused_exchange(stage, wide, "at most 65536 channels");
    let twice = |job: &mut Json| {
        let sizes = job["workload"]["sizes"].as_array_mut().unwrap();
        sizes.push(sizes[0].clone());
    };
    let why = "are listed twice: each size has one result";
    refused_exchange(stage, twice, why);
    let merged = put("/report/merge", json!(true));
    refused_exchange(stage, merged, "b_eff: `report.merge` has no meaning");
    let long = work("/sizes/0/exponent", json!(35));
    refused_exchange(
        stage,
        long,
        "b_eff: messages of 2^35 B in loops of 8: the exponent is at most 34",
    );
    let pairs = work("/pairing", json!("pairs"));
    let why = "error: b_eff: pairing `pairs`: 3 ranks have no pairs";
    refused_on(stage, 3, &exchange(stage), pairs, why);
    let long = work("/latency/bytes", json!(1_u64 << 35));
    let why = "error: lat-bw: messages have 1 byte to 2^34";
    refused_on(stage, 2, &latency_bandwidth(stage), long, why);
    for job in [exchange(stage), latency_bandwidth(stage)] {
        let nowhere = put("/placement/cpus", json!([]));
        refused_on(stage, 2, &job, nowhere, "`placement.cpus` names no CPU");
        let at_once = work("/timeout_ns", json!(0));
        refused_on(stage, 2, &job, at_once, "`timeout_ns` is 0");
    }
}

#[test]
fn faults_that_would_not_be_done_or_seen_are_refused() {
    let stage = &Stage::new();
    for (kind, rank, exponent, at, validation, why) in [
        ("flip", 2, 2, 0, "const", "the ranks are 0 to 1"),
        (
            "flip",
            1,
            30,
            0,
            "const",
            "no messages of this size are exchanged",
        ),
        (
            "flip",
            1,
            200,
            0,
            "sample",
            "no messages of this size are exchanged",
        ),
        ("flip", 1, 2, 8, "const", "a rank receives bytes 0 to 7"),
        (
            "flip",
            1,
            2,
            1,
            "sample",
            "validation `sample` looks at the ends",
        ),
        (
            "die",
            1,
            2,
            9,
            "const",
            "the loop has 8 exchanges of this size",
        ),
    ] {
        let fault = json!({"kind": kind, "rank": rank, "exponent": exponent, "at": at});
        let change = |job: &mut Json| {
            work("/faults", json!([fault.clone()]))(job);
            work("/validation", json!(validation))(job);
        };
        let why = format!("error: b_eff: `faults[0]`: {why}");
        refused_exchange(stage, change, &why);
    }
}

#[test]
fn what_no_door_has_written_is_refused_by_name() {
    let stage = &Stage::new();
    let whole = || plan(stage, &[&[writes(stage, "file", 1)]]);
    let refused = |change: &dyn Fn(&mut Json), why: &str| {
        let mut plan = whole();
        change(&mut plan);
        refused_plan(stage, &plan, &[], 2, why);
    };
    let door = put("/door", json!("windows"));
    let why = "odd.json: `door` is `windows`, and no door of this name makes plans (these do: run, fio, kio, nvme-perf,";
    refused(&door, why);
    let of_job = |value: Json| {
        move |plan: &mut Json| plan["groups"][0]["jobs"][0]["extensions"] = value.clone()
    };
    let of_plan = |value: Json| move |plan: &mut Json| plan["extensions"] = value.clone();
    let (other, wrong) = (json!({"vdbench": {}}), json!({"fio": {"colour": 1}}));
    let why = "odd.json: `extensions` has `vdbench`, which nothing reads (there is `fio`)";
    refused(&of_plan(other.clone()), why);
    refused(&of_job(other), "odd.json: file: `extensions` has `vdbench`");
    let why = "odd.json: `extensions.fio`: unknown field `colour`, expected `global_words`";
    refused(&of_plan(wrong.clone()), why);
    let why = "odd.json: file: `extensions.fio`: unknown field `colour`, expected one of";
    refused(&of_job(wrong), why);
    for workload in [
        json!({"kind": "unknown"}),
        json!({"kind": "unknown", "name": "oracle"}),
        json!({"kind": "oracle"}),
    ] {
        let kind = workload["kind"].as_str().unwrap();
        let why = format!(
            "odd.json: file: nothing carries out a workload `{kind}` (there are block, exchange, rpc, \
             latency_bandwidth, packet_path, object_store)"
        );
        refused(&put("/groups/0/jobs/0/workload", workload.clone()), &why);
    }
}
