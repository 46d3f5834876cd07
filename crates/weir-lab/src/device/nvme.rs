//! An NVMe controller of QEMU with one namespace, plain or zoned.
//!
//! In: `nvme[:size=2G,lbs=4096,queues=4,zoned,zone=16M]`. Out: the controller, and a time limit of
//! commands that lets a lost one show soon. Not here: pinning, which all guests have (`cpu`).

use std::fmt::Write as _;

use anyhow::{Context as _, Result};

use super::{DeviceKind, Spec, Wiring, bytes};

pub(super) const NVME: DeviceKind = DeviceKind {
    name: "nvme",
    form: "nvme[:size=2G,lbs=4096,queues=4,zoned,zone=16M]",
    what: "NVMe controller with one namespace; passthrough through its ng node",
    wire,
};

fn wire(wiring: &mut Wiring, spec: &Spec) -> Result<()> {
    spec.only(&["size", "lbs", "queues", "zoned", "zone"])?;
    let number = wiring.next("nvme");
    let drive = wiring.drive(spec.size(2 << 30)?, "");
    let queues = spec.number("queues", 4)?;
    wiring.qemu(
        "-device",
        format!("nvme,id=nvme{number},serial=labnvme{number},max_ioqpairs={queues}"),
    );
    let block = spec.number("lbs", if spec.has("zoned") { 4096 } else { 512 })?;
    let mut namespace = format!(
        "nvme-ns,drive={drive},bus=nvme{number},logical_block_size={block},physical_block_size={block}"
    );
    if spec.has("zoned") {
        let zone = spec.value("zone").unwrap_or("16M");
        let zone = bytes(zone).with_context(|| format!("device `{spec}`: zone={zone}"))?;
        let _ = write!(namespace, ",zoned=on,zoned.zone_size={zone}");
    }
    wiring.qemu("-device", namespace);
    if number == 0 {
        wiring.append.push("nvme_core.io_timeout=5".to_owned());
    }
    wiring.node(format!("lab_by_serial labnvme{number}"));
    Ok(())
}
