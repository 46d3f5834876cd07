// SPDX-License-Identifier: GPL-2.0
/* Polling by bio: from 5.16. */
#include <linux/bio.h>
#include <linux/blkdev.h>

void probe(struct bio *bio);
void probe(struct bio *bio)
{
	bio_poll(bio, NULL, 0);
}
