//! A kernel's own modules: which there are, which are built in, and in what order they go in.
//!
//! In: `modules.dep` and `modules.builtin` of a kernel. Out: file names in the order of insertion,
//! and their uncompressed bytes. Not here: modules that the lab builds (`module_build`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::host::need;
use crate::kernel::Kernel;

/// The modules of one kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleTree {
    folder: PathBuf,
    /// Path below the folder and the names that go in before, by name.
    files: BTreeMap<String, (String, Vec<String>)>,
    builtin: BTreeSet<String>,
}

impl ModuleTree {
    /// Reads the lists of a kernel; makes that of dependencies, which packages leave out, if it can.
    ///
    /// # Errors
    /// If the lists are missing and cannot be made.
    pub fn of(kernel: &Kernel) -> Result<Self> {
        let Some(folder) = &kernel.modules else {
            return Ok(Self::default());
        };
        let list = folder.join("modules.dep");
        if !list.is_file() {
            depmod(folder, &kernel.release)?;
        }
        let read =
            |file: &Path| fs::read_to_string(file).with_context(|| file.display().to_string());
        let mut tree = Self::parse(&read(&list)?, &read(&folder.join("modules.builtin"))?);
        tree.folder.clone_from(folder);
        Ok(tree)
    }

    /// The same from the texts of the two lists.
    pub fn parse(dependencies: &str, builtin: &str) -> Self {
        let files = dependencies.lines().filter_map(|line| {
            let (path, before) = line.split_once(':')?;
            let before = before.split_whitespace().map(name_of).collect();
            Some((name_of(path), (path.trim().to_owned(), before)))
        });
        Self {
            folder: PathBuf::new(),
            files: files.collect(),
            builtin: builtin
                .lines()
                .map(name_of)
                .filter(|name| !name.is_empty())
                .collect(),
        }
    }

    /// True if the kernel has it, as a module or built in.
    pub fn has(&self, name: &str) -> bool {
        let name = name_of(name);
        self.files.contains_key(&name) || self.builtin.contains(&name)
    }

    /// `wanted` and all they need, each once and after what it needs; what is built in is left out.
    ///
    /// # Errors
    /// If the kernel lacks one.
    pub fn order<'a>(&self, wanted: impl IntoIterator<Item = &'a str>) -> Result<Vec<String>> {
        let mut order = Vec::new();
        for name in wanted {
            self.visit(&name_of(name), &mut BTreeSet::new(), &mut order)?;
        }
        Ok(order)
    }

    fn visit(
        &self,
        name: &str,
        above: &mut BTreeSet<String>,
        order: &mut Vec<String>,
    ) -> Result<()> {
        let done = order.iter().any(|known| known == name);
        if done || self.builtin.contains(name) || self.folder_is_unknown() {
            return Ok(());
        }
        let Some((_, before)) = self.files.get(name) else {
            bail!("this kernel has no module {name}");
        };
        // A ring of modules cannot be loaded by anybody; the list of a broken tree may have one.
        ensure!(above.insert(name.to_owned()), "module {name} needs itself");
        for needed in before.iter().rev() {
            self.visit(needed, above, order)?;
        }
        above.remove(name);
        order.push(name.to_owned());
        Ok(())
    }

    /// A kernel without a folder of modules has everything built in.
    fn folder_is_unknown(&self) -> bool {
        self.files.is_empty() && self.builtin.is_empty()
    }

    /// The bytes of a module as the kernel takes them.
    ///
    /// # Errors
    /// If the file cannot be read or unpacked.
    pub(crate) fn read(&self, name: &str) -> Result<Vec<u8>> {
        let (path, _) = self
            .files
            .get(name)
            .with_context(|| format!("module {name}"))?;
        unpacked(&self.folder.join(path))
    }
}

/// `kernel/drivers/block/null-blk.ko.xz` is `null_blk`.
pub(crate) fn name_of(path: &str) -> String {
    let file = path.trim().rsplit('/').next().unwrap_or_default();
    let stem = file.split_once(".ko").map_or(file, |(stem, _)| stem);
    stem.replace('-', "_")
}

