// SPDX-License-Identifier: GPL-2.0
/*
 * Runs jobs over /dev/kio and prints what came of them as NAME=VALUE, for the
 * scripts beside this file:
 *
 *	kio-client info
 *	kio-client run FIELD=VALUE... [-- FIELD=VALUE...]
 *	kio-client abi
 *
 * Each `--` begins another job, which starts as the one before it. A field is
 * one of kio_add_job, or device=PATH, runtime_ms, ramp_ms, interval_ms,
 * error_limit, stop_ms (a stop in the run), show=trace|series, again=N (the
 * whole once more, in the same session). Exit code: 0; 1 the run had errors; 2
 * refused, with the call, the errno and the message; 3 no /dev/kio.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "../kio_uapi.h"

#define HEAD(type)	{ .size = sizeof(struct type), .version = KIO_ABI_VERSION }
#define LEN(array)	(sizeof(array) / sizeof((array)[0]))
#define JOBS		64

struct plan {
	struct kio_add_job job;
	const char *device;
};

struct field {
	const char *name;
	size_t at;
	size_t size;
};

#define FIELD(name)	{ #name, offsetof(struct kio_add_job, name), \
			  sizeof(((struct kio_add_job *)0)->name) }

static const struct field fields[] = {
	FIELD(block_size), FIELD(queue_depth), FIELD(offset_random), FIELD(read_mix_percent),
	FIELD(offset_stride), FIELD(offset_low), FIELD(offset_high), FIELD(read_burst),
	FIELD(write_burst), FIELD(burst_finish), FIELD(burst_delay), FIELD(read_sleep_usec),
	FIELD(write_sleep_usec), FIELD(cpu), FIELD(node), FIELD(op), FIELD(complete),
	FIELD(batch), FIELD(data), FIELD(flags), FIELD(seed), FIELD(stream), FIELD(trace),
	FIELD(align), FIELD(verify_seed), FIELD(generation), FIELD(limit_ios),
	FIELD(limit_bytes),
};

static struct {
	unsigned long long runtime_ms, ramp_ms, interval_ms, error_limit, stop_ms, again;
	int show_trace, show_series;
} run = { .runtime_ms = 1000, .error_limit = 1, .again = 1 };

static struct plan plans[JOBS];
static unsigned int nr_jobs = 1;
static int fd;

static int refused(const char *call, const char *message)
{
	printf("refused=%s errno=%s message=%s\n", call, strerrorname_np(errno), message);
	return 2;
}

static int set_field(struct plan *plan, const char *name, const char *value)
{
	unsigned long long number = strtoull(value, NULL, 0);
	size_t i;

	for (i = 0; i < LEN(fields); i++) {
		if (strcmp(fields[i].name, name))
			continue;
		memcpy((char *)&plan->job + fields[i].at, &number, fields[i].size);
		return 1;
	}
	return 0;
}

static int set_run(const char *name, const char *value)
{
	unsigned long long number = strtoull(value, NULL, 0);

	if (!strcmp(name, "runtime_ms"))
		run.runtime_ms = number;
	else if (!strcmp(name, "ramp_ms"))
		run.ramp_ms = number;
	else if (!strcmp(name, "interval_ms"))
		run.interval_ms = number;
	else if (!strcmp(name, "error_limit"))
		run.error_limit = number;
	else if (!strcmp(name, "stop_ms"))
		run.stop_ms = number;
	else if (!strcmp(name, "again"))
		run.again = number;
	else if (!strcmp(name, "show") && !strcmp(value, "trace"))
		run.show_trace = 1;
	else if (!strcmp(name, "show") && !strcmp(value, "series"))
		run.show_series = 1;
	else
		return 0;
	return 1;
}

static int take_words(char **words)
{
	for (; *words; words++) {
		char *value = strchr(*words, '=');

		if (!strcmp(*words, "--")) {
			if (nr_jobs == JOBS)
				return 0;
			plans[nr_jobs] = plans[nr_jobs - 1];
			plans[nr_jobs].job.stream++;
			nr_jobs++;
			continue;
		}
		if (!value)
			return 0;
		*value++ = '\0';
		if (!strcmp(*words, "device"))
			plans[nr_jobs - 1].device = value;
		else if (!set_run(*words, value) &&
			 !set_field(&plans[nr_jobs - 1], *words, value))
			return 0;
	}
	return 1;
}

static int writes(const struct kio_add_job *job)
{
	return job->op == KIO_OP_MIX ? job->read_mix_percent < 100 : job->op != KIO_OP_READ;
}

/* Adds each device once, for writing if any job on it writes. */
static int add_device(unsigned int j)
{
	struct kio_add_dev dev = HEAD(kio_add_dev);
	unsigned int i;

	for (i = 0; i < j; i++) {
		if (!strcmp(plans[i].device, plans[j].device)) {
			plans[j].job.device = plans[i].job.device;
			return 0;
		}
	}
	snprintf(dev.path, sizeof(dev.path), "%s", plans[j].device);
	for (i = j; i < nr_jobs; i++)
		if (!strcmp(plans[i].device, plans[j].device) && writes(&plans[i].job))
			dev.flags |= KIO_DEV_WRITE | KIO_DEV_EXCL;
	if (ioctl(fd, KIO_ADD_DEV, &dev))
		return refused("add_dev", dev.message);
	plans[j].job.device = dev.index;
	printf("device%u bytes=%llu logical_block=%u poll=%u tags=%u\n", dev.index,
	       (unsigned long long)dev.bytes, dev.logical_block, dev.poll, dev.tags);
	return 0;
}

