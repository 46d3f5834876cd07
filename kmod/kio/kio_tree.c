// SPDX-License-Identifier: GPL-2.0
/*
 * Runs of /sys/kernel/kio. In: the values of its threads and the device of the
 * module's parameter. Out: a session that ran, its lines in the kernel's log,
 * and its numbers until the next one. Not here: the files.
 */
#include <linux/log2.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "kio_tree.h"

#define KIO_MOST_BLOCK	1048576

#define KIO_KIND(file, store_min, store_max, run_min, run_max, first) { \
	.name = #file, .least = store_min, .most = store_max, .min = run_min, \
	.max = run_max, .initial = first }

const struct kio_value_kind kio_value_kinds[KIO_VALUES] = {
	[KIO_BLOCK_SIZE] = KIO_KIND(block_size, 0, U32_MAX, 512, KIO_MOST_BLOCK, 4096),
	[KIO_BURST_DELAY] = KIO_KIND(burst_delay, 0, 1, 0, 1, 0),
	[KIO_BURST_FINISH] = KIO_KIND(burst_finish, 0, 1, 0, 1, 0),
	[KIO_OFFSET_HIGH] = KIO_KIND(offset_high, S64_MIN, S64_MAX, 0, S64_MAX, 0),
	[KIO_OFFSET_LOW] = KIO_KIND(offset_low, S64_MIN, S64_MAX, 0, S64_MAX, 0),
	[KIO_OFFSET_RANDOM] = KIO_KIND(offset_random, 0, 1, 0, 1, 0),
	[KIO_OFFSET_STRIDE] = KIO_KIND(offset_stride, S32_MIN, S32_MAX, 512, KIO_MOST_BLOCK, 4096),
	[KIO_QUEUE_DEPTH] = KIO_KIND(queue_depth, 0, U32_MAX, 1, KIO_MAX_DEPTH, 1),
	[KIO_READ_BURST] = KIO_KIND(read_burst, 0, U32_MAX, 0, 1024, 1),
	[KIO_READ_MIX_PERCENT] = KIO_KIND(read_mix_percent, 0, U8_MAX, 0, 100, 100),
	[KIO_READ_SLEEP_USEC] = KIO_KIND(read_sleep_usec, 0, U32_MAX, 0, 100000, 0),
	[KIO_WRITE_BURST] = KIO_KIND(write_burst, 0, U32_MAX, 0, 1024, 1),
	[KIO_WRITE_SLEEP_USEC] = KIO_KIND(write_sleep_usec, 0, U32_MAX, 0, 100000, 0),
};

/* The order in which a run looks at them. */
static const u8 kio_check_order[KIO_VALUES] = {
	KIO_BLOCK_SIZE, KIO_OFFSET_STRIDE, KIO_QUEUE_DEPTH, KIO_OFFSET_LOW, KIO_OFFSET_HIGH,
	KIO_READ_MIX_PERCENT, KIO_READ_BURST, KIO_WRITE_BURST, KIO_READ_SLEEP_USEC,
	KIO_WRITE_SLEEP_USEC, KIO_OFFSET_RANDOM, KIO_BURST_FINISH, KIO_BURST_DELAY,
};

struct kio_tid *kio_tids[KIO_MAX_JOBS];
u32 kio_num_threads;
u32 kio_runtime_seconds = 5;

/* The run that is going on, or the last one; the mutex is held for short only. */
static struct kio_session *kio_run;
static DEFINE_MUTEX(kio_run_lock);

static bool kio_in_range(u32 t, const char *name, s64 value, s64 min, s64 max)
{
	if (value >= min && value <= max)
		return true;
	pr_err("thread %u %s value %lld is out of range [%lld,%lld]\n", t, name, value, min, max);
	return false;
}

/* Bursts that a mix needs. */
static bool kio_bursts_good(const struct kio_tid *tid)
{
	s64 mix = tid->values[KIO_READ_MIX_PERCENT];

	if (!tid->values[KIO_READ_BURST] && !tid->values[KIO_WRITE_BURST]) {
		pr_err("thread %u has neither read_burst nor write_burst set\n", tid->id);
		return false;
	}
	if (mix == 100 && !tid->values[KIO_READ_BURST]) {
		pr_err("thread %u has read_mix_percent 100 but no read_burst\n", tid->id);
		return false;
	}
	if (mix == 0 && !tid->values[KIO_WRITE_BURST]) {
		pr_err("thread %u has read_mix_percent 0 but no write_burst\n", tid->id);
		return false;
	}
	return true;
}

