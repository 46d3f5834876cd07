// SPDX-License-Identifier: GPL-2.0
/*
 * Calls on a node. The position of a call is the address on the card. Plain
 * reads and writes of xdma leave the position of the file where it is, those of
 * edma move it. A request is pinned as a whole and moved in cuts.
 */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "xemu.h"
#include "xemu_uapi.h"

/* Memory of a request: pinned pages of a program, or what the kernel gave. */
struct xemu_memory {
	struct page **pages;
	struct bio_vec *vecs;
	unsigned int nr;
	struct iov_iter iter;
};

static unsigned long xemu_segment(const struct iov_iter *iter, size_t *len)
{
	if (iter_is_iovec(iter)) {
#ifdef iter_iov_addr
		*len = min(iter_iov_len(iter), iov_iter_count(iter));
		return (unsigned long)iter_iov_addr(iter);
#else
		struct iovec vec = iov_iter_iovec(iter);

		*len = vec.iov_len;
		return (unsigned long)vec.iov_base;
#endif
	}
	*len = iov_iter_count(iter);
	if (iter_is_ubuf(iter))
		return (unsigned long)iter->ubuf + iter->iov_offset;
	if (iov_iter_is_bvec(iter))
		return iter->bvec->bv_offset + iter->iov_offset;
	return iov_iter_alignment(iter);
}

static bool xemu_is_aligned(struct xemu_channel *channel, u64 at, unsigned long address, size_t len)
{
	unsigned long wrong = READ_ONCE(channel->fixed) ? address | at | len : address - at;

	return !(wrong & (xemu_align - 1));
}

