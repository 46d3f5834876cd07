//! Facts of one block device, and what it is made of.
//!
//! In: a device number. Out: its limits, queue and place, from `/sys/dev/block`. Not here: what
//! it is doing ([`super::counters`]).

use crate::mounts::DevId;
use crate::tree::Tree;
use std::fs;
use std::path::Path;
use weir_units::{Bytes, Nanos};

/// A block device: a whole disk, a partition, or one made of others.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockFacts {
    /// Its number.
    pub dev: DevId,
    /// The kernel's name, such as `nvme0n1p2`.
    pub name: String,
    /// The whole disk of which it is a partition.
    pub partition_of: Option<String>,
    /// Devices that it is made of (dm, md).
    pub members: Vec<String>,
    /// Its capacity.
    pub size: Option<Bytes>,
    /// It refuses writes.
    pub is_read_only: Option<bool>,
    /// The unit of addressing.
    pub logical_block: Option<Bytes>,
    /// The unit that it writes without reading first.
    pub physical_block: Option<Bytes>,
    /// The largest request that the kernel sends it in one piece.
    pub max_request: Option<Bytes>,
    /// It is slow to seek.
    pub is_rotational: Option<bool>,
    /// It can forget blocks.
    pub has_discard: Option<bool>,
    /// `write back` or `write through`.
    pub write_cache: Option<String>,
    /// `none`, `host-aware` or `host-managed`.
    pub zoned: Option<String>,
    /// The I/O scheduler in force.
    pub scheduler: Option<String>,
    /// Requests that the kernel queues for it.
    pub queue_requests: Option<u32>,
    /// Hardware queues.
    pub hardware_queues: Option<usize>,
    /// Its driver has queues to poll.
    pub has_polling: Option<bool>,
    /// The latency of reads for which the kernel holds back writes; zero: it does not.
    pub write_throttle: Option<Nanos>,
    /// The maker's name for it.
    pub model: Option<String>,
    /// The maker's number of it.
    pub serial: Option<String>,
    /// The kernel's name of its driver.
    pub driver: Option<String>,
    /// The NUMA node that it is attached to.
    pub numa_node: Option<u32>,
    /// Its PCI Express link.
    pub pcie: Option<PcieLink>,
}

/// A PCI Express link as negotiated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PcieLink {
    /// The device's address, such as `0000:3b:00.0`.
    pub address: String,
    /// The speed now, such as `16.0 GT/s PCIe`.
    pub speed: String,
    /// Lanes now.
    pub width: Option<u32>,
    /// The speed that it could have.
    pub max_speed: Option<String>,
    /// The lanes that it could have.
    pub max_width: Option<u32>,
}

/// Reads the facts of a block device; `None` if there is none of this number.
pub fn block_facts(tree: &Tree, dev: DevId) -> Option<BlockFacts> {
    let own = tree.dir(format!("sys/dev/block/{dev}"))?;
    let disk = whole_disk(&own);
    let above = ancestors(&disk);
    let flag = |entry: &str| disk.number(entry).map(|value: u64| value != 0);
    let bytes = |entry: &str| disk.number(entry).map(Bytes);
    let node = above.iter().find_map(|dir| dir.number::<i64>("numa_node"));
    let model = || disk.word("device/model").or_else(|| disk.word("dm/name"));
    Some(BlockFacts {
        dev,
        name: own.name(),
        partition_of: own.has("partition").then(|| disk.name()),
        members: own.names("slaves"),
        size: own
            .number("size")
            .map(|sectors: u64| Bytes(sectors.saturating_mul(512))),
        is_read_only: own.number("ro").map(|value: u64| value != 0),
        logical_block: bytes("queue/logical_block_size"),
        physical_block: bytes("queue/physical_block_size"),
        max_request: disk
            .number("queue/max_sectors_kb")
            .map(|kib: u64| Bytes(kib << 10)),
        is_rotational: flag("queue/rotational"),
        has_discard: flag("queue/discard_max_bytes"),
        write_cache: disk.word("queue/write_cache"),
        zoned: disk.word("queue/zoned"),
        scheduler: disk.word("queue/scheduler").map(|list| chosen(&list)),
        queue_requests: disk.number("queue/nr_requests"),
        hardware_queues: Some(disk.names("mq").len()).filter(|&queues| queues > 0),
        has_polling: flag("queue/io_poll"),
        write_throttle: disk.number("queue/wbt_lat_usec").map(Nanos::from_micros),
        model: model(),
        serial: ["serial", "device/serial"]
            .into_iter()
            .find_map(|entry| disk.word(entry)),
        driver: above.iter().find_map(driver),
        // -1 is a device that belongs to no node.
        numa_node: node.and_then(|node| u32::try_from(node).ok()),
        pcie: above.iter().find_map(pcie_link),
    })
}

