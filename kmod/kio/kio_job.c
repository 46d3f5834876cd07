// SPDX-License-Identifier: GPL-2.0
/*
 * The thread of a job. In: a job whose slots are ready, and the session's word
 * to go. Out: counts, and no bio in flight. Not here: whether the plan makes
 * sense, memory, waiting (kio_wait.c), who waits for the end.
 *
 * A slot is on one list at a time: free or retry (the thread's own), in flight
 * (none), done (filled by end-io, emptied by the thread). Nothing is allocated
 * and nothing is freed between the first and the last bio.
 */
#include <linux/sched.h>

#include "kio.h"

#define KIO_PASSES	64	/* between two chances for the scheduler */

/*
 * The only code of this module that interrupts run. The job is freed after a
 * grace period, so that it is there until the last line.
 */
static void kio_end_io(struct bio *bio)
{
	struct kio_slot *slot = container_of(bio, struct kio_slot, bio);
	struct kio_job *job = slot->job;

	slot->t3 = ktime_get_ns();
	rcu_read_lock();
	/* A full barrier: the thread sees this slot, or we see it asleep. */
	llist_add(&slot->done, &job->done);
	if (READ_ONCE(job->sleeping))
		wake_up_process(job->task);
	rcu_read_unlock();
}

static u32 kio_slot_op(const struct kio_job *job, const struct kio_slot *slot)
{
	if (job->plan.op != KIO_OP_MIX)
		return job->plan.op;
	return slot->dir == KIO_DIR_READ ? KIO_OP_READ : KIO_OP_WRITE;
}

static u32 kio_code(blk_status_t status)
{
	switch (status) {
	case BLK_STS_NOTSUPP:
		return KIO_ERR_NOTSUPP;
	case BLK_STS_TIMEOUT:
		return KIO_ERR_TIMEOUT;
	case BLK_STS_NOSPC:
		return KIO_ERR_NOSPC;
	case BLK_STS_TRANSPORT:
		return KIO_ERR_TRANSPORT;
	case BLK_STS_TARGET:
		return KIO_ERR_TARGET;
#ifdef BLK_STS_RESV_CONFLICT
	case BLK_STS_RESV_CONFLICT:
#else
	case BLK_STS_NEXUS:
#endif
		return KIO_ERR_RESV_CONFLICT;
	case BLK_STS_MEDIUM:
		return KIO_ERR_MEDIUM;
	case BLK_STS_PROTECTION:
		return KIO_ERR_PROTECTION;
	case BLK_STS_RESOURCE:
		return KIO_ERR_RESOURCE;
	case BLK_STS_IOERR:
		return KIO_ERR_IOERR;
	case BLK_STS_AGAIN:
		return KIO_ERR_AGAIN;
#ifdef BLK_STS_OFFLINE
	case BLK_STS_OFFLINE:
		return KIO_ERR_OFFLINE;
#endif
	default:
		return KIO_ERR_OTHER;
	}
}

static __always_inline void kio_sum_add(struct kio_sum *sum, u64 ns)
{
	unsigned __int128 square = (unsigned __int128)ns * ns;
	unsigned __int128 squares = ((unsigned __int128)sum->squares_hi << 64) | sum->squares_lo;

	squares += square;
	sum->squares_lo = (u64)squares;
	sum->squares_hi = (u64)(squares >> 64);
	sum->sum_ns += ns;
	if (ns < sum->min_ns)
		sum->min_ns = ns;
	if (ns > sum->max_ns)
		sum->max_ns = ns;
}

static void kio_counts_clear(struct kio_job *job)
{
	int dir, kind;

	for (dir = 0; dir < KIO_DIRS; dir++) {
		struct kio_counts *counts = &job->counts[dir];
		u64 errors = counts->errors;

		memset(counts, 0, sizeof(*counts));
		counts->errors = errors;
		for (kind = 0; kind < KIO_KINDS; kind++)
			counts->sums[kind].min_ns = KIO_NEVER;
	}
	memset(&job->now, 0, sizeof(job->now));
	/* What the thread does counts from here as well. */
	job->cpu_before = current->se.sum_exec_runtime;
	job->wakeups = job->polls = job->polls_empty = 0;
	job->idle_ns = job->pause_ns = job->verify_ns = 0;
}

