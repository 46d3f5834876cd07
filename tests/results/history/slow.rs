//! Slow tests: a file system that root makes.

use super::{Said, fs, is_root, said, skip, stage_with_runs, weir};

#[test]
fn a_full_disk_costs_a_warning() {
    let name = "a_full_disk_costs_a_warning";
    if !is_root() {
        return skip(name, "mounting needs the administrator's rights");
    }
    let stage = stage_with_runs(0);
    fs::create_dir(stage.path("small")).unwrap();
    let mut mount = stage.command("mount");
    mount.args(["-t", "tmpfs", "-o", "size=384k", "none", "small"]);
    if said(mount).code != Some(0) {
        return skip(name, "tmpfs cannot be mounted here");
    }
    let run = || {
        let mut run = weir(&stage, &["run", "a.fio"]);
        run.env("WEIR_HISTORY", stage.path("small/history.db"));
        said(run).code(0)
    };
    let is_full = |said: &Said| said.err.contains("does not have this run");
    let before = (0..100)
        .map(|_| run())
        .take_while(|said| !is_full(said))
        .count();
    let mut check = weir(
        &stage,
        &["history", "check", "--history", "small/history.db"],
    );
    check.env("XDG_STATE_HOME", stage.path("none"));
    let checked = said(check);
    let mut unmount = stage.command("umount");
    unmount.arg("small");
    said(unmount).code(0);
    assert!((1..100).contains(&before), "{before}");
    let s = if before == 1 { "" } else { "s" };
    checked.code(0).out(&format!("{before} run{s}, no fault"));
}
