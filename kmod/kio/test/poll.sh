# Polled completion: no interrupts, no lost I/O, and a refusal that says what is missing.
. /lab/common.sh
load

interrupts() {
	awk '/nvme0q1/ { for (i = 2; i <= NF && $i ~ /^[0-9]+$/; i++) s += $i } END { print s + 0 }' \
		/proc/interrupts
}

for device in $NVME $NULL; do
	for depth in 1 16; do
		before=$(interrupts)
		client 0 run device=$device complete=2 cpu=0 queue_depth=$depth runtime_ms=200 \
			offset_random=1
		check_books 0
		check "$(value job0.read ios)" -gt 0 "polled I/Os"
		check "$(value job0 polls)" -gt 0 polls
		check "$(interrupts)" -eq "$before" "interrupts while polling $device"
	done
done
# More in flight than there are tags: refused ones are sent again, none is lost.
tags=$(cat /sys/block/${NULL#/dev/}/queue/nr_requests)
client 0 run device=$NULL complete=2 queue_depth=$((tags * 4)) limit_ios=20000 runtime_ms=0
check "$(value job0.read ios)" -eq 20000 "I/Os with more depth than tags"
client 0 run device=$NVME complete=2 queue_depth=1024 limit_ios=3000 runtime_ms=0 op=2 offset_random=1
check "$(value job0.write ios)" -eq 3000 "writes with more depth than tags"
client 2 run device=$NOPOLL complete=2
lab_check grep -q 'field=18 .*EOPNOTSUPP message=.*poll_queues' $GOT
unload
