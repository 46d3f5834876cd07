// SPDX-License-Identifier: GPL-2.0
/*
 * What a job hands out. In: a job, running or done. Out: its counters in the
 * form of the interface. While it runs each value is good by itself; no lock
 * is taken, the thread must not notice.
 */
#include <linux/sched.h>

#include "kio.h"

static void kio_dir_stats(const struct kio_counts *counts, struct kio_dir *out)
{
	out->ios = READ_ONCE(counts->ios);
	out->bytes = READ_ONCE(counts->bytes);
	out->errors = READ_ONCE(counts->errors);
	memcpy(out->sums, counts->sums, sizeof(out->sums));
}

static u64 kio_runtime(const struct kio_job *job, bool running)
{
	u64 began = READ_ONCE(job->began);

	if (!running)
		return job->ended - began;
	return READ_ONCE(job->measure_at) == KIO_NEVER && began ? ktime_get_ns() - began : 0;
}

void kio_job_stats(const struct kio_job *job, struct kio_stats *stats)
{
	bool running = smp_load_acquire(&job->running);
	int dir;

	stats->state = running ? KIO_STATE_RUNNING : KIO_STATE_DONE;
	stats->error = READ_ONCE(job->error);
	stats->inflight = READ_ONCE(job->inflight);
	stats->cpu = running ? task_cpu(job->task) : job->cpu;
	stats->pid = job->task ? task_pid_nr(job->task) : 0;
	for (dir = 0; dir < KIO_DIRS; dir++)
		kio_dir_stats(&job->counts[dir], &stats->dirs[dir]);
	stats->runtime_ns = kio_runtime(job, running);
	stats->cpu_ns = running ? READ_ONCE(job->task->se.sum_exec_runtime) - job->cpu_before :
				  job->cpu_ns;
	stats->drain_ns = READ_ONCE(job->drain_ns);
	stats->idle_ns = READ_ONCE(job->idle_ns);
	stats->pause_ns = READ_ONCE(job->pause_ns);
	stats->verify_ns = READ_ONCE(job->verify_ns);
	stats->wakeups = READ_ONCE(job->wakeups);
	stats->polls = READ_ONCE(job->polls);
	stats->polls_empty = READ_ONCE(job->polls_empty);
	stats->again = READ_ONCE(job->again);
	stats->issued = READ_ONCE(job->issued);
	stats->bad_blocks = READ_ONCE(job->bad_blocks);
	memcpy(stats->codes, job->codes, sizeof(stats->codes));
	stats->codes[KIO_ERR_OK] = stats->dirs[KIO_DIR_READ].ios + stats->dirs[KIO_DIR_WRITE].ios;
	stats->codes[KIO_ERR_AGAIN] = stats->again;
}
