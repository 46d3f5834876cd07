//! Packets over DPDK: its rings in memory, and its sockets at the two ends of a wire.

use std::process::Command;

use crate::stage::{Said, Stage, has, is_root, peer, root, said, skip};
use crate::{stored, sum};

/// A wire on which the kernel says nothing of its own, then the words.
const NETWORK: &str = "\
ip link add weirA type veth peer name weirB
ip link set weirA mtu 2048 addrgenmode none
ip link set weirB mtu 2048 addrgenmode none
ip link set weirA up
ip link set weirB up
exec \"$@\"
";

/// The same, with a host at the client's end whose kernel asks for the server's address, and what it learns.
const ASKING: &str = "\
ip link add weirA type veth peer name weirB
ip link set weirA mtu 2048 addrgenmode none
ip link set weirB mtu 2048 addrgenmode none
ip link set weirA up
ip link set weirB up
ip addr add 10.77.0.9/24 dev weirA
while :; do bash -c 'echo x >/dev/udp/10.77.0.2/9' || true; sleep 0.1; done 2>/dev/null &
asks=$!
code=0
\"$@\" || code=$?
kill $asks
ip neigh show dev weirA
exit $code
";

/// Builds the library in the stage's folder; false where DPDK is not there to build it with.
fn has_library(stage: &Stage) -> bool {
    let finds = |words: &[&str]| {
        let answer = Command::new("pkg-config").args(words).output();
        answer.is_ok_and(|answer| answer.status.success())
    };
    if !finds(&["--atleast-version=22.11", "libdpdk"]) || !has("make") || !has("cc") {
        skip(
            "weir axio over DPDK",
            "no libdpdk 22.11 with its headers, or no make or cc",
        );
        return false;
    }
    let mut make = stage.command("sh");
    make.args(["-ec", "cp \"$0\"/* . && make -s libweir_dpdk.so"]);
    make.arg(root().join("native/dpdk"));
    said(make).code(0);
    true
}

/// The words, with the library of the stage.
fn over_dpdk(stage: &Stage, before: &[&str], words: &str) -> Said {
    let all: Vec<&str> = before.iter().copied().chain([peer("axio")]).collect();
    let mut command = stage.command(all[0]);
    command.args(&all[1..]);
    for set in [
        "iteration=1",
        "duration=0.2",
        "msg_timeout_ms=20000",
        "stall_timeout=30",
    ] {
        command.args(["--set", set]);
    }
    command.args(words.split_whitespace());
    command.args(["--store-result", "r.json"]);
    command.env("WEIR_DPDK", "./libweir_dpdk.so");
    said(command)
}

fn has_all_back(stage: &Stage, said: &Said) {
    let outcome = stored(stage);
    let both = |path: &str| sum(&outcome, "client", path) + sum(&outcome, "server", path);
    for none in ["lost", "incomplete", "wrong", "strays", "dispatch_drops"] {
        assert_eq!(both(none), 0, "{none}\n{said}");
    }
    assert_eq!(outcome["buffers_in_use"], 0, "{said}");
    assert!(sum(&outcome, "client", "link_tx.packets") > 0, "{said}");
    assert!(sum(&outcome, "server", "dispatch_rx.packets") > 0, "{said}");
}

#[test]
fn every_message_comes_back_over_rings_of_dpdk() {
    let stage = Stage::new();
    if !has_library(&stage) {
        return;
    }
    for sets in [
        "--set msg_handler=L_APP --set req_size=86 --set resp_size=86",
        "--set msg_handler=FS_WRITE --set req_size=16384 --set inflight=128",
        "--set pkt_handler=Echo --set nic_ring=64",
    ] {
        let words = format!("--example scan --set backend=dpdk:rings {sets}");
        let said = over_dpdk(&stage, &[], &words).code(0);
        has_all_back(&stage, &said);
    }
}

