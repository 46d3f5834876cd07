//! The devices of a guest: the table of their kinds, the specs of `--dev`, and what a kind asks for.
//!
//! In: specs such as `nvme:size=1G,queues=2`. Out: a [`Wiring`]: QEMU's arguments, disks, modules
//! with parameters, words of the kernel's command line, lines of the guest's setup and the command
//! that prints each device's node. A new kind is a file here and a line of [`KINDS`].
//! Not here: what order modules have (`modules`), the setup's functions (`guest`).

mod iommu;
mod mapper;
mod memory;
mod net;
mod null;
mod nvme;
mod scsi_debug;
mod virtio;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

/// A kind of device.
#[derive(Debug)]
pub struct DeviceKind {
    /// The word that a spec begins with.
    pub name: &'static str,
    /// Form of the settings that may follow it.
    pub form: &'static str,
    /// Device that the guest sees.
    pub what: &'static str,
    pub(crate) wire: fn(&mut Wiring, &Spec) -> Result<()>,
}

/// Every kind there is.
pub const KINDS: &[DeviceKind] = &[
    nvme::NVME,
    virtio::VIRTIO,
    virtio::THROTTLE,
    virtio::BLKDEBUG_ERROR,
    null::NULL,
    null::SLOW,
    null::ZONED,
    memory::RAM,
    memory::LOOP,
    memory::PMEM,
    scsi_debug::SCSI_DEBUG,
    mapper::DELAY,
    mapper::ERROR,
    mapper::FLAKEY,
    net::NET,
    net::RXE,
];

/// A device of `--dev`: a kind and its settings, `NAME=VALUE` or a word alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    kind: String,
    settings: Vec<(String, Option<String>)>,
}

impl Spec {
    /// Reads `KIND[:SETTING,...]`.
    ///
    /// # Errors
    /// If a name is missing, odd or there twice.
    pub fn parse(text: &str) -> Result<Self> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut settings: Vec<(String, Option<String>)> = Vec::new();
        for word in rest.split(',').filter(|_| text.contains(':')) {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word, None),
            };
            // Values stand in a shell script and in options of QEMU.
            let plain = |text: &str| {
                !text.is_empty()
                    && text
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
            };
            ensure!(
                plain(name) && value.as_deref().is_none_or(plain),
                "device `{text}`: `{word}` is neither NAME=VALUE nor a word"
            );
            ensure!(
                settings.iter().all(|(known, _)| known != name),
                "device `{text}`: `{name}` is there twice"
            );
            settings.push((name.to_owned(), value));
        }
        Ok(Self {
            kind: kind.to_owned(),
            settings,
        })
    }

    fn value(&self, name: &str) -> Option<&str> {
        let found = self.settings.iter().find(|(known, _)| known == name)?;
        found.1.as_deref()
    }

    fn number(&self, name: &str, default: u64) -> Result<u64> {
        self.value(name).map_or(Ok(default), |value| {
            let number = value.parse();
            number.with_context(|| format!("device `{self}`: {name}={value} is no number"))
        })
    }

    /// A size by its name, or the one word that stands alone.
    fn size(&self, default: u64) -> Result<u64> {
        let alone = self.settings.iter().find(|(name, value)| {
            value.is_none() && name.starts_with(|c: char| c.is_ascii_digit())
        });
        let word = self.value("size").or(alone.map(|(name, _)| name.as_str()));
        word.map_or(Ok(default), |word| {
            bytes(word).with_context(|| format!("device `{self}`: `{word}` is no size such as 64M"))
        })
    }

    fn has(&self, word: &str) -> bool {
        self.settings
            .iter()
            .any(|(name, value)| name == word && value.as_deref().is_none_or(|value| value == "1"))
    }

    /// Refuses settings that this kind does not know; a size may always stand alone.
    fn only(&self, known: &[&str]) -> Result<()> {
        for (name, value) in &self.settings {
            let is_size = value.is_none() && known.contains(&"size") && bytes(name).is_some();
            ensure!(
                is_size || known.contains(&name.as_str()),
                "device `{self}`: {} has no setting `{name}`; it has {}",
                self.kind,
                known.join(", ")
            );
        }
        Ok(())
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        for (at, (name, value)) in self.settings.iter().enumerate() {
            f.write_str(if at == 0 { ":" } else { "," })?;
            f.write_str(name)?;
            if let Some(value) = value {
                write!(f, "={value}")?;
            }
        }
        Ok(())
    }
}