/// Names of the whole disks that a device rests on: itself, its disk, or, for one made of others,
/// theirs. The counters of these tell what really moved.
pub fn disks_behind(tree: &Tree, dev: DevId) -> Vec<String> {
    let mut disks = Vec::new();
    let mut open: Vec<Tree> = tree
        .dir(format!("sys/dev/block/{dev}"))
        .into_iter()
        .collect();
    let mut seen = Vec::new();
    while let Some(device) = open.pop() {
        let disk = whole_disk(&device);
        if seen.contains(&disk.name()) {
            continue;
        }
        seen.push(disk.name());
        let members = disk.names("slaves");
        if members.is_empty() {
            disks.push(disk.name());
        }
        let inside = |name: &String| tree.dir(format!("sys/class/block/{name}"));
        open.extend(members.iter().filter_map(inside));
    }
    disks.sort();
    disks
}

/// The kernel's name of the device behind a path such as `/dev/mapper/home`.
pub(crate) fn device_name(tree: &Tree, path: &str) -> Option<String> {
    if !path.starts_with("/dev/") {
        return None;
    }
    let path = Path::new(path);
    let real = fs::canonicalize(tree.path(path));
    let real = real.as_deref().unwrap_or(path);
    let name = real.file_name()?.to_string_lossy().into_owned();
    tree.has(format!("sys/class/block/{name}")).then_some(name)
}

/// The directory of a partition's disk, or of the device itself.
pub(crate) fn whole_disk(own: &Tree) -> Tree {
    let disk = own.has("partition").then(|| own.parent()).flatten();
    disk.unwrap_or_else(|| own.clone())
}

/// The directories from a disk up through its controller and buses.
pub(crate) fn ancestors(disk: &Tree) -> Vec<Tree> {
    let mut above: Vec<Tree> = std::iter::successors(Some(disk.clone()), Tree::parent).collect();
    // NVMe namespaces of a multipath subsystem sit aside; their controller is linked.
    above.extend(
        disk.dir("device")
            .iter()
            .flat_map(|device| std::iter::successors(Some(device.clone()), Tree::parent)),
    );
    above
}

fn driver(dir: &Tree) -> Option<String> {
    let entry = dir.path("driver");
    let name = fs::read_link(entry).ok()?;
    Some(name.file_name()?.to_string_lossy().into_owned())
}

fn pcie_link(dir: &Tree) -> Option<PcieLink> {
    Some(PcieLink {
        speed: dir.word("current_link_speed")?,
        address: dir.name(),
        width: dir.number("current_link_width"),
        max_speed: dir.word("max_link_speed"),
        max_width: dir.number("max_link_width"),
    })
}

