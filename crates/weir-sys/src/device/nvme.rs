//! NVMe namespaces on the kernel's driver, with the controllers that they belong to.
//!
//! In: `/sys`. Out: facts of each namespace. Not here: what all block devices have ([`super::block`]), and
//! whether one is in use ([`crate::guard`]).

use super::block::{BlockFacts, block_facts};
use crate::mounts::DevId;
use crate::tree::Tree;
use weir_units::Bytes;

/// A namespace with its controller.
#[derive(Clone, Debug, PartialEq)]
pub struct NvmeFacts {
    /// Facts of its block device.
    pub block: BlockFacts,
    /// PCI address of the controller, such as `0000:3b:00.0`.
    pub address: String,
    /// Numbers of the controller's maker and of its kind.
    pub ids: (u16, u16),
    /// Number among the namespaces of the controller.
    pub number: u32,
    /// Version of the drive's firmware.
    pub firmware: Option<String>,
}

/// The namespaces whose controllers are on PCI Express, by address and number.
pub fn nvme_namespaces(tree: &Tree) -> Vec<NvmeFacts> {
    let names = tree.names("sys/class/block").into_iter();
    let mut all: Vec<NvmeFacts> = names.filter_map(|name| namespace(tree, &name)).collect();
    all.sort_by(|a, b| (&a.address, a.number).cmp(&(&b.address, b.number)));
    all
}

/// Bytes of the smallest page.
const PAGE: u64 = 4096;

/// Facts of the namespace behind a generic device (`ng0n1`), whose largest request is the longest command; none of
/// any other character device.
pub fn generic_namespace(tree: &Tree, dev: DevId) -> Option<BlockFacts> {
    let own = tree.dir(format!("sys/dev/char/{dev}"))?.name();
    let name = own.strip_prefix("ng")?;
    let disk = tree.dir(format!("sys/class/block/nvme{name}"))?;
    let mut facts = block_facts(tree, disk.number("dev")?)?;
    // A command is never split, and each of its pages may be a segment; buffers may begin within a page.
    let segments = disk.number::<u64>("queue/max_segments");
    let pages = segments.map(|segments| Bytes(segments.saturating_sub(1).max(1) * PAGE));
    facts.max_request = facts.max_request.into_iter().chain(pages).min();
    Some(facts)
}

fn namespace(tree: &Tree, name: &str) -> Option<NvmeFacts> {
    if !name.starts_with("nvme") {
        return None;
    }
    let own = tree.dir(format!("sys/class/block/{name}"))?;
    // A path to a namespace that several lead to has no device number.
    if own.has("partition") || own.has("hidden") && own.number("hidden") == Some(1) {
        return None;
    }
    let controller = controller(&own)?;
    let function = controller.dir("device")?;
    let id = |entry: &str| {
        let text = function.word(entry)?;
        u16::from_str_radix(text.trim_start_matches("0x"), 16).ok()
    };
    let of_name = || name.rsplit_once('n')?.1.parse().ok();
    Some(NvmeFacts {
        block: block_facts(tree, own.number("dev")?)?,
        address: function.name(),
        ids: (id("vendor")?, id("device")?),
        number: own.number("nsid").or_else(of_name)?,
        firmware: controller.word("firmware_rev"),
    })
}

/// The controller of a namespace: what it is a device of, or of a subsystem with several the first that
/// leads to it.
fn controller(own: &Tree) -> Option<Tree> {
    let above = own.dir("device")?;
    if above.has("device") {
        return Some(above);
    }
    let names = above.names("").into_iter();
    let mut all = names
        .filter(|name| name.starts_with("nvme"))
        .filter_map(|name| above.dir(name));
    all.find(|dir| dir.has("device") && dir.has("cntlid"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::block::tests::nvme;

    const FUNCTION: &str = "sys/devices/pci0000:00/0000:00:01.0/0000:3b:00.0";

    #[test]
    fn a_generic_device_has_the_facts_of_its_namespace_and_the_length_of_its_commands() {
        let fake = nvme();
        let controller = format!("{FUNCTION}/nvme/nvme0");
        fake.dir(&format!("{controller}/ng0n1"));
        fake.link("sys/dev/char/240:0", &format!("{controller}/ng0n1"));
        let longest = |segments: &str| {
            fake.write(
                &format!("{controller}/nvme0n1/queue/max_segments"),
                segments,
            );
            let facts = generic_namespace(&fake.tree(), "240:0".parse().unwrap()).unwrap();
            assert_eq!(facts.name, "nvme0n1");
            facts.max_request
        };
        assert_eq!(longest("65535\n"), Some(Bytes(1280 << 10)));
        assert_eq!(longest("9\n"), Some(Bytes(8 * 4096)));
        assert_eq!(
            generic_namespace(&fake.tree(), "1:3".parse().unwrap()),
            None
        );
    }

    #[test]
    fn a_namespace_has_the_address_and_numbers_of_its_controller() {
        let fake = nvme();
        let controller = format!("{FUNCTION}/nvme/nvme0");
        fake.write(&format!("{FUNCTION}/vendor"), "0x144d\n");
        fake.write(&format!("{FUNCTION}/device"), "0xa80a\n");
        fake.write(&format!("{controller}/firmware_rev"), "5B2QGXA7\n");
        fake.link(&format!("{controller}/device"), FUNCTION);
        // The other tests' disk has files where the kernel has a link.
        let disk = format!("{controller}/nvme0n1/device");
        std::fs::remove_dir_all(fake.path().join(&disk)).unwrap();
        fake.link(&disk, &controller);
        fake.write(&format!("{controller}/nvme0n1/nsid"), "1\n");
        let all = nvme_namespaces(&fake.tree());
        let [one] = all.as_slice() else {
            panic!("{all:?}")
        };
        assert_eq!(one.address, "0000:3b:00.0");
        assert_eq!((one.ids, one.number), ((0x144d, 0xa80a), 1));
        assert_eq!(one.firmware.as_deref(), Some("5B2QGXA7"));
        assert_eq!(one.block.name, "nvme0n1");
    }

    #[test]
    fn what_has_no_controller_is_no_namespace() {
        assert_eq!(nvme_namespaces(&nvme().tree()), []);
    }
}
