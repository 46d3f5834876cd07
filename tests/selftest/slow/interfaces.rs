//! Which interface RPCs leave a machine by: one that is named, one near to the CPUs, and what is said
//! where there is none. On hosts of their own: a network of two cards, a made-up /sys.

use std::os::unix::fs::symlink;

use rustix::thread::sched_getaffinity;
use serde_json::Value;

use crate::servers::{S1, Server, split};
use crate::stage::{Said, Stage, WEIR, has, lacks_mounts, peer, said, skip};

/// A host with these cards in its /sys, each with its node; CPU 0 is of node 0, CPU 1 of node 1. Its network
/// has eth0 (10.88.0.1) and eth1 (10.88.0.2), a wire between them, and 10.99.0.1 on the loopback.
fn host(stage: &Stage, cards: &[(&str, &str)]) {
    let file = |path: &str, text: &str| {
        let path = stage.path(&format!("sys/{path}"));
        let path = std::path::Path::new(&path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let link = |path: &str, to: &str| symlink(to, stage.path(&format!("sys/{path}"))).unwrap();
    file("devices/system/cpu/online", "0-1\n");
    file("devices/system/node/node0/cpulist", "0\n");
    file("devices/system/node/node1/cpulist", "1\n");
    file("devices/virtual/net/lo/operstate", "unknown\n");
    file("devices/virtual/net/lo/flags", "0x9\n");
    file("class/net/bonding_masters", "");
    link("class/net/lo", "../../devices/virtual/net/lo");
    for (name, node) in cards {
        let card = format!("devices/pci0000:00/0000:{name}:00.0");
        file(&format!("{card}/numa_node"), node);
        file(&format!("{card}/net/{name}/operstate"), "up\n");
        file(&format!("{card}/net/{name}/flags"), "0x1003\n");
        link(&format!("{card}/net/{name}/device"), "../..");
        link(
            &format!("class/net/{name}"),
            &format!("../../{card}/net/{name}"),
        );
    }
    stage.file(
        "host.sh",
        "set -eu
mount --bind \"$PWD/sys\" /sys
ip link set lo up
ip link add eth0 type veth peer name eth1
ip address add 10.88.0.1/24 dev eth0
ip address add 10.88.0.2/24 dev eth1
ip address add 10.99.0.1/32 dev lo
ip link set eth0 up
ip link set eth1 up
mkfifo ready
env $1 $WEIR rpc serve --path . --rank 0 --tags 1 --open-to-anyone $2 > ready &
server=$!
read -r line < ready
echo \"$line\"
asks=\"$SELF_TEST -u --path . -e 0:0 -s 0 -r 100 --output json\"
eval \"$3\"
kill $server
wait $server
",
    );
}

/// Output of a host where a server runs with these variables and arguments, and then a script, in
/// which $asks is a self-test.
pub(crate) fn on_host(
    stage: &Stage,
    cards: &[(&str, &str)],
    (variables, words): (&str, &str),
    script: &str,
) -> Option<Said> {
    let no = |reason: &str| {
        skip("a host with interfaces of its own", reason);
        None
    };
    if let Some(why) = lacks_mounts() {
        return no(why);
    }
    if let Some(missing) = ["ip", "taskset"].iter().find(|p| !has(p)) {
        return no(&format!("no {missing}"));
    }
    let cpus = sched_getaffinity(None).unwrap();
    if !(cpus.is_set(0) && cpus.is_set(1)) {
        return no("the CPUs 0 and 1 are not both there");
    }
    host(stage, cards);
    let mut command = stage.command("unshare");
    command.args([
        "--net", "--mount", "sh", "host.sh", variables, words, script,
    ]);
    for variable in crate::VARIABLES {
        command.env_remove(variable);
    }
    command
        .env("WEIR", WEIR)
        .env("SELF_TEST", peer("self_test"));
    Some(said(command).code(0))
}

/// The name of the interface in a result.
fn interface(json: &str) -> String {
    let result: Value = serde_json::from_str(json).unwrap_or_else(|e| panic!("{e}: {json}"));
    let outcome = &result["groups"][0]["jobs"][0]["outcome"];
    let masters = outcome["rpc"]["masters"].as_array();
    let masters = masters.or_else(|| outcome["masters"].as_array()).unwrap();
    masters[0]["interface"]["name"].as_str().unwrap().to_owned()
}

#[test]
fn an_interface_that_does_not_exist_ends_with_3_and_those_that_do() {
    let stage = Stage::new();
    let _server = Server::start(&stage, S1);
    for words in [
        "self_test -u --path . -e 0:2 -s 0 -r 10",
        "self_test --loopback=1 -e 0:0 -s 0 -r 10",
        "self_test --loopback=1 --transport shm -e 0:0 -s 0 -r 10",
        "rpc serve --path . --group other",
    ] {
        for variable in ["D_INTERFACE", "OFI_INTERFACE"] {
            let mut command = stage.called(&split(words));
            command.env(variable, "nosuch0");
            let said = said(command)
                .code(3)
                .err("there is no network interface `nosuch0`");
            assert!(
                said.err.contains("(there are ") && said.err.contains("lo"),
                "{said}"
            );
        }
    }
}

#[test]
fn servers_clients_and_masters_use_the_interfaces_that_variables_name() {
    let stage = Stage::new();
    let cards = [("eth0", "0"), ("eth1", "0")];
    let script = "D_INTERFACE=eth1 $asks > one; cat /proc/net/tcp; $asks -m 0:0 > other";
    let Some(said) = on_host(&stage, &cards, ("D_INTERFACE=eth0", ""), script) else {
        return;
    };
    let said = said.out("READY tcp://10.88.0.1:");
    // The kernel's list of connections, those that ended just now with the others.
    let (server, client) = ("0100580A:", "0200580A:");
    let between = |line: &&str| line.contains(server) && line.contains(client);
    assert!(said.out.lines().any(|line| between(&line)), "{said}");
    assert_eq!(interface(&stage.read("one")), "eth1");
    assert_eq!(interface(&stage.read("other")), "eth0");
    // The server is on this host, whatever address it has.
    said.err("note: from the environment: D_INTERFACE=eth1\n")
        .err("routes of this machine send to 10.88.0.1 by lo");
}

#[test]
fn n_5_the_older_variable_alone_wins_over_a_card_that_is_nearer_and_the_report_says_where_it_is() {
    let stage = Stage::new();
    let cards = [("eth0", "0"), ("eth1", "1")];
    let script = "export OFI_INTERFACE=eth1; taskset -c 0 $asks > one; \
                  taskset -c 0 ${asks% --output json} --verbose > text";
    let server = ("", "--transport tcp://10.88.0.1:0");
    let Some(said) = on_host(&stage, &cards, server, script) else {
        return;
    };
    let one = stage.read("one");
    assert_eq!(interface(&one), "eth1");
    let result: Value = serde_json::from_str(&one).unwrap();
    let master = &result["groups"][0]["jobs"][0]["outcome"]["masters"][0];
    let expected = serde_json::json!({
        "name": "eth1", "node": 1, "client_cpus": "0", "client_node": 0
    });
    assert_eq!(master["interface"], expected);
    let text = stage.read("text");
    assert!(
        text.contains("\t+ Interface: eth1 (node 1), CPUs 0 (node 0)\n"),
        "{text}"
    );
    let far = "warning: interface eth1 is near to node 1, the CPUs of this process to node 0\n";
    said.err(far)
        .err("note: from the environment: OFI_INTERFACE=eth1\n");
}

#[test]
fn n_1_a_client_uses_the_card_of_the_node_that_it_was_started_on() {
    let stage = Stage::new();
    let cards = [("eth0", "0"), ("eth1", "1")];
    let script = "taskset -c 1 $asks > one; taskset -c 0 $asks > other";
    let server = ("", "--transport tcp://10.88.0.1:0");
    let Some(said) = on_host(&stage, &cards, server, script) else {
        return;
    };
    assert_eq!(interface(&stage.read("one")), "eth1");
    assert_eq!(interface(&stage.read("other")), "eth0");
    assert!(!said.err.contains("No network devices"), "{said}");
}

#[test]
fn n_2_the_clients_of_a_node_take_its_cards_in_turn() {
    let stage = Stage::new();
    let cards = [("eth0", "1"), ("eth1", "1")];
    let script = "for n in 1 2 3 4; do taskset -c 1 $asks > $n; done";
    let server = ("", "--transport tcp://10.88.0.1:0");
    if on_host(&stage, &cards, server, script).is_none() {
        return;
    }
    let mut used = ["1", "2", "3", "4"].map(|name| interface(&stage.read(name)));
    used.sort();
    assert_eq!(used, ["eth0", "eth0", "eth1", "eth1"]);
}

#[test]
fn n_3_and_n_4_a_client_without_a_card_of_its_node_or_of_any_says_so() {
    let stage = Stage::new();
    let server = ("", "--transport tcp://10.88.0.1:0");
    let far = "taskset -c 1 $asks > one";
    if let Some(said) = on_host(&stage, &[("eth0", "0")], server, far) {
        said.err("No network devices bound to client NUMA node 1.  Using response from NUMA 0\n");
        assert_eq!(interface(&stage.read("one")), "eth0");
    }
    let stage = Stage::new();
    let server = ("", "--transport tcp://10.99.0.1:0");
    if let Some(said) = on_host(&stage, &[], server, "$asks > one") {
        let none = "No network devices detected in fabric scan; default AttachInfo response may be \
                    incorrect\n";
        said.err(none);
        assert_eq!(interface(&stage.read("one")), "lo");
    }
}

#[test]
fn a_fabric_has_the_interface_and_the_domain_that_it_is_told() {
    let stage = Stage::new();
    let words = "self_test --loopback=1 --transport ofi+tcp -e 0:0 -s 0 -r 10";
    let with = |domain: &str| {
        let mut command = stage.peer(&split(words));
        command.env("D_INTERFACE", "lo").env("D_DOMAIN", domain);
        said(command)
    };
    let known = with("lo");
    if known.code == Some(3) && known.err.contains("libfabric not found") {
        skip("fabrics by interface and domain", "no libfabric");
        return;
    }
    known.code(0);
    with("nosuch0").code(3).err("with domain nosuch0");
}
