/* What AF_XDP in copy mode gives packets of 64 bytes over a wire and back when nothing else is there: no
 * pools, no counters, no headers beyond those that the server exchanges.
 *
 *     xdp CLIENT_INTERFACE SERVER_INTERFACE CLIENT_CPU SERVER_CPU IN_FLIGHT BATCH SECONDS
 *
 * A socket on queue 0 of each interface, chunks of 2048 bytes, a program that takes every packet to it, native
 * where the driver can. The client keeps IN_FLIGHT packets on their way and counts those that come back; the
 * server exchanges addresses and sends. A side that finds nothing 64 times gives its CPU away. Out: packets
 * there and back per second.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { CHUNKS = 4096, CHUNK = 2048, RING = 2048, FRAME = 64, PATIENCE = 64 };

struct ring {
    _Atomic uint32_t *producer, *consumer, *flags;
    void *slots;
    uint32_t at;
};

struct side {
    int fd;
    unsigned char *memory;
    struct ring fill, completion, rx, tx;
    uint64_t spare[CHUNKS];
    uint32_t spares;
};

static atomic_int is_over;
static uint32_t batch;

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

static int bpf(int command, union bpf_attr *attributes) {
    int fd = (int)syscall(SYS_bpf, command, attributes, sizeof *attributes);
    if (fd < 0) {
        fail("bpf");
    }
    return fd;
}

static void map_ring(struct ring *ring, int fd, const struct xdp_ring_offset *at, uint64_t page,
                     size_t slot) {
    char *base = mmap(NULL, at->desc + RING * slot, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                      fd, (off_t)page);
    if (base == MAP_FAILED) {
        fail("mmap of a ring");
    }
    ring->producer = (void *)(base + at->producer);
    ring->consumer = (void *)(base + at->consumer);
    ring->flags = (void *)(base + at->flags);
    ring->slots = base + at->desc;
}

/* Every packet of a queue to the socket in the same place of a map. */
static void redirect(unsigned interface, int socket) {
    union bpf_attr map = {.map_type = BPF_MAP_TYPE_XSKMAP, .key_size = 4, .value_size = 4, .max_entries = 1};
    int map_fd = bpf(BPF_MAP_CREATE, &map);
    uint32_t key = 0, value = (uint32_t)socket;
    union bpf_attr put = {.map_fd = (uint32_t)map_fd, .key = (uintptr_t)&key, .value = (uintptr_t)&value};
    bpf(BPF_MAP_UPDATE_ELEM, &put);
    struct bpf_insn program[] = {
        {.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 2, .src_reg = 1, .off = 16},
        {.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = map_fd},
        {0},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = XDP_PASS},
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map},
        {.code = BPF_JMP | BPF_EXIT},
    };
    union bpf_attr load = {.prog_type = BPF_PROG_TYPE_XDP,
                           .insns = (uintptr_t)program,
                           .insn_cnt = sizeof program / sizeof *program,
                           .license = (uintptr_t) "Dual MIT/GPL"};
    int program_fd = bpf(BPF_PROG_LOAD, &load);
    union bpf_attr link = {0};
    link.link_create.prog_fd = (uint32_t)program_fd;
    link.link_create.target_ifindex = interface;
    link.link_create.attach_type = BPF_XDP;
    link.link_create.flags = XDP_FLAGS_DRV_MODE;
    bpf(BPF_LINK_CREATE, &link);
}

static void put_address(struct ring *ring, uint64_t address) {
    ((uint64_t *)ring->slots)[ring->at++ % RING] = address;
}

static struct side *open_side(const char *name) {
    struct side *side = calloc(1, sizeof *side);
    unsigned interface = if_nametoindex(name);
    side->fd = socket(AF_XDP, SOCK_RAW, 0);
    if (side->fd < 0 || interface == 0) {
        fail(name);
    }
    size_t bytes = (size_t)CHUNKS * CHUNK;
    side->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    struct xdp_umem_reg memory = {.addr = (uintptr_t)side->memory, .len = bytes, .chunk_size = CHUNK};
    if (setsockopt(side->fd, SOL_XDP, XDP_UMEM_REG, &memory, sizeof memory) != 0) {
        fail("XDP_UMEM_REG");
    }
    int rings[] = {XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING, XDP_RX_RING, XDP_TX_RING}, slots = RING;
    for (int i = 0; i < 4; i++) {
        if (setsockopt(side->fd, SOL_XDP, rings[i], &slots, sizeof slots) != 0) {
            fail("a ring");
        }
    }
    struct xdp_mmap_offsets at;
    socklen_t length = sizeof at;
    if (getsockopt(side->fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &length) != 0) {
        fail("XDP_MMAP_OFFSETS");
    }
    map_ring(&side->fill, side->fd, &at.fr, XDP_UMEM_PGOFF_FILL_RING, sizeof(uint64_t));
    map_ring(&side->completion, side->fd, &at.cr, XDP_UMEM_PGOFF_COMPLETION_RING, sizeof(uint64_t));
    map_ring(&side->rx, side->fd, &at.rx, XDP_PGOFF_RX_RING, sizeof(struct xdp_desc));
    map_ring(&side->tx, side->fd, &at.tx, XDP_PGOFF_TX_RING, sizeof(struct xdp_desc));
    for (uint64_t chunk = 0; chunk < CHUNKS; chunk++) {
        if (chunk < RING) {
            put_address(&side->fill, chunk * CHUNK);
        } else {
            side->spare[side->spares++] = chunk * CHUNK;
        }
    }
    atomic_store_explicit(side->fill.producer, side->fill.at, memory_order_release);
    struct sockaddr_xdp address = {.sxdp_family = AF_XDP,
                                   .sxdp_ifindex = interface,
                                   .sxdp_flags = XDP_COPY | XDP_USE_NEED_WAKEUP};
    if (bind(side->fd, (struct sockaddr *)&address, sizeof address) != 0) {
        fail("bind");
    }
    redirect(interface, side->fd);
    return side;
}