/* A bio failed or its data is wrong. */
static void kio_failed(struct kio_job *job, struct kio_slot *slot, u32 code, int error,
		       const struct kio_wrong *wrong)
{
	struct kio_session *session = job->session;

	job->counts[slot->dir].errors++;
	job->codes[code]++;
	if (job->nr_errs < KIO_MAX_ERRS) {
		job->errs[job->nr_errs] = (struct kio_err) {
			.offset = slot->offset,
			.len = job->len,
			.op = kio_slot_op(job, slot),
			.code = code,
			.error = error,
			.at = wrong ? wrong->at : 0,
			.expected = wrong ? wrong->expected : 0,
			.got = wrong ? wrong->got : 0,
		};
		smp_store_release(&job->nr_errs, job->nr_errs + 1);
	}
	if (kio_bdev_dead(job->bdev)) {
		job->error = -ENODEV;
		job->limit = 0;
	}
	if (atomic64_inc_return(&session->errors) >= session->error_limit && session->error_limit) {
		if (!job->error)
			job->error = -EIO;
		kio_session_end(session);
	}
}

/* Compares what was read; false if it is counted as failed. */
static noinline bool kio_data_good(struct kio_job *job, struct kio_slot *slot)
{
	u64 before = ktime_get_ns(), offset = slot->offset;
	struct kio_wrong wrong;
	bool good = true;
	u32 i;

	for (i = 0; i < slot->pieces[slot->dir] && good; i++) {
		struct bio_vec *vec = &slot->vecs[slot->dir][i];

		good = kio_pattern_good(&job->pattern, page_address(vec->bv_page), vec->bv_len,
					offset, &wrong);
		offset += vec->bv_len;
	}
	job->verify_ns += ktime_get_ns() - before;
	if (good)
		return true;
	job->bad_blocks++;
	kio_failed(job, slot, KIO_ERR_DATA, -EILSEQ, &wrong);
	return false;
}

static noinline void kio_series_add(struct kio_job *job, u32 dir, u64 lat)
{
	job->now.ios[dir]++;
	job->now.bytes[dir] += job->len;
	job->now.lat_sum_ns[dir] += lat;
	if (lat > job->now.lat_max_ns[dir])
		job->now.lat_max_ns[dir] = lat;
}

/* Counts a good I/O. */
static __always_inline void kio_count(struct kio_job *job, struct kio_slot *slot)
{
	struct kio_counts *counts = &job->counts[slot->dir];
	u64 lat = slot->t3 - slot->t0;
	u64 slat = min(slot->t2, slot->t3) - slot->t0;
	u64 clat = lat - slat;

	if (unlikely(job->also)) {
		if ((job->also & KIO_ALSO_VERIFY) && slot->dir == KIO_DIR_READ &&
		    !kio_data_good(job, slot))
			return;
		if (job->also & KIO_ALSO_SERIES)
			kio_series_add(job, slot->dir, lat);
	}
	counts->ios++;
	counts->bytes += job->len;
	kio_sum_add(&counts->sums[KIO_KIND_SLAT], slat);
	kio_sum_add(&counts->sums[KIO_KIND_CLAT], clat);
	kio_sum_add(&counts->sums[KIO_KIND_LAT], lat);
	if (unlikely(job->no_hist))
		return;
	counts->hist[KIO_KIND_SLAT][kio_hist_index(slat)]++;
	counts->hist[KIO_KIND_CLAT][kio_hist_index(clat)]++;
	counts->hist[KIO_KIND_LAT][kio_hist_index(lat)]++;
}

/* A bio ended with a bad status: true if its slot waits for another try. */
static noinline bool kio_bad_status(struct kio_job *job, struct kio_slot *slot)
{
	blk_status_t status = slot->bio.bi_status;

	if (status == BLK_STS_AGAIN && (job->opf[slot->dir] & (__force unsigned int)REQ_NOWAIT)) {
		job->again++;
		job->hold |= KIO_HOLD_AGAIN;
		slot->next = job->retry;
		job->retry = slot;
		return true;
	}
	kio_failed(job, slot, kio_code(status), blk_status_to_errno(status), NULL);
	return false;
}

