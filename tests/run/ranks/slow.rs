//! Slow tests: under the launchers of MPI.

use super::{
    LAUNCHERS, LONG, Running, SMALL, Signal, Stage, WRONG, each_launcher, has, is_of_all, launch,
    numbers, said, skip, stored, until, writes,
};

#[test]
fn one_binary_runs_under_both_launchers() {
    each_launcher("ranks under a launcher", |stage, launcher| {
        let file = stage.file("j.fio", SMALL);
        let words = ["run", "--format=json", &file];
        is_of_all(&said(launch(stage, launcher, 2, &words)).code(0), 2);
    });
}

#[test]
fn a_signal_to_mpichs_launcher_leaves_the_report() {
    let launcher = "mpirun.mpich";
    if !has(launcher) {
        return skip("a signal to MPICH's launcher", "no mpirun.mpich");
    }
    for signal in [Signal::INT, Signal::TERM] {
        let stage = Stage::in_memory();
        let file = stage.file("j.fio", LONG);
        let words = ["run", "--output=o.json", &file];
        let running = Running::start(launch(&stage, &[launcher], 2, &words));
        until("both ranks write", || {
            ["0", "1"].into_iter().all(|r| writes(&stage, r))
        });
        running.signal(signal);
        let said = running.end().out("  INCOMPLETE (signal ");
        let result = stored(&stage);
        assert_eq!(result.ended_by.unwrap().signal, signal.as_raw(), "{said}");
        assert_eq!(numbers(&result), [0, 1], "{said}");
    }
}

#[test]
fn a_file_is_whole_where_the_launcher_cuts_what_is_printed() {
    let launcher = LAUNCHERS[0];
    if !has(launcher[0]) {
        return skip("a file under Open MPI", "no mpirun.openmpi");
    }
    let stage = Stage::in_memory();
    let file = stage.file("j.fio", LONG);
    let words = ["run", "--format=json", "--output=o.json", &file];
    let mut command = launch(&stage, launcher, 2, &words);
    // It kills the ranks after a second, which a busy machine may need for more than the file.
    command.env("OMPI_MCA_odls_base_sigkill_timeout", "5");
    let running = Running::start(command);
    until("both ranks write", || {
        ["0", "1"].into_iter().all(|r| writes(&stage, r))
    });
    running.signal(Signal::INT);
    let said = running.end();
    assert_eq!(numbers(&stored(&stage)), [0, 1], "{said}");
}

#[test]
fn a_wrong_word_is_reported_once_under_a_launcher() {
    each_launcher("a wrong word under a launcher", |stage, launcher| {
        let file = stage.file("j.fio", WRONG);
        let message = said(launch(stage, launcher, 2, &["run", &file])).silent();
        assert_eq!(message.err.matches("`raed`").count(), 1, "{message}");
    });
}
