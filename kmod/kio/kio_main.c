// SPDX-License-Identifier: GPL-2.0
/*
 * Loading, parameters and /dev/kio: each open file is a session, each ioctl a
 * call of kio_calls[]. In: structures of kio_uapi.h. Out: the same, filled in.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/moduleparam.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/utsname.h>

#include "kio.h"

#define KIO_CLOCK_PAIRS	1000

char *kio_block_device;
unsigned int kio_submit_mode;
bool kio_log_results = true;
bool kio_legacy_summary;
static unsigned int kio_max_sessions = 16;
static unsigned int kio_max_mem_mb = 1024;

static atomic_t kio_open_sessions = ATOMIC_INIT(0);
static atomic64_t kio_used_memory = ATOMIC64_INIT(0);
static u32 kio_clock_ps;

static int kio_set_submit_mode(const char *word, const struct kernel_param *param)
{
	unsigned int mode;
	int err = kstrtouint(word, 0, &mode);

	if (err)
		return err;
	if (mode > 1) {
		pr_err("io_submit_mode %u is not 0 (submit_bio) or 1 (without accounting)\n", mode);
		return -EINVAL;
	}
#ifndef KIO_HAVE_SUBMIT_NOACCT
	if (mode == 1)
		return -EOPNOTSUPP;
#endif
	return param_set_uint(word, param);
}

static const struct kernel_param_ops kio_submit_mode_ops = {
	.set = kio_set_submit_mode,
	.get = param_get_uint,
};

module_param_named(block_device, kio_block_device, charp, 0644);
MODULE_PARM_DESC(block_device, "device of /sys/kernel/kio; opened for runs only");
module_param_cb(io_submit_mode, &kio_submit_mode_ops, &kio_submit_mode, 0644);
MODULE_PARM_DESC(io_submit_mode, "0 submit_bio, 1 submit_bio_noacct");
module_param_named(log_results, kio_log_results, bool, 0644);
MODULE_PARM_DESC(log_results, "results of every run also in the kernel log");
module_param_named(legacy_summary, kio_legacy_summary, bool, 0644);
MODULE_PARM_DESC(legacy_summary, "summary with iops / threads^2 and mean MB/s, for old scripts");
module_param_named(max_sessions, kio_max_sessions, uint, 0644);
MODULE_PARM_DESC(max_sessions, "open files of /dev/kio at a time");
module_param_named(max_mem_mb, kio_max_mem_mb, uint, 0644);
MODULE_PARM_DESC(max_mem_mb, "MiB of buffers of all sessions together");

static u64 kio_max_memory(void)
{
	/* Half of the machine's memory stays with the others, whatever the parameter says. */
	return min((u64)READ_ONCE(kio_max_mem_mb) << 20, (u64)totalram_pages() << (PAGE_SHIFT - 1));
}

int kio_take_memory(u64 bytes)
{
	if ((u64)atomic64_add_return(bytes, &kio_used_memory) <= kio_max_memory())
		return 0;
	atomic64_sub(bytes, &kio_used_memory);
	return -ENOMEM;
}

void kio_give_memory(u64 bytes)
{
	atomic64_sub(bytes, &kio_used_memory);
}

static int kio_call_info(struct kio_session *session, void *data)
{
	struct kio_info *info = data;

	info->features = KIO_FEATURE_VERIFY | KIO_FEATURE_TRIM;
	if (KIO_CAN_POLL)
		info->features |= KIO_FEATURE_POLL;
#ifdef KIO_HAVE_SUBMIT_NOACCT
	info->features |= KIO_FEATURE_NOACCT;
#endif
	info->page_size = PAGE_SIZE;
	info->clock_ps = kio_clock_ps;
	info->state = smp_load_acquire(&session->state);
	info->max_sessions = kio_max_sessions;
	info->max_mem_bytes = kio_max_memory();
	info->used_mem_bytes = atomic64_read(&kio_used_memory);
	strscpy(info->release, init_utsname()->release, sizeof(info->release));
	strscpy(info->module_version, KIO_VERSION, sizeof(info->module_version));
	return 0;
}

static int kio_call_add_dev(struct kio_session *session, void *data)
{
	return kio_session_add_device(session, data);
}

static int kio_call_add_job(struct kio_session *session, void *data)
{
	return kio_session_add_job(session, data);
}

static int kio_call_start(struct kio_session *session, void *data)
{
	session->log_results = READ_ONCE(kio_log_results);
	return kio_session_start(session, data);
}

static bool kio_is_done(struct kio_session *session)
{
	return smp_load_acquire(&session->state) == KIO_STATE_DONE;
}

static long kio_jiffies(u64 ns)
{
	if (ns == KIO_NEVER)
		return MAX_SCHEDULE_TIMEOUT;
	return min_t(u64, nsecs_to_jiffies64(ns) + (ns != 0), MAX_SCHEDULE_TIMEOUT);
}

