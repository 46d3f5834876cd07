/* See weir_dpdk.h. */
#include "weir_dpdk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <rte_version.h>

/* Frames that a queue takes from its device at once, or hands to it. */
#define BURST 32
/* Bytes of a frame that a buffer holds. */
#define LONGEST 2304
/* Buffers that a thread keeps for itself. */
#define CACHE 256

struct weir_dpdk_queue {
    uint16_t port, queue;
    struct rte_mempool *pool;
    uint16_t taken, received, pushed;
    struct rte_mbuf *rx[BURST], *tx[BURST];
};

static struct rte_mempool *pools[RTE_MAX_ETHPORTS];

int weir_dpdk_interface(void)
{
    return WEIR_DPDK_INTERFACE;
}

const char *weir_dpdk_release(void)
{
    return rte_version();
}

int weir_dpdk_start(int count, char **words)
{
    return rte_eal_init(count, words) < 0 ? -rte_errno : 0;
}

int weir_dpdk_port(const char *device)
{
    char name[RTE_ETH_NAME_MAX_LEN];
    uint16_t port;
    int failed;

    snprintf(name, sizeof name, "%.*s", (int)strcspn(device, ","), device);
    failed = rte_eth_dev_get_port_by_name(name, &port);
    if (failed) {
        failed = rte_dev_probe(device);
        if (!failed)
            failed = rte_eth_dev_get_port_by_name(name, &port);
    }
    return failed ? failed : port;
}

static int rings(const char *name, uint16_t queues, uint32_t slots, struct rte_ring **made)
{
    char full[RTE_RING_NAMESIZE];

    for (uint16_t queue = 0; queue < queues; queue++) {
        snprintf(full, sizeof full, "%s_%u", name, queue);
        made[queue] = rte_ring_create(full, slots, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
        if (!made[queue])
            return -rte_errno;
    }
    return 0;
}

int weir_dpdk_cross(const char *one, const char *other, uint16_t queues, uint32_t slots)
{
    struct rte_ring *there[RTE_MAX_QUEUES_PER_PORT], *back[RTE_MAX_QUEUES_PER_PORT];
    int failed = rings(one, queues, slots, there);

    if (!failed)
        failed = rings(other, queues, slots, back);
    if (failed)
        return failed;
    if (rte_eth_from_rings(one, back, queues, there, queues, SOCKET_ID_ANY) < 0 ||
        rte_eth_from_rings(other, there, queues, back, queues, SOCKET_ID_ANY) < 0)
        return -rte_errno;
    return 0;
}

int weir_dpdk_open(uint16_t port, uint16_t queues, uint32_t slots, uint32_t mtu)
{
    struct rte_eth_conf conf = {0};
    uint16_t rx = slots, tx = slots;
    char name[RTE_MEMPOOL_NAMESIZE];
    int socket = rte_eth_dev_socket_id(port);
    /* What is on its way, in caches, and in the arrays of queues. */
    unsigned buffers = queues * (2 * slots + 2 * CACHE + 2 * BURST);
    int failed;

    snprintf(name, sizeof name, "weir_%u", port);
    pools[port] = rte_pktmbuf_pool_create(name, buffers, CACHE, 0, RTE_PKTMBUF_HEADROOM + LONGEST,
                                          socket);
    if (!pools[port])
        return -rte_errno;
    if (mtu > RTE_ETHER_MTU)
        conf.rxmode.mtu = mtu;
    failed = rte_eth_dev_configure(port, queues, queues, &conf);
    if (!failed)
        failed = rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx, &tx);
    for (uint16_t queue = 0; !failed && queue < queues; queue++) {
        failed = rte_eth_rx_queue_setup(port, queue, rx, socket, NULL, pools[port]);
        if (!failed)
            failed = rte_eth_tx_queue_setup(port, queue, tx, socket, NULL);
    }
    if (!failed)
        failed = rte_eth_dev_start(port);
    if (!failed) {
        /* Some devices have no such mode, and receive everything. */
        failed = rte_eth_promiscuous_enable(port);
        if (failed == -ENOTSUP)
            failed = 0;
    }
    return failed;
}

struct weir_dpdk_queue *weir_dpdk_queue(uint16_t port, uint16_t number)
{
    struct weir_dpdk_queue *queue = calloc(1, sizeof *queue);

