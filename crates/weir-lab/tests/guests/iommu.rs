//! NVMe controllers behind an IOMMU: given to vfio-pci and back, two in one group, several namespaces; and weir's own
//! driver, which takes one for a run.
//!
//! In: a q35 with its IOMMU, weir. Out: each case by name. Cases wait for what the kernel shows, never for time.

use std::time::Duration;

use anyhow::{Result, ensure};
use weir_lab::{CaseBatch, CaseRun, Lab, LabRun, Places};

use crate::roce::has_weir;
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

/// Words of the cases of weir's driver.
const DRIVER: &str = r#"export WEIR_HISTORY=off
SAID=/tmp/said
at=$(address $LAB_DEV_0)
driver() { basename "$(readlink $PCI/devices/$1/driver)"; }

# STATUS WORD...: calls the door; what it says is in $SAID.
door() {
	want=$1
	shift
	weir nvme-perf "$@" >$SAID 2>&1
	rc=$?
	[ $rc -eq "$want" ] || { cat $SAID; lab_fail "$*: status $rc, not $want"; }
}
# STATUS WORD...: measures on the first core.
perf() {
	status=$1
	shift
	door $status --voice peer -c 1 "$@"
}

# TEXT
says() {
	grep -q -e "$1" $SAID || { cat $SAID; lab_fail "no '$1'"; }
}
"#;

/// Data that go by weir's driver and by the kernel's are the same.
const DATA: &str = r#"sum() { md5sum <$LAB_DEV_0; }
# ENGINE WORD...: the drive after 32 MiB of writes
after() {
	engine=$1
	shift
	lab_check dd if=/dev/zero of=$LAB_DEV_0 bs=1M count=32 conv=fsync 2>/dev/null
	perf 0 -w write -t 3600 --engine $engine --destroy $at "$@" $LAB_DEV_0
	sync
	echo 3 >/proc/sys/vm/drop_caches
	sum
}
# One in flight: content depends on the order of ends.
for line in "-q 1 -o 1048576 -d 32" "-q 1 -o 4096 -d 1000" "-q 1 -o 12288 -d 500 --fua"; do
	ours=$(after vfio --takeover $at $line)
	[ "$(driver $at)" = nvme ] || lab_fail "the driver is $(driver $at)"
	theirs=$(after uring $line)
	[ "$ours" = "$theirs" ] || lab_fail "$line: other data"
done
perf 0 -q 8 -o 4096 -w randread -t 3600 -d 2000 --engine uring,uring-cmd,vfio --takeover $LAB_DEV_0 $LAB_DEV_0
for engine in io_uring io_uring_cmd vfio; do
	says "^$LAB_DEV_0 by $engine *from core  0: *[0-9]"
done
perf 0 -q 2 -o 4096 -w rw -M 50 -t 3600 -d 500 --engine vfio --destroy $at --takeover $at --allowed-pci-addr $at
says "^PCIE ($at) \[1b36:0010\] NSID 1 from core  0: "
perf 3 -q 2048 -o 4096 -w read -t 1 --engine vfio --takeover $at $LAB_DEV_0
says "a queue of the drive has"
[ "$(driver $at)" = nvme ] || lab_fail "the driver is $(driver $at)""#;

