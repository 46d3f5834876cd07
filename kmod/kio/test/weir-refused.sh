# What weir kio says and ends with when something is in the way.
. /lab/common.sh
need_weir
export WEIR_HISTORY=off

# STATUS TEXT WORD...
ends() {
	want=$1 text=$2
	shift 2
	weir kio "$@" >$GOT 2>&1
	rc=$?
	[ $rc -eq "$want" ] || { cat $GOT; lab_fail "weir kio $*: status $rc, not $want"; }
	grep -q "$text" $GOT || { cat $GOT; lab_fail "weir kio $*: nothing of $text"; }
}

ends 3 'weir kio load' --engine kernel --device $NULL --runtime 1
load
# In use, interrupted, killed.
weir kio --engine kernel --device $NULL --runtime 3 >$GOT 2>&1 &
run=$!
sleep 1.5
rmmod kio 2>/dev/null && lab_fail "rmmod in a run succeeds"
lab_check wait $run
weir kio --engine kernel --device $NULL --runtime 60 >$GOT 2>&1 &
run=$!
sleep 2
kill -TERM $run
wait $run
check $? -eq 143 "status of an interrupted run"
weir kio --engine kernel --device $NULL --runtime 60 >$GOT 2>&1 &
run=$!
sleep 2
kill -KILL $run
wait $run
tries=0
while grep -q '^kio\[' /proc/[0-9]*/comm 2>/dev/null; do
	tries=$((tries + 1))
	[ $tries -lt 100 ] || lab_fail "threads are left"
	sleep 0.1
done
# Held.
lab_check mke2fs -q $RAM >/dev/null
mkdir -p /tmp/mounted
lab_check mount -t ext4 $RAM /tmp/mounted
ends 2 /tmp/mounted --engine kernel --device $RAM --read-mix-percent 0 --runtime 1 --force
umount /tmp/mounted
dd if=/dev/zero of=$RAM bs=1M count=1 conv=fsync 2>/dev/null
# Polling.
good --engine kernel --device $NVME --complete poll --cpus 0 --runtime 1
ends 3 poll_queues --engine kernel --device $NOPOLL --complete poll --cpus 0 --runtime 1
# Errors of the device.
ends 1 MEDIUM --engine kernel --device $SCSI --offset-low 2310144 --offset-high 2457600 --ios 36
ends 1 IOERR --engine kernel --device $BROKEN --ios 10
unload
