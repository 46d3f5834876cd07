//! An NVMe controller of QEMU with one namespace or several, plain or zoned, behind an IOMMU where asked for.
//!
//! In: `nvme[:size=2G,lbs=4096,queues=4,namespaces=1,zoned,zone=16M,iommu,group=NAME]`. Out: the controller, and a
//! time limit of commands that lets a lost one show soon. Not here: pinning, which all guests have (`cpu`), the
//! IOMMU (`iommu`).

use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};

use super::{DeviceKind, Spec, Wiring, bytes, iommu};

pub(super) const NVME: DeviceKind = DeviceKind {
    name: "nvme",
    form: "nvme[:size=2G,lbs=4096,queues=4,namespaces=1,zoned,zone=16M,iommu,group=NAME]",
    what: "NVMe controller with ng nodes; iommu: behind one, for vfio-pci; group: with others in its group",
    wire,
};

/// Namespaces that QEMU's controller has room for.
const NAMESPACES: u64 = 256;

fn wire(wiring: &mut Wiring, spec: &Spec) -> Result<()> {
    spec.only(&[
        "size",
        "lbs",
        "queues",
        "namespaces",
        "zoned",
        "zone",
        "iommu",
        "group",
    ])?;
    let number = wiring.next("nvme");
    let queues = spec.number("queues", 4)?;
    let group = spec.value("group");
    let slot = if spec.has("iommu") || group.is_some() {
        iommu::slot(wiring, spec, group)?
    } else {
        String::new()
    };
    wiring.qemu(
        "-device",
        format!("nvme,id=nvme{number},serial=labnvme{number},max_ioqpairs={queues}{slot}"),
    );
    let namespaces = spec.number("namespaces", 1)?;
    ensure!(
        (1..=NAMESPACES).contains(&namespaces),
        "device `{spec}`: a controller has 1 to {NAMESPACES} namespaces"
    );
    for _ in 0..namespaces {
        namespace(wiring, spec, number)?;
    }
    if number == 0 {
        wiring.append.push("nvme_core.io_timeout=5".to_owned());
    }
    wiring.node(format!("lab_by_serial labnvme{number} {namespaces}"));
    Ok(())
}

fn namespace(wiring: &mut Wiring, spec: &Spec, number: usize) -> Result<()> {
    let drive = wiring.drive(spec.size(2 << 30)?, "");
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
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn each_namespace_has_a_disk_of_its_own() {
        let specs = ["nvme:size=8M,namespaces=2".to_owned()];
        let wiring = Wiring::of(&specs, Path::new("/run")).unwrap();
        let said = wiring.arguments.join(" ");
        assert!(
            said.contains("nvme-ns,drive=disk0,bus=nvme0,")
                && said.contains("nvme-ns,drive=disk1,bus=nvme0,"),
            "{said}"
        );
        assert_eq!(wiring.disks.len(), 2);
        assert_eq!(wiring.nodes, ["lab_by_serial labnvme0 2"]);
        for count in ["0", "257"] {
            let specs = [format!("nvme:namespaces={count}")];
            assert!(Wiring::of(&specs, Path::new("/run")).is_err());
        }
    }
}
