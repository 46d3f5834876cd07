//! Plans of unlike jobs: files, exchanges, latency and bandwidth, in groups that wait for each
//! other, alone and on several ranks.

use serde_json::{Value as Json, json};
use weir_schema::{JobResult, RunResult, State};

use crate::result;
use crate::stage::{Said, Stage, each_launcher, launch, said};

/// Ranks start within a moment of each other.
const MOMENT_NS: u64 = 20_000_000;

/// What the door shows as its plan.
fn shown(stage: &Stage, words: &str) -> Json {
    let words: Vec<_> = words.split_whitespace().collect();
    serde_json::from_str(&stage.say(&words).code(0).out).unwrap()
}

fn first_job(plan: &Json) -> Json {
    plan["groups"][0]["jobs"][0].clone()
}

/// A job that writes a file of its own, in blocks of 4 KiB.
fn writes(stage: &Stage, name: &str, blocks: u32) -> Json {
    let bytes = 4 * blocks;
    let text = format!("[{name}]\nioengine=psync\nrw=write\nbs=4k\nsize={bytes}k\n");
    let file = stage.file(&format!("{name}.fio"), text);
    first_job(&shown(stage, &format!("run --show-plan {file}")))
}

/// One that waits for everything before it.
fn after(mut job: Json) -> Json {
    job["start"]["barrier"] = json!(true);
    job
}

/// Jobs by group, with the words around them from a plan of one.
fn plan(stage: &Stage, groups: &[&[Json]]) -> Json {
    let file = stage.file("around.fio", "[x]\nioengine=null\nsize=4k\n");
    let mut plan = shown(stage, &format!("run --show-plan {file}"));
    plan["groups"] = groups.iter().map(|jobs| json!({ "jobs": jobs })).collect();
    plan
}

fn exchange(stage: &Stage) -> Json {
    let words = "beff --comm-type shm --ranks 2 -n 2 -u 8 -l 8 -m 4 --show-plan";
    first_job(&shown(stage, words))
}

fn latency_bandwidth(stage: &Stage) -> Json {
    let words = "net lat-bw --comm-type shm --ranks 2 --min-time 0.0001 --show-plan";
    first_job(&shown(stage, words))
}

/// Three groups: files; what ranks do together; files.
fn mixed(stage: &Stage, with_latency_bandwidth: bool) -> Json {
    let (before, later) = (writes(stage, "before", 16), writes(stage, "later", 32));
    let mut together = vec![after(exchange(stage))];
    if with_latency_bandwidth {
        together.push(after(latency_bandwidth(stage)));
    }
    plan(stage, &[&[before], &together, &[after(later)]])
}

fn job<'a>(result: &'a RunResult, name: &str) -> &'a JobResult {
    result.jobs().find(|job| job.name == name).unwrap()
}

fn written(result: &RunResult, name: &str) -> u64 {
    let kinds = job(result, name).workers().iter().flat_map(|w| &w.kinds);
    kinds.map(|k| k.operations).sum()
}

/// Every job did what was planned, one group after the other.
#[track_caller]
fn is_whole(said: &Said, ranks: u64) {
    let result = result(said);
    assert!(result.complete, "{said}");
    assert!(result.jobs().all(|job| job.state == State::Done), "{said}");
    assert_eq!(written(&result, "before"), 16 * ranks);
    assert_eq!(written(&result, "later"), 32 * ranks);
    let exchanged = job(&result, "b_eff").exchange().unwrap();
    assert_eq!(exchanged.sizes.len(), 5, "{said}");
    assert_eq!(exchanged.ranks.len() as u64, ranks);
    let ends: Vec<_> = result.jobs().map(|job| job.span.unwrap()).collect();
    for pair in ends.windows(2) {
        assert!(
            pair[1].start_ns.0 + MOMENT_NS >= pair[0].end_ns.0,
            "{pair:?}"
        );
    }
}

#[test]
fn unlike_jobs_run_one_after_the_other_on_processes() {
    let stage = Stage::new();
    let plan = mixed(&stage, true);
    let file = stage.file("mixed.json", plan.to_string());
    let said = stage
        .say(&["run", "--ranks=2", "--format=json", &file])
        .code(0);
    is_whole(&said, 2);
    let measured = result(&said);
    let lat_bw = job(&measured, "lat-bw").latency_bandwidth();
    assert_eq!(lat_bw.unwrap().latency.pairs.len(), 2, "{said}");
    for rank in 0..2 {
        let written = stage.read_bytes(&format!("later.0.0.{rank}")).len();
        assert_eq!(written, 32 * 4096, "rank {rank}");
    }
}

