//! Block devices in the guest's memory: `brd`, a loop device over a file in tmpfs, memory that counts as
//! persistent.
//!
//! In: `ram`, `loop`, `pmem`. Out: modules and lines of setup; nothing of it happens on this machine.

use anyhow::ensure;

use super::DeviceKind;

pub(super) const RAM: DeviceKind = DeviceKind {
    name: "ram",
    form: "ram[:64M]",
    what: "brd; all of them have one size",
    wire: |wiring, spec| {
        spec.only(&["size"])?;
        let number = wiring.next("ram");
        wiring.module("brd");
        let kib = spec.size(64 << 20)? >> 10;
        wiring.parameter(spec, "brd", "rd_size", &kib.to_string())?;
        // The last one says how many there are.
        let parameters = wiring.parameters.entry("brd".to_owned()).or_default();
        parameters.insert("rd_nr".to_owned(), (number + 1).to_string());
        wiring.node(format!("echo /dev/ram{number}"));
        Ok(())
    },
};

pub(super) const LOOP: DeviceKind = DeviceKind {
    name: "loop",
    form: "loop[:64M]",
    what: "loop device over a file in tmpfs (buffered before kernel 6.6)",
    wire: |wiring, spec| {
        spec.only(&["size"])?;
        let number = wiring.next("loop");
        let bytes = spec.size(64 << 20)?;
        wiring.module("loop");
        wiring.setup.push(format!("lab_loop {number} {bytes}"));
        wiring.node(format!("echo /dev/loop{number}"));
        Ok(())
    },
};

pub(super) const PMEM: DeviceKind = DeviceKind {
    name: "pmem",
    form: "pmem[:128M]",
    what: "memory from 256 MiB on that counts as persistent; ext4 on it takes `-o dax`; one of them",
    wire: |wiring, spec| {
        spec.only(&["size"])?;
        ensure!(
            wiring.next("pmem") == 0,
            "device `{spec}`: there can be one pmem"
        );
        let bytes = spec.size(128 << 20)?;
        wiring.append.push(format!("memmap={bytes}!256M"));
        for module in ["nd_e820", "nd_pmem", "ext4"] {
            wiring.module(module);
        }
        wiring.node("echo /dev/pmem0".to_owned());
        Ok(())
    },
};
