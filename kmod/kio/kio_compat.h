/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's interface as this module wants it, whatever the kernel at hand
 * has. What is a function is found out by conftest/ (KIO_HAVE_*), since
 * distributions carry changes back to older versions; what is a macro speaks
 * for itself.
 */
#ifndef KIO_COMPAT_H
#define KIO_COMPAT_H

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/kthread.h>
#include <linux/module.h>

#include "kio_conf.h"

#ifndef CONFIG_64BIT
#error "kio needs a 64-bit kernel: its counters are read while they are written"
#endif

#if defined(KIO_HAVE_BIO_POLL) && defined(REQ_POLLED)
#define KIO_CAN_POLL 1
#else
#define KIO_CAN_POLL 0
#undef REQ_POLLED
#define REQ_POLLED 0
#endif

static inline void kio_bio_init(struct bio *bio, struct block_device *bdev, struct bio_vec *vecs,
				unsigned short nr_vecs, unsigned int opf)
{
#ifdef KIO_HAVE_BIO_INIT_BDEV
	bio_init(bio, bdev, vecs, nr_vecs, opf);
#else
	bio_init(bio, vecs, nr_vecs);
	bio_set_dev(bio, bdev);
	bio->bi_opf = opf;
#endif
}

static inline void kio_bio_poll(struct bio *bio)
{
#if KIO_CAN_POLL
	/* What it returns is not a number of completions. */
	bio_poll(bio, NULL, 0);
#endif
}

static inline void kio_bio_submit(struct bio *bio, bool noacct)
{
#ifdef KIO_HAVE_SUBMIT_NOACCT
	if (unlikely(noacct)) {
		submit_bio_noacct(bio);
		return;
	}
#endif
	submit_bio(bio);
}

static inline bool kio_queue_polls(struct block_device *bdev)
{
	struct request_queue *q = bdev_get_queue(bdev);

	if (!KIO_CAN_POLL)
		return false;
#if defined(BLK_FEAT_POLL)
	return q->limits.features & BLK_FEAT_POLL;
#elif defined(QUEUE_FLAG_POLL)
	return test_bit(QUEUE_FLAG_POLL, &q->queue_flags);
#else
	return false;
#endif
}

static inline struct block_device *kio_file_bdev(struct file *file)
{
#ifdef KIO_HAVE_FILE_BDEV
	return file_bdev(file);
#else
	return I_BDEV(file->f_mapping->host);
#endif
}

static inline u64 kio_bdev_bytes(struct block_device *bdev)
{
#ifdef KIO_HAVE_BDEV_NR_BYTES
	return bdev_nr_bytes(bdev);
#else
	return (u64)i_size_read(bdev->bd_inode);
#endif
}

static inline bool kio_bdev_rotates(struct block_device *bdev)
{
#ifdef KIO_HAVE_BDEV_NONROT
	return !bdev_nonrot(bdev);
#else
	return !blk_queue_nonrot(bdev_get_queue(bdev));
#endif
}

static inline u32 kio_bdev_zones(struct block_device *bdev)
{
#ifdef KIO_HAVE_BDEV_NR_ZONES
	return bdev_nr_zones(bdev);
#else
	return blkdev_nr_zones(bdev->bd_disk);
#endif
}

/* The disk is gone, not only this bio. */
static inline bool kio_bdev_dead(struct block_device *bdev)
{
#ifdef GD_DEAD
	return test_bit(GD_DEAD, &bdev->bd_disk->state);
#else
	return false;
#endif
}

/*
 * Ends a thread that holds the module: the reference is given back by code
 * that is not in the module.
 */
static inline void kio_thread_exit(void)
{
#ifdef KIO_HAVE_KTHREAD_EXIT
	module_put_and_kthread_exit(0);
#else
	module_put_and_exit(0);
#endif
}

#ifdef KIO_HAVE_CONST_BIN_ATTRIBUTE
#define kio_bin_attribute const struct bin_attribute
#else
#define kio_bin_attribute struct bin_attribute
#endif

#endif
