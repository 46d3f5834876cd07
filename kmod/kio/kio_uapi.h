/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The interface of /dev/kio: block I/O that is made inside the kernel.
 *
 * One open file is one session. A session collects devices (KIO_ADD_DEV) and
 * jobs (KIO_ADD_JOB), runs them all together (KIO_START, KIO_WAIT or poll(2),
 * KIO_STOP), hands out what was counted (KIO_STATS, KIO_HIST, KIO_SERIES,
 * KIO_ERRS, KIO_TRACE) and starts anew (KIO_RESET):
 *
 *	IDLE -- START --> RUNNING -- last job ends --> DONE -- RESET --> IDLE
 *
 * If bios do not come back within 30 s of a stop the session is a ZOMBIE: its
 * memory, its devices and the module stay until the last of them ends, also
 * after close(). Closing a session stops it.
 *
 * Rules of every structure:
 *  - it begins with its size in bytes and KIO_ABI_VERSION. A shorter one is
 *    taken as filled up with zeros; a longer one is good if what the module
 *    does not know of it is zero, E2BIG otherwise. The kernel goes by `size`,
 *    the type and the number of the ioctl, not by the size in the number;
 *  - fixed width, every u64 at a multiple of 8 bytes, the whole a multiple of
 *    8 bytes, no bitfields, no implicit padding. `reserved` must be 0;
 *  - fields marked (out) are written by the kernel, also when the call fails;
 *    what is passed in for them is ignored;
 *  - times are ns, of CLOCK_MONOTONIC where they are points in time; offsets
 *    and lengths are bytes; texts end with a zero byte.
 *
 * Errors that several calls have in common: EINVAL unknown number, version,
 * flag or reserved field; EBUSY wrong state; EFAULT bad pointer; E2BIG above;
 * ENOENT no such job.
 *
 * The sequence of (op, offset) of a job is a function of its fields alone; its
 * definition is kio_gen.h. The data of verify is defined in kio_pattern.h, the
 * buckets of histograms in kio_hist.h. All three compile in user space too.
 */
#ifndef KIO_UAPI_H
#define KIO_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define KIO_DEVICE		"/dev/kio"
#define KIO_IOC_TYPE		0xB7
#define KIO_ABI_VERSION		1

#define KIO_PATH_MAX		256
#define KIO_MESSAGE_MAX		160
#define KIO_MAX_DEVICES		64	/* Of one session. */
#define KIO_MAX_JOBS		1024	/* Of one session. */
#define KIO_MAX_DEPTH		1024
#define KIO_MAX_BLOCK		(16u << 20)
#define KIO_MAX_TRACE		65536
#define KIO_MAX_SERIES		65536	/* Records of one job. */
#define KIO_MAX_ERRS		64	/* Records of one job. */
#define KIO_HIST_BUCKETS	1856
#define KIO_ERR_CODES		24

/* kio_info.features */
#define KIO_FEATURE_POLL	(1ull << 0)	/* KIO_COMPLETE_POLL */
#define KIO_FEATURE_VERIFY	(1ull << 1)	/* KIO_DATA_VERIFY */
#define KIO_FEATURE_ZONED	(1ull << 2)	/* Never set by this version. */
#define KIO_FEATURE_TRIM	(1ull << 3)	/* KIO_OP_TRIM */
#define KIO_FEATURE_NOACCT	(1ull << 4)	/* KIO_JOB_NOACCT */

/* State of a session (kio_info, kio_wait) and of a job (kio_stats). */
#define KIO_STATE_IDLE		0
#define KIO_STATE_RUNNING	1
#define KIO_STATE_DONE		2
#define KIO_STATE_ZOMBIE	3

struct kio_info {
	__u32 size;
	__u32 version;
	__u64 features;		/* (out) KIO_FEATURE_* */
	__u32 page_size;	/* (out) */
	__u32 clock_ps;		/* (out) cost of one clock read, in ps, */
				/* measured at load over 1000 pairs */
	__u32 state;		/* (out) KIO_STATE_* of this session */
	__u32 max_sessions;	/* (out) parameter of the module */
	__u64 max_mem_bytes;	/* (out) for all buffers of all sessions */
	__u64 used_mem_bytes;	/* (out) */
	char release[64];	/* (out) of the running kernel */
	char module_version[64];	/* (out) */
};

