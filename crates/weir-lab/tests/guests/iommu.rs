//! NVMe controllers behind an IOMMU: given to vfio-pci and back, two in one group, several namespaces.
//!
//! In: a q35 with its IOMMU. Out: each case by name. The programs that drive a controller over `/dev/vfio` are
//! tested elsewhere.

use std::time::Duration;

use anyhow::{Result, ensure};
use weir_lab::{CaseBatch, CaseRun, Lab, LabRun};

use crate::shared::{Guest, case};

/// Functions of the cases.
const COMMON: &str = r#"PCI=/sys/bus/pci

# DEVICE: its PCI address
address() {
	name=${1#/dev/}
	basename "$(readlink -f "/sys/class/nvme/${name%n1}/device")"
}

# ADDRESS: the number of its IOMMU group
group() { basename "$(readlink "$PCI/devices/$1/iommu_group")"; }

# TEST...: waits until it holds
lab_until() {
	tries=0
	until test "$@"; do
		tries=$((tries + 1))
		[ "$tries" -lt 400 ] || lab_fail "never: $*"
		sleep 0.02
	done
}
"#;

/// A controller that changes its driver twice and keeps its data.
const GIVEN: &str = r#"at=$(address $LAB_DEV_1)
group=$(group $at)
[ "$(ls $PCI/devices/$at/iommu_group/devices)" = "$at" ] || lab_fail "group $group has other devices"
[ -c /dev/vfio/vfio ] && ! [ -e /dev/vfio/$group ] || lab_fail "a node too many or too few"
lab_check dd if=/dev/urandom of=$LAB_DEV_1 bs=64k count=1 conv=fsync 2>/dev/null
before=$(md5sum <$LAB_DEV_1)
echo $at >$PCI/drivers/nvme/unbind
echo vfio-pci >$PCI/devices/$at/driver_override
echo $at >$PCI/drivers/vfio-pci/bind || lab_fail "vfio-pci refuses $at"
lab_until -c /dev/vfio/$group
[ -e $LAB_DEV_1 ] && lab_fail "the disk is there still"
[ -b $LAB_DEV_0 ] || lab_fail "the other disk is gone"
echo $at >$PCI/drivers/vfio-pci/unbind
echo >$PCI/devices/$at/driver_override
echo $at >$PCI/drivers_probe
lab_until -b $LAB_DEV_1
[ -e /dev/vfio/$group ] && lab_fail "the group's node is there still"
[ "$(md5sum <$LAB_DEV_1)" = "$before" ] || lab_fail "other data""#;

/// Two controllers that vfio-pci can have only together.
const GROUP: &str = r#"third=$(address $LAB_DEV_2)
fourth=$(address $LAB_DEV_3)
[ $third != $fourth ] || lab_fail "one controller"
[ $(group $third) = $(group $fourth) ] || lab_fail "two groups"
ls $PCI/devices/$third/iommu_group/devices | wc -l"#;

/// Namespaces of the second controller, then of the first.
const NAMESPACES: &str = r"for device in $LAB_DEV_1 $LAB_DEV_0; do
	name=${device#/dev/}
	ls -d /sys/block/${name%n1}n* | wc -l
	cat /sys/block/${name%n1}n*/size
done";

/// Boots the guest.
pub(crate) fn boot() -> Result<(LabRun, Vec<CaseRun>)> {
    let batch = [("given", GIVEN), ("group", GROUP), ("spaces", NAMESPACES)]
        .iter()
        .fold(CaseBatch::default(), |batch, (name, script)| {
            batch.case(name, &format!("{COMMON}\n{script}"))
        });
    Lab::new()?
        .timeout(Duration::from_secs(240))
        .dev("nvme:size=32M,iommu")
        .dev("nvme:size=16M,namespaces=2,iommu")
        .dev("nvme:size=16M,group=pair")
        .dev("nvme:size=16M,group=pair")
        .batch(&batch)
}

/// Output of a case that is good; none where no guest can be booted.
fn good(name: &str) -> Result<Option<&'static str>> {
    let Some((run, case)) = case(Guest::Iommu, name)? else {
        return Ok(None);
    };
    run.no_complaints()?;
    Ok(Some(case.good()?))
}

#[test]
fn a_controller_goes_to_vfio_and_comes_back_with_its_data() -> Result<()> {
    good("given").map(drop)
}

#[test]
fn controllers_of_one_group_have_nobody_else_in_it() -> Result<()> {
    if let Some(said) = good("group")? {
        ensure!(said == "2\n", "{said}");
    }
    Ok(())
}

#[test]
fn a_controller_has_as_many_namespaces_as_are_asked_for() -> Result<()> {
    if let Some(said) = good("spaces")? {
        ensure!(said == "2\n32768\n32768\n1\n65536\n", "{said}");
    }
    Ok(())
}
