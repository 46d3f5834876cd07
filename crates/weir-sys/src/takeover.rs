//! An NVMe drive's change from the kernel's driver to VFIO, and back.
//!
//! In: the PCI address of a drive. Out: the group that VFIO opens it by; refusals before anything is changed. Not
//! here: who looks after the way back ([`crate::vfio`] has the device meanwhile).

use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use rustix::fs::{Access, access};

use crate::guard::{ClaimedDevices, Overrides};
use crate::tree::Tree;

/// Driver of VFIO for PCI.
const VFIO: &str = "vfio-pci";
/// The kernel's driver of NVMe drives.
const NVME: &str = "nvme";
/// Class of NVMe drives.
const CLASS: &str = "0x010802";
/// Drivers that a group may have beside VFIO's.
const HARMLESS: [&str; 3] = [VFIO, "pci-stub", "pcieport"];
/// Longest wait for the kernel's driver to show a drive that it has back.
const LONGEST: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(5);

/// Reason that a drive is not taken from the kernel.
#[derive(Debug, thiserror::Error)]
pub enum TakeoverError {
    /// Somebody would lose it.
    #[error("{0}")]
    InUse(String),
    /// The machine or this process lacks something.
    #[error("{0}")]
    Lacks(String),
}

/// A drive that may be taken.
#[derive(Debug)]
pub struct Takeover {
    tree: Tree,
    address: String,
    /// Number of its IOMMU group.
    pub group: u32,
    /// The device of its controller.
    controller: PathBuf,
}

fn function(tree: &Tree, address: &str) -> Option<Tree> {
    tree.dir(format!("sys/bus/pci/devices/{address}"))
}

fn driver(function: &Tree) -> Option<String> {
    function.dir("driver").map(|dir| dir.name())
}

fn lacks(address: &str, why: &str, help: &str) -> TakeoverError {
    TakeoverError::Lacks(format!("{address}: {why}\n  help: {help}"))
}

fn in_use(address: &str, why: &str, help: &str) -> TakeoverError {
    TakeoverError::InUse(format!("{address}: {why}\n  help: {help}"))
}

/// A drive that the kernel's driver has.
///
/// # Errors
/// It is no such drive.
fn kernels_drive(tree: &Tree, address: &str) -> Result<Tree, TakeoverError> {
    let lacks = |why: &str| lacks(address, why, "`weir nvme-perf --list` has the drives");
    let own = function(tree, address).ok_or_else(|| lacks("there is no such device"))?;
    if own.word("class").as_deref() != Some(CLASS) {
        return Err(lacks("it is no NVMe drive"));
    }
    match driver(&own).as_deref() {
        Some(NVME) => Ok(own),
        Some(VFIO) => {
            let help = format!("`weir nvme-perf --release {address}` gives it back to the kernel");
            Err(in_use(address, "it is with vfio-pci already", &help))
        }
        other => {
            let name = other.unwrap_or("none");
            Err(lacks(&format!("its driver is {name}, not nvme")))
        }
    }
}

/// The IOMMU group of a drive, which it has for itself.
///
/// # Errors
/// There is none, or it has others; VFIO or rights are missing.
fn own_group(tree: &Tree, address: &str, own: &Tree) -> Result<Tree, TakeoverError> {
    let lacks = |why: &str, help: &str| lacks(address, why, help);
    let Some(group) = own.dir("iommu_group") else {
        let help = "switch it on in the firmware, and boot with intel_iommu=on (AMD: amd_iommu=on)";
        return Err(lacks("no IOMMU keeps it apart", help));
    };
    if !tree.has("sys/bus/pci/drivers/vfio-pci") {
        return Err(lacks(
            "the driver vfio-pci is not loaded",
            "`modprobe vfio-pci`",
        ));
    }
    if access(own.path("driver_override"), Access::WRITE_OK).is_err() {
        return Err(lacks(
            "this process may not change its driver",
            "run as root",
        ));
    }
    let others = group.names("devices").into_iter();
    for other in others.filter(|name| name != address) {
        let of_other = function(tree, &other).as_ref().and_then(driver);
        if let Some(name) = of_other.filter(|name| !HARMLESS.contains(&name.as_str())) {
            let why = format!("its IOMMU group has {other} too, with the driver {name}");
            let help = "take a drive with a group of its own, or unbind that device";
            return Err(in_use(address, &why, help));
        }
    }
    Ok(group)
}

