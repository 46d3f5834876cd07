/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared types of the parts of the module.
 *
 *	xemu_main.c	loading, parameters, cards and their nodes
 *	xemu_file.c	calls on a node; pinning of the caller's memory
 *	xemu_transfer.c	one transfer: its faults, its data, its time
 *	xemu_wait.c	waiting for a transfer: a timer, or a thread that spins
 *	xemu_posted.c	posted writes of edma
 *	xemu_memory.c	the memory of a card
 *	xemu_sysfs.c	attributes of a node
 */
#ifndef XEMU_H
#define XEMU_H

#include <linux/atomic.h>
#include <linux/cdev.h>
#include <linux/completion.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/uio.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#ifndef CONFIG_64BIT
#error "xdma-emu needs a 64-bit kernel: addresses of the card are indexes of an xarray"
#endif

#define XEMU_MAX_CHANNELS	4u
#define XEMU_MAX_CARDS		8u
#define XEMU_CUT		(2048 * PAGE_SIZE)	/* of one transfer */

struct platform_device;

struct xemu_card {
	struct xarray pages;
	struct platform_device *parent;
	dev_t first;		/* its device numbers */
	unsigned int index;
};

enum xemu_fault_kind {
	XEMU_NONE,
	XEMU_FLIP,
	XEMU_SHORT,
	XEMU_EIO,
	XEMU_HANG,
};

/* The next fault of a channel, and whether it has happened. */
struct xemu_fault {
	enum xemu_fault_kind kind;
	u64 at;			/* address of the byte, or transfers to go */
	unsigned int bit;
	bool hit;
	char written[48];
};

struct xemu_poller;

struct xemu_channel {
	struct device dev;
	struct cdev cdev;
	struct xemu_card *card;
	bool reads;
	bool writes;
	bool posts;		/* a queue of edma */
	bool fixed;		/* Every byte goes to one address. */

	struct mutex lock;	/* held by the one request that is served */
	ktime_t ended;		/* end of the transfer before */

	/* Waiting for a transfer. */
	struct completion done;
	struct hrtimer timer;
	struct xemu_poller *poller;
	struct list_head polled;
	ktime_t due;

	spinlock_t fault_lock;
	struct xemu_fault fault;

	u64 latency_ns;
	u64 bytes_per_s;
	atomic64_t ops;
	atomic64_t bytes;
	atomic64_t errors;

	/* Posted writes. */
	struct task_struct *storer;
	spinlock_t queue_lock;
	struct list_head queue;
	wait_queue_head_t queue_wait;
	unsigned int queued;
	u64 posted;
	u64 stored;
	int posted_error;
};

/* xemu_main.c */
extern unsigned long xemu_mem_bytes;
extern unsigned int xemu_max_mem_mb;
extern unsigned int xemu_align;
extern unsigned int xemu_poll_mode;
unsigned int xemu_timeout(bool write);

/* xemu_file.c */
extern const struct file_operations xemu_xdma_fops;
extern const struct file_operations xemu_edma_fops;

/* xemu_transfer.c */
void xemu_fault_take(struct xemu_channel *channel, u64 at, size_t len, struct xemu_fault *out);
size_t xemu_half(size_t len);
ktime_t xemu_due(struct xemu_channel *channel, ktime_t start, size_t len);
int xemu_move(struct xemu_channel *channel, u64 at, size_t len, struct iov_iter *iter, bool write,
	      const struct xemu_fault *fault);
ssize_t xemu_transfer(struct xemu_channel *channel, u64 at, size_t len, struct iov_iter *iter,
		      bool write);

/* xemu_wait.c */
int xemu_pollers_start(unsigned int wanted);
void xemu_pollers_stop(void);
void xemu_wait_init(struct xemu_channel *channel, unsigned int number);
int xemu_wait(struct xemu_channel *channel, ktime_t due, unsigned int seconds);

/* xemu_posted.c */
int xemu_posted_start(struct xemu_channel *channel);
void xemu_posted_stop(struct xemu_channel *channel);
ssize_t xemu_post(struct xemu_channel *channel, u64 at, size_t len, struct iov_iter *iter);
int xemu_posted_wait(struct xemu_channel *channel);
int xemu_posted_error(struct xemu_channel *channel);

/* xemu_memory.c */
int xemu_memory_store(struct xemu_card *card, u64 at, size_t len);
void *xemu_memory_page(struct xemu_card *card, u64 at);
void xemu_memory_free(struct xemu_card *card);

/* xemu_sysfs.c */
extern const struct attribute_group *xemu_groups[];

#endif
