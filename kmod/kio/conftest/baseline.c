// SPDX-License-Identifier: GPL-2.0
/* Anything that every kernel has. */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/module.h>

void probe(struct bio *bio);
void probe(struct bio *bio)
{
	bio_uninit(bio);
}
