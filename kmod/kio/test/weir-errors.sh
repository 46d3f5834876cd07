# weir kio: as many failed I/Os end a run as it is told, in the kernel as in user space; flushes alone.
. /lab/common.sh
need_weir
load
export WEIR_HISTORY=off

# WORD...: a run with failures; how many in $errors, of which number in $errno.
failing() {
	weir kio --format json --runtime 60 "$@" >$GOT 2>/tmp/said
	check $? -eq 1 "status of weir kio $*"
	counted=$(tr -d '\n ' <$GOT | sed -n 's/.*"errors":{"\([0-9]*":[0-9]*\)}.*/\1/p')
	errno=${counted%\"*} errors=${counted#*:}
}

for engine in kernel uring; do
	write="--engine $engine --device $BROKEN --op write"
	failing $write
	check "$errors" -eq 1 "errors without a limit ($engine)"
	failing $write --error-limit 10
	check "$errors" -eq 10 "errors at a limit of 10 ($engine)"
	failing $write --error-limit 0 --ios 25
	check "$errors" -eq 25 "errors that are only counted ($engine)"
	check "$errno" -eq 5 "EIO ($engine)"
	# Two of these blocks are bad.
	read="--engine $engine --device $SCSI --offset-low 2310144 --offset-high 2457600 --ios 36"
	failing $read --error-limit 0
	check "$errors" -eq 2 "bad blocks ($engine)"
	check "$errno" -eq 61 "ENODATA of a bad medium ($engine)"
	failing $read --error-limit 3
	check "$errors" -eq 2 "bad blocks below the limit ($engine)"

	good --engine $engine --device $NVME --op flush --ios 50 --runtime 60 --format kio --force
	lab_check grep -q '^    completed: 50$' $GOT
	good --engine $engine --device $NULL --numa 0 --ios 50 --format kio
	lab_check grep -q '^    completed: 50$' $GOT

	good --engine $engine --device $RAM --op write --data verify --size 1M --force
	for block in 3 4 200; do
		printf 'x' | dd of=$RAM bs=1 seek=$((block * 4096 + 77)) conv=notrunc,fsync 2>/dev/null
	done
	for limit in 1 2 9; do
		weir kio --engine $engine --device $RAM --op read --data verify --size 1M \
			--error-limit $limit >$GOT 2>&1
		check $? -eq 1 "status with wrong data ($engine, limit $limit)"
		lab_check grep -q 'offset 12288 is not what was written' $GOT
	done
done
unload
