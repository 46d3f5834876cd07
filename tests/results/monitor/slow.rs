//! Slow tests: a network that root makes.

use super::{NETWORK, Stage, WEIR, has, is_root, said, skip};

#[test]
fn packets_that_an_interface_dropped_are_counted_with_its_name() {
    let why = "packets that an interface drops";
    if !is_root() {
        return skip(why, "network namespaces need root");
    }
    if let Some(missing) = ["unshare", "ip", "bash"].iter().find(|name| !has(name)) {
        return skip(why, &format!("no {missing}"));
    }
    let stage = Stage::new();
    let mut command = stage.command("unshare");
    command.args([
        "--net", "bash", "-ec", NETWORK, "bash", WEIR, "monitor", "-d", "1.5",
    ]);
    let said = said(command).code(0);
    // The end that sends counts it too, on some kernels.
    let line = "interface_drops weirB: 1.0\n";
    assert!(said.out.contains(line), "{}{}", said.out, said.err);
    assert!(!said.out.contains("interface_drops: 0.0"), "{}", said.out);
    // Such a wire's driver counts drops of its queues, and no pauses.
    said.out("source drops: /proc/net/dev, drivers (ethtool)\n")
        .out("pauses: unavailable (no driver of an interface counts pauses)\n");
}
