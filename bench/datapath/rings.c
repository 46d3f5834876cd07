/* What two threads and two rings give packets of 64 bytes when nothing else is there: no headers, no
 * clock, no counters. The client writes every byte, the server reads every byte and sends the packet back.
 *
 *     rings CLIENT SERVER IN_FLIGHT BATCH SECONDS
 *
 * A ring has 4096 slots of buffer numbers, one writer and one reader; a batch is published at once. A side
 * that finds nothing 64 times gives its CPU away. Out: packets there and back per second.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SLOTS = 4096, BYTES = 64, PATIENCE = 64 };

struct ring {
    _Alignas(128) _Atomic uint32_t head;
    _Alignas(128) _Atomic uint32_t tail;
    _Alignas(128) uint32_t slots[SLOTS];
};

static struct ring there, back;
static unsigned char (*buffers)[BYTES];
static atomic_int is_over;
static uint32_t batch;

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
        perror("sched_setaffinity");
        exit(1);
    }
}

/* Takes at most a batch from a ring whose reader has come to `at`. */
static uint32_t take(struct ring *ring, uint32_t *at, uint32_t *into) {
    uint32_t there_are = atomic_load_explicit(&ring->tail, memory_order_acquire) - *at;
    uint32_t count = there_are < batch ? there_are : batch;
    for (uint32_t i = 0; i < count; i++) {
        into[i] = ring->slots[(*at + i) % SLOTS];
    }
    *at += count;
    atomic_store_explicit(&ring->head, *at, memory_order_release);
    return count;
}

/* There is always room: fewer buffers are on their way than a ring has slots. */
static void put(struct ring *ring, uint32_t *at, const uint32_t *from, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        ring->slots[(*at + i) % SLOTS] = from[i];
    }
    *at += count;
    atomic_store_explicit(&ring->tail, *at, memory_order_release);
}

static void rest(uint32_t found, uint32_t *empty) {
    *empty = found > 0 ? 0 : *empty + 1;
    if (*empty >= PATIENCE) {
        *empty = 0;
        sched_yield();
    }
}

static void *serve(void *cpu) {
    pin(*(int *)cpu);
    uint32_t *numbers = calloc(batch, sizeof *numbers), from = 0, to = 0, empty = 0;
    uint64_t sum = 0;
    while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
        uint32_t count = take(&there, &from, numbers);
        for (uint32_t i = 0; i < count; i++) {
            for (int byte = 0; byte < BYTES; byte++) {
                sum += buffers[numbers[i]][byte];
            }
        }
        put(&back, &to, numbers, count);
        rest(count, &empty);
    }
    return (void *)(uintptr_t)sum;
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: rings CLIENT SERVER IN_FLIGHT BATCH SECONDS\n");
        return 2;
    }
    int server_cpu = atoi(argv[2]);
    uint32_t in_flight = (uint32_t)atoi(argv[3]);
    batch = (uint32_t)atoi(argv[4]);
    double seconds = atof(argv[5]);
    if (batch == 0 || batch > SLOTS || in_flight < batch || in_flight >= SLOTS) {
        fprintf(stderr, "rings: a batch of 1 to IN_FLIGHT, below 4096\n");
        return 2;
    }
    buffers = aligned_alloc(BYTES, (size_t)in_flight * BYTES);
    uint32_t *free_ones = calloc(in_flight, sizeof *free_ones), have = in_flight;
    for (uint32_t i = 0; i < in_flight; i++) {
        free_ones[i] = i;
    }
    pthread_t server;
    if (pthread_create(&server, NULL, serve, &server_cpu) != 0) {
        perror("pthread_create");
        return 1;
    }
    pin(atoi(argv[1]));
    uint32_t to = 0, from = 0, empty = 0, pattern = 0;
    uint64_t done = 0;
    double begun = now(), ended = begun;
    while (ended < begun + seconds) {
        for (int round = 0; round < 1024; round++) {
            if (have >= batch) {
                have -= batch;
                for (uint32_t i = 0; i < batch; i++) {
                    memset(buffers[free_ones[have + i]], (int)pattern++, BYTES);
                }
                put(&there, &to, free_ones + have, batch);
            }
            uint32_t count = take(&back, &from, free_ones + have);
            have += count;
            done += count;
            rest(count, &empty);
        }
        ended = now();
    }
    atomic_store(&is_over, 1);
    pthread_join(server, NULL);
    printf("%.0f\n", (double)done / (ended - begun));
    return 0;
}
