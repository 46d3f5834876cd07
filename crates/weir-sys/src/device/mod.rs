//! Facts about a path: the kind and size of the file or device, its file system and disk.
//!
//! In: a path that a plan names. Out: facts for the plan's checks and for the result. Not here:
//! opening it for the run, and whether it may be written ([`crate::guard`]).

mod attached;
pub(crate) mod block;
mod counters;
mod driver;
mod extents;
mod nvme;
mod signature;

pub use attached::{
    AttachedDisk, Attachment, NetworkInterface, attached_disks, network_interfaces,
};
pub use block::{BlockFacts, PcieLink, block_facts, disks_behind};
pub use counters::{DiskStat, disk_counters};
pub use driver::{DriverFacts, driver_facts};
pub use extents::{Extents, extents};
pub use nvme::{NvmeFacts, generic_namespace, nvme_namespaces};
pub use signature::signature;

use crate::error::SysError;
use crate::mounts::{DevId, Mount, mount_of, mounts};
use crate::tree::Tree;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, StatVfsMountFlags, StatxFlags};
use rustix::io::Errno;
use std::fs;
use std::path::{Path, PathBuf};
use weir_units::Bytes;

/// Kind of file that a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// A file of bytes.
    Regular,
    /// A directory.
    Directory,
    /// A block device.
    Block,
    /// A character device.
    Character,
    /// A named pipe.
    Fifo,
    /// A socket or something newer.
    Other,
}

/// Support for I/O that bypasses the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectIo {
    /// It can; with the alignments that the kernel asks for, where it tells them (since 6.1).
    Supported {
        /// Alignment of addresses in memory.
        memory: Option<Bytes>,
        /// Alignment of offsets and lengths.
        offset: Option<Bytes>,
    },
    /// `O_DIRECT` is refused.
    Unsupported,
    /// It could not be tried, for want of permission.
    Unknown,
}

/// A file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Its type, such as `ext4`.
    pub fs_type: String,
    /// The mounted source, such as `/dev/sda1`.
    pub source: String,
    /// Its mount point.
    pub mount_point: PathBuf,
    /// Options of the mount.
    pub options: String,
    /// Files live in memory alone.
    pub is_in_memory: bool,
    /// It is mounted for reading only.
    pub is_read_only: bool,
    /// Space left for this user.
    pub available: Bytes,
}

/// Everything known about a path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathFacts {
    /// Kind of file, links followed.
    pub kind: PathKind,
    /// A file's length or a block device's capacity.
    pub size: Option<Bytes>,
    /// Bytes that a file occupies; less than its size if it has holes.
    pub allocated: Option<Bytes>,
    /// A device's own number.
    pub dev: Option<DevId>,
    /// File system of a file or directory.
    pub file_system: Option<FileSystem>,
    /// Support for direct I/O; `None` where the question makes no sense.
    pub direct_io: Option<DirectIo>,
    /// The block device itself, or the one that the file system is mounted from.
    pub block: Option<BlockFacts>,
}

/// Looks at a path. Changes nothing and opens nothing for writing.
///
/// # Errors
/// [`SysError::Path`] if it does not exist or may not be looked at.
pub fn path_facts(tree: &Tree, path: &Path) -> Result<PathFacts, SysError> {
    let stat = rustix::fs::stat(path).map_err(|e| SysError::Path {
        what: "look at",
        path: path.to_owned(),
        source: e.into(),
    })?;
    let kind = path_kind(&stat);
    let on_file_system = matches!(kind, PathKind::Regular | PathKind::Directory);
    let is_device = matches!(kind, PathKind::Block | PathKind::Character);
    let regular = kind == PathKind::Regular;
    let dev = is_device.then(|| DevId::from_raw(stat.st_rdev));
    let mount = on_file_system.then(|| mount_behind(tree, path)).flatten();
    let block_dev = match kind {
        PathKind::Block => dev,
        _ => mount.as_ref().and_then(|mount| device_of(tree, mount)),
    };
    let block = block_dev.and_then(|dev| block_facts(tree, dev));
    let bytes = |n: i64| u64::try_from(n).ok();
    let size = match kind {
        PathKind::Regular => bytes(stat.st_size).map(Bytes),
        PathKind::Block => block.as_ref().and_then(|block| block.size),
        _ => None,
    };
    let blocks = bytes(stat.st_blocks).filter(|_| regular);
    Ok(PathFacts {
        kind,
        size,
        allocated: blocks.map(|sectors| Bytes(sectors * 512)),
        dev,
        file_system: mount.map(|mount| file_system(mount, path)),
        direct_io: (regular || kind == PathKind::Block).then(|| direct_io(path)),
        block,
    })
}

/// Kind of file that a status describes.
pub(crate) fn path_kind(stat: &Stat) -> PathKind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => PathKind::Regular,
        FileType::Directory => PathKind::Directory,
        FileType::BlockDevice => PathKind::Block,
        FileType::CharacterDevice => PathKind::Character,
        FileType::Fifo => PathKind::Fifo,
        _ => PathKind::Other,
    }
}