impl Takeover {
    /// Looks whether a drive may be taken. Nothing is changed.
    ///
    /// # Errors
    /// A namespace is in use, also over another path to it; its IOMMU group has other devices; no IOMMU, no module,
    /// no rights.
    pub fn check(tree: &Tree, address: &str) -> Result<Self, TakeoverError> {
        let own = kernels_drive(tree, address)?;
        let group = own_group(tree, address, &own)?;
        let names = own.names("nvme");
        let Some(name) = names.first() else {
            let why = "the kernel's driver has not set it up";
            return Err(lacks(address, why, "see `dmesg`"));
        };
        let taken = Self {
            tree: tree.clone(),
            address: address.to_owned(),
            group: group.name().parse().unwrap_or_default(),
            controller: PathBuf::from(format!("/dev/{name}")),
        };
        let checked =
            ClaimedDevices::default().check(tree, &taken.controller, Overrides::default());
        checked.map_err(|why| TakeoverError::InUse(format!("{address}: {why}")))?;
        Ok(taken)
    }

    /// Takes the drive: its namespaces are gone for the kernel. They are held until then, so that nobody comes
    /// between.
    ///
    /// # Errors
    /// Somebody has come between, or VFIO has not taken it; the kernel has it back then.
    pub fn take(&self) -> Result<(), TakeoverError> {
        let Self { tree, address, .. } = self;
        let in_use = |why: String| TakeoverError::InUse(format!("{address}: {why}"));
        let held = ClaimedDevices::default();
        let claimed = held.claim(tree, &self.controller);
        claimed.map_err(|why| in_use(why.to_string()))?;
        // Mounted between the look and the claim.
        let checked = held.check(tree, &self.controller, Overrides::default());
        checked.map_err(|why| in_use(why.to_string()))?;
        let moved = move_to(tree, address, VFIO);
        drop(held);
        let Some(why) = moved.err() else {
            return Ok(());
        };
        let back = give_back(tree, address).err();
        let back = back.map_or_else(String::new, |error| format!("; and not back: {error}"));
        Err(TakeoverError::Lacks(format!(
            "{address}: cannot bring it to vfio-pci: {why}{back}"
        )))
    }
}

/// Brings a function to another driver.
fn move_to(tree: &Tree, address: &str, wanted: &str) -> io::Result<()> {
    let gone = || io::Error::other("the device is gone");
    let own = function(tree, address).ok_or_else(gone)?;
    let over = if wanted == VFIO { VFIO } else { "" };
    fs::write(own.path("driver_override"), format!("{over}\n"))?;
    if driver(&own).is_some_and(|name| name != wanted) {
        // VFIO waits here until nobody has the device open.
        fs::write(own.path("driver/unbind"), address)?;
    }
    if driver(&own).is_none() {
        fs::write(tree.path("sys/bus/pci/drivers_probe"), address)?;
    }
    match driver(&own) {
        Some(name) if name == wanted => Ok(()),
        Some(name) => Err(io::Error::other(format!("{name} has taken it"))),
        None => Err(io::Error::other(format!("{wanted} has not taken it"))),
    }
}

