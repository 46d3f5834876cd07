# The verbs of weir kio on the module: what is there and what is missing, loading and unloading it,
# and what is in the way.
. /lab/common.sh
need_weir
release=$(uname -r)
# The sources are looked for below the folder of the call, where that is the caller's or root's alone.
umask 022
mkdir -p /tmp/own
cd /tmp/own

is_loaded() {
	grep -q '^kio ' /proc/modules && test -c /dev/kio && test -d $TREE
}

is_gone() {
	! grep -q '^kio ' /proc/modules && ! test -e /dev/kio && ! test -e $TREE
}

# STATUS TEXT VERB: the same of a user without rights.
ends_for_nobody() {
	su nobody -c "PATH=$PATH; cd /tmp/own; weir kio $3" >$GOT 2>&1
	rc=$?
	[ $rc -eq "$1" ] && grep -q "$2" $GOT || { cat $GOT; lab_fail "weir kio $3: status $rc, not $1 and $2"; }
}

# Not loaded, and not built.
ends 0 '^module   not loaded (`weir kio load`)' status
ends 0 'the module is not loaded' unload
ends 3 '^missing  the module is not loaded: `weir kio load`' doctor
lab_check grep -q "^missing  kernel headers: install linux-headers-$release" $GOT
lab_check grep -q '^missing  sources of the module' $GOT
lab_check grep -q '^missing  make or a C compiler' $GOT
lab_check grep -q '^ok       root' $GOT
ends 3 'the sources of the module are not here' build
ends 3 'modprobe ended with' load
lab_check grep -q 'help: the module is not built: `weir kio build`' $GOT
mkdir -p kmod/kio
: >kmod/kio/Makefile
ends 3 "/lib/modules/$release/build: the kernel's headers are not there" build
ends 3 '^ok       sources of the module' doctor

# Devices of all kinds, with their sizes.
blockdev --setro $RAM
ends 0 "^$NVME  *256 MiB\$" devices
lab_check grep -q "^$RAM  *64.0 MiB  read-only\$" $GOT
lab_check grep -q "^$SCSI  *64.0 MiB\$" $GOT
blockdev --setrw $RAM

# What was built for another kernel is refused with both names, and without root nothing is loaded.
if [ -e /lab/of-another-kernel.ko ]; then
	cp /lab/of-another-kernel.ko kmod/kio/kio.ko
	ends 3 "it was built for kernel [0-9].*, and $release is running" load
	grep -q "for kernel $release," $GOT && lab_fail "the kernel of the module is not named"
	lab_check grep -q 'weir kio build' $GOT
	lab_check is_gone
fi
cp /lab/kio.ko kmod/kio/kio.ko
ends_for_nobody 3 'help: root: a module is loaded by root alone' load
lab_check is_gone

# Loaded.
weir kio load --device $NULL || lab_fail "weir kio load"
trap 'rmmod kio' EXIT
lab_check is_loaded
check "$(cat /sys/module/kio/parameters/block_device)" = $NULL "device of the module"
ends 0 'loaded already' load
ends 0 'loaded already' load --device $NULL
ends 2 "loaded already, for $NULL" load --device $RAM
ends 0 '^module   loaded$' status
lab_check grep -q "^version  $(cat /sys/module/kio/version)\$" $GOT
lab_check grep -q "^device   $NULL\$" $GOT
ends 0 '^ok       the module is loaded$' doctor
lab_check grep -q '^note     an unsigned module was loaded' $GOT

# In use: by a session, by a run of the tree, and by nobody, for a user without rights.
kio-client run device=$NULL runtime_ms=60000 >/dev/null &
run=$!
until_used 1
ends 0 "^session  process $run (kio-client)\$" status
ends 2 "in use by $run (kio-client)" unload
lab_check grep -q 'help: end that first' $GOT
lab_check is_loaded
kill -TERM $run
wait $run
until_used 0
echo 1 >$TREE/num_threads
echo 60 >$TREE/runtime_seconds
echo 1 >$TREE/run_workload &
run=$!
until_used 1
ends 2 'in use by a run' unload
lab_check grep -q "echo 0 >$TREE/run_workload" $GOT
lab_check is_loaded
echo 0 >$TREE/run_workload
wait $run
ends_for_nobody 3 'run weir as root' unload
lab_check is_loaded
ends 0 '' unload
trap - EXIT
lab_check is_gone

# One that is installed.
rm -r kmod
mkdir -p /lib/modules/$release
cp /lab/kio.ko /lib/modules/$release/kio.ko
lab_check depmod $release
ends 0 '' load
lab_check is_loaded
ends 0 '' unload
lab_check is_gone
rm -r /lib/modules/$release
