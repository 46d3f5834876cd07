//! Packets over `AF_XDP`: client and server at the two ends of a wire, in a network of the test's own.

use crate::stage::{Said, Stage, has, is_root, peer, said, skip};
use crate::{SEND, stored, sum};

/// A wire with four queues each way, then the words; after them, packets that the client's end has sent.
const NETWORK: &str = "\
ip link add weirA numrxqueues 4 numtxqueues 4 type veth peer name weirB numrxqueues 4 numtxqueues 4
ip link set weirA mtu 2048 up
ip link set weirB mtu 2048 up
code=0
\"$@\" || code=$?
echo \"sent $(ip -s link show dev weirA | awk '/TX:/ { getline; print $2 }')\"
exit $code
";

/// Output of weir there; nothing where this machine cannot have it.
fn on_a_wire(stage: &Stage, words: &str) -> Option<Said> {
    let no = |reason: &str| {
        skip(&format!("weir axio {words} over AF_XDP"), reason);
        None
    };
    if !is_root() {
        return no("network namespaces need root");
    }
    if let Some(missing) = ["unshare", "ip", "awk"].iter().find(|name| !has(name)) {
        return no(&format!("no {missing}"));
    }
    let mut command = stage.command("unshare");
    command.args(["--net", "sh", "-ec", NETWORK, "sh", peer("axio")]);
    // Fewer on their way than a wire has room for, so that none of them is lost.
    let sets = "inflight=128 iteration=1 duration=0.2 msg_timeout_ms=20000 stall_timeout=30";
    for set in sets.split(' ') {
        command.args(["--set", set]);
    }
    command.args(words.split_whitespace());
    command.args(["--store-result", "r.json"]);
    let said = said(command);
    // A kernel without AF_XDP; anything else is a failure.
    if said.code == Some(3) && said.err.contains("CONFIG_XDP_SOCKETS") {
        return no(said.err.trim());
    }
    Some(said)
}

/// Packets that the interface counted.
fn sent_by_interface(said: &Said) -> u64 {
    let line = said.out.lines().find_map(|line| line.strip_prefix("sent "));
    line.and_then(|number| number.parse().ok()).unwrap()
}

#[test]
fn every_message_crosses_the_wire_and_is_answered_in_each_mode() {
    for (mode, sets) in [
        (
            "",
            "--set msg_handler=L_APP --set req_size=86 --set resp_size=86",
        ),
        (
            ",mode=skb",
            "--set msg_handler=FS_WRITE --set req_size=16384 --set inflight=8 --set kAppTxMsgBatchSize=2 --set kAppRxMsgBatchSize=2",
        ),
        (",mode=drv,queue=2", "--set pkt_handler=Echo"),
    ] {
        let stage = Stage::new();
        let backend = format!("backend=xdp:weirA,peer=weirB{mode}");
        let words = format!("--example scan --set {backend} {sets}");
        let Some(said) = on_a_wire(&stage, &words) else {
            return;
        };
        let said = said.code(0);
        let outcome = stored(&stage);
        let both = |path: &str| sum(&outcome, "client", path) + sum(&outcome, "server", path);
        for none in ["lost", "incomplete", "wrong", "strays", "dispatch_drops"] {
            assert_eq!(both(none), 0, "{mode}: {none}\n{said}");
        }
        assert_eq!(outcome["buffers_in_use"], 0, "{mode}\n{said}");
        let sent = sum(&outcome, "client", "link_tx.packets");
        assert!(
            sent > 0 && sum(&outcome, "client", "application_rx.packets") > 0,
            "{said}"
        );
        // What is sent after the last iteration is not counted, and the kernel sends a little of its own.
        let counted = sent_by_interface(&said);
        assert!(
            counted >= sent && counted < sent + 500,
            "{mode}: {counted} of {sent}\n{said}"
        );
    }
}

#[test]
fn each_dispatcher_has_a_queue_and_what_the_kernel_brings_to_another_is_handed_over() {
    for mode in ["drv", "skb"] {
        let stage = Stage::new();
        stage.file("send.conf", SEND);
        let words = format!("-c send.conf --set backend=xdp:weirA,peer=weirB,mode={mode}");
        let Some(said) = on_a_wire(&stage, &words) else {
            return;
        };
        let said = said.code(0);
        let outcome = stored(&stage);
        for thread in outcome["iterations"][0]["threads"].as_array().unwrap() {
            let packets = thread["application_rx"]["packets"].as_u64().unwrap();
            assert!(packets > 0, "{mode}: {thread}");
        }
        // On socket buffers the kernel takes queues of a wire by other numbers.
        let misrouted = sum(&outcome, "server", "misrouted");
        assert_eq!(misrouted > 0, mode == "skb", "{mode}: {misrouted}\n{said}");
        assert_eq!(
            sum(&outcome, "client", "lost") + sum(&outcome, "server", "strays"),
            0,
            "{said}"
        );
        assert_eq!(outcome["buffers_in_use"], 0);
    }
}

#[test]
fn what_the_wire_cannot_do_is_refused_with_a_remedy() {
    let stage = Stage::new();
    for (words, code, what) in [
        (
            "--set backend=xdp:weirA,peer=weirB,mode=zc",
            3,
            "EOPNOTSUPP",
        ),
        (
            "--set backend=xdp:weirA,peer=weirB,queue=4",
            3,
            "weirA, queue 4",
        ),
        (
            "--set backend=xdp:weirA,peer=weirX",
            3,
            "find interface weirX",
        ),
        ("--set backend=xdp:weirA,peer=weirA", 2, "an interface each"),
        (
            "--set backend=xdp:weirA,peer=weirB --set nic_ring=1000",
            2,
            "a power of two",
        ),
        ("--set backend=xdp:lo,peer=weirB", 3, "lo"),
        (
            "--set backend=xdp:weirA",
            2,
            "where client and server are in one run, and there alone",
        ),
    ] {
        let Some(said) = on_a_wire(&stage, &format!("--example scan {words}")) else {
            return;
        };
        said.code(code).err(what);
    }
}

#[test]
fn messages_that_are_longer_than_the_mtu_of_the_wire_are_refused_before_the_run() {
    let stage = Stage::new();
    let words = "--example scan --set backend=xdp:weirA,peer=weirB --set mtu=2048 --set req_size=16384 \
                 --set inflight=8 --set kAppTxMsgBatchSize=2 --set kAppRxMsgBatchSize=2";
    let Some(said) = on_a_wire(&stage, words) else {
        return;
    };
    said.code(0);
    let mut command = stage.command("unshare");
    let network = NETWORK.replace("weirB mtu 2048", "weirB mtu 1500");
    command.args(["--net", "sh", "-ec", &network, "sh", peer("axio")]);
    command.args(words.split_whitespace());
    crate::stage::said(command)
        .code(2)
        .err("packets of 2048 bytes, and interface weirB has an MTU of 1500");
}
