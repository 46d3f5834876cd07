# Who writes must be alone with the device; who reads need not.
. /lab/common.sh
load

refuse() {
	client 2 run device=$1 runtime_ms=50 op=2
	lab_check grep -q "refused=add_dev errno=$2" $GOT
}

lab_check mke2fs -q $RAM
mkdir -p /tmp/mounted
lab_check mount -t ext4 $RAM /tmp/mounted
refuse $RAM EBUSY
client 0 run device=$RAM runtime_ms=50
echo $RAM >/sys/module/kio/parameters/block_device
echo 1 >$TREE/num_threads
echo 0 >$TREE/0/read_mix_percent
echo 1 >$TREE/run_workload 2>/tmp/said && lab_fail "the tree writes on a mounted device"
lab_check grep -qi busy /tmp/said
umount /tmp/mounted
lab_check mkswap $RAM
lab_check swapon $RAM
refuse $RAM EBUSY
swapoff $RAM
client 0 run device=$RAM runtime_ms=50 op=2
refuse /dev/null ENOTBLK
refuse /no/such/device ENOENT
lab_check blockdev --setro $RAM
refuse $RAM EROFS
blockdev --setrw $RAM
# The path is opened with the rights of the caller.
chmod 666 /dev/kio
chmod 600 $RAM
su nobody -c "PATH=$PATH kio-client run device=$RAM runtime_ms=10" >$GOT
lab_check grep -q 'refused=add_dev errno=EACCES' $GOT
chmod 644 $RAM
su nobody -c "PATH=$PATH kio-client run device=$RAM runtime_ms=10" >$GOT || { cat $GOT; lab_fail "may read"; }
su nobody -c "PATH=$PATH kio-client run device=$RAM runtime_ms=10 op=2" >$GOT
lab_check grep -q 'refused=add_dev errno=EACCES' $GOT
chmod 600 $RAM
chmod 660 /dev/kio
unload
