//! The write guard: the last look before a block device is overwritten.
//!
//! In: a path about to be written. Out: nothing, or the reason why it must not be: it, one of its
//! partitions, the disk it is part of or anything built on these is mounted, swapped to, held or
//! opened exclusively. A character device that passes commands to disks (NVMe, SCSI) is guarded as
//! these are. Not here: files (their file system guards them), and opening the device.
//!
//! [`check_write`] tries the exclusive open and gives it back. A run of one process keeps it to its end
//! ([`ClaimedDevices`]), so that nobody can mount the device meanwhile; ranks write to one device together, and
//! the kernel does not take part in their promise.

use crate::device::{PathKind, block, path_kind};
use crate::mounts::{DevId, mounts, unescape};
use crate::tree::Tree;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Reason that a device must not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuardError {
    /// It or something on it is mounted.
    #[error("refusing to write to `{}`: {} is mounted on `{}` (unmount it first)", .path.display(), .what, .point.display())]
    Mounted {
        /// The path about to be written.
        path: PathBuf,
        /// The mounted device, such as `/dev/sda1`.
        what: String,
        /// Its mount point.
        point: PathBuf,
    },
    /// It or something on it is swap space.
    #[error("refusing to write to `{}`: {what} is in use as swap (`swapoff {what}` first)", .path.display())]
    Swap {
        /// The path about to be written.
        path: PathBuf,
        /// The device in use.
        what: String,
    },
    /// Another device is built on it.
    #[error("refusing to write to `{}`: {what} is part of {by} (take {by} apart first)", .path.display())]
    Held {
        /// The path about to be written.
        path: PathBuf,
        /// The device that is held.
        what: String,
        /// The device (dm, md) or file system that holds it.
        by: String,
    },
    /// Somebody has it open for himself.
    #[error("refusing to write to `{}`: another program has opened it exclusively (`fuser {}` names it)", .path.display(), .path.display())]
    Exclusive {
        /// The path about to be written.
        path: PathBuf,
    },
    /// It could not be looked at.
    #[error("cannot check whether `{}` is in use: {source}", .path.display())]
    Unchecked {
        /// The path about to be written.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// Refusals that the user may override.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Write although it or something on it is mounted. Swap and holders are refused all the same.
    pub mounted: bool,
}

/// Checks a path before its first write. Anything passes that is no block device and has none behind
/// it.
///
/// # Errors
/// [`GuardError`] naming what is in use, or why that cannot be known.
pub fn check_write(tree: &Tree, path: &Path, overrides: Overrides) -> Result<(), GuardError> {
    ClaimedDevices::default().check(tree, path, overrides)
}

/// Devices that a run writes, each opened for this program alone until this is dropped.
#[derive(Debug, Default)]
pub struct ClaimedDevices(Mutex<Vec<Claim>>);

/// A device that is open for this program alone.
#[derive(Debug)]
struct Claim {
    /// Name of the whole disk that it is, or is a partition of.
    disk: String,
    _open: OwnedFd,
}

impl ClaimedDevices {
    /// The check of [`check_write`], which devices pass that are claimed here.
    ///
    /// # Errors
    /// As there.
    pub fn check(&self, tree: &Tree, path: &Path, overrides: Overrides) -> Result<(), GuardError> {
        for (own, device) in disks_of(tree, path)? {
            check_disk(tree, path, &own, overrides)?;
            // A mount opens its device exclusively, so that this would only say the same again.
            if !overrides.mounted {
                self.open(path, &own, &device)?;
            }
        }
        Ok(())
    }

    /// Opens the disks that a path leads to for this program alone.
    ///
    /// # Errors
    /// Somebody else has one open, or it cannot be opened.
    pub fn claim(&self, tree: &Tree, path: &Path) -> Result<(), GuardError> {
        for (own, device) in disks_of(tree, path)? {
            if let Some(open) = self.open(path, &own, &device)? {
                self.lock().push(Claim {
                    disk: block::whole_disk(&own).name(),
                    _open: open,
                });
            }
        }
        Ok(())
    }

    /// The device, open for this program alone; nothing where it, or its disk, already is.
    fn open(&self, path: &Path, own: &Tree, device: &Path) -> Result<Option<OwnedFd>, GuardError> {
        let disk = block::whole_disk(own).name();
        match open_alone(path, device) {
            Err(GuardError::Exclusive { .. }) if self.lock().iter().any(|one| one.disk == disk) => {
                Ok(None)
            }
            opened => opened.map(Some),
        }
    }

    /// Nobody panics while holding it.
    fn lock(&self) -> MutexGuard<'_, Vec<Claim>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The disks that a path leads to, each with the path of its block device; none of a file.
fn disks_of(tree: &Tree, path: &Path) -> Result<Vec<(Tree, PathBuf)>, GuardError> {
    let unchecked = |source: Errno| GuardError::Unchecked {
        path: path.to_owned(),
        source: source.into(),
    };
    let stat = rustix::fs::stat(path).map_err(unchecked)?;
    let dev = DevId::from_raw(stat.st_rdev);
    match path_kind(&stat) {
        PathKind::Block => Ok(vec![(block_device(tree, path, dev)?, path.to_owned())]),
        PathKind::Character => {
            let disks = disks_behind(tree, dev).into_iter();
            let node = |disk: &Tree| Path::new("/dev").join(disk.name());
            Ok(disks.map(|disk| (disk.clone(), node(&disk))).collect())
        }
        _ => Ok(Vec::new()),
    }
}

/// Opens a device for this program alone.
fn open_alone(path: &Path, device: &Path) -> Result<OwnedFd, GuardError> {
    // Opening for reading is enough to be refused, and closing a device that was open for
    // writing would make udev probe it.
    let flags = OFlags::EXCL | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let open = |access| rustix::fs::open(device, access | flags, Mode::empty());
    let opened = open(OFlags::RDONLY).or_else(|error| match error {
        Errno::ACCESS => open(OFlags::WRONLY),
        other => Err(other),
    });
    opened.map_err(|error| match error {
        Errno::BUSY => GuardError::Exclusive {
            path: path.to_owned(),
        },
        source => GuardError::Unchecked {
            path: path.to_owned(),
            source: source.into(),
        },
    })
}

/// The disks that commands reach through a character device: an NVMe namespace's generic device
/// (`ng0n1`), an NVMe controller (`nvme0`), which takes commands for each of its namespaces, and a
/// SCSI disk's (`sg0`, `bsg/0:0:0:0`).
fn disks_behind(tree: &Tree, dev: DevId) -> Vec<Tree> {
    let Some(own) = tree.dir(format!("sys/dev/char/{dev}")) else {
        return Vec::new();
    };
    let name = own.name();
    let disks = if let Some(namespace) = name.strip_prefix("ng") {
        vec![format!("nvme{namespace}")]
    } else if name.starts_with("nvme") {
        own.names("").iter().filter_map(|n| namespace(n)).collect()
    } else {
        own.names("device/block")
    };
    let of_name = |disk: String| tree.dir(format!("sys/class/block/{disk}"));
    disks.into_iter().filter_map(of_name).collect()
}

/// The disk of one of a controller's namespaces: `nvme0n1`; where several paths lead to it the
/// controller's own name for it is `nvme0c2n1`.
fn namespace(name: &str) -> Option<String> {
    let (subsystem, rest) = name.strip_prefix("nvme")?.split_once(['c', 'n'])?;
    let number = rest.rsplit_once('n').map_or(rest, |(_, number)| number);
    Some(format!("nvme{subsystem}n{number}"))
}

/// The directory of a block device.
fn block_device(tree: &Tree, path: &Path, dev: DevId) -> Result<Tree, GuardError> {
    let own = tree.dir(format!("sys/dev/block/{dev}"));
    own.ok_or_else(|| GuardError::Unchecked {
        path: path.to_owned(),
        source: io::Error::new(
            io::ErrorKind::NotFound,
            format!("/sys knows no device {dev}"),
        ),
    })
}

/// The part of the check that the kernel's files answer.
fn check_disk(
    tree: &Tree,
    path: &Path,
    own: &Tree,
    overrides: Overrides,
) -> Result<(), GuardError> {
    let family = Family::of(tree, own);
    if !overrides.mounted {
        check_mounts(tree, path, &family)?;
    }
    for line in tree.text("proc/swaps").unwrap_or_default().lines().skip(1) {
        let swap = unescape(line.split_whitespace().next().unwrap_or_default());
        let name = block::device_name(tree, &swap);
        if name.is_some_and(|name| family.has(&name)) {
            return Err(GuardError::Swap {
                path: path.to_owned(),
                what: swap,
            });
        }
    }
    match family.held.into_iter().next() {
        Some((what, by)) => Err(GuardError::Held {
            path: path.to_owned(),
            what: format!("/dev/{what}"),
            by: format!("/dev/{by}"),
        }),
        None => Ok(()),
    }
}

fn check_mounts(tree: &Tree, path: &Path, family: &Family) -> Result<(), GuardError> {
    let mounts = mounts(tree);
    for mount in &mounts {
        // btrfs and others report a number of their own, but name a device as their source.
        let by_source = block::device_name(tree, &mount.source);
        let by_number = family.names.iter().find(|(_, dev)| *dev == Some(mount.dev));
        let name = by_number.map(|(name, _)| name.clone());
        if let Some(name) = name.or(by_source.filter(|name| family.has(name))) {
            return Err(GuardError::Mounted {
                path: path.to_owned(),
                what: format!("/dev/{name}"),
                point: mount.point.clone(),
            });
        }
    }
    // A btrfs over several devices names only one of them as its source.
    for system in tree.names("sys/fs/btrfs") {
        let members = tree.names(format!("sys/fs/btrfs/{system}/devices"));
        if let Some(member) = members.into_iter().find(|name| family.has(name)) {
            return Err(GuardError::Held {
                path: path.to_owned(),
                what: format!("/dev/{member}"),
                by: format!("the btrfs file system {system}"),
            });
        }
    }
    Ok(())
}

/// A device and all that loses data when it is overwritten.
struct Family {
    /// Names and numbers: the device, its partitions, the disk that it is a partition of, and
    /// everything built on these.
    names: Vec<(String, Option<DevId>)>,
    /// Pairs of devices: the held one and its holder.
    held: Vec<(String, String)>,
}

impl Family {
    fn of(tree: &Tree, own: &Tree) -> Self {
        let mut family = Self {
            names: Vec::new(),
            held: Vec::new(),
        };
        family.add(tree, own);
        let disk = block::whole_disk(own);
        if disk.name() != own.name() {
            family.add_one(tree, &disk);
        }
        family
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|(known, _)| known == name)
    }

    /// Adds a device, its partitions and their holders.
    fn add(&mut self, tree: &Tree, device: &Tree) {
        self.add_one(tree, device);
        for name in device.names("") {
            if let Some(partition) = device.dir(&name).filter(|dir| dir.has("partition")) {
                self.add_one(tree, &partition);
            }
        }
    }

    /// Adds a device and its holders.
    fn add_one(&mut self, tree: &Tree, device: &Tree) {
        if self.has(&device.name()) {
            return;
        }
        self.names.push((device.name(), device.number("dev")));
        for holder in device.names("holders") {
            if let Some(dir) = tree.dir(format!("sys/class/block/{holder}")) {
                self.add(tree, &dir);
            }
            self.held.push((device.name(), holder));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::block::tests::nvme;
    use crate::tree::fake::FakeTree;
    use std::io::Write;
    use std::process::Command;

    const NO: Overrides = Overrides { mounted: false };
    const YES: Overrides = Overrides { mounted: true };

    /// The fake machine of the device tests without its dm volume.
    fn idle() -> FakeTree {
        let fake = nvme();
        let held = "sys/class/block/nvme0n1/nvme0n1p2/holders/dm-0";
        std::fs::remove_dir(fake.path().join(held)).unwrap();
        fake
    }

    fn check(fake: &FakeTree, dev: &str, overrides: Overrides) -> Result<(), String> {
        let (tree, path) = (fake.tree(), Path::new("/dev/target"));
        let own = block_device(&tree, path, dev.parse().unwrap());
        let checked = own.and_then(|own| check_disk(&tree, path, &own, overrides));
        checked.map_err(|e| e.to_string())
    }

    fn mount(fake: &FakeTree, dev: &str, source: &str) {
        let line = format!("30 27 {dev} / /data rw - ext4 {source} rw\n");
        fake.write("proc/self/mountinfo", &line);
    }

    #[test]
    fn an_idle_disk_and_its_partitions_pass() {
        let fake = idle();
        mount(&fake, "8:1", "/dev/sda1");
        for dev in ["259:0", "259:1", "259:2"] {
            assert_eq!(check(&fake, dev, NO), Ok(()));
        }
    }

    #[test]
    fn a_disk_is_refused_when_a_partition_is_mounted_and_the_other_partition_is_not() {
        let fake = idle();
        mount(&fake, "259:1", "/dev/nvme0n1p1");
        for dev in ["259:0", "259:1"] {
            let message = check(&fake, dev, NO).unwrap_err();
            assert!(
                message.contains("/dev/nvme0n1p1 is mounted on `/data`"),
                "{message}"
            );
        }
        assert_eq!(check(&fake, "259:2", NO), Ok(()));
        assert_eq!(check(&fake, "259:0", YES), Ok(()));
    }

    #[test]
    fn a_partition_is_refused_when_the_whole_disk_is_mounted() {
        let fake = idle();
        mount(&fake, "259:0", "/dev/nvme0n1");
        let message = check(&fake, "259:1", NO).unwrap_err();
        assert!(message.contains("/dev/nvme0n1 is mounted"), "{message}");
    }

    #[test]
    fn a_mount_is_found_by_its_source_when_its_number_is_not_the_devices() {
        let fake = idle();
        mount(&fake, "0:40", "/dev/nvme0n1p2");
        assert!(
            check(&fake, "259:0", NO)
                .unwrap_err()
                .contains("/dev/nvme0n1p2 is mounted")
        );
    }

    #[test]
    fn a_member_of_a_btrfs_is_refused() {
        let fake = idle();
        fake.dir("sys/fs/btrfs/abc-123/devices/nvme0n1p2");
        assert!(
            check(&fake, "259:0", NO)
                .unwrap_err()
                .contains("btrfs file system abc-123")
        );
    }

    #[test]
    fn a_mounted_volume_on_a_partition_protects_the_disk() {
        let fake = nvme();
        mount(&fake, "253:0", "/dev/mapper/vg-home");
        let message = check(&fake, "259:0", NO).unwrap_err();
        assert!(
            message.contains("/dev/dm-0 is mounted on `/data`"),
            "{message}"
        );
    }

    #[test]
    fn a_holder_protects_the_disk_even_against_the_override() {
        let fake = nvme();
        for overrides in [NO, YES] {
            let message = check(&fake, "259:0", overrides).unwrap_err();
            assert!(
                message.contains("/dev/nvme0n1p2 is part of /dev/dm-0"),
                "{message}"
            );
        }
        assert_eq!(check(&fake, "253:0", NO), Ok(()));
        assert_eq!(check(&fake, "259:1", NO), Ok(()));
    }

    #[test]
    fn swap_protects_the_disk_even_against_the_override() {
        let fake = idle();
        let swaps = "Filename\tType\tSize\n/dev/nvme0n1p2\tpartition\t100\n";
        fake.write("proc/swaps", swaps);
        for overrides in [NO, YES] {
            let message = check(&fake, "259:0", overrides).unwrap_err();
            assert!(
                message.contains("/dev/nvme0n1p2 is in use as swap"),
                "{message}"
            );
        }
    }

    #[test]
    fn a_device_that_sysfs_does_not_know_is_not_written() {
        let fake = idle();
        assert!(
            check(&fake, "9:9", NO)
                .unwrap_err()
                .contains("knows no device 9:9")
        );
    }

    /// The fake machine with character devices that lead to its disk.
    fn with_characters() -> FakeTree {
        let fake = idle();
        let controller = "sys/devices/pci0000:00/0000:00:01.0/0000:3b:00.0/nvme/nvme0";
        let scsi = "sys/devices/pci0000:00/host0/0:0:0:0";
        fake.dir(&format!("{controller}/ng0n1"));
        fake.dir(&format!("{controller}/nvme0c1n7"));
        fake.dir(&format!("{scsi}/scsi_generic/sg3/device/block/nvme0n1"));
        fake.dir("sys/devices/virtual/mem/null");
        for (dev, at) in [
            ("240:0", format!("{controller}/ng0n1")),
            ("241:0", controller.to_owned()),
            ("21:3", format!("{scsi}/scsi_generic/sg3")),
            ("1:3", "sys/devices/virtual/mem/null".to_owned()),
        ] {
            fake.link(&format!("sys/dev/char/{dev}"), &at);
        }
        fake
    }

    fn behind(fake: &FakeTree, dev: &str) -> Result<usize, String> {
        let (tree, dev) = (fake.tree(), dev.parse().unwrap());
        let disks = disks_behind(&tree, dev);
        for disk in &disks {
            check_disk(&tree, Path::new("/dev/target"), disk, NO).map_err(|e| e.to_string())?;
        }
        Ok(disks.len())
    }

    #[test]
    fn a_character_device_is_guarded_as_the_disk_behind_it() {
        let fake = with_characters();
        let of_disk = ["240:0", "241:0", "21:3"];
        for dev in of_disk {
            assert_eq!(behind(&fake, dev), Ok(1), "{dev}");
        }
        mount(&fake, "259:1", "/dev/nvme0n1p1");
        for dev in of_disk {
            let message = behind(&fake, dev).unwrap_err();
            assert!(
                message.contains("`/dev/target`: /dev/nvme0n1p1 is mounted on `/data`"),
                "{dev}: {message}"
            );
        }
        assert_eq!((behind(&fake, "1:3"), behind(&fake, "9:9")), (Ok(0), Ok(0)));
    }

    #[test]
    fn a_write_through_a_character_device_is_checked_like_one_to_its_disk() {
        // A device that every machine has, on a fake machine where it leads to a disk.
        let fake = idle();
        let path = Path::new("/dev/null");
        fake.link("sys/dev/char/1:3", "sys/devices/virtual/sg");
        fake.dir("sys/devices/virtual/sg/device/block/no-such-disk");
        fake.write("sys/class/block/no-such-disk/dev", "7:99\n");
        let message = |overrides| {
            let checked = check_write(&fake.tree(), path, overrides);
            checked.map_err(|e| e.to_string())
        };
        // Nothing is in use, and opening the disk, which is not there, shows that it is tried.
        let missing = message(NO).unwrap_err();
        assert!(
            missing.contains("cannot check whether `/dev/null`"),
            "{missing}"
        );
        assert_eq!(message(YES), Ok(()));
        mount(&fake, "7:99", "/dev/no-such-disk");
        let mounted = message(NO).unwrap_err();
        assert!(
            mounted.contains("/dev/no-such-disk is mounted"),
            "{mounted}"
        );
    }

    #[test]
    fn a_namespace_has_the_name_of_its_disk_on_every_path() {
        let names = ["nvme0n1", "nvme2c11n3", "hwmon0", "power"];
        assert_eq!(
            names.map(namespace),
            [Some("nvme0n1"), Some("nvme2n3"), None, None].map(|n| n.map(str::to_owned))
        );
    }

    #[test]
    fn files_and_character_devices_pass_and_a_missing_path_does_not() {
        let fake = FakeTree::with(&[("file", "x")]);
        let tree = Tree::real();
        check_write(&tree, &fake.path().join("file"), NO).unwrap();
        check_write(&tree, Path::new("/dev/null"), NO).unwrap();
        let missing = check_write(&tree, Path::new("/no/such/device"), NO).unwrap_err();
        assert!(matches!(missing, GuardError::Unchecked { .. }), "{missing}");
    }

    #[test]
    fn a_mounted_disk_of_this_machine_is_refused() {
        let tree = Tree::real();
        let is_block = |path: &Path| {
            let stat = rustix::fs::stat(path);
            stat.is_ok_and(|stat| path_kind(&stat) == PathKind::Block)
        };
        let mut mounts = mounts(&tree).into_iter();
        let Some(mount) = mounts.find(|mount| is_block(Path::new(&mount.source))) else {
            let _ = writeln!(
                io::stderr(),
                "skipped: this machine has no mounted block device"
            );
            return;
        };
        let error = check_write(&tree, Path::new(&mount.source), NO).unwrap_err();
        assert!(matches!(error, GuardError::Mounted { .. }), "{error}");
    }

    /// A loop device that is detached when dropped.
    struct LoopDevice(String);

    impl LoopDevice {
        fn over(file: &Path) -> Result<Self, String> {
            let output = Command::new("losetup")
                .args(["--find", "--show"])
                .arg(file)
                .output()
                .map_err(|e| format!("losetup: {e}"))?;
            if output.status.success() {
                let name = String::from_utf8_lossy(&output.stdout);
                Ok(Self(name.trim().to_owned()))
            } else {
                Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
            }
        }
    }

    impl Drop for LoopDevice {
        fn drop(&mut self) {
            let _ = Command::new("losetup").args(["--detach", &self.0]).status();
        }
    }

    #[test]
    fn a_real_device_is_refused_while_it_is_open_exclusively() {
        let fake = FakeTree::new();
        let file = fake.path().join("disk");
        std::fs::File::create_new(&file)
            .unwrap()
            .set_len(1 << 20)
            .unwrap();
        let device = match LoopDevice::over(&file) {
            Ok(device) => device,
            Err(reason) => {
                let _ = writeln!(io::stderr(), "skipped: no loop device ({reason})");
                return;
            }
        };
        let (tree, path) = (Tree::real(), Path::new(&device.0));
        check_write(&tree, path, NO).unwrap();
        let flags = OFlags::RDONLY | OFlags::EXCL;
        let open = rustix::fs::open(path, flags, Mode::empty()).unwrap();
        let error = check_write(&tree, path, NO).unwrap_err();
        assert!(matches!(error, GuardError::Exclusive { .. }), "{error}");
        drop(open);
        check_write(&tree, path, NO).unwrap();

        // What a run has claimed it may write again, and nobody else may.
        let claimed = ClaimedDevices::default();
        for _ in 0..2 {
            claimed.claim(&tree, path).unwrap();
            claimed.check(&tree, path, NO).unwrap();
        }
        let error = check_write(&tree, path, NO).unwrap_err();
        assert!(matches!(error, GuardError::Exclusive { .. }), "{error}");
        drop(claimed);
        check_write(&tree, path, NO).unwrap();
    }
}