    if (queue) {
        queue->port = port;
        queue->queue = number;
        queue->pool = pools[port];
    }
    return queue;
}

/* A thread that DPDK knows has a cache of buffers. Without one all works too. */
static void known_thread(void)
{
    static _Thread_local int is_known;

    if (!is_known) {
        is_known = 1;
        if (rte_lcore_id() == LCORE_ID_ANY)
            (void)rte_thread_register();
    }
}

int weir_dpdk_push(struct weir_dpdk_queue *queue, const void *frame, uint32_t bytes)
{
    struct rte_mbuf *buffer;

    if (queue->pushed == BURST && weir_dpdk_flush(queue) == BURST)
        return 0;
    known_thread();
    buffer = rte_pktmbuf_alloc(queue->pool);
    if (!buffer)
        return 0;
    if (bytes > LONGEST)
        bytes = LONGEST;
    memcpy(rte_pktmbuf_append(buffer, bytes), frame, bytes);
    queue->tx[queue->pushed++] = buffer;
    return 1;
}

uint32_t weir_dpdk_flush(struct weir_dpdk_queue *queue)
{
    uint16_t sent = 0;

    if (queue->pushed)
        sent = rte_eth_tx_burst(queue->port, queue->queue, queue->tx, queue->pushed);
    queue->pushed -= sent;
    if (sent && queue->pushed)
        memmove(queue->tx, queue->tx + sent, queue->pushed * sizeof queue->tx[0]);
    return queue->pushed;
}

int weir_dpdk_pop(struct weir_dpdk_queue *queue, void *into, uint32_t room)
{
    struct rte_mbuf *buffer;
    uint32_t bytes;
    const void *frame;

    if (queue->taken == queue->received) {
        known_thread();
        queue->taken = 0;
        queue->received = rte_eth_rx_burst(queue->port, queue->queue, queue->rx, BURST);
        if (!queue->received)
            return -1;
    }
    buffer = queue->rx[queue->taken++];
    bytes = rte_pktmbuf_pkt_len(buffer) < room ? rte_pktmbuf_pkt_len(buffer) : room;
    /* Copied here where it lies in pieces, else where it is. */
    frame = rte_pktmbuf_read(buffer, 0, bytes, into);
    if (frame != into)
        memcpy(into, frame, bytes);
    rte_pktmbuf_free(buffer);
    return bytes;
}

uint32_t weir_dpdk_take(struct weir_dpdk_queue *queue, struct weir_dpdk_frame *frames, uint32_t most)
{
    if (queue->taken < queue->received)
        return 0;
    known_thread();
    queue->taken = 0;
    queue->received = rte_eth_rx_burst(queue->port, queue->queue, queue->rx, most < BURST ? most : BURST);
    for (uint16_t at = 0; at < queue->received; at++) {
        frames[at].bytes = rte_pktmbuf_mtod(queue->rx[at], void *);
        frames[at].length = rte_pktmbuf_data_len(queue->rx[at]);
    }
    return queue->received;
}

uint32_t weir_dpdk_return(struct weir_dpdk_queue *queue)
{
    uint16_t held = queue->received - queue->taken, sent = 0;

    if (held)
        sent = rte_eth_tx_burst(queue->port, queue->queue, queue->rx + queue->taken, held);
    queue->taken += sent;
    return sent;
}

int weir_dpdk_waiting(struct weir_dpdk_queue *queue)
{
    int there = rte_eth_rx_queue_count(queue->port, queue->queue);

    return there < 0 ? there : there + queue->received - queue->taken;
}

void weir_dpdk_queue_free(struct weir_dpdk_queue *queue)
{
    while (queue->taken < queue->received)
        rte_pktmbuf_free(queue->rx[queue->taken++]);
    while (queue->pushed)
        rte_pktmbuf_free(queue->tx[--queue->pushed]);
    free(queue);
}

void weir_dpdk_close(uint16_t port)
{
    struct rte_eth_dev_info info = {0};

    (void)rte_eth_dev_info_get(port, &info);
    (void)rte_eth_dev_stop(port);
    (void)rte_eth_dev_close(port);
    if (info.device)
        (void)rte_dev_remove(info.device);
    rte_mempool_free(pools[port]);
    pools[port] = NULL;
}
