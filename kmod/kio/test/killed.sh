# A client that is interrupted or killed leaves nothing behind.
. /lab/common.sh
load

for signal in INT KILL TERM; do
	for device in $NULL $SLOW $NVME; do
		kio-client run device=$device runtime_ms=60000 queue_depth=8 -- -- >/dev/null &
		run=$!
		until_threads 3
		kill -$signal $run
		wait $run
		until_threads 0
		client 0 run device=$device runtime_ms=50
	done
done
unload
