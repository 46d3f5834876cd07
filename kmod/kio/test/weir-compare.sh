# What the boundary costs: both engines, and the kernel's is the shorter way.
. /lab/common.sh
need_weir
load
export WEIR_HISTORY=off
weir kio --compare --device $NULL --queue-depth 1 --runtime 1 >$GOT 2>&1 ||
	{ cat $GOT; lab_fail "the comparison"; }
for word in kernel io_uring delta; do lab_check grep -q $word $GOT; done
cat $GOT
unload
