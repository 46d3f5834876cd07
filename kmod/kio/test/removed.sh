# A device that goes away in a run ends the job, at once and whole.
. /lab/common.sh
load

gone() {
	wait $run
	rc=$?
	[ $rc -eq 1 ] || { cat $GOT; lab_fail "$1: status $rc, not 1"; }
	check "$(value job0 inflight)" -eq 0 "$1: in flight"
	check "$(($(value job0.read errors) + $(value job0.write errors)))" -gt 0 "$1: errors"
}

for mode in 2 0; do
	mkdir /sys/kernel/config/nullb/kiogone
	echo $mode >/sys/kernel/config/nullb/kiogone/queue_mode
	echo 64 >/sys/kernel/config/nullb/kiogone/size
	echo 1 >/sys/kernel/config/nullb/kiogone/power
	kio-client run device=/dev/kiogone runtime_ms=60000 queue_depth=16 read_mix_percent=50 \
		error_limit=0 >$GOT &
	run=$!
	sleep 0.3
	echo 0 >/sys/kernel/config/nullb/kiogone/power
	gone "null_blk mode $mode"
	check "$(value job0 error)" -eq -19 "ENODEV"
	rmdir /sys/kernel/config/nullb/kiogone
done
kio-client run device=$SCSI runtime_ms=60000 queue_depth=16 offset_high=1048576 error_limit=0 >$GOT &
run=$!
sleep 0.3
echo 1 >/sys/block/${SCSI#/dev/}/device/delete
gone "scsi_debug"
client 0 run device=$NULL runtime_ms=50
unload
