// SPDX-License-Identifier: GPL-2.0
/*
 * Plans of jobs. In: the fields that user space filled in and the device. Out:
 * a refusal that names the field, or a job with its slots and memory, ready to
 * run. Everything is allocated here.
 */
#include <linux/cpu.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "kio.h"

#define KIO_MAX_STRIDE	(1ll << 40)
#define KIO_MAX_SLEEP	100000u
#define KIO_MAX_BURST	1024u
#define KIO_MAX_ORDER	9u

#define KIO_OPF(flags)	((__force unsigned int)(flags))

__printf(4, 5)
static int kio_refuse(struct kio_add_job *args, u32 field, int err, const char *format, ...)
{
	va_list words;

	args->err_field = field;
	va_start(words, format);
	vsnprintf(args->message, sizeof(args->message), format, words);
	va_end(words);
	return err;
}

static bool kio_writes(const struct kio_add_job *args)
{
	if (args->op == KIO_OP_MIX)
		return args->read_mix_percent < 100;
	return args->op != KIO_OP_READ;
}

static bool kio_reads_and_writes(const struct kio_add_job *args)
{
	return args->op == KIO_OP_MIX && args->read_mix_percent && kio_writes(args);
}

static bool kio_moves_data(const struct kio_add_job *args)
{
	return args->op != KIO_OP_TRIM && args->op != KIO_OP_FLUSH;
}

/* Fields that have a range of their own. */
static int kio_check_ranges(struct kio_add_job *args)
{
	const struct {
		const char *name;
		u32 field;
		u32 value;
		u32 min;
		u32 max;
	} ranges[] = {
		{ "block_size", KIO_FIELD_BLOCK_SIZE, args->block_size, 512, KIO_MAX_BLOCK },
		{ "queue_depth", KIO_FIELD_QUEUE_DEPTH, args->queue_depth, 1, KIO_MAX_DEPTH },
		{ "offset_random", KIO_FIELD_OFFSET_RANDOM, args->offset_random, 0, 1 },
		{ "read_mix_percent", KIO_FIELD_READ_MIX_PERCENT, args->read_mix_percent, 0, 100 },
		{ "read_burst", KIO_FIELD_READ_BURST, args->read_burst, 0, KIO_MAX_BURST },
		{ "write_burst", KIO_FIELD_WRITE_BURST, args->write_burst, 0, KIO_MAX_BURST },
		{ "burst_finish", KIO_FIELD_BURST_FINISH, args->burst_finish, 0, 1 },
		{ "burst_delay", KIO_FIELD_BURST_DELAY, args->burst_delay, 0, 1 },
		{ "read_sleep_usec", KIO_FIELD_READ_SLEEP_USEC, args->read_sleep_usec, 0,
		  KIO_MAX_SLEEP },
		{ "write_sleep_usec", KIO_FIELD_WRITE_SLEEP_USEC, args->write_sleep_usec, 0,
		  KIO_MAX_SLEEP },
		{ "op", KIO_FIELD_OP, args->op, KIO_OP_MIX, KIO_OP_FLUSH },
		{ "complete", KIO_FIELD_COMPLETE, args->complete, KIO_COMPLETE_IRQ,
		  KIO_COMPLETE_POLL },
		{ "batch", KIO_FIELD_BATCH, args->batch, 0, args->queue_depth },
		{ "data", KIO_FIELD_DATA, args->data, KIO_DATA_ZERO, KIO_DATA_VERIFY },
		{ "trace", KIO_FIELD_TRACE, args->trace, 0, KIO_MAX_TRACE },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ranges); i++)
		if (ranges[i].value < ranges[i].min || ranges[i].value > ranges[i].max)
			return kio_refuse(args, ranges[i].field, -EINVAL,
					  "%s value %u is out of range [%u,%u]", ranges[i].name,
					  ranges[i].value, ranges[i].min, ranges[i].max);
	return 0;
}

static int kio_check_place(struct kio_add_job *args)
{
	if (args->flags & ~(KIO_JOB_FUA | KIO_JOB_NOWAIT | KIO_JOB_MIX_IO | KIO_JOB_NOACCT |
			    KIO_JOB_NO_HIST))
		return kio_refuse(args, KIO_FIELD_FLAGS, -EINVAL, "unknown flags 0x%x",
				  args->flags);
	if (args->cpu < -1 || (args->cpu >= 0 && (args->cpu >= nr_cpu_ids || !cpu_online(args->cpu))))
		return kio_refuse(args, KIO_FIELD_CPU, -EINVAL, "cpu %d is not online", args->cpu);
	if (args->node < -1 || (args->node >= 0 &&
				(args->node >= nr_node_ids || !node_online(args->node))))
		return kio_refuse(args, KIO_FIELD_NODE, -EINVAL, "node %d is not online",
				  args->node);
	return 0;
}