static int kio_call_wait(struct kio_session *session, void *data)
{
	struct kio_wait *wait = data;
	long left = 0;

	if (smp_load_acquire(&session->state) == KIO_STATE_IDLE)
		return -EBUSY;
	if (!kio_is_done(session))
		left = wait_event_interruptible_timeout(session->wait, kio_is_done(session),
							kio_jiffies(wait->timeout_ns));
	wait->state = smp_load_acquire(&session->state);
	if (wait->state == KIO_STATE_DONE) {
		wait->error = session->error;
		return 0;
	}
	return left < 0 ? -EINTR : -ETIMEDOUT;
}

static int kio_call_stop(struct kio_session *session, void *data)
{
	struct kio_stop *stop = data;
	int err = kio_session_drain(session);

	stop->state = smp_load_acquire(&session->state);
	stop->stuck = err ? kio_session_stuck(session) : 0;
	return err;
}

static struct kio_job *kio_find_job(struct kio_session *session, u32 index)
{
	return index < session->nr_jobs ? session->jobs[index] : NULL;
}

static int kio_call_stats(struct kio_session *session, void *data)
{
	struct kio_stats *stats = data;
	struct kio_job *job = kio_find_job(session, stats->job);

	if (session->state == KIO_STATE_IDLE)
		return -EBUSY;
	if (!job)
		return -ENOENT;
	kio_job_stats(job, stats);
	return 0;
}

static int kio_call_hist(struct kio_session *session, void *data)
{
	struct kio_hist *hist = data;
	struct kio_job *job = kio_find_job(session, hist->job);
	const size_t bytes = KIO_HIST_BUCKETS * sizeof(u64);

	if (session->state == KIO_STATE_IDLE)
		return -EBUSY;
	if (!job)
		return -ENOENT;
	if (hist->kind >= KIO_KINDS || hist->dir >= KIO_DIRS || hist->bytes < bytes)
		return -EINVAL;
	if (copy_to_user(u64_to_user_ptr(hist->buckets), job->counts[hist->dir].hist[hist->kind],
			 bytes))
		return -EFAULT;
	return 0;
}

/* Copies records `from`.. of `total`, as many as there is room for. */
static int kio_copy_records(struct kio_records *args, const void *records, u32 total, size_t each)
{
	u32 room = args->count;

	args->total = total;
	args->count = 0;
	if (args->from >= total)
		return 0;
	room = min(room, total - args->from);
	if (copy_to_user(u64_to_user_ptr(args->records), records + args->from * each, room * each))
		return -EFAULT;
	args->count = room;
	return 0;
}

static int kio_call_records(struct kio_session *session, struct kio_records *args, unsigned int nr)
{
	struct kio_job *job = kio_find_job(session, args->job);

	if (session->state == KIO_STATE_IDLE)
		return -EBUSY;
	if (!job)
		return -ENOENT;
	if (nr == _IOC_NR(KIO_SERIES))
		return kio_copy_records(args, job->series, smp_load_acquire(&job->nr_series),
					sizeof(*job->series));
	if (nr == _IOC_NR(KIO_ERRS))
		return kio_copy_records(args, job->errs, smp_load_acquire(&job->nr_errs),
					sizeof(*job->errs));
	return kio_copy_records(args, job->trace, smp_load_acquire(&job->nr_trace),
				sizeof(*job->trace));
}

static int kio_call_series(struct kio_session *session, void *data)
{
	return kio_call_records(session, data, _IOC_NR(KIO_SERIES));
}

static int kio_call_errs(struct kio_session *session, void *data)
{
	return kio_call_records(session, data, _IOC_NR(KIO_ERRS));
}

static int kio_call_trace(struct kio_session *session, void *data)
{
	return kio_call_records(session, data, _IOC_NR(KIO_TRACE));
}

static int kio_call_reset(struct kio_session *session, void *data)
{
	return kio_session_reset(session);
}

struct kio_call {
	int (*run)(struct kio_session *session, void *data);
	size_t size;	/* 0: no argument */
	bool waits;	/* and does so without the session's lock */
};

#define KIO_CALL(name, function) \
	[_IOC_NR(name)] = { .run = function, .size = _IOC_SIZE(name) }
#define KIO_CALL_WAITS(name, function) \
	[_IOC_NR(name)] = { .run = function, .size = _IOC_SIZE(name), .waits = true }

