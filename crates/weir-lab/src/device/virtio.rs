//! QEMU virtio disks: plain, limited in operations per second, or failing on one sector.
//!
//! In: `virtio`, `throttle`, `blkdebug-error`. Out: a disk that the guest finds by its serial.

use anyhow::Result;

use super::{DeviceKind, Spec, Wiring};

pub(super) const VIRTIO: DeviceKind = DeviceKind {
    name: "virtio",
    form: "virtio[:size=2G,queues=1]",
    what: "virtio disk",
    wire: |wiring, spec| {
        spec.only(&["size", "queues"])?;
        let drive = wiring.drive(spec.size(2 << 30)?, "");
        let queues = spec.number("queues", 1)?;
        attach(wiring, &drive, queues);
        Ok(())
    },
};

pub(super) const THROTTLE: DeviceKind = DeviceKind {
    name: "throttle",
    form: "throttle[:iops=1000,size=2G]",
    what: "virtio disk that carries out so many operations in a second",
    wire: |wiring, spec| {
        spec.only(&["size", "iops"])?;
        let limit = spec.number("iops", 1000)?;
        let drive = wiring.drive(
            spec.size(2 << 30)?,
            &format!(",throttling.iops-total={limit}"),
        );
        attach(wiring, &drive, 1);
        Ok(())
    },
};

pub(super) const BLKDEBUG_ERROR: DeviceKind = DeviceKind {
    name: "blkdebug-error",
    form: "blkdebug-error[:sector=2048,op=read,size=64M]",
    what: "virtio disk that answers an operation (read, write) on one sector with EIO",
    wire: failing,
};

fn failing(wiring: &mut Wiring, spec: &Spec) -> Result<()> {
    spec.only(&["size", "sector", "op"])?;
    let sector = spec.number("sector", 2048)?;
    let op = spec.value("op").unwrap_or("read");
    anyhow::ensure!(
        ["read", "write"].contains(&op),
        "device `{spec}`: op is read or write"
    );
    let (id, path) = wiring.disk(spec.size(64 << 20)?);
    wiring.qemu(
        "-drive",
        format!(
            "if=none,id={id},driver=raw,cache=unsafe,file.driver=blkdebug,\
             file.image.driver=file,file.image.filename={path},\
             file.inject-error.0.event=none,file.inject-error.0.iotype={op},\
             file.inject-error.0.sector={sector},file.inject-error.0.errno=5"
        ),
    );
    attach(wiring, &id, 1);
    Ok(())
}

fn attach(wiring: &mut Wiring, drive: &str, queues: u64) {
    let number = wiring.next("virtio");
    add(wiring, drive, &format!("labvirtio{number}"), queues);
    wiring.node(format!("lab_by_serial labvirtio{number}"));
}

/// A virtio disk with a serial.
pub(super) fn add(wiring: &mut Wiring, drive: &str, serial: &str, queues: u64) {
    wiring.qemu(
        "-device",
        format!("virtio-blk-pci,drive={drive},serial={serial},num-queues={queues}"),
    );
    wiring.module("virtio_pci");
    wiring.module("virtio_blk");
}
