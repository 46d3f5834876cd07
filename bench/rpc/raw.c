/* What the machine gives a remote procedure call when nothing but the call is there: no sums, no
 * histogram, no sessions. Two processes, each on a CPU of its own; the parent calls, the child
 * answers.
 *
 *     raw tcp  CALLER ANSWERER IN_FLIGHT SECONDS [REPLY_BYTES [block]]
 *     raw ring CALLER ANSWERER IN_FLIGHT SECONDS
 *     raw copy CALLER ANSWERER IN_FLIGHT SECONDS
 *
 * tcp: frames of 24 bytes over loopback, one read and one write for all that is there; busy polling
 * unless told to block; replies with so many bytes behind the frame, from one of IN_FLIGHT buffers to one of
 * as many others, as the calls of a program have them that are under way together. ring: 64-byte slots in shared
 * memory, one ring each way. copy: 1 MiB from one of IN_FLIGHT buffers to one of as many others, by
 * the caller alone. Out: calls (copies) per second.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FRAME = 24, BATCH = 64 << 10, SLOTS = 256, WORDS = 8, MIB = 1 << 20 };

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        fail("sched_setaffinity");
    }
}

static inline void pause_a_little(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Reads what is there; 0 where nothing is, and never where the socket blocks. */
static size_t read_some(int socket, char *into, size_t room) {
    ssize_t got = read(socket, into, room);
    if (got > 0) {
        return (size_t)got;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    if (got == 0) {
        exit(0);
    }
    fail("read");
    return 0;
}

static void write_all(int socket, const char *from, size_t bytes) {
    while (bytes > 0) {
        ssize_t put = write(socket, from, bytes);
        if (put < 0 && errno != EAGAIN && errno != EINTR) {
            exit(0);
        }
        if (put > 0) {
            from += put;
            bytes -= (size_t)put;
        }
    }
}

static void answer_tcp(int socket, long in_flight, size_t reply) {
    char *in = malloc(BATCH), *out = calloc(1, (BATCH / FRAME + 1) * FRAME);
    /* Written, or all of it would be one page of zeros. */
    char *payloads = malloc((size_t)in_flight * reply + 1);
    memset(payloads, 1, (size_t)in_flight * reply + 1);
    size_t have = 0, next = 0;
    for (;;) {
        size_t got = read_some(socket, in + have, BATCH - have);
        have += got;
        size_t calls = have / FRAME;
        if (calls == 0) {
            continue;
        }
        if (reply == 0) {
            memcpy(out, in, calls * FRAME);
            write_all(socket, out, calls * FRAME);
        }
        for (size_t call = 0; reply > 0 && call < calls; call++) {
            write_all(socket, in + call * FRAME, FRAME);
            write_all(socket, payloads + next * reply, reply);
            next = (next + 1) % (size_t)in_flight;
        }
        memmove(in, in + calls * FRAME, have - calls * FRAME);
        have -= calls * FRAME;
    }
}

static double call_tcp(int socket, long in_flight, double seconds, size_t reply) {
    size_t whole = FRAME + reply, room = reply > 0 ? whole : BATCH, have = 0, next = 0;
    size_t buffers = reply > 0 ? (size_t)in_flight : 1;
    char *all = malloc(buffers * room), *in = all, *out = calloc((size_t)in_flight, FRAME);
    memset(all, 2, buffers * room);
    long out_there = 0, done = 0;
    double begun = now(), end = begun + seconds, ended = begun;
    while (ended < end) {
        if (out_there < in_flight) {
            write_all(socket, out, (size_t)(in_flight - out_there) * FRAME);
            out_there = in_flight;
        }
        have += read_some(socket, in + have, room - have);
        size_t calls = have / whole;
        if (calls > 0) {
            memmove(in, in + calls * whole, have - calls * whole);
            have -= calls * whole;
            next = (next + 1) % buffers;
            in = all + next * room;
            out_there -= (long)calls;
            done += (long)calls;
            ended = now();
        }
    }
    return (double)done / (ended - begun);
}

static void connected(int ends[2], int blocks) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &length) != 0) {
        fail("listen");
    }
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(ends[0], (struct sockaddr *)&at, sizeof at) != 0) {
        fail("connect");
    }
    ends[1] = accept(listener, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (!blocks) {
            fcntl(ends[i], F_SETFL, O_NONBLOCK);
        }
    }
    close(listener);
}

