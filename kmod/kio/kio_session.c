// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions. In: devices, jobs, the word to start or to stop. Out: a run of all
 * jobs together, and its end. Not here: what a thread does.
 *
 * Who holds a session: the file (or the tree) and every thread of its run. A
 * thread also holds the module. So memory, devices and code outlive the last
 * bio, however late it ends, and whoever drops the last reference is a process
 * or a thread, never an interrupt.
 *
 * Functions that change devices, jobs or the state want session->lock held;
 * kio_session_drain() and _stuck() take it. kio_session_end() wants it, or a
 * thread of the run that calls it, so that the jobs stay.
 */
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "kio.h"

#define KIO_LEAST_NS	NSEC_PER_MSEC
#define KIO_MOST_NS	(365ull * 24 * 3600 * NSEC_PER_SEC)

/* Wakes threads that sleep past the end; those that do not see it by the clock. */
static void kio_deadline(struct work_struct *work)
{
	kio_session_end(container_of(to_delayed_work(work), struct kio_session, deadline));
}

struct kio_session *kio_session_new(void)
{
	struct kio_session *session = kvzalloc(sizeof(*session), GFP_KERNEL);

	if (!session)
		return NULL;
	kref_init(&session->ref);
	mutex_init(&session->lock);
	init_completion(&session->go);
	init_waitqueue_head(&session->wait);
	INIT_DELAYED_WORK(&session->deadline, kio_deadline);
	session->state = KIO_STATE_IDLE;
	return session;
}

/* No job runs; the results stay. */
void kio_session_close_devices(struct kio_session *session)
{
	u32 i;

	for (i = 0; i < session->nr_devices; i++)
		kio_device_close(&session->devices[i]);
	session->nr_devices = 0;
}

/* Back to nothing; no thread has work to do any more. */
static void kio_session_clear(struct kio_session *session)
{
	u32 i;

	cancel_delayed_work_sync(&session->deadline);
	/* The last end-io may not have returned yet. */
	if (session->nr_jobs)
		synchronize_rcu();
	for (i = 0; i < session->nr_jobs; i++)
		kio_job_free(session->jobs[i]);
	session->nr_jobs = 0;
	kio_session_close_devices(session);
	session->error = 0;
}

static void kio_session_free(struct kref *ref)
{
	struct kio_session *session = container_of(ref, struct kio_session, ref);

	kio_session_clear(session);
	kvfree(session);
}

void kio_session_put(struct kio_session *session)
{
	kref_put(&session->ref, kio_session_free);
}

int kio_session_add_device(struct kio_session *session, struct kio_add_dev *args)
{
	int err;

	args->message[0] = '\0';
	if (session->state != KIO_STATE_IDLE)
		return -EBUSY;
	if (args->flags & ~(KIO_DEV_WRITE | KIO_DEV_EXCL))
		return -EINVAL;
	if (strnlen(args->path, KIO_PATH_MAX) == KIO_PATH_MAX)
		return -ENAMETOOLONG;
	if (session->nr_devices == KIO_MAX_DEVICES)
		return -ENOSPC;
	err = kio_device_open(&session->devices[session->nr_devices], args);
	if (!err)
		args->index = session->nr_devices++;
	return err;
}

int kio_session_add_job(struct kio_session *session, struct kio_add_job *args)
{
	struct kio_device *device;
	struct kio_job *job;
	int err;

	if (session->state != KIO_STATE_IDLE)
		return -EBUSY;
	if (session->nr_jobs == KIO_MAX_JOBS)
		return -ENOSPC;
	if (args->device >= session->nr_devices) {
		args->err_field = KIO_FIELD_DEVICE;
		snprintf(args->message, sizeof(args->message), "there is no device %u",
			 args->device);
		return -EINVAL;
	}
	device = &session->devices[args->device];
	err = kio_plan_check(args, device);
	if (err)
		return err;
	job = kio_job_new(session, device, args);
	if (IS_ERR(job))
		return PTR_ERR(job);
	job->index = session->nr_jobs;
	args->job = session->nr_jobs;
	session->jobs[session->nr_jobs++] = job;
	return 0;
}

static int kio_check_start(struct kio_session *session, struct kio_start *args)
{
	u32 i;

	args->message[0] = '\0';
	if (session->state != KIO_STATE_IDLE)
		return -EBUSY;
	if (!session->nr_jobs)
		return -ENOENT;
	if (args->flags || args->runtime_ns > KIO_MOST_NS || args->ramp_ns > KIO_MOST_NS ||
	    (args->runtime_ns && args->runtime_ns < KIO_LEAST_NS) ||
	    (args->interval_ns && args->interval_ns < KIO_LEAST_NS)) {
		snprintf(args->message, sizeof(args->message),
			 "times are 1 ms to 1 year, flags are 0");
		return -EINVAL;
	}
	for (i = 0; i < session->nr_jobs; i++) {
		if (args->runtime_ns || session->jobs[i]->limit != KIO_NEVER)
			continue;
		snprintf(args->message, sizeof(args->message),
			 "job %u would never end: no runtime, no limit", i);
		return -EINVAL;
	}
	return 0;
}

