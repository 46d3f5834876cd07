// SPDX-License-Identifier: GPL-2.0
/*
 * Prints what the headers that are shared with user space compute, one fact a
 * line, for comparison with other implementations:
 *
 *	vectors steps LOW HIGH BLOCK ALIGN STRIDE RANDOM MIX READ_BURST WRITE_BURST SEED STREAM N
 *		lines "OP OFFSET", OP 0 read, 1 write
 *	vectors index NS...		lines "BUCKET"
 *	vectors pattern SEED GENERATION OFFSET BYTES
 *		the raw data
 *	vectors check SEED GENERATION OFFSET
 *		reads data; "good" or "AT EXPECTED GOT", exit code 1
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kio_gen.h"
#include "../kio_hist.h"
#include "../kio_pattern.h"

static u64 number(const char *word)
{
	return strtoull(word, NULL, 0);
}

static int steps(char **w)
{
	struct kio_gen_plan plan = {
		.low = number(w[0]), .high = number(w[1]), .block = (u32)number(w[2]),
		.align = number(w[3]), .stride = strtoll(w[4], NULL, 0),
		.random = number(w[5]) != 0, .mix = (u32)number(w[6]),
		.burst = { (u32)number(w[7]), (u32)number(w[8]) },
		.seed = number(w[9]), .stream = (u32)number(w[10]),
	};
	struct kio_gen gen;
	u64 n;

	kio_gen_init(&gen, &plan);
	for (n = number(w[11]); n; n--) {
		u32 dir = kio_gen_direction(&gen);

		printf("%u %llu\n", dir, (unsigned long long)kio_gen_offset(&gen));
	}
	return 0;
}

static int pattern(char **w)
{
	struct kio_pattern p = { .seed = number(w[0]), .generation = number(w[1]) };
	u32 bytes = (u32)number(w[3]);
	__le64 *data = malloc(bytes);

	if (!data)
		return 1;
	kio_pattern_fill(&p, data, bytes, number(w[2]));
	fwrite(data, 1, bytes, stdout);
	free(data);
	return 0;
}

static int check(char **w)
{
	static __le64 data[1 << 17];
	struct kio_pattern p = { .seed = number(w[0]), .generation = number(w[1]) };
	struct kio_wrong wrong;
	size_t bytes = fread(data, 1, sizeof(data), stdin);

	if (kio_pattern_good(&p, data, (u32)bytes, number(w[2]), &wrong)) {
		puts("good");
		return 0;
	}
	printf("%llu %llu %llu\n", (unsigned long long)wrong.at,
	       (unsigned long long)wrong.expected, (unsigned long long)wrong.got);
	return 1;
}

int main(int argc, char **argv)
{
	if (argc == 14 && !strcmp(argv[1], "steps"))
		return steps(argv + 2);
	if (argc == 6 && !strcmp(argv[1], "pattern"))
		return pattern(argv + 2);
	if (argc == 5 && !strcmp(argv[1], "check"))
		return check(argv + 2);
	if (argc > 2 && !strcmp(argv[1], "index")) {
		for (argv += 2; *argv; argv++)
			printf("%u\n", kio_hist_index(number(*argv)));
		return 0;
	}
	fprintf(stderr, "usage: vectors steps|index|pattern|check ...\n");
	return 2;
}
