//! The first file system of a guest, as one file.
//!
//! In: kept parts, the scripts of a run, modules, files. Out: bytes for QEMU's `-initrd`.
//! Not here: how an archive is written (`archive`), which parts are kept (`parts`).

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::archive::Archive;
use crate::device::Wiring;
use crate::guest;
use crate::host::{Places, need, need_file};
use crate::lab::Task;
use crate::modules::ModuleTree;
use crate::parts;

/// A file of this machine and its path in the guest.
pub(crate) type GuestFile = (PathBuf, String);

/// Contents of a guest's first file system.
pub(crate) struct Contents<'a> {
    pub(crate) task: &'a Task,
    pub(crate) wiring: &'a Wiring,
    pub(crate) tree: &'a ModuleTree,
    /// The kernel's modules in the order in which they are loaded.
    pub(crate) order: &'a [String],
    /// Modules of ours, which the script loads.
    pub(crate) modules: &'a [PathBuf],
    pub(crate) files: &'a [GuestFile],
    pub(crate) results: bool,
}

/// Packs it all.
pub(crate) fn pack(places: &Places, contents: &Contents<'_>) -> Result<Vec<u8>> {
    let mut parts = vec![parts::userland(places)?];
    if let Some(weir) = places.weir()? {
        parts.push(parts::program(places, &weir, "lab/weir")?);
    }
    for (program, package) in &contents.wiring.programs {
        let path = need(program, package)?;
        parts.push(parts::program(places, &path, &format!("lab/{program}"))?);
    }
    let mut own = Archive::default();
    scripts(&mut own, contents);
    for name in contents.order {
        let path = format!("lib/modules/{name}.ko");
        own.file(&path, 0o644, &contents.tree.read(name)?);
    }
    for module in contents.modules {
        let name = file_name(module)?;
        own.file(&format!("lab/{name}"), 0o644, &parts::read(module)?);
    }
    for (name, package) in &contents.wiring.files {
        let file = need_file(name, package)?;
        own.file(&file.to_string_lossy(), 0o644, &parts::read(&file)?);
    }
    for (host, guest) in contents.files {
        add(places, &mut own, &mut parts, host, guest)?;
    }
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend(parts::read(&part)?);
    }
    bytes.extend(own.finish());
    Ok(bytes)
}

fn scripts(archive: &mut Archive, contents: &Contents<'_>) {
    archive.file("init", 0o755, guest::INIT.as_bytes());
    let setup = guest::setup(contents.order, contents.wiring);
    let run = guest::run(contents.task);
    for (name, text) in [
        ("setup-functions.sh", guest::SETUP_FUNCTIONS),
        ("functions.sh", guest::FUNCTIONS),
        ("setup.sh", &setup),
        ("run.sh", &run),
    ] {
        archive.file(&format!("lab/{name}"), 0o644, text.as_bytes());
    }
    if let Task::Cases(cases) = contents.task {
        for (name, script) in cases {
            let text = format!(". /lab/functions.sh\n{script}\n");
            archive.file(&format!("lab/cases/{name}.sh"), 0o644, text.as_bytes());
        }
    }
    let marks = [
        ("lab/interactive", matches!(contents.task, Task::Shell)),
        ("lab/results", contents.results),
    ];
    for (path, _) in marks.iter().filter(|(_, wanted)| *wanted) {
        archive.file(path, 0o644, b"");
    }
}

/// A file as it is, a program with its libraries, a folder with all in it.
fn add(
    places: &Places,
    own: &mut Archive,
    parts: &mut Vec<PathBuf>,
    host: &Path,
    guest: &str,
) -> Result<()> {
    if host.is_dir() {
        own.folder(guest);
        for entry in fs::read_dir(host).with_context(|| host.display().to_string())? {
            let entry = entry?;
            let below = format!("{guest}/{}", entry.file_name().to_string_lossy());
            add(places, own, parts, &entry.path(), &below)?;
        }
    } else if crate::programs::libraries(host)?.is_empty() {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = host.metadata()?.permissions().mode() & 0o777;
        own.file(guest, mode, &parts::read(host)?);
    } else {
        parts.push(parts::program(places, host, guest)?);
    }
    Ok(())
}

/// The last part of a path.
pub(crate) fn file_name(path: &Path) -> Result<String> {
    let name = path
        .file_name()
        .with_context(|| format!("{} names no file", path.display()))?;
    Ok(name.to_string_lossy().into_owned())
}
