//! The kernel module of `weir kio`: its state, building, loading and unloading it.
//!
//! In: `/dev/kio`, `/sys/module/kio`, the sources beside the program. Out: text, an exit code. Not here:
//! what this machine lacks for it ([`super::needs`]), running I/Os in it (`weir-block`).

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Access, access};
use rustix::io::Errno;
use weir_doors::Refusal;
use weir_doors::kio::ModuleFacts;
use weir_sys::Tree;

use super::needs;
use crate::{Outcome, printed};

/// Device node of the module.
const NODE: &str = "/dev/kio";
/// Directory of a loaded module.
const LOADED: &str = "sys/module/kio";
/// The sources in the tree of the program.
const SOURCES: &str = "kmod/kio";
/// Bits of a mode: all but the owner may write, all but owner and group.
const GROUP_AND_OTHERS: u32 = 0o022;
const OTHERS: u32 = 0o002;
/// 1 in a run that the module's own tree started.
const RUNS: &str = "sys/kernel/kio/run_workload";

/// Reads the facts about the module.
pub(crate) fn facts() -> ModuleFacts {
    let tree = Tree::real();
    ModuleFacts {
        has_node: Path::new(NODE).exists(),
        is_closed: access(NODE, Access::READ_OK | Access::WRITE_OK) == Err(Errno::ACCESS),
        version: tree.word(format!("{LOADED}/version")),
        // A parameter that was not given prints as a null pointer.
        block_device: tree
            .word(format!("{LOADED}/parameters/block_device"))
            .filter(|path| path.starts_with('/')),
    }
}

/// The running kernel.
pub(super) fn release() -> String {
    let tree = Tree::real();
    tree.word("proc/sys/kernel/osrelease").unwrap_or_default()
}

/// True if a module of this name is loaded.
fn is_loaded() -> bool {
    Tree::real().has(LOADED)
}

/// `weir kio status`.
pub(super) fn status(facts: &ModuleFacts) -> u8 {
    let state = match (facts.has_node, is_loaded()) {
        (true, _) => "loaded",
        (false, true) => "another module of this name is loaded: it has no /dev/kio",
        (false, false) => "not loaded (`weir kio load`)",
    };
    let mut out = format!("module   {state}\n");
    if let Some(version) = &facts.version {
        let _ = writeln!(out, "version  {version}");
    }
    if let Some(device) = facts.block_device.as_deref().filter(|d| !d.is_empty()) {
        let _ = writeln!(out, "device   {device}");
    }
    for (pid, name) in holders() {
        let _ = writeln!(out, "session  process {pid} ({name})");
    }
    printed(&out)
}

/// Processes that have the node open, as far as they can be seen.
fn holders() -> Vec<(u32, String)> {
    let numbers = Tree::real().names("proc").into_iter();
    let pids = numbers.filter_map(|name| name.parse::<u32>().ok());
    let holds = |pid: &u32| {
        let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else {
            return false;
        };
        let mut open = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        open.any(|path| path == Path::new(NODE))
    };
    let named = |pid: u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        (pid, name.trim().to_owned())
    };
    pids.filter(holds).map(named).collect()
}

/// `weir kio devices`: block devices with their sizes.
pub(super) fn devices() -> u8 {
    let tree = Tree::real();
    let mut names = tree.names("sys/class/block");
    names.sort();
    let mut out = String::new();
    for name in names {
        let own = format!("sys/class/block/{name}");
        let sectors = tree.number::<u64>(format!("{own}/size")).unwrap_or(0);
        if sectors == 0 {
            continue;
        }
        let is_read_only = tree.number::<u8>(format!("{own}/ro")) == Some(1);
        let size = weir_units::Bytes(sectors.saturating_mul(512));
        let note = if is_read_only { "  read-only" } else { "" };
        let _ = writeln!(out, "{:20} {size}{note}", format!("/dev/{name}"));
    }
    if out.is_empty() {
        out.push_str("no block devices here; a file does for the engines of user space\n");
    }
    printed(&out)
}

