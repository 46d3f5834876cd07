// SPDX-License-Identifier: GPL-2.0
/* From 5.19. */
#include <linux/blkdev.h>

bool probe(struct block_device *bdev);
bool probe(struct block_device *bdev)
{
	return bdev_nonrot(bdev);
}
