//! Disks and network interfaces, and the memory node that each is attached to.
//!
//! In: `/sys/class/{block,net}`. Out: a list of each. A node of −1, the kernel's word for a device
//! of no node, stays −1: what to make of it is the reader's decision. Not here: CPUs and the nodes
//! themselves ([`crate::topology`]).

use std::path::Path;

use super::block::{BlockFacts, ancestors, block_facts};
use crate::mounts::DevId;
use crate::tree::Tree;

const NETWORKS: &str = "sys/class/net";
const DISKS: &str = "sys/class/block";
/// Flags of an interface: switched on; leads back to this machine.
const IFF_UP: u32 = 1;
const IFF_LOOPBACK: u32 = 8;

/// Place of a device in the machine: its node, driver and bus address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attachment {
    /// The memory node as the kernel says it: −1 is a device of no node; `None` one of which it
    /// says nothing, as of virtual ones.
    pub numa_node: Option<i32>,
    /// The driver.
    pub driver: Option<String>,
    /// The address on its bus, such as `0000:3b:00.0`.
    pub bus_address: Option<String>,
    /// There is no hardware behind it.
    pub is_virtual: bool,
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkInterface {
    /// Its name.
    pub name: String,
    /// It can carry packets now.
    pub is_up: bool,
    /// It leads nowhere but to this machine.
    pub is_loopback: bool,
    /// Megabits per second as negotiated.
    pub speed_mbit_per_s: Option<u64>,
    /// The largest packet, in bytes.
    pub mtu: Option<u32>,
    /// Its place in the machine.
    pub attachment: Attachment,
}

/// A whole disk.
#[derive(Clone, Debug, PartialEq)]
pub struct AttachedDisk {
    /// Its facts as a block device.
    pub facts: BlockFacts,
    /// Its place in the machine.
    pub attachment: Attachment,
}

/// All network interfaces by name.
pub fn network_interfaces(tree: &Tree) -> Vec<NetworkInterface> {
    let names = tree.names(NETWORKS).into_iter();
    let of_name = |name: String| {
        let dir = tree.dir(format!("{NETWORKS}/{name}"))?;
        let flags = dir.word("flags").unwrap_or_default();
        let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).unwrap_or(0);
        let is_up = match dir.word("operstate").as_deref() {
            Some("up") => true,
            // Interfaces without a carrier of their own, such as the loopback.
            Some("unknown") => flags & IFF_UP != 0,
            _ => false,
        };
        let hardware = dir.dir("device");
        Some(NetworkInterface {
            is_up,
            is_loopback: flags & IFF_LOOPBACK != 0,
            // -1 where nothing is plugged in.
            speed_mbit_per_s: dir.number("speed").filter(|&speed: &u64| speed > 0),
            mtu: dir.number("mtu"),
            attachment: hardware.map_or_else(no_hardware, |device| attachment(&above(&device))),
            name,
        })
    };
    // A file beside the links says which interfaces bonds are.
    names.filter_map(of_name).collect()
}

/// All disks that hold something, by name; partitions are parts of them.
pub fn attached_disks(tree: &Tree) -> Vec<AttachedDisk> {
    let names = tree.names(DISKS).into_iter();
    let of_name = |name: String| {
        let dir = tree.dir(format!("{DISKS}/{name}"))?;
        let dev: DevId = dir.number("dev")?;
        let facts = block_facts(tree, dev)?;
        // Loop and RAM devices stand ready in numbers without holding anything.
        let is_empty = facts.size.is_none_or(|size| size.0 == 0);
        if facts.partition_of.is_some() || is_empty {
            return None;
        }
        let attachment = if is_virtual(&dir) {
            no_hardware()
        } else {
            attachment(&ancestors(&dir))
        };
        Some(AttachedDisk { facts, attachment })
    };
    names.filter_map(of_name).collect()
}

fn no_hardware() -> Attachment {
    Attachment {
        is_virtual: true,
        ..Attachment::default()
    }
}

fn above(device: &Tree) -> Vec<Tree> {
    std::iter::successors(Some(device.clone()), Tree::parent).collect()
}

