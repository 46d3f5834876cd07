# What the boundary costs: both engines, and the kernel's is the shorter way.
. /lab/common.sh
need_weir
load
export WEIR_HISTORY=off
weir kio --compare --device $NULL --queue-depth 1 --ios 400 --rounds 9 >$GOT 2>&1 ||
	{ cat $GOT; lab_fail "the comparison"; }
cat $GOT
for word in kernel io_uring psync; do lab_check grep -q $word $GOT; done
# The median of io_uring, on a device that completes at once.
grep -m1 '^  p50 ' $GOT | grep -q 'us .*worse' || lab_fail "the kernel's way is not shorter"
unload
