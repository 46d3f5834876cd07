//! The choice on made-up machines, and whose turn it is.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// A directory that vanishes.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("weir-interfaces-{}-{number}", std::process::id());
        let at = std::env::temp_dir().join(name);
        fs::create_dir_all(&at).unwrap();
        Self(at)
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A machine of two nodes with two CPUs each, and cards: name, what the kernel says of its node,
/// state.
struct Machine {
    interfaces: Vec<NetworkInterface>,
    topology: Topology,
    folder: Folder,
}

fn machine(cards: &[(&str, &str, &str)]) -> Machine {
    let folder = Folder::new();
    folder.file("sys/devices/system/cpu/online", "0-3\n");
    folder.file("sys/devices/system/node/node0/cpulist", "0-1\n");
    folder.file("sys/devices/system/node/node1/cpulist", "2-3\n");
    let link = |name: &str, to: &str| {
        let links = folder.0.join("sys/class/net");
        fs::create_dir_all(&links).unwrap();
        symlink(folder.0.join(to), links.join(name)).unwrap();
    };
    folder.file("sys/devices/virtual/net/lo/operstate", "unknown\n");
    folder.file("sys/devices/virtual/net/lo/flags", "0x9\n");
    link("lo", "sys/devices/virtual/net/lo");
    for (name, node, state) in cards {
        let card = format!("sys/devices/pci0000:00/0000:{name}:00.0");
        let net = format!("{card}/net/{name}");
        folder.file(&format!("{card}/numa_node"), node);
        folder.file(&format!("{net}/operstate"), state);
        folder.file(&format!("{net}/flags"), "0x1003\n");
        symlink(folder.0.join(&card), folder.0.join(format!("{net}/device"))).unwrap();
        link(name, &net);
    }
    let tree = Tree::at(&folder.0);
    Machine {
        interfaces: network_interfaces(&tree),
        topology: Topology::read(&tree),
        folder,
    }
}

impl Machine {
    /// Chooses for a process on these CPUs, which asks for this one.
    fn choose(&self, cpus: &str, asked: Option<&str>) -> Result<InterfaceChoice, RpcError> {
        let facts = InterfaceChoiceFacts {
            interfaces: &self.interfaces,
            topology: &self.topology,
            cpus: &cpus.parse().unwrap(),
        };
        let turn = |node| next_turn(&self.folder.0, node).unwrap();
        choose_interface(&facts, asked, |_| true, turn)
    }

    fn name(&self, cpus: &str) -> String {
        self.choose(cpus, None).unwrap().name
    }
}

#[test]
fn n_1_a_process_uses_the_card_of_its_node() {
    let machine = machine(&[("eth0", "0", "up"), ("eth1", "1", "up")]);
    let choice = machine.choose("2-3", None).unwrap();
    assert_eq!((choice.name.as_str(), choice.node), ("eth1", 1));
    assert_eq!((choice.process_node, choice.note), (Some(1), None));
    assert_eq!(choice.process_cpus.to_string(), "2-3");
    assert_eq!(machine.name("0"), "eth0");
}

#[test]
fn n_2_processes_of_a_node_take_its_cards_in_turn() {
    let machine = machine(&[
        ("eth0", "0", "up"),
        ("eth1", "1", "up"),
        ("eth2", "1", "up"),
    ]);
    let mut uses: BTreeMap<String, u32> = BTreeMap::new();
    for _ in 0..4 {
        *uses.entry(machine.name("2")).or_default() += 1;
        // Those of another node have turns of their own.
        assert_eq!(machine.name("0"), "eth0");
    }
    let uses: Vec<_> = uses
        .iter()
        .map(|(name, &count)| (name.as_str(), count))
        .collect();
    assert_eq!(uses, [("eth1", 2), ("eth2", 2)]);
}

#[test]
fn n_3_without_a_card_of_its_node_it_uses_another_nodes_and_says_so() {
    for node in ["0", "-1"] {
        let choice = machine(&[("eth0", node, "up")])
            .choose("2-3", None)
            .unwrap();
        assert_eq!((choice.name.as_str(), choice.node), ("eth0", 0));
        assert_eq!(
            choice.note.as_deref(),
            Some("No network devices bound to client NUMA node 1.  Using response from NUMA 0")
        );
    }
}

#[test]
fn n_4_without_any_card_it_uses_the_loopback_and_says_so() {
    for cards in [&[][..], &[("eth0", "1", "down")]] {
        let choice = machine(cards).choose("2-3", None).unwrap();
        assert_eq!(choice.name, "lo");
        assert_eq!(
            choice.note.as_deref(),
            Some(
                "No network devices detected in fabric scan; default AttachInfo response may be \
                 incorrect"
            )
        );
    }
}

#[test]
fn n_5_the_one_that_is_asked_for_wins() {
    let machine = machine(&[("eth0", "0", "up"), ("eth1", "1", "up")]);
    for name in ["eth0", "lo"] {
        let choice = machine.choose("2-3", Some(name)).unwrap();
        assert_eq!((choice.name.as_str(), choice.note), (name, None));
    }
}

#[test]
fn an_interface_that_does_not_exist_is_an_error_that_names_those_that_do() {
    let machine = machine(&[("eth0", "0", "up"), ("eth1", "1", "down")]);
    let error = machine.choose("0", Some("ib7")).unwrap_err();
    assert_eq!(error.code, DerCode::NotThere);
    assert_eq!(
        error.message,
        "there is no network interface `ib7` (there are eth0, eth1, lo)"
    );
}

#[test]
fn cpus_of_several_nodes_mean_no_node_in_particular() {
    let machine = machine(&[("eth0", "0", "up"), ("eth1", "1", "up")]);
    let choice = machine.choose("0-3", None).unwrap();
    assert_eq!((choice.process_node, choice.note), (None, None));
    let next = machine.name("1-2");
    assert_ne!(choice.name, next, "all cards take turns");
}

#[test]
fn a_provider_that_does_not_support_the_near_card_uses_another() {
    let machine = machine(&[("eth0", "0", "up"), ("eth1", "1", "up")]);
    let facts = InterfaceChoiceFacts {
        interfaces: &machine.interfaces,
        topology: &machine.topology,
        cpus: &"2".parse().unwrap(),
    };
    let supports = |interface: &NetworkInterface| interface.name == "eth0";
    let choice = choose_interface(&facts, None, supports, |_| 0).unwrap();
    assert_eq!(choice.name, "eth0");
    assert!(choice.note.unwrap().contains("node 1"));
}

#[test]
fn every_turn_is_given_once() {
    let folder = Folder::new();
    let mut turns: Vec<u64> = std::thread::scope(|scope| {
        let take = || (0..25).map(|_| next_turn(&folder.0, Some(1)).unwrap());
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(move || take().collect::<Vec<_>>()))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    turns.sort_unstable();
    assert_eq!(turns, (0..100).collect::<Vec<_>>());
    fs::write(folder.0.join(TURNS), b"1 \xff\xfe\n").unwrap();
    assert_eq!(next_turn(&folder.0, Some(1)).unwrap(), 0);
    assert!(next_turn(&folder.0.join("nothing"), None).is_err());
    fs::remove_file(folder.0.join(TURNS)).unwrap();
    symlink(folder.0.join("elsewhere"), folder.0.join(TURNS)).unwrap();
    assert!(next_turn(&folder.0, None).is_err());
}
