// SPDX-License-Identifier: GPL-2.0
/*
 * The module, its parameters, cards and nodes. A card is a platform device with
 * one node for each channel and direction, as the driver of an FPGA card has
 * them; its memory is that of this machine.
 */
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/version.h>

#include "xemu.h"

#define XEMU_MINORS	64
#define XEMU_H2C	32
#define XEMU_C2H	36
#define XEMU_EDMA	48
#define XEMU_NODES	(3 * XEMU_MAX_CHANNELS)
#define XEMU_DISK	6	/* the group `disk` of Debian */

unsigned long xemu_mem_bytes = 64ul << 30;
unsigned int xemu_max_mem_mb = 256;
unsigned int xemu_align = 1;
unsigned int xemu_poll_mode;
static unsigned int xemu_cards = 1;
static unsigned int xemu_nr_channels = XEMU_MAX_CHANNELS;
static bool xemu_edma;
static unsigned int xemu_h2c_timeout = 10;
static unsigned int xemu_c2h_timeout = 10;

module_param_named(cards, xemu_cards, uint, 0444);
MODULE_PARM_DESC(cards, "cards, 1 to 8");
module_param_named(channels, xemu_nr_channels, uint, 0444);
MODULE_PARM_DESC(channels, "channels of each direction of a card, 1 to 4");
module_param_named(mem_bytes, xemu_mem_bytes, ulong, 0444);
MODULE_PARM_DESC(mem_bytes, "bytes of memory of a card; what is beyond is EIO");
module_param_named(max_mem_mb, xemu_max_mem_mb, uint, 0444);
MODULE_PARM_DESC(max_mem_mb, "MiB that all cards may hold; more is ENOSPC");
module_param_named(align, xemu_align, uint, 0444);
MODULE_PARM_DESC(align, "alignment of the engines, a power of two up to 4096");
module_param_named(edma, xemu_edma, bool, 0444);
MODULE_PARM_DESC(edma, "also make the nodes edma<card>_queue_<channel>");
module_param_named(poll_mode, xemu_poll_mode, uint, 0644);
MODULE_PARM_DESC(poll_mode, "0 a timer ends transfers, 1 a thread that spins");
module_param_named(h2c_timeout, xemu_h2c_timeout, uint, 0644);
MODULE_PARM_DESC(h2c_timeout, "seconds until a write is given up, 0 for never");
module_param_named(c2h_timeout, xemu_c2h_timeout, uint, 0644);
MODULE_PARM_DESC(c2h_timeout, "seconds until a read is given up, 0 for never");

static struct xemu_card xemu_all[XEMU_MAX_CARDS];
static struct xemu_channel *xemu_channels[XEMU_MAX_CARDS * XEMU_NODES];
static unsigned int xemu_nr_nodes;

