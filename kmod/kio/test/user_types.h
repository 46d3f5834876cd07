/* SPDX-License-Identifier: GPL-2.0 */
/* What the headers that the module shares with user space need of the kernel. */
#ifndef KIO_USER_TYPES_H
#define KIO_USER_TYPES_H

#include <endian.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

typedef uint64_t u64;
typedef int64_t s64;
typedef uint32_t u32;

#define likely(x)	__builtin_expect(!!(x), 1)
#define cpu_to_le64(x)	htole64(x)
#define le64_to_cpu(x)	le64toh(x)

static inline u64 mul_u64_u64_shr(u64 a, u64 b, unsigned int by)
{
	return (u64)(((unsigned __int128)a * b) >> by);
}

static inline u64 div64_u64(u64 a, u64 b)
{
	return a / b;
}

#endif