/* Takes every slot that is done. */
static __always_inline void kio_reap(struct kio_job *job)
{
	struct llist_node *node;

	if (llist_empty(&job->done))
		return;
	node = llist_del_all(&job->done);
	do {
		struct kio_slot *slot = llist_entry(node, struct kio_slot, done);

		node = node->next;
		slot->inflight = false;
		job->inflight--;
		if (unlikely(slot->bio.bi_status)) {
			if (kio_bad_status(job, slot))
				continue;
		} else {
			kio_count(job, slot);
		}
		job->hold &= ~KIO_HOLD_AGAIN;
		slot->next = job->free;
		job->free = slot;
	} while (node);
}

/* The end of the ramp, of intervals and of the run. */
void kio_job_event(struct kio_job *job, u64 now)
{
	u64 interval = job->session->interval_ns;

	if (now >= job->measure_at) {
		kio_counts_clear(job);
		job->began = now;
		job->measure_at = KIO_NEVER;
		if (job->max_series)
			job->interval_at = now + interval;
	}
	while (now >= job->interval_at) {
		if (job->nr_series == job->max_series) {
			job->interval_at = KIO_NEVER;
			break;
		}
		job->now.t_ns = job->interval_at - job->began;
		job->series[job->nr_series] = job->now;
		smp_store_release(&job->nr_series, job->nr_series + 1);
		memset(&job->now, 0, sizeof(job->now));
		job->interval_at += interval;
	}
	if (now >= job->end_at)
		job->limit = 0;
	job->next_event = min3(job->measure_at, job->interval_at, job->end_at);
}

/* Fills the memory of a write. */
static void kio_make_data(struct kio_job *job, struct kio_slot *slot)
{
	struct bio_vec *vec = slot->vecs[KIO_DIR_WRITE];
	u64 before = ktime_get_ns(), offset = slot->offset;
	u32 i, at;

	for (i = 0; i < slot->pieces[KIO_DIR_WRITE]; i++, vec++) {
		void *data = page_address(vec->bv_page);

		if (job->plan.data == KIO_DATA_VERIFY) {
			kio_pattern_fill(&job->pattern, data, vec->bv_len, offset);
			offset += vec->bv_len;
			continue;
		}
		/* The rest is random already: a word makes each write another one. */
		for (at = 0; at < vec->bv_len; at += 4096)
			*(u64 *)(data + at) = kio_mix64(job->stamp += KIO_GOLDEN);
	}
	if (job->plan.data == KIO_DATA_VERIFY)
		job->verify_ns += ktime_get_ns() - before;
}

/* What few jobs ask for, once an I/O is drawn. */
static noinline void kio_quirks(struct kio_job *job, struct kio_slot *slot)
{
	const struct kio_add_job *plan = &job->plan;
	u32 sleep = slot->dir == KIO_DIR_READ ? plan->read_sleep_usec : plan->write_sleep_usec;

	if (job->nr_trace < plan->trace) {
		job->trace[job->nr_trace] = (struct kio_step) {
			.offset = slot->offset,
			.len = job->len,
			.op = kio_slot_op(job, slot),
		};
		smp_store_release(&job->nr_trace, job->nr_trace + 1);
	}
	if (slot->dir == KIO_DIR_WRITE && slot->pieces[KIO_DIR_WRITE] && plan->data != KIO_DATA_ZERO)
		kio_make_data(job, slot);
	if (sleep && (!plan->burst_delay || kio_gen_at_end(&job->gen))) {
		job->pause_until = ktime_get_ns() + sleep * 1000ull;
		job->hold |= KIO_HOLD_PAUSE;
	}
	if (plan->burst_finish && kio_gen_at_draw(&job->gen))
		job->hold |= KIO_HOLD_DRAIN;
}

/* The slot of the next I/O: one that was refused, else a new one. */
static __always_inline struct kio_slot *kio_next(struct kio_job *job)
{
	struct kio_slot *slot = job->retry;

	if (unlikely(slot)) {
		job->retry = slot->next;
		return slot;
	}
	slot = job->free;
	job->free = slot->next;
	slot->dir = kio_gen_direction(&job->gen);
	slot->offset = kio_gen_offset(&job->gen);
	job->issued++;
	if (unlikely(job->quirks))
		kio_quirks(job, slot);
	return slot;
}

