//! Which devices are taken, and which are refused.

mod slow;

use std::process::Command;

use crate::stage::{Stage, has, is_root, said, skip};
use crate::{in_peace, kio, stage};

#[test]
fn the_kernel_engine_without_its_module_says_how_to_get_it() {
    if std::path::Path::new("/dev/kio").exists() {
        return skip("kio", "the kernel module is loaded here");
    }
    let stage = stage();
    stage
        .peer_says(&["kio", "--engine", "kernel", "--device", "F"])
        .code(3)
        .err("weir kio build")
        .err("weir kio load");
}

#[test]
fn without_a_device_five_ways_to_name_one_are_listed() {
    let stage = Stage::new();
    let said = kio(&stage, "--runtime 1").code(2);
    for way in [
        "--device PATH",
        "--config file",
        "WEIR_KIO_DEVICE",
        "/sys/module/kio/parameters",
        "/etc/modprobe.d/kio.conf",
    ] {
        assert!(said.err.contains(way), "{said}");
    }
}

#[test]
fn the_environment_names_a_device() {
    let stage = stage();
    let words = ["kio", "--engine", "sync", "-s", "1", "--format", "kio"];
    let mut command = in_peace(&stage, &words);
    command.env("WEIR_KIO_DEVICE", stage.path("F"));
    said(command).code(0).out("-   bw_MBps: ");
}

#[test]
fn engines_that_are_not_there_are_refused_by_name() {
    let stage = stage();
    for (engine, nearest) in [
        ("legacy", "--engine uring"),
        ("urin", "did you mean `uring`"),
    ] {
        let words = ["kio", "-d", "F", "--engine", engine];
        stage.peer_says(&words).code(2).silent().err(nearest);
    }
    kio(&stage, "-d F --op zone-append")
        .code(2)
        .err("--op write");
    kio(&stage, "-d . -s 1").code(2).err("it is a directory");
    kio(&stage, "-d none -s 1").code(2).err("none:");
    assert_eq!(stage.list(), ["F"]);
}

#[test]
fn each_engine_of_user_space_reads_and_writes() {
    let stage = stage();
    for words in [
        "--engine aio --queue-depth 8",
        "--engine sync",
        "--queue-depth 8 --complete spin",
        "--queue-depth 8 --batch 4 --data zero --fua",
        "--queue-depth 8 --size 1M --thread-partition --num-threads 2",
    ] {
        let all = format!("-d F -s 1 --read-mix-percent 50 --format kio {words}");
        kio(&stage, &all).code(0).out("-   bw_MBps: ");
    }
}

/// A loop device that vanishes.
pub(crate) struct Loop(pub(crate) String);

impl Loop {
    pub(crate) fn over(file: &str) -> Option<Self> {
        let made = Command::new("losetup")
            .args(["-f", "--show", file])
            .output()
            .ok()?;
        let name = String::from_utf8(made.stdout).ok()?.trim().to_owned();
        (made.status.success() && !name.is_empty()).then_some(Self(name))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).status();
    }
}
