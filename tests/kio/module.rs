//! The verbs of the kernel module on this machine, where it is not loaded. Loading and unloading are
//! tried in the lab's guests (`kmod/kio/test/weir-module.sh`).

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
fn the_tree_of_the_program_comes_before_that_of_the_current_folder() {
    if is_loaded() {
        return;
    }
    let stage = tree();
    std::fs::create_dir_all(stage.path("here/kmod/kio")).unwrap();
    let module = b"\x7fELF\0vermagic=6.1.0-none SMP mod_unload \0";
    stage.file("here/kmod/kio/Makefile", "");
    stage.file("here/kmod/kio/kio.ko", module);
    let mut command = weir(&stage, &["load"]);
    command
        .env("PATH", "/nowhere")
        .current_dir(stage.path("here"));
    said(command).code(3).silent().err("modprobe: No such file");
}

#[test]
fn the_module_is_built_against_the_folder_that_is_named() {
    if !has("make") {
        return skip("kio build", "no make (apt: make)");
    }
    let stage = tree();
    std::fs::create_dir(stage.path("headers")).unwrap();
    stage.file("headers/Makefile", "modules:\n\techo $(M) > $(M)/kio.ko\n");
    let build = |headers: &str| said(weir(&stage, &["build", "--kdir", headers]));
    build("headers").code(0);
    let built = stage.read("kmod/kio/kio.ko");
    assert!(built.trim().ends_with("/kmod/kio"), "{built}");

    stage.file("headers/Makefile", "modules:\n\texit 7\n");
    build("headers")
        .code(3)
        .err("make ended with 2")
        .err("weir kio doctor");
    if !is_root() {
        let closed = std::fs::Permissions::from_mode(0o555);
        std::fs::set_permissions(stage.path("kmod/kio"), closed).unwrap();
        let said = build("headers").code(3);
        said.err("it cannot be written").err("copy of the");
    }
    build("nowhere")
        .code(3)
        .err("nowhere: the kernel's headers are not there")
        .err("--kdir DIR");
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

#[test]
fn devices_are_listed_with_their_sizes() {
    let stage = stage();
    let Some(device) = (is_root() && has("losetup"))
        .then(|| Loop::over(&stage.path("F")))
        .flatten()
    else {
        return skip("kio devices", "no loop devices here");
    };
    let said = stage.peer_says(&["kio", "devices"]).code(0).calm();
    let line = format!("{:20} 64.0 MiB", device.0);
    assert!(said.out.lines().any(|found| found == line), "{said}");
}
