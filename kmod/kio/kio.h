/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of the module know of one another.
 *
 *	kio_main.c	loading, parameters, /dev/kio
 *	kio_session.c	devices, jobs, start, stop, the end of a run
 *	kio_device.c	opening a device and what it can do
 *	kio_plan.c	whether a job makes sense; its buffers
 *	kio_job.c	the thread of a job: submit and reap
 *	kio_wait.c	and wait
 *	kio_results.c	what a job hands out
 *	kio_sysfs.c	/sys/kernel/kio: its files
 *	kio_tree.c	and its runs
 *	kio_log.c	results as lines of the kernel log
 */
#ifndef KIO_H
#define KIO_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/ktime.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "kio_compat.h"
#include "kio_gen.h"
#include "kio_hist.h"
#include "kio_pattern.h"
#include "kio_uapi.h"

#define KIO_NEVER	(~0ull)
#define KIO_MAX_PIECES	256u	/* of one bio */
#define KIO_DRAIN_SECONDS	30
#define KIO_DEFAULT_SEED	0x5EED

struct kio_job;

/* A bio with its memory, and what is known of its I/O. */
struct kio_slot {
	struct bio bio;
	struct llist_node done;
	struct kio_slot *next;		/* on one of the thread's own lists */
	struct kio_job *job;
	struct bio_vec *vecs[KIO_DIRS];	/* the same unless the job mixes */
	u16 pieces[KIO_DIRS];
	u64 t0;
	u64 t2;
	u64 t3;
	u64 offset;
	u32 dir;
	bool inflight;
};

/* What is counted per direction: only the thread writes it. */
struct kio_counts {
	u64 ios;
	u64 bytes;
	u64 errors;
	struct kio_sum sums[KIO_KINDS];
	u64 hist[KIO_KINDS][KIO_HIST_BUCKETS];
};

/* What keeps the thread from submitting; bits of kio_job.hold. */
#define KIO_HOLD_DRAIN	1u	/* A burst waits until all have ended. */
#define KIO_HOLD_AGAIN	2u	/* There was no tag: wait for one to come back. */
#define KIO_HOLD_PAUSE	4u

/* What is to be done per completion apart from counting; bits of kio_job.also. */
#define KIO_ALSO_SERIES	1u
#define KIO_ALSO_VERIFY	2u

struct kio_job {
	/* What end-io touches, apart from what the thread writes all the time. */
	struct llist_head done ____cacheline_aligned_in_smp;
	bool sleeping;
	struct task_struct *task;

	struct kio_session *session ____cacheline_aligned_in_smp;
	struct block_device *bdev;
	struct kio_slot *free;
	struct kio_slot *retry;
	u32 inflight;
	u32 room;		/* submit while inflight <= room */
	u32 batch;
	u32 hold;
	u32 also;
	u32 passes;
	u32 len;
	u32 complete;
	unsigned int opf[KIO_DIRS];
	bool noacct;
	bool no_hist;
	bool quirks;		/* burst_finish, a pause, data to make or a trace */
	u64 issued;
	u64 limit;		/* of issued; 0 ends the job */
	u64 next_event;		/* when kio_event() has something to do */
	struct kio_gen gen;
	struct kio_counts *counts;	/* [KIO_DIRS] */

	/* Rarely touched. */
	struct kio_add_job plan;
	struct kio_pattern pattern;
	u64 stamp;		/* makes random data differ from write to write */
	u64 measure_at;		/* end of the ramp, KIO_NEVER once it is over */
	u64 end_at;
	u64 interval_at;
	u64 began;		/* end of the ramp as it was met */
	u64 ended;
	u64 pause_until;
	u64 cpu_before;
	u64 cpu_ns;
	u64 drain_ns;
	u64 idle_ns;
	u64 pause_ns;
	u64 verify_ns;
	u64 wakeups;
	u64 polls;
	u64 polls_empty;
	u64 again;
	u64 bad_blocks;
	u64 codes[KIO_ERR_CODES];
	u32 index;
	u32 cpu;
	u32 poll_at;
	int error;
	bool running;
	struct kio_slot *slots;
	u64 bytes_held;
	u32 nr_errs;
	u32 nr_trace;
	u32 nr_series;
	u32 max_series;
	struct kio_err *errs;
	struct kio_step *trace;
	struct kio_interval *series;
	struct kio_interval now;	/* the interval that is going on */
};

struct kio_device {
	struct file *file;
	struct block_device *bdev;
	u32 flags;
	bool wrote;
};

struct kio_session {
	struct kref ref;	/* the file or the tree, and each thread */
	struct mutex lock;	/* of all but what the threads use */
	u32 state;
	bool stop;
	bool log_results;
	int error;
	u32 error_limit;
	atomic64_t errors;
	atomic_t threads;
	struct completion go;
	wait_queue_head_t wait;
	struct delayed_work deadline;
	u64 start_ns;
	u64 runtime_ns;
	u64 ramp_ns;
	u64 interval_ns;
	u32 nr_devices;
	u32 nr_jobs;
	struct kio_device devices[KIO_MAX_DEVICES];
	struct kio_job *jobs[KIO_MAX_JOBS];
};

/* kio_main.c */
extern char *kio_block_device;
extern unsigned int kio_submit_mode;
extern bool kio_log_results;
extern bool kio_legacy_summary;
int kio_take_memory(u64 bytes);
void kio_give_memory(u64 bytes);

/* kio_session.c */
struct kio_session *kio_session_new(void);
void kio_session_put(struct kio_session *session);
int kio_session_add_device(struct kio_session *session, struct kio_add_dev *args);
int kio_session_add_job(struct kio_session *session, struct kio_add_job *args);
int kio_session_start(struct kio_session *session, struct kio_start *args);
void kio_session_end(struct kio_session *session);
int kio_session_drain(struct kio_session *session);
u32 kio_session_stuck(struct kio_session *session);
int kio_session_reset(struct kio_session *session);
void kio_session_close_devices(struct kio_session *session);
void kio_session_thread_done(struct kio_session *session);

/* kio_device.c */
int kio_device_open(struct kio_device *device, struct kio_add_dev *args);
void kio_device_close(struct kio_device *device);
void kio_device_drop_cache(struct kio_device *device, bool write_back);

/* kio_plan.c */
int kio_plan_check(struct kio_add_job *args, struct kio_device *device);
struct kio_job *kio_job_new(struct kio_session *session, struct kio_device *device,
			    struct kio_add_job *args);
int kio_job_make_series(struct kio_job *job, u64 records);
void kio_job_free(struct kio_job *job);

/* kio_job.c */
int kio_job_thread(void *data);
void kio_job_event(struct kio_job *job, u64 now);

static __always_inline void kio_tick(struct kio_job *job, u64 now)
{
	if (unlikely(now >= job->next_event))
		kio_job_event(job, now);
}

static inline bool kio_job_stopped(const struct kio_job *job)
{
	return READ_ONCE(job->session->stop);
}

/* kio_wait.c */
void kio_job_wait(struct kio_job *job, bool draining);
void kio_job_held(struct kio_job *job);

/* kio_results.c */
void kio_job_stats(const struct kio_job *job, struct kio_stats *stats);

/* kio_log.c */
void kio_log_session(const struct kio_session *session);

/* kio_sysfs.c */
int kio_sysfs_init(void);
void kio_sysfs_exit(void);

#endif
