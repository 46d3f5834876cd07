# Kernel and user space go to the same places in the same order.
. /lab/common.sh
need_weir
load
export WEIR_HISTORY=off

# Prints offsets: ENGINE SEED WORD...
offsets() {
	engine=$1 seed=$2
	shift 2
	weir kio --engine $engine --device $RAM --ios 200 --queue-depth 4 --seed $seed \
		--num-threads 2 --trace-offsets 100 --format kio "$@" >$GOT 2>&1 ||
		{ cat $GOT; lab_fail "$engine $*"; }
	grep '^trace ' $GOT
}

for words in "--offset-random 1" "--offset-random 0 --offset-stride 8192" \
	"--offset-random 1 --read-mix-percent 50 --read-burst 3 --write-burst 2 --force"; do
	offsets kernel 1 $words >/tmp/kernel
	offsets uring 1 $words >/tmp/uring
	check "$(wc -l </tmp/kernel)" -eq 200 "traced I/Os"
	cmp /tmp/kernel /tmp/uring || { head -3 /tmp/kernel /tmp/uring; lab_fail "$words"; }
done
offsets kernel 1 --offset-random 1 >/tmp/kernel
offsets kernel 2 --offset-random 1 >/tmp/other
cmp -s /tmp/kernel /tmp/other && lab_fail "another seed goes to the same places"
unload
