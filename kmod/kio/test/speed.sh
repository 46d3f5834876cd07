# Instructions per I/O, for a guest where an instruction takes a nanosecond (--accel icount), with
# --dev null:queue_mode=2,irqmode=0,no_sched=1. Prints "speed NAME INSTRUCTIONS" lines.
set -u
insmod /lab/kio.ko log_results=0 || lab_fail "the module does not load"

speed() {
	name=$1
	shift
	kio-client run device=$LAB_DEV_0 runtime_ms=200 "$@" >/tmp/got || { cat /tmp/got; lab_fail "$name"; }
	awk -v name="$name" '
		/^job0.read / { split($2, n, "="); ios = n[2] }
		/^job0 / { split($3, t, "="); printf "speed %s %.1f\n", name, t[2] / ios }' /tmp/got
}

for depth in 1 32; do
	speed depth-$depth queue_depth=$depth offset_random=1
	speed depth-$depth-without-histograms queue_depth=$depth offset_random=1 flags=16
done
speed batch-16 queue_depth=32 batch=16 offset_random=1
speed sequential
rmmod kio || lab_fail "the module does not unload"
