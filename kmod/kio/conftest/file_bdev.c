// SPDX-License-Identifier: GPL-2.0
/* The device of an open file: from 6.9. */
#include <linux/blkdev.h>

struct block_device *probe(struct file *file);
struct block_device *probe(struct file *file)
{
	return file_bdev(file);
}