/* What a thread asks for, against the device; may lower offset_high. */
static bool kio_tid_good(struct kio_tid *tid, const char *device, u64 size)
{
	s64 *values = tid->values;
	s64 block, low, high;
	u32 i;

	for (i = 0; i < KIO_VALUES; i++) {
		const struct kio_value_kind *kind = &kio_value_kinds[kio_check_order[i]];

		if (!kio_in_range(tid->id, kind->name, values[kio_check_order[i]], kind->min,
				  kind->max))
			return false;
	}
	block = values[KIO_BLOCK_SIZE];
	low = values[KIO_OFFSET_LOW];
	high = values[KIO_OFFSET_HIGH];
	if (!is_power_of_2(block)) {
		pr_err("thread %u block_size value %lld must be a power of 2\n", tid->id, block);
		return false;
	}
	if ((u64)low + block > size) {
		pr_err("thread %u offset_low %lld + block_size %lld is beyond device %s size %llu\n",
		       tid->id, low, block, device, size);
		return false;
	}
	if (high && (u64)high + block > size) {
		pr_warn("thread %u offset_low %lld + block_size %lld corrected to device %s size %llu\n",
			tid->id, low, block, device, size);
		high = size - block;
		WRITE_ONCE(values[KIO_OFFSET_HIGH], high);
	}
	if (high && low >= high) {
		pr_err("thread %u offset_low %lld must be smaller than offset_high %lld\n",
		       tid->id, low, high);
		return false;
	}
	return kio_bursts_good(tid);
}

static bool kio_tree_writes(void)
{
	u32 i;

	for (i = 0; i < kio_num_threads; i++)
		if (kio_tids[i]->values[KIO_READ_MIX_PERCENT] < 100)
			return true;
	return false;
}

/* The device of the parameter; written there with echo it ends with a new line. */
static int kio_tree_device(struct kio_session *session, struct kio_add_dev *args)
{
	kernel_param_lock(THIS_MODULE);
	strscpy(args->path, kio_block_device ? kio_block_device : "", sizeof(args->path));
	kernel_param_unlock(THIS_MODULE);
	strim(args->path);
	if (!args->path[0]) {
		pr_err("no block_device provided for IO\n");
		return -ENOEXEC;
	}
	args->flags = kio_tree_writes() ? KIO_DEV_WRITE | KIO_DEV_EXCL : 0;
	return kio_session_add_device(session, args);
}

static void kio_tid_job(const struct kio_tid *tid, struct kio_add_job *job)
{
	const s64 *values = tid->values;
	s64 high = values[KIO_OFFSET_HIGH];

	memset(job, 0, sizeof(*job));
	job->block_size = values[KIO_BLOCK_SIZE];
	job->queue_depth = values[KIO_QUEUE_DEPTH];
	job->offset_random = values[KIO_OFFSET_RANDOM];
	job->read_mix_percent = values[KIO_READ_MIX_PERCENT];
	job->offset_stride = values[KIO_OFFSET_STRIDE];
	job->offset_low = values[KIO_OFFSET_LOW];
	/* Here it bounds where an I/O begins, there where it ends. */
	job->offset_high = high ? high + job->block_size - 1 : 0;
	job->read_burst = values[KIO_READ_BURST];
	job->write_burst = values[KIO_WRITE_BURST];
	job->burst_finish = values[KIO_BURST_FINISH];
	job->burst_delay = values[KIO_BURST_DELAY];
	job->read_sleep_usec = values[KIO_READ_SLEEP_USEC];
	job->write_sleep_usec = values[KIO_WRITE_SLEEP_USEC];
	job->cpu = -1;
	job->node = -1;
	job->data = KIO_DATA_RANDOM;
	job->seed = KIO_DEFAULT_SEED;
	job->stream = tid->id;
}

static int kio_tree_jobs(struct kio_session *session, struct kio_add_job *job)
{
	int err;
	u32 i;

	for (i = 0; i < kio_num_threads; i++) {
		kio_tid_job(kio_tids[i], job);
		err = kio_session_add_job(session, job);
		if (err) {
			pr_err("thread %u %s\n", i, job->message);
			return err == -EINVAL ? -ENOEXEC : err;
		}
	}
	return 0;
}

