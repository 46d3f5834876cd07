//! The verbs of the kernel module on this machine, where it is not loaded. Loading and unloading are
//! tried in the lab's guests (`kmod/kio/test/weir-module.sh`).

mod slow;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::devices::Loop;
use crate::stage;
use crate::stage::{Said, Stage, WEIR, has, is_root, root, said, skip};

/// True if a module is loaded, which is not this test's to change; prints a note for this test.
fn is_loaded() -> bool {
    let is_loaded = Path::new("/sys/module/kio").exists();
    if is_loaded {
        skip("kio module", "the kernel module is loaded here");
    }
    is_loaded
}

/// kio with a verb, where no program can load anything.
fn harmless(stage: &Stage, words: &[&str]) -> Said {
    let mut command = weir(stage, words);
    command.env("PATH", "/nowhere");
    said(command)
}

/// weir kio with a verb: that of the stage's tree where it has one.
fn weir(stage: &Stage, words: &[&str]) -> Command {
    let own = stage.path("weir");
    let words = [&["kio"], words].concat();
    if !Path::new(&own).exists() {
        return stage.weir(&words);
    }
    let mut command = stage.command(&own);
    command.args(words);
    command
}

/// A folder with the program and the real Makefile of the module.
fn tree() -> Stage {
    let stage = Stage::new();
    std::fs::hard_link(WEIR, stage.path("weir")).unwrap();
    let from = root().join("kmod/kio/Makefile");
    std::fs::create_dir_all(stage.path("kmod/kio")).unwrap();
    stage.file("kmod/kio/Makefile", std::fs::read(from).unwrap());
    stage
}

#[test]
fn without_the_module_its_verbs_say_so() {
    if is_loaded() {
        return;
    }
    let stage = Stage::new();
    harmless(&stage, &["status"])
        .code(0)
        .out("module   not loaded (`weir kio load`)\n")
        .calm();
    harmless(&stage, &["unload"])
        .code(0)
        .out("the module is not loaded\n")
        .calm();
    let said = harmless(&stage, &["doctor"])
        .code(3)
        .out("missing  the module is not loaded: `weir kio load`\n")
        .out("missing  make or a C compiler: install build-essential\n")
        .calm();
    for line in said.out.lines() {
        let kinds = ["ok       ", "missing  ", "note     "];
        assert!(kinds.iter().any(|kind| line.starts_with(kind)), "{line}");
    }
}

#[test]
fn a_module_that_cannot_be_loaded_is_refused_with_a_remedy() {
    if is_loaded() {
        return;
    }
    let stage = tree();
    harmless(&stage, &["load"])
        .code(3)
        .silent()
        .err("modprobe: No such file");
    // A loader that says no: the remedy is what is missing, not where to read it.
    let loader = "#!/bin/sh\nexit 1\n";
    std::fs::create_dir(stage.path("bin")).unwrap();
    for name in ["insmod", "modprobe"] {
        let file = stage.file(&format!("bin/{name}"), loader);
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let refused = || {
        let mut command = weir(&stage, &["load"]);
        command.env("PATH", stage.path("bin"));
        said(command).code(3).silent()
    };
    if !Path::new("/proc/modules").exists() {
        refused().err("help: the kernel loads no modules (it was built without CONFIG_MODULES)");
    } else if is_root() {
        refused().err("help: the module is not built: `weir kio build`");
    }
    let module = b"\x7fELF\0vermagic=6.1.0-none SMP mod_unload \0";
    stage.file("kmod/kio/kio.ko", module);
    let running = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    harmless(&stage, &["load"])
        .code(3)
        .silent()
        .err("it was built for kernel 6.1.0-none")
        .err(running.trim())
        .err("weir kio build");
}

#[test]
fn verbs_show_the_help_of_the_door() {
    let stage = Stage::new();
    for verb in ["load", "unload", "build", "convert", "status"] {
        stage
            .peer_says(&["kio", verb, "--help"])
            .code(0)
            .out("load [--device DEV]")
            .out("Examples:")
            .calm();
    }
}