unsigned int xemu_timeout(bool write)
{
	return write ? READ_ONCE(xemu_h2c_timeout) : READ_ONCE(xemu_c2h_timeout);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
static char *xemu_devnode(const struct device *dev, umode_t *mode, kuid_t *uid, kgid_t *gid)
#else
static char *xemu_devnode(struct device *dev, umode_t *mode, kuid_t *uid, kgid_t *gid)
#endif
{
	/* Where a node is removed, only its name is wanted. */
	if (mode)
		*mode = 0660;
	if (gid)
		*gid = KGIDT_INIT(XEMU_DISK);
	return NULL;
}

static void xemu_channel_release(struct device *dev)
{
	struct xemu_channel *channel = container_of(dev, struct xemu_channel, dev);

	mutex_destroy(&channel->lock);
	kfree(channel);
}

static struct class xemu_class = {
	.name = "xdma",
};

static const struct device_type xemu_type = {
	.name = "xdma_channel",
	.groups = xemu_groups,
	.devnode = xemu_devnode,
	.release = xemu_channel_release,
};

/* The parent of the nodes has a driver, so that sysfs says which one a node belongs to. */
static struct platform_driver xemu_driver = {
	.driver = {
		.name = "xdma_emu",
		.suppress_bind_attrs = true,
	},
};

/* Makes a node; `kind` is XEMU_H2C, XEMU_C2H or XEMU_EDMA. */
static int xemu_add_node(struct xemu_card *card, unsigned int kind, unsigned int number)
{
	static const char * const names[] = {
		[XEMU_H2C] = "xdma%u_h2c_%u",
		[XEMU_C2H] = "xdma%u_c2h_%u",
		[XEMU_EDMA] = "edma%u_queue_%u",
	};
	struct xemu_channel *channel = kzalloc(sizeof(*channel), GFP_KERNEL);
	int err;

	if (!channel)
		return -ENOMEM;
	channel->card = card;
	channel->reads = kind != XEMU_H2C;
	channel->writes = kind != XEMU_C2H;
	channel->posts = kind == XEMU_EDMA;
	mutex_init(&channel->lock);
	spin_lock_init(&channel->fault_lock);
	xemu_wait_init(channel, xemu_nr_nodes);
	device_initialize(&channel->dev);
	channel->dev.class = &xemu_class;
	channel->dev.type = &xemu_type;
	channel->dev.parent = &card->parent->dev;
	channel->dev.devt = card->first + kind + number;
	cdev_init(&channel->cdev, channel->posts ? &xemu_edma_fops : &xemu_xdma_fops);
	channel->cdev.owner = THIS_MODULE;
	err = dev_set_name(&channel->dev, names[kind], card->index, number);
	if (!err)
		err = xemu_posted_start(channel);
	if (!err)
		err = cdev_device_add(&channel->cdev, &channel->dev);
	if (err) {
		xemu_posted_stop(channel);
		put_device(&channel->dev);
		return err;
	}
	xemu_channels[xemu_nr_nodes++] = channel;
	return 0;
}

static int xemu_add_card(unsigned int index)
{
	struct xemu_card *card = &xemu_all[index];
	unsigned int number;
	int err;

	card->index = index;
	xa_init(&card->pages);
	card->parent = platform_device_register_simple("xdma_emu", index, NULL, 0);
	if (IS_ERR(card->parent)) {
		err = PTR_ERR(card->parent);
		card->parent = NULL;
		return err;
	}
	err = alloc_chrdev_region(&card->first, 0, XEMU_MINORS, "xdma");
	for (number = 0; !err && number < xemu_nr_channels; number++) {
		err = xemu_add_node(card, XEMU_H2C, number);
		if (!err)
			err = xemu_add_node(card, XEMU_C2H, number);
		if (!err && xemu_edma)
			err = xemu_add_node(card, XEMU_EDMA, number);
	}
	return err;
}

/* No node is open: each holds the module. */
static void xemu_remove_cards(void)
{
	unsigned int i;

	while (xemu_nr_nodes) {
		struct xemu_channel *channel = xemu_channels[--xemu_nr_nodes];

		cdev_device_del(&channel->cdev, &channel->dev);
		xemu_posted_stop(channel);
		put_device(&channel->dev);
	}
	for (i = 0; i < xemu_cards; i++) {
		struct xemu_card *card = &xemu_all[i];

		if (!card->parent)
			continue;
		if (card->first)
			unregister_chrdev_region(card->first, XEMU_MINORS);
		platform_device_unregister(card->parent);
		xemu_memory_free(card);
	}
}

static bool xemu_params_are_good(void)
{
	return xemu_cards >= 1 && xemu_cards <= XEMU_MAX_CARDS &&
	       xemu_nr_channels >= 1 && xemu_nr_channels <= XEMU_MAX_CHANNELS &&
	       xemu_mem_bytes >= 1 && xemu_mem_bytes <= LLONG_MAX &&
	       is_power_of_2(xemu_align) && xemu_align <= 4096;
}

static int __init xemu_init(void)
{
	unsigned int i;
	int err;

	if (!xemu_params_are_good())
		return -EINVAL;
	err = class_register(&xemu_class);
	if (err)
		return err;
	err = platform_driver_register(&xemu_driver);
	if (err)
		goto no_driver;
	err = xemu_pollers_start(xemu_cards * xemu_nr_channels * (xemu_edma ? 3 : 2));
	for (i = 0; !err && i < xemu_cards; i++)
		err = xemu_add_card(i);
	if (!err)
		return 0;
	xemu_remove_cards();
	xemu_pollers_stop();
	platform_driver_unregister(&xemu_driver);
no_driver:
	class_unregister(&xemu_class);
	return err;
}

static void __exit xemu_exit(void)
{
	xemu_remove_cards();
	xemu_pollers_stop();
	platform_driver_unregister(&xemu_driver);
	class_unregister(&xemu_class);
}

module_init(xemu_init);
module_exit(xemu_exit);

MODULE_LICENSE("GPL");
MODULE_AUTHOR("The weir developers");
MODULE_DESCRIPTION("Character nodes of an FPGA card's DMA engines, over memory of this machine");
