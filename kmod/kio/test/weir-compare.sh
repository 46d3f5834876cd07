# What the boundary costs: both engines, and the kernel's is the shorter way.
. /lab/common.sh
load
export WEIR_HISTORY=off
weir kio --compare --device $NULL --queue-depth 1 --ios 5000 --rounds 9 >$GOT 2>&1 ||
	{ cat $GOT; lab_fail "the comparison"; }
for word in kernel io_uring delta; do lab_check grep -q $word $GOT; done
cat $GOT
unload
