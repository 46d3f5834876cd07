# Bios that do not come back: the stop gives up after 30 s, memory, device and module stay until
# the last of them ends, and then go. For a guest that skips idle time (--accel icount), with
# --dev null --dev ram:64M --dev dm-error:64M.
set -u
insmod /lab/kio.ko || lab_fail "the module does not load"
dmsetup create kiolate --noudevsync --table "0 131072 linear $LAB_DEV_1 0" || lab_fail "no mapped device"
late=$(grep -lx kiolate /sys/block/dm-*/dm/name)
late=/dev/$(echo $late | cut -d/ -f4)
kio-client run device=$late runtime_ms=60000 queue_depth=4 stop_ms=1000 >/tmp/got &
run=$!
sleep 0.3
# Until it is resumed the device keeps what is submitted.
dmsetup suspend --noflush --nolockfs kiolate || lab_fail "the device is not suspended"
wait $run
[ $? -eq 2 ] && grep -q 'refused=stop errno=EIO' /tmp/got || { cat /tmp/got; lab_fail "the stop is good"; }
dmesg | grep -q 'kio: 4 bios did not end within 30 s' || lab_fail "no word on them"
# The client is gone, closing waited once more; the module is still needed.
rmmod kio 2>/dev/null && lab_fail "the module unloads under bios"
kio-client info >/tmp/got || { cat /tmp/got; lab_fail "no new session"; }
grep -q 'used_mem=0 ' /tmp/got && { cat /tmp/got; lab_fail "their memory is gone"; }
dmsetup resume --noudevsync kiolate
sleep 1
kio-client info >/tmp/got || { cat /tmp/got; lab_fail "no new session"; }
grep -q 'used_mem=0 ' /tmp/got || { cat /tmp/got; lab_fail "memory is left"; }
rmmod kio || lab_fail "the module does not unload"
dmsetup remove --noudevsync kiolate || lab_fail "the device is still held"
