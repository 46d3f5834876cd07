//! `weir nvme-perf` on drives: two of the emulator's NVMe, and a disk with bad sectors, below eight processors.
//!
//! In: weir's release build. Out: each case by name. Cases wait for what the kernel counts, never for time.
#![allow(clippy::panic, reason = "tests")]

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use weir_lab::{CaseBatch, CaseRun, Lab, LabRun, Places, skip};

use crate::roce::has_weir;
use crate::shared::{Guest, case};

/// Words and functions of the cases.
const COMMON: &str = r#"
export WEIR_HISTORY=off
FIRST=$LAB_DEV_0 SECOND=$LAB_DEV_1 BAD=$LAB_DEV_2
SAID=/tmp/said
ln -sf "$(command -v weir)" /tmp/spdk_nvme_perf

# STATUS WORD...: runs the door by its peer's name; what it says is in $SAID.
perf() {
	want=$1
	shift
	/tmp/spdk_nvme_perf "$@" >$SAID 2>&1
	rc=$?
	[ $rc -eq "$want" ] || { cat $SAID; lab_fail "$*: status $rc, not $want"; }
}

# TEXT
says() {
	grep -q "$1" $SAID || { cat $SAID; lab_fail "no '$1'"; }
}

# DEVICE: its PCI address
address() {
	name=${1#/dev/}
	basename "$(readlink -f "/sys/class/nvme/${name%n1}/device")"
}
"#;

/// The guide's two lines, below one core and below eight.
const SEED: &str = r#"for mask in 0x1 0xff; do
	for size in 1048576 4096; do
		perf 0 -q 16 -o $size -w read -c $mask -t 2
		echo "mask $mask size $size"
		cat $SAID
	done
done"#;

/// Drives by their addresses, and the list of them.
const CHOSEN: &str = r#"perf 0 -q 4 -o 4096 -w randread -t 60 -d 100 -c 0x3 --allowed-pci-addr "$(address $SECOND)"
says "$(address $SECOND)"
grep -q "$(address $FIRST)" $SAID && lab_fail "the other drive is used"
perf 3 -q 4 -o 4096 -w randread -t 60 -d 100 --allowed-pci-addr 0000:ff:1f.7
perf 0 -q 4 -o 4096 -w randread -t 60 -d 100 --enable-vmd
says "$(address $FIRST)"
weir nvme-perf --list >$SAID 2>&1 || { cat $SAID; lab_fail "the list"; }
says "$(address $FIRST).*QEMU NVMe Ctrl"
says "$(address $SECOND)""#;

/// Writes: with consent alone, and never over what somebody uses.
const CONSENT: &str = r#"LINE="-q 4 -o 4096 -w randwrite -t 60 -d 100"
sum() { md5sum <$SECOND; }

# TEXT WORD...: refused with the text, and the drive is as it was.
refused() {
	text=$1
	shift
	before=$(sum)
	perf 2 $LINE "$@" $SECOND
	says "$text"
	[ "$(sum)" = "$before" ] || lab_fail "written in spite of '$text'"
}

refused "destroy $SECOND"
perf 3 -q 4 -o 4096 -w read -t 1 --engine vfio --takeover $SECOND $SECOND
says "no IOMMU keeps it apart"
before=$(sum)
perf 0 $LINE --destroy $SECOND $SECOND
[ "$(sum)" != "$before" ] || lab_fail "nothing is written"
perf 0 $LINE --destroy "$(address $SECOND)" --allowed-pci-addr "$(address $SECOND)"
lab_check mke2fs -q $SECOND >/dev/null
refused "an ext file system" --destroy $SECOND
mkdir -p /tmp/mounted
lab_check mount -t ext4 -o ro $SECOND /tmp/mounted
refused "mounted on ./tmp/mounted" --destroy $SECOND
perf 0 -q 4 -o 4096 -w read -t 60 -d 100 $SECOND
lab_check umount /tmp/mounted
lab_check mkswap $SECOND >/dev/null
lab_check swapon $SECOND
refused "swap" --destroy $SECOND
lab_check swapoff $SECOND
dd if=/dev/zero of=$SECOND bs=1M count=1 conv=fsync 2>/dev/null
perf 0 $LINE --destroy $SECOND $SECOND"#;

/// Reads of bad sectors, which are counted apart.
const ERRORS: &str = r#"perf 1 -q 1 -o 4096 -w read -t 3600 -d 1000 --store-result /out/errors.json $BAD
says "^Read completed with error (errno=61)$"
says "errors occurred$"
perf 1 -q 1 -o 4096 -w read -t 3600 -d 1000 -Q 2 $BAD
says "^Message suppressed 1 times: Read completed with error (errno=61)$"
perf 1 -q 1 -o 4096 -w read -t 3600 -d 1000 -Q 10 $BAD
[ "$(grep -c "^Message suppressed 9 times: Read completed with error (errno=61)$" $SAID)" -eq 1 ] || lab_fail "-Q 10"
says "errors occurred$""#;

/// Commands past the block layer: as many as the drive counts, split where they are longer than one may be; data
/// that come back as they were written; and what takes no commands.
const COMMANDS: &str = r#"GENERIC=/dev/ng${FIRST#/dev/nvme}
# PATTERN: the drive's count of completed commands
count() {
	weir nvme-perf --list | sed -n "s/.*$(address $FIRST).* \([0-9]*\) $1.*/\1/p"
}

# COMMANDS WORD...: reads so many
reads() {
	commands=$1
	shift
	before=$(count reads)
	perf 0 -w randread -t 3600 -c 0x1 --engine uring-cmd "$@" $FIRST
	grown=$(($(count reads) - before))
	[ $grown -eq "$commands" ] || { cat $SAID; lab_fail "$*: $grown commands"; }
}

reads 500 -q 8 -o 4096 -d 500
reads 500 -q 8 -o 4096 -d 500 --polled
# 127 segments, of which one is kept for a buffer that begins within a page: 504 KiB.
reads 60 -q 4 -o 1048576 -d 20
perf 1 -w read -q 1 -o 4096 -t 1 --engine uring-cmd $BAD
says "$BAD is no NVMe namespace"

ln -sf "$(command -v weir)" /tmp/fio
# WORD...: a job on the generic device
job() {
	/tmp/fio --name=a --filename=$GENERIC --ioengine=io_uring_cmd --cmd_type=nvme --size=8m \
		--output-format=normal "$@" >$SAID 2>&1 || { cat $SAID; lab_fail "$*"; }
}
before=$(count writes)
job --rw=randwrite --bs=8k --iodepth=8 --verify=crc32c --fsync=64 --direct=1
[ $(($(count writes) - before)) -eq 1024 ] || lab_fail "other than 1024 writes"
job --rw=randwrite --bs=1m --iodepth=2 --verify=crc32c --hipri=1
job --rw=write --bs=1m --verify=pattern --verify_pattern=0xA5
cmp -s -n 8388608 $FIRST /dev/zero && lab_fail "nothing is written"
job --rw=trim --bs=1m
job --rw=read --bs=1m --fixedbufs=0 --registerfiles=0
/tmp/fio --name=a --filename=$BAD --ioengine=io_uring_cmd --rw=read >$SAID 2>&1 && lab_fail "a disk took commands"
says "takes no NVMe commands"
mke2fs -q $FIRST && mount -t ext4 $FIRST /tmp/mounted || lab_fail "no file system"
/tmp/fio --name=a --filename=$GENERIC --ioengine=io_uring_cmd --rw=write --size=1m >$SAID 2>&1 && lab_fail "written"
says "mounted"
lab_check umount /tmp/mounted
dd if=/dev/zero of=$FIRST bs=1M count=1 conv=fsync 2>/dev/null"#;

/// The whole drive written before it is read: with consent alone, and exactly so often; the heat that ends a run.
const PREPARED: &str = r#"LINE="-q 4 -o 4096 -w randread -t 3600 -d 100 --precondition seq:1x,rand:2x"
sum() { md5sum <$SECOND; }
written() {
	set -- $(cat "/sys/block/${SECOND#/dev/}/stat")
	echo $7
}

before=$(sum)
perf 2 $LINE $SECOND
says "destroy $SECOND"
[ "$(sum)" = "$before" ] || lab_fail "written in spite of no consent"
count=$(written)
perf 0 $LINE --destroy $SECOND --max-temp 200 $SECOND
grown=$(($(written) - count))
[ $grown -eq $((3 * $(cat "/sys/block/${SECOND#/dev/}/size"))) ] || lab_fail "$grown sectors are written"
[ "$(grep -c 'from core  0: ' $SAID)" -eq 1 ] || { cat $SAID; lab_fail "other than one row"; }
perf 0 -q 4 -o 4096 -w randread -t 3600 --max-temp 20 --store-result /out/hot.json $SECOND
says "WARNING: $SECOND has .* °C, and 20 °C end the run""#;

/// A drive that goes while it is read. It comes last.
const REMOVED: &str = r#"name=${SECOND#/dev/}
read -r before rest </sys/block/$name/stat
/tmp/spdk_nvme_perf -q 4 -o 4096 -w randread -t 5 $SECOND >$SAID 2>&1 &
until read -r now rest </sys/block/$name/stat && [ "$now" -gt $((before + 20)) ]; do
	kill -0 $! || { cat $SAID; lab_fail "it ended before it read"; }
done
echo 1 >/sys/class/nvme/${name%n1}/device/remove
wait $!
rc=$?
[ $rc -eq 1 ] || { cat $SAID; lab_fail "status $rc"; }
says "Read completed with error"
perf 0 -q 4 -o 4096 -w randread -t 60 -d 100"#;

fn cases() -> CaseBatch {
    let cases = [
        ("seed", SEED),
        ("chosen", CHOSEN),
        ("consent", CONSENT),
        ("errors", ERRORS),
        ("commands", COMMANDS),
        ("prepared", PREPARED),
        ("removed", REMOVED),
    ];
    cases
        .iter()
        .fold(CaseBatch::default(), |batch, (name, script)| {
            batch.case(name, &format!("{COMMON}\n{script}"))
        })
}

/// Boots the guest.
pub(crate) fn boot() -> Result<(LabRun, Vec<CaseRun>)> {
    has_weir(&Places::find()?)?;
    Lab::new()?
        .processors(8)
        .timeout(Duration::from_secs(600))
        .append("nvme.poll_queues=1")
        .dev("nvme:size=64M")
        .dev("nvme:size=64M")
        .dev(
            "scsi-debug:dev_size_mb=64,delay=0,opts=2,medium_error_start=4660,medium_error_count=80",
        )
        .batch(&cases())
}

/// A case that is good; none where no guest can be booted.
fn good(name: &str) -> Result<Option<(&'static LabRun, &'static str)>> {
    let Some((run, case)) = case(Guest::Nvme, name)? else {
        return Ok(None);
    };
    if case.skipped() {
        skip(name, &case.output);
        return Ok(None);
    }
    Ok(Some((run, case.good()?)))
}

#[test]
fn the_guides_lines_have_a_row_for_each_core_and_drive() -> Result<()> {
    let Some((_, said)) = good("seed")? else {
        return Ok(());
    };
    let mut runs = said.split("mask ").skip(1);
    for (mask, rows) in [("0x1", 2_u8), ("0xff", 8)] {
        for size in [1_048_576, 4096] {
            let said = runs.next().context("a run")?;
            ensure!(said.starts_with(&format!("{mask} size {size}\n")), "{said}");
            let (_, table) = said.split_once("Device Information").context("a table")?;
            let rows_of = table.lines().filter(|line| line.starts_with("PCIE ("));
            ensure!(
                rows_of.clone().count() == usize::from(rows),
                "{mask}: {said}"
            );
            let mut sum = 0.0;
            for line in rows_of {
                let (name, figures) = line.rsplit_once(": ").context("figures")?;
                ensure!(
                    name.contains(" [1b36:0010] NSID 1 from core "),
                    "{name}: {said}"
                );
                let figures = figures.split_whitespace().map(str::parse);
                let figures = figures.collect::<Result<Vec<f64>, _>>()?;
                let [iops, mib, average, min, max] = figures[..] else {
                    panic!("{line}")
                };
                let expected = iops * f64::from(size) / 1_048_576.0;
                let rounding = 0.005 + 0.005 * f64::from(size) / 1_048_576.0;
                ensure!((mib - expected).abs() <= rounding + 1e-6, "{line}");
                ensure!(0.0 < min && min <= average && average <= max, "{line}");
                sum += iops;
            }
            let total = table.lines().find(|line| line.starts_with("Total"));
            let total = total.and_then(|line| line.rsplit_once(": ")?.1.split_whitespace().next());
            let total: f64 = total.context("a total")?.parse()?;
            ensure!(
                (total - sum).abs() <= 0.005 * (f64::from(rows) + 1.0),
                "{said}"
            );
        }
    }
    Ok(())
}

#[test]
fn a_drive_that_is_chosen_is_the_only_one() -> Result<()> {
    good("chosen").map(drop)
}

#[test]
fn a_drive_is_written_with_consent_and_never_where_somebody_uses_it() -> Result<()> {
    good("consent").map(drop)
}

#[test]
fn bad_sectors_are_counted_apart_and_said() -> Result<()> {
    let Some((run, _)) = good("errors")? else {
        return Ok(());
    };
    let result = run.json("errors.json")?;
    let worker = &result["groups"][0]["jobs"][0]["outcome"]["workers"][0];
    let kind = &worker["kinds"][0];
    ensure!(
        kind["issued"] == 1000 && kind["operations"] == 989,
        "{kind}"
    );
    Ok(())
}

#[test]
fn commands_are_those_that_the_drive_counts() -> Result<()> {
    good("commands").map(drop)
}

#[test]
fn a_drive_is_written_whole_before_it_is_read_and_heat_ends_a_run() -> Result<()> {
    let Some((run, _)) = good("prepared")? else {
        return Ok(());
    };
    let result = run.json("hot.json")?;
    ensure!(result["complete"] == false, "{}", result["complete"]);
    ensure!(
        result["warnings"].to_string().contains("too-hot"),
        "{}",
        result["warnings"]
    );
    Ok(())
}

#[test]
fn reads_of_a_drive_that_is_removed_fail_to_the_end_of_the_run() -> Result<()> {
    good("removed").map(drop)
}
