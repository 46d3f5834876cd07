//! The module xdma-emu in guests: the nodes of a DMA card, and weir's job files on them.
//!
//! In: the sources of `lab/kmod/xdma-emu`, weir's release build. Out: each case by name. The older kernel runs
//! every case but the rates, which the newer one measures where guests count instructions. Cases wait for what
//! the module says, never for time.
#![allow(clippy::panic, reason = "tests")]

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use weir_lab::{Accel, CaseBatch, CaseRun, LabRun, Places, or_skip, skip};

use crate::roce::has_weir;
use crate::shared::{Guest, case, lab_of, static_program};

const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/kmod/xdma-emu");

/// Words and functions of the cases.
const COMMON: &str = r#"
export WEIR_HISTORY=off
NODES=/sys/class/xdma
PARAMETERS=/sys/module/xdma_emu/parameters
SAID=/tmp/said
ln -sf "$(command -v weir)" /tmp/fio
mkdir -p /tmp/work
cd /tmp/work

# The kernel may close a file of a process that is gone a little later.
unload() {
	until [ "$(cat /sys/module/xdma_emu/refcnt)" = 0 ]; do :; done
	lab_check rmmod xdma_emu
}

# PARAMETER=VALUE...: a new card
load() {
	[ ! -d /sys/module/xdma_emu ] || unload
	lab_check insmod /lab/xdma-emu.ko "$@"
}

# STATUS WORD...: runs weir by fio's name; what it says is in $SAID.
fio() {
	want=$1
	shift
	/tmp/fio "$@" >$SAID 2>&1
	rc=$?
	[ $rc -eq "$want" ] || { cat $SAID; lab_fail "$*: status $rc, not $want"; }
}

# TEXT
says() {
	grep -q -- "$1" $SAID || { cat $SAID; lab_fail "no '$1'"; }
}

# TEXT COUNT
says_times() {
	found=$(grep -c -- "$1" $SAID)
	[ "$found" -eq "$2" ] || { cat $SAID; lab_fail "'$1' $found times, not $2"; }
}

# NODE ATTRIBUTE TEXT
is() {
	found=$(cat "$NODES/$1/$2")
	[ "$found" = "$3" ] || lab_fail "$2 of $1: $found, not $3"
}

# NODE FAULT
arm() {
	echo "$2" >"$NODES/$1/fault" || lab_fail "$2 is refused"
}

# ERRNO WORD...: a call of the client that fails so
errno() {
	want=$1
	shift
	found=$(xdma-client "$@") && lab_fail "$*: no error"
	[ "$found" = "$want" ] || lab_fail "$*: errno $found, not $want"
}

# NODE: a fault has happened
until_hit() {
	until grep -q "hit=1" "$NODES/$1/fault"; do :; done
}
"#;

/// X1: the wrong direction moves nothing, and weir says so.
const DIRECTIONS: &str = r#"load
errno 22 pread /dev/xdma0_h2c_0 0 4096
head -c 4096 /lab/xdma-emu.ko >page
errno 22 pwrite /dev/xdma0_c2h_0 0 <page
fio 1 --name=a --filename=/dev/xdma0_h2c_0 --rw=read --bs=4k --size=64k --ioengine=psync
says "/dev/xdma0_h2c_0 does not accept reads (wrong direction?)"
fio 1 --name=a --filename=/dev/xdma0_c2h_0 --rw=write --bs=4k --size=64k --ioengine=psync
says "/dev/xdma0_c2h_0 does not accept writes (wrong direction?)"
is xdma0_h2c_0 bytes 0
is xdma0_c2h_0 bytes 0
xdma-client pread /dev/xdma0_c2h_0 0 4096 | cmp -n 4096 - /dev/zero || lab_fail "something is written""#;

/// X2: plain calls of xdma do not move the position, those of edma do.
const POSITIONS: &str = r#"load edma=1
head -c 8192 /lab/xdma-emu.ko >a
lab_check dd if=a of=/dev/xdma0_h2c_0 bs=4096 count=2 2>/dev/null
tail -c 4096 a >want
head -c 4096 /dev/zero >>want
xdma-client pread /dev/xdma0_c2h_0 0 8192 | cmp - want || lab_fail "not the second block at 0 alone"
lab_check dd if=a of=/dev/edma0_queue_0 bs=4096 count=2 2>/dev/null
dd if=/dev/edma0_queue_0 bs=4096 count=2 2>/dev/null | cmp - a || lab_fail "edma's position""#;