/// The mount that holds a path.
fn mount_behind(tree: &Tree, path: &Path) -> Option<Mount> {
    let path = fs::canonicalize(path).ok()?;
    mount_of(&mounts(tree), &path)
        .cloned()
        .or_else(|| unseen_mount(&path))
}

/// A mount that the kernel does not list, because this process sees only a part of the tree
/// (chroot): what the file system itself says.
fn unseen_mount(path: &Path) -> Option<Mount> {
    let stat = rustix::fs::stat(path).ok()?;
    let magic = rustix::fs::statfs(path).ok()?.f_type;
    let known = MAGICS.iter().find(|(number, _)| *number == magic);
    Some(Mount {
        dev: DevId::from_raw(stat.st_dev),
        root: PathBuf::from("/"),
        point: PathBuf::from("/"),
        fs_type: known.map_or("unknown", |(_, name)| name).to_owned(),
        source: String::new(),
        options: String::new(),
    })
}

/// Magic numbers of common file systems, from `linux/magic.h`.
const MAGICS: &[(i64, &str)] = &[
    (0x0102_1994, "tmpfs"),
    (0x8584_58f6, "ramfs"),
    (0xef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x794c_7630, "overlay"),
    (0x6969, "nfs"),
];

/// The block device of a mount. File systems over several devices, such as btrfs, report a number
/// of their own; their source then names one of the devices.
fn device_of(tree: &Tree, mount: &Mount) -> Option<DevId> {
    if tree.has(format!("sys/dev/block/{}", mount.dev)) {
        return Some(mount.dev);
    }
    let name = block::device_name(tree, &mount.source)?;
    tree.number(format!("sys/class/block/{name}/dev"))
}

fn file_system(mount: Mount, path: &Path) -> FileSystem {
    let space = rustix::fs::statvfs(path).ok();
    let read_only = |flags: StatVfsMountFlags| flags.contains(StatVfsMountFlags::RDONLY);
    let memory = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];
    FileSystem {
        is_in_memory: memory.contains(&mount.fs_type.as_str()),
        is_read_only: space.as_ref().is_some_and(|space| read_only(space.f_flag)),
        available: Bytes(space.map_or(0, |space| space.f_bavail.saturating_mul(space.f_frsize))),
        fs_type: mount.fs_type,
        source: mount.source,
        mount_point: mount.point,
        options: mount.options,
    }
}

fn direct_io(path: &Path) -> DirectIo {
    let status = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::DIOALIGN);
    let answer = status.ok().filter(|status| {
        StatxFlags::from_bits_retain(status.stx_mask).contains(StatxFlags::DIOALIGN)
    });
    if let Some(status) = answer {
        // The kernel says "no" with zeros.
        if status.stx_dio_offset_align == 0 {
            return DirectIo::Unsupported;
        }
        return DirectIo::Supported {
            memory: Some(Bytes(status.stx_dio_mem_align.into())),
            offset: Some(Bytes(status.stx_dio_offset_align.into())),
        };
    }
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(_) => DirectIo::Supported {
            memory: None,
            offset: None,
        },
        Err(Errno::INVAL) => DirectIo::Unsupported,
        Err(_) => DirectIo::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fake::FakeTree;

    #[test]
    fn a_file_has_size_file_system_and_an_answer_about_direct_io() {
        let fake = FakeTree::with(&[("file", "12345")]);
        let facts = path_facts(&Tree::real(), &fake.path().join("file")).unwrap();
        assert_eq!(
            (facts.kind, facts.size),
            (PathKind::Regular, Some(Bytes(5)))
        );
        assert_eq!(facts.dev, None);
        assert!(facts.direct_io.is_some());
        assert!(!facts.file_system.unwrap().fs_type.is_empty());
    }

    #[test]
    fn kinds_are_told_apart() {
        let kind = |path: &str| path_facts(&Tree::real(), Path::new(path)).unwrap();
        assert_eq!(kind("/").kind, PathKind::Directory);
        let zero = kind("/dev/zero");
        assert_eq!(zero.kind, PathKind::Character);
        assert_eq!(zero.dev.unwrap().to_string(), "1:5");
        assert_eq!(
            (zero.size, zero.direct_io, zero.file_system),
            (None, None, None)
        );
    }

    #[test]
    fn a_missing_path_is_named() {
        let error = path_facts(&Tree::real(), Path::new("/no/such/path")).unwrap_err();
        assert!(
            error.to_string().contains("look at `/no/such/path`"),
            "{error}"
        );
    }

    #[test]
    fn a_file_system_in_memory_is_known_by_its_type() {
        let mounts = mounts(&Tree::real());
        // The last mount on a path hides earlier ones.
        let visible = |m: &&Mount| {
            let top = mounts.iter().rfind(|other| other.point == m.point);
            top.is_some_and(|top| top.fs_type == "tmpfs")
        };
        for mount in mounts.iter().filter(visible) {
            if let Ok(facts) = path_facts(&Tree::real(), &mount.point) {
                let system = facts.file_system.unwrap();
                assert!(system.is_in_memory, "{system:?}");
            }
        }
    }
}