/* Fills a new session from the tree. */
static int kio_tree_plan(struct kio_session *session)
{
	struct kio_add_dev *device = kzalloc(sizeof(*device), GFP_KERNEL);
	struct kio_add_job *job = kzalloc(sizeof(*job), GFP_KERNEL);
	int err = -ENOMEM;
	u32 i;

	if (!device || !job)
		goto out;
	err = kio_tree_device(session, device);
	if (err) {
		if (device->message[0])
			pr_err("%s\n", device->message);
		goto out;
	}
	pr_info("using %s with %llu bytes available, with %u block size\n", device->path,
		device->bytes, device->logical_block);
	for (i = 0; i < kio_num_threads && !err; i++)
		if (!kio_tid_good(kio_tids[i], device->path, device->bytes))
			err = -ENOEXEC;
	if (!err)
		err = kio_tree_jobs(session, job);
out:
	kfree(device);
	kfree(job);
	return err;
}

/* Shows a session to who reads histograms or stops it, in place of the last one. */
static void kio_tree_publish(struct kio_session *session)
{
	struct kio_session *last;

	mutex_lock(&kio_run_lock);
	last = kio_run;
	kio_run = session;
	mutex_unlock(&kio_run_lock);
	if (last)
		kio_session_put(last);
}

static void kio_log_ends(const struct kio_session *session)
{
	u32 i;

	for (i = 0; i < session->nr_jobs; i++) {
		const struct kio_job *job = session->jobs[i];
		u64 completed = job->counts[KIO_DIR_READ].ios + job->counts[KIO_DIR_WRITE].ios;

		pr_info("thread[%u]: done, completed=%llu, result=%d\n", i, completed, job->error);
	}
	pr_info("stopped threads, result=%d\n", session->error);
	kio_log_session(session);
}

static int kio_tree_start(struct kio_session *session)
{
	struct kio_start *start = kzalloc(sizeof(*start), GFP_KERNEL);
	int err;
	u32 i;

	if (!start)
		return -ENOMEM;
	pr_info("setup for %u threads, %u seconds\n", kio_num_threads, kio_runtime_seconds);
	for (i = 0; i < kio_num_threads; i++)
		pr_info("thread[%u]: start\n", i);
	start->runtime_ns = (u64)kio_runtime_seconds * NSEC_PER_SEC;
	start->error_limit = 1;
	mutex_lock(&session->lock);
	err = kio_session_start(session, start);
	mutex_unlock(&session->lock);
	kfree(start);
	return err;
}

/* A run from beginning to end. A signal ends it early; its results count. */
int kio_tree_run(void)
{
	struct kio_session *session = kio_session_new();
	int err;

	if (!session)
		return -ENOMEM;
	mutex_lock(&session->lock);
	err = kio_tree_plan(session);
	mutex_unlock(&session->lock);
	if (err) {
		kio_session_put(session);
		return err;
	}
	kio_tree_publish(session);
	err = kio_tree_start(session);
	if (!err)
		wait_event_interruptible(session->wait,
					 smp_load_acquire(&session->state) == KIO_STATE_DONE);
	if (kio_session_drain(session)) {
		kio_tree_publish(NULL);
		return -EIO;
	}
	if (!err)
		kio_log_ends(session);
	/* What is left of it are numbers: the device is free again, also where it never began. */
	mutex_lock(&session->lock);
	kio_session_close_devices(session);
	mutex_unlock(&session->lock);
	return err ? err : session->error;
}

/* Ends the run that is going on, if there is one. */
bool kio_tree_stop(void)
{
	bool runs;

	mutex_lock(&kio_run_lock);
	runs = kio_run && smp_load_acquire(&kio_run->state) == KIO_STATE_RUNNING;
	if (runs)
		kio_session_end(kio_run);
	mutex_unlock(&kio_run_lock);
	return runs;
}

void kio_tree_forget(void)
{
	kio_tree_publish(NULL);
}

u64 kio_tree_errors(u32 id)
{
	u64 errors = 0;

	mutex_lock(&kio_run_lock);
	if (kio_run && id < kio_run->nr_jobs) {
		struct kio_counts *counts = kio_run->jobs[id]->counts;

		errors = counts[KIO_DIR_READ].errors + counts[KIO_DIR_WRITE].errors;
	}
	mutex_unlock(&kio_run_lock);
	return errors;
}

size_t kio_tree_hist(u32 id, u32 kind, char *to, loff_t at, size_t count)
{
	size_t done = 0;

	mutex_lock(&kio_run_lock);
	while (kio_run && id < kio_run->nr_jobs && done < count && at < KIO_DIRS * KIO_HIST_BYTES) {
		const struct kio_counts *counts = &kio_run->jobs[id]->counts[at / KIO_HIST_BYTES];
		size_t from = at % KIO_HIST_BYTES, n = min(count - done, KIO_HIST_BYTES - from);

		memcpy(to + done, (const char *)counts->hist[kind] + from, n);
		done += n;
		at += n;
	}
	mutex_unlock(&kio_run_lock);
	return done;
}