/// `none [mq-deadline] kyber` means the one in brackets.
fn chosen(list: &str) -> String {
    let bracketed = list
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(list, |(chosen, _)| chosen).to_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::tree::fake::FakeTree;

    /// An NVMe disk with two partitions, the second under a dm volume, behind a PCI bridge.
    pub(crate) fn nvme() -> FakeTree {
        let pci = "sys/devices/pci0000:00/0000:00:01.0/0000:3b:00.0";
        let disk = format!("{pci}/nvme/nvme0/nvme0n1");
        let fake = FakeTree::new();
        let files = [
            ("../../../numa_node", "1\n"),
            ("../../../current_link_speed", "16.0 GT/s PCIe\n"),
            ("../../../current_link_width", "4\n"),
            ("../../../max_link_width", "8\n"),
            ("dev", "259:0\n"),
            ("size", "2048\n"),
            ("ro", "0\n"),
            ("stat", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n"),
            ("device/model", "Fast SSD   \n"),
            ("device/serial", "S5X1  \n"),
            ("queue/wbt_lat_usec", "2000\n"),
            ("queue/logical_block_size", "512\n"),
            ("queue/physical_block_size", "4096\n"),
            ("queue/max_sectors_kb", "1280\n"),
            ("queue/rotational", "0\n"),
            ("queue/discard_max_bytes", "2199023255040\n"),
            ("queue/scheduler", "[none] mq-deadline\n"),
            ("queue/nr_requests", "1023\n"),
            ("queue/io_poll", "0\n"),
            ("mq/0/nr_tags", "1\n"),
            ("mq/1/nr_tags", "1\n"),
            ("nvme0n1p1/partition", "1\n"),
            ("nvme0n1p1/dev", "259:1\n"),
            ("nvme0n1p1/size", "1024\n"),
            ("nvme0n1p2/partition", "2\n"),
            ("nvme0n1p2/dev", "259:2\n"),
            ("nvme0n1p2/size", "512\n"),
        ];
        fake.dir(&disk);
        for (file, text) in files {
            fake.write(&format!("{disk}/{file}"), text);
        }
        fake.link(&format!("{pci}/driver"), "sys/bus/pci/drivers/nvme");
        let dm = "sys/devices/virtual/block/dm-0";
        fake.write(&format!("{dm}/dev"), "253:0\n");
        fake.write(&format!("{dm}/dm/name"), "vg-home\n");
        fake.dir(&format!("{dm}/slaves/nvme0n1p2"));
        fake.dir(&format!("{disk}/nvme0n1p2/holders/dm-0"));
        for (name, dev, at) in [
            ("nvme0n1", "259:0", disk.clone()),
            ("nvme0n1p1", "259:1", format!("{disk}/nvme0n1p1")),
            ("nvme0n1p2", "259:2", format!("{disk}/nvme0n1p2")),
            ("dm-0", "253:0", dm.to_owned()),
        ] {
            fake.link(&format!("sys/class/block/{name}"), &at);
            fake.link(&format!("sys/dev/block/{dev}"), &at);
        }
        fake
    }

    fn dev(text: &str) -> DevId {
        text.parse().unwrap()
    }

    #[test]
    fn a_partition_has_its_own_size_and_its_disks_limits_and_place() {
        let fake = nvme();
        let facts = block_facts(&fake.tree(), dev("259:1")).unwrap();
        assert_eq!(
            (facts.name.as_str(), facts.partition_of.as_deref()),
            ("nvme0n1p1", Some("nvme0n1"))
        );
        assert_eq!(facts.size, Some(Bytes(1024 * 512)));
        assert_eq!(facts.physical_block, Some(Bytes(4096)));
        assert_eq!(facts.max_request, Some(Bytes(1280 << 10)));
        assert_eq!(
            (facts.is_rotational, facts.has_discard),
            (Some(false), Some(true))
        );
        assert_eq!(facts.scheduler.as_deref(), Some("none"));
        assert_eq!(facts.hardware_queues, Some(2));
        assert_eq!(facts.model.as_deref(), Some("Fast SSD"));
        assert_eq!(facts.serial.as_deref(), Some("S5X1"));
        assert_eq!(facts.driver.as_deref(), Some("nvme"));
        assert_eq!(facts.write_throttle, Some(Nanos(2_000_000)));
        assert_eq!(facts.numa_node, Some(1));
        let link = facts.pcie.unwrap();
        assert_eq!(
            (link.address.as_str(), link.width, link.max_width),
            ("0000:3b:00.0", Some(4), Some(8))
        );
        assert_eq!(link.max_speed, None);
    }

    #[test]
    fn a_volume_rests_on_the_disk_of_its_partition() {
        let fake = nvme();
        let tree = fake.tree();
        assert_eq!(disks_behind(&tree, dev("253:0")), ["nvme0n1"]);
        assert_eq!(disks_behind(&tree, dev("259:2")), ["nvme0n1"]);
        let volume = block_facts(&tree, dev("253:0")).unwrap();
        assert_eq!(volume.members, ["nvme0n1p2"]);
        assert_eq!(volume.model.as_deref(), Some("vg-home"));
        assert_eq!((volume.numa_node, volume.pcie), (None, None));
        assert_eq!((volume.driver, volume.serial), (None, None));
    }

    #[test]
    fn an_unknown_number_has_no_facts() {
        let fake = nvme();
        assert_eq!(block_facts(&fake.tree(), dev("1:1")), None);
        assert!(disks_behind(&fake.tree(), dev("1:1")).is_empty());
    }
}