/// X3: one memory for all channels, 64 GiB long, with a limit of what is stored.
const MEMORY: &str = r#"load cards=2 max_mem_mb=8
head -c 1000000 /lab/xdma-emu.ko >a
size=$(wc -c <a)
lab_check xdma-client pwrite /dev/xdma0_h2c_1 17179869184 <a
xdma-client pread /dev/xdma0_c2h_3 17179869184 $size | cmp - a || lab_fail "other data"
xdma-client pread /dev/xdma0_c2h_3 17181966336 65536 | cmp -n 65536 - /dev/zero || lab_fail "a hole"
xdma-client pread /dev/xdma1_c2h_0 17179869184 65536 | cmp -n 65536 - /dev/zero || lab_fail "the other card"
head -c 12582912 /dev/zero >long
errno 28 pwrite /dev/xdma0_h2c_0 0 <long
fio 1 --name=a --filename=/dev/xdma1_h2c_0 --rw=write --bs=1m --filesize=64g --size=16g --ioengine=psync
says "/dev/xdma1_h2c_0: No space left on device""#;

/// X4: all job files of `weir new xdma` as they are, with timers and with threads that spin.
const JOBS: &str = r#"# DIRECTION OPERATIONS MIB: each channel has moved this.
moved() {
	for channel in 0 1 2 3; do
		is xdma0_$1_$channel ops $2
		is xdma0_$1_$channel bytes $(($3 << 20))
		is xdma0_$1_$channel errors 0
	done
}

# FILE H2C-OPERATIONS H2C-MIB C2H-OPERATIONS C2H-MIB
job() {
	for node in $NODES/xdma0_*; do
		echo 0 >$node/ops
		echo 0 >$node/bytes
	done
	fio 0 --store-result /out/job.json jobs/xdma_4-ch_$1.fio
	grep -q '"poll_mode": *"'$mode'"' /out/job.json || lab_fail "weir does not say poll_mode=$mode"
	moved h2c $2 $3
	moved c2h $4 $5
}

weir new xdma --memory 64m -o jobs >/dev/null && weir new xdma --memory 64m --size X -o jobs >/dev/null &&
	weir new xdma --memory 64m --size var -o jobs >/dev/null &&
	weir new xdma --memory 64m --driver edma -o jobs >/dev/null || lab_fail "no job files"
for mode in 0 1; do
	load edma=1 poll_mode=$mode
	job 4-1M_write 16 16 0 0
	job 4-1M_read 0 0 16 16
	job 4-1M_verify 16 16 16 16
	job 4-X_write 2904 96 0 0
	job 4-X_read 0 0 2904 96
	[ $mode -eq 0 ] || break
	job 4_var_write 4096 16 0 0
	job 4_var_read 0 0 4096 16
	job 4_var_verify 4096 16 4096 16
	for file in write read verify; do
		fio 0 jobs/edma_4-ch_4-1M_$file.fio
	done
	is edma0_queue_3 ops 64
done"#;

