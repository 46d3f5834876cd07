// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/kio: a run configured and started with echo and cat. In: values,
 * one per file, and a write to run_workload. Out: lines of the kernel log, the
 * run's error, and per thread the histograms of the last run.
 *
 * Values stay from run to run. Nothing waits for a run that is going on: what
 * would change it fails with EBUSY at once.
 */
#include <linux/ctype.h>
#include <linux/kobject.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "kio.h"

#define KIO_MOST_SECONDS	3600u
#define KIO_MOST_BLOCK		1048576

enum kio_value {
	KIO_BLOCK_SIZE, KIO_BURST_DELAY, KIO_BURST_FINISH, KIO_OFFSET_HIGH, KIO_OFFSET_LOW,
	KIO_OFFSET_RANDOM, KIO_OFFSET_STRIDE, KIO_QUEUE_DEPTH, KIO_READ_BURST,
	KIO_READ_MIX_PERCENT, KIO_READ_SLEEP_USEC, KIO_WRITE_BURST, KIO_WRITE_SLEEP_USEC,
	KIO_VALUES,
};

/* A file of a thread: what it can hold, what a run takes, and what it is at first. */
struct kio_file {
	struct attribute attr;
	s64 least;
	s64 most;
	s64 min;
	s64 max;
	s64 initial;
};

#define KIO_FILE(file, store_min, store_max, run_min, run_max, first) { \
	.attr = { .name = #file, .mode = 0664 }, \
	.least = store_min, .most = store_max, .min = run_min, .max = run_max, .initial = first }

static struct kio_file kio_files[KIO_VALUES] = {
	[KIO_BLOCK_SIZE] = KIO_FILE(block_size, 0, U32_MAX, 512, KIO_MOST_BLOCK, 4096),
	[KIO_BURST_DELAY] = KIO_FILE(burst_delay, 0, 1, 0, 1, 0),
	[KIO_BURST_FINISH] = KIO_FILE(burst_finish, 0, 1, 0, 1, 0),
	[KIO_OFFSET_HIGH] = KIO_FILE(offset_high, S64_MIN, S64_MAX, 0, S64_MAX, 0),
	[KIO_OFFSET_LOW] = KIO_FILE(offset_low, S64_MIN, S64_MAX, 0, S64_MAX, 0),
	[KIO_OFFSET_RANDOM] = KIO_FILE(offset_random, 0, 1, 0, 1, 0),
	[KIO_OFFSET_STRIDE] = KIO_FILE(offset_stride, S32_MIN, S32_MAX, 512, KIO_MOST_BLOCK, 4096),
	[KIO_QUEUE_DEPTH] = KIO_FILE(queue_depth, 0, U32_MAX, 1, KIO_MAX_DEPTH, 1),
	[KIO_READ_BURST] = KIO_FILE(read_burst, 0, U32_MAX, 0, 1024, 1),
	[KIO_READ_MIX_PERCENT] = KIO_FILE(read_mix_percent, 0, U8_MAX, 0, 100, 100),
	[KIO_READ_SLEEP_USEC] = KIO_FILE(read_sleep_usec, 0, U32_MAX, 0, 100000, 0),
	[KIO_WRITE_BURST] = KIO_FILE(write_burst, 0, U32_MAX, 0, 1024, 1),
	[KIO_WRITE_SLEEP_USEC] = KIO_FILE(write_sleep_usec, 0, U32_MAX, 0, 100000, 0),
};

/* The order in which a run looks at them. */
static const u8 kio_check_order[KIO_VALUES] = {
	KIO_BLOCK_SIZE, KIO_OFFSET_STRIDE, KIO_QUEUE_DEPTH, KIO_OFFSET_LOW, KIO_OFFSET_HIGH,
	KIO_READ_MIX_PERCENT, KIO_READ_BURST, KIO_WRITE_BURST, KIO_READ_SLEEP_USEC,
	KIO_WRITE_SLEEP_USEC, KIO_OFFSET_RANDOM, KIO_BURST_FINISH, KIO_BURST_DELAY,
};

/* A directory, 0 and on. */
struct kio_tid {
	struct kobject kobj;
	u32 id;
	s64 values[KIO_VALUES];
};

enum { KIO_TREE_IDLE, KIO_TREE_CHANGING, KIO_TREE_RUNNING };

static struct kobject *kio_root;
static struct kio_tid *kio_tids[KIO_MAX_JOBS];
static u32 kio_num_threads;
static u32 kio_runtime_seconds = 5;
static atomic_t kio_tree_state = ATOMIC_INIT(KIO_TREE_IDLE);

/* The run that is going on, or the last one; the mutex is held for short only. */
static struct kio_session *kio_run;
static DEFINE_MUTEX(kio_run_lock);

static bool kio_tree_take(int state)
{
	return atomic_cmpxchg(&kio_tree_state, KIO_TREE_IDLE, state) == KIO_TREE_IDLE;
}

