# Bios that do not come back: the stop gives up after 30 s, memory, device and module stay until
# the last of them ends, and then go. For a guest that skips idle time (--accel icount), with
# --dev null.
set -u
insmod /lab/kio.ko || lab_fail "the module does not load"
mkdir /sys/kernel/config/nullb/kiolate
cd /sys/kernel/config/nullb/kiolate
for set in irqmode=2 completion_nsec=65000000000 size=64 power=1; do echo ${set#*=} >${set%=*}; done
cd /
# The device's own time limit would end them as well.
echo 600000 >/sys/block/kiolate/queue/io_timeout
kio-client run device=/dev/kiolate runtime_ms=60000 queue_depth=4 stop_ms=1000 >/tmp/got
[ $? -eq 2 ] && grep -q 'refused=stop errno=EIO' /tmp/got || { cat /tmp/got; lab_fail "the stop is good"; }
dmesg | grep -q 'kio: 4 bios did not end within 30 s' || lab_fail "no word on them"
# The client is gone, closing waited once more; the module is still needed.
rmmod kio 2>/dev/null && lab_fail "the module unloads under bios"
kio-client info >/tmp/got || { cat /tmp/got; lab_fail "no new session"; }
grep -q 'used_mem=0 ' /tmp/got && { cat /tmp/got; lab_fail "their memory is gone"; }
sleep 10
kio-client info >/tmp/got || { cat /tmp/got; lab_fail "no new session"; }
grep -q 'used_mem=0 ' /tmp/got || { cat /tmp/got; lab_fail "memory is left"; }
rmmod kio || lab_fail "the module does not unload"
rmdir /sys/kernel/config/nullb/kiolate
