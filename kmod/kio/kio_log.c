// SPDX-License-Identifier: GPL-2.0
/*
 * Results as lines of the kernel log, for programs that look for them there.
 * In: a session whose run is over. Out: a line per thread and a summary.
 *
 * Latencies are averages in us: inside submit, after it, and their sum. MB are
 * 10^6 bytes. The summary has totals; with legacy_summary its iops are the mean
 * of the threads divided by their number and its MB/s the mean.
 */
#include <linux/math64.h>

#include "kio.h"

struct kio_line {
	u64 completed;
	u64 slat_ns;	/* sums */
	u64 clat_ns;
	u64 iops;
	u64 kb;		/* 1000 bytes per s */
	u64 runtime_us;
};

static void kio_line_of(const struct kio_job *job, struct kio_line *line)
{
	u64 bytes = 0;
	int dir;

	memset(line, 0, sizeof(*line));
	for (dir = 0; dir < KIO_DIRS; dir++) {
		const struct kio_counts *counts = &job->counts[dir];

		line->completed += counts->ios;
		bytes += counts->bytes;
		line->slat_ns += counts->sums[KIO_KIND_SLAT].sum_ns;
		line->clat_ns += counts->sums[KIO_KIND_CLAT].sum_ns;
	}
	line->runtime_us = max_t(u64, div_u64(job->ended - job->began, NSEC_PER_USEC), 1);
	line->iops = div64_u64(line->completed * USEC_PER_SEC, line->runtime_us);
	line->kb = div64_u64(bytes * 1000, line->runtime_us);
}

static void kio_print(const char *who, const struct kio_line *line)
{
	u64 n = max_t(u64, line->completed, 1);
	u64 slat = div64_u64(line->slat_ns, n), clat = div64_u64(line->clat_ns, n);
	u64 lat = slat + clat;

	pr_warn("%s: completed=%llu lat=%llu.%03llu(%llu.%03llu+%llu.%03llu) iops=%llu MB/s=%llu.%03llu\n",
		who, line->completed, lat / 1000, lat % 1000, slat / 1000, slat % 1000,
		clat / 1000, clat % 1000, line->iops, line->kb / 1000, line->kb % 1000);
}

void kio_log_session(const struct kio_session *session)
{
	struct kio_line total = { 0 }, line;
	char who[24];
	u32 i;

	if (session->error)
		return;
	for (i = 0; i < session->nr_jobs; i++) {
		kio_line_of(session->jobs[i], &line);
		snprintf(who, sizeof(who), "thread[%u]", i);
		kio_print(who, &line);
		total.completed += line.completed;
		total.slat_ns += line.slat_ns;
		total.clat_ns += line.clat_ns;
		total.iops += line.iops;
		total.kb += line.kb;
		total.runtime_us += line.runtime_us;
	}
	if (kio_legacy_summary && session->nr_jobs) {
		total.iops = div64_u64(total.completed * USEC_PER_SEC,
				       session->nr_jobs * total.runtime_us);
		total.kb = div_u64(total.kb, session->nr_jobs);
	}
	kio_print("summary", &total);
}