/// Drives that are not taken.
const REFUSED: &str = r#"LINE="-q 1 -o 4096 -w read -t 1 --engine vfio"
# STATUS TEXT WORD...: refused, and the kernel has all drives.
refused() {
	want=$1 text=$2
	shift 2
	perf $want $LINE "$@"
	says "$text"
	for device in $LAB_DEV_0 $LAB_DEV_1 $LAB_DEV_2 $LAB_DEV_3; do
		[ -b $device ] || lab_fail "$device is gone after '$text'"
	done
}
refused 2 "takeover $at" $LAB_DEV_0
refused 1 "it is no target of this run" --takeover $(address $LAB_DEV_1) $LAB_DEV_0
refused 2 "has $(address $LAB_DEV_3) too, with the driver nvme" --takeover $LAB_DEV_2 $LAB_DEV_2
# Another namespace of the controller.
other=${LAB_DEV_1%n1}n2
lab_check mke2fs -q $other >/dev/null
mkdir -p /tmp/mounted
lab_check mount -t ext4 $other /tmp/mounted
refused 2 "mounted on ./tmp/mounted" --takeover $LAB_DEV_1 $LAB_DEV_1
lab_check umount /tmp/mounted
lab_check mkswap $LAB_DEV_0 >/dev/null
lab_check swapon $LAB_DEV_0
refused 2 "swap" --takeover $LAB_DEV_0 $LAB_DEV_0
lab_check swapoff $LAB_DEV_0
lab_check dd if=/dev/zero of=$LAB_DEV_0 bs=1M count=1 conv=fsync 2>/dev/null
touch /tmp/file
dd if=/dev/zero of=/tmp/file bs=1M count=1 2>/dev/null
refused 1 "is no NVMe namespace" /tmp/file
door 3 --release 0000:00:1f.0
door 0 --release $at
perf 0 $LINE --takeover $(address $LAB_DEV_1) $LAB_DEV_1 $other
says "^$other from core"
lab_until -b $other"#;

/// Runs that end in every way; the drive is the kernel's again.
const ENDED: &str = r#"# begin: a run that has taken the drive; its number is in $run.
begin() {
	weir nvme-perf --voice peer -c 1 -q 4 -o 4096 -w randread -t 3600 --engine vfio --takeover $at $LAB_DEV_0 >$SAID 2>&1 &
	run=$!
	lab_until ! -e $LAB_DEV_0
	lab_until -n "$(pidof weir)"
}
back() {
	lab_until -b $LAB_DEV_0
	[ "$(driver $at)" = nvme ] || lab_fail "the driver is $(driver $at)"
	lab_check dd if=$LAB_DEV_0 of=/dev/null bs=4k count=1 2>/dev/null
}
keeper() {
	for process in /proc/[0-9]*; do
		case "$(tr '\0' ' ' <$process/cmdline 2>/dev/null)" in
		*"nvme-keeper $at"*) echo ${process#/proc/} ;;
		esac
	done
}

begin
kill -INT $run
wait $run
rc=$?
[ $rc -eq 0 ] || { cat $SAID; lab_fail "interrupted: status $rc"; }
[ -b $LAB_DEV_0 ] || lab_fail "the run is over and the drive not back"
back
for signal in TERM ABRT KILL; do
	begin
	door 2 --release $at
	says "a process has it open"
	kill -$signal $run
	wait $run
	back
done
# The keeper is killed before the run: the drive stays where it is until it is released.
begin
lab_check kill -KILL $(keeper)
kill -KILL $run
wait $run
[ "$(driver $at)" = vfio-pci ] || lab_fail "the driver is $(driver $at)"
lab_until -z "$(pidof weir)"
weir nvme-perf --list >$SAID
weir nvme-perf --release $at || lab_fail "not released"
back
# A run that outlives its keeper says what to do.
begin
lab_check kill -KILL $(keeper)
kill -INT $run
wait $run
says "its keeper was killed"
says "nvme-perf --release $at"
door 0 --release $at
back"#;

/// Boots the guest.
pub(crate) fn boot() -> Result<(LabRun, Vec<CaseRun>)> {
    let batch = [("given", GIVEN), ("group", GROUP), ("spaces", NAMESPACES)]
        .iter()
        .fold(CaseBatch::default(), |batch, (name, script)| {
            batch.case(name, &format!("{COMMON}\n{script}"))
        });
    let batch = [("data", DATA), ("refused", REFUSED), ("ended", ENDED)]
        .iter()
        .fold(batch, |batch, (name, script)| {
            batch.case(name, &format!("{COMMON}\n{DRIVER}\n{script}"))
        });
    has_weir(&Places::find()?)?;
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

#[test]
fn data_by_weirs_own_driver_are_those_by_the_kernels() -> Result<()> {
    good("data").map(drop)
}

#[test]
fn a_drive_that_somebody_needs_is_not_taken() -> Result<()> {
    good("refused").map(drop)
}

#[test]
fn the_kernel_has_a_drive_again_however_a_run_ends() -> Result<()> {
    good("ended").map(drop)
}