static int xemu_pin_segment(struct xemu_memory *memory, unsigned long address, size_t len)
{
	while (len) {
		size_t in_page = offset_in_page(address);
		int want = DIV_ROUND_UP(in_page + len, PAGE_SIZE);
		int i, got;

		/* The engine maps every buffer for both directions. */
		got = pin_user_pages_fast(address & PAGE_MASK, want, FOLL_WRITE,
					  memory->pages + memory->nr);
		if (got <= 0)
			return got == -ENOMEM ? -ENOMEM : -EFAULT;
		for (i = 0; i < got; i++) {
			struct bio_vec *vec = &memory->vecs[memory->nr];

			vec->bv_page = memory->pages[memory->nr++];
			vec->bv_offset = offset_in_page(address);
			vec->bv_len = min(len, PAGE_SIZE - vec->bv_offset);
			address += vec->bv_len;
			len -= vec->bv_len;
		}
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

static void xemu_unpin(struct xemu_memory *memory, bool write)
{
	if (memory->nr)
		unpin_user_pages_dirty_lock(memory->pages, memory->nr, !write);
	kvfree(memory->pages);
	kvfree(memory->vecs);
}

/* Checks the memory of a request and pins it. */
static int xemu_pin(struct xemu_channel *channel, u64 at, const struct iov_iter *from, bool write,
		    struct xemu_memory *memory)
{
	struct iov_iter rest = *from;
	size_t len, most = 0;
	int err;

	if (user_backed_iter(from)) {
		most = iov_iter_npages(from, INT_MAX);
		memory->pages = kvmalloc_array(most, sizeof(*memory->pages), GFP_KERNEL);
		memory->vecs = kvmalloc_array(most, sizeof(*memory->vecs), GFP_KERNEL);
		if (!memory->pages || !memory->vecs)
			return -ENOMEM;
	}
	for (; iov_iter_count(&rest); iov_iter_advance(&rest, len), at += len) {
		unsigned long address = xemu_segment(&rest, &len);

		if (!xemu_is_aligned(channel, at, address, len))
			return -EINVAL;
		err = most ? xemu_pin_segment(memory, address, len) : 0;
		if (err)
			return err;
	}
	memory->iter = *from;
	if (most)
		iov_iter_bvec(&memory->iter, write ? WRITE : READ, memory->vecs, memory->nr,
			      iov_iter_count(from));
	return 0;
}

/* Moves a request cut by cut: the bytes of the good ones, or the error of the first. */
static ssize_t xemu_cuts(struct xemu_channel *channel, u64 at, size_t in_page,
			 struct iov_iter *iter, bool write)
{
	ssize_t sum = 0;

	while (iov_iter_count(iter)) {
		size_t cut = min(iov_iter_count(iter), XEMU_CUT - in_page);
		struct iov_iter of_cut = *iter;
		ssize_t moved;

		iov_iter_truncate(&of_cut, cut);
		if (write && channel->posts)
			moved = xemu_post(channel, at + sum, cut, &of_cut);
		else
			moved = xemu_transfer(channel, at + sum, cut, &of_cut, write);
		if (moved < 0)
			return sum ? sum : moved;
		sum += moved;
		if (moved < cut)
			break;
		iov_iter_advance(iter, cut);
		in_page = 0;
	}
	return sum;
}

static ssize_t xemu_request(struct xemu_channel *channel, u64 at, const struct iov_iter *from,
			    bool write)
{
	struct xemu_memory memory = {};
	ssize_t moved;
	size_t len;
	size_t in_page = offset_in_page(xemu_segment(from, &len));

	if (!(write ? channel->writes : channel->reads))
		return -EINVAL;
	if (!iov_iter_count(from))
		return in_page ? 0 : -EINVAL;
	mutex_lock(&channel->lock);
	moved = xemu_pin(channel, at, from, write, &memory);
	if (!moved && !write && channel->posts)
		moved = xemu_posted_wait(channel);
	if (!moved)
		moved = xemu_cuts(channel, at, in_page, &memory.iter, write);
	mutex_unlock(&channel->lock);
	xemu_unpin(&memory, write);
	return moved;
}

static ssize_t xemu_call(struct kiocb *iocb, struct iov_iter *iter, bool write)
{
	struct xemu_channel *channel = iocb->ki_filp->private_data;
	ssize_t moved = xemu_request(channel, iocb->ki_pos, iter, write);

	if (moved < 0) {
		atomic64_inc(&channel->errors);
		return moved;
	}
	/* What is posted is counted where it is stored. */
	if (!write || !channel->posts) {
		atomic64_inc(&channel->ops);
		atomic64_add(moved, &channel->bytes);
	}
	if (channel->posts)
		iocb->ki_pos += moved;
	return moved;
}

static ssize_t xemu_read(struct kiocb *iocb, struct iov_iter *to)
{
	return xemu_call(iocb, to, false);
}

static ssize_t xemu_write(struct kiocb *iocb, struct iov_iter *from)
{
	return xemu_call(iocb, from, true);
}

static loff_t xemu_llseek(struct file *file, loff_t offset, int whence)
{
	loff_t base;

	switch (whence) {
	case SEEK_SET:
		base = 0;
		break;
	case SEEK_CUR:
		base = file->f_pos;
		break;
	case SEEK_END:
		/* Not the card's size: 32 bits are what the driver takes it for. */
		base = U32_MAX;
		break;
	default:
		return -EINVAL;
	}
	if (offset > LLONG_MAX - base || base + offset < 0)
		return -EINVAL;
	file->f_pos = base + offset;
	return file->f_pos;
}

static long xemu_ioctl(struct file *file, unsigned int call, unsigned long arg)
{
	struct xemu_channel *channel = file->private_data;
	int __user *user = (int __user *)arg;
	int value;

	switch (call) {
	case XEMU_ADDRMODE_SET:
		if (get_user(value, user))
			return -EFAULT;
		mutex_lock(&channel->lock);
		WRITE_ONCE(channel->fixed, !!value);
		mutex_unlock(&channel->lock);
		return 0;
	case XEMU_ADDRMODE_GET:
		return put_user((int)READ_ONCE(channel->fixed), user);
	case XEMU_ALIGN_GET:
		return put_user((int)xemu_align, user);
	case XEMU_PERF_START:
	case XEMU_PERF_STOP:
	case XEMU_PERF_GET:
	case XEMU_APERTURE_R:
	case XEMU_APERTURE_W:
		return -EOPNOTSUPP;
	default:
		return -EINVAL;
	}
}

static int xemu_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	struct xemu_channel *channel = file->private_data;
	int err = xemu_posted_wait(channel);

	return err ? err : xemu_posted_error(channel);
}

static int xemu_open(struct inode *inode, struct file *file)
{
	file->private_data = container_of(inode->i_cdev, struct xemu_channel, cdev);
	return 0;
}

const struct file_operations xemu_xdma_fops = {
	.owner = THIS_MODULE,
	.open = xemu_open,
	.read_iter = xemu_read,
	.write_iter = xemu_write,
	.llseek = xemu_llseek,
	.unlocked_ioctl = xemu_ioctl,
};

const struct file_operations xemu_edma_fops = {
	.owner = THIS_MODULE,
	.open = xemu_open,
	.read_iter = xemu_read,
	.write_iter = xemu_write,
	.llseek = xemu_llseek,
	.unlocked_ioctl = xemu_ioctl,
	.fsync = xemu_fsync,
};
