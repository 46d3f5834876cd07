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

# JOB: what holds for each run: histograms have each I/O once, slat + clat = lat, nothing is in flight.
# One program for all of it: in a guest a process costs more than what it does.
check_books() {
	awk -v job=job$1 '
		function wrong(what) { print "books of " job ": " what; bad = 1; exit }
		{
			split("", n)
			for (i = 2; i <= NF; i++) { split($i, pair, "="); n[pair[1]] = pair[2] }
		}
		$1 == job ".read" || $1 == job ".write" {
			seen++
			if (n["ios"] == "" || n["lat_sum"] == "") wrong("no figures in " $1)
			split("slat clat lat", kinds, " ")
			for (k in kinds) {
				kind = kinds[k]
				if (n[kind "_hist"] != n["ios"]) wrong("histogram " kind " of " $1)
				if (n[kind "_max"] + 0 > n["lat_max"] + 0) wrong("most " kind " of " $1)
			}
			if (n["slat_sum"] + n["clat_sum"] != n["lat_sum"] + 0) wrong("slat + clat of " $1)
		}
		$1 == job { seen++; if (n["inflight"] != "0") wrong("in flight") }
		END { if (!bad && seen != 3) wrong("lines are missing"); exit bad }
	' $GOT || { cat $GOT; lab_fail "the books"; }
}

# Until somebody uses the module (1), or nobody (0).
until_used() {
	tries=0
	until [ $(($(cat /sys/module/kio/refcnt) > 0)) -eq $1 ]; do
		tries=$((tries + 1))
		[ $tries -lt 400 ] || lab_fail "users of the module: $(cat /sys/module/kio/refcnt)"
		sleep 0.05
	done
}

# NUMBER: until the module has so many threads.
until_threads() {
	tries=0
	until [ "$(grep -l '^kio\[' /proc/[0-9]*/comm 2>/dev/null | wc -l)" -eq $1 ]; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] || lab_fail "not $1 threads of the module"
		sleep 0.05
	done
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

# STATUS TEXT WORD...: weir kio with these ends so and prints that; what it prints is in $GOT.
ends() {
	want=$1 text=$2
	shift 2
	weir kio "$@" >$GOT 2>&1
	rc=$?
	[ $rc -eq "$want" ] || { cat $GOT; lab_fail "weir kio $*: status $rc, not $want"; }
	[ -z "$text" ] || grep -q "$text" $GOT || { cat $GOT; lab_fail "weir kio $*: nothing of $text"; }
}