static int add_job(unsigned int j)
{
	struct kio_add_job job = plans[j].job;
	int rc = add_device(j);

	if (rc)
		return rc;
	job.device = plans[j].job.device;
	if (ioctl(fd, KIO_ADD_JOB, &job)) {
		printf("field=%u ", job.err_field);
		return refused("add_job", job.message);
	}
	printf("added%u notes=%u high=%llu\n", job.job, job.notes, (unsigned long long)job.high_used);
	return 0;
}

static int wait_end(void)
{
	struct kio_wait look = HEAD(kio_wait);
	struct kio_stop stop = HEAD(kio_stop);
	struct pollfd end = { .fd = fd, .events = POLLIN };

	if (run.stop_ms) {
		usleep(run.stop_ms * 1000);
		if (ioctl(fd, KIO_STOP, &stop))
			return refused("stop", "");
		if (stop.state != KIO_STATE_DONE || stop.stuck) {
			printf("refused=stop state=%u stuck=%u\n", stop.state, stop.stuck);
			return 2;
		}
	}
	if (poll(&end, 1, -1) != 1)
		return refused("poll", "");
	look.timeout_ns = ~0ull;
	if (ioctl(fd, KIO_WAIT, &look))
		return refused("wait", "");
	printf("state=%u error=%d\n", look.state, look.error);
	return look.error ? 1 : 0;
}

/* The buckets of a histogram must hold each I/O once. */
static unsigned long long hist_sum(unsigned int j, unsigned int dir, unsigned int kind)
{
	static __u64 buckets[KIO_HIST_BUCKETS];
	struct kio_hist hist = HEAD(kio_hist);
	unsigned long long sum = 0;
	size_t i;

	hist.job = j;
	hist.kind = kind;
	hist.dir = dir;
	hist.bytes = sizeof(buckets);
	hist.buckets = (__u64)(uintptr_t)buckets;
	if (ioctl(fd, KIO_HIST, &hist))
		return ~0ull;
	for (i = 0; i < KIO_HIST_BUCKETS; i++)
		sum += buckets[i];
	return sum;
}

