# What the setup of a guest calls; each ends the guest with a reason when it fails.

# NAME PARAMETER=VALUE...
lab_insmod() {
	module=$1
	shift
	insmod "/lib/modules/$module.ko" "$@" || lab_broken "module $module $* does not load"
}

# NAME SETTING=VALUE...: a device of null_blk. The kernel names it after its directory.
lab_null() {
	grep -q " /sys/kernel/config " /proc/mounts || mount -t configfs configfs /sys/kernel/config
	name=$1
	shift
	mkdir "/sys/kernel/config/nullb/$name" || lab_broken "null_blk makes no $name"
	for setting; do
		file=/sys/kernel/config/nullb/$name/${setting%%=*}
		[ -e "$file" ] || lab_broken "null_blk of this kernel has no setting ${setting%%=*}"
		echo "${setting#*=}" >"$file" || lab_broken "null_blk refuses $setting"
	done
	echo 1 >"/sys/kernel/config/nullb/$name/power" || lab_broken "null_blk refuses $name: $*"
}

# NUMBER BYTES
lab_loop() {
	truncate -s "$2" "/tmp/loop$1.img"
	[ -b "/dev/loop$1" ] || mknod "/dev/loop$1" b 7 "$1"
	losetup "/dev/loop$1" "/tmp/loop$1.img" || lab_broken "loop$1 has no file"
}

# NAME TABLE...
lab_mapper() {
	name=$1
	shift
	dmsetup create "$name" --noudevsync --table "$*" || lab_broken "the device mapper refuses $*"
}

# NAME: the node of a mapped device.
lab_mapped() {
	for file in /sys/block/dm-*/dm/name; do
		[ "$(cat "$file")" = "$1" ] || continue
		node=${file#/sys/block/}
		echo "/dev/${node%%/*}"
	done
}

# SERIAL [COUNT]: the node of the first disk with this serial, once there are so many.
lab_by_serial() {
	first=
	left=${2:-1}
	for file in /sys/block/*/serial /sys/block/*/device/serial; do
		[ -e "$file" ] && [ "$(tr -d ' ' <"$file")" = "$1" ] || continue
		node=${file#/sys/block/}
		: "${first:=/dev/${node%%/*}}"
		left=$((left - 1))
		[ "$left" -gt 0 ] || break
	done
	[ "$left" -gt 0 ] || echo "$first"
}

lab_scsi_debug() {
	for disk in /sys/bus/pseudo/drivers/scsi_debug/adapter*/host*/target*/*/block/*; do
		[ -e "$disk" ] && echo "/dev/${disk##*/}"
	done
}

# NUMBER HARDWARE-ADDRESS ADDRESS MTU: the card is eth and its number, and up.
lab_net() {
	for file in /sys/class/net/*/address; do
		[ "$(cat "$file")" = "$2" ] || continue
		card=${file#/sys/class/net/}
		card=${card%/address}
		[ "$card" = "eth$1" ] || ip link set "$card" name "eth$1" || lab_broken "card $card is not eth$1"
	done
	ip link set lo up
	ip link set "eth$1" mtu "$4" up && ip address add "$3" dev "eth$1" || lab_broken "no card $1 with $3"
}

# NUMBER
lab_rxe() {
	rdma link add "rxe$1" type rxe netdev "eth$1" || lab_broken "no RDMA device over eth$1"
}

# NUMBER COMMAND...: waits for the node that the command prints; disks come when they are ready.
lab_node() {
	number=$1
	shift
	tries=0
	while node=$("$@") && ! [ -b "$node" ] && ! [ -e "/sys/class/net/$node" ]; do
		tries=$((tries + 1))
		[ "$tries" -lt 400 ] || lab_broken "device $number does not appear ($*)"
		sleep 0.02
	done
	export "LAB_DEV_$number=$node"
}
