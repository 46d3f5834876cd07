//! Needs of the kernel module: to be built, to be loaded, to be used.
//!
//! In: this machine. Out: a line for each thing, and the exit code of `weir kio doctor`. Not here:
//! building and loading ([`super::module`]).

use std::fmt::Write as _;
use std::path::Path;

use weir_doors::kio::ModuleFacts;
use weir_sys::Tree;

use super::module::{program, release, release_of, sources};
use crate::printed;

/// Exit code where this machine lacks something.
const LACKS: u8 = 3;

/// Purpose of a need.
#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
    /// Make a module of its sources.
    Build,
    /// The module becomes a part of the kernel.
    Load,
}

/// A need, met or not.
struct Need {
    what_for: For,
    is_met: bool,
    /// Text where the need is met.
    met: String,
    /// Text where it is not, with the remedy.
    lacking: String,
}

impl Need {
    fn new(what_for: For, is_met: bool, met: &str, lacking: impl Into<String>) -> Self {
        Self {
            what_for,
            is_met,
            met: met.to_owned(),
            lacking: lacking.into(),
        }
    }
}

/// `weir kio doctor`: one line for each thing. What a module that is loaded needs no more is no lack.
pub(super) fn doctor(facts: &ModuleFacts) -> u8 {
    let is_loaded = facts.has_node;
    let is_built = built().is_met;
    let mut out = String::new();
    let mut lacks = !is_loaded;
    for need in all() {
        let is_past = is_loaded || (is_built && need.what_for == For::Build);
        let (word, text) = match (need.is_met, is_past) {
            (true, _) => ("ok", need.met),
            (false, true) => ("note", format!("not needed now: {}", need.lacking)),
            (false, false) => ("missing", need.lacking),
        };
        lacks |= word == "missing";
        let _ = writeln!(out, "{word:8} {text}");
    }
    let line = if is_loaded {
        "ok       the module is loaded"
    } else {
        "missing  the module is not loaded: `weir kio load`"
    };
    let _ = writeln!(out, "{line}");
    let taint = Tree::real().number::<u64>("proc/sys/kernel/tainted");
    if taint.unwrap_or(0) & (1 << 13) != 0 {
        let _ = writeln!(out, "note     an unsigned module was loaded (taint E)");
    }
    let code = printed(&out);
    if code == 0 && lacks { LACKS } else { code }
}

/// The first thing that keeps a module from being loaded, with its remedy.
pub(super) fn first_to_load() -> Option<String> {
    let mut lacking = all()
        .into_iter()
        .filter(|need| need.what_for == For::Load && !need.is_met);
    lacking.next().map(|need| need.lacking)
}

fn all() -> Vec<Need> {
    let tree = Tree::real();
    let release = release();
    let headers = format!("/lib/modules/{release}/build");
    let lockdown = tree
        .text("sys/kernel/security/lockdown")
        .unwrap_or_default();
    vec![
        Need::new(
            For::Build,
            Path::new(&headers).exists(),
            "kernel headers",
            format!("kernel headers: install linux-headers-{release}"),
        ),
        Need::new(
            For::Build,
            sources().is_some(),
            "sources of the module",
            "sources of the module: run weir in its source tree",
        ),
        Need::new(
            For::Build,
            program("make").is_some() && program("cc").is_some(),
            "make and a C compiler",
            "make or a C compiler: install build-essential",
        ),
        Need::new(
            For::Load,
            tree.has("proc/modules"),
            "the kernel loads modules",
            "the kernel loads no modules (it was built without CONFIG_MODULES): run another kernel, or \
             use an engine of user space",
        ),
        built(),
        Need::new(
            For::Load,
            rustix::process::geteuid().is_root(),
            "root, to load a module",
            "root: a module is loaded by root alone",
        ),
        Need::new(
            For::Load,
            lockdown.is_empty() || lockdown.contains("[none]"),
            "the kernel is not locked down",
            "the kernel is locked down: sign the module, or switch Secure Boot off",
        ),
    ]
}

/// Checks for a module for the running kernel.
fn built() -> Need {
    let release = release();
    let file = sources().map(|folder| folder.join("kio.ko"));
    let bytes = file.and_then(|file| std::fs::read(file).ok());
    let of_other = bytes
        .as_deref()
        .and_then(release_of)
        .filter(|built| *built != release);
    if let Some(other) = of_other {
        let lacking = format!(
            "a module for this kernel: it was built for {other}, and {release} is running: build it \
             again with `weir kio build`"
        );
        return Need::new(For::Load, false, "", lacking);
    }
    let installed = Tree::real()
        .text(format!("lib/modules/{release}/modules.dep"))
        .is_some_and(|list| list.lines().any(is_installed));
    Need::new(
        For::Load,
        bytes.is_some() || installed,
        "the module is built",
        "the module is not built: `weir kio build`",
    )
}

/// True if a line of `modules.dep` is about this module, compressed or not.
fn is_installed(line: &str) -> bool {
    let path = line.split(':').next().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    name.starts_with("kio.ko")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_is_installed_is_known_by_its_file() {
        assert!(is_installed("updates/dkms/kio.ko.xz: kernel/a.ko"));
        assert!(is_installed("extra/kio.ko:"));
        assert!(!is_installed("kernel/drivers/virtio.ko: extra/kio.ko"));
    }
}
