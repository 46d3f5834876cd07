# /sys/kernel/kio by hand: values, ranges, error codes, lines of the log.
. /lab/common.sh
dmesg -c >/dev/null
load block_device=$NULL

# ERRNO FILE VALUE
refuse() {
	if { echo "$3" >$TREE/$2; } 2>/tmp/said; then lab_fail "$2 takes $3"; fi
	lab_check grep -qi "$1" /tmp/said
}

holds() {
	check "$(cat $TREE/$1)" = "$2" $1
}

refuse 'No child' run_workload 1
for wrong in 0 x -1 0x10 1025; do refuse 'Invalid argument' num_threads $wrong; done
for wrong in 0 x 3601 99999999999; do refuse 'too large' runtime_seconds $wrong; done
echo 2x >$TREE/num_threads
holds num_threads 2
echo 3 >$TREE/num_threads
lab_check test -d $TREE/2
echo 2 >$TREE/num_threads
! test -d $TREE/2 || lab_fail "thread 2 is still there"
echo 1 >$TREE/runtime_seconds
set -- $(ls $TREE/0)
for file in block_size burst_delay burst_finish offset_high offset_low offset_random offset_stride \
	queue_depth read_burst read_mix_percent read_sleep_usec write_burst write_sleep_usec; do
	case " $* " in *" $file "*) ;; *) lab_fail "no $file" ;; esac
	check "$(stat -c %a $TREE/0/$file)" = 664 "mode of $file"
	refuse 'Invalid argument' 0/$file 1x
done
echo 0x1000 >$TREE/0/block_size
holds 0/block_size 4096
echo 010 >$TREE/0/queue_depth
holds 0/queue_depth 8
refuse 'range\|too large\|not representable' 0/offset_random 2
refuse 'range\|too large\|not representable' 0/read_mix_percent 356
refuse 'range\|too large\|not representable' 0/block_size 4294967296

# What a run refuses, and what it says.
bad() {
	old=$(cat $TREE/$1)
	dmesg -c >/dev/null
	echo $2 >$TREE/$1
	refuse 'Exec format' run_workload 1
	dmesg | grep -qF "kio: thread ${1%/*} $3" || { dmesg; lab_fail "the log lacks: $3"; }
	echo $old >$TREE/$1
}
bad 0/block_size 100 'block_size value 100 is out of range [512,1048576]'
bad 1/block_size 5000 'block_size value 5000 must be a power of 2'
bad 0/offset_stride 0 'offset_stride value 0 is out of range [512,1048576]'
bad 1/queue_depth 0 'queue_depth value 0 is out of range [1,1024]'
bad 1/read_mix_percent 101 'read_mix_percent value 101 is out of range [0,100]'
bad 0/read_burst 1025 'read_burst value 1025 is out of range [0,1024]'
bad 0/read_sleep_usec 100001 'read_sleep_usec value 100001 is out of range [0,100000]'
bad 0/offset_low -1 'offset_low value -1 is out of range'
echo 8192 >$TREE/0/offset_low
bad 0/offset_high 4096 'offset_low 8192 must be smaller than offset_high 4096'
echo 0 >$TREE/0/offset_low
echo 0 >$TREE/0/read_burst
bad 0/write_burst 0 'has neither read_burst nor write_burst set'
echo 1 >$TREE/0/read_burst

# A run: its lines, and offset_high lowered to what fits.
size=$(blockdev --getsize64 $NULL)
echo $size >$TREE/0/offset_high
dmesg -c >/dev/null
holds run_workload 0
echo 0 >$TREE/run_workload || lab_fail "a run that should be good"
holds 0/offset_high $((size - 4096))
dmesg >$GOT
number='[0-9]*\.[0-9][0-9][0-9]'
line="completed=[0-9]* lat=$number($number+$number) iops=[0-9]* MB/s=$number\$"
for who in 'thread\[0\]' 'thread\[1\]' summary; do
	check "$(grep -c "kio: $who: $line" $GOT)" -eq 1 "lines of $who"
done
for said in 'setup for 2 threads, 1 seconds' 'thread\[1\]: start$' \
	'thread\[1\]: done, completed=[0-9]*, result=0$' 'stopped threads, result=0$'; do
	grep -q "kio: $said" $GOT || { cat $GOT; lab_fail "the log lacks: $said"; }
done
sum=$(sed -n 's/.*kio: thread\[[01]\]: completed=\([0-9]*\) .*/\1/p' $GOT | awk '{s += $1} END {print s}')
check "$(sed -n 's/.*kio: summary: completed=\([0-9]*\) .*/\1/p' $GOT)" -eq "$sum" "summary"
check "$(wc -c <$TREE/0/hist_lat)" -eq 29696 "bytes of hist_lat"
holds 0/errors 0

# While it runs everything answers at once.
echo 30 >$TREE/runtime_seconds
echo 1 >$TREE/run_workload &
run=$!
sleep 0.3
holds run_workload 1
refuse busy num_threads 1
refuse busy runtime_seconds 1
refuse busy 0/queue_depth 1
refuse busy run_workload 1
echo 0 >$TREE/run_workload || lab_fail "a 0 does not stop the run"
lab_check wait $run
holds run_workload 0
# A signal ends it as well, and its results count.
dmesg -c >/dev/null
sh -c "echo 1 >$TREE/run_workload" &
run=$!
sleep 0.3
kill -INT $run; kill -TERM $run
wait $run
dmesg | grep -q 'kio: summary: completed=' || lab_fail "no results of an interrupted run"

# Errors end it and are its result.
echo $BROKEN >/sys/module/kio/parameters/block_device
echo 0 >$TREE/0/offset_high
refuse 'I/O error\|Input/output' run_workload 1
check "$(($(cat $TREE/0/errors) + $(cat $TREE/1/errors)))" -ge 1 "errors of the threads"
echo >/sys/module/kio/parameters/block_device
refuse 'Exec format' run_workload 1
dmesg | grep -q 'kio: no block_device provided for IO' || lab_fail "no word on the device"

# The old summary.
unload
load block_device=$NULL legacy_summary=1
echo 2 >$TREE/num_threads
echo 1 >$TREE/runtime_seconds
dmesg -c >/dev/null
lab_check sh -c "echo 1 >$TREE/run_workload"
dmesg >$GOT
total=$(sed -n 's/.*kio: thread\[[01]\].* iops=\([0-9]*\) .*/\1/p' $GOT | awk '{s += $1} END {print s}')
summary=$(sed -n 's/.*kio: summary.* iops=\([0-9]*\) .*/\1/p' $GOT)
check $((summary * 4)) -ge $((total * 98 / 100)) "old summary"
check $((summary * 4)) -le $((total * 102 / 100)) "old summary"
unload
