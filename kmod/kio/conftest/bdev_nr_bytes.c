// SPDX-License-Identifier: GPL-2.0
/* The size of a device in bytes: from 5.16. */
#include <linux/blkdev.h>

loff_t probe(struct block_device *bdev);
loff_t probe(struct block_device *bdev)
{
	return bdev_nr_bytes(bdev);
}