#[test]
fn unlike_jobs_run_under_both_launchers() {
    each_launcher("unlike jobs under a launcher", |stage, launcher| {
        let file = stage.file("mixed.json", mixed(stage, true).to_string());
        let words = ["run", "--format=json", &file];
        is_whole(&said(launch(stage, launcher, 2, &words)).code(0), 2);
    });
}

#[test]
fn what_needs_two_ranks_is_refused_by_name_before_anything_is_touched() {
    let stage = Stage::new();
    let file = stage.file("mixed.json", mixed(&stage, true).to_string());
    stage
        .say(&["run", &file])
        .code(2)
        .silent()
        .err("error: lat-bw: ")
        .err("at least 2 ranks");
    assert!(
        !std::path::Path::new(&stage.path("before.0.0")).exists(),
        "a file was made"
    );
    let file = stage.file("rest.json", mixed(&stage, false).to_string());
    is_whole(&stage.say(&["run", "--format=json", &file]).code(0), 1);
    for text in ["before", "b_eff", "later"] {
        stage.say(&["run", &file]).code(0).out(text);
    }
}

#[test]
fn two_jobs_that_want_all_ranks_at_once_are_refused() {
    let stage = Stage::new();
    let both = plan(&stage, &[&[exchange(&stage), exchange(&stage)]]);
    let file = stage.file("both.json", both.to_string());
    stage
        .say(&["run", "--ranks=2", &file])
        .code(2)
        .err("all ranks take part in it, and in `b_eff` at the same time");
    let turns = plan(&stage, &[&[exchange(&stage)], &[after(exchange(&stage))]]);
    let file = stage.file("turns.json", turns.to_string());
    let said = stage
        .say(&["run", "--ranks=2", "--format=json", &file])
        .code(0);
    let result = result(&said);
    let sizes = result.jobs().map(|job| job.exchange().unwrap().sizes.len());
    assert_eq!(sizes.collect::<Vec<_>>(), [5, 5], "{said}");
}

#[test]
fn files_on_ranks_that_are_threads_are_refused() {
    let stage = Stage::new();
    let mut plan = plan(&stage, &[&[writes(&stage, "file", 1)]]);
    plan["ranks"] = json!({ "count": 2, "spawn": "threads" });
    let file = stage.file("threads.json", plan.to_string());
    stage
        .say(&["run", &file])
        .code(2)
        .err("error: file: its ranks cannot be threads of one process: use processes");
    assert!(
        !std::path::Path::new(&stage.path("file.0.0")).exists(),
        "a file was made"
    );
}

#[test]
fn ranks_that_contradict_the_plan_are_refused_by_name() {
    let stage = Stage::new();
    let mut plan = plan(&stage, &[&[exchange(&stage)]]);
    plan["ranks"] = json!({ "count": 4, "spawn": "processes" });
    let file = stage.file("four.json", plan.to_string());
    stage
        .say(&["run", "--ranks=2", &file])
        .code(2)
        .err("error: --ranks 2, and the plan says 4 processes");
}

#[test]
fn a_setting_that_ranks_together_do_not_heed_is_refused() {
    let stage = Stage::new();
    let mut job = exchange(&stage);
    job["clones"] = json!(7);
    let file = stage.file("clones.json", plan(&stage, &[&[job]]).to_string());
    stage
        .say(&["run", &file])
        .code(2)
        .err("error: b_eff: `clones` has no meaning");
}

#[test]
fn a_kind_that_the_workload_does_not_have_is_refused_by_name() {
    let stage = Stage::new();
    let mut job = writes(&stage, "file", 1);
    job["workload"]["load"]["errors"]["go_on"] = json!(["write", "redo"]);
    let file = stage.file("kinds.json", plan(&stage, &[&[job]]).to_string());
    let refusal = "error: file: `load.errors.go_on` names the kind `redo`; this workload has read, \
                   write, trim, sync";
    stage.say(&["run", &file]).code(2).silent().err(refusal);
    assert!(
        !std::path::Path::new(&stage.path("file.0.0")).exists(),
        "a file was made"
    );
}

/// A plan of one job that writes, changed: refused for this reason, and no file is made.
fn refused(stage: &Stage, change: impl Fn(&mut Json), why: &str) {
    let mut job = writes(stage, "file", 1);
    change(&mut job);
    let file = stage.file("odd.json", plan(stage, &[&[job]]).to_string());
    stage.say(&["run", &file]).code(2).silent().err(why);
    assert!(
        !std::path::Path::new(&stage.path("file.0.0")).exists(),
        "a file was made: {why}"
    );
}

