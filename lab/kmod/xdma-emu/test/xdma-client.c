// SPDX-License-Identifier: GPL-2.0
/*
 * Test client of the nodes.
 *
 *	xdma-client pread NODE ADDRESS BYTES	to standard output
 *	xdma-client pwrite NODE ADDRESS		from standard input, in one call
 *	xdma-client fsync NODE [ADDRESS BYTES]	a posted write, and fsync until it is 0
 *	xdma-client interrupted NODE		a read that a signal ends
 *	xdma-client facts CARD ALIGN		what drivers do that shells cannot see
 *
 * It prints the error of a call that fails, such as `5`, and ends with 1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../xemu_uapi.h"

#define PAGE	4096l
#define MIB	(1l << 20)

static int failures;

static int node(const char *path)
{
	int fd = open(path, O_RDWR);

	if (fd < 0) {
		perror(path);
		exit(2);
	}
	return fd;
}

static unsigned char *pages(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	return at;
}

/* `got` is a result of a call: a negative `want` is the errno it has to fail with. */
static void expect(const char *what, long got, long want)
{
	long have = got < 0 ? -errno : got;

	if (have == want)
		return;
	printf("%s: %ld, not %ld\n", what, have, want);
	failures = 1;
}

static int say(long got)
{
	if (got >= 0)
		return 0;
	printf("%d\n", errno);
	return 1;
}

static int do_pread(const char *path, off_t at, size_t bytes)
{
	unsigned char *buffer = pages(bytes);
	ssize_t got = pread(node(path), buffer, bytes, at);

	if (got > 0)
		fwrite(buffer, 1, got, stdout);
	return say(got);
}

static int do_pwrite(const char *path, off_t at)
{
	unsigned char *buffer = pages(16 * MIB);
	size_t bytes = fread(buffer, 1, 16 * MIB, stdin);

	return say(pwrite(node(path), buffer, bytes, at));
}

static int do_fsync(const char *path, off_t at, size_t bytes)
{
	int fd = node(path);

	if (bytes && pwrite(fd, pages(bytes), bytes, at) != (ssize_t)bytes)
		return say(-1);
	if (fsync(fd) == 0)
		return 0;
	say(-1);
	/* What failed is said once: the second one is good. */
	if (bytes && fsync(fd) == 0)
		return 0;
	return bytes ? say(-1) : 1;
}

static void on_alarm(int signal)
{
	(void)signal;
}

static int do_interrupted(const char *path)
{
	struct itimerval soon = { .it_value = { .tv_usec = 1000 }, .it_interval = { .tv_usec = 1000 } };
	struct sigaction action = { .sa_handler = on_alarm };
	int fd = node(path);

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	return say(pread(fd, pages(PAGE), PAGE, 0));
}

static void seeks(int fd)
{
	expect("SEEK_SET", lseek(fd, 5, SEEK_SET), 5);
	expect("SEEK_CUR", lseek(fd, 3, SEEK_CUR), 8);
	expect("SEEK_END", lseek(fd, -1, SEEK_END), 4294967294l);
	expect("SEEK_SET below 0", lseek(fd, -1, SEEK_SET), -EINVAL);
	expect("SEEK_DATA", lseek(fd, 0, SEEK_DATA), -EINVAL);
	expect("SEEK_SET", lseek(fd, 0, SEEK_SET), 0);
}

static void calls(int fd, int align)
{
	int value = 7;

	expect("ALIGN_GET", ioctl(fd, XEMU_ALIGN_GET, &value), 0);
	expect("alignment", value, align);
	expect("PERF_START", ioctl(fd, XEMU_PERF_START, &value), -EOPNOTSUPP);
	expect("PERF_STOP", ioctl(fd, XEMU_PERF_STOP, &value), -EOPNOTSUPP);
	expect("PERF_GET", ioctl(fd, XEMU_PERF_GET, &value), -EOPNOTSUPP);
	expect("APERTURE_R", ioctl(fd, XEMU_APERTURE_R, &value), -EOPNOTSUPP);
	expect("APERTURE_W", ioctl(fd, XEMU_APERTURE_W, &value), -EOPNOTSUPP);
	expect("unknown ioctl", ioctl(fd, _IO('q', 99)), -EINVAL);
	expect("mmap", mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0, -ENODEV);
}

static void buffers(int h2c, int c2h)
{
	unsigned char *buffer = pages(4 * PAGE);

	expect("empty write", write(h2c, buffer, 0), -EINVAL);
	expect("empty write within a page", write(h2c, buffer + 1, 0), 0);
	mprotect(buffer, PAGE, PROT_READ);
	expect("read-only source", pwrite(h2c, buffer, PAGE, 0), -EFAULT);
	expect("read-only target", pread(c2h, buffer, PAGE, 0), -EFAULT);
	munmap(buffer + PAGE, PAGE);
	expect("no memory", pwrite(h2c, buffer + PAGE, PAGE, 0), -EFAULT);
	mprotect(buffer, PAGE, PROT_READ | PROT_WRITE);
	expect("half no memory", pwrite(h2c, buffer, 2 * PAGE, 0), -EFAULT);
}

