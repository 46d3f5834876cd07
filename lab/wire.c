/* A wire between two network namespaces, for kernels of all kinds: it is late, slow or lossy, and
 * it can be cut.
 *
 * wire HOST HOST DEVICE [--rate RATE] [--delay TIME] [--loss PERCENT] [--cut-after SECONDS]
 *
 * Each HOST, a namespace by the name that `ip netns` gives it, gets a network device DEVICE, whose
 * other end is held here (TAP). What comes out of one goes into the other. Once both are there a
 * line is printed. Each way a frame waits for its turn on the wire (rate), then travels (delay);
 * frames travel side by side, so that a late wire is no slower. A frame whose turn is more than a
 * second away is dropped, as by a switch whose memory is full. Exit code: 2 for a wrong word, 3
 * for what this machine lacks.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum {
    SLOTS = 1 << 16, /* Frames on their way, each way. */
    LONGEST = 1 << 16,
    BATCH = 64, /* Frames taken in before others are let out. */
};

#define SECOND 1000000000.0

struct frame {
    int64_t due; /* When it arrives, in ns. */
    size_t bytes;
    unsigned char data[];
};

struct way {
    int from, to;
    int64_t idle; /* When the last frame has left, in ns. */
    struct frame *flying[SLOTS];
    unsigned first, count;
};

struct wire {
    double bits_per_ns; /* 0: no limit. */
    int64_t delay, cut; /* In ns. */
    double loss;
};

static void fail(int code, const char *what, const char *why) {
    fprintf(stderr, "wire: %s: %s\n", what, why);
    exit(code);
}

/* A number with one of these units. A number alone has the first one, unless it is refused: then
 * with the unit that was likely meant. */
static double number(const char *flag, const char *text, const char *const units[],
                     const double factors[], const char *likely) {
    char *unit;
    double value = strtod(text, &unit);
    if (likely != NULL && unit != text && value >= 0 && *unit == '\0') {
        fprintf(stderr, "wire: %s %s: it needs a unit, such as %s%s\n", flag, text, text, likely);
        exit(2);
    }
    for (int i = 0; unit != text && value >= 0 && units[i] != NULL; i++) {
        if (strcmp(unit, units[i]) == 0 || (i == 0 && *unit == '\0')) {
            return value * factors[i];
        }
    }
    fprintf(stderr, "wire: %s %s: expected a number with one of", flag, text);
    for (int i = 0; units[i] != NULL; i++) {
        fprintf(stderr, " %s", units[i]);
    }
    fprintf(stderr, "\n");
    exit(2);
}

static struct wire parse(char **words) {
    static const char *const rates[] = {"bit", "kbit", "mbit", "gbit", NULL};
    static const char *const times[] = {"s", "ms", "us", NULL};
    static const char *const percent[] = {"%", NULL};
    static const double bits[] = {1, 1e3, 1e6, 1e9}, seconds[] = {1, 1e-3, 1e-6}, share[] = {0.01};
    struct wire wire = {.cut = INT64_MAX};
    for (; *words != NULL; words += 2) {
        const char *flag = words[0], *value = words[1];
        if (value == NULL) {
            fail(2, flag, "needs a value");
        } else if (strcmp(flag, "--rate") == 0) {
            wire.bits_per_ns = number(flag, value, rates, bits, "mbit") / SECOND;
        } else if (strcmp(flag, "--delay") == 0) {
            wire.delay = (int64_t)(number(flag, value, times, seconds, "ms") * SECOND);
        } else if (strcmp(flag, "--loss") == 0) {
            wire.loss = number(flag, value, percent, share, NULL);
        } else if (strcmp(flag, "--cut-after") == 0) {
            wire.cut = (int64_t)(number(flag, value, times, seconds, NULL) * SECOND);
        } else {
            fail(2, flag, "no such option");
        }
    }
    if (wire.loss > 1) {
        fail(2, "--loss", "it is at most 100 percent");
    }
    return wire;
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * (int64_t)1000000000 + time.tv_nsec;
}

