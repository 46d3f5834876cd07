/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which I/O comes next: the direction and the offset, from the fields of a job
 * alone. Compiles in the kernel and in user space; every engine draws the same
 * sequence.
 *
 * Random words: splitmix64 seeds xoshiro256++ (Vigna; Blackman and Vigna, both
 * public domain). Two streams per job, so that neither shifts the other:
 *
 *	key(seed, stream) = mix64(mix64(seed + GOLDEN) ^ (stream + 1) * GOLDEN)
 *	rng(name)         = xoshiro256++ whose four words are the first four of
 *	                    splitmix64 started at mix64(key ^ name)
 *	name              = "offsets_" or "mix_____" as a little-endian word
 *	below(n)          = upper 64 bits of the 128-bit product next() * n
 *
 * Per I/O, in this order:
 *  1. Direction. When nothing is left of a burst a new one begins: a read with
 *     mix 100, a write with mix 0, otherwise a read if below(100) of "mix" is
 *     less than mix. It has `burst` of its direction I/Os, 0 counts as 1.
 *  2. Offset, one position for both directions; every I/O lies in [low, high).
 *     Random: low + align * below(n) of "offsets", where
 *     n = (high - low - block) / align + 1. Sequential: starts at low, or with
 *     a negative stride at low + (high - low - block) / |stride| * |stride|;
 *     after each I/O the stride is added, and where the next one would not lie
 *     in [low, high) it goes back to the start.
 */
#ifndef KIO_GEN_H
#define KIO_GEN_H

#ifdef __KERNEL__
#include <linux/math64.h>
#include <linux/types.h>
#else
#include "test/user_types.h"
#endif

#define KIO_GOLDEN		0x9e3779b97f4a7c15ull
#define KIO_STREAM_OFFSETS	0x5f7374657366666full	/* "offsets_" */
#define KIO_STREAM_MIX		0x5f5f5f5f5f78696dull	/* "mix_____" */

struct kio_rng {
	u64 s[4];
};

static inline u64 kio_mix64(u64 x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static inline u64 kio_rotl(u64 x, unsigned int by)
{
	return (x << by) | (x >> (64 - by));
}

static inline void kio_rng_init(struct kio_rng *rng, u64 seed, u32 stream, u64 name)
{
	u64 key = kio_mix64(kio_mix64(seed + KIO_GOLDEN) ^ ((u64)stream + 1) * KIO_GOLDEN);
	u64 state = kio_mix64(key ^ name);
	int i;

	for (i = 0; i < 4; i++) {
		state += KIO_GOLDEN;
		rng->s[i] = kio_mix64(state);
	}
}

static inline u64 kio_rng_next(struct kio_rng *rng)
{
	u64 s0 = rng->s[0], s1 = rng->s[1], s2 = rng->s[2], s3 = rng->s[3];
	u64 word = kio_rotl(s0 + s3, 23) + s0;
	u64 t = s1 << 17;

	s2 ^= s0;
	s3 ^= s1;
	rng->s[1] = s1 ^ s2;
	rng->s[0] = s0 ^ s3;
	rng->s[2] = s2 ^ t;
	rng->s[3] = kio_rotl(s3, 45);
	return word;
}

static inline u64 kio_rng_below(struct kio_rng *rng, u64 bound)
{
	return mul_u64_u64_shr(kio_rng_next(rng), bound, 64);
}

/* What the sequence depends on; high - low >= block, align and stride not 0. */
struct kio_gen_plan {
	u64 low;
	u64 high;
	u64 align;
	s64 stride;
	u64 seed;
	u32 stream;
	u32 block;
	u32 burst[2];	/* read, write */
	u32 mix;	/* percent of bursts that read */
	bool random;
};

struct kio_gen {
	struct kio_rng offsets;
	struct kio_rng mixes;
	u64 low;
	u64 last;	/* the highest offset where a block fits */
	u64 start;
	u64 pos;
	s64 stride;
	u64 align;
	u64 places;	/* 0: sequential */
	u32 mix;
	u32 burst[2];
	u32 left;
	u32 dir;	/* 0 read, 1 write */
};

static inline void kio_gen_init(struct kio_gen *gen, const struct kio_gen_plan *plan)
{
	u64 span = plan->high - plan->low - plan->block;

	kio_rng_init(&gen->offsets, plan->seed, plan->stream, KIO_STREAM_OFFSETS);
	kio_rng_init(&gen->mixes, plan->seed, plan->stream, KIO_STREAM_MIX);
	gen->low = plan->low;
	gen->last = plan->low + span;
	gen->stride = plan->stride;
	gen->align = plan->align;
	gen->places = plan->random ? div64_u64(span, plan->align) + 1 : 0;
	gen->start = plan->low;
	if (plan->stride < 0) {
		u64 back = -(u64)plan->stride;

		gen->start += div64_u64(span, back) * back;
	}
	gen->pos = gen->start;
	gen->mix = plan->mix;
	gen->burst[0] = plan->burst[0] ? plan->burst[0] : 1;
	gen->burst[1] = plan->burst[1] ? plan->burst[1] : 1;
	gen->left = 0;
	gen->dir = plan->mix ? 0 : 1;
}

/* The next I/O draws the direction of a new burst. */
static inline bool kio_gen_at_draw(const struct kio_gen *gen)
{
	return gen->left == 0 && gen->mix > 0 && gen->mix < 100;
}

/* The I/O that was drawn last ends a burst. */
static inline bool kio_gen_at_end(const struct kio_gen *gen)
{
	return gen->left == 0;
}

static inline u32 kio_gen_direction(struct kio_gen *gen)
{
	if (gen->left == 0) {
		if (gen->mix > 0 && gen->mix < 100)
			gen->dir = kio_rng_below(&gen->mixes, 100) >= gen->mix;
		gen->left = gen->burst[gen->dir];
	}
	gen->left--;
	return gen->dir;
}

static inline u64 kio_gen_offset(struct kio_gen *gen)
{
	u64 offset, next;

	if (gen->places)
		return gen->low + gen->align * kio_rng_below(&gen->offsets, gen->places);
	offset = gen->pos;
	next = offset + (u64)gen->stride;
	/* Unsigned: below 0 is far above the last. */
	gen->pos = next < gen->low || next > gen->last ? gen->start : next;
	return offset;
}

#endif
