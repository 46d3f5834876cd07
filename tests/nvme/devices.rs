//! Writes to block devices: only with consent, and never over somebody's data.

use std::process::Command;

use rustix::process::Signal;

use crate::stage::{Running, Stage, has, is_root, peer, skip};
use crate::{PEER, TARGET, perf};

/// A loop device that vanishes.
struct Loop(String);

impl Loop {
    fn over(file: &str) -> Option<Self> {
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

#[test]
fn a_device_is_written_with_consent_alone_and_a_file_system_never() {
    let test = "nvme-perf on a loop device";
    if !is_root() || !has("losetup") || !has("mkfs.ext4") {
        return skip(test, "it needs root, losetup and mkfs.ext4");
    }
    let stage = Stage::new();
    let image = stage.file("image", vec![0_u8; TARGET]);
    let Some(device) = Loop::over(&image) else {
        return skip(test, "no loop device can be made");
    };
    let path = &device.0;
    let line = format!("-q 4 -o 4096 -w randwrite -t 60 -d 100 {path}");
    let unchanged = |words: &str, text: &str| {
        let before = stage.read_bytes("image");
        perf(&stage, words).code(2).silent().err(text);
        assert!(stage.read_bytes("image") == before, "{words}");
    };
    unchanged(&line, &format!("--destroy {path}"));
    let consent = format!("--destroy {path} {line}");
    perf(&stage, &consent)
        .code(0)
        .out(&format!("{path} from core  0"));
    assert!(stage.read_bytes("image").iter().any(|byte| *byte != 0));
    perf(&stage, &format!("-q 4 -o 4096 -w read -t 60 -d 100 {path}")).code(0);

    // While it is written nobody else can take it.
    let mut command = stage.command(peer(PEER));
    command.args(format!("-q 4 -o 4096 -w randwrite -t 3600 --destroy {path} {path}").split(' '));
    let running = Running::start(command);
    running.works_for(5);
    let other = perf(&stage, &consent);
    running.signal(Signal::INT);
    running.end().code(0);
    other
        .code(2)
        .err("another program has opened it exclusively");
    perf(&stage, &consent).code(0);

    let made = Command::new("mkfs.ext4").args(["-q", "-F", path]).status();
    assert!(made.unwrap().success());
    unchanged(&consent, "an ext file system");
}