/// The same, of a plan of one exchange.
fn refused_exchange(stage: &Stage, change: impl Fn(&mut Json), why: &str) {
    let mut job = exchange(stage);
    change(&mut job);
    let file = stage.file("odd.json", plan(stage, &[&[job]]).to_string());
    stage.say(&["run", "--ranks=2", &file]).code(2).err(why);
}

/// Another value at this place of the workload.
fn work(path: &str, value: Json) -> impl Fn(&mut Json) {
    let path = format!("/workload{path}");
    move |job| *job.pointer_mut(&path).unwrap() = value.clone()
}

#[test]
fn what_no_plan_can_mean_is_refused_by_name() {
    let stage = &Stage::new();
    let clones = |job: &mut Json| job["clones"] = json!(0);
    refused(stage, clones, "file: `clones` is 0");
    let waits = |job: &mut Json| job["start"]["wait_for"] = json!("nobody");
    let why = "`start.wait_for` names `nobody`, and no earlier job";
    refused(stage, waits, why);
    let nice = |job: &mut Json| job["placement"]["nice"] = json!(5000);
    refused(stage, nice, "`placement.nice` is 5000");
    let odd = work("/load/recording/percentiles", json!([-1.0]));
    refused(stage, odd, "`load.recording.percentiles` has -1");
    let none = work("/load/bounds/operations", json!(0));
    refused(stage, none, "`load.bounds.operations` is 0");

    // The answer does not take as long as going over all of them would.
    let mut job = writes(stage, "file", 1);
    job["clones"] = json!(4_000_000_000_u32);
    let file = stage.file("many.json", plan(stage, &[&[job]]).to_string());
    stage.say(&["run", &file]).code(3).err("workers at a time");

    let mut crowd = plan(stage, &[&[exchange(stage)]]);
    crowd["ranks"] = json!({ "count": 100_000, "spawn": "threads" });
    let file = stage.file("crowd.json", crowd.to_string());
    let why = "the plan says `ranks.count` 100000: 1 to 1024 can carry it out";
    stage.say(&["run", &file]).code(2).err(why);

    let empty = stage.file("empty.json", plan(stage, &[]).to_string());
    stage
        .say(&["run", &empty])
        .code(2)
        .err("the plan has no job");
}

#[test]
fn numbers_that_no_block_has_are_refused_before_a_file_is_made() {
    let stage = &Stage::new();
    refused(
        stage,
        work("/passes/loops", json!(0)),
        "`passes.loops` is 0",
    );
    let all = work("/content/compress_percent", json!(200));
    let why = "compressible share must be at most 100 percent (got 200)";
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
    let merged = |job: &mut Json| job["report"]["merge"] = json!(true);
    refused_exchange(stage, merged, "b_eff: `report.merge` has no meaning");
}

#[test]
fn a_cpu_that_is_not_there_is_refused_before_anything_is_touched() {
    let stage = Stage::new();
    let mut job = writes(&stage, "file", 1);
    job["placement"]["cpus"] = json!([99_999]);
    let file = stage.file("far.json", plan(&stage, &[&[job]]).to_string());
    let said = stage.say(&["run", &file]).code(3);
    said.silent().err("this machine has no CPU 99999");
    assert!(!std::path::Path::new(&stage.path("file.0.0")).exists());
}

#[test]
fn a_transport_that_needs_a_launcher_is_refused_without_one_before_anything_is_touched() {
    let stage = Stage::new();
    let mut job = after(exchange(&stage));
    job["engine"]["name"] = json!("mpi");
    let file = stage.file(
        "mpi.json",
        plan(&stage, &[&[writes(&stage, "file", 1)], &[job]]).to_string(),
    );
    let said = stage.say(&["run", "--ranks=2", &file]).code(3);
    said.silent();
    assert!(!std::path::Path::new(&stage.path("file.0.0.0")).exists());
}

#[test]
fn groups_do_not_overlap_in_the_times_of_the_result() {
    let stage = Stage::new();
    let jobs = ["one", "two", "three"].map(|name| after(writes(&stage, name, 64)));
    let groups: Vec<&[Json]> = jobs.iter().map(std::slice::from_ref).collect();
    let file = stage.file("turns.json", plan(&stage, &groups).to_string());
    for _ in 0..3 {
        let said = stage
            .say(&["run", "--ranks=3", "--format=json", &file])
            .code(0);
        let result = result(&said);
        let spans: Vec<_> = result.jobs().map(|job| job.span.unwrap()).collect();
        for pair in spans.windows(2) {
            assert!(pair[0].end_ns <= pair[1].start_ns, "{spans:?}");
        }
    }
}
