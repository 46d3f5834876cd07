# A client that is interrupted or killed leaves nothing behind.
. /lab/common.sh
load

threads() {
	grep -l '^kio\[' /proc/[0-9]*/comm 2>/dev/null | wc -l
}

for signal in INT KILL TERM; do
	for device in $NULL $SLOW $NVME; do
		kio-client run device=$device runtime_ms=60000 queue_depth=8 -- -- >/dev/null &
		run=$!
		sleep 0.3
		check "$(threads)" -eq 3 "threads in the run"
		kill -$signal $run
		wait $run
		tries=0
		while [ "$(threads)" -gt 0 ]; do
			tries=$((tries + 1))
			[ $tries -lt 50 ] || lab_fail "threads are left after SIG$signal on $device"
			sleep 0.1
		done
		client 0 run device=$device runtime_ms=50
	done
done
unload
