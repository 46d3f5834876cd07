# weir kio through the module: label, log lines and report agree, files have their form.
. /lab/common.sh
need_weir
load block_device=$NULL
export WEIR_HISTORY=off
cd /tmp
ln -sf "$(which weir)" /tmp/kio.py

# A name, and the words of an old script, with the device of the module's parameter.
seed() {
	/tmp/kio.py --runtime 1 --block-size 4096 --queue-depth 10 --offset-random 1 \
		--read-mix-percent 100 --offset-high $((0xFFFFFFFF)) --read-burst 100 \
		--read-mix-percent 100 "$@" >$GOT 2>&1 || { cat $GOT; lab_fail "kio.py $*"; }
}

dmesg -c
seed --num-threads 1 --offset-stride 4096 --output-yaml one.yaml
lab_check grep -q '^# engine: kernel/bio' $GOT
dmesg | grep 'kio: ' >/tmp/lines
number='[0-9]*\.[0-9][0-9][0-9]'
line="completed=[0-9]* lat=$number($number+$number) iops=[0-9]* MB/s=$number\$"
for who in 'thread\[0\]' summary; do
	check "$(grep -c "kio: $who: $line" /tmp/lines)" -eq 1 "lines of $who"
done
completed=$(sed -n 's/.*kio: summary: completed=\([0-9]*\) .*/\1/p' /tmp/lines)
lab_check grep -q "^    completed: $completed\$" $GOT
lab_check grep -q "^        completed: $completed\$" one.yaml
keys=$(sed -n '/^-   bw_MBps/,/^-   0/{s/^[- ]*\([a-zA-Z_]*\): .*/\1/p}' $GOT | tr '\n' ' ')
check "$keys" = 'bw_MBps clat_usec completed iops lat_usec slat_usec ' "keys of the summary"

seed --num-threads 2
lab_check grep -q '^-   0:$' $GOT
lab_check grep -q '^    1:$' $GOT
sum=$(sed -n 's/^        completed: \([0-9]*\)$/\1/p' $GOT | awk '{ s += $1 } END { print s }')
lab_check grep -q "^    completed: $sum\$" $GOT

for mix in 100 50 0; do
	seed --read-mix-percent $mix --write-burst 100 --output-csv rows.csv --ios 1000
done
check "$(wc -l <rows.csv)" -eq 4 "lines of the CSV file"
check "$(grep -c '^timestamp,' rows.csv)" -eq 1 "heads of the CSV file"
check "$(grep -c 'weir-.*+kernel' rows.csv)" -eq 3 "rows of the kernel"

# One load for all numbers of threads and sizes.
for run in "1 512" "2 4096" "4 65536" "1 1048576"; do
	good --engine kernel --device $NULL --num-threads ${run% *} --ios 50 --block-size ${run#* }
done
unload