static int kio_check_multiple(struct kio_add_job *args, u32 field, const char *name, u64 value,
			      u32 block)
{
	if (value & (block - 1))
		return kio_refuse(args, field, -EINVAL,
				  "%s is no multiple of the device's block of %u bytes", name,
				  block);
	return 0;
}

/* Where I/O goes; fills in the defaults. */
static int kio_check_offsets(struct kio_add_job *args, struct block_device *bdev)
{
	u32 block = bdev_logical_block_size(bdev);
	u64 size = kio_bdev_bytes(bdev), stride = abs(args->offset_stride);
	int err;

	if (!args->align)
		args->align = args->block_size;
	args->high_used = args->offset_high ? args->offset_high : size;
	if (args->high_used > size) {
		args->high_used = size;
		args->notes |= KIO_NOTE_HIGH_CLIPPED;
	}
	if (!stride || args->offset_stride < -KIO_MAX_STRIDE || stride > KIO_MAX_STRIDE)
		return kio_refuse(args, KIO_FIELD_OFFSET_STRIDE, -EINVAL,
				  "offset_stride %lld is 0 or beyond 2^40", args->offset_stride);
	err = kio_check_multiple(args, KIO_FIELD_BLOCK_SIZE, "block_size", args->block_size, block);
	if (!err)
		err = kio_check_multiple(args, KIO_FIELD_OFFSET_STRIDE, "offset_stride", stride,
					 block);
	if (!err)
		err = kio_check_multiple(args, KIO_FIELD_OFFSET_LOW, "offset_low", args->offset_low,
					 block);
	if (!err)
		err = kio_check_multiple(args, KIO_FIELD_ALIGN, "align", args->align, block);
	if (err)
		return err;
	if (args->offset_low >= args->high_used ||
	    args->high_used - args->offset_low < args->block_size)
		return kio_refuse(args, KIO_FIELD_OFFSET_LOW, -EINVAL,
				  "no block of %u bytes lies in [%llu,%llu), the device has %llu",
				  args->block_size, args->offset_low, args->high_used, size);
	if (args->limit_bytes && args->limit_bytes < args->block_size)
		return kio_refuse(args, KIO_FIELD_BLOCK_SIZE, -EINVAL,
				  "limit_bytes %llu is less than one block", args->limit_bytes);
	return 0;
}

/* A bio that is split is refused each time where it must not wait: it would never go out. */
static int kio_refuse_split(struct kio_add_job *args, struct block_device *bdev)
{
	if (!(args->flags & KIO_JOB_NOWAIT) || !(args->notes & KIO_NOTE_SPLIT))
		return 0;
	return kio_refuse(args, KIO_FIELD_BLOCK_SIZE, -EINVAL,
			  "a block that is split cannot go out without a wait: at most %u bytes",
			  queue_max_sectors(bdev_get_queue(bdev)) << SECTOR_SHIFT);
}

static int kio_check_device(struct kio_add_job *args, struct kio_device *device)
{
	struct request_queue *q = bdev_get_queue(device->bdev);

	if (kio_writes(args) && !(device->flags & KIO_DEV_WRITE))
		return kio_refuse(args, KIO_FIELD_DEVICE, -EACCES,
				  "the job writes, but the device was added for reading");
	if (args->op == KIO_OP_TRIM && !q->limits.max_discard_sectors)
		return kio_refuse(args, KIO_FIELD_OP, -EOPNOTSUPP, "the device cannot trim");
	if (queue_is_mq(q) && args->queue_depth > q->nr_requests)
		args->notes |= KIO_NOTE_TAG_WAITS;
	if (kio_moves_data(args) && args->block_size > (u64)queue_max_sectors(q) << SECTOR_SHIFT)
		args->notes |= KIO_NOTE_SPLIT;
	if (kio_refuse_split(args, device->bdev))
		return -EINVAL;
	if (args->complete != KIO_COMPLETE_POLL)
		return 0;
	if (!kio_queue_polls(device->bdev))
		return kio_refuse(args, KIO_FIELD_COMPLETE, -EOPNOTSUPP,
				  "the device has no poll queues: nvme.poll_queues=N, null_blk poll_queues=N or virtio_blk poll_queues=N makes some");
	if (!kio_moves_data(args))
		return kio_refuse(args, KIO_FIELD_COMPLETE, -EINVAL,
				  "only reads and writes can be polled for");
	if (args->notes & KIO_NOTE_SPLIT)
		return kio_refuse(args, KIO_FIELD_BLOCK_SIZE, -EINVAL,
				  "a polled block cannot be split: at most %u bytes",
				  queue_max_sectors(q) << SECTOR_SHIFT);
	if (args->cpu < 0)
		args->notes |= KIO_NOTE_POLL_PINNED;
	return 0;
}

