//! One plan on several ranks: processes of this machine, and both families of MPI.

use weir_schema::RunResult;

use crate::stage::{Said, Stage, each_launcher, launch, said};
use crate::{SMALL, result};

/// Operations of both jobs of [`SMALL`] on one rank.
const SMALL_OPERATIONS: u64 = 256 + 2 * 4;

fn operations(result: &RunResult) -> u64 {
    let workers = result.jobs().flat_map(|j| &j.workers);
    workers.flat_map(|w| &w.kinds).map(|k| k.operations).sum()
}

/// The plan ran on each of so many ranks, and one result tells of all.
#[track_caller]
fn is_of_all(said: &Said, ranks: u32) {
    let result = result(said);
    assert!(result.complete, "{said}");
    assert_eq!(
        operations(&result),
        u64::from(ranks) * SMALL_OPERATIONS,
        "{said}"
    );
    let numbers: Vec<u32> = result.ranks.iter().map(|r| r.rank).collect();
    assert_eq!(numbers, (0..ranks).collect::<Vec<_>>());
    assert!(
        result
            .ranks
            .iter()
            .all(|r| r.operations == SMALL_OPERATIONS),
        "{said}"
    );
    // As many jobs and workers as on one rank, in the same plan.
    assert_eq!(
        result.jobs().map(|j| j.workers.len()).collect::<Vec<_>>(),
        [1, 2]
    );
    assert_eq!(result.plan.jobs().count(), 2);
}

#[test]
fn processes_run_the_plan_each_and_report_as_one() {
    let stage = Stage::new();
    let file = stage.file("j.fio", SMALL);
    let said = stage
        .say(&["run", "--ranks", "3", "--format=json", &file])
        .code(0)
        .calm();
    is_of_all(&said, 3);
}

#[test]
fn the_report_says_how_far_ranks_lie_apart() {
    let stage = Stage::new();
    let file = stage.file("j.fio", SMALL);
    let said = stage.say(&["run", "--ranks=2", &file]).code(0);
    said.out("ranks     2 on 1 host least ");
}

#[test]
fn one_binary_runs_under_both_launchers() {
    each_launcher("ranks under a launcher", |stage, launcher| {
        let file = stage.file("j.fio", SMALL);
        let words = ["run", "--format=json", &file];
        is_of_all(&said(launch(stage, launcher, 2, &words)).code(0), 2);
    });
}

#[test]
fn what_all_ranks_know_is_told_once() {
    let wrong = "[a]\nioengine=null\nsize=1m\nrw=raed\n";
    let stage = Stage::new();
    let file = stage.file("j.fio", wrong);
    let told = stage.say(&["run", "--ranks", "3", &file]).code(2).silent();
    assert_eq!(told.err.matches("`raed`").count(), 1, "{told}");
    each_launcher("a wrong word under a launcher", |stage, launcher| {
        let file = stage.file("j.fio", wrong);
        let told = said(launch(stage, launcher, 2, &["run", &file])).silent();
        assert_eq!(told.err.matches("`raed`").count(), 1, "{told}");
    });
}

#[test]
fn each_rank_has_files_of_its_own() {
    let stage = Stage::in_memory();
    let file = stage.file("j.fio", "[a]\nrw=write\nsize=64k\nfilename=data\n");
    stage.say(&["run", "--ranks", "2", &file]).code(0);
    assert_eq!(stage.list(), ["data.0", "data.1", "j.fio"]);
}

#[test]
fn a_target_is_split_into_equal_parts() {
    let stage = Stage::in_memory();
    let file = stage.file("j.fio", "[a]\nrw=read\nsize=96k\nbs=4k\nfilename=data\n");
    let words = ["run", "--ranks=3", "--per-rank=split", "--format=json"];
    let said = stage.say(&[&words[..], &[&file]].concat()).code(0);
    let result = result(&said);
    // The file is made once, whole, and read once by all together.
    assert_eq!(stage.list(), ["data", "j.fio"]);
    assert_eq!(stage.read_bytes("data").len(), 96 << 10);
    assert_eq!(operations(&result), 24, "{said}");
    assert!(result.ranks.iter().all(|r| r.operations == 8), "{said}");
    let shared = ["run", "--ranks=3", "--per-rank=shared", "--format=json"];
    let said = stage.say(&[&shared[..], &[&file]].concat()).code(0);
    assert_eq!(operations(&crate::result(&said)), 3 * 24);
}

#[test]
fn wrong_words_about_ranks_are_refused() {
    let stage = Stage::new();
    let file = stage.file("j.fio", SMALL);
    for (words, text) in [
        (["--ranks", "0"], "expected a number from 1 to 1024"),
        (["--ranks", "many"], "expected a number from 1 to 1024"),
        (["--per-rank", "mine"], "own, split, shared"),
    ] {
        let words = [&["run"], &words[..], &[&file]].concat();
        stage.say(&words).code(2).silent().err(text);
    }
    let state = "[a]\nfilename=data\nrw=write\nsize=64k\nverify=crc32c\nverify_state_load=1\n";
    let state = stage.file("s.fio", state);
    stage
        .say(&["run", "--ranks=2", &state])
        .code(2)
        .silent()
        .err("states of verification are of one process");
}

#[test]
fn a_rank_that_cannot_run_keeps_all_from_running() {
    let stage = Stage::new();
    let text = "[a]\nrw=read\nsize=64k\nallow_file_create=0\nfilename=gone\n";
    let file = stage.file("j.fio", text);
    let told = stage.say(&["run", "--ranks=2", &file]).code(2).silent();
    assert!(
        told.err.contains("rank 0: ") && told.err.contains("rank 1: "),
        "{told}"
    );
}