static void show_dir(unsigned int j, unsigned int d, const struct kio_dir *dir)
{
	static const char *const names[] = { "slat", "clat", "lat" };
	unsigned int kind;

	printf("job%u.%s ios=%llu bytes=%llu errors=%llu", j, d ? "write" : "read",
	       (unsigned long long)dir->ios, (unsigned long long)dir->bytes,
	       (unsigned long long)dir->errors);
	for (kind = 0; kind < KIO_KINDS; kind++)
		printf(" %s_sum=%llu %s_min=%llu %s_max=%llu %s_hist=%llu", names[kind],
		       (unsigned long long)dir->sums[kind].sum_ns, names[kind],
		       (unsigned long long)dir->sums[kind].min_ns, names[kind],
		       (unsigned long long)dir->sums[kind].max_ns, names[kind],
		       hist_sum(j, d, kind));
	putchar('\n');
}

static void show_records(unsigned int j)
{
	static struct kio_step steps[KIO_MAX_TRACE];
	static struct kio_interval intervals[KIO_MAX_SERIES];
	static struct kio_err errs[KIO_MAX_ERRS];
	struct kio_records get = HEAD(kio_records);
	unsigned int i;

	get.job = j;
	get.count = KIO_MAX_ERRS;
	get.records = (__u64)(uintptr_t)errs;
	if (!ioctl(fd, KIO_ERRS, &get))
		for (i = 0; i < get.count; i++)
			printf("err offset=%llu len=%u op=%u code=%u errno=%d at=%llu expected=%llx got=%llx\n",
			       (unsigned long long)errs[i].offset, errs[i].len, errs[i].op,
			       errs[i].code, errs[i].error, (unsigned long long)errs[i].at,
			       (unsigned long long)errs[i].expected,
			       (unsigned long long)errs[i].got);
	get.count = KIO_MAX_TRACE;
	get.records = (__u64)(uintptr_t)steps;
	if (run.show_trace && !ioctl(fd, KIO_TRACE, &get))
		for (i = 0; i < get.count; i++)
			printf("%u %llu\n", steps[i].op == KIO_OP_READ ? 0 : 1,
			       (unsigned long long)steps[i].offset);
	get.count = KIO_MAX_SERIES;
	get.records = (__u64)(uintptr_t)intervals;
	if (run.show_series && !ioctl(fd, KIO_SERIES, &get))
		for (i = 0; i < get.count; i++)
			printf("interval t=%llu ios=%llu\n", (unsigned long long)intervals[i].t_ns,
			       (unsigned long long)(intervals[i].ios[0] + intervals[i].ios[1]));
}

static int show_job(unsigned int j)
{
	struct kio_stats stats = HEAD(kio_stats);
	unsigned int i;

	stats.job = j;
	if (ioctl(fd, KIO_STATS, &stats))
		return refused("stats", "");
	for (i = 0; i < KIO_DIRS; i++)
		show_dir(j, i, &stats.dirs[i]);
	printf("job%u error=%d runtime=%llu cpu_ns=%llu cpu=%u drain=%llu idle=%llu pause=%llu verify=%llu",
	       j, stats.error, (unsigned long long)stats.runtime_ns,
	       (unsigned long long)stats.cpu_ns, stats.cpu, (unsigned long long)stats.drain_ns,
	       (unsigned long long)stats.idle_ns, (unsigned long long)stats.pause_ns,
	       (unsigned long long)stats.verify_ns);
	printf(" wakeups=%llu polls=%llu polls_empty=%llu again=%llu issued=%llu bad_blocks=%llu inflight=%u\n",
	       (unsigned long long)stats.wakeups, (unsigned long long)stats.polls,
	       (unsigned long long)stats.polls_empty, (unsigned long long)stats.again,
	       (unsigned long long)stats.issued, (unsigned long long)stats.bad_blocks,
	       stats.inflight);
	show_records(j);
	return 0;
}

static int run_jobs(void)
{
	struct kio_start start = HEAD(kio_start);
	unsigned int j;
	int rc = 0;

	for (j = 0; j < nr_jobs && !rc; j++)
		rc = add_job(j);
	if (rc)
		return rc;
	start.runtime_ns = run.runtime_ms * 1000000;
	start.ramp_ns = run.ramp_ms * 1000000;
	start.interval_ns = run.interval_ms * 1000000;
	start.error_limit = run.error_limit;
	if (ioctl(fd, KIO_START, &start))
		return refused("start", start.message);
	rc = wait_end();
	if (rc == 2)
		return rc;
	for (j = 0; j < nr_jobs; j++)
		if (show_job(j))
			return 2;
	if (ioctl(fd, KIO_RESET))
		return refused("reset", "");
	return rc;
}

