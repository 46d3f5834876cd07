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
# A run of the tree that is killed while it makes its threads leaves the device free.
echo $NULL >/sys/module/kio/parameters/block_device
echo 64 >$TREE/num_threads
for thread in $(seq 0 63); do echo 0 >$TREE/$thread/read_mix_percent; done
for pause in 1000 2000 5000 10000; do
	sh -c "echo 1 >$TREE/run_workload" &
	run=$!
	usleep $pause
	kill -9 $run
	wait $run
	until_threads 0
	client 0 run device=$NULL runtime_ms=20 read_mix_percent=0
done
unload