int kio_plan_check(struct kio_add_job *args, struct kio_device *device)
{
	int err;

	args->err_field = KIO_FIELD_NONE;
	args->notes = 0;
	args->message[0] = '\0';
	if (memchr_inv(args->reserved, 0, sizeof(args->reserved)) || args->pad)
		return kio_refuse(args, KIO_FIELD_NONE, -EINVAL, "a reserved field is not 0");
	err = kio_check_ranges(args);
	if (!err)
		err = kio_check_place(args);
	if (!err)
		err = kio_check_offsets(args, device->bdev);
	if (!err)
		err = kio_check_device(args, device);
	return err;
}

static void kio_pieces_free(struct bio_vec *vecs, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++)
		__free_pages(vecs[i].bv_page, get_order(vecs[i].bv_len));
	kfree(vecs);
}

/* Memory of a block in as few pieces as can be had. */
static struct bio_vec *kio_pieces_alloc(u32 bytes, int node, u16 *nr)
{
	struct bio_vec *vecs = kmalloc_array(KIO_MAX_PIECES, sizeof(*vecs), GFP_KERNEL), *fit;
	u32 order = min_t(u32, get_order(bytes), KIO_MAX_ORDER);
	/* Without memory the job is refused, and no other process killed for it. */
	const gfp_t plain = GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN | __GFP_RETRY_MAYFAIL;
	gfp_t gfp = GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN | __GFP_NORETRY;
	u32 n = 0;

	if (!vecs)
		return NULL;
	while (bytes && n < KIO_MAX_PIECES) {
		struct page *page;
		u32 len;

		/* Whole pieces only, but for a block below a page. */
		while (order && (PAGE_SIZE << order) > bytes)
			order--;
		page = alloc_pages_node(node, order ? gfp : plain, order);
		if (!page && order) {
			order--;
			continue;
		}
		if (!page)
			break;
		len = min_t(u32, bytes, PAGE_SIZE << order);
		vecs[n++] = (struct bio_vec) { .bv_page = page, .bv_len = len };
		bytes -= len;
	}
	if (bytes) {
		kio_pieces_free(vecs, n);
		return NULL;
	}
	*nr = n;
	fit = krealloc(vecs, n * sizeof(*vecs), GFP_KERNEL);
	return fit ? fit : vecs;
}

static void kio_randomize(struct bio_vec *vecs, u32 nr, struct kio_rng *rng)
{
	u32 i, at;

	for (i = 0; i < nr; i++) {
		u64 *words = page_address(vecs[i].bv_page);

		for (at = 0; at < vecs[i].bv_len / 8; at++)
			words[at] = kio_rng_next(rng);
		cond_resched();
	}
}

static int kio_slots_fill(struct kio_job *job, int node)
{
	const u32 segments = queue_max_segments(bdev_get_queue(job->bdev));
	bool both = kio_reads_and_writes(&job->plan);
	struct kio_rng rng;
	u32 i;
	int dir;

	kio_rng_init(&rng, job->plan.seed, job->plan.stream, 0);
	for (i = 0; i < job->plan.queue_depth; i++) {
		struct kio_slot *slot = &job->slots[i];

		if (fatal_signal_pending(current))
			return -EINTR;
		for (dir = 0; dir <= both; dir++) {
			slot->vecs[dir] = kio_pieces_alloc(job->len, node, &slot->pieces[dir]);
			if (!slot->vecs[dir])
				return -ENOMEM;
			if (slot->pieces[dir] > segments)
				job->plan.notes |= KIO_NOTE_SPLIT;
			if (job->plan.data == KIO_DATA_RANDOM)
				kio_randomize(slot->vecs[dir], slot->pieces[dir], &rng);
		}
		if (!both) {
			slot->vecs[KIO_DIR_WRITE] = slot->vecs[KIO_DIR_READ];
			slot->pieces[KIO_DIR_WRITE] = slot->pieces[KIO_DIR_READ];
		}
	}
	return 0;
}