static void kio_tree_give(void)
{
	atomic_set(&kio_tree_state, KIO_TREE_IDLE);
}

static bool kio_tree_runs(void)
{
	return atomic_read(&kio_tree_state) == KIO_TREE_RUNNING;
}

static struct kio_tid *kio_tid_of(struct kobject *kobj)
{
	return container_of(kobj, struct kio_tid, kobj);
}

static ssize_t kio_tid_show(struct kobject *kobj, struct attribute *attr, char *text)
{
	struct kio_file *file = container_of(attr, struct kio_file, attr);

	return sysfs_emit(text, "%lld\n", READ_ONCE(kio_tid_of(kobj)->values[file - kio_files]));
}

static ssize_t kio_tid_store(struct kobject *kobj, struct attribute *attr, const char *text,
			     size_t count)
{
	struct kio_file *file = container_of(attr, struct kio_file, attr);
	s64 value;
	int err;

	if (kio_tree_runs())
		return -EBUSY;
	err = kstrtoll(text, 0, &value);
	if (err)
		return err;
	if (value < file->least || value > file->most)
		return -ERANGE;
	WRITE_ONCE(kio_tid_of(kobj)->values[file - kio_files], value);
	return count;
}

static u64 kio_tid_errors(u32 id)
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

static ssize_t kio_errors_show(struct kobject *kobj, struct attribute *attr, char *text)
{
	return sysfs_emit(text, "%llu\n", kio_tid_errors(kio_tid_of(kobj)->id));
}

static struct attribute kio_errors_attr = { .name = "errors", .mode = 0444 };

static ssize_t kio_any_show(struct kobject *kobj, struct attribute *attr, char *text)
{
	if (attr == &kio_errors_attr)
		return kio_errors_show(kobj, attr, text);
	return kio_tid_show(kobj, attr, text);
}

static ssize_t kio_any_store(struct kobject *kobj, struct attribute *attr, const char *text,
			     size_t count)
{
	return attr == &kio_errors_attr ? -EACCES : kio_tid_store(kobj, attr, text, count);
}

/* The buckets of reads, then those of writes, u64 each. */
#define KIO_HIST_BYTES	(KIO_HIST_BUCKETS * sizeof(u64))

static ssize_t kio_hist_read(u32 id, u32 kind, char *to, loff_t at, size_t count)
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

#define KIO_HIST_FILE(file_name, kind) \
static ssize_t kio_##file_name##_read(struct file *file, struct kobject *kobj, \
				 kio_bin_attribute *attr, char *to, loff_t at, size_t count) \
{ \
	return kio_hist_read(kio_tid_of(kobj)->id, kind, to, at, count); \
} \
static struct bin_attribute kio_##file_name##_attr = { \
	.attr = { .name = #file_name, .mode = 0444 }, \
	.size = KIO_DIRS * KIO_HIST_BYTES, \
	.read = kio_##file_name##_read, \
}

KIO_HIST_FILE(hist_slat, KIO_KIND_SLAT);
KIO_HIST_FILE(hist_clat, KIO_KIND_CLAT);
KIO_HIST_FILE(hist_lat, KIO_KIND_LAT);

static const struct bin_attribute *const kio_hist_attrs[] = {
	&kio_hist_slat_attr, &kio_hist_clat_attr, &kio_hist_lat_attr,
};

static const struct sysfs_ops kio_tid_ops = {
	.show = kio_any_show,
	.store = kio_any_store,
};

static void kio_tid_release(struct kobject *kobj)
{
	kfree(kio_tid_of(kobj));
}

static struct kobj_type kio_tid_type = {
	.release = kio_tid_release,
	.sysfs_ops = &kio_tid_ops,
};

/* Also undoes half of a directory: what hangs on a kobject goes with it. */
static void kio_tid_del(struct kio_tid *tid)
{
	kobject_del(&tid->kobj);
	kobject_put(&tid->kobj);
}

static int kio_tid_files(struct kio_tid *tid)
{
	int i, err = sysfs_create_file(&tid->kobj, &kio_errors_attr);

	for (i = 0; i < KIO_VALUES && !err; i++)
		err = sysfs_create_file(&tid->kobj, &kio_files[i].attr);
	for (i = 0; i < ARRAY_SIZE(kio_hist_attrs) && !err; i++)
		err = sysfs_create_bin_file(&tid->kobj, kio_hist_attrs[i]);
	return err;
}

static struct kio_tid *kio_tid_new(u32 id)
{
	struct kio_tid *tid = kzalloc(sizeof(*tid), GFP_KERNEL);
	int i, err;

	if (!tid)
		return NULL;
	tid->id = id;
	for (i = 0; i < KIO_VALUES; i++)
		tid->values[i] = kio_files[i].initial;
	err = kobject_init_and_add(&tid->kobj, &kio_tid_type, kio_root, "%u", id);
	if (!err)
		err = kio_tid_files(tid);
	if (!err)
		return tid;
	kio_tid_del(tid);
	return NULL;
}

