#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# test.sh [--write] DEVICE
#
# What only a real machine shows, by hand and as root: reading (with --write also writing and
# verifying) DEVICE through /dev/kio with interrupts, spinning and, where the device has poll
# queues, polling; the module loads and goes. Nothing is written without --write. A device that is
# mounted, in use or has a known signature is refused.
set -eu
cd "$(dirname "$0")"

say() { echo "test.sh: $*" >&2; }
refuse() { say "$@"; exit 2; }

write=
[ "${1-}" = --write ] && { write=1; shift; }
[ $# -eq 1 ] || refuse "usage: test.sh [--write] DEVICE"
device=$(readlink -f "$1")
[ -b "$device" ] || refuse "$1 is no block device"
[ "$(id -u)" -eq 0 ] || refuse "loading a module takes root"
name=${device#/dev/}
holders=$(find /sys/class/block/"$name"/ /sys/class/block/"$name"/"$name"*/ -maxdepth 2 \
	-path '*/holders/*' 2>/dev/null || true)
[ -z "$holders" ] || refuse "$device is held by ${holders##*/}"
grep -q "^$device[^ ]* " /proc/mounts && refuse "$device is mounted"
grep -q "^$device" /proc/swaps && refuse "$device is swap"
command -v wipefs >/dev/null || refuse "wipefs (util-linux) is needed to look for signatures"
[ -z "$(wipefs -n "$device" 2>&1)" ] || refuse "$device has a signature (wipefs -n $device)"
grep -q '^kio ' /proc/modules && refuse "a module kio is loaded: rmmod kio"

make -s modules client
insmod ./kio.ko
trap 'rmmod kio' EXIT
failed=0

# NAME WORD...
run() {
	what=$1
	shift
	if ./test/kio-client run device="$device" "$@" >/tmp/kio-test.$$; then
		awk -v what="$what" '
			/^job0\.(read|write) / {
				split($2, n, "="); split($13, l, "=")
				if (n[2]) { ios += n[2]; lat += l[2] }
			}
			/^job0 / { split($3, t, "="); time = t[2] }
			END { if (time && ios) printf "%-32s %12.0f iops %10.2f us\n", what,
				ios * 1e9 / time, lat / ios / 1000 }' /tmp/kio-test.$$
	else
		say "FAIL: $what"
		cat /tmp/kio-test.$$ >&2
		failed=1
	fi
	rm -f /tmp/kio-test.$$
}

./test/kio-client info
for depth in 1 32; do
	run "read, interrupts, depth $depth" offset_random=1 queue_depth=$depth
	run "read, spinning, depth $depth" offset_random=1 queue_depth=$depth complete=1
	[ "$(cat /sys/class/block/"$name"/queue/io_poll 2>/dev/null)" != 1 ] ||
		run "read, polling, depth $depth" offset_random=1 queue_depth=$depth complete=2 cpu=0
done
run "read, 1 MiB" block_size=1048576 offset_stride=1048576 queue_depth=8
run "read, batches of 16" offset_random=1 queue_depth=32 batch=16
if [ -n "$write" ]; then
	run "write" op=2 offset_random=1 queue_depth=32
	run "write to verify" op=2 data=2 verify_seed=1 queue_depth=32 limit_ios=16384 runtime_ms=0
	run "verify" data=2 verify_seed=1 queue_depth=32 limit_ios=16384 runtime_ms=0
fi
trap - EXIT
rmmod kio
[ $failed -eq 0 ] && echo "all good"
exit $failed
