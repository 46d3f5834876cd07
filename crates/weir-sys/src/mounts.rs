//! Table of mounted file systems.
//!
//! In: `/proc/self/mountinfo`. Out: one struct per mount. Not here: whether a mount forbids a
//! write ([`crate::guard`]).

use crate::tree::Tree;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A device number as the kernel prints it: `major:minor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DevId {
    /// The driver's number.
    pub major: u32,
    /// The device's number within its driver.
    pub minor: u32,
}

impl DevId {
    /// Splits the number found in a file's status.
    pub fn from_raw(dev: u64) -> Self {
        Self {
            major: rustix::fs::major(dev),
            minor: rustix::fs::minor(dev),
        }
    }
}

impl fmt::Display for DevId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for DevId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (major, minor) = text.trim().split_once(':').unwrap_or((text, ""));
        Ok(Self {
            major: major.parse()?,
            minor: minor.parse()?,
        })
    }
}

/// One line of `mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The device number that files on it report.
    pub dev: DevId,
    /// Directory of the file system at the top of this mount.
    pub root: PathBuf,
    /// Its mount point.
    pub point: PathBuf,
    /// The file system's type, such as `ext4`.
    pub fs_type: String,
    /// The mounted source, such as `/dev/sda1`.
    pub source: String,
    /// Options of the mount and of the file system.
    pub options: String,
}

/// All mounts that this process sees, in the kernel's order (later ones lie on top).
pub fn mounts(tree: &Tree) -> Vec<Mount> {
    let text = tree.text("proc/self/mountinfo").unwrap_or_default();
    text.lines().filter_map(parse).collect()
}

/// The mount on which a path lies: of those whose point leads to it, the longest, and of equals
/// the last.
pub fn mount_of<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.as_os_str().len())
}

/// `36 35 98:0 /root /point rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn parse(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(2);
    let dev = left.next()?.parse().ok()?;
    let root = unescape(left.next()?).into();
    let point = unescape(left.next()?).into();
    let of_mount = left.next()?;
    let mut right = right.split(' ');
    let fs_type = right.next()?.to_owned();
    let source = unescape(right.next()?);
    let of_fs = right.next().unwrap_or_default();
    Some(Mount {
        dev,
        root,
        point,
        fs_type,
        source,
        options: format!("{of_mount},{of_fs}"),
    })
}

/// The kernel writes space, tab, newline and backslash as three octal digits.
pub(crate) fn unescape(text: &str) -> String {
    let mut plain = text.to_owned();
    if !text.contains('\\') {
        return plain;
    }
    for (escaped, character) in [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ] {
        plain = plain.replace(escaped, character);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fake::FakeTree;

    const INFO: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
30 27 8:1 /sub /mnt/my\\040disk rw,noatime master:1 propagate_from:2 - xfs /dev/sda1 rw
rubbish
";

    #[test]
    fn mount_lines_are_read_with_optional_fields_and_escapes() {
        let fake = FakeTree::with(&[("proc/self/mountinfo", INFO)]);
        let mounts = mounts(&fake.tree());
        assert_eq!(mounts.len(), 3);
        let disk = &mounts[2];
        assert_eq!(disk.dev.to_string(), "8:1");
        assert_eq!(disk.root, Path::new("/sub"));
        assert_eq!(disk.point, Path::new("/mnt/my disk"));
        assert_eq!(
            (disk.fs_type.as_str(), disk.source.as_str()),
            ("xfs", "/dev/sda1")
        );
        assert_eq!(disk.options, "rw,noatime,rw");
    }

    #[test]
    fn the_longest_mount_point_holds_a_path() {
        let fake = FakeTree::with(&[("proc/self/mountinfo", INFO)]);
        let mounts = mounts(&fake.tree());
        let source = |path: &str| mount_of(&mounts, Path::new(path)).unwrap().source.clone();
        assert_eq!(source("/mnt/my disk/file"), "/dev/sda1");
        assert_eq!(source("/mnt/my disk2/file"), "/dev/vda");
        assert_eq!(source("/proc/stat"), "proc");
    }

    #[test]
    fn a_device_number_needs_both_parts() {
        assert!("8".parse::<DevId>().is_err());
        assert_eq!(
            "8:17\n".parse(),
            Ok(DevId {
                major: 8,
                minor: 17
            })
        );
    }
}