/* kio_add_dev.flags */
#define KIO_DEV_WRITE		(1u << 0)	/* Jobs may write and trim. */
#define KIO_DEV_EXCL		(1u << 1)	/* Nobody else holds it. */

/*
 * KIO_ADD_DEV, state IDLE. The path is looked up and opened with the rights of
 * the caller. ENOTBLK no block device; EBUSY held, mounted, in use as swap;
 * EROFS/EACCES read-only; ENOSPC too many devices; otherwise what open() says.
 */
struct kio_add_dev {
	__u32 size;
	__u32 version;
	char path[KIO_PATH_MAX];
	__u32 flags;		/* KIO_DEV_* */
	__u32 index;		/* (out) for kio_add_job.device; from 0 */
	__u64 bytes;		/* (out) */
	__u32 logical_block;	/* (out) bytes */
	__u32 physical_block;	/* (out) bytes */
	__u32 io_min;		/* (out) bytes, 0 unknown */
	__u32 io_opt;		/* (out) bytes, 0 unknown */
	__u32 max_sectors;	/* (out) of 512 bytes; longer bios are split */
	__u32 max_segments;	/* (out) */
	__u64 max_discard;	/* (out) bytes, 0: cannot trim */
	__u32 nr_zones;		/* (out) 0: not zoned */
	__u32 rotational;	/* (out) 0 or 1 */
	__u32 poll;		/* (out) 1: KIO_COMPLETE_POLL is possible */
	__s32 node;		/* (out) NUMA node, -1 unknown */
	__u32 tags;		/* (out) requests per queue, 0: no requests */
	__u32 read_only;	/* (out) 0 or 1 */
	__u32 major;		/* (out) */
	__u32 minor;		/* (out) */
	char message[KIO_MESSAGE_MAX];	/* (out) why it failed, or empty */
};

/* kio_add_job.op */
#define KIO_OP_MIX		0	/* read_mix_percent decides. */
#define KIO_OP_READ		1
#define KIO_OP_WRITE		2
#define KIO_OP_TRIM		3	/* counted as a write */
#define KIO_OP_FLUSH		4	/* no offset, counted as a write of 0 bytes */

/* kio_add_job.complete */
#define KIO_COMPLETE_IRQ	0	/* Sleep until one ends. */
#define KIO_COMPLETE_SPIN	1	/* Look until one ends. */
#define KIO_COMPLETE_POLL	2	/* Ask the device; no interrupts. */

/* kio_add_job.data: what is written. */
#define KIO_DATA_ZERO		0
#define KIO_DATA_RANDOM		1	/* Does not compress nor repeat. */
#define KIO_DATA_VERIFY		2	/* kio_pattern.h; reads are checked. */

/* kio_add_job.flags */
#define KIO_JOB_FUA		(1u << 0)	/* REQ_FUA on writes */
#define KIO_JOB_NOWAIT		(1u << 1)	/* REQ_NOWAIT; again on EAGAIN */
#define KIO_JOB_MIX_IO		(1u << 2)	/* Mix drawn per I/O: bursts of 1. */
#define KIO_JOB_NOACCT		(1u << 3)	/* submit_bio_noacct */
#define KIO_JOB_NO_HIST		(1u << 4)	/* No histograms: shows what they cost. */

/* kio_add_job.notes (out) */
#define KIO_NOTE_HIGH_CLIPPED	(1u << 0)	/* offset_high was beyond the end. */
#define KIO_NOTE_SPLIT		(1u << 1)	/* A block is split by the block layer. */
#define KIO_NOTE_TAG_WAITS	(1u << 2)	/* depth > tags: slat has tag waits. */
#define KIO_NOTE_POLL_PINNED	(1u << 3)	/* cpu -1 and poll: pinned at start. */

