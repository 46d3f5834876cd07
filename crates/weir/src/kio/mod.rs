//! The kernel module of `weir kio`, and facts about its targets on this machine.
//!
//! In: calls of the module, paths. Out: text, exit codes, facts. Not here: what arguments mean
//! (`weir-doors`), runs.

mod module;
mod needs;

use std::path::Path;

use weir_doors::kio::{ModuleCall, TargetFacts};
use weir_sys::Tree;
use weir_sys::device::{DirectIo, PathKind, path_facts, signature};
use weir_sys::guard::{Overrides, check_write};

use crate::Outcome;

pub(crate) use module::facts as module_facts;

/// The least unit of addressing.
const SECTOR: u64 = 512;

/// Carries out a call of the module.
pub(crate) fn carry_out(call: &ModuleCall) -> Outcome {
    let facts = module_facts();
    match call {
        ModuleCall::Status => Ok(module::status(&facts)),
        ModuleCall::Devices => Ok(module::devices()),
        ModuleCall::Doctor => Ok(needs::doctor(&facts)),
        ModuleCall::Build(kernel) => module::build(kernel.as_deref()),
        ModuleCall::Load(device) => module::load(device.as_deref(), &facts),
        ModuleCall::Unload => module::unload(),
    }
}

/// Data that a device seems to hold. A device in use is refused before the run with the name of its user
/// instead.
pub(crate) fn held_data(path: &str) -> Option<&'static str> {
    let path = Path::new(path);
    let is_free = check_write(&Tree::real(), path, Overrides::default()).is_ok();
    is_free.then(|| signature(path)).flatten()
}

/// Facts about the block device or file of a path.
pub(crate) fn target(path: &str) -> Result<TargetFacts, String> {
    let facts = path_facts(&Tree::real(), Path::new(path)).map_err(|e| match e {
        weir_sys::SysError::Path { source, .. } => source.to_string(),
        other => other.to_string(),
    })?;
    let is_device = match facts.kind {
        PathKind::Block => true,
        PathKind::Regular => false,
        PathKind::Directory => return Err("it is a directory: name a file in it".to_owned()),
        _ => return Err("it is neither a block device nor a file".to_owned()),
    };
    let block = facts.block.as_ref();
    let of_device = block.filter(|_| is_device);
    let is_direct = !matches!(facts.direct_io, Some(DirectIo::Unsupported));
    let unit = block.and_then(|block| block.logical_block);
    Ok(TargetFacts {
        is_device,
        bytes: facts.size.map_or(0, |size| size.0),
        logical_block: unit.filter(|_| is_direct).map_or(SECTOR, |unit| unit.0),
        has_polling: block.and_then(|block| block.has_polling),
        is_direct,
        is_read_only: of_device.and_then(|block| block.is_read_only) == Some(true),
        is_zoned: of_device
            .and_then(|block| block.zoned.as_deref())
            .is_some_and(|zoned| zoned == "host-managed"),
        node: block.and_then(|block| block.numa_node),
    })
}
