// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting for the end of a transfer. The caller sleeps; a timer wakes it, as an
 * interrupt would, or with poll_mode a thread that spins until the time has
 * come. Each such thread has some of the channels, and sleeps while none of
 * them waits.
 */
#include <linux/kthread.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "xemu.h"

struct xemu_poller {
	struct task_struct *task;
	spinlock_t lock;	/* of the list and of what is on it */
	struct list_head waiting;
	wait_queue_head_t wait;
};

static struct xemu_poller *xemu_pollers;
static unsigned int xemu_nr_pollers;

static void xemu_poll_once(struct xemu_poller *poller)
{
	struct xemu_channel *channel, *next;

	spin_lock(&poller->lock);
	list_for_each_entry_safe(channel, next, &poller->waiting, polled) {
		if (ktime_before(ktime_get(), channel->due))
			continue;
		list_del_init(&channel->polled);
		complete(&channel->done);
	}
	spin_unlock(&poller->lock);
}

static int xemu_poll_thread(void *data)
{
	struct xemu_poller *poller = data;

	while (!kthread_should_stop()) {
		wait_event_idle(poller->wait,
				!list_empty_careful(&poller->waiting) || kthread_should_stop());
		xemu_poll_once(poller);
		cpu_relax();
		cond_resched();
	}
	return 0;
}

int xemu_pollers_start(unsigned int wanted)
{
	struct xemu_poller *poller;

	wanted = min(wanted, num_online_cpus());
	xemu_pollers = kcalloc(wanted, sizeof(*xemu_pollers), GFP_KERNEL);
	if (!xemu_pollers)
		return -ENOMEM;
	for (; xemu_nr_pollers < wanted; xemu_nr_pollers++) {
		poller = &xemu_pollers[xemu_nr_pollers];
		spin_lock_init(&poller->lock);
		INIT_LIST_HEAD(&poller->waiting);
		init_waitqueue_head(&poller->wait);
		poller->task = kthread_run(xemu_poll_thread, poller, "xdma_poll/%u",
					   xemu_nr_pollers);
		if (IS_ERR(poller->task))
			return PTR_ERR(poller->task);
	}
	return 0;
}

void xemu_pollers_stop(void)
{
	while (xemu_nr_pollers)
		kthread_stop(xemu_pollers[--xemu_nr_pollers].task);
	kfree(xemu_pollers);
	xemu_pollers = NULL;
}

static enum hrtimer_restart xemu_timer(struct hrtimer *timer)
{
	complete(&container_of(timer, struct xemu_channel, timer)->done);
	return HRTIMER_NORESTART;
}

void xemu_wait_init(struct xemu_channel *channel, unsigned int number)
{
	init_completion(&channel->done);
	hrtimer_init(&channel->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	channel->timer.function = xemu_timer;
	channel->poller = &xemu_pollers[number % xemu_nr_pollers];
	INIT_LIST_HEAD(&channel->polled);
}

static void xemu_wait_poller(struct xemu_channel *channel)
{
	struct xemu_poller *poller = channel->poller;

	spin_lock(&poller->lock);
	list_add_tail(&channel->polled, &poller->waiting);
	spin_unlock(&poller->lock);
	wake_up(&poller->wait);
}

/* After it nobody completes the channel. */
static void xemu_wait_cancel(struct xemu_channel *channel, bool polls)
{
	if (!polls) {
		hrtimer_cancel(&channel->timer);
		return;
	}
	spin_lock(&channel->poller->lock);
	list_del_init(&channel->polled);
	spin_unlock(&channel->poller->lock);
}

/*
 * Waits until a time, KTIME_MAX for one that does not come. After so many
 * seconds, or with a signal, it is ETIMEDOUT; with 0 seconds nothing but a kill
 * ends it.
 */
int xemu_wait(struct xemu_channel *channel, ktime_t due, unsigned int seconds)
{
	bool polls = READ_ONCE(xemu_poll_mode);
	long left;

	if (ktime_compare(due, ktime_get()) <= 0)
		return 0;
	reinit_completion(&channel->done);
	channel->due = due;
	if (polls)
		xemu_wait_poller(channel);
	else if (due != KTIME_MAX)
		hrtimer_start(&channel->timer, due, HRTIMER_MODE_ABS);
	if (seconds)
		left = wait_for_completion_interruptible_timeout(&channel->done,
								 (long)seconds * HZ);
	else
		left = wait_for_completion_killable(&channel->done) ? -EINTR : 1;
	xemu_wait_cancel(channel, polls);
	if (left > 0)
		return 0;
	/* The engine is stopped. */
	channel->ended = ktime_get();
	return -ETIMEDOUT;
}