/* kio_add_job.err_field (out): which field EINVAL, ERANGE and the like mean. */
#define KIO_FIELD_NONE			0
#define KIO_FIELD_DEVICE		1
#define KIO_FIELD_BLOCK_SIZE		2
#define KIO_FIELD_QUEUE_DEPTH		3
#define KIO_FIELD_OFFSET_RANDOM		4
#define KIO_FIELD_OFFSET_STRIDE		5
#define KIO_FIELD_OFFSET_LOW		6
#define KIO_FIELD_OFFSET_HIGH		7
#define KIO_FIELD_READ_MIX_PERCENT	8
#define KIO_FIELD_READ_BURST		9
#define KIO_FIELD_WRITE_BURST		10
#define KIO_FIELD_BURST_FINISH		11
#define KIO_FIELD_BURST_DELAY		12
#define KIO_FIELD_READ_SLEEP_USEC	13
#define KIO_FIELD_WRITE_SLEEP_USEC	14
#define KIO_FIELD_CPU			15
#define KIO_FIELD_NODE			16
#define KIO_FIELD_OP			17
#define KIO_FIELD_COMPLETE		18
#define KIO_FIELD_BATCH			19
#define KIO_FIELD_ALIGN			20
#define KIO_FIELD_DATA			21
#define KIO_FIELD_FLAGS			22
#define KIO_FIELD_TRACE			23

/*
 * KIO_ADD_JOB, state IDLE: one thread on one device. Errors: EINVAL with
 * err_field and message; EACCES a job that writes on a device added without
 * KIO_DEV_WRITE; EOPNOTSUPP the device cannot poll or trim; ENOMEM buffers
 * (above max_mem_mb, or memory too fragmented for a block of 256 pieces);
 * ENOSPC too many jobs.
 */
struct kio_add_job {
	__u32 size;
	__u32 version;
	__u32 block_size;	/* 512..KIO_MAX_BLOCK, times logical_block */
	__u32 queue_depth;	/* 1..KIO_MAX_DEPTH */
	__u32 offset_random;	/* 0 or 1 */
	__u32 read_mix_percent;	/* 0..100 */
	__s64 offset_stride;	/* bytes, times logical_block, not 0 */
	__u64 offset_low;	/* times logical_block */
	__u64 offset_high;	/* end of the last I/O; 0: of the device */
	__u32 read_burst;	/* 0..1024, 0 acts as 1 */
	__u32 write_burst;	/* 0..1024, 0 acts as 1 */
	__u32 burst_finish;	/* 0 or 1 */
	__u32 burst_delay;	/* 0: pause after each I/O, 1: after each burst */
	__u32 read_sleep_usec;	/* 0..100000 */
	__u32 write_sleep_usec;	/* 0..100000 */
	__u32 device;		/* index from KIO_ADD_DEV */
	__s32 cpu;		/* -1: any */
	__s32 node;		/* of the memory; -1: of cpu, else the device */
	__u32 op;		/* KIO_OP_* */
	__u32 complete;		/* KIO_COMPLETE_* */
	__u32 batch;		/* 1..queue_depth bios under one plug; 0 acts as 1 */
	__u32 data;		/* KIO_DATA_* */
	__u32 flags;		/* KIO_JOB_* */
	__u64 seed;		/* of the run; for kio_gen.h */
	__u32 stream;		/* worker number in kio_gen.h */
	__u32 trace;		/* keep the first N (op, offset); 0..KIO_MAX_TRACE */
	__u64 align;		/* of random offsets from offset_low; 0: block_size */
	__u64 verify_seed;	/* for kio_pattern.h; equal for writer and reader */
	__u64 generation;	/* for kio_pattern.h */
	__u64 limit_ios;	/* 0: none. Ends after so many I/Os, */
	__u64 limit_bytes;	/* or when the next I/O would pass so many bytes */
	__u64 reserved[4];
	__u32 job;		/* (out) index, from 0 */
	__u32 err_field;	/* (out) KIO_FIELD_* */
	__u32 notes;		/* (out) KIO_NOTE_* */
	__u32 pad;
	__u64 high_used;	/* (out) offset_high in effect */
	char message[KIO_MESSAGE_MAX];	/* (out) why it failed, or empty */
};

