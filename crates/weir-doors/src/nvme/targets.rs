//! Targets of a run: files and devices that are named, or the machine's NVMe namespaces.
//!
//! In: arguments, the machine. Out: targets with their names in the peer's table; a refusal of writes that
//! nobody has consented to. Not here: devices that are mounted or in use, which the run itself refuses.

use super::refuse;
use super::values::{Transport, address, is_behind_vmd};
use crate::given::Given;
use crate::kio::TargetFacts;
use crate::machine::Machine;
use crate::refusal::Refusal;

/// Text between a controller and the number of its namespace.
pub(super) const NAMESPACE: &str = " NSID ";

/// A namespace on the kernel's driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NvmeNamespace {
    /// Path of its block device.
    pub node: String,
    /// PCI address of its controller, in the kernel's form.
    pub address: String,
    /// Numbers of the controller's maker and of its kind.
    pub ids: (u16, u16),
    /// Number among the namespaces of the controller.
    pub number: u32,
    /// The maker's name for the drive.
    pub model: String,
    /// Version of the drive's firmware.
    pub firmware: String,
    /// Bytes.
    pub bytes: u64,
    /// Bytes of a sector.
    pub sector: u64,
    /// Memory node that it is attached to.
    pub memory_node: Option<u32>,
    /// Its PCI Express link.
    pub link: Option<String>,
    /// The link that it could have, where that is more.
    pub best_link: Option<String>,
    /// Why it must not be written.
    pub in_use: Option<String>,
}

impl NvmeNamespace {
    /// Its name in the peer's table.
    fn name(&self) -> String {
        let (vendor, device) = self.ids;
        let controller = format!("PCIE ({}) [{vendor:04x}:{device:04x}]", self.address);
        format!("{controller}{NAMESPACE}{}", self.number)
    }
}

/// A file or device that is measured.
pub(super) struct Target {
    /// Path.
    pub(super) path: String,
    /// Name in the peer's table.
    pub(super) name: String,
    /// PCI address and number, of a namespace that is known.
    namespace: Option<(String, u32)>,
    pub(super) facts: TargetFacts,
}

impl Target {
    /// Path of the device that takes commands to the namespace; none of anything else, partitions too.
    pub(super) fn generic_node(&self) -> Option<String> {
        let number = self.path.strip_prefix("/dev/nvme")?;
        let (controller, namespace) = number.split_once('n')?;
        let are_numbers = [controller, namespace].map(|part| part.parse::<u32>().is_ok());
        (are_numbers == [true; 2]).then(|| format!("/dev/ng{number}"))
    }

    /// Name of what an engine opens.
    ///
    /// # Errors
    /// The engine sends commands, and the target takes none.
    pub(super) fn name_for(&self, engine: &str) -> Result<String, Refusal> {
        let name = match engine {
            "io_uring_cmd" => self.generic_node(),
            "vfio" => {
                let namespace = self.namespace.as_ref();
                namespace.map(|(address, number)| format!("{address}/{number}"))
            }
            _ => Some(self.path.clone()),
        };
        name.ok_or_else(|| {
            refuse(&format!(
                "--engine uring-cmd: {} is no NVMe namespace, which alone takes commands\n  help: take --engine \
                 uring",
                self.path
            ))
        })
    }

    /// True if a word is its path or its drive's address.
    fn is_called(&self, word: &str) -> bool {
        let is_address = |own: &str| address(word).is_ok_and(|word| own == word);
        word == self.path
            || self
                .namespace
                .as_ref()
                .is_some_and(|(own, _)| is_address(own))
    }
}

/// The targets of these arguments.
///
/// # Errors
/// A path that is neither a file nor a block device; no drive, or none of those that are named (exit 3).
pub(super) fn find(
    given: &Given,
    machine: &dyn Machine,
    notes: &mut Vec<String>,
) -> Result<Vec<Target>, Refusal> {
    let chosen = ["allowed-pci-addr", "transport", "enable-vmd"];
    if !given.operands.is_empty() {
        let idle = chosen.into_iter().filter(|flag| given.has(flag));
        notes.extend(idle.map(|flag| {
            format!(
                "--{flag} chooses nothing: the targets are those that are named, and no other drive"
            )
        }));
        let all = machine.nvme_namespaces();
        let of_operand = |path: &String| {
            let known = all.iter().find(|one| one.node == *path);
            let namespace = known.map(|one| (one.address.clone(), one.number));
            let target = of_path(path, machine)?;
            Ok(Target {
                namespace,
                ..target
            })
        };
        return given.operands.iter().map(of_operand).collect();
    }
    let all = machine.nvme_namespaces();
    let mut found = named(given, &all)?;
    if given.has("enable-vmd") && !all.iter().any(|one| is_behind_vmd(&one.address)) {
        notes.push("--enable-vmd: no drive of this machine is behind VMD".to_owned());
    }
    if found.is_empty() {
        let why = "No valid NVMe controllers found";
        let help = "name a block device or a file behind the options; `weir nvme-perf --list` lists drives";
        return Err(Refusal::lacks(format!("{why}\n  help: {help}")).by_peer(why));
    }
    found.dedup_by(|a, b| a.node == b.node);
    found
        .into_iter()
        .map(|one| of_namespace(one, machine))
        .collect()
}

