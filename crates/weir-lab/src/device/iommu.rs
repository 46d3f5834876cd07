//! A machine with an IOMMU: Intel's of a q35, root ports below it, the modules of VFIO.
//!
//! In: a device that asks for it, the name of its group. Out: a slot for the device. A slot has a root port
//! of its own; the functions of one slot are one group, as nothing keeps them from each other.
//! Not here: which driver has the device, which the script chooses. The machine of all other guests stays
//! what QEMU takes by itself.

use anyhow::{Result, ensure};

use super::{Spec, Wiring};

/// Functions that a slot has room for.
const FUNCTIONS: usize = 8;

/// Finds a slot with an IOMMU group of its own, or that of the named group; it is the end of a `-device`.
pub(super) fn slot(wiring: &mut Wiring, spec: &Spec, group: Option<&str>) -> Result<String> {
    if wiring.slots.is_empty() {
        add(wiring);
    }
    let known = |slot: &&mut (Option<String>, usize)| group.is_some() && slot.0.as_deref() == group;
    if let Some((at, (_, functions))) = wiring
        .slots
        .iter_mut()
        .enumerate()
        .find(|(_, slot)| known(slot))
    {
        ensure!(
            *functions < FUNCTIONS,
            "device `{spec}`: a group has {FUNCTIONS} devices at most"
        );
        *functions += 1;
        return Ok(format!(",bus=port{at},addr=0.{}", *functions - 1));
    }
    let at = wiring.slots.len();
    wiring.slots.push((group.map(str::to_owned), 1));
    wiring.qemu(
        "-device",
        format!("pcie-root-port,id=port{at},chassis={},slot={at}", at + 1),
    );
    let more = if group.is_some() {
        ",multifunction=on"
    } else {
        ""
    };
    Ok(format!(",bus=port{at},addr=0.0{more}"))
}

fn add(wiring: &mut Wiring) {
    // Devices that come before the IOMMU pass it by.
    let machine = [
        "-machine",
        "q35,kernel-irqchip=split",
        "-device",
        "intel-iommu,intremap=on,caching-mode=on",
    ];
    wiring.arguments.splice(0..0, machine.map(str::to_owned));
    wiring.append.push("intel_iommu=on".to_owned());
    for module in ["vfio", "vfio_iommu_type1", "vfio_pci"] {
        wiring.module(module);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn line(specs: &[&str]) -> Result<String> {
        let specs: Vec<String> = specs.iter().map(|spec| (*spec).to_owned()).collect();
        let wiring = Wiring::of(&specs, Path::new("/run"))?;
        Ok(wiring.arguments.join(" "))
    }

    #[test]
    fn the_iommu_comes_once_and_before_every_device() {
        let said = line(&["virtio", "nvme:iommu", "nvme:iommu"]).unwrap();
        assert!(
            said.starts_with("-machine q35,kernel-irqchip=split -device intel-iommu,"),
            "{said}"
        );
        assert_eq!(said.matches("intel-iommu").count(), 1, "{said}");
        assert!(
            said.contains("bus=port0,addr=0.0 ") && said.contains("bus=port1,addr=0.0 "),
            "{said}"
        );
        assert!(!line(&["virtio", "nvme"]).unwrap().contains("-machine"));
    }

    #[test]
    fn devices_of_one_group_are_functions_of_one_slot() {
        let said = line(&["nvme:group=a", "nvme:iommu", "nvme:group=a"]).unwrap();
        assert!(
            said.contains("bus=port0,addr=0.0,multifunction=on ")
                && said.contains("bus=port1,addr=0.0 ")
                && said.contains("bus=port0,addr=0.1 "),
            "{said}"
        );
        assert_eq!(said.matches("pcie-root-port").count(), 2, "{said}");
        let error = line(&["nvme:group=a"; 9]).unwrap_err().to_string();
        assert!(error.contains("8 devices"), "{error}");
    }
}
