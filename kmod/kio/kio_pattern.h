/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The data of verify: a function of the place on the device, a seed and a
 * generation, so that whoever knows these can check what anybody wrote.
 *
 * A sector of 512 bytes, number s = byte offset / 512, is 64 little-endian
 * words: 0 is the magic, 1 is s, 2 the generation g, and every other word i is
 *
 *	mix64((seed ^ s * GOLDEN ^ (g * 64 + i)) + GOLDEN)
 */
#ifndef KIO_PATTERN_H
#define KIO_PATTERN_H

#include "kio_gen.h"
#ifdef __KERNEL__
#include <asm/byteorder.h>
#endif

#define KIO_PATTERN_MAGIC	0x314F494B52494557ull	/* "WEIRKIO1" */
#define KIO_PATTERN_SECTOR	512u
#define KIO_PATTERN_WORDS	64u

struct kio_pattern {
	u64 seed;
	u64 generation;
};

struct kio_wrong {
	u64 at;		/* first wrong byte, on the device */
	u64 expected;	/* the word it is part of */
	u64 got;
};

static inline u64 kio_pattern_word(const struct kio_pattern *p, u64 sector, u32 i)
{
	switch (i) {
	case 0:
		return KIO_PATTERN_MAGIC;
	case 1:
		return sector;
	case 2:
		return p->generation;
	default:
		return kio_mix64((p->seed ^ sector * KIO_GOLDEN ^ (p->generation * 64 + i)) +
				 KIO_GOLDEN);
	}
}

/* Fills `bytes` that go to `offset`; both are multiples of 512. */
static inline void kio_pattern_fill(const struct kio_pattern *p, __le64 *data, u32 bytes,
				    u64 offset)
{
	u64 sector = offset / KIO_PATTERN_SECTOR;
	u32 i;

	for (; bytes; bytes -= KIO_PATTERN_SECTOR, sector++)
		for (i = 0; i < KIO_PATTERN_WORDS; i++)
			*data++ = cpu_to_le64(kio_pattern_word(p, sector, i));
}

/* True if `bytes` from `offset` are as written; otherwise `wrong` is filled. */
static inline bool kio_pattern_good(const struct kio_pattern *p, const __le64 *data, u32 bytes,
				    u64 offset, struct kio_wrong *wrong)
{
	u32 i, words = bytes / 8;

	for (i = 0; i < words; i++) {
		u64 sector = offset / KIO_PATTERN_SECTOR + i / KIO_PATTERN_WORDS;
		u64 expected = kio_pattern_word(p, sector, i % KIO_PATTERN_WORDS);
		u64 got = le64_to_cpu(data[i]);

		if (likely(got == expected))
			continue;
		wrong->at = offset + i * 8ull + (u32)__builtin_ctzll(got ^ expected) / 8;
		wrong->expected = expected;
		wrong->got = got;
		return false;
	}
	return true;
}

#endif