/// The namespaces that `-b` and `-r` name; without them all, those behind VMD only with `-V`.
fn named<'a>(given: &Given, all: &'a [NvmeNamespace]) -> Result<Vec<&'a NvmeNamespace>, Refusal> {
    let addresses: Vec<String> = given.all("allowed-pci-addr").flat_map(address).collect();
    let transports: Vec<Transport> = given.all("transport").flat_map(Transport::read).collect();
    let missing = |what: &str| {
        let list: Vec<&str> = all.iter().map(|one| one.address.as_str()).collect();
        let help = if list.is_empty() {
            "no drive is on the kernel's driver here".to_owned()
        } else {
            format!("there are {}", list.join(", "))
        };
        Refusal::lacks(format!("{what}: no such NVMe drive\n  help: {help}"))
    };
    for wanted in &addresses {
        if !all.iter().any(|one| one.address == *wanted) {
            return Err(missing(&format!("--allowed-pci-addr {wanted}")));
        }
    }
    let fits = |one: &NvmeNamespace, wanted: &Transport| {
        wanted
            .address
            .as_ref()
            .is_none_or(|address| *address == one.address)
            && wanted.namespace.is_none_or(|number| number == one.number)
    };
    for (wanted, text) in transports.iter().zip(given.all("transport")) {
        if !all.iter().any(|one| fits(one, wanted)) {
            return Err(missing(&format!("--transport '{text}'")));
        }
    }
    let is_named = !addresses.is_empty() || transports.iter().any(|one| one.address.is_some());
    let is_wanted = |one: &&NvmeNamespace| {
        (addresses.is_empty() || addresses.contains(&one.address))
            && (transports.is_empty() || transports.iter().any(|wanted| fits(one, wanted)))
            && (is_named || given.has("enable-vmd") || !is_behind_vmd(&one.address))
    };
    Ok(all.iter().filter(is_wanted).collect())
}

fn of_namespace(one: &NvmeNamespace, machine: &dyn Machine) -> Result<Target, Refusal> {
    Ok(Target {
        name: one.name(),
        namespace: Some((one.address.clone(), one.number)),
        ..of_path(&one.node, machine)?
    })
}

fn of_path(path: &str, machine: &dyn Machine) -> Result<Target, Refusal> {
    let refuse = |why: String| Refusal::usage(format!("{path}: {why}"));
    let facts = machine.target(path).map_err(refuse)?;
    if facts.bytes == 0 {
        return Err(refuse("it has no bytes".to_owned()));
    }
    Ok(Target {
        path: path.to_owned(),
        name: path.to_owned(),
        namespace: None,
        facts,
    })
}

/// # Errors
/// The flag has a name that is no target's.
fn check_names(targets: &[Target], given: &Given, flag: &str) -> Result<(), Refusal> {
    let is_stray = |word: &&str| !targets.iter().any(|target| target.is_called(word));
    given.all(flag).find(is_stray).map_or(Ok(()), |stray| {
        Err(Refusal::usage(format!(
            "--{flag} {stray}: it is no target of this run"
        )))
    })
}

/// Refusal of what would lose data.
fn guard(path: &str, why: &str, help: &str) -> Refusal {
    Refusal {
        is_guard: true,
        ..Refusal::usage(format!("{path}: {why}\n  help: {help}"))
    }
}

/// Refuses to take drives that `--takeover` does not name, or that somebody needs.
///
/// # Errors
/// The first such drive; a name that is no target's.
pub(super) fn check_takeover(
    targets: &[Target],
    given: &Given,
    machine: &dyn Machine,
) -> Result<(), Refusal> {
    check_names(targets, given, "takeover")?;
    for target in targets {
        let path = &target.path;
        let Some((address, _)) = &target.namespace else {
            return Err(Refusal::usage(format!(
                "--engine vfio: {path} is no NVMe namespace on PCI Express\n  help: take --engine uring"
            )));
        };
        if !given.all("takeover").any(|word| target.is_called(word)) {
            let help = format!("if it may be gone for the kernel meanwhile, --takeover {address}");
            let why = "the run would take its drive from the kernel";
            return Err(guard(path, why, &help));
        }
        machine.check_takeover(address)?;
    }
    Ok(())
}

/// Refuses writes to devices that `--destroy` does not name, or that hold somebody's data.
///
/// # Errors
/// The first such device; a name that is no target's.
pub(super) fn check_writes(
    targets: &[Target],
    given: &Given,
    machine: &dyn Machine,
) -> Result<(), Refusal> {
    check_names(targets, given, "destroy")?;
    for target in targets {
        let Target { path, facts, .. } = target;
        let refuse = |why: &str, help: &str| Err(guard(path, why, help));
        if facts.is_read_only {
            return refuse("it is read-only", "take a pattern that only reads");
        }
        if facts.is_zoned {
            return refuse(
                "its zones are written in order, which is not done here",
                "take -w read",
            );
        }
        if !facts.is_device {
            continue;
        }
        if !given.all("destroy").any(|word| target.is_called(word)) {
            let help = format!("if its data may be lost, --destroy {path}");
            return refuse("the run would overwrite what it holds", &help);
        }
        if let Some(holds) = machine.held_data(path) {
            let why = format!("it seems to hold {holds}, and is not written");
            return refuse(
                &why,
                &format!("if that may be lost, `wipefs --all {path}` first"),
            );
        }
    }
    Ok(())
}
