//! Slow tests: under the launchers of MPI.

use super::{Stage, beff};

#[test]
fn help_is_printed_by_one_process_of_a_launcher() {
    let stage = Stage::new();
    beff(&stage, "-h").code(0).calm().out("--comm-type <TYPE>");
    for (rank, prints) in [("0", true), ("1", false)] {
        let mut command = stage.peer(&["Network_intel", "-h"]);
        command.env("OMPI_COMM_WORLD_SIZE", "2");
        command.env("OMPI_COMM_WORLD_RANK", rank);
        let said = crate::stage::said(command).code(0).calm();
        assert_eq!(!said.out.is_empty(), prints, "{said}");
    }
}

#[test]
fn a_wrong_word_under_a_launcher_is_told_once() {
    let stage = Stage::new();
    for (rank, code) in [("0", 2), ("1", 0)] {
        let mut command = stage.peer(&["Network_intel", "-d", "0"]);
        command.env("OMPI_COMM_WORLD_SIZE", "2");
        command.env("OMPI_COMM_WORLD_RANK", rank);
        let said = crate::stage::said(command).code(code).silent();
        assert_eq!(said.err.is_empty(), rank == "1", "{said}");
    }
}
