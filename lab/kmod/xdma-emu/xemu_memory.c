// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of a card: pages by address, made when they are first written. What
 * was never written is zeros and takes no memory. The pages of all cards
 * together have a limit, and none goes before the module does.
 */
#include <linux/gfp.h>
#include <linux/mm.h>

#include "xemu.h"

static atomic_long_t xemu_pages;

static int xemu_memory_add(struct xemu_card *card, unsigned long index)
{
	long limit = (long)xemu_max_mem_mb << (20 - PAGE_SHIFT);
	unsigned long page;
	void *before;

	if (atomic_long_inc_return(&xemu_pages) > limit)
		goto full;
	page = __get_free_page(GFP_KERNEL | __GFP_ZERO | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (!page)
		goto full;
	before = xa_cmpxchg(&card->pages, index, NULL, (void *)page, GFP_KERNEL);
	if (!before)
		return 0;
	/* Another channel was quicker, or the tree has no memory. */
	free_page(page);
	atomic_long_dec(&xemu_pages);
	return xa_err(before);
full:
	atomic_long_dec(&xemu_pages);
	return -ENOSPC;
}

/* Makes the pages of a range; those that were made stay where the limit is met. */
int xemu_memory_store(struct xemu_card *card, u64 at, size_t len)
{
	unsigned long index;
	int err;

	for (index = at >> PAGE_SHIFT; index <= (at + len - 1) >> PAGE_SHIFT; index++) {
		if (xa_load(&card->pages, index))
			continue;
		err = xemu_memory_add(card, index);
		if (err)
			return err;
		cond_resched();
	}
	return 0;
}

/* The page that has this address, NULL for a hole. */
void *xemu_memory_page(struct xemu_card *card, u64 at)
{
	return xa_load(&card->pages, at >> PAGE_SHIFT);
}

void xemu_memory_free(struct xemu_card *card)
{
	unsigned long index;
	void *page;

	xa_for_each(&card->pages, index, page) {
		free_page((unsigned long)page);
		atomic_long_dec(&xemu_pages);
	}
	xa_destroy(&card->pages);
}
