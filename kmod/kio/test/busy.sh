# The module stays while it is in use; the run is none the worse.
. /lab/common.sh
load
# Idle sessions hold it as well as runs.
exec 3<>/dev/kio
rmmod kio 2>/dev/null && lab_fail "rmmod under an open session succeeds"
exec 3>&-
kio-client run device=$NULL runtime_ms=1000 >$GOT 2>&1 &
run=$!
until_used 1
rmmod kio 2>/dev/null && lab_fail "rmmod in a run succeeds"
lab_check wait $run
check_books 0
echo $NULL >/sys/module/kio/parameters/block_device
echo 1 >$TREE/num_threads
echo 1 >$TREE/runtime_seconds
echo 1 >$TREE/run_workload &
run=$!
until_used 1
rmmod kio 2>/dev/null && lab_fail "rmmod in a run of the tree succeeds"
lab_check wait $run
unload