/* A vector, an address that is not that of a page, and a request of several cuts. */
static void moves(int h2c, int c2h, int align)
{
	unsigned char *from = pages(24 * MIB), *to = pages(24 * MIB);
	struct iovec out[2] = { { from, 8192 }, { from + 12288, 4096 } };
	struct iovec in[2] = { { to + 65536, 4096 }, { to, 8192 } };
	long i;

	for (i = 0; i < 24 * MIB; i += 8)
		*(long *)(from + i) = i * 0x9e3779b97f4a7c15ul;
	expect("pwritev", pwritev(h2c, out, 2, MIB), 12288);
	expect("preadv", preadv(c2h, in, 2, MIB), 12288);
	expect("first", memcmp(to + 65536, from, 4096), 0);
	expect("second", memcmp(to, from + 4096, 4096), 0);
	expect("third", memcmp(to + 4096, from + 12288, 4096), 0);
	expect("odd address", pwrite(h2c, from + 64, 9999 * 8, 2 * MIB + 64), 9999 * 8);
	expect("odd address", pread(c2h, to + 64, 9999 * 8, 2 * MIB + 64), 9999 * 8);
	expect("odd data", memcmp(to + 64, from + 64, 9999 * 8), 0);
	expect("other address", pwrite(h2c, from + 1, 4096, 0), align > 1 ? -EINVAL : 4096);
	expect("20 MiB", pwrite(h2c, from, 20 * MIB, 0), 20 * MIB);
	expect("20 MiB", pread(c2h, to, 20 * MIB, 0), 20 * MIB);
	expect("cuts", memcmp(to, from, 20 * MIB), 0);
}

static void fixed(int h2c, int c2h, int align)
{
	unsigned char *buffer = pages(PAGE);
	int value = 1;
	long i;

	for (i = 0; i < PAGE; i++)
		buffer[i] = i / align;
	expect("ADDRMODE_SET", ioctl(h2c, XEMU_ADDRMODE_SET, &value), 0);
	expect("fixed write", pwrite(h2c, buffer, 8 * align, PAGE), 8 * align);
	expect("fixed, odd length", pwrite(h2c, buffer, 8 * align + 1, PAGE),
	       align > 1 ? -EINVAL : 9);
	value = 0;
	expect("ADDRMODE_GET", ioctl(h2c, XEMU_ADDRMODE_GET, &value), 0);
	expect("mode", value, 1);
	value = 0;
	ioctl(h2c, XEMU_ADDRMODE_SET, &value);
	expect("read", pread(c2h, buffer, align, PAGE), align);
	expect("last beat", buffer[0], align > 1 ? 7 : 8);
}

static void ends(int h2c, int c2h, off_t bytes)
{
	unsigned char *buffer = pages(12 * MIB);

	expect("beyond", pwrite(h2c, buffer, PAGE, bytes), -EIO);
	expect("across", pread(c2h, buffer, 2 * PAGE, bytes - PAGE), -EIO);
	expect("last page", pwrite(h2c, buffer, PAGE, bytes - PAGE), PAGE);
	expect("across, second cut", pread(c2h, buffer, 12 * MIB, bytes - 8 * MIB), 8 * MIB);
}

static int facts(const char *card, const char *word)
{
	char path[64];
	int h2c, c2h, align = atoi(word);

	snprintf(path, sizeof(path), "/dev/xdma%s_h2c_0", card);
	h2c = node(path);
	snprintf(path, sizeof(path), "/dev/xdma%s_c2h_0", card);
	c2h = node(path);
	seeks(h2c);
	calls(h2c, align);
	buffers(h2c, c2h);
	moves(h2c, c2h, align);
	fixed(h2c, c2h, align);
	ends(h2c, c2h, 64l << 30);
	return failures;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 2 ? argv[1] : "";
	long first = argc > 3 ? strtol(argv[3], NULL, 0) : 0;
	long second = argc > 4 ? strtol(argv[4], NULL, 0) : 0;

	if (!strcmp(verb, "pread") && argc == 5)
		return do_pread(argv[2], first, second);
	if (!strcmp(verb, "pwrite") && argc == 4)
		return do_pwrite(argv[2], first);
	if (!strcmp(verb, "fsync"))
		return do_fsync(argv[2], first, second);
	if (!strcmp(verb, "interrupted"))
		return do_interrupted(argv[2]);
	if (!strcmp(verb, "facts") && argc == 4)
		return facts(argv[2], argv[3]);
	fprintf(stderr, "usage: see the source\n");
	return 2;
}