static __always_inline void kio_send(struct kio_job *job, struct kio_slot *slot)
{
	struct bio *bio = &slot->bio;

	kio_bio_init(bio, job->bdev, slot->vecs[slot->dir], slot->pieces[slot->dir],
		     job->opf[slot->dir]);
	/* The vectors are as they were: nobody but us may change them. */
	bio->bi_vcnt = slot->pieces[slot->dir];
	bio->bi_iter.bi_sector = slot->offset >> SECTOR_SHIFT;
	bio->bi_iter.bi_size = job->len;
	bio->bi_end_io = kio_end_io;
	slot->inflight = true;
	job->inflight++;
	slot->t0 = ktime_get_ns();
	kio_bio_submit(bio, job->noacct);
}

/* Bios of a batch leave together at its end, so that is when each is submitted. */
static noinline void kio_send_batch(struct kio_job *job)
{
	struct kio_slot *sent = NULL;
	struct blk_plug plug;
	u32 n;
	u64 t2;

	blk_start_plug(&plug);
	for (n = 0; n < job->batch && !job->hold && job->issued < job->limit; n++) {
		struct kio_slot *slot = kio_next(job);

		kio_send(job, slot);
		slot->next = sent;
		sent = slot;
	}
	blk_finish_plug(&plug);
	t2 = ktime_get_ns();
	for (; sent; sent = sent->next)
		sent->t2 = t2;
	kio_tick(job, t2);
}

static __always_inline void kio_send_one(struct kio_job *job)
{
	struct kio_slot *slot = kio_next(job);

	kio_send(job, slot);
	slot->t2 = ktime_get_ns();
	kio_tick(job, slot->t2);
}

static void kio_loop(struct kio_job *job)
{
	while (!kio_job_stopped(job) && job->issued < job->limit) {
		if (unlikely(job->hold) || job->inflight > job->room) {
			kio_job_held(job);
		} else {
			if (likely(job->batch == 1))
				kio_send_one(job);
			else
				kio_send_batch(job);
			if (!(++job->passes % KIO_PASSES))
				cond_resched();
		}
		kio_reap(job);
	}
}

/*
 * Waits for every bio. What was refused for want of a tag is sent in the end,
 * one by one and without conditions, so that all that was drawn is done.
 */
static void kio_drain(struct kio_job *job)
{
	const unsigned int conditions = (__force unsigned int)(REQ_NOWAIT | REQ_POLLED);
	struct kio_slot *slot;

	for (;;) {
		kio_reap(job);
		if (job->inflight) {
			kio_job_wait(job, true);
			continue;
		}
		slot = job->retry;
		if (!slot)
			return;
		job->retry = slot->next;
		job->complete = KIO_COMPLETE_IRQ;
		job->opf[slot->dir] &= ~conditions;
		kio_send(job, slot);
		slot->t2 = ktime_get_ns();
	}
}

static void kio_begin(struct kio_job *job)
{
	struct kio_session *session = job->session;
	u64 start = session->start_ns;

	if (job->complete == KIO_COMPLETE_POLL && job->plan.cpu < 0)
		set_cpus_allowed_ptr(current, cpumask_of(raw_smp_processor_id()));
	kio_counts_clear(job);
	job->began = start;
	job->measure_at = session->ramp_ns ? start + session->ramp_ns : KIO_NEVER;
	job->interval_at = KIO_NEVER;
	if (job->max_series && !session->ramp_ns)
		job->interval_at = start + session->interval_ns;
	job->end_at = KIO_NEVER;
	if (session->runtime_ns)
		job->end_at = start + session->ramp_ns + session->runtime_ns;
	job->next_event = min3(job->measure_at, job->interval_at, job->end_at);
}

static void kio_finish(struct kio_job *job)
{
	job->ended = ktime_get_ns();
	if (job->measure_at != KIO_NEVER) {
		kio_counts_clear(job);
		job->began = job->ended;
	}
	/* The scheduler brings the thread's time up to date when it sleeps. */
	schedule_timeout_idle(1);
	job->cpu_ns = current->se.sum_exec_runtime - job->cpu_before;
	job->cpu = raw_smp_processor_id();
	smp_store_release(&job->running, false);
}

int kio_job_thread(void *data)
{
	struct kio_job *job = data;
	struct kio_session *session = job->session;

	wait_for_completion(&session->go);
	kio_begin(job);
	kio_loop(job);
	kio_drain(job);
	kio_finish(job);
	kio_session_thread_done(session);
	kio_thread_exit();
	return 0;
}
