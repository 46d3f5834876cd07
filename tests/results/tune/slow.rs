//! Slow tests: a file system that root makes.

use super::{FULL, VARIED, WEIR, has, lacks_mounts, said, skip, stage};

#[test]
fn a_trail_that_cannot_be_kept_ends_the_search() {
    let what = "a full disk for the trail";
    if let Some(why) = lacks_mounts() {
        return skip(what, why);
    }
    if let Some(missing) = ["mount", "sh"].iter().find(|name| !has(name)) {
        return skip(what, &format!("no {missing}"));
    }
    let stage = stage();
    std::fs::create_dir(stage.path("full")).unwrap();
    let mut command = stage.command("unshare");
    command.args(["--mount", "sh", "-ec", FULL, "sh", WEIR, "tune"]);
    command.args(["--metric", "rate", "--trail", "full/t.jsonl", "--"]);
    command.args(["run", VARIED, "a.fio"]);
    let said = said(command).code(3);
    said.err("--trail full/t.jsonl: No space left on device");
    let mut command = stage.command("unshare");
    command.args(["--mount", "sh", "-ec", FULL, "sh", WEIR, "tune"]);
    command.args(["--metric", "rate", "-o", "full/best", "--"]);
    command.args(["run", VARIED, "a.fio"]);
    let kept = self::said(command).code(1);
    let kept = kept.err("No space left on device");
    assert!(!kept.out.contains("written:"), "{kept}");
}
