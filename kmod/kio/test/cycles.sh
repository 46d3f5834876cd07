# Load, run, unload, again and again; two sessions at a time. Nothing is left behind.
. /lab/common.sh
cycles=${KIO_CYCLES:-100}

available() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	sleep 0.3
	awk '/^MemAvailable/ { print $2 }' /proc/meminfo
}

cycle() {
	insmod /lab/kio.ko log_results=0 || lab_fail "cycle $1: insmod"
	kio-client run device=$NULL runtime_ms=20 queue_depth=16 read_mix_percent=50 block_size=65536 \
		offset_stride=65536 -- >$GOT || { cat $GOT; lab_fail "cycle $1"; }
	rmmod kio || lab_fail "cycle $1: rmmod"
}

i=0
while [ $i -lt 10 ]; do cycle $i; i=$((i + 1)); done
before=$(available)
while [ $i -lt "$cycles" ]; do cycle $i; i=$((i + 1)); done
after=$(available)
echo "$before KiB before, $after KiB after"
# Without a leak they are some 20 KiB apart: half a percent of it is 30 KiB a cycle.
check $((after * 1000)) -ge $((before * 995)) "memory after $cycles cycles"
load
kio-client run device=$NULL runtime_ms=500 queue_depth=8 >/tmp/one &
one=$!
client 0 run device=$RAM runtime_ms=500 queue_depth=8 op=2
lab_check wait $one
check_books 0
cp /tmp/one $GOT
check_books 0
unload
