# Many runs of one load: numbers of jobs, sizes of blocks, kinds of I/O, ways to wait.
. /lab/common.sh
load
for run in "512" "4096 --" "65536 -- -- --" "1048576" "16777216" "512 -- -- --"; do
	size=${run%% *}
	client 0 run device=$NULL runtime_ms=30 block_size=$size offset_stride=$run
	check_books 0
	check "$(value job0.read ios)" -gt 0 "I/Os of $size bytes"
	check "$(value job0.read bytes)" -eq "$(($(value job0.read ios) * size))" bytes
done
for how in batch=8 complete=1 flags=8 flags=2 "batch=16 read_mix_percent=30" \
	"burst_finish=1 read_mix_percent=50 read_burst=7 write_burst=3" \
	"op=2 data=0" "op=2 flags=1" "op=4" "offset_stride=-4096" "offset_random=1 align=512"; do
	client 0 run device=$NULL queue_depth=16 limit_ios=3000 runtime_ms=0 $how
	check_books 0
	check "$(($(value job0.read ios) + $(value job0.write ios)))" -eq 3000 "limit with $how"
	check "$(value job0 issued)" -eq 3000 "issued with $how"
done
# Trim, on a device that can.
mkdir /sys/kernel/config/nullb/kiotrim
cd /sys/kernel/config/nullb/kiotrim
for set in memory_backed=1 discard=1 size=64 power=1; do echo ${set#*=} >${set%=*}; done
cd /
client 0 run device=/dev/kiotrim op=3 limit_ios=100 runtime_ms=0 block_size=65536 offset_stride=65536
check "$(value job0.write ios)" -eq 100 trims
rmdir /sys/kernel/config/nullb/kiotrim
client 2 run device=$NVME op=9
lab_check grep -q 'field=17 .*op value 9' $GOT
# A ramp is not counted, intervals are; a stop ends a run early.
client 0 run device=$SLOW runtime_ms=200 ramp_ms=100 interval_ms=50 show=series
check "$(value job0.read ios)" -lt "$(value job0 issued)" "ramp"
check "$(grep -c ^interval $GOT)" -ge 3 intervals
check "$(awk '/^interval/ {split($3, n, "="); s += n[2]} END {print s + 0}' $GOT)" -le \
	"$(value job0.read ios)" "I/Os of intervals"
# Nor does what the thread did in a ramp count: it spins, and a tick is all that is not known.
client 0 run device=$NULL complete=1 runtime_ms=100 ramp_ms=500
check "$(value job0 cpu_ns)" -le "$(($(value job0 runtime) + 50000000))" "CPU time without the ramp"
client 0 run device=$SLOW runtime_ms=60000 stop_ms=100 -- device=$NULL
check_books 0
check_books 1
# Limits of bytes, and the session again and again.
client 0 run device=$NULL runtime_ms=0 limit_bytes=1000000 again=3
check "$(value job0.read ios)" -eq 244 "limit of bytes"
# A pause is never shorter than it should be.
client 0 run device=$NULL runtime_ms=500 read_sleep_usec=1000
check "$(value job0.read ios)" -le 501 "I/Os with pauses of 1 ms"
check "$(value job0 pause)" -gt 0 "time of pauses"
client 0 run device=$NULL runtime_ms=500 read_sleep_usec=1000 burst_delay=1 read_burst=10
check "$(value job0.read ios)" -le 5010 "I/Os with a pause after 10"
check "$(($(value job0.read ios) % 10))" -ge 0 "I/Os"
check "$(value job0.read ios)" -gt 501 "I/Os with a pause after 10"
for wrong in block_size=1000:2 queue_depth=0:3 read_mix_percent=101:8 offset_stride=0:5 cpu=99:15 \
	offset_low=100:6 batch=2:19 flags=4096:22 align=100:20 block_size=33554432:2 trace=70000:23; do
	client 2 run device=$NULL ${wrong%:*}
	lab_check grep -q "field=${wrong#*:} .*EINVAL message=." $GOT
done
client 2 run device=$NULL flags=2 block_size=16777216
lab_check grep -q 'field=2 .*EINVAL message=.*split' $GOT
# More buffers than the machine has memory are refused, and nobody is killed for them.
client 2 run device=$NULL block_size=1048576 \
	queue_depth=$(($(awk '/^MemTotal/ {print $2}' /proc/meminfo) / 1024))
lab_check grep -q ENOMEM $GOT
check "$(dmesg | grep -c 'Out of memory')" -eq 0 "killed processes"
client 2 run device=$NULL runtime_ms=0
lab_check grep -q 'would never end' $GOT
client 0 info
lab_check grep -q 'used_mem=0 ' $GOT
unload