fn is_virtual(dir: &Tree) -> bool {
    let path = dir.path("");
    path.components().any(|part| part.as_os_str() == "virtual")
}

/// From the directories of a device and of what it hangs on, nearest first.
fn attachment(above: &[Tree]) -> Attachment {
    let driver = |dir: &Tree| {
        let link = std::fs::canonicalize(dir.path("driver")).ok()?;
        Some(link.file_name()?.to_string_lossy().into_owned())
    };
    let on_bus = above.iter().find(|dir| dir.has(Path::new("numa_node")));
    Attachment {
        numa_node: on_bus.and_then(|dir| dir.number("numa_node")),
        driver: above.iter().find_map(driver),
        bus_address: on_bus.map(Tree::name),
        is_virtual: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::block::tests::nvme;
    use crate::tree::fake::FakeTree;

    #[test]
    fn an_interface_has_the_node_driver_and_address_of_its_card() {
        let card = "sys/devices/pci0000:5d/0000:5e:00.0";
        let fake = FakeTree::with(&[
            (&format!("{card}/numa_node"), "1\n"),
            (&format!("{card}/net/eth1/operstate"), "up\n"),
            (&format!("{card}/net/eth1/speed"), "25000\n"),
            (&format!("{card}/net/eth1/mtu"), "9000\n"),
            ("sys/devices/virtual/net/lo/operstate", "unknown\n"),
            ("sys/devices/virtual/net/lo/flags", "0x9\n"),
            ("sys/class/net/bonding_masters", ""),
        ]);
        fake.dir("sys/bus/pci/drivers/ice");
        fake.link(&format!("{card}/driver"), "sys/bus/pci/drivers/ice");
        fake.link(&format!("{card}/net/eth1/device"), card);
        fake.link("sys/class/net/eth1", &format!("{card}/net/eth1"));
        fake.link("sys/class/net/lo", "sys/devices/virtual/net/lo");
        let [eth1, lo] = &network_interfaces(&fake.tree())[..] else {
            panic!("two interfaces")
        };
        let ice = Attachment {
            numa_node: Some(1),
            driver: Some("ice".to_owned()),
            bus_address: Some("0000:5e:00.0".to_owned()),
            is_virtual: false,
        };
        assert_eq!((eth1.is_up, eth1.speed_mbit_per_s), (true, Some(25_000)));
        assert_eq!((eth1.mtu, &eth1.attachment), (Some(9_000), &ice));
        assert!(lo.is_up && lo.is_loopback && lo.attachment.is_virtual);
        assert!(!eth1.is_loopback);
        assert_eq!(lo.attachment.numa_node, None);
    }

    #[test]
    fn a_node_of_minus_one_is_shown_and_a_missing_link_is_no_speed() {
        let card = "sys/devices/pci0000:00/0000:00:03.0";
        let fake = FakeTree::with(&[
            (&format!("{card}/numa_node"), "-1\n"),
            (&format!("{card}/net/eth0/operstate"), "down\n"),
            (&format!("{card}/net/eth0/speed"), "-1\n"),
        ]);
        fake.link(&format!("{card}/net/eth0/device"), card);
        fake.link("sys/class/net/eth0", &format!("{card}/net/eth0"));
        let [eth0] = &network_interfaces(&fake.tree())[..] else {
            panic!("one interface")
        };
        assert_eq!(eth0.attachment.numa_node, Some(-1));
        assert_eq!((eth0.is_up, eth0.speed_mbit_per_s), (false, None));
    }

    #[test]
    fn disks_are_listed_without_their_partitions() {
        let fake = nvme();
        let disks = attached_disks(&fake.tree());
        let names: Vec<&str> = disks.iter().map(|disk| disk.facts.name.as_str()).collect();
        assert!(names.contains(&"nvme0n1"), "{names:?}");
        assert!(names.iter().all(|name| !name.contains('p')), "{names:?}");
        let disk = disks.iter().find(|d| d.facts.name == "nvme0n1").unwrap();
        assert_eq!(disk.attachment.numa_node, Some(1));
        let address = disk.attachment.bus_address.as_deref();
        assert_eq!(address, Some("0000:3b:00.0"));
    }
}