/// A thread of the module spins where it is asked to, and at no other time.
const POLLING: &str = r#"load
thread=$(grep -l "^xdma_poll/0$" /proc/[0-9]*/comm)
thread=${thread#/proc/} thread=${thread%/comm}
switches() { sed -n 's/^voluntary_ctxt_switches:[^0-9]*//p' /proc/$thread/status; }
echo 1000000 >$NODES/xdma0_c2h_0/latency_ns
for node in $NODES/xdma0_*; do echo 1000000 >$node/latency_ns; done
for mode in 0 1; do
	echo $mode >$PARAMETERS/poll_mode
	before=$(switches)
	for channel in 0 1 2 3; do
		xdma-client pread /dev/xdma0_c2h_$channel 0 4096 >/dev/null || lab_fail "mode $mode"
	done
	woken=$(($(switches) - before))
	[ $mode -eq 0 ] || [ $woken -ge 4 ] || lab_fail "it does not spin"
	[ $mode -eq 1 ] || [ $woken -eq 0 ] || lab_fail "it spins"
done"#;

/// X5: a flipped bit is found, with its device and its place, in either direction.
const FLIPPED: &str = r#"load
weir new xdma --memory 64m -o jobs >/dev/null
# NODE
flipped() {
	arm $1 flip@35656584:6
	fio 1 jobs/xdma_4-ch_4-1M_verify.fio
	is $1 fault "flip@35656584:6 hit=1"
	says "fio: verify-phase-2: /dev/xdma0_c2h_2: the data at offset 35651584 is not what was written .*bit flip, 1 bit from byte 5000 on"
	says_times "err= 0" 7
}
flipped xdma0_c2h_2
fio 0 jobs/xdma_4-ch_4-1M_verify.fio
flipped xdma0_h2c_2"#;

/// X6: what is short is continued, what fails and what hangs is named.
const FAULTS: &str = r#"load c2h_timeout=1
weir new xdma --memory 64m --mode read -o jobs >/dev/null
arm xdma0_c2h_2 short@3
fio 0 jobs/xdma_4-ch_4-1M_read.fio
says_times "total=16,0,0,0 short=1,0,0,0" 1
says_times "total=16,0,0,0 short=0,0,0,0" 3
is xdma0_c2h_2 ops 17
is xdma0_c2h_2 bytes 16777216
is xdma0_c2h_2 fault "short@3 hit=1"
failed() {
	arm xdma0_c2h_2 $1@3
	fio 1 --output-format=normal,json --output=/out/$1.json jobs/xdma_4-ch_4-1M_read.fio
	cat /out/$1.json >>$SAID
	says "err= *$2 (\?.*/dev/xdma0_c2h_2.*$3"
	says "read of 1048576 bytes at offset 35651584 of /dev/xdma0_c2h_2: $3"
	says_times "err= 0" 3
}
failed eio 5 "Input/output error"
failed hang 110 "Connection timed out"
is xdma0_c2h_2 errors 2
arm xdma0_c2h_0 short@1
errno 5 pread /dev/xdma0_c2h_0 0 4096"#;

/// Answers of drivers that the other cases do not see.
const FACTS: &str = r#"load
for node in /dev/xdma0_h2c_0 /dev/xdma0_c2h_3; do
	[ "$(stat -c '%A %g' $node)" = "crw-rw---- 6" ] || lab_fail "$(stat $node)"
done
[ "$(stat -c %T /dev/xdma0_h2c_1) $(stat -c %T /dev/xdma0_c2h_2)" = "21 26" ] || lab_fail "minors"
lab_check xdma-client facts 0 1
exec 3<>/dev/xdma0_h2c_0
rmmod xdma_emu 2>/dev/null && lab_fail "unloaded in use"
exec 3>&-
load align=64
lab_check xdma-client facts 0 64
# A signal ends a wait that has a time-out.
arm xdma0_c2h_0 hang@1
errno 110 interrupted /dev/xdma0_c2h_0
for word in flip flip@ flip@x flip@1:8 short@0 eio@1:2 hang@ bogus@1 none@1 eio@1@2; do
	echo $word 2>/dev/null >$NODES/xdma0_h2c_0/fault && lab_fail "$word is taken"
done
is xdma0_h2c_0 fault "none hit=0"
for word in flip@4096 flip@0x1000:7 short@2 eio@1 hang@9; do
	arm xdma0_h2c_0 $word
	is xdma0_h2c_0 fault "$word hit=0"
done
arm xdma0_h2c_0 none
is xdma0_h2c_0 fault "none hit=0"
echo 5 2>/dev/null >$NODES/xdma0_h2c_0/ops && lab_fail "a counter is set"
insmod /lab/xdma-emu.ko 2>/dev/null && lab_fail "loaded twice"
lab_check rmmod xdma_emu
for word in cards=0 channels=5 align=3 mem_bytes=0; do
	insmod /lab/xdma-emu.ko $word 2>/dev/null && lab_fail "$word is taken"
done
load channels=1 mem_bytes=65536
[ ! -e /dev/xdma0_h2c_1 ] || lab_fail "a second channel"
errno 5 pread /dev/xdma0_c2h_0 65536 4096
for engine in libaio io_uring; do
	/tmp/fio --name=w --filename=/dev/xdma0_h2c_0 --ioengine=$engine --rw=randwrite --bs=4k --iodepth=4 \
		--filesize=64k --verify=crc32c --do_verify=0 --name=r --wait_for=w --filename=/dev/xdma0_c2h_0 \
		--ioengine=$engine --rw=randread --bs=4k --iodepth=4 --filesize=64k --verify=crc32c >$SAID 2>&1 ||
		{ cat $SAID; lab_fail "$engine"; }
done
is xdma0_h2c_0 ops 32"#;

/// X8: fsync, which edma alone has; posted writes.
const POSTED: &str = r#"load edma=1 h2c_timeout=0
errno 22 fsync /dev/xdma0_h2c_0
arm edma0_queue_0 eio@1
# Fails with EIO at first; the second, which the client asks for itself, is good.
[ "$(xdma-client fsync /dev/edma0_queue_0 0 4096)" = 5 ] || lab_fail "no EIO, or EIO twice"
lab_check xdma-client fsync /dev/edma0_queue_0 0 4096
is edma0_queue_0 errors 1
is edma0_queue_0 ops 1
head -c 4096 /lab/xdma-emu.ko >a
head -c 4096 /dev/zero >zeros
for mode in 0 1; do
	echo $mode >$PARAMETERS/poll_mode
	echo 1000000 >$NODES/edma0_queue_1/latency_ns
	lab_check xdma-client pwrite /dev/edma0_queue_1 $((mode * 4096)) <a
	xdma-client pread /dev/edma0_queue_1 $((mode * 4096)) 4096 | cmp - a || lab_fail "its own write"
done
# What hangs is never stored, and what is behind it neither.
arm edma0_queue_2 hang@1
lab_check xdma-client pwrite /dev/edma0_queue_2 1048576 <a
until_hit edma0_queue_2
lab_check xdma-client pwrite /dev/edma0_queue_2 2097152 <a
xdma-client pread /dev/xdma0_c2h_0 2097152 4096 | cmp - zeros || lab_fail "stored out of order"
xdma-client fsync /dev/edma0_queue_2 &
kill -9 $!
wait $!
load"#;

/// X9: cycles, and a kill in a transfer that hangs for ever.
const CYCLES: &str = r#"free_pages() {
	echo 3 >/proc/sys/vm/drop_caches
	sed -n 's/^MemAvailable: *\([0-9]*\).*/\1/p' /proc/meminfo
}
weir new xdma --memory 4m --mode verify -o small >/dev/null
cycle=0
while [ $cycle -lt "$CYCLES" ]; do
	load edma=1 c2h_timeout=0 poll_mode=$((cycle % 2))
	[ $((cycle % 8)) -ne 0 ] || fio 0 small/xdma_4-ch_4-1M_verify.fio
	lab_check xdma-client pwrite /dev/edma0_queue_0 0 </lab/xdma-emu.ko
	arm xdma0_c2h_0 hang@1
	xdma-client pread /dev/xdma0_c2h_0 0 4096 &
	client=$!
	until_hit xdma0_c2h_0
	kill -9 $client
	wait $client
	[ ! -d /proc/$client ] || lab_fail "the process stays"
	xdma-client pread /dev/xdma0_c2h_0 0 4096 >/dev/null || lab_fail "the channel does not recover"
	unload
	cycle=$((cycle + 1))
	[ $cycle -ne 2 ] || before=$(free_pages)
