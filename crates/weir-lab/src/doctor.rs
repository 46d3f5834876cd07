//! Prerequisites of the lab on this machine.
//!
//! In: this machine. Out: a [`Prerequisite`] each. Not here: printing them (the program).

use anyhow::{Context as _, Result};

use crate::accel;
use crate::host::{Places, find, need};
use crate::kernel::Kernel;
use crate::modules::ModuleTree;
use crate::qemu;

/// One prerequisite.
#[derive(Debug, Clone)]
pub struct Prerequisite {
    /// Name of the prerequisite.
    pub name: &'static str,
    /// The thing found, or the missing one and its remedy.
    pub says: String,
    /// True if it is there.
    pub good: bool,
    /// True if no guest runs without it.
    pub needed: bool,
}

/// Looks at everything.
pub fn examine(kernel: Option<&std::path::Path>) -> Vec<Prerequisite> {
    let line = |name, needed, found: Result<String>| Prerequisite {
        name,
        good: found.is_ok(),
        says: found.unwrap_or_else(|error| format!("missing: {error:#}")),
        needed,
    };
    let program = |name, package| need(name, package).map(|path| path.display().to_string());
    let places = Places::find();
    let mut lines = vec![
        line("emulator", true, program(qemu::PROGRAM, "qemu-system-x86")),
        line("userland", true, program("busybox", "busybox-static")),
        line("C compiler", true, program("cc", "build-essential")),
        line("depmod", false, program("depmod", "kmod")),
    ];
    let places = match places {
        Ok(places) => places,
        Err(error) => {
            lines.push(line("state", true, Err(error)));
            return lines;
        }
    };
    lines.push(line("state", true, Ok(places.state.display().to_string())));
    let weir = places.weir().and_then(|built| {
        built.context("no release build in the guest (cargo build --release -p weir)")
    });
    lines.push(line(
        "weir",
        false,
        weir.map(|path| path.display().to_string()),
    ));
    let kernel = match Kernel::find(kernel, &places) {
        Ok(kernel) => kernel,
        Err(error) => {
            lines.push(line("kernel", true, Err(error)));
            return lines;
        }
    };
    let found = format!("{} ({})", kernel.release, kernel.image.display());
    lines.push(line("kernel", true, Ok(found)));
    let modules = ModuleTree::of(&kernel).map(|tree| {
        let found = if tree.has("null_blk") {
            "null_blk and more"
        } else {
            "none beside it: all has to be built in"
        };
        found.to_owned()
    });
    lines.push(line("modules", true, modules));
    let headers = kernel.headers().map(|path| path.display().to_string());
    lines.push(line("headers", false, headers));
    if find(qemu::PROGRAM).is_some() {
        lines.push(line("accelerator", true, accelerator(&places, &kernel)));
    }
    lines
}

fn accelerator(places: &Places, kernel: &Kernel) -> Result<String> {
    let verdict = accel::verdict(places, kernel)?;
    Ok(if verdict == accel::WORKS {
        "kvm: a probe guest ran".to_owned()
    } else {
        format!("tcg; kvm is not used: {verdict}")
    })
}
