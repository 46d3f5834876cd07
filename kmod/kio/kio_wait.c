// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting. In: a job whose next I/O is held back. Out: some time later; the
 * caller looks what has changed. A job sleeps until end-io wakes it, spins, or
 * polls the device.
 */
#include <linux/hrtimer.h>
#include <linux/sched.h>

#include "kio.h"

#define KIO_LOOKS	64	/* between two chances for the scheduler */

/* Sleeps until end-io or a stop. */
static void kio_sleep(struct kio_job *job, bool draining)
{
	u64 before = ktime_get_ns();

	WRITE_ONCE(job->sleeping, true);
	/* A barrier: either we see the slot, or end-io sees us asleep. */
	set_current_state(TASK_IDLE);
	if (llist_empty(&job->done) && (draining || !kio_job_stopped(job))) {
		schedule();
		job->wakeups++;
	}
	__set_current_state(TASK_RUNNING);
	WRITE_ONCE(job->sleeping, false);
	job->idle_ns += ktime_get_ns() - before;
}

static void kio_spin(struct kio_job *job)
{
	int looks;

	for (looks = 0; looks < KIO_LOOKS && llist_empty(&job->done); looks++)
		cpu_relax();
	cond_resched();
}

/* The slot to poll for: the next in flight, in turn, so that none is left out. */
static struct kio_slot *kio_poll_slot(struct kio_job *job)
{
	u32 depth = job->plan.queue_depth, tries;

	for (tries = 0; tries < depth; tries++) {
		struct kio_slot *slot = &job->slots[job->poll_at];

		if (slot->inflight)
			return slot;
		job->poll_at = job->poll_at + 1 < depth ? job->poll_at + 1 : 0;
	}
	return NULL;
}

static void kio_poll(struct kio_job *job, bool draining)
{
	struct kio_slot *slot = kio_poll_slot(job);
	int looks;

	for (looks = 0; slot && looks < KIO_LOOKS; looks++) {
		kio_bio_poll(&slot->bio);
		job->polls++;
		if (!llist_empty(&job->done))
			return;
		job->polls_empty++;
	}
	job->poll_at = job->poll_at + 1 < job->plan.queue_depth ? job->poll_at + 1 : 0;
	/* Nobody measures any more, and the device may never answer. */
	if (draining && kio_job_stopped(job))
		schedule_timeout_idle(1);
	cond_resched();
}

/* Waits a while for a bio to end; the caller looks whether it did. */
void kio_job_wait(struct kio_job *job, bool draining)
{
	if (job->complete == KIO_COMPLETE_POLL)
		kio_poll(job, draining);
	else if (job->complete == KIO_COMPLETE_SPIN && !draining)
		kio_spin(job);
	else
		kio_sleep(job, draining);
	kio_tick(job, ktime_get_ns());
}

/* Waits a while for the end of a pause. */
static void kio_pause(struct kio_job *job)
{
	u64 before = ktime_get_ns(), now;
	ktime_t until = ns_to_ktime(job->pause_until);

	if (before >= job->pause_until) {
		job->hold &= ~KIO_HOLD_PAUSE;
		return;
	}
	if (job->complete == KIO_COMPLETE_IRQ) {
		set_current_state(TASK_IDLE);
		if (!kio_job_stopped(job))
			schedule_hrtimeout_range(&until, 1000, HRTIMER_MODE_ABS);
		__set_current_state(TASK_RUNNING);
	} else if (job->complete == KIO_COMPLETE_POLL && job->inflight) {
		kio_poll(job, false);
	} else {
		kio_spin(job);
	}
	now = ktime_get_ns();
	job->pause_ns += now - before;
	kio_tick(job, now);
}

/* Something keeps the next I/O back. */
void kio_job_held(struct kio_job *job)
{
	u64 before;

	if (job->hold & KIO_HOLD_PAUSE) {
		kio_pause(job);
	} else if (job->inflight && (job->hold || job->inflight > job->room)) {
		before = ktime_get_ns();
		kio_job_wait(job, false);
		if (job->hold & KIO_HOLD_DRAIN)
			job->drain_ns += ktime_get_ns() - before;
	} else {
		job->hold &= ~(KIO_HOLD_DRAIN | KIO_HOLD_AGAIN);
		cond_resched();
	}
}
