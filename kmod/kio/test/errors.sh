# I/O that fails is counted by how it failed, and ends the run at the limit.
. /lab/common.sh
load
# Sector 4660 is in the block at 2383872.
client 1 run device=$SCSI offset_low=2383872 limit_ios=1 runtime_ms=0
check "$(value job0.read errors)" -eq 1 errors
check "$(value err code)" -eq 7 "MEDIUM"
check "$(value err offset)" -eq 2383872 "where it failed"
check "$(value job0 error)" -eq -5 "EIO"
client 0 run device=$SCSI offset_low=2310144 offset_high=2457600 limit_ios=36 runtime_ms=0 \
	error_limit=0 queue_depth=4
check "$(value job0.read errors)" -eq 2 "errors without a limit"
check "$(value job0.read ios)" -eq 34 "good I/Os beside the bad ones"
check_books 0
client 1 run device=$BROKEN runtime_ms=5000 queue_depth=32 op=2 error_limit=10
check "$(value err code)" -eq 10 "IOERR"
check "$(value job0.write errors)" -ge 10 "errors at the limit"
check "$(value job0.write ios)" -eq 0 "good I/Os"
unload