/* Chunks whose packets have left. */
static void reclaim(struct side *side) {
    struct ring *ring = &side->completion;
    uint32_t there = atomic_load_explicit(ring->producer, memory_order_acquire);
    while (ring->at != there) {
        side->spare[side->spares++] = ((uint64_t *)ring->slots)[ring->at++ % RING];
    }
    atomic_store_explicit(ring->consumer, ring->at, memory_order_release);
}

static void push(struct side *side, uint64_t address) {
    struct xdp_desc *slots = side->tx.slots;
    slots[side->tx.at++ % RING] = (struct xdp_desc){.addr = address, .len = FRAME};
}

static void flush(struct side *side) {
    atomic_store_explicit(side->tx.producer, side->tx.at, memory_order_release);
    if (sendto(side->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) != 0 && errno != EAGAIN && errno != EBUSY &&
        errno != ENOBUFS) {
        fail("sendto");
    }
}

/* At most a batch of what has come; the server sends it back. */
static uint32_t take(struct side *side, int sends_back) {
    struct ring *ring = &side->rx;
    struct xdp_desc *slots = ring->slots;
    uint32_t there = atomic_load_explicit(ring->producer, memory_order_acquire) - ring->at;
    uint32_t count = there < batch ? there : batch, sent = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct xdp_desc packet = slots[ring->at++ % RING];
        unsigned char *frame = side->memory + packet.addr, kept[6];
        if (sends_back && side->spares > 0) {
            uint64_t to = side->spare[--side->spares];
            unsigned char *answer = side->memory + to;
            memcpy(answer, frame, FRAME);
            memcpy(kept, answer, 6);
            memcpy(answer, answer + 6, 6);
            memcpy(answer + 6, kept, 6);
            memcpy(kept, answer + 26, 4);
            memcpy(answer + 26, answer + 30, 4);
            memcpy(answer + 30, kept, 4);
            push(side, to);
            sent++;
        }
        put_address(&side->fill, packet.addr);
    }
    if (count > 0) {
        atomic_store_explicit(ring->consumer, ring->at, memory_order_release);
        atomic_store_explicit(side->fill.producer, side->fill.at, memory_order_release);
    }
    if (sent > 0) {
        flush(side);
    }
    return count;
}

static void rest(uint32_t found, uint32_t *empty) {
    *empty = found > 0 ? 0 : *empty + 1;
    if (*empty >= PATIENCE) {
        *empty = 0;
        sched_yield();
    }
}

struct server {
    struct side *side;
    int cpu;
};

static void *serve(void *of) {
    struct server *server = of;
    pin(server->cpu);
    uint32_t empty = 0;
    while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
        reclaim(server->side);
        rest(take(server->side, 1), &empty);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 8) {
        fprintf(stderr, "usage: xdp CLIENT_INTERFACE SERVER_INTERFACE CLIENT_CPU SERVER_CPU IN_FLIGHT BATCH SECONDS\n");
        return 2;
    }
    struct side *client = open_side(argv[1]);
    struct server server = {open_side(argv[2]), atoi(argv[4])};
    long in_flight = atol(argv[5]), on_their_way = 0;
    batch = (uint32_t)atoi(argv[6]);
    pthread_t thread;
    if (pthread_create(&thread, NULL, serve, &server) != 0) {
        fail("pthread_create");
    }
    pin(atoi(argv[3]));
    uint32_t empty = 0;
    uint64_t done = 0;
    double begun = now(), end = begun + atof(argv[7]), heard = begun, ended = begun;
    while (ended < end) {
        reclaim(client);
        if (on_their_way + (long)batch <= in_flight && client->spares >= batch) {
            for (uint32_t i = 0; i < batch; i++) {
                uint64_t to = client->spare[--client->spares];
                unsigned char *frame = client->memory + to;
                memset(frame, 'a', FRAME);
                frame[12] = 8;
                frame[13] = 0;
                push(client, to);
            }
            on_their_way += (long)batch;
            flush(client);
        }
        uint32_t count = take(client, 0);
        done += count;
        on_their_way -= (long)count;
        rest(count, &empty);
        ended = now();
        heard = count > 0 ? ended : heard;
        /* Packets that were lost come no more. */
        if (ended - heard > 0.01) {
            on_their_way = 0;
            heard = ended;
        }
    }
    atomic_store(&is_over, 1);
    pthread_join(thread, NULL);
    printf("%.0f\n", (double)done / (ended - begun));
    return 0;
}
