# Data that one engine wrote the other verifies, both ways.
. /lab/common.sh
need_weir
load
export WEIR_HISTORY=off

written() {
	good --engine $1 --device $RAM --op write --data verify --size 8M --seed $2 \
		--offset-random $3 --queue-depth 4 --force
	good --engine $4 --device $RAM --op read --data verify --size 8M --seed $2 \
		--offset-random $3 --queue-depth 4
}

written kernel 1 0 uring
written uring 2 0 kernel
written kernel 3 1 uring
written kernel 4 0 kernel
printf '\0\0\0\0\0\0\0\0' | dd of=$RAM bs=1 seek=8292 conv=notrunc,fsync 2>/dev/null
for engine in kernel uring; do
	weir kio --engine $engine --device $RAM --op read --data verify --size 8M --seed 4 >$GOT 2>&1
	check $? -eq 1 "status with a wrong byte ($engine)"
	lab_check grep -q 8192 $GOT
	lab_check grep -q EILSEQ $GOT
done
unload