#[test]
fn a_server_without_a_client_turns_round_what_a_device_brings() {
    let stage = Stage::new();
    if !has_library(&stage) {
        return;
    }
    let alone = "--server --example echo --set mgmt_port=0 --stage-timing 1/8";
    // One device makes packets, the other brings back what was sent to it.
    for device in ["net_null0", "net_ring0 --set first_packets=32"] {
        let words = format!("{alone} --set backend=dpdk:{device}");
        let said = over_dpdk(&stage, &[], &words).code(0);
        let outcome = stored(&stage);
        let turned = sum(&outcome, "server", "dispatch_rx.packets");
        let sent = sum(&outcome, "server", "link_tx.packets");
        assert!(turned > 1000, "{turned} packets\n{said}");
        assert!(!said.err.contains("waits for its client"), "{said}");
        assert!(turned.abs_diff(sent) <= 32, "{turned}, {sent} sent\n{said}");
        assert_eq!(outcome["buffers_in_use"], 0, "{said}");
    }
    // Nothing was sent, so that nothing comes back.
    let words = format!("{alone} --set backend=dpdk:net_ring0");
    let said = over_dpdk(&stage, &[], &words).code(0);
    let turned = sum(&stored(&stage), "server", "dispatch_rx.packets");
    assert_eq!(turned, 0, "{said}");
}

#[test]
fn a_client_has_a_server_and_first_packets_are_a_lone_servers() {
    let stage = Stage::new();
    let words = "--client --example echo --set backend=dpdk:net_null0 --set mgmt_port=0";
    over_dpdk(&stage, &[], words)
        .code(2)
        .err("only a server without a client");
    let words = "--example echo --set backend=dpdk:rings --set first_packets=8";
    over_dpdk(&stage, &[], words)
        .code(2)
        .err("first packets are those of a server without a client");
    let words = "--example echo --set first_packets=8";
    over_dpdk(&stage, &[], words)
        .code(2)
        .err("the link has no setting `first_packets`");
}

#[test]
fn every_message_crosses_a_wire_by_sockets_of_dpdk() {
    let stage = Stage::new();
    let no = |reason: &str| skip("weir axio over DPDK and a wire", reason);
    if !is_root() || !has("unshare") || !has("ip") {
        return no("network namespaces need root, unshare and ip");
    }
    if !has_library(&stage) {
        return;
    }
    let devices = "net_af_packet0,iface=weirA+net_af_packet1,iface=weirB";
    let words = format!("--example scan --set backend=dpdk:{devices} --set inflight=64");
    let network = ["unshare", "--net", "sh", "-ec", NETWORK, "sh"];
    let said = over_dpdk(&stage, &network, &words).code(0);
    has_all_back(&stage, &said);
    let absent = "--example scan --set backend=dpdk:net_af_packet0,iface=weirX+net_null0";
    over_dpdk(&stage, &network, absent)
        .code(3)
        .err("DPDK has no device net_af_packet0,iface=weirX");
}

#[test]
fn who_asks_for_the_address_of_a_device_of_dpdk_is_answered_between_messages() {
    let stage = Stage::new();
    let no = |reason: &str| skip("questions for an address over DPDK", reason);
    if !is_root() || !has("unshare") || !has("ip") || !has("bash") {
        return no("network namespaces need root, unshare, ip and bash");
    }
    if !has_library(&stage) {
        return;
    }
    let devices = "net_af_packet0,iface=weirA+net_af_packet1,iface=weirB";
    let words =
        format!("--example scan --set backend=dpdk:{devices} --set inflight=64 --set duration=3");
    let network = ["unshare", "--net", "sh", "-ec", ASKING, "sh"];
    let said = over_dpdk(&stage, &network, &words).code(0);
    let outcome = stored(&stage);
    assert!(
        sum(&outcome, "client", "application_rx.packets") > 0,
        "{said}"
    );
    assert_eq!(sum(&outcome, "client", "lost"), 0, "{said}");
    assert_eq!(outcome["buffers_in_use"], 0, "{said}");
    said.out("10.77.0.2 lladdr 02:00:00:00:00:02");
}

#[test]
fn without_the_library_the_message_says_how_it_is_built() {
    let stage = Stage::new();
    let words = "--example scan --set backend=dpdk:rings";
    over_dpdk(&stage, &[], words)
        .code(3)
        .err("cannot open ./libweir_dpdk.so")
        .err("make -C native/dpdk");
    let words = format!("{words} --set nic_ring=1000");
    over_dpdk(&stage, &[], &words).code(2).err("a power of two");
}
