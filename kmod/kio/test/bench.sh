# Instructions per I/O of 4 KiB at random places of a device that completes at once: kio's threads,
# weir's and fio's io_uring. For `cargo xtask bench kio`: a guest with --accel icount, where an
# instruction takes a nanosecond. Prints lines "NAME INSTRUCTIONS".
set -u
export WEIR_HISTORY=off
insmod /lab/kio.ko log_results=0 || lab_fail "the module does not load"

kernel() {
	kio-client run device=$LAB_DEV_0 offset_random=1 runtime_ms=300 queue_depth=$2 flags=$3 >/tmp/got ||
		{ cat /tmp/got; lab_fail "$1"; }
	awk -v name="$1" '/^job0.read / { split($2, n, "="); ios = n[2] }
		/^job0 / { split($3, t, "="); printf "%s %.1f\n", name, t[2] / ios }' /tmp/got
}

user() {
	weir kio --engine uring --device $LAB_DEV_0 --offset-random 1 --runtime 1 --queue-depth $2 \
		--batch $3 --format kio >/tmp/got 2>&1 || { cat /tmp/got; lab_fail "$1"; }
	awk -v name="$1" '/^    iops:/ { printf "%s %.1f\n", name, 1e9 / $2; exit }' /tmp/got
}

fio_uring() {
	fio --name=a --filename=$LAB_DEV_0 --direct=1 --rw=randread --bs=4k --ioengine=io_uring --fixedbufs \
		--registerfiles --iodepth=$2 --iodepth_batch_submit=$3 --iodepth_batch_complete_max=$3 \
		--runtime=1 --time_based --norandommap --randrepeat=1 --minimal >/tmp/got || { cat /tmp/got; lab_fail "$1"; }
	awk -F';' -v name="$1" 'NF > 8 { printf "%s %.1f\n", name, 1e9 / $8 }' /tmp/got
}

kernel kernel-1 1 0
kernel kernel-32 32 0
kernel bare-1 1 16
kernel bare-32 32 16
rmmod kio
fio_uring fio-1 1 1
fio_uring fio-32 32 16
if weir kio --help >/dev/null 2>&1; then
	user user-1 1 1
	user user-32 32 16
fi