/* How far the writer and the reader are, each on lines of its own. */
struct ring {
    _Alignas(128) _Atomic uint32_t written;
    _Alignas(128) _Atomic uint32_t taken;
    _Alignas(128) uint64_t slots[SLOTS][WORDS];
};

static void answer_ring(struct ring *from, struct ring *to) {
    uint32_t done = 0, seen = 0, free_to = SLOTS;
    for (;;) {
        seen = atomic_load_explicit(&from->written, memory_order_acquire);
        if (seen == done) {
            pause_a_little();
            continue;
        }
        for (; done != seen; done++) {
            while (done == free_to) {
                free_to = atomic_load_explicit(&to->taken, memory_order_acquire) + SLOTS;
            }
            memcpy(to->slots[done % SLOTS], from->slots[done % SLOTS], sizeof to->slots[0]);
        }
        atomic_store_explicit(&from->taken, done, memory_order_release);
        atomic_store_explicit(&to->written, done, memory_order_release);
    }
}

static double call_ring(struct ring *to, struct ring *from, uint32_t in_flight, double seconds) {
    uint32_t sent = 0, done = 0, looks = 0;
    uint64_t all = 0, sum = 0;
    double begun = now(), end = begun + seconds, ended = begun;
    while (ended < end) {
        for (; sent - done < in_flight; sent++) {
            for (int word = 0; word < WORDS; word++) {
                to->slots[sent % SLOTS][word] = sent;
            }
        }
        atomic_store_explicit(&to->written, sent, memory_order_release);
        uint32_t seen = atomic_load_explicit(&from->written, memory_order_acquire);
        if (seen == done) {
            pause_a_little();
        }
        for (; done != seen; done++, all++) {
            for (int word = 0; word < WORDS; word++) {
                sum += from->slots[done % SLOTS][word];
            }
        }
        atomic_store_explicit(&from->taken, done, memory_order_release);
        if (++looks % 1024 == 0) {
            ended = now();
        }
    }
    /* So that the words are read. */
    fprintf(stderr, sum == 1 ? "\n" : "");
    return (double)all / (ended - begun);
}

static double copy(long in_flight, double seconds) {
    size_t bytes = (size_t)in_flight * MIB;
    char *from = aligned_alloc(2 * MIB, bytes + 2 * MIB), *to = aligned_alloc(2 * MIB, bytes + 2 * MIB);
    memset(from, 1, bytes);
    memset(to, 2, bytes);
    long done = 0;
    double begun = now(), end = begun + seconds, ended = begun;
    while (ended < end) {
        size_t at = (size_t)(done % in_flight) * MIB;
        memcpy(to + at, from + at, MIB);
        done++;
        ended = now();
    }
    return (double)done / (ended - begun);
}

int main(int count, char **words) {
    if (count < 6) {
        fprintf(stderr, "raw tcp|ring|copy CALLER ANSWERER IN_FLIGHT SECONDS [REPLY [block]]\n");
        return 2;
    }
    int caller = atoi(words[2]), answerer = atoi(words[3]);
    long in_flight = atol(words[4]);
    double seconds = atof(words[5]), rate;
    size_t reply = count > 6 ? (size_t)atol(words[6]) : 0;
    int blocks = count > 7, ends[2] = {-1, -1};
    if (in_flight < 1 || in_flight > SLOTS) {
        fprintf(stderr, "in flight: 1 to %d\n", SLOTS);
        return 2;
    }
    if (strcmp(words[1], "copy") == 0) {
        pin(caller);
        printf("%.1f\n", copy(in_flight, seconds));
        return 0;
    }
    int is_tcp = strcmp(words[1], "tcp") == 0;
    struct ring *rings = mmap(NULL, 2 * sizeof *rings, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (is_tcp) {
        connected(ends, blocks);
    }
    pid_t child = fork();
    if (child == 0) {
        pin(answerer);
        if (is_tcp) {
            close(ends[0]);
            answer_tcp(ends[1], in_flight, reply);
        }
        answer_ring(&rings[0], &rings[1]);
    }
    pin(caller);
    rate = is_tcp ? call_tcp(ends[0], in_flight, seconds, reply)
                  : call_ring(&rings[0], &rings[1], (uint32_t)in_flight, seconds);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    printf("%.1f\n", rate);
    return 0;
}