/// `64M` in bytes; units are powers of 1024.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "k" | "K" | "KiB" => 10,
        "m" | "M" | "MiB" => 20,
        "g" | "G" | "GiB" => 30,
        _ => return None,
    };
    let number: u64 = digits.parse().ok()?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes > 0)
}

/// A sparse file that is a disk of the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Disk {
    pub(crate) file: PathBuf,
    pub(crate) bytes: u64,
}

/// Needs of a guest's devices, together.
#[derive(Debug, Default)]
pub(crate) struct Wiring {
    folder: PathBuf,
    /// Arguments of QEMU.
    pub(crate) arguments: Vec<String>,
    pub(crate) disks: Vec<Disk>,
    /// Words of the kernel's command line.
    pub(crate) append: Vec<String>,
    /// Names of modules, in the order in which they are wanted.
    pub(crate) modules: Vec<String>,
    /// Parameters of those modules.
    pub(crate) parameters: BTreeMap<String, BTreeMap<String, String>>,
    /// Lines of the guest's setup, after the modules.
    pub(crate) setup: Vec<String>,
    /// A command of the guest per device, which prints its node.
    pub(crate) nodes: Vec<String>,
    /// Programs that the setup calls, with their packages.
    pub(crate) programs: Vec<(&'static str, &'static str)>,
    /// Files that programs open there, or the beginnings of their names, with their packages.
    pub(crate) files: Vec<(&'static str, &'static str)>,
    results: Option<PathBuf>,
    /// Slots below the IOMMU: the name of the group, and the functions in use.
    slots: Vec<(Option<String>, usize)>,
    counts: BTreeMap<&'static str, usize>,
}

impl Wiring {
    /// Wires devices, whose disks lie in `folder`.
    pub(crate) fn of(specs: &[String], folder: &Path) -> Result<Self> {
        let mut wiring = Self {
            folder: folder.to_owned(),
            ..Self::default()
        };
        for text in specs {
            let spec = Spec::parse(text)?;
            let kind = KINDS.iter().find(|kind| kind.name == spec.kind);
            let Some(kind) = kind else {
                let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
                bail!("device `{text}`: there is {}", names.join(", "));
            };
            (kind.wire)(&mut wiring, &spec)?;
        }
        Ok(wiring)
    }

    /// Adds the disk on which the guest writes its results.
    pub(crate) fn results(&mut self, bytes: u64) {
        let drive = self.drive(bytes, "");
        self.results = self.disks.last().map(|disk| disk.file.clone());
        virtio::add(self, &drive, "labout", 1);
    }

    /// That disk.
    pub(crate) fn results_disk(&self) -> Option<&Path> {
        self.results.as_deref()
    }

    /// The number of the next device of a family, from 0.
    fn next(&mut self, family: &'static str) -> usize {
        let count = self.counts.entry(family).or_default();
        *count += 1;
        *count - 1
    }

    /// A disk without a device: its name for QEMU and its file.
    pub(crate) fn disk(&mut self, bytes: u64) -> (String, String) {
        let id = format!("disk{}", self.disks.len());
        let file = self.folder.join(format!("{id}.img"));
        // QEMU takes a doubled comma for one.
        let path = file.display().to_string().replace(',', ",,");
        self.disks.push(Disk { file, bytes });
        (id, path)
    }

