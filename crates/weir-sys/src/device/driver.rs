//! The driver behind a character device, and how it waits for its hardware.
//!
//! In: a device number. Out: the driver's name and its module's parameter `poll_mode`, as far as
//! the kernel tells. Not here: block devices.

use crate::mounts::DevId;
use crate::tree::Tree;

/// The driver of a character device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverFacts {
    /// Its name, such as `xdma`.
    pub name: String,
    /// The parameter `poll_mode` of its module, where it has one that can be read.
    pub poll_mode: Option<String>,
}

/// Facts about the driver of a character device; memory devices and the like have none.
pub fn driver_facts(tree: &Tree, dev: DevId) -> Option<DriverFacts> {
    let link = tree.path(format!("sys/dev/char/{dev}/device/driver"));
    let driver = std::fs::canonicalize(link).ok()?;
    let name = driver.file_name()?.to_str()?.to_owned();
    let poll_mode = tree.word(format!("sys/module/{name}/parameters/poll_mode"));
    Some(DriverFacts { name, poll_mode })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fake::FakeTree;

    #[test]
    fn the_driver_tells_whether_it_polls() {
        let fake = FakeTree::with(&[
            ("sys/dev/char/240:0/device/driver/module", ""),
            ("sys/module/driver/parameters/poll_mode", "1\n"),
        ]);
        let tree = Tree::at(fake.path());
        let dev = DevId {
            major: 240,
            minor: 0,
        };
        let facts = driver_facts(&tree, dev).unwrap();
        assert_eq!(
            (facts.name.as_str(), facts.poll_mode.as_deref()),
            ("driver", Some("1"))
        );
        assert_eq!(
            driver_facts(&Tree::real(), DevId { major: 1, minor: 5 }),
            None
        );
    }
}