/// Gives a drive back to the kernel's driver, and waits until that shows it. A drive that it has already is left.
///
/// # Errors
/// The kernel's driver has not taken it, or shows no controller.
pub fn give_back(tree: &Tree, address: &str) -> io::Result<()> {
    move_to(tree, address, NVME)?;
    let begin = Instant::now();
    let is_live = || {
        let own = function(tree, address)?;
        let name = own.names("nvme").into_iter().next()?;
        (own.word(format!("nvme/{name}/state"))? == "live").then_some(())
    };
    while is_live().is_none() {
        if begin.elapsed() > LONGEST {
            return Err(io::Error::other(
                "the kernel's driver does not bring it up; see `dmesg`",
            ));
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// Gives a drive back that a run has left with VFIO.
///
/// # Errors
/// It is no drive, a process has it open, or the kernel's driver does not take it.
pub fn release(tree: &Tree, address: &str) -> Result<(), TakeoverError> {
    let lacks = |why: String| TakeoverError::Lacks(format!("{address}: {why}"));
    let own = function(tree, address).ok_or_else(|| lacks("there is no such device".to_owned()))?;
    if own.word("class").as_deref() != Some(CLASS) {
        return Err(lacks("it is no NVMe drive".to_owned()));
    }
    let group = own.dir("iommu_group").map(|group| group.name());
    if driver(&own).as_deref() == Some(VFIO)
        && let Some(group) = group
        && let Err(error) = fs::File::open(tree.path(format!("dev/vfio/{group}")))
        && error.raw_os_error() == Some(libc::EBUSY)
    {
        return Err(TakeoverError::InUse(format!(
            "{address}: a process has it open\n  help: end that first (`fuser /dev/vfio/{group}` names it)"
        )));
    }
    give_back(tree, address).map_err(|error| lacks(format!("cannot give it back: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fake::FakeTree;

    const ADDRESS: &str = "0000:01:00.0";
    const OWN: &str = "sys/bus/pci/devices/0000:01:00.0";

    /// A machine with a drive on the kernel's driver, alone in group 7.
    fn machine() -> FakeTree {
        let fake = FakeTree::with(&[
            (&format!("{OWN}/class"), "0x010802\n"),
            (&format!("{OWN}/driver_override"), "(null)\n"),
            ("proc/swaps", "Filename\n"),
            ("proc/self/mountinfo", ""),
        ]);
        fake.dir("sys/bus/pci/drivers/nvme");
        fake.dir("sys/bus/pci/drivers/vfio-pci");
        fake.dir("sys/kernel/iommu_groups/7/devices/0000:01:00.0");
        fake.link(&format!("{OWN}/driver"), "sys/bus/pci/drivers/nvme");
        fake.link(&format!("{OWN}/iommu_group"), "sys/kernel/iommu_groups/7");
        fake
    }

    fn refusal(fake: &FakeTree) -> String {
        match Takeover::check(&fake.tree(), ADDRESS) {
            Ok(_) => "taken".to_owned(),
            Err(TakeoverError::InUse(why)) => format!("in use: {why}"),
            Err(TakeoverError::Lacks(why)) => format!("lacks: {why}"),
        }
    }

    #[test]
    fn a_drive_is_taken_only_where_all_that_it_takes_is_there() {
        let fake = machine();
        // The controller has no device in a made-up tree.
        assert!(refusal(&fake).contains("has not set it up"));
        fake.write("sys/bus/pci/devices/0000:02:00.0/class", "0x020000\n");
        fake.dir("sys/kernel/iommu_groups/7/devices/0000:02:00.0");
        assert!(refusal(&fake).contains("has not set it up"));
        fake.link(
            "sys/bus/pci/devices/0000:02:00.0/driver",
            "sys/bus/pci/drivers/e1000e",
        );
        fake.dir("sys/bus/pci/drivers/e1000e");
        let why = refusal(&fake);
        assert!(
            why.starts_with("in use") && why.contains("0000:02:00.0 too, with the driver e1000e"),
            "{why}"
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let without = |path: &str| {
            let fake = machine();
            let path = fake.path().join(path);
            let removed = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
            removed.unwrap();
            refusal(&fake)
        };
        for (path, why) in [
            (format!("{OWN}/class"), "it is no NVMe drive"),
            (format!("{OWN}/iommu_group"), "intel_iommu=on"),
            (
                "sys/bus/pci/drivers/vfio-pci".to_owned(),
                "modprobe vfio-pci",
            ),
            (format!("{OWN}/driver"), "its driver is none"),
        ] {
            let said = without(&path);
            assert!(
                said.starts_with("lacks") && said.contains(why),
                "{path}: {said}"
            );
        }
        let gone = Takeover::check(&machine().tree(), "0000:05:00.0").unwrap_err();
        assert!(gone.to_string().contains("there is no such device"));
    }

    #[test]
    fn a_drive_that_a_run_has_left_is_named_with_its_way_back() {
        let fake = machine();
        fs::remove_file(fake.path().join(OWN).join("driver")).unwrap();
        fake.link(&format!("{OWN}/driver"), "sys/bus/pci/drivers/vfio-pci");
        let why = refusal(&fake);
        assert!(
            why.starts_with("in use") && why.contains("--release 0000:01:00.0"),
            "{why}"
        );
    }
}
