# Data written in the kernel is what the definition says, and a wrong byte is found.
. /lab/common.sh
load
blocks=2048
client 0 run device=$RAM op=2 data=2 verify_seed=77 generation=3 queue_depth=8 limit_ios=$blocks runtime_ms=0
vectors pattern 77 3 0 8388608 >/tmp/expected
lab_check cmp -n 8388608 /tmp/expected $RAM
client 0 run device=$RAM data=2 verify_seed=77 generation=3 queue_depth=8 limit_ios=$blocks runtime_ms=0
check "$(value job0.read ios)" -eq $blocks "blocks read back"
check "$(value job0 verify)" -gt 0 "time of checking"
# From user space to the kernel, in blocks of many pieces.
vectors pattern 5 1 0 16777216 | dd of=$RAM bs=1M iflag=fullblock conv=fsync 2>/dev/null
client 0 run device=$RAM data=2 verify_seed=5 generation=1 block_size=1048576 offset_stride=1048576 \
	limit_ios=16 runtime_ms=0
# Random places: a reader with the same seed goes where the writer went.
client 0 run device=$RAM op=2 data=2 verify_seed=9 offset_random=1 queue_depth=16 runtime_ms=200
issued=$(value job0 issued)
client 0 run device=$RAM op=1 data=2 verify_seed=9 offset_random=1 limit_ios=$issued runtime_ms=0
client 1 run device=$RAM op=1 data=2 verify_seed=10 offset_random=1 limit_ios=$issued runtime_ms=0
# One byte.
client 0 run device=$RAM op=2 data=2 verify_seed=1 limit_ios=16 runtime_ms=0
dd if=$RAM of=/tmp/byte bs=1 skip=8292 count=1 2>/dev/null
tr '\000-\377' '\001-\377\000' </tmp/byte | dd of=$RAM bs=1 seek=8292 conv=notrunc,fsync 2>/dev/null
client 1 run device=$RAM data=2 verify_seed=1 limit_ios=16 runtime_ms=0
check "$(value err offset)" -eq 8192 "block of the wrong byte"
check "$(value err at)" -eq 8292 "place of the wrong byte"
check "$(value job0 bad_blocks)" -eq 1 "bad blocks"
client 0 run device=$RAM data=2 verify_seed=1 limit_ios=2 runtime_ms=0
unload
