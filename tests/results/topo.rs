//! `weir topo`: what belongs together, on this machine and on one that was copied.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value as Json;

use crate::stage::Stage;

/// A machine of two nodes with a card each, and one of no node.
fn two_nodes(stage: &Stage) {
    let file = |path: &str, text: &str| {
        let path = stage.path(&format!("copy/sys/{path}"));
        fs::create_dir_all(std::path::Path::new(&path).parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    file("devices/system/cpu/online", "0-3\n");
    for node in 0..2 {
        let cpus = format!("{}-{}\n", 2 * node, 2 * node + 1);
        file(&format!("devices/system/node/node{node}/cpulist"), &cpus);
    }
    file("class/net/bonding_masters", "");
    for (name, node) in [("eth0", "0"), ("eth1", "1"), ("eth2", "-1")] {
        let card = format!("devices/pci0000:00/0000:0{name}:00.0");
        file(&format!("{card}/numa_node"), node);
        file(&format!("{card}/net/{name}/operstate"), "up\n");
        file(&format!("{card}/net/{name}/speed"), "100000\n");
        let at = |path: &str| stage.path(&format!("copy/sys/{path}"));
        symlink("../..", at(&format!("{card}/net/{name}/device"))).unwrap();
        symlink(
            format!("../../{card}/net/{name}"),
            at(&format!("class/net/{name}")),
        )
        .unwrap();
    }
}

#[test]
fn each_card_stands_below_its_node() {
    let stage = Stage::new();
    two_nodes(&stage);
    let said = stage.say(&["topo", "--root", "copy"]).code(0).calm();
    let lines: Vec<&str> = said.out.lines().map(str::trim).collect();
    let begins = [
        "node 0: CPUs 0-1",
        "network  eth0  100 Gbit/s",
        "node 1: CPUs 2-3",
        "network  eth1  100 Gbit/s",
        "no node:",
        "network  eth2  100 Gbit/s",
    ];
    assert_eq!(lines.len(), begins.len(), "{}", said.out);
    for (line, begin) in lines.iter().zip(begins) {
        assert!(line.starts_with(begin), "{line}: {begin}");
    }
    assert!(lines[5].contains("numa_node -1"), "{}", said.out);
}

#[test]
fn files_that_no_kernel_has_written_are_passed_over() {
    let stage = Stage::new();
    two_nodes(&stage);
    let at = |path: &str| stage.path(&format!("copy/sys/{path}"));
    let noise: Vec<u8> = (0..3_000_000_u32)
        .map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[3])
        .collect();
    let disk = "devices/pci0000:00/0000:0eth0:00.0/block/sda";
    fs::create_dir_all(at(&format!("{disk}/queue"))).unwrap();
    fs::create_dir_all(at(&format!("{disk}/device"))).unwrap();
    for (file, text) in [
        ("dev", b"8:0" as &[u8]),
        ("size", b"4096"),
        ("device/model", &noise),
        ("queue/scheduler", b""),
        ("queue/zoned", b"\x1b[2J"),
    ] {
        fs::write(at(&format!("{disk}/{file}")), text).unwrap();
    }
    for place in ["block/sda", "class/block/sda", "dev/block/8:0"] {
        let up = "../".repeat(place.matches('/').count());
        fs::create_dir_all(std::path::Path::new(&at(place)).parent().unwrap()).unwrap();
        symlink(format!("{up}{disk}"), at(place)).unwrap();
    }
    let card = "devices/pci0000:00/0000:0eth0:00.0/net/eth0";
    fs::write(at(&format!("{card}/speed")), &noise).unwrap();
    fs::write(at("devices/system/node/node1/distance"), &noise).unwrap();
    let pipe = std::ffi::CString::new(at(&format!("{card}/mtu"))).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &*pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    // It takes no room, and is longer than any memory.
    let endless = fs::File::create(at("devices/system/node/node0/meminfo")).unwrap();
    endless.set_len(1 << 42).unwrap();
    let many = "0-65535,".repeat(100_000);
    fs::create_dir_all(at("devices/system/cpu/cpu0/topology")).unwrap();
    let siblings = at("devices/system/cpu/cpu0/topology/thread_siblings_list");
    fs::write(siblings, many).unwrap();
    for words in [
        &["topo", "--root", "copy"] as &[&str],
        &["topo", "--root", "copy", "--format", "json"],
    ] {
        let said = stage.say(words).code(0).calm();
        assert!(
            said.out.len() < 10_000 && said.out.contains("sda"),
            "{said}"
        );
        assert!(
            !said.out.contains('\u{1b}') && !said.out.contains('\u{fffd}'),
            "{said}"
        );
    }
}

#[test]
fn json_has_the_same_with_numbers() {
    let stage = Stage::new();
    two_nodes(&stage);
    let said = stage.say(&["topo", "--root", "copy", "--format", "json"]);
    let document: Json = serde_json::from_str(&said.code(0).out).unwrap();
    assert_eq!(document["schema"], "weir.topo.v1");
    let nodes: Vec<&Json> = document["networks"].as_array().unwrap().iter().collect();
    let nodes: Vec<_> = nodes
        .iter()
        .map(|card| card["numa_node"].as_i64())
        .collect();
    assert_eq!(nodes, [Some(0), Some(1), Some(-1)]);
    assert_eq!(document["networks"][1]["speed_mbit_per_s"], 100_000);
    assert_eq!(document["nodes"][1]["cpus"], serde_json::json!([2, 3]));
}

#[test]
fn this_machine_has_cpus_and_the_loopback() {
    let stage = Stage::new();
    stage.say(&["topo"]).code(0).calm().out("CPU").out("lo");
}

#[test]
fn a_directory_without_a_machine_is_refused_by_name() {
    let stage = Stage::new();
    let said = stage.say(&["topo", "--root", "nowhere"]);
    said.code(3).silent().err("error: nowhere: no CPUs");
    stage.say(&["topo", "--jsn"]).code(2).silent();
}
