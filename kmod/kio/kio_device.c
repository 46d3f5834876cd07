// SPDX-License-Identifier: GPL-2.0
/*
 * Devices. In: a path and what is wanted of it. Out: an open device and what it
 * can do. The device is opened as a file, with the caller's rights, so that
 * permissions and exclusive use are the kernel's business. Not here: jobs.
 */
#include <linux/fs.h>
#include <linux/namei.h>

#include "kio.h"

/* Opening a FIFO or a terminal would block or do things: look first. */
static int kio_must_be_block(const char *name)
{
	struct path path;
	umode_t mode;
	int err = kern_path(name, LOOKUP_FOLLOW, &path);

	if (err)
		return err;
	mode = d_inode(path.dentry)->i_mode;
	path_put(&path);
	return S_ISBLK(mode) ? 0 : -ENOTBLK;
}

static const char *kio_open_refusal(int err)
{
	switch (err) {
	case -ENOTBLK:
		return "is not a block device";
	case -EBUSY:
		return "is in use: mounted, swap, or held by another device or program";
	case -EROFS:
		return "is read-only";
	case -EACCES:
	case -EPERM:
		return "may not be opened by you";
	case -ENOENT:
		return "does not exist";
	case -EOPNOTSUPP:
		return "is zoned, and writing to zones is not supported";
	default:
		return "could not be opened";
	}
}

static int kio_open_file(struct kio_device *device, const char *path)
{
	int mode = device->flags & KIO_DEV_WRITE ? O_RDWR : O_RDONLY;
	struct file *file;
	int err = kio_must_be_block(path);

	if (err)
		return err;
	if (device->flags & KIO_DEV_EXCL)
		mode |= O_EXCL;
	file = filp_open(path, mode | O_LARGEFILE, 0);
	if (IS_ERR(file))
		return PTR_ERR(file);
	device->file = file;
	if (!S_ISBLK(file_inode(file)->i_mode))
		return -ENOTBLK;
	device->bdev = kio_file_bdev(file);
	if (!(device->flags & KIO_DEV_WRITE))
		return 0;
	if (bdev_read_only(device->bdev))
		return -EROFS;
	return bdev_is_zoned(device->bdev) ? -EOPNOTSUPP : 0;
}

static void kio_describe(struct block_device *bdev, struct kio_add_dev *out)
{
	struct request_queue *q = bdev_get_queue(bdev);

	out->bytes = kio_bdev_bytes(bdev);
	out->logical_block = bdev_logical_block_size(bdev);
	out->physical_block = bdev_physical_block_size(bdev);
	out->io_min = bdev_io_min(bdev);
	out->io_opt = bdev_io_opt(bdev);
	out->max_sectors = queue_max_sectors(q);
	out->max_segments = queue_max_segments(q);
	out->max_discard = (u64)q->limits.max_discard_sectors << SECTOR_SHIFT;
	out->nr_zones = kio_bdev_zones(bdev);
	out->rotational = kio_bdev_rotates(bdev);
	out->poll = kio_queue_polls(bdev);
	out->node = bdev->bd_disk->node_id;
	out->tags = queue_is_mq(q) ? q->nr_requests : 0;
	out->read_only = bdev_read_only(bdev) ? 1 : 0;
	out->major = MAJOR(bdev->bd_dev);
	out->minor = MINOR(bdev->bd_dev);
}

int kio_device_open(struct kio_device *device, struct kio_add_dev *args)
{
	int err;

	/* Whoever writes is alone with the device. */
	device->flags = args->flags;
	if (device->flags & KIO_DEV_WRITE)
		device->flags |= KIO_DEV_EXCL;
	err = kio_open_file(device, args->path);
	if (err) {
		kio_device_close(device);
		snprintf(args->message, sizeof(args->message), "%.80s %s", args->path,
			 kio_open_refusal(err));
		return err;
	}
	kio_describe(device->bdev, args);
	return 0;
}

void kio_device_close(struct kio_device *device)
{
	if (device->file)
		filp_close(device->file, NULL);
	memset(device, 0, sizeof(*device));
}

/* Bios pass the page cache by: what is in it must be out before, and forgotten after. */
void kio_device_drop_cache(struct kio_device *device, bool write_back)
{
	if (write_back)
		sync_blockdev(device->bdev);
	invalidate_bdev(device->bdev);
}