done
lost=$((before - $(free_pages)))
# A cycle stores 4 MiB, or the file of the module.
[ $lost -lt $((CYCLES * 512)) ] || lab_fail "$lost KiB lost in $CYCLES cycles""#;

/// X7: channels have their own rate, and what is on one channel shares it.
const RATES: &str = r#"load
for node in $NODES/xdma0_*; do echo 50000000 >$node/bytes_per_s; done
# NAME CHANNEL...: a worker on each of the channels
rates() {
	name=$1
	shift
	{
		printf '[global]\nioengine=psync\nrw=write\nbs=1000000\nsize=10000000\n'
		for channel in "$@"; do
			printf '[w]\nfilename=/dev/xdma0_h2c_%s\n' $channel
		done
	} >rates.fio
	fio 0 --output-format=json --output=/out/rates-$name.json rates.fio
}
rates one 0
rates four 0 1 2 3
rates shared 0 0"#;

/// A hang ends when its time-out says so.
const TIMED_OUT: &str = r#"load c2h_timeout=1
arm xdma0_c2h_2 hang@3
fio 1 --name=r --filename=/dev/xdma0_c2h_2 --ioengine=psync --rw=read --bs=1m --size=8m --output-format=json --output=/out/hang.json
says "Connection timed out""#;

const CASES: [(&str, &str); 10] = [
    ("directions", DIRECTIONS),
    ("positions", POSITIONS),
    ("memory", MEMORY),
    ("jobs", JOBS),
    ("polling", POLLING),
    ("flipped", FLIPPED),
    ("faults", FAULTS),
    ("facts", FACTS),
    ("posted", POSTED),
    ("cycles", CYCLES),
];
const CASES_THAT_COUNT: [(&str, &str); 4] = [
    ("rates", RATES),
    ("timed-out", TIMED_OUT),
    ("facts", FACTS),
    ("cycles", CYCLES),
];