/* The held end of a new device in a namespace. */
static int device(const char *host, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "/run/netns/%s", host);
    int space = open(path, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET) != 0) {
        fail(3, path, strerror(errno));
    }
    close(space);
    int end = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (end < 0) {
        fail(3, "/dev/net/tun", strerror(errno));
    }
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    if (ioctl(end, TUNSETIFF, &request) != 0) {
        fail(3, "make a TAP device", strerror(errno));
    }
    return end;
}

/* Only packets of IP are lost: without its neighbours' addresses a host sends none for a second. */
static int is_lost(const struct frame *frame, double loss) {
    static const unsigned char ip[2] = {0x08, 0x00}, ip6[2] = {0x86, 0xdd};
    const unsigned char *kind = frame->data + 12;
    if (loss == 0 || frame->bytes < 14 || (memcmp(kind, ip, 2) && memcmp(kind, ip6, 2))) {
        return 0;
    }
    return drand48() < loss;
}

/* Takes in what a host has sent. */
static void take(struct way *way, const struct wire *wire) {
    static unsigned char frame[LONGEST];
    for (int i = 0; i < BATCH; i++) {
        ssize_t bytes = read(way->from, frame, sizeof frame);
        if (bytes < 0) {
            if (errno == EAGAIN || errno == EINTR) {
                return;
            }
            fail(1, "read a frame", strerror(errno));
        }
        int64_t arrived = now();
        struct frame *copy = malloc(sizeof *copy + (size_t)bytes);
        if (copy == NULL) {
            fail(1, "hold a frame", strerror(errno));
        }
        memcpy(copy->data, frame, (size_t)bytes);
        copy->bytes = (size_t)bytes;
        int64_t turn = way->idle > arrived ? way->idle : arrived;
        if (arrived >= wire->cut || turn - arrived > 1000000000 || way->count == SLOTS ||
            is_lost(copy, wire->loss)) {
            free(copy);
            continue;
        }
        if (wire->bits_per_ns > 0) {
            turn += (int64_t)((double)bytes * 8 / wire->bits_per_ns);
        }
        way->idle = turn;
        copy->due = turn + wire->delay;
        way->flying[(way->first + way->count++) % SLOTS] = copy;
    }
}

/* Lets out what has arrived. */
static void give(struct way *way) {
    int64_t time = now();
    while (way->count > 0 && way->flying[way->first]->due <= time) {
        struct frame *frame = way->flying[way->first];
        /* A device that is down or full drops it, as any does. */
        ssize_t written = write(way->to, frame->data, frame->bytes);
        (void)written;
        free(frame);
        way->first = (way->first + 1) % SLOTS;
        way->count--;
    }
}

int main(int count, char **words) {
    if (count < 4) {
        fail(2, "usage", "wire HOST HOST DEVICE [--rate RATE] [--delay TIME] ...");
    }
    struct wire wire = parse(words + 4);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    /* Wait as precisely as the clock can. */
    prctl(PR_SET_TIMERSLACK, 1UL);
    long seed;
    if (getrandom(&seed, sizeof seed, 0) == sizeof seed) {
        srand48(seed);
    }
    static struct way ways[2];
    ways[0].from = ways[1].to = device(words[1], words[3]);
    ways[1].from = ways[0].to = device(words[2], words[3]);
    if (wire.cut != INT64_MAX) {
        wire.cut += now();
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        int64_t next = INT64_MAX;
        for (int i = 0; i < 2; i++) {
            take(&ways[i], &wire);
            give(&ways[i]);
            if (ways[i].count > 0 && ways[i].flying[ways[i].first]->due < next) {
                next = ways[i].flying[ways[i].first]->due;
            }
        }
        int64_t wait = next - now();
        wait = wait > 0 ? wait : 0;
        struct timespec until = {wait / 1000000000, wait % 1000000000};
        struct pollfd ends[2] = {{.fd = ways[0].from, .events = POLLIN},
                                 {.fd = ways[1].from, .events = POLLIN}};
        ppoll(ends, 2, next == INT64_MAX ? NULL : &until, NULL);
    }
}
