//! The NVMe namespaces of this machine, for `weir nvme-perf`.
//!
//! In: `/sys`. Out: the door's facts. Not here: reading them (`weir-sys`), what is done with them.

use std::path::Path;

use weir_doors::Refusal;
use weir_doors::nvme::{NamespaceUse, NvmeNamespace};
use weir_sys::Tree;
use weir_sys::device::{NvmeFacts, PcieLink, nvme_namespaces};
use weir_sys::guard::{Overrides, check_write};
use weir_sys::nvme::{DriveHealth, NamespaceBlocks};
use weir_sys::takeover::{self, Takeover, TakeoverError};

/// All of them.
pub(crate) fn namespaces() -> Vec<NvmeNamespace> {
    let tree = Tree::real();
    let all = nvme_namespaces(&tree).into_iter();
    all.map(|facts| namespace(&tree, facts)).collect()
}

fn namespace(
    tree: &Tree,
    NvmeFacts {
        block,
        address,
        ids,
        number,
        firmware,
    }: NvmeFacts,
) -> NvmeNamespace {
    let node = format!("/dev/{}", block.name);
    let use_of = check_write(tree, Path::new(&node), Overrides::default());
    NvmeNamespace {
        address,
        ids,
        number,
        model: block.model.unwrap_or_default(),
        firmware: firmware.unwrap_or_default(),
        bytes: block.size.map_or(0, |size| size.0),
        sector: block.logical_block.map_or(512, |size| size.0),
        memory_node: block.numa_node,
        best_link: block.pcie.as_ref().and_then(best),
        link: block.pcie.map(|link| words(&link.speed, link.width)),
        in_use: use_of.err().map(|why| why.to_string()),
        node,
    }
}

/// Temperature of a drive, and the commands that it has completed; only root may ask.
pub(crate) fn health(node: &str) -> Option<String> {
    let drive = DriveHealth::ask(std::fs::File::open(node).ok()?).ok()?;
    let DriveHealth {
        celsius,
        reads,
        writes,
    } = drive;
    Some(format!("{celsius} °C, {reads} reads, {writes} writes"))
}

/// Refusal to take a drive from the kernel.
pub(crate) fn check_takeover(address: &str) -> Result<(), Refusal> {
    if !cfg!(feature = "vfio") {
        let why =
            "--engine vfio: this weir is built without it\n  help: build with the feature `vfio`";
        return Err(Refusal::lacks(why));
    }
    Takeover::check(&Tree::real(), address)
        .map(drop)
        .map_err(refused)
}

/// Gives a drive back to the kernel.
pub(crate) fn release(address: &str) -> Result<(), Refusal> {
    takeover::release(&Tree::real(), address).map_err(refused)
}

fn refused(error: TakeoverError) -> Refusal {
    match error {
        TakeoverError::InUse(why) => Refusal {
            is_guard: true,
            ..Refusal::usage(why)
        },
        TakeoverError::Lacks(why) => Refusal::lacks(why),
    }
}

/// Blocks of a namespace that hold something; only root may ask.
pub(crate) fn namespace_use(node: &str) -> Option<NamespaceUse> {
    let NamespaceBlocks {
        all,
        used,
        empty_reads_as,
    } = NamespaceBlocks::ask(std::fs::File::open(node).ok()?).ok()?;
    Some(NamespaceUse {
        blocks: all,
        used,
        empty_reads_as,
    })
}

/// The link that a drive could have, where that is more than it has.
fn best(link: &PcieLink) -> Option<String> {
    let speed = link.max_speed.as_ref().unwrap_or(&link.speed);
    let width = link.max_width.or(link.width);
    (*speed != link.speed || width != link.width).then(|| words(speed, width))
}

fn words(speed: &str, width: Option<u32>) -> String {
    let width = width.map_or_else(String::new, |width| format!(" x{width}"));
    format!("{speed}{width}")
}