static const struct kio_call kio_calls[] = {
	KIO_CALL(KIO_INFO, kio_call_info),
	KIO_CALL(KIO_ADD_DEV, kio_call_add_dev),
	KIO_CALL(KIO_ADD_JOB, kio_call_add_job),
	KIO_CALL(KIO_START, kio_call_start),
	KIO_CALL_WAITS(KIO_WAIT, kio_call_wait),
	KIO_CALL_WAITS(KIO_STOP, kio_call_stop),
	KIO_CALL(KIO_STATS, kio_call_stats),
	KIO_CALL(KIO_HIST, kio_call_hist),
	KIO_CALL(KIO_SERIES, kio_call_series),
	KIO_CALL(KIO_ERRS, kio_call_errs),
	KIO_CALL(KIO_RESET, kio_call_reset),
	KIO_CALL(KIO_TRACE, kio_call_trace),
};

static int kio_locked(struct kio_session *session, const struct kio_call *call, void *data)
{
	int err;

	if (call->waits)
		return call->run(session, data);
	err = mutex_lock_interruptible(&session->lock);
	if (err)
		return err;
	err = call->run(session, data);
	mutex_unlock(&session->lock);
	return err;
}

/* The beginning of every structure. */
struct kio_head {
	u32 size;
	u32 version;
};

static int kio_take_args(void *data, size_t known, void __user *user, u32 *size)
{
	int err;

	if (get_user(*size, (u32 __user *)user))
		return -EFAULT;
	if (*size < sizeof(struct kio_head))
		return -EINVAL;
	if (*size > PAGE_SIZE)
		return -E2BIG;
	err = copy_struct_from_user(data, known, user, *size);
	if (err)
		return err;
	return ((struct kio_head *)data)->version == KIO_ABI_VERSION ? 0 : -EINVAL;
}

static long kio_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct kio_session *session = file->private_data;
	void __user *user = (void __user *)arg;
	const struct kio_call *call;
	void *data;
	u32 size;
	int err;

	if (_IOC_TYPE(cmd) != KIO_IOC_TYPE || _IOC_NR(cmd) >= ARRAY_SIZE(kio_calls) ||
	    !kio_calls[_IOC_NR(cmd)].run)
		return -ENOTTY;
	call = &kio_calls[_IOC_NR(cmd)];
	if (!call->size)
		return kio_locked(session, call, NULL);
	data = kzalloc(call->size, GFP_KERNEL);
	if (!data)
		return -ENOMEM;
	err = kio_take_args(data, call->size, user, &size);
	if (!err) {
		err = kio_locked(session, call, data);
		if (copy_to_user(user, data, min_t(size_t, size, call->size)))
			err = -EFAULT;
	}
	kfree(data);
	return err;
}

static int kio_open(struct inode *inode, struct file *file)
{
	struct kio_session *session;

	if (atomic_inc_return(&kio_open_sessions) > READ_ONCE(kio_max_sessions)) {
		atomic_dec(&kio_open_sessions);
		return -EMFILE;
	}
	session = kio_session_new();
	if (!session) {
		atomic_dec(&kio_open_sessions);
		return -ENOMEM;
	}
	file->private_data = session;
	return 0;
}

static int kio_release(struct inode *inode, struct file *file)
{
	struct kio_session *session = file->private_data;

	kio_session_drain(session);
	kio_session_put(session);
	atomic_dec(&kio_open_sessions);
	return 0;
}

static __poll_t kio_poll_file(struct file *file, poll_table *table)
{
	struct kio_session *session = file->private_data;

	poll_wait(file, &session->wait, table);
	return kio_is_done(session) ? EPOLLIN | EPOLLRDNORM : 0;
}

static const struct file_operations kio_fops = {
	.owner = THIS_MODULE,
	.open = kio_open,
	.release = kio_release,
	.unlocked_ioctl = kio_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = kio_poll_file,
	.llseek = noop_llseek,
};

static struct miscdevice kio_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "kio",
	.fops = &kio_fops,
	.mode = 0660,
};

static void kio_measure_clock(void)
{
	u64 before = ktime_get_ns();
	int i;

	for (i = 0; i < 2 * KIO_CLOCK_PAIRS; i++)
		ktime_get_ns();
	kio_clock_ps = div_u64((ktime_get_ns() - before) * 1000, 2 * KIO_CLOCK_PAIRS);
}

static int __init kio_init(void)
{
	int err;

	kio_measure_clock();
	err = kio_sysfs_init();
	if (err)
		return err;
	err = misc_register(&kio_misc);
	if (err) {
		kio_sysfs_exit();
		return err;
	}
	pr_info("init, version %s\n", KIO_VERSION);
	return 0;
}

static void __exit kio_exit(void)
{
	misc_deregister(&kio_misc);
	kio_sysfs_exit();
	pr_info("exit\n");
}

module_init(kio_init);
module_exit(kio_exit);

MODULE_LICENSE("GPL");
MODULE_VERSION(KIO_VERSION);
MODULE_AUTHOR("The weir developers");
MODULE_DESCRIPTION("Block I/O made and measured inside the kernel");
