//! Slow tests: the build of a module, a device that root makes.

use std::os::unix::fs::PermissionsExt as _;

use super::{Loop, has, is_root, said, skip, stage, tree, weir};

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
