// SPDX-License-Identifier: GPL-2.0
/*
 * One transfer. In: an address of the card and the caller's memory. Out: the
 * bytes moved. Data move first, and the caller waits until the time of the
 * channel says that they have. Not here: which calls there are (xemu_file.c).
 */
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "xemu.h"

/* Takes the channel's fault if it concerns this transfer, and counts down to it if not. */
void xemu_fault_take(struct xemu_channel *channel, u64 at, size_t len, struct xemu_fault *out)
{
	struct xemu_fault *fault = &channel->fault;
	bool hit = false;

	spin_lock(&channel->fault_lock);
	if (!fault->hit && fault->kind == XEMU_FLIP)
		hit = fault->at >= at && fault->at - at < len;
	else if (!fault->hit && fault->kind != XEMU_NONE)
		hit = --fault->at == 0;
	out->kind = XEMU_NONE;
	if (hit) {
		fault->hit = true;
		*out = *fault;
	}
	spin_unlock(&channel->fault_lock);
}

/* Half of a transfer that is short; 0 where it is too small for one. */
size_t xemu_half(size_t len)
{
	return round_down(len / 2, 4096);
}

/* The time at which a transfer ends that starts now. The channel's lock is held. */
ktime_t xemu_due(struct xemu_channel *channel, ktime_t start, size_t len)
{
	u64 rate = READ_ONCE(channel->bytes_per_s);
	u64 ns = READ_ONCE(channel->latency_ns);

	/* A transfer has XEMU_CUT bytes at most, so the product fits. */
	if (rate)
		ns += div64_u64((u64)len * NSEC_PER_SEC + rate - 1, rate);
	if (ktime_after(channel->ended, start))
		start = channel->ended;
	channel->ended = ktime_add_ns(start, ns);
	return channel->ended;
}

static size_t xemu_copy(void *page, size_t in_page, size_t len, struct iov_iter *iter, bool write)
{
	if (write)
		return copy_from_iter(page + in_page, len, iter);
	return page ? copy_to_iter(page + in_page, len, iter) : iov_iter_zero(len, iter);
}

/* Moves the one byte that has a flipped bit. */
static size_t xemu_copy_flipped(void *page, size_t in_page, unsigned int bit,
				struct iov_iter *iter, bool write)
{
	u8 byte = 0;

	if (!write) {
		if (page)
			byte = *(u8 *)(page + in_page);
		byte ^= BIT(bit);
		return copy_to_iter(&byte, 1, iter);
	}
	if (copy_from_iter(&byte, 1, iter) != 1)
		return 0;
	*(u8 *)(page + in_page) = byte ^ BIT(bit);
	return 1;
}

static int xemu_move_range(struct xemu_card *card, u64 at, size_t len, struct iov_iter *iter,
			   bool write, const struct xemu_fault *fault)
{
	while (len) {
		size_t in_page = offset_in_page(at);
		size_t part = min(len, PAGE_SIZE - in_page);
		void *page = xemu_memory_page(card, at);
		size_t moved;

		if (fault->kind == XEMU_FLIP && fault->at > at)
			part = min_t(u64, part, fault->at - at);
		if (fault->kind == XEMU_FLIP && fault->at == at) {
			part = 1;
			moved = xemu_copy_flipped(page, in_page, fault->bit, iter, write);
		} else {
			moved = xemu_copy(page, in_page, part, iter, write);
		}
		if (moved != part)
			return -EFAULT;
		at += part;
		len -= part;
		cond_resched();
	}
	return 0;
}

/*
 * With a fixed address each beat of the bus, `align` bytes, goes to that address:
 * of what is written the last beat stays, and what is read is one beat again
 * and again.
 */
static int xemu_move_fixed(struct xemu_card *card, u64 at, size_t len, struct iov_iter *iter,
			   bool write, const struct xemu_fault *fault)
{
	int err = 0;

	if (write) {
		iov_iter_advance(iter, len - xemu_align);
		return xemu_move_range(card, at, xemu_align, iter, write, fault);
	}
	for (; len && !err; len -= xemu_align)
		err = xemu_move_range(card, at, xemu_align, iter, write, fault);
	return err;
}

/* Moves data between the card and memory; EIO where the card has no such address. */
int xemu_move(struct xemu_channel *channel, u64 at, size_t len, struct iov_iter *iter, bool write,
	      const struct xemu_fault *fault)
{
	bool fixed = READ_ONCE(channel->fixed) && !(len % xemu_align);
	size_t covered = fixed ? xemu_align : len;
	int err;

	if (at > xemu_mem_bytes || covered > xemu_mem_bytes - at)
		return -EIO;
	if (write) {
		err = xemu_memory_store(channel->card, at, covered);
		if (err)
			return err;
	}
	if (fixed)
		return xemu_move_fixed(channel->card, at, len, iter, write, fault);
	return xemu_move_range(channel->card, at, len, iter, write, fault);
}

/* Carries out one transfer; the channel's lock is held. */
ssize_t xemu_transfer(struct xemu_channel *channel, u64 at, size_t len, struct iov_iter *iter,
		      bool write)
{
	ktime_t start = ktime_get();
	struct xemu_fault fault;
	int err;

	xemu_fault_take(channel, at, len, &fault);
	if (fault.kind == XEMU_HANG)
		return xemu_wait(channel, KTIME_MAX, xemu_timeout(write));
	if (fault.kind == XEMU_SHORT)
		len = xemu_half(len);
	if (fault.kind == XEMU_EIO || !len)
		return -EIO;
	err = xemu_move(channel, at, len, iter, write, &fault);
	if (!err)
		err = xemu_wait(channel, xemu_due(channel, start, len), xemu_timeout(write));
	return err ? err : len;
}