/// Boots one of the two guests.
pub(crate) fn boot(guest: Guest) -> Result<(LabRun, Vec<CaseRun>)> {
    has_weir(&Places::find()?)?;
    let (series, accel, cases, cycles) = match guest {
        Guest::Xdma => ("6.1.", Accel::Auto, &CASES[..], 20),
        _ => ("6.12.", Accel::Icount, &CASES_THAT_COUNT[..], 3),
    };
    let client = static_program(&Path::new(MODULE).join("test/xdma-client.c"))?;
    let batch = cases
        .iter()
        .fold(CaseBatch::default(), |batch, (name, script)| {
            batch.case(name, &format!("CYCLES={cycles}\n{COMMON}\n{script}"))
        });
    lab_of(series)?
        .accel(accel)
        .paranoid(matches!(guest, Guest::Xdma))
        .module(MODULE)
        .file(client, "lab/xdma-client")
        .timeout(Duration::from_secs(600))
        .batch(&batch)
}

/// A case that is good; none where no guest can be booted.
fn good_in(guest: Guest, name: &str) -> Result<Option<&'static LabRun>> {
    let Some((run, case)) = case(guest, name)? else {
        return Ok(None);
    };
    if case.skipped() {
        skip(name, &case.output);
        return Ok(None);
    }
    case.good()?;
    Ok(Some(run))
}

fn good(name: &str) -> Result<()> {
    good_in(Guest::Xdma, name).map(drop)
}

#[test]
fn x1_a_channel_refuses_the_other_direction_and_weir_says_so() -> Result<()> {
    good("directions")
}

#[test]
fn x2_plain_writes_go_to_one_address_of_xdma_and_move_on_with_edma() -> Result<()> {
    good("positions")
}

#[test]
fn x3_all_channels_of_a_card_see_one_memory_with_holes_and_a_limit() -> Result<()> {
    good("memory")
}

#[test]
fn x4_every_job_file_runs_as_it_is_and_channels_count_what_it_moves() -> Result<()> {
    good("jobs")
}

#[test]
fn x4_a_thread_spins_for_transfers_with_poll_mode_alone() -> Result<()> {
    good("polling")
}

#[test]
fn x5_a_flipped_bit_is_found_with_its_device_and_offset() -> Result<()> {
    good("flipped")
}

#[test]
fn x6_short_transfers_are_continued_and_failed_ones_named() -> Result<()> {
    good("faults")
}

#[test]
fn x6_a_transfer_that_hangs_is_given_up_after_its_time_out() -> Result<()> {
    let Some(run) = good_in(Guest::XdmaCounting, "timed-out")? else {
        return Ok(());
    };
    let took = jobs(run, "hang.json")?
        .first()
        .and_then(|job| job["job_runtime"].as_f64())
        .context("a runtime")?;
    ensure!((1000.0..2000.0).contains(&took), "{took} ms");
    Ok(())
}

#[test]
fn x8_fsync_waits_for_posted_writes_and_says_once_what_failed() -> Result<()> {
    good("posted")
}

#[test]
fn x9_loads_runs_and_kills_leave_nothing_behind() -> Result<()> {
    good("cycles")?;
    good_in(Guest::XdmaCounting, "cycles").map(drop)
}

#[test]
fn nodes_answer_calls_as_the_driver_does() -> Result<()> {
    good("facts")?;
    good_in(Guest::XdmaCounting, "facts").map(drop)
}

/// Jobs of fio's report.
fn jobs(run: &LabRun, name: &str) -> Result<Vec<Value>> {
    let report = run.json(name)?;
    Ok(report["jobs"].as_array().context("jobs")?.clone())
}

#[test]
fn x7_each_channel_has_its_rate_and_its_jobs_share_it() -> Result<()> {
    let Some(run) = good_in(Guest::XdmaCounting, "rates")? else {
        return Ok(());
    };
    // 10 MB at 50 MB/s.
    for (name, workers, wanted) in [("one", 1, 200.0), ("four", 4, 200.0), ("shared", 2, 400.0)] {
        let jobs = jobs(run, &format!("rates-{name}.json"))?;
        ensure!(jobs.len() == workers, "{name}: {} jobs", jobs.len());
        for job in jobs {
            let took = job["write"]["runtime"].as_f64().context("a runtime")?;
            ensure!(
                (0.8 * wanted..=1.2 * wanted).contains(&took),
                "{name}: {took} ms"
            );
            ensure!(job["write"]["io_bytes"] == 10_000_000, "{name}: {job}");
        }
    }
    Ok(())
}

#[test]
fn the_module_builds_without_a_warning_on_both_series() -> Result<()> {
    for series in ["6.1.", "6.12."] {
        let built = lab_of(series).and_then(|lab| lab.build(MODULE));
        if let Some(built) = or_skip("xdma-emu builds", built)? {
            ensure!(built.warnings().is_empty(), "{}", built.log);
        }
    }
    Ok(())
}
