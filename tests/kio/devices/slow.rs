//! Slow tests: a device that root makes.

use super::{Command, Loop, has, is_root, kio, skip, stage};

#[test]
fn a_device_that_is_mounted_is_not_written() {
    let stage = stage();
    if !is_root() || !has("losetup") || !has("mkfs.ext4") {
        return skip("kio mounted", "needs root, losetup and mkfs.ext4");
    }
    let Some(device) = Loop::over(&stage.path("F")) else {
        return skip("kio mounted", "no loop devices here");
    };
    std::fs::create_dir(stage.path("m")).unwrap();
    let point = stage.path("m");
    let done = |words: &[&str]| {
        let status = Command::new(words[0]).args(&words[1..]).output();
        status.is_ok_and(|o| o.status.success())
    };
    if !done(&["mkfs.ext4", "-q", "-F", &device.0]) || !done(&["mount", &device.0, &point]) {
        return skip("kio mounted", "nothing can be mounted here");
    }
    let words = format!("-d {} --read-mix-percent 0 -s 1", device.0);
    let said = [
        kio(&stage, &words),
        kio(&stage, &format!("{words} --force")),
        kio(&stage, &format!("{words} --dry-run")),
    ];
    assert!(done(&["umount", &point]));
    for said in said {
        said.code(2).silent().err(&point);
    }
    kio(&stage, &words)
        .code(2)
        .err("an ext file system")
        .err("--force");
}