static void kio_slots_free(struct kio_job *job)
{
	u32 i;

	for (i = 0; job->slots && i < job->plan.queue_depth; i++) {
		struct kio_slot *slot = &job->slots[i];

		if (slot->vecs[KIO_DIR_WRITE] != slot->vecs[KIO_DIR_READ])
			kio_pieces_free(slot->vecs[KIO_DIR_WRITE], slot->pieces[KIO_DIR_WRITE]);
		kio_pieces_free(slot->vecs[KIO_DIR_READ], slot->pieces[KIO_DIR_READ]);
	}
	kvfree(job->slots);
}

static void kio_set_flags(struct kio_job *job)
{
	const struct kio_add_job *plan = &job->plan;
	unsigned int both = 0, write = KIO_OPF(REQ_OP_WRITE | REQ_SYNC | REQ_IDLE);

	if (plan->complete == KIO_COMPLETE_POLL) {
		both |= KIO_OPF(REQ_POLLED);
		/* Only this thread can reap: asleep for a tag it would wait for itself. */
		if (plan->queue_depth > 1)
			both |= KIO_OPF(REQ_NOWAIT);
	}
	if (plan->flags & KIO_JOB_NOWAIT)
		both |= KIO_OPF(REQ_NOWAIT);
	if (plan->flags & KIO_JOB_FUA)
		write |= KIO_OPF(REQ_FUA);
	if (plan->op == KIO_OP_TRIM)
		write = KIO_OPF(REQ_OP_DISCARD);
	else if (plan->op == KIO_OP_FLUSH)
		write = KIO_OPF(REQ_OP_WRITE | REQ_PREFLUSH | REQ_SYNC);
	job->opf[KIO_DIR_READ] = KIO_OPF(REQ_OP_READ) | both;
	job->opf[KIO_DIR_WRITE] = write | both;
}

static void kio_set_generator(struct kio_job *job)
{
	const struct kio_add_job *plan = &job->plan;
	struct kio_gen_plan gen = {
		.low = plan->offset_low,
		.high = plan->high_used,
		.align = plan->align,
		.stride = plan->offset_stride,
		.seed = plan->seed,
		.stream = plan->stream,
		.block = plan->block_size,
		.burst = { plan->read_burst, plan->write_burst },
		.mix = plan->read_mix_percent,
		.random = plan->offset_random,
	};

	if (plan->op != KIO_OP_MIX)
		gen.mix = plan->op == KIO_OP_READ ? 100 : 0;
	if (plan->flags & KIO_JOB_MIX_IO)
		gen.burst[KIO_DIR_READ] = gen.burst[KIO_DIR_WRITE] = 1;
	kio_gen_init(&job->gen, &gen);
	if (plan->op == KIO_OP_FLUSH) {
		/* It has no place: the walk stays at 0. */
		job->gen.places = 0;
		job->gen.low = 0;
		job->gen.start = 0;
		job->gen.pos = 0;
		job->gen.stride = 0;
	}
}

/* What the thread looks at for each I/O. */
static void kio_set_loop(struct kio_job *job)
{
	const struct kio_add_job *plan = &job->plan;
	u32 i;

	job->len = plan->op == KIO_OP_FLUSH ? 0 : plan->block_size;
	job->batch = plan->batch ? plan->batch : 1;
	job->room = plan->queue_depth - job->batch;
	job->complete = plan->complete;
	job->noacct = (plan->flags & KIO_JOB_NOACCT) || kio_submit_mode == 1;
	job->no_hist = plan->flags & KIO_JOB_NO_HIST;
	job->pattern.seed = plan->verify_seed;
	job->pattern.generation = plan->generation;
	job->stamp = plan->seed;
	job->limit = plan->limit_ios ? plan->limit_ios : KIO_NEVER;
	if (plan->limit_bytes)
		job->limit = min(job->limit, plan->limit_bytes / plan->block_size);
	if (plan->data == KIO_DATA_VERIFY && kio_moves_data(plan))
		job->also |= KIO_ALSO_VERIFY;
	job->quirks = plan->burst_finish || plan->read_sleep_usec || plan->write_sleep_usec ||
		      plan->trace || (kio_writes(plan) && plan->data != KIO_DATA_ZERO);
	for (i = plan->queue_depth; i--;) {
		job->slots[i].job = job;
		job->slots[i].next = job->free;
		job->free = &job->slots[i];
	}
}