static int show_info(void)
{
	struct kio_info info = HEAD(kio_info);

	if (ioctl(fd, KIO_INFO, &info))
		return refused("info", "");
	printf("version=%s release=%s features=%llx clock_ps=%u used_mem=%llu state=%u\n",
	       info.module_version, info.release, (unsigned long long)info.features, info.clock_ps,
	       (unsigned long long)info.used_mem_bytes, info.state);
	return 0;
}

static int expect(const char *what, int rc, int error)
{
	if ((error == 0 && rc == 0) || (error && rc == -1 && errno == error))
		return 0;
	printf("wrong=%s rc=%d errno=%s\n", what, rc, strerrorname_np(errno));
	return 1;
}

/* What every structure obeys. */
static int check_abi(void)
{
	struct {
		struct kio_info info;
		__u64 more;
	} longer = { .info = { .size = sizeof(longer), .version = KIO_ABI_VERSION } };
	struct kio_info info = { .size = 16, .version = KIO_ABI_VERSION, .page_size = 77 };
	struct kio_stats stats = HEAD(kio_stats);
	struct kio_start start = HEAD(kio_start);
	int wrong = 0;

	wrong |= expect("longer, zero", ioctl(fd, KIO_INFO, &longer), 0);
	longer.more = 1;
	wrong |= expect("longer, not zero", ioctl(fd, KIO_INFO, &longer), E2BIG);
	wrong |= expect("shorter", ioctl(fd, KIO_INFO, &info), 0);
	wrong |= expect("shorter keeps the rest", info.page_size == 77 ? 0 : -1, 0);
	info.size = 4;
	wrong |= expect("no head", ioctl(fd, KIO_INFO, &info), EINVAL);
	info.size = sizeof(info);
	info.version = 99;
	wrong |= expect("version", ioctl(fd, KIO_INFO, &info), EINVAL);
	wrong |= expect("null", ioctl(fd, KIO_INFO, NULL), EFAULT);
	wrong |= expect("number", ioctl(fd, _IO(KIO_IOC_TYPE, 0x7f)), ENOTTY);
	wrong |= expect("type", ioctl(fd, _IO('k', 1)), ENOTTY);
	wrong |= expect("stats while idle", ioctl(fd, KIO_STATS, &stats), EBUSY);
	wrong |= expect("start without jobs", ioctl(fd, KIO_START, &start), ENOENT);
	wrong |= expect("reset while idle", ioctl(fd, KIO_RESET), 0);
	puts(wrong ? "abi=wrong" : "abi=good");
	return wrong;
}

int main(int argc, char **argv)
{
	int rc;

	/* A shell that starts this in the background has it ignored. */
	signal(SIGINT, SIG_DFL);
	plans[0].job = (struct kio_add_job) {
		.size = sizeof(struct kio_add_job), .version = KIO_ABI_VERSION,
		.block_size = 4096, .queue_depth = 1, .read_mix_percent = 100,
		.offset_stride = 4096, .read_burst = 1, .write_burst = 1, .cpu = -1, .node = -1,
		.seed = 0x5EED, .data = KIO_DATA_RANDOM,
	};
	plans[0].device = "/dev/nullb0";
	if (argc < 2 || !take_words(argv + 2)) {
		fprintf(stderr, "usage: kio-client info|abi|run FIELD=VALUE... [-- ...]\n");
		return 2;
	}
	fd = open(KIO_DEVICE, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		printf("refused=open errno=%s\n", strerrorname_np(errno));
		return 3;
	}
	if (!strcmp(argv[1], "info"))
		return show_info();
	if (!strcmp(argv[1], "abi"))
		return check_abi();
	for (rc = 0; run.again && !rc; run.again--)
		rc = run_jobs();
	return rc;
}
