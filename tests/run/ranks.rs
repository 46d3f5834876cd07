//! One plan on several ranks: processes of this machine, and both families of MPI.

mod slow;

use std::io::Read as _;

use rustix::process::{Signal, kill_process};
use weir_schema::RunResult;

use crate::stage::{
    LAUNCHERS, Running, Said, Stage, each_launcher, has, launch, said, skip, until,
};
use crate::{SMALL, result};

/// Operations of both jobs of [`SMALL`] on one rank.
const SMALL_OPERATIONS: u64 = 256 + 2 * 4;

fn operations(result: &RunResult) -> u64 {
    let workers = result.jobs().flat_map(weir_schema::JobResult::workers);
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
        result.jobs().map(|j| j.workers().len()).collect::<Vec<_>>(),
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

/// A job with a wrong word.
const WRONG: &str = "[a]\nioengine=null\nsize=1m\nrw=raed\n";

#[test]
fn what_all_ranks_know_is_told_once() {
    let stage = Stage::new();
    let file = stage.file("j.fio", WRONG);
    let message = stage.say(&["run", "--ranks", "3", &file]).code(2).silent();
    assert_eq!(message.err.matches("`raed`").count(), 1, "{message}");
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
        (["--ranks", "0"], "it takes a whole number from 1 to 1024"),
        (
            ["--ranks", "many"],
            "it takes a whole number from 1 to 1024",
        ),
        (["--per-rank", "mine"], "own, split, shared"),
        (
            ["--per-rank", "split"],
            "--per-rank: it is for several ranks",
        ),
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
    let message = stage.say(&["run", "--ranks=2", &file]).code(2).silent();
    assert!(
        message.err.contains("rank 0: ") && message.err.contains("rank 1: "),
        "{message}"
    );
}

/// Jobs that nobody waits for, the second after the first; each rank writes `data.<rank>`.
pub(crate) const LONG: &str = "[global]\nioengine=psync\nrw=write\nbs=4k\nsize=64k\ntime_based=1\nruntime=3600\n\
                    [a]\nfilename=data\n[b]\nstonewall=1\nioengine=null\n";

/// True if a rank has written its first block.
pub(crate) fn writes(stage: &Stage, rank: &str) -> bool {
    let mut block = Vec::new();
    let file = std::fs::File::open(stage.path(&format!("data.{rank}")));
    let read = file.and_then(|file| file.take(4096).read_to_end(&mut block));
    read.is_ok() && block.iter().any(|byte| *byte != 0)
}

/// Four ranks that all write by now; the report goes to `o.json` too.
fn four_that_write(stage: &Stage) -> Running {
    let file = stage.file("j.fio", LONG);
    let running = Running::start(stage.weir(&["run", "--ranks=4", "--output=o.json", &file]));
    let all = ["0", "1", "2", "3"];
    until("all ranks write", || {
        all.into_iter().all(|r| writes(stage, r))
    });
    running
}

pub(crate) fn stored(stage: &Stage) -> RunResult {
    serde_json::from_str(&stage.read("o.json")).unwrap()
}

pub(crate) fn numbers(result: &RunResult) -> Vec<u32> {
    result.ranks.iter().map(|r| r.rank).collect()
}

#[test]
fn a_rank_that_is_killed_ends_the_others_and_is_named() {
    let stage = Stage::in_memory();
    let running = four_that_write(&stage);
    // Rank 3 would tell rank 2 what it has done.
    kill_process(running.children()[1], Signal::KILL).unwrap();
    let said = running
        .end()
        .code(1)
        .out("  FAILED    rank 2 is gone: its process ");
    assert!(said.out.contains(" was ended by signal 9\n"), "{said}");
    assert!(!said.err.contains("error"), "{said}");
    let result = stored(&stage);
    assert!(!result.complete && result.ended_by.is_none(), "{said}");
    assert_eq!(numbers(&result), [0, 1, 3]);
    assert!(result.ranks.iter().all(|r| r.operations > 0), "{said}");
    let named = |job: &weir_schema::JobResult| job.failure.as_ref().unwrap().cause.clone();
    assert_eq!(
        result.jobs().map(named).collect::<Vec<_>>(),
        ["rank", "rank"]
    );
}

#[test]
fn a_signal_to_one_rank_ends_all() {
    for (rank, signal, code) in [(0, Signal::TERM, 143), (3, Signal::INT, 130)] {
        let stage = Stage::in_memory();
        let running = four_that_write(&stage);
        match rank {
            0 => running.signal(signal),
            other => kill_process(running.children()[other - 1], signal).unwrap(),
        }
        let said = running.end().code(code).out("  INCOMPLETE (signal ");
        let result = stored(&stage);
        assert_eq!(result.ended_by.unwrap().signal, code - 128);
        assert_eq!(numbers(&result), [0, 1, 2, 3], "{said}");
    }
}

#[test]
fn data_that_arrived_wrong_is_told_with_its_place() {
    let stage = Stage::new();
    let words = "beff --comm-type shm --ranks 2 -n 2 -u 4 -l 4 -m 4 --show-plan \
                 --inject flip:rank=0,size=3,byte=0";
    let words: Vec<_> = words.split_whitespace().collect();
    let plan = stage.file("flip.json", stage.say(&words).code(0).out);
    let said = stage.say(&["run", &plan]).code(1);
    let said = said.out("1 wrong bytes in messages of 8 B at rank ");
    let json = stage.say(&["run", "--format=json", &plan]).code(1);
    let result = crate::result(&json);
    let ids: Vec<_> = result.warnings.iter().map(|w| w.id.as_str()).collect();
    assert!(ids.contains(&"wrong-data"), "{said} {ids:?}");
}
