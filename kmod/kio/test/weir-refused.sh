# What weir kio says and ends with when something is in the way.
. /lab/common.sh
need_weir
export WEIR_HISTORY=off

ends 3 'weir kio load' --engine kernel --device $NULL --runtime 1
load
# In use and interrupted, killed.
weir kio --voice peer --engine kernel --device $NULL --runtime 60 >$GOT 2>&1 &
run=$!
until_threads 1
rmmod kio 2>/dev/null && lab_fail "rmmod in a run succeeds"
kill -TERM $run
wait $run
check $? -eq 143 "status of an interrupted run"
lab_check grep -q 'engine: kernel/bio' $GOT
weir kio --engine kernel --device $NULL --runtime 60 >$GOT 2>&1 &
run=$!
until_threads 1
kill -KILL $run
wait $run
until_threads 0
# Held, by whom: the message says so, whatever the engine and with --force too.
held() {
	for engine in kernel uring; do
		ends 2 "$1" --engine $engine --device $RAM --read-mix-percent 0 --runtime 1 --force
	done
}
lab_check mke2fs -q $RAM >/dev/null
mkdir -p /tmp/mounted
lab_check mount -t ext4 $RAM /tmp/mounted
held "$RAM is mounted on ./tmp/mounted"
umount /tmp/mounted
lab_check mkswap $RAM >/dev/null
lab_check swapon $RAM
held "$RAM is in use as swap"
swapoff $RAM
dmsetup create kioheld --noudevsync --table "0 131072 linear $RAM 0" || lab_fail "no mapped device"
held "$RAM is part of"
lab_check grep -q 'kioheld\|dm-' $GOT
dmsetup remove --noudevsync kioheld || lab_fail "the mapped device stays"
dd if=/dev/zero of=$RAM bs=1M count=1 conv=fsync 2>/dev/null
# More buffers than the module may have: once, for all threads, with the way out.
limit=/sys/module/kio/parameters/max_mem_mb
usual=$(cat $limit)
echo 8 >$limit
ends 3 "write a larger number into $limit" --engine kernel --device $NULL --num-threads 4 --queue-depth 64 --block-size 64k --runtime 1
check "$(grep -c 'of buffers at a time' $GOT)" -eq 1 "refusals for one limit"
echo $usual >$limit
# Polling.
good --engine kernel --device $NVME --complete poll --cpus 0 --runtime 1
ends 3 poll_queues --engine kernel --device $NOPOLL --complete poll --cpus 0 --runtime 1
# Errors of the device.
ends 1 MEDIUM --engine kernel --device $SCSI --offset-low 2310144 --offset-high 2457600 --ios 36
ends 1 IOERR --engine kernel --device $BROKEN --ios 10
unload