    /// A disk with the plain format, and more settings of its drive.
    pub(crate) fn drive(&mut self, bytes: u64, more: &str) -> String {
        let (id, path) = self.disk(bytes);
        self.qemu(
            "-drive",
            format!("if=none,id={id},file={path},format=raw,cache=unsafe{more}"),
        );
        id
    }

    pub(crate) fn qemu(&mut self, option: &str, value: String) {
        self.arguments.push(option.to_owned());
        self.arguments.push(value);
    }

    pub(crate) fn module(&mut self, name: &str) {
        self.modules.push(name.to_owned());
    }

    /// A parameter on which all devices of a module have to agree.
    fn parameter(&mut self, spec: &Spec, module: &str, name: &str, value: &str) -> Result<()> {
        let parameters = self.parameters.entry(module.to_owned()).or_default();
        let known = parameters
            .entry(name.to_owned())
            .or_insert_with(|| value.to_owned());
        ensure!(
            known == value,
            "device `{spec}`: {name} of module {module} is {known} for another device already"
        );
        Ok(())
    }

    /// The device's node is what this command of the guest prints.
    fn node(&mut self, command: String) {
        self.nodes.push(command);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wired(specs: &[&str]) -> Result<Wiring> {
        let specs: Vec<String> = specs.iter().map(|spec| (*spec).to_owned()).collect();
        Wiring::of(&specs, Path::new("/run"))
    }

    #[test]
    fn every_kind_can_be_asked_for_by_its_name_alone() {
        for kind in KINDS {
            let wiring = wired(&[kind.name]).unwrap();
            assert_eq!(wiring.nodes.len(), 1, "{}", kind.name);
            assert!(kind.form.starts_with(kind.name));
        }
    }

    #[test]
    fn devices_of_one_kind_get_numbers() {
        let wiring = wired(&["null", "ram:64M", "null:bs=4096", "ram:64M"]).unwrap();
        assert_eq!(
            wiring.nodes,
            [
                "echo /dev/nullb0",
                "echo /dev/ram0",
                "echo /dev/nullb1",
                "echo /dev/ram1"
            ]
        );
        assert_eq!(wiring.parameters["brd"]["rd_nr"], "2");
        assert_eq!(wiring.parameters["brd"]["rd_size"], "65536");
    }

    #[test]
    fn a_refusal_names_the_word_and_what_there_is() {
        let refusal = |spec: &str| wired(&[spec]).unwrap_err().to_string();
        assert!(
            refusal("floppy").contains("nvme, virtio"),
            "{}",
            refusal("floppy")
        );
        let unknown = refusal("nvme:depth=4");
        assert!(
            unknown.contains("`depth`") && unknown.contains("queues"),
            "{unknown}"
        );
        assert!(refusal("ram:64X").contains("64X"));
        assert!(refusal("ram:size=0").contains("`0`"));
        assert!(refusal("nvme:queues=x").contains("queues=x is no number"));
        assert!(refusal("null:bs=512;reboot").contains("neither"));
        assert!(refusal("null:bs=1,bs=2").contains("twice"));
        let two = wired(&["ram:64M", "ram:32M"]).unwrap_err().to_string();
        assert!(two.contains("rd_size"), "{two}");
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(
            kind in "[a-z][a-z-]{0,8}",
            settings in proptest::collection::btree_map(
                "[a-z0-9_.-]{1,8}", proptest::option::of("[A-Za-z0-9_.-]{1,8}"), 0..5
            ),
        ) {
            let spec = Spec { kind, settings: settings.into_iter().collect() };
            prop_assert_eq!(Spec::parse(&spec.to_string()).unwrap(), spec);
        }

        #[test]
        fn odd_specs_are_refused_or_wired_without_harm(text in ".{0,40}") {
            if let Ok(wiring) = wired(&[&text]) {
                let script = wiring.setup.concat();
                prop_assert!(!script.contains(['$', '`', '|', '&']) || !text.contains(['$', '`', '|', '&']));
            }
        }
    }
}
