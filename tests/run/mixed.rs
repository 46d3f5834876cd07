//! Plans of unlike jobs: files, exchanges, latency and bandwidth, in groups that wait for each
//! other, alone and on several ranks.

mod slow;

use serde_json::{Value as Json, json};
use weir_schema::{JobResult, RunResult, State};

use crate::result;
use crate::stage::{Said, Stage, each_launcher, launch, said};

/// Ranks start within a moment of each other.
const MOMENT_NS: u64 = 20_000_000;

/// Plan that the door prints.
fn shown(stage: &Stage, words: &str) -> Json {
    let words: Vec<_> = words.split_whitespace().collect();
    serde_json::from_str(&stage.say(&words).code(0).out).unwrap()
}

fn first_job(plan: &Json) -> Json {
    plan["groups"][0]["jobs"][0].clone()
}

/// A job that writes a file of its own, in blocks of 4 KiB.
pub(crate) fn writes(stage: &Stage, name: &str, blocks: u32) -> Json {
    let bytes = 4 * blocks;
    let text = format!("[{name}]\nioengine=psync\nrw=write\nbs=4k\nsize={bytes}k\n");
    let file = stage.file(&format!("{name}.fio"), text);
    first_job(&shown(stage, &format!("run --show-plan {file}")))
}

/// One that waits for everything before it.
pub(crate) fn after(mut job: Json) -> Json {
    job["start"]["barrier"] = json!(true);
    job
}

/// Jobs by group, with the words around them from a plan of one.
pub(crate) fn plan(stage: &Stage, groups: &[&[Json]]) -> Json {
    let file = stage.file("around.fio", "[x]\nioengine=null\nsize=4k\n");
    let mut plan = shown(stage, &format!("run --show-plan {file}"));
    plan["groups"] = groups.iter().map(|jobs| json!({ "jobs": jobs })).collect();
    plan
}

pub(crate) fn exchange(stage: &Stage) -> Json {
    let words = "beff --comm-type shm --ranks 2 -n 2 -u 8 -l 8 -m 4 --show-plan";
    first_job(&shown(stage, words))
}

pub(crate) fn latency_bandwidth(stage: &Stage) -> Json {
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
