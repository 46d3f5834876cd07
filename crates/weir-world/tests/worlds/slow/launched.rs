//! Worlds under the launchers of both families of MPI.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests, outside of test functions"
)]

use crate::alone::all;
use crate::launch::{MPICH, OPEN_MPI, families, has, is_here, run, skip, under, watched};

#[test]
fn ranks_under_both_families_do_everything_together() {
    for mpi in families("ranks_under_both_families_do_everything_together") {
        for size in 1..=5 {
            let said = run(&mut under(mpi, size, &["collectives"]));
            assert_eq!(said.good(), all(size), "{mpi:?}");
            assert_eq!(said.err, "");
        }
    }
}

#[test]
fn the_typed_calls_move_the_bytes_of_both_families() {
    for mpi in families("the_typed_calls_move_the_bytes_of_both_families") {
        for size in [1, 2, 3] {
            let said = run(&mut under(mpi, size, &["typed"]));
            let expected = format!(
                "{size} ranks around the ring; there is no rank {size}: the world has {size}\n"
            );
            assert_eq!(said.good(), expected, "{mpi:?}");
        }
    }
}

#[test]
fn as_many_messages_go_one_way_as_the_other() {
    for mpi in families("as_many_messages_go_one_way_as_the_other") {
        for (size, expected) in [(1, "0"), (2, "3004"), (3, "3004")] {
            let said = run(&mut under(mpi, size, &["uneven"]));
            let expected = format!("{expected} messages to each\n");
            assert_eq!(said.good(), expected, "{mpi:?}");
        }
    }
}

#[test]
fn the_typed_calls_touch_no_memory_but_their_buffers() {
    let test = "the_typed_calls_touch_no_memory_but_their_buffers";
    // Open MPI's own start-up is not clean under valgrind.
    if !is_here(MPICH, test) {
        return;
    }
    if !has("valgrind") {
        return skip(test, "no valgrind");
    }
    let watcher = ["valgrind", "-q", "--error-exitcode=5"];
    let mut command = watched(MPICH, 2, &watcher, &["typed"]);
    // MPICH's look at the hardware would load drivers of OpenCL, whose loading alone is reported.
    command.env("HWLOC_PLUGINS_PATH", "/nonexistent");
    let said = run(&mut command);
    assert!(said.good().starts_with("2 ranks around the ring"));
}

#[test]
fn a_rank_that_dies_under_a_launcher_ends_the_others() {
    for mpi in families("a_rank_that_dies_under_a_launcher_ends_the_others") {
        let said = run(&mut under(mpi, 3, &["die"]));
        assert_ne!(said.code, Some(0), "{mpi:?}: {said:#?}");
        assert!(!said.out.contains("spoken"));
    }
}

#[test]
fn a_rank_that_hangs_under_a_launcher_is_named() {
    for mpi in families("a_rank_that_hangs_under_a_launcher_is_named") {
        let said = run(&mut under(mpi, 3, &["hang"]));
        assert_ne!(said.code, Some(0), "{said:#?}");
        // The launcher ends all with the first that ends: another one may not come to speak.
        assert_ne!(
            said.complaints("rank 2 did not answer within "),
            0,
            "{said:#?}"
        );
    }
}

#[test]
fn a_watchdog_ends_ranks_that_wait_for_each_other() {
    for mpi in families("a_watchdog_ends_ranks_that_wait_for_each_other") {
        let said = run(&mut under(mpi, 2, &["deadlock"]));
        assert_eq!(said.code, Some(77), "{mpi:?}: {said:#?}");
        assert_eq!(said.out, "");
    }
}

#[test]
fn a_library_of_the_other_family_gives_one_message_with_both_sizes() {
    let test = "a_library_of_the_other_family_gives_one_message_with_both_sizes";
    if families(test).len() < 2 {
        return;
    }
    for (mpi, other, names) in [
        (
            OPEN_MPI,
            MPICH,
            ["Open MPI's launcher", ": MPICH (MPICH Version: "],
        ),
        (
            MPICH,
            OPEN_MPI,
            ["a PMI launcher (Hydra", ": Open MPI (Open MPI v"],
        ),
    ] {
        // Processes of Open MPI that find no launcher of their own make and remove one folder below
        // TMPDIR, each for itself: one that begins as another ends may fail in MPI_Init.
        let alone = r#"d=$(mktemp -d); TMPDIR=$d "$0" "$@"; c=$?; rm -r "$d"; exit $c"#;
        let mut ranks = watched(mpi, 3, &["sh", "-c", alone], &["collectives"]);
        let said = run(ranks.env("WEIR_MPI_LIB", other.library));
        assert_eq!(said.code, Some(1), "{said:#?}");
        assert_eq!(said.out, "", "no rank goes on alone");
        let message = "started 3 processes, but the MPI library sees a world of 1";
        assert_eq!(said.complaints(message), 1, "{said:#?}");
        assert!(
            names.iter().all(|name| said.err.contains(name)),
            "{said:#?}"
        );
    }
}