static int kio_prepare(struct kio_session *session, struct kio_start *args)
{
	u64 records = KIO_MAX_SERIES;
	int err;
	u32 i;

	session->runtime_ns = args->runtime_ns;
	session->ramp_ns = args->ramp_ns;
	session->interval_ns = args->interval_ns;
	session->error_limit = args->error_limit;
	atomic64_set(&session->errors, 0);
	session->stop = false;
	session->error = 0;
	reinit_completion(&session->go);
	for (i = 0; i < session->nr_devices; i++)
		kio_device_drop_cache(&session->devices[i], true);
	if (!args->interval_ns)
		return 0;
	if (args->runtime_ns)
		records = div64_u64(args->runtime_ns, args->interval_ns) + 1;
	for (i = 0; i < session->nr_jobs; i++) {
		err = session->jobs[i]->series ? 0 : kio_job_make_series(session->jobs[i], records);
		if (err)
			return err;
	}
	return 0;
}

/* Makes the thread of a job; it waits for the word to go. */
static int kio_thread_new(struct kio_session *session, struct kio_job *job)
{
	int node = job->plan.cpu >= 0 ? cpu_to_node(job->plan.cpu) : job->plan.node;
	struct task_struct *task;

	task = kthread_create_on_node(kio_job_thread, job, node, "kio[%u]", job->index);
	if (IS_ERR(task))
		return PTR_ERR(task);
	get_task_struct(task);
	job->task = task;
	job->running = true;
	if (job->plan.cpu >= 0)
		kthread_bind(task, job->plan.cpu);
	kref_get(&session->ref);
	__module_get(THIS_MODULE);
	atomic_inc(&session->threads);
	wake_up_process(task);
	return 0;
}

/* The run is over. */
static void kio_session_over(struct kio_session *session)
{
	u32 i;

	for (i = 0; i < session->nr_jobs && !session->error; i++)
		session->error = session->jobs[i]->error;
	for (i = 0; i < session->nr_devices; i++)
		if (session->devices[i].wrote)
			kio_device_drop_cache(&session->devices[i], false);
	if (session->log_results)
		kio_log_session(session);
	smp_store_release(&session->state, KIO_STATE_DONE);
	wake_up_all(&session->wait);
}

static void kio_thread_gone(struct kio_session *session)
{
	if (atomic_dec_and_test(&session->threads))
		kio_session_over(session);
}

void kio_session_thread_done(struct kio_session *session)
{
	kio_thread_gone(session);
	kio_session_put(session);
}

int kio_session_start(struct kio_session *session, struct kio_start *args)
{
	int err = kio_check_start(session, args);
	u32 i;

	if (!err)
		err = kio_prepare(session, args);
	if (err)
		return err;
	/* One for us: the run is not over before all threads are there. */
	atomic_set(&session->threads, 1);
	smp_store_release(&session->state, KIO_STATE_RUNNING);
	for (i = 0; i < session->nr_jobs && !err; i++)
		err = kio_thread_new(session, session->jobs[i]);
	if (err) {
		session->stop = true;
		session->log_results = false;
		snprintf(args->message, sizeof(args->message), "no thread for job %u", i - 1);
	}
	session->start_ns = ktime_get_ns();
	args->start_ns = session->start_ns;
	if (session->runtime_ns && !err)
		schedule_delayed_work(&session->deadline,
				      nsecs_to_jiffies(session->ramp_ns + session->runtime_ns) + 2);
	complete_all(&session->go);
	kio_thread_gone(session);
	return err;
}

/* Tells all threads to stop; does not wait. Also called by threads. */
void kio_session_end(struct kio_session *session)
{
	u32 i;

	WRITE_ONCE(session->stop, true);
	/* Before the flag is looked for by who is about to sleep, and after. */
	smp_mb();
	for (i = 0; i < session->nr_jobs; i++)
		if (READ_ONCE(session->jobs[i]->running))
			wake_up_process(session->jobs[i]->task);
}

/* Ends the run and waits for its bios, but not for ever. */
int kio_session_drain(struct kio_session *session)
{
	u32 state;

	/* The lock keeps the jobs there while they are told. */
	mutex_lock(&session->lock);
	state = smp_load_acquire(&session->state);
	if (state == KIO_STATE_RUNNING || state == KIO_STATE_ZOMBIE)
		kio_session_end(session);
	mutex_unlock(&session->lock);
	if (state == KIO_STATE_IDLE || state == KIO_STATE_DONE)
		return 0;
	if (wait_event_timeout(session->wait,
			       smp_load_acquire(&session->state) == KIO_STATE_DONE,
			       KIO_DRAIN_SECONDS * HZ))
		return 0;
	cmpxchg(&session->state, KIO_STATE_RUNNING, KIO_STATE_ZOMBIE);
	pr_warn("%u bios did not end within %u s, their memory stays until they do\n",
		kio_session_stuck(session), KIO_DRAIN_SECONDS);
	return -EIO;
}

u32 kio_session_stuck(struct kio_session *session)
{
	u32 i, stuck = 0;

	mutex_lock(&session->lock);
	for (i = 0; i < session->nr_jobs; i++)
		if (READ_ONCE(session->jobs[i]->running))
			stuck += READ_ONCE(session->jobs[i]->inflight);
	mutex_unlock(&session->lock);
	return stuck;
}

int kio_session_reset(struct kio_session *session)
{
	u32 state = smp_load_acquire(&session->state);

	if (state != KIO_STATE_IDLE && state != KIO_STATE_DONE)
		return -EBUSY;
	kio_session_clear(session);
	session->state = KIO_STATE_IDLE;
	return 0;
}
