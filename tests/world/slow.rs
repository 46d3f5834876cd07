//! Slow tests: under the launchers of MPI.

use super::{LAUNCHERS, Stage, has, said, skip, under};

#[test]
fn the_library_of_the_launcher_is_told_once() {
    let stage = Stage::new();
    for (launcher, _, family, world) in LAUNCHERS {
        if !has(launcher) {
            skip(
                "the_library_of_the_launcher_is_told_once",
                &format!("no {launcher}"),
            );
            continue;
        }
        let said = said(under(&stage, launcher))
            .code(0)
            .calm()
            .out(family)
            .out(world);
        assert_eq!(said.out.lines().count(), 6, "{said}");
    }
}

#[test]
fn a_launcher_of_another_family_is_an_error_told_once() {
    let stage = Stage::new();
    if let Some((launcher, ..)) = LAUNCHERS.into_iter().find(|l| !has(l.0)) {
        let test = "a_launcher_of_another_family_is_an_error_told_once";
        return skip(test, &format!("no {launcher}"));
    }
    for (launcher, other, ..) in LAUNCHERS {
        let mut command = under(&stage, launcher);
        command.env("WEIR_MPI_LIB", other);
        let said = said(command).code_of_a_rank(1).silent();
        let message = "started 2 processes, but the MPI library sees a world of 1";
        assert_eq!(said.err.matches(message).count(), 1, "{said}");
    }
}

#[test]
fn words_that_are_wrong_under_a_launcher_are_told_once() {
    crate::stage::each_launcher("wrong words under a launcher", |stage, launcher| {
        for words in [&["mpi"][..], &["nosuch"], &["run", "--nosuch"]] {
            let said = said(crate::stage::launch(stage, launcher, 2, words))
                .code_of_a_rank(2)
                .silent();
            assert_eq!(said.err.matches("error: ").count(), 1, "{said}");
        }
        for words in [&["mpi", "--help"][..], &["--version"], &["run", "--help"]] {
            let once = stage.say(words).code(0).out;
            let said = said(crate::stage::launch(stage, launcher, 2, words)).code(0);
            assert_eq!(said.out, once, "{words:?}");
        }
    });
}