static int kio_resize(u32 threads)
{
	while (kio_num_threads > threads) {
		kio_tid_del(kio_tids[--kio_num_threads]);
		kio_tids[kio_num_threads] = NULL;
	}
	while (kio_num_threads < threads) {
		kio_tids[kio_num_threads] = kio_tid_new(kio_num_threads);
		if (!kio_tids[kio_num_threads])
			return -ENOMEM;
		kio_num_threads++;
	}
	return 0;
}

/* The decimal digits that a text begins with; 0 for none, what follows is ignored. */
static u32 kio_leading_number(const char *text)
{
	u32 value = 0;

	for (text = skip_spaces(text); isdigit(*text); text++)
		value = min(value, 100000000u) * 10 + (*text - '0');
	return value;
}

static ssize_t num_threads_show(struct kobject *kobj, struct kobj_attribute *attr, char *text)
{
	return sysfs_emit(text, "%u\n", READ_ONCE(kio_num_threads));
}

static ssize_t num_threads_store(struct kobject *kobj, struct kobj_attribute *attr,
				 const char *text, size_t count)
{
	u32 threads = kio_leading_number(text);
	int err;

	if (threads < 1 || threads > KIO_MAX_JOBS)
		return -EINVAL;
	if (!kio_tree_take(KIO_TREE_CHANGING))
		return -EBUSY;
	err = kio_resize(threads);
	kio_tree_give();
	return err ? err : count;
}

static ssize_t runtime_seconds_show(struct kobject *kobj, struct kobj_attribute *attr, char *text)
{
	return sysfs_emit(text, "%u\n", READ_ONCE(kio_runtime_seconds));
}

static ssize_t runtime_seconds_store(struct kobject *kobj, struct kobj_attribute *attr,
				     const char *text, size_t count)
{
	u32 seconds = kio_leading_number(text);

	if (seconds < 1 || seconds > KIO_MOST_SECONDS)
		return -EOVERFLOW;
	if (!kio_tree_take(KIO_TREE_CHANGING))
		return -EBUSY;
	WRITE_ONCE(kio_runtime_seconds, seconds);
	kio_tree_give();
	return count;
}

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
		const struct kio_file *file = &kio_files[kio_check_order[i]];

		if (!kio_in_range(tid->id, file->attr.name, values[kio_check_order[i]], file->min,
				  file->max))
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
static int kio_tree_run(void)
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
	if (err)
		return err;
	kio_log_ends(session);
	/* What is left of it are numbers: the device is free again. */
	mutex_lock(&session->lock);
	kio_session_close_devices(session);
	mutex_unlock(&session->lock);
	return session->error;
}

static ssize_t run_workload_show(struct kobject *kobj, struct kobj_attribute *attr, char *text)
{
	return sysfs_emit(text, "%d\n", kio_tree_runs());
}

/* A 0 from another process ends the run that is going on. */
static ssize_t kio_tree_stop(const char *text, size_t count)
{
	ssize_t done = -EBUSY;

	if (!sysfs_streq(text, "0"))
		return done;
	mutex_lock(&kio_run_lock);
	if (kio_run && smp_load_acquire(&kio_run->state) == KIO_STATE_RUNNING) {
		kio_session_end(kio_run);
		done = count;
	}
	mutex_unlock(&kio_run_lock);
	return done;
}

static ssize_t run_workload_store(struct kobject *kobj, struct kobj_attribute *attr,
				  const char *text, size_t count)
{
	int err;

	if (!kio_tree_take(KIO_TREE_RUNNING))
		return kio_tree_stop(text, count);
	err = -ECHILD;
	if (kio_num_threads) {
		err = -ENODEV;
		if (try_module_get(THIS_MODULE)) {
			err = kio_tree_run();
			module_put(THIS_MODULE);
		}
	}
	kio_tree_give();
	return err ? err : count;
}

#define KIO_ROOT_FILE(name) \
	static struct kobj_attribute name##_attr = __ATTR(name, 0664, name##_show, name##_store)

KIO_ROOT_FILE(num_threads);
KIO_ROOT_FILE(runtime_seconds);
KIO_ROOT_FILE(run_workload);

static struct attribute *kio_root_attrs[] = {
	&num_threads_attr.attr,
	&runtime_seconds_attr.attr,
	&run_workload_attr.attr,
	NULL,
};

static const struct attribute_group kio_root_group = { .attrs = kio_root_attrs };

int kio_sysfs_init(void)
{
	int err;

	kio_root = kobject_create_and_add("kio", kernel_kobj);
	if (!kio_root)
		return -ENOMEM;
	err = sysfs_create_group(kio_root, &kio_root_group);
	if (err)
		kobject_put(kio_root);
	return err;
}

void kio_sysfs_exit(void)
{
	/* First the files, so that nobody makes directories any more. */
	sysfs_remove_group(kio_root, &kio_root_group);
	kio_resize(0);
	kio_tree_publish(NULL);
	kobject_put(kio_root);
}