static int kio_job_node(const struct kio_add_job *args, struct block_device *bdev)
{
	if (args->node >= 0)
		return args->node;
	return args->cpu >= 0 ? cpu_to_node(args->cpu) : bdev->bd_disk->node_id;
}

/* Books memory of the job. */
static int kio_job_take(struct kio_job *job, u64 bytes)
{
	int err = kio_take_memory(bytes);

	if (!err)
		job->bytes_held += bytes;
	return err;
}

static u64 kio_job_needs(const struct kio_job *job)
{
	const struct kio_add_job *plan = &job->plan;
	u64 sides = kio_reads_and_writes(plan) ? 2 : 1;
	u64 bytes = KIO_DIRS * sizeof(*job->counts) + plan->trace * sizeof(*job->trace);

	bytes += plan->queue_depth * sizeof(*job->slots);
	if (kio_moves_data(plan))
		bytes += plan->queue_depth * sides * max_t(u64, plan->block_size, PAGE_SIZE);
	return bytes;
}

/* Books the memory, then gets it. */
static int kio_job_alloc(struct kio_job *job, int node)
{
	struct kio_add_job *plan = &job->plan;
	int err = kio_job_take(job, kio_job_needs(job));

	if (err)
		return kio_refuse(plan, KIO_FIELD_QUEUE_DEPTH, err,
				  "%llu bytes of buffers are more than max_mem_mb leaves",
				  kio_job_needs(job));
	job->slots = kvzalloc_node(array_size(plan->queue_depth, sizeof(*job->slots)), GFP_KERNEL,
				   node);
	job->counts = kvzalloc_node(array_size(KIO_DIRS, sizeof(*job->counts)), GFP_KERNEL, node);
	job->errs = kcalloc(KIO_MAX_ERRS, sizeof(*job->errs), GFP_KERNEL);
	if (plan->trace)
		job->trace = kvcalloc(plan->trace, sizeof(*job->trace), GFP_KERNEL);
	if (!job->slots || !job->counts || !job->errs || (plan->trace && !job->trace))
		return kio_refuse(plan, KIO_FIELD_NONE, -ENOMEM, "out of memory");
	kio_set_loop(job);
	if (kio_moves_data(plan) && kio_slots_fill(job, node))
		return kio_refuse(plan, KIO_FIELD_BLOCK_SIZE, -ENOMEM,
				  "memory is used up, or too fragmented for blocks of %u bytes",
				  plan->block_size);
	return kio_refuse_split(plan, job->bdev);
}

struct kio_job *kio_job_new(struct kio_session *session, struct kio_device *device,
			    struct kio_add_job *args)
{
	struct kio_job *job = kzalloc(sizeof(*job), GFP_KERNEL);
	int err;

	if (!job)
		return ERR_PTR(-ENOMEM);
	job->session = session;
	job->bdev = device->bdev;
	job->plan = *args;
	init_llist_head(&job->done);
	err = kio_job_alloc(job, kio_job_node(args, device->bdev));
	if (err) {
		args->err_field = job->plan.err_field;
		memcpy(args->message, job->plan.message, sizeof(args->message));
		kio_job_free(job);
		return ERR_PTR(err);
	}
	kio_set_flags(job);
	kio_set_generator(job);
	args->notes = job->plan.notes;
	device->wrote |= kio_writes(args);
	return job;
}

int kio_job_make_series(struct kio_job *job, u64 records)
{
	job->max_series = min_t(u64, records, KIO_MAX_SERIES);
	if (!job->max_series)
		return 0;
	if (kio_job_take(job, job->max_series * sizeof(*job->series)))
		return -ENOMEM;
	job->series = kvcalloc(job->max_series, sizeof(*job->series), GFP_KERNEL);
	if (!job->series)
		return -ENOMEM;
	job->also |= KIO_ALSO_SERIES;
	return 0;
}

void kio_job_free(struct kio_job *job)
{
	kio_slots_free(job);
	kio_give_memory(job->bytes_held);
	kvfree(job->counts);
	kvfree(job->series);
	kvfree(job->trace);
	kfree(job->errs);
	if (job->task)
		put_task_struct(job->task);
	kfree(job);
}
