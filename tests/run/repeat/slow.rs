//! Slow tests: under the launchers of MPI.

use super::{SHORT, each_launcher, launch, said};

#[test]
fn under_a_launcher_it_is_refused() {
    each_launcher("runs under a launcher", |stage, launcher| {
        let file = stage.file("j.fio", SHORT);
        let words = ["run", "--repeat=2", &file];
        let said = said(launch(stage, launcher, 2, &words));
        assert!(said.code != Some(0), "{said}");
        assert_eq!(said.err.matches("error: --repeat: ").count(), 1, "{said}");
    });
}
