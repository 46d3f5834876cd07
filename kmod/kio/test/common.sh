# SPDX-License-Identifier: GPL-2.0
# What the scripts of this folder share; each is run in a guest by `lab/vm` or by the tests of
# weir-lab, with these devices in this order:
#   --dev nvme:size=256M --dev null --dev ram:64M --dev null:poll_queues=0
#   --dev scsi-debug:dev_size_mb=64,opts=2,medium_error_start=4660,medium_error_count=8
#   --dev dm-error:64M --dev slow:lat=1ms
# and with `nvme.poll_queues=1`. /lab has kio.ko, kio-client and vectors.
set -u
NVME=$LAB_DEV_0 NULL=$LAB_DEV_1 RAM=$LAB_DEV_2 NOPOLL=$LAB_DEV_3
SCSI=$LAB_DEV_4 BROKEN=$LAB_DEV_5 SLOW=$LAB_DEV_6
TREE=/sys/kernel/kio
GOT=/tmp/kio.got

# The module, and the module gone at the end however the script ends.
load() {
	insmod /lab/kio.ko "$@" || lab_fail "the module does not load ($*)"
	trap 'rmmod kio' EXIT
}

unload() {
	trap - EXIT
	rmmod kio || lab_fail "the module does not unload"
}

# STATUS WORD...: runs the client; its lines are in $GOT.
client() {
	want=$1
	shift
	kio-client "$@" >$GOT 2>&1
	rc=$?
	[ $rc -eq "$want" ] || { cat $GOT; lab_fail "kio-client $*: status $rc, not $want"; }
}

# LINE NAME: the value of NAME in the first line of $GOT that begins with LINE.
value() {
	sed -n "/^$1 /{s/.* $2=\([^ ]*\).*/\1/p;q}" $GOT
}

# A OPERATOR B WHAT...
check() {
	a=$1 op=$2 b=$3
	shift 3
	[ -n "$a" ] && [ -n "$b" ] && [ "$a" "$op" "$b" ] || { cat $GOT; lab_fail "$*: $a $op $b"; }
}

# What holds for each run: histograms have each I/O once, slat + clat = lat, nothing is in flight.
check_books() {
	for dir in read write; do
		line=job$1.$dir
		for kind in slat clat lat; do
			check "$(value $line ${kind}_hist)" -eq "$(value $line ios)" "histogram $kind of $line"
		done
		check "$(($(value $line slat_sum) + $(value $line clat_sum)))" -eq \
			"$(value $line lat_sum)" "slat + clat of $line"
		for kind in slat clat; do
			check "$(value $line ${kind}_max)" -le "$(value $line lat_max)" "most $kind of $line"
		done
	done
	check "$(value job$1 inflight)" -eq 0 "in flight of job$1"
}

# For the scripts of weir's own door.
need_weir() {
	weir kio --help >/dev/null 2>&1 || lab_skip "this weir has no kio"
}

# WORD...: weir kio with these; what it prints is in $GOT.
good() {
	weir kio "$@" >$GOT 2>&1
	rc=$?
	[ $rc -eq 0 ] || { cat $GOT; lab_fail "weir kio $*: status $rc"; }
}
