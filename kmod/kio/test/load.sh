# Loads without a device, has a version, goes; refuses a submit mode that it cannot do.
. /lab/common.sh
load
lab_check test -c /dev/kio
lab_check test -d $TREE
lab_check grep -q '^[0-9]' /sys/module/kio/version
client 0 info
check "$(sed -n 's/^version=\([^ ]*\) .*/\1/p' $GOT)" = "$(cat /sys/module/kio/version)" version
client 0 abi
unload
! test -e /dev/kio || lab_fail "the node is still there"
insmod /lab/kio.ko io_submit_mode=2 2>/dev/null && lab_fail "io_submit_mode=2 is accepted"
load max_sessions=2 max_mem_mb=1
exec 3<>/dev/kio 4<>/dev/kio
client 3 info
lab_check grep -q EMFILE $GOT
exec 3>&- 4>&-
client 2 run device=$NULL queue_depth=300
lab_check grep -q 'errno=ENOMEM.*max_mem_mb' $GOT
client 0 info
lab_check grep -q 'used_mem=0 ' $GOT
unload
