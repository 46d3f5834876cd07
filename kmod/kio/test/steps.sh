# The module draws what the definition draws.
. /lab/common.sh
load

# WORDS of `vectors steps`, then fields of the client.
same() {
	steps=$1
	shift
	client 0 run device=$RAM limit_ios=1000 runtime_ms=0 trace=1000 show=trace queue_depth=4 "$@"
	grep '^[01] ' $GOT >/tmp/drawn
	vectors steps $steps 1000 >/tmp/defined
	cmp /tmp/drawn /tmp/defined || { head -3 /tmp/drawn /tmp/defined; lab_fail "$*"; }
}

# LOW HIGH BLOCK ALIGN STRIDE RANDOM MIX READ_BURST WRITE_BURST SEED STREAM
same '0 67108864 4096 4096 4096 0 100 1 1 24301 0'
same '0 67108864 4096 4096 4096 1 100 1 1 24301 0' offset_random=1
cp /tmp/drawn /tmp/first
same '0 67108864 4096 4096 4096 1 100 1 1 7 0' offset_random=1 seed=7
cmp -s /tmp/first /tmp/drawn && lab_fail "another seed draws the same"
same '0 67108864 4096 4096 4096 1 100 1 1 24301 3' offset_random=1 stream=3
cmp -s /tmp/first /tmp/drawn && lab_fail "another stream draws the same"
same '8192 1000000 512 512 4096 1 50 30 10 24301 0' offset_random=1 offset_low=8192 \
	offset_high=1000000 block_size=512 read_mix_percent=50 read_burst=30 write_burst=10
same '0 1048576 4096 4096 -8192 0 0 1 1 24301 0' offset_high=1048576 offset_stride=-8192 op=2
same '65536 1048576 16384 16384 512 0 70 0 5 24301 0' offset_low=65536 offset_high=1048576 \
	block_size=16384 offset_stride=512 read_mix_percent=70 read_burst=0 write_burst=5
same '0 67108864 4096 512 4096 1 30 1 1 24301 0' offset_random=1 align=512 read_mix_percent=30 \
	read_burst=9 write_burst=9 flags=4
unload