fn depmod(folder: &Path, release: &str) -> Result<()> {
    // ROOT/lib/modules/RELEASE
    let root = folder.ancestors().nth(3).context("a folder of modules")?;
    let output = Command::new(need("depmod", "kmod")?)
        .arg("-b")
        .arg(root)
        .arg(release)
        .output()?;
    ensure!(
        output.status.success() && folder.join("modules.dep").is_file(),
        "depmod -b {} {release}: {}",
        root.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// Packed modules are unpacked here, which costs less than in the guest.
fn unpacked(file: &Path) -> Result<Vec<u8>> {
    let (program, package, word) = match file.extension().and_then(|end| end.to_str()) {
        Some("gz") => ("busybox", "busybox-static", "zcat"),
        Some("xz") => ("busybox", "busybox-static", "xzcat"),
        Some("zst") => ("zstd", "zstd", "-dc"),
        _ => return fs::read(file).with_context(|| file.display().to_string()),
    };
    let output = Command::new(need(program, package)?)
        .arg(word)
        .arg(file)
        .output()?;
    ensure!(
        output.status.success(),
        "{} cannot be unpacked",
        file.display()
    );
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DEP: &str = "\
kernel/drivers/virtio/virtio_ring.ko:
kernel/drivers/virtio/virtio.ko.xz: kernel/drivers/virtio/virtio_ring.ko
kernel/drivers/block/virtio-blk.ko: kernel/drivers/virtio/virtio.ko.xz kernel/drivers/virtio/virtio_ring.ko
kernel/drivers/block/brd.ko:
";

    #[test]
    fn what_a_module_needs_goes_in_before_it() {
        let tree = ModuleTree::parse(DEP, "kernel/fs/ext4/ext4.ko\n");
        assert_eq!(
            tree.order(["virtio_blk", "brd", "ext4", "virtio"]).unwrap(),
            ["virtio_ring", "virtio", "virtio_blk", "brd"]
        );
        let error = tree.order(["floppy"]).unwrap_err().to_string();
        assert_eq!(error, "this kernel has no module floppy");
    }

    #[test]
    fn a_ring_of_modules_is_refused() {
        let tree = ModuleTree::parse("a.ko: b.ko\nb.ko: a.ko\n", "");
        assert!(tree.order(["a"]).is_err());
    }

    #[test]
    fn a_kernel_without_lists_has_everything_built_in() {
        assert!(ModuleTree::default().order(["brd"]).unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn every_module_comes_once_and_after_all_it_needs(
            edges in proptest::collection::vec((1_usize..30, 0_usize..30), 0..60),
            wanted in proptest::collection::vec(0_usize..30, 1..6),
        ) {
            // An edge points to a smaller number, so there is no ring.
            let needs = |n: usize| {
                let below = edges.iter().filter(|(from, _)| *from == n);
                below.map(|(from, to)| to % from).collect::<BTreeSet<usize>>()
            };
            let lines = (0..30).map(|n| {
                let before: Vec<String> = needs(n).iter().map(|to| format!("x/m-{to}.ko")).collect();
                format!("x/m-{n}.ko: {}\n", before.join(" "))
            });
            let tree = ModuleTree::parse(&lines.collect::<String>(), "");
            let wanted: Vec<String> = wanted.iter().map(|n| format!("m_{n}")).collect();
            let order = tree.order(wanted.iter().map(String::as_str)).unwrap();
            for name in &wanted {
                prop_assert!(order.contains(name));
            }
            for (at, name) in order.iter().enumerate() {
                prop_assert!(!order[..at].contains(name));
                for needed in needs(name[2..].parse().unwrap()) {
                    let needed = format!("m_{needed}");
                    prop_assert!(order[..at].contains(&needed), "{} before {}", name, needed);
                }
            }
        }

        #[test]
        fn no_text_is_too_odd_to_be_read(dep in ".{0,200}", builtin in ".{0,80}") {
            let tree = ModuleTree::parse(&dep, &builtin);
            for name in tree.files.keys() {
                let _ = tree.order([name.as_str()]);
            }
        }
    }
}
