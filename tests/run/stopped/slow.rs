//! Slow tests: they take long, or need the launchers of MPI.

use super::*;

#[test]
fn a_rank_of_a_launcher_that_stops_is_left_out_of_the_report() {
    each_launcher("a stopped rank of a job", |_, launcher| {
        each_rank_is_left_out(|stage, words| launch(stage, launcher, 4, words));
    });
}

#[test]
fn a_process_that_stops_is_left_out_of_the_report() {
    each_rank_is_left_out(|stage, words| {
        let mut command = stage.weir(words);
        command.arg(format!("--ranks={RANKS}"));
        command
    });
}

#[test]
fn processes_that_were_stopped_together_go_on() {
    let stage = Stage::new();
    let text = "[a]\nioengine=null\nsize=1m\nrw=read\ntime_based=1\nruntime=5\n\
                [b]\nstonewall=1\nioengine=null\nsize=1m\nrw=read\n";
    let file = stage.file("j.fio", text);
    let words = [
        "run",
        "--ranks=3",
        "--rank-timeout=1",
        "--format=json",
        &file,
    ];
    let ranks = RankProcesses::of(Running::start(stage.weir(&words)), 3);
    let said = ranks.pause_all(Duration::from_secs(3)).end().code(0);
    let result = result(&said);
    assert!(result.complete, "{said}");
    assert_eq!(numbers(&result), [0, 1, 2]);
}
