//! Ranks that an MPI launcher started: one table, whatever the family of the launcher.

use std::process::Command;

use crate::stage::{
    LAUNCHERS, Said, Stage, each_launcher, has, launch, launch_program, peer, said, skip,
};
use crate::table;

/// The benchmark with these words on so many ranks of a launcher.
pub(crate) fn under(stage: &Stage, launcher: &[&str], ranks: u32, words: &str) -> Command {
    let all = std::iter::once(peer("Network_intel")).chain(words.split_whitespace());
    launch_program(stage, launcher, ranks, &all.collect::<Vec<_>>())
}

/// MPI where this build has it as a transport, else memory that the ranks share.
fn transport(stage: &Stage) -> &'static str {
    if crate::has(stage, "mpi") {
        "AUTO"
    } else {
        "shm"
    }
}

fn one_table(said: &Said, ranks: u32, rows: usize) {
    assert_eq!(said.out.matches("b_eff = ").count(), 1, "{said}");
    assert_eq!(said.out.matches("General setup:").count(), 1, "{said}");
    assert_eq!(table(&said.out).len(), rows, "{said}");
    let line = format!("MPI Ranks                               {ranks}\n");
    assert!(said.out.contains(&line), "{said}");
}

#[test]
fn four_ranks_print_one_table() {
    each_launcher("four ranks under a launcher", |stage, launcher| {
        let comm = transport(stage);
        let words = format!("-n 3 -u 64 -l 8 -m 12 --comm-type {comm} --dump-json o.json");
        let said = said(under(stage, launcher, 4, &words)).code(0);
        one_table(&said, 4, 13);
        let json: serde_json::Value = serde_json::from_str(&stage.read("o.json")).unwrap();
        assert_eq!(json["validated"], true);
        assert_eq!(json["weir"]["ranks"].as_array().unwrap().len(), 4);
        if comm == "AUTO" {
            assert_eq!(json["weir"]["transport"], "mpi");
            assert!(
                json["mpi"]["version"].as_u64() >= Some(3),
                "{}",
                json["mpi"]
            );
        }
    });
}

#[test]
fn three_ranks_come_to_an_end() {
    each_launcher("three ranks under a launcher", |stage, launcher| {
        let words = format!("-n 2 -u 32 -l 8 -m 8 --comm-type {}", transport(stage));
        let said = said(under(stage, launcher, 3, &words)).code(0);
        one_table(&said, 3, 9);
    });
}

#[test]
fn wrong_bytes_at_another_rank_fail_the_run() {
    each_launcher("wrong bytes under a launcher", |stage, launcher| {
        let comm = transport(stage);
        let words = format!("-n 2 -u 8 -l 8 -m 8 --comm-type {comm} --inject flip:rank=1,size=8");
        said(under(stage, launcher, 2, &words))
            .code(1)
            .err("Validation data invalid for message size 256 in 1 cases! (rank 1)");
    });
}

#[test]
fn a_plan_of_threads_under_a_launcher_is_refused_by_name() {
    each_launcher("a plan of threads under a launcher", |stage, launcher| {
        let words = "--ranks 2 -n 2 -u 8 -l 8 -m 4 --comm-type shm --show-plan";
        let plan = crate::beff(stage, words).code(0).out;
        stage.file("plan.json", plan);
        let said = said(launch(stage, launcher, 3, &["run", "plan.json"])).code_of_a_rank(2);
        let message = "error: the plan says 2 threads that weir starts itself, and ";
        assert_eq!(said.err.matches(message).count(), 1, "{said}");
        said.err(" started 3\n");
    });
}

#[test]
fn more_ranks_than_processors_are_told() {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let Ok(ranks @ ..=9) = u32::try_from(cpus + 1) else {
        return skip("more ranks than processors", "more than 8 processors");
    };
    each_launcher("more ranks than processors", |stage, launcher| {
        let words = format!("-n 1 -u 2 -l 2 -m 2 --comm-type {}", transport(stage));
        let message = format!("warning: {ranks} ranks share {cpus} CPUs");
        said(under(stage, launcher, ranks, &words))
            .code(0)
            .err(&message);
    });
}

#[test]
fn the_page_of_help_is_printed_once() {
    each_launcher("help under a launcher", |stage, launcher| {
        let said = said(under(stage, launcher, 2, "-h")).code(0).calm();
        assert_eq!(said.out.matches("weir beff [OPTIONS]").count(), 1, "{said}");
    });
}

#[test]
fn a_library_that_is_not_the_launchers_is_told_once() {
    let stage = Stage::new();
    let (launcher, other) = (LAUNCHERS[0], "libmpich.so.12");
    if !(has(launcher[0]) && has("mpirun.mpich")) {
        return skip(
            "another library than the launcher's",
            "one family of MPI alone",
        );
    }
    let words = format!("-n 1 -u 2 -l 2 -m 2 --comm-type {}", transport(&stage));
    let mut command = under(&stage, launcher, 2, &words);
    command.env("WEIR_MPI_LIB", other);
    let said = said(command).code_of_a_rank(1).silent();
    assert_eq!(said.err.matches("started 2 processes").count(), 1, "{said}");
    assert!(said.err.contains("sees a world of 1: MPICH"), "{said}");
}