/// The folder with the module's sources: beside the program or above it, else below this one. What is
/// built or loaded there runs with the caller's rights, so that strangers must not be able to change it.
pub(super) fn sources() -> Option<PathBuf> {
    let caller = rustix::process::geteuid().as_raw();
    let program = std::env::current_exe().unwrap_or_default();
    let owner = fs::metadata(&program).map_or(caller, |m| m.uid());
    let mut above = program.ancestors().skip(1).map(Path::to_owned);
    let own = above.find(|top| is_safe(top, &[owner, caller, 0], OTHERS));
    let here = || std::env::current_dir().ok();
    own.or_else(|| here().filter(|top| is_safe(top, &[caller, 0], GROUP_AND_OTHERS)))
        .map(|top| top.join(SOURCES))
}

/// True if the folder has the sources, and only its `owners` may change them: they own all files, and no file
/// has one of the `writers` mode bits.
fn is_safe(top: &Path, owners: &[u32], writers: u32) -> bool {
    let belongs = |path: &Path| {
        fs::metadata(path).is_ok_and(|m| owners.contains(&m.uid()) && m.mode() & writers == 0)
    };
    let sources = top.join(SOURCES);
    let folders = [top, &top.join("kmod"), &sources];
    let files = fs::read_dir(&sources);
    sources.join("Makefile").is_file()
        && folders.into_iter().all(belongs)
        && files.is_ok_and(|mut files| files.all(|file| file.is_ok_and(|f| belongs(&f.path()))))
}

pub(super) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut found = std::env::split_paths(&path).map(|folder| folder.join(name));
    found.find(|file| file.is_file())
}

/// `weir kio build`.
pub(super) fn build(kernel: Option<&str>) -> Outcome {
    let Some(folder) = sources() else {
        return Err(Refusal::lacks(
            "the sources of the module are not here\n  help: run weir in its source tree, where they \
             are in kmod/kio; a tree that others own or can write is left alone",
        ));
    };
    let usual = format!("/lib/modules/{}/build", release());
    if access(&folder, Access::WRITE_OK).is_err() {
        return Err(Refusal::lacks(format!(
            "{}: it cannot be written, and the module is built there\n  help: build it in a copy of the \
             source tree that is yours, or as the owner of this one",
            folder.display()
        )));
    }
    let kernel = kernel.unwrap_or(&usual);
    // `make` goes to the sources first, and a folder is named from where weir was called.
    let Ok(headers) = fs::canonicalize(kernel) else {
        return Err(Refusal::lacks(format!(
            "{kernel}: the kernel's headers are not there\n  help: install them (linux-headers of \
             this kernel), or name their folder with --kdir DIR"
        )));
    };
    let mut make = Command::new("make");
    make.arg("-C").arg(&folder);
    make.arg(format!("KDIR={}", headers.display()));
    command(&mut make)
}

/// `weir kio load`: loads the built module, else the installed one.
pub(super) fn load(device: Option<&str>, facts: &ModuleFacts) -> Outcome {
    if is_loaded() {
        return loaded_already(device, facts);
    }
    let device = device.map(|device| format!("block_device={device}"));
    let built = sources().map(|folder| folder.join("kio.ko"));
    if let Some(built) = built.filter(|file| file.is_file()) {
        check_release(&built)?;
        return command(Command::new("insmod").arg(built).args(&device));
    }
    command(Command::new("modprobe").arg("kio").args(&device))
}

/// Handles a module that is loaded already, which has taken its device then.
fn loaded_already(device: Option<&str>, facts: &ModuleFacts) -> Outcome {
    let own = facts.block_device.as_deref();
    match device {
        Some(device) if own != Some(device) => Err(Refusal::usage(format!(
            "the module is loaded already, {}\n  help: `weir kio unload` first, or name the device at \
             the run: `weir kio --device {device}`",
            own.map_or_else(|| "without a device".to_owned(), |own| format!("for {own}"))
        ))),
        _ => Ok(printed("the module is loaded already\n")),
    }
}

/// Refuses a module built for another kernel: the running one would only call its format invalid.
fn check_release(built: &Path) -> Result<(), Refusal> {
    let unread = |e| Refusal::lacks(format!("{}: {e}", built.display()));
    let bytes = fs::read(built).map_err(unread)?;
    let running = release();
    match release_of(&bytes) {
        Some(release) if release != running => Err(Refusal::lacks(format!(
            "{}: it was built for kernel {release}, and {running} is running\n  help: build it \
             again with `weir kio build`",
            built.display()
        ))),
        _ => Ok(()),
    }
}