/*
 * KIO_START, IDLE -> RUNNING; ENOENT without jobs, EINVAL if a job would never
 * end (runtime_ns 0 and no limit). The run is ramp_ns, then runtime_ns. I/Os
 * that are taken as complete before the ramp is over are not counted. The page
 * cache of every device is written back and dropped before, and dropped again
 * after a run that wrote.
 */
struct kio_start {
	__u32 size;
	__u32 version;
	__u64 runtime_ns;	/* 0: until the limits; else 1 ms..1 year */
	__u64 ramp_ns;
	__u64 interval_ns;	/* 0: no series; else at least 1 ms */
	__u32 error_limit;	/* stop all at so many errors of all jobs; 0: never */
	__u32 flags;		/* 0 */
	__u64 start_ns;		/* (out) t = 0 of all jobs */
	char message[KIO_MESSAGE_MAX];	/* (out) */
};

/* KIO_WAIT, any state but IDLE: 0 when DONE; ETIMEDOUT; EINTR. */
struct kio_wait {
	__u32 size;
	__u32 version;
	__u64 timeout_ns;	/* ~0: for ever; 0: only look */
	__u32 state;		/* (out) */
	__s32 error;		/* (out) first error of a job: 0, or -ENODEV, */
				/* -EIO (error limit reached) */
};

/*
 * KIO_STOP, any state: ends the run and waits for the bios, at most 30 s. EIO:
 * some did not end, the session is a ZOMBIE.
 */
struct kio_stop {
	__u32 size;
	__u32 version;
	__u32 stuck;		/* (out) bios that did not end */
	__u32 state;		/* (out) */
};

/* One sum of latencies; lat, slat or clat. */
struct kio_sum {
	__u64 sum_ns;
	__u64 min_ns;		/* ~0 when there is none */
	__u64 max_ns;
	__u64 squares_lo;	/* Sum of squares in ns^2, 128 bits. */
	__u64 squares_hi;
};

/* KIO_HIST kinds, and the order of kio_dir.sums. */
#define KIO_KIND_SLAT		0	/* min(t2, t3) - t0: inside submit */
#define KIO_KIND_CLAT		1	/* t3 - t2, or 0: after submit */
#define KIO_KIND_LAT		2	/* t3 - t0 = slat + clat */
#define KIO_KINDS		3

#define KIO_DIR_READ		0
#define KIO_DIR_WRITE		1	/* Also trim and flush. */
#define KIO_DIRS		2

/* What is known of one direction; only good I/Os are in ios, bytes, sums. */
struct kio_dir {
	__u64 ios;
	__u64 bytes;
	__u64 errors;		/* failed bios and blocks with wrong data */
	struct kio_sum sums[KIO_KINDS];
};

/*
 * How a bio ended, for kio_stats.codes and kio_err.code. The kernel's own
 * numbers (BLK_STS_*) differ between versions, these do not.
 */
#define KIO_ERR_OK		0
#define KIO_ERR_NOTSUPP		1
#define KIO_ERR_TIMEOUT		2
#define KIO_ERR_NOSPC		3
#define KIO_ERR_TRANSPORT	4
#define KIO_ERR_TARGET		5
#define KIO_ERR_RESV_CONFLICT	6	/* BLK_STS_NEXUS before 6.5 */
#define KIO_ERR_MEDIUM		7
#define KIO_ERR_PROTECTION	8
#define KIO_ERR_RESOURCE	9
#define KIO_ERR_IOERR		10
#define KIO_ERR_AGAIN		11	/* Never an error: submitted again. */
#define KIO_ERR_OFFLINE		12
#define KIO_ERR_OTHER		13	/* Any code not named here. */
#define KIO_ERR_DATA		14	/* Read well, but the data is wrong. */

/*
 * KIO_STATS, any state but IDLE. While a job runs the values are each good but
 * not of one moment.
 */
