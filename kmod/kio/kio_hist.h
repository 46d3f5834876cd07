/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which bucket of a histogram a latency falls into: 64 buckets per power of
 * two. Values below 128 ns have a bucket each; bucket (e + 1) * 64 + k holds
 * [(64 + k) << e, (65 + k) << e); the last, 1855, also holds all from 2^34 ns
 * (17.2 s). weir's own histograms with 6 bits have the same buckets below it.
 */
#ifndef KIO_HIST_H
#define KIO_HIST_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include "test/user_types.h"
#endif

#define KIO_HIST_LAST	1855

static inline u32 kio_hist_index(u64 ns)
{
	u32 e;

	if (ns >> 34)
		return KIO_HIST_LAST;
	e = 57 - (u32)__builtin_clzll(ns | 64);
	return (e << 6) + (u32)(ns >> e);
}

#endif
