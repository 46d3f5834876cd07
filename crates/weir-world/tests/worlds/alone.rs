//! Worlds without a launcher, from the outside: copies of a program, threads.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests, outside of test functions"
)]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::launch::{RANKS, has, ranks, run, scratch, skip};

/// Output of rank 0 when all took part.
pub(crate) fn all(size: u32) -> String {
    let names: Vec<_> = (0..size).map(|rank| rank.to_string()).collect();
    format!("{size} ranks: {}\n", names.join(" "))
}

#[test]
fn threads_and_processes_do_everything_together() {
    for size in 1..=5 {
        for kind in ["threads", "processes"] {
            let said = ranks(&[kind, &size.to_string(), "collectives"]);
            assert_eq!(said.good(), all(size), "{kind}");
            assert_eq!(said.err, "");
        }
    }
}

#[test]
fn a_process_that_dies_is_named_and_the_others_end() {
    let said = ranks(&["processes", "3", "die"]);
    assert_eq!(said.code, Some(1), "{said:#?}");
    assert!(
        said.err.contains("rank 0: rank 2 is gone: its process "),
        "{said:#?}"
    );
    // Rank 0 ends the others as soon as it knows: they may not come to speak.
    assert!(said.err.contains(" ended with exit code 7\n"));
}

#[test]
fn a_rank_that_hangs_is_named_and_does_not_keep_the_others() {
    // How long a rank was waited for is told as it was: longer on a machine that is busy.
    let message = "rank 2 did not answer within ";
    let said = ranks(&["processes", "3", "hang"]);
    assert_eq!(said.code, Some(1), "{said:#?}");
    assert_ne!(said.complaints(message), 0, "{said:#?}");
    // Rank 1 waits for the same, and may end first; rank 2 ends with whoever started it.
    let of_first = ["did not answer within ", "is gone: its process "];
    let of_first = of_first.iter().flat_map(|what| {
        let lost = [1, 2].map(|rank| format!("rank 0: rank {rank} {what}"));
        lost.map(|line| said.complaints(&line))
    });
    assert_eq!(of_first.sum::<usize>(), 1, "{said:#?}");
}

#[test]
fn a_library_that_is_missing_or_unknown_is_named_once() {
    let missing = run(Command::new(RANKS)
        .args(["mpi", "1", "collectives"])
        .env("WEIR_MPI_LIB", "libabsent.so"));
    assert_eq!(missing.code, Some(3), "{missing:#?}");
    assert!(
        missing
            .err
            .starts_with("error: WEIR_MPI_LIB=libabsent.so: ")
    );

    let test = "a_library_that_is_missing_or_unknown_is_named_once";
    if !has("cc") {
        return skip(test, "no C compiler");
    }
    let (source, library) = (scratch("other.c"), scratch("libother.so"));
    let text = r#"
        #include <string.h>
        int MPI_Get_library_version(char *text, int *length) {
            strcpy(text, "Other MPI 1.0\nmore");
            *length = strlen(text);
            return 0;
        }
        int MPI_Get_version(int *version, int *subversion) {
            *version = 3;
            *subversion = 1;
            return 0;
        }
    "#;
    std::fs::write(&source, text).unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o", &library, &source])
        .status();
    assert!(built.unwrap().success());
    let unknown = run(Command::new(RANKS)
        .args(["mpi", "1", "collectives"])
        .env("WEIR_MPI_LIB", &library));
    assert_eq!(unknown.code, Some(3), "{unknown:#?}");
    let message = "libother.so is neither Open MPI nor compatible with MPICH (Other MPI 1.0)";
    assert_eq!(unknown.complaints(message), 1, "{unknown:#?}");
    std::fs::remove_file(source).unwrap();
    std::fs::remove_file(library).unwrap();
}

/// True if a process runs; one that ended and waits for its parent does not.
fn is_running(process: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap().trim().starts_with('Z'))
}

/// Asks until it is so; a minute is for machines that stand still.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let last = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < last, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn the_processes_end_with_rank_0() {
    let mut parent = Command::new(RANKS)
        .args(["processes", "4", "hang"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let list = format!("/proc/{0}/task/{0}/children", parent.id());
    let mut children = Vec::new();
    until("rank 0 has started the others", || {
        let text = std::fs::read_to_string(&list).unwrap();
        children = text.split_whitespace().map(str::to_owned).collect();
        children.len() == 3
    });
    // A copy that is killed before it took its place is no test of the place.
    let has_place = |child: &String| {
        let input = std::fs::read_link(format!("/proc/{child}/fd/0"));
        input.is_ok_and(|input| input.ends_with("null"))
    };
    until("the copies have taken their places", || {
        children.iter().all(has_place)
    });
    parent.kill().unwrap();
    parent.wait().unwrap();
    until("the others have ended", || {
        !children.iter().any(|child| is_running(child))
    });
}

#[test]
fn a_process_that_no_world_started_says_so() {
    let said = run(Command::new(RANKS)
        .args(["processes", "2", "collectives"])
        .envs([("WEIR_WORLD_RANK", "1"), ("WEIR_WORLD_SIZE", "2")])
        .envs([("WEIR_WORLD_NAME", "weir-0"), ("WEIR_WORLD_PARENT", "1")])
        .env("WEIR_WORLD_TOKEN", "7"));
    assert_eq!(said.code, Some(1), "{said:#?}");
    let message = "error: rank 1 could not be started: WEIR_WORLD_RANK is set, but no weir started";
    assert!(said.err.starts_with(message), "{said:#?}");
}
