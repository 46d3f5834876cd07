//! Targets of the device mapper over memory: one that delays, one that fails, one that does at times.
//!
//! In: `dm-delay`, `dm-error`, `dm-flakey`. Out: `null_blk` with memory below, a table for `dmsetup`.

use anyhow::Result;

use super::{DeviceKind, Spec, Wiring};

pub(super) const DELAY: DeviceKind = DeviceKind {
    name: "dm-delay",
    form: "dm-delay[:64M,ms=10]",
    what: "operations begin so many milliseconds later",
    wire: |wiring, spec| {
        spec.only(&["size", "ms"])?;
        let table = format!("delay LOWER 0 {}", spec.number("ms", 10)?);
        add(wiring, spec, "dm_delay", &table)
    },
};

pub(super) const ERROR: DeviceKind = DeviceKind {
    name: "dm-error",
    form: "dm-error[:64M]",
    what: "every operation fails with EIO",
    // The error target is part of dm_mod.
    wire: |wiring, spec| {
        spec.only(&["size"])?;
        add(wiring, spec, "dm_mod", "error")
    },
};

pub(super) const FLAKEY: DeviceKind = DeviceKind {
    name: "dm-flakey",
    form: "dm-flakey[:64M,up=1,down=1]",
    what: "good for so many seconds, then failing for so many",
    wire: |wiring, spec| {
        spec.only(&["size", "up", "down"])?;
        let (up, down) = (spec.number("up", 1)?, spec.number("down", 1)?);
        add(
            wiring,
            spec,
            "dm_flakey",
            &format!("flakey LOWER 0 {up} {down}"),
        )
    },
};

/// `LOWER` in the table stands for the device below.
fn add(wiring: &mut Wiring, spec: &Spec, module: &str, table: &str) -> Result<()> {
    let number = wiring.next("mapper");
    let bytes = spec.size(64 << 20)?;
    wiring.module("null_blk");
    wiring.parameter(spec, "null_blk", "nr_devices", "0")?;
    wiring.module(module);
    if wiring.programs.is_empty() {
        wiring.programs.push(("dmsetup", "dmsetup"));
    }
    let (mebibytes, sectors) = (bytes >> 20, bytes >> 9);
    let table = table.replace("LOWER", &format!("/dev/lower{number}"));
    wiring.setup.push(format!(
        "lab_null lower{number} memory_backed=1 size={mebibytes}"
    ));
    wiring
        .setup
        .push(format!("lab_mapper lab{number} 0 {sectors} {table}"));
    wiring.node(format!("lab_mapped lab{number}"));
    Ok(())
}
