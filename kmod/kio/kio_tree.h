/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of /sys/kernel/kio and its runs know of one another. */
#ifndef KIO_TREE_H
#define KIO_TREE_H

#include <linux/kobject.h>

#include "kio.h"

enum kio_value {
	KIO_BLOCK_SIZE, KIO_BURST_DELAY, KIO_BURST_FINISH, KIO_OFFSET_HIGH, KIO_OFFSET_LOW,
	KIO_OFFSET_RANDOM, KIO_OFFSET_STRIDE, KIO_QUEUE_DEPTH, KIO_READ_BURST,
	KIO_READ_MIX_PERCENT, KIO_READ_SLEEP_USEC, KIO_WRITE_BURST, KIO_WRITE_SLEEP_USEC,
	KIO_VALUES,
};

/* A value of a thread: what its file holds, what a run takes, what it is at first. */
struct kio_value_kind {
	const char *name;
	s64 least;
	s64 most;
	s64 min;
	s64 max;
	s64 initial;
};

/* A thread, and its directory. */
struct kio_tid {
	struct kobject kobj;
	u32 id;
	s64 values[KIO_VALUES];
};

/* The buckets of reads, then those of writes, u64 each. */
#define KIO_HIST_BYTES	(KIO_HIST_BUCKETS * sizeof(u64))

extern const struct kio_value_kind kio_value_kinds[KIO_VALUES];

/* Nothing changes them in a run. */
extern struct kio_tid *kio_tids[KIO_MAX_JOBS];
extern u32 kio_num_threads;
extern u32 kio_runtime_seconds;

int kio_tree_run(void);
bool kio_tree_stop(void);
void kio_tree_forget(void);
u64 kio_tree_errors(u32 id);
size_t kio_tree_hist(u32 id, u32 kind, char *to, loff_t at, size_t count);

#endif
