// SPDX-License-Identifier: GPL-2.0
/* bio_init() takes the device and the operation: from 5.18. */
#include <linux/bio.h>

void probe(struct bio *bio, struct block_device *bdev, struct bio_vec *vecs);
void probe(struct bio *bio, struct block_device *bdev, struct bio_vec *vecs)
{
	bio_init(bio, bdev, vecs, 1, REQ_OP_READ);
}
