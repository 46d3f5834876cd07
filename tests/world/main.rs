//! `weir mpi`, as a user starts it: alone, under launchers, without a library.

mod slow;
#[path = "../stage/mod.rs"]
mod stage;

use stage::{Stage, has, said, skip};

/// Launchers by Debian's names, with what weir says of their libraries and of them.
const LAUNCHERS: [(&str, &str, &str, &str); 2] = [
    (
        "mpirun.openmpi",
        "libmpich.so.12",
        "family    Open MPI\n",
        "launcher  Open MPI's launcher, 2 processes\nworld     2 ranks\n",
    ),
    (
        "mpirun.mpich",
        "libmpi.so.40",
        "family    MPICH\n",
        "launcher  a PMI launcher (Hydra of MPICH, Intel MPI), 2 processes\nworld     2 ranks\n",
    ),
];

/// The page, on two ranks of a launcher.
fn under(stage: &Stage, launcher: &str) -> std::process::Command {
    let known = stage::LAUNCHERS.into_iter();
    let words = known.filter(|l| l[0] == launcher).flatten().copied();
    stage::launch(stage, &words.collect::<Vec<_>>(), 2, &["mpi", "info"])
}

#[test]
fn a_library_that_is_not_there_is_a_lack_with_its_remedy() {
    let stage = Stage::new();
    let mut command = stage.weir(&["mpi", "info"]);
    command.env("WEIR_MPI_LIB", "/nowhere/libmpi.so");
    said(command)
        .code(3)
        .silent()
        .err("error: WEIR_MPI_LIB=/nowhere/libmpi.so: ");
}

#[test]
fn mpi_takes_one_word() {
    let stage = Stage::new();
    for words in [&["mpi"][..], &["mpi", "inof"], &["mpi", "info", "all"]] {
        let said = stage.say(words).code(2).silent();
        assert_eq!(said.err, "error: `weir mpi` takes one word: `info`\n");
    }
}

#[test]
fn the_page_of_mpi_has_examples() {
    let stage = Stage::new();
    let page = stage.say(&["mpi", "--help"]).code(0).calm().out;
    assert!(page.starts_with("weir mpi info\n"), "{page}");
    assert!(page.contains("Examples:\n    weir mpi info\n"), "{page}");
}
