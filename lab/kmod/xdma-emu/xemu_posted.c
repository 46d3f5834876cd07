// SPDX-License-Identifier: GPL-2.0
/*
 * Posted writes of edma: data are copied into a queue, the call returns, and a
 * thread of the channel stores them in their order when their time has come.
 * What fails then, fsync says once.
 */
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "xemu.h"

#define XEMU_QUEUE	64u

struct xemu_post {
	struct list_head list;
	u64 at;
	size_t len;
	ktime_t due;
	u8 data[];
};

/* Waits until the write is due: ETIMEDOUT where the time-out comes first, EINTR at the end of the module. */
static int xemu_post_sleep(struct xemu_channel *channel, ktime_t due)
{
	unsigned int seconds = xemu_timeout(true);
	ktime_t limit = seconds ? ktime_add_ns(ktime_get(), seconds * NSEC_PER_SEC) : KTIME_MAX;
	ktime_t until = min(due, limit);

	while (!kthread_should_stop() && ktime_before(ktime_get(), until)) {
		if (READ_ONCE(xemu_poll_mode)) {
			cpu_relax();
			cond_resched();
		} else if (until == KTIME_MAX) {
			wait_event_idle(channel->queue_wait, kthread_should_stop());
		} else {
			wait_event_interruptible_hrtimeout(channel->queue_wait,
							   kthread_should_stop(),
							   ktime_sub(until, ktime_get()));
		}
	}
	if (kthread_should_stop())
		return -EINTR;
	return ktime_after(due, limit) ? -ETIMEDOUT : 0;
}

static int xemu_post_store(struct xemu_channel *channel, struct xemu_post *post)
{
	struct kvec vec = { .iov_base = post->data, .iov_len = post->len };
	struct xemu_fault fault;
	size_t len = post->len;
	struct iov_iter iter;
	int err;

	xemu_fault_take(channel, post->at, len, &fault);
	err = xemu_post_sleep(channel, fault.kind == XEMU_HANG ? KTIME_MAX : post->due);
	if (err)
		return err;
	if (fault.kind == XEMU_SHORT)
		len = xemu_half(len);
	if (fault.kind == XEMU_EIO || !len)
		return -EIO;
	iov_iter_kvec(&iter, WRITE, &vec, 1, len);
	err = xemu_move(channel, post->at, len, &iter, true, &fault);
	if (err)
		return err;
	atomic64_add(len, &channel->bytes);
	return fault.kind == XEMU_SHORT ? -EIO : 0;
}

static struct xemu_post *xemu_post_first(struct xemu_channel *channel)
{
	struct xemu_post *post;

	spin_lock(&channel->queue_lock);
	post = list_first_entry_or_null(&channel->queue, struct xemu_post, list);
	spin_unlock(&channel->queue_lock);
	return post;
}

static void xemu_post_end(struct xemu_channel *channel, struct xemu_post *post, int err)
{
	if (err)
		atomic64_inc(&channel->errors);
	else
		atomic64_inc(&channel->ops);
	spin_lock(&channel->queue_lock);
	list_del(&post->list);
	channel->queued--;
	channel->stored++;
	if (!channel->posted_error)
		channel->posted_error = err;
	spin_unlock(&channel->queue_lock);
	kvfree(post);
	wake_up_all(&channel->queue_wait);
}

static int xemu_store_thread(void *data)
{
	struct xemu_channel *channel = data;
	struct xemu_post *post;

	while (!kthread_should_stop()) {
		wait_event_idle(channel->queue_wait,
				xemu_post_first(channel) || kthread_should_stop());
		post = xemu_post_first(channel);
		if (post && !kthread_should_stop())
			xemu_post_end(channel, post, xemu_post_store(channel, post));
	}
	return 0;
}

int xemu_posted_start(struct xemu_channel *channel)
{
	struct task_struct *task;

	spin_lock_init(&channel->queue_lock);
	INIT_LIST_HEAD(&channel->queue);
	init_waitqueue_head(&channel->queue_wait);
	if (!channel->posts)
		return 0;
	task = kthread_run(xemu_store_thread, channel, "%s", dev_name(&channel->dev));
	if (IS_ERR(task))
		return PTR_ERR(task);
	channel->storer = task;
	return 0;
}

/* Stops the thread; what is in the queue is gone with the card. */
void xemu_posted_stop(struct xemu_channel *channel)
{
	struct xemu_post *post, *next;

	if (!channel->storer)
		return;
	kthread_stop(channel->storer);
	list_for_each_entry_safe(post, next, &channel->queue, list)
		kvfree(post);
}

static bool xemu_has_room(struct xemu_channel *channel)
{
	return READ_ONCE(channel->queued) < XEMU_QUEUE;
}

/* Takes one write into the queue, when there is room; the channel's lock is held. */
ssize_t xemu_post(struct xemu_channel *channel, u64 at, size_t len, struct iov_iter *iter)
{
	ktime_t start = ktime_get();
	struct xemu_post *post;

	if (wait_event_killable(channel->queue_wait, xemu_has_room(channel)))
		return -EINTR;
	post = kvmalloc(struct_size(post, data, len), GFP_KERNEL_ACCOUNT);
	if (!post)
		return -ENOMEM;
	if (copy_from_iter(post->data, len, iter) != len) {
		kvfree(post);
		return -EFAULT;
	}
	post->at = at;
	post->len = len;
	post->due = xemu_due(channel, start, len);
	spin_lock(&channel->queue_lock);
	list_add_tail(&post->list, &channel->queue);
	channel->queued++;
	channel->posted++;
	spin_unlock(&channel->queue_lock);
	wake_up_all(&channel->queue_wait);
	return len;
}

static bool xemu_has_stored(struct xemu_channel *channel, u64 posted)
{
	return READ_ONCE(channel->stored) >= posted;
}

/* Waits until the writes are stored that were posted before. */
int xemu_posted_wait(struct xemu_channel *channel)
{
	u64 posted = READ_ONCE(channel->posted);

	return wait_event_killable(channel->queue_wait, xemu_has_stored(channel, posted)) ?
		-EINTR : 0;
}

/* The first error of posted writes since it was last asked for. */
int xemu_posted_error(struct xemu_channel *channel)
{
	int err;

	spin_lock(&channel->queue_lock);
	err = channel->posted_error;
	channel->posted_error = 0;
	spin_unlock(&channel->queue_lock);
	return err;
}