struct kio_stats {
	__u32 size;
	__u32 version;
	__u32 job;		/* which */
	__u32 state;		/* (out) KIO_STATE_RUNNING or KIO_STATE_DONE */
	__s32 error;		/* (out) as kio_wait.error, of this job */
	__u32 inflight;		/* (out) */
	__u32 cpu;		/* (out) where it ran last */
	__u32 pid;		/* (out) of the thread */
	struct kio_dir dirs[KIO_DIRS];	/* (out) */
	__u64 runtime_ns;	/* (out) from the end of the ramp to the end of */
				/* the drain */
	__u64 cpu_ns;		/* (out) of the thread, ramp and drain included */
	__u64 drain_ns;		/* (out) waits for burst_finish */
	__u64 idle_ns;		/* (out) asleep for want of a free slot */
	__u64 pause_ns;		/* (out) pauses of read/write_sleep_usec */
	__u64 verify_ns;	/* (out) making and checking data */
	__u64 wakeups;		/* (out) sleeps that ended */
	__u64 polls;		/* (out) calls of bio_poll */
	__u64 polls_empty;	/* (out) after which no slot was done */
	__u64 again;		/* (out) refused for want of a tag, then retried */
	__u64 issued;		/* (out) drawn from kio_gen.h, ramp included */
	__u64 bad_blocks;	/* (out) I/Os with wrong data; also in errors */
	__u64 codes[KIO_ERR_CODES];	/* (out) I/Os by KIO_ERR_* */
};

/*
 * KIO_HIST, any state but IDLE: KIO_HIST_BUCKETS u64 counts. `bytes` is the
 * room at `buckets`, EINVAL if less than that.
 */
struct kio_hist {
	__u32 size;
	__u32 version;
	__u32 job;
	__u32 kind;		/* KIO_KIND_* */
	__u32 dir;		/* KIO_DIR_* */
	__u32 bytes;
	__u64 buckets;		/* pointer */
};

/* What completed in one interval; only whole intervals have a record. */
struct kio_interval {
	__u64 t_ns;		/* end of the interval, from the end of the ramp */
	__u64 ios[KIO_DIRS];
	__u64 bytes[KIO_DIRS];
	__u64 lat_sum_ns[KIO_DIRS];
	__u64 lat_max_ns[KIO_DIRS];
};

/* A bio that failed, or a block with wrong data. */
struct kio_err {
	__u64 offset;		/* of the I/O */
	__u32 len;
	__u32 op;		/* KIO_OP_READ..KIO_OP_FLUSH */
	__u32 code;		/* KIO_ERR_* */
	__s32 error;		/* errno of it, negative */
	__u64 at;		/* KIO_ERR_DATA: first wrong byte on the device */
	__u64 expected;		/* and the word that it is part of, as it should */
	__u64 got;		/* be and as it is */
};

/* One of the first I/Os of a job, as drawn. */
struct kio_step {
	__u64 offset;
	__u32 len;
	__u32 op;		/* KIO_OP_READ..KIO_OP_FLUSH */
};

/*
 * KIO_SERIES (struct kio_interval), KIO_ERRS (struct kio_err) and KIO_TRACE
 * (struct kio_step), any state but IDLE: copies records `from`.. of a job, at
 * most `count`.
 */
struct kio_records {
	__u32 size;
	__u32 version;
	__u32 job;
	__u32 from;
	__u32 count;		/* room; (out) how many were copied */
	__u32 total;		/* (out) how many there are now */
	__u64 records;		/* pointer */
};

#define KIO_IOC(nr, type)	_IOWR(KIO_IOC_TYPE, nr, type)
#define KIO_INFO	KIO_IOC(0x01, struct kio_info)
#define KIO_ADD_DEV	KIO_IOC(0x02, struct kio_add_dev)
#define KIO_ADD_JOB	KIO_IOC(0x03, struct kio_add_job)
#define KIO_START	KIO_IOC(0x04, struct kio_start)
#define KIO_WAIT	KIO_IOC(0x05, struct kio_wait)
#define KIO_STOP	KIO_IOC(0x06, struct kio_stop)
#define KIO_STATS	KIO_IOC(0x07, struct kio_stats)
#define KIO_HIST	KIO_IOC(0x08, struct kio_hist)
#define KIO_SERIES	KIO_IOC(0x09, struct kio_records)
#define KIO_ERRS	KIO_IOC(0x0A, struct kio_records)
#define KIO_RESET	_IO(KIO_IOC_TYPE, 0x0B)
#define KIO_TRACE	KIO_IOC(0x0C, struct kio_records)

#endif
