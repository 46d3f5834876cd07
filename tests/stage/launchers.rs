//! The program on the ranks of launchers.

use std::process::Command;

use super::{MPI_FILES, Stage, WEIR, has, skip};

/// A launcher of each family of MPI.
pub(crate) const LAUNCHERS: [&[&str]; 2] =
    [&["mpirun.openmpi", "--oversubscribe"], &["mpirun.mpich"]];

/// weir with these words on so many ranks of a launcher.
pub(crate) fn launch(stage: &Stage, launcher: &[&str], ranks: u32, words: &[&str]) -> Command {
    launch_program(stage, launcher, ranks, &[&[WEIR], words].concat())
}

/// A program with its words on so many ranks of a launcher.
pub(crate) fn launch_program(
    stage: &Stage,
    launcher: &[&str],
    ranks: u32,
    words: &[&str],
) -> Command {
    let mut command = stage.command(launcher[0]);
    command.args(&launcher[1..]);
    command.args(["-n", &ranks.to_string()]).args(words);
    command.env_remove("WEIR_MPI_LIB");
    // As the administrator of a machine for tests.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
    command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    // Launchers that start together would make the one folder of their user together, and one would fail.
    let own = stage.path(MPI_FILES);
    std::fs::create_dir_all(&own).unwrap();
    command.env("OMPI_MCA_orte_tmpdir_base", own);
    command
}

/// Does this with every launcher of this machine; says which are not there.
#[track_caller]
pub(crate) fn each_launcher(name: &str, test: impl Fn(&Stage, &[&str])) {
    for launcher in LAUNCHERS {
        if has(launcher[0]) {
            test(&Stage::new(), launcher);
        } else {
            skip(name, &format!("no {}", launcher[0]));
        }
    }
}