/// The kernel for which a module was built, from the strings in its file.
pub(super) fn release_of(module: &[u8]) -> Option<&str> {
    let field = b"\0vermagic=";
    let at = module.windows(field.len()).position(|w| w == field)?;
    let value = module.get(at + field.len()..)?;
    let end = value.iter().position(|byte| b" \0".contains(byte))?;
    std::str::from_utf8(&value[..end]).ok()
}

/// `weir kio unload`, which refuses a module in use.
pub(super) fn unload() -> Outcome {
    if !is_loaded() {
        return Ok(printed("the module is not loaded\n"));
    }
    let holders: Vec<String> = holders()
        .into_iter()
        .map(|(pid, name)| format!("{pid} ({name})"))
        .collect();
    if !holders.is_empty() {
        return Err(Refusal::usage(format!(
            "the module is in use by {}\n  help: end that first",
            holders.join(", ")
        )));
    }
    if Tree::real().number::<u8>(RUNS) == Some(1) {
        return Err(Refusal::usage(format!(
            "the module is in use by a run that was started through /{RUNS}\n  help: wait for its \
             end, or end it with `echo 0 >/{RUNS}`"
        )));
    }
    command(Command::new("rmmod").arg("kio"))
}

/// Runs a program that reports its own progress.
fn command(command: &mut Command) -> Outcome {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|e| {
        Refusal::lacks(format!(
            "{name}: {e}\n  help: install it, or run weir as root"
        ))
    })?;
    if status.success() {
        return Ok(0);
    }
    let code = status.code().unwrap_or(1);
    let help = match name.as_str() {
        "make" => "`weir kio doctor` says what is missing".to_owned(),
        "rmmod" if !rustix::process::geteuid().is_root() => "run weir as root".to_owned(),
        "rmmod" => "the kernel's log says why (`dmesg`)".to_owned(),
        _ => needs::first_to_load()
            .unwrap_or_else(|| "the kernel's log says why (`dmesg`)".to_owned()),
    };
    Err(Refusal::lacks(format!(
        "{name} ended with {code}\n  help: {help}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_that_others_own_or_can_write_are_left_alone() {
        use std::os::unix::fs::PermissionsExt as _;

        let top = std::env::temp_dir().join(format!("weir-kio-sources-{}", std::process::id()));
        let caller = rustix::process::geteuid().as_raw();
        let set = |name: &str, mode| {
            fs::set_permissions(top.join(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        fs::create_dir_all(top.join(SOURCES)).unwrap();
        set(".", 0o755);
        assert!(
            !is_safe(&top, &[caller], GROUP_AND_OTHERS),
            "there is no Makefile"
        );
        for (name, mode) in [("Makefile", 0o644), ("kio.c", 0o644)] {
            fs::write(top.join(SOURCES).join(name), "").unwrap();
            set(&format!("{SOURCES}/{name}"), mode);
        }
        set("kmod", 0o755);
        set(SOURCES, 0o755);
        assert!(is_safe(&top, &[caller], GROUP_AND_OTHERS));
        assert!(
            !is_safe(&top, &[caller + 1], GROUP_AND_OTHERS),
            "it is somebody else's"
        );
        for name in [".", "kmod", SOURCES, "kmod/kio/Makefile", "kmod/kio/kio.c"] {
            for writers in [0o020, 0o002] {
                set(name, 0o755 | writers);
                assert!(
                    !is_safe(&top, &[caller], GROUP_AND_OTHERS),
                    "{name} {writers:o}"
                );
            }
            set(name, 0o755);
        }
        assert!(is_safe(&top, &[caller], GROUP_AND_OTHERS));
        fs::remove_dir_all(&top).unwrap();
    }

    #[test]
    fn the_kernel_of_a_module_is_found_in_its_file() {
        let file = b"ELF\0license=GPL\0vermagic=6.1.0-9-cloud SMP mod_unload \0x";
        assert_eq!(release_of(file), Some("6.1.0-9-cloud"));
        assert_eq!(release_of(b"no module"), None);
    }
}
