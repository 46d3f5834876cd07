/*
 * What weir needs of DPDK, as functions: most of DPDK's own are inline and cannot be called from elsewhere.
 *
 * Every function that can fail answers with a negative errno. Frames are copied between the caller's memory
 * and DPDK's, or changed and sent back where they lie. A queue belongs to one thread at a time; everything else is called by one thread.
 */
#ifndef WEIR_DPDK_H
#define WEIR_DPDK_H

#include <stdint.h>

/* Counts up with every change of what is declared here. */
#define WEIR_DPDK_INTERFACE 2

struct weir_dpdk_queue;

/* A frame where it lies in DPDK's memory: as much of it as is in one piece. */
struct weir_dpdk_frame {
    void *bytes;
    uint64_t length;
};

/* WEIR_DPDK_INTERFACE as it was when the library was built. */
int weir_dpdk_interface(void);
/* The release of DPDK, as text that stays. */
const char *weir_dpdk_release(void);
/* Starts DPDK with these words, once for the process. */
int weir_dpdk_start(int count, char **words);
/* Makes or finds a device, and gives the number of its port: net_af_packet0,iface=eth1 or a PCI address. */
int weir_dpdk_port(const char *device);
/* Two ports, of which each receives on a queue what the other sends on it. */
int weir_dpdk_cross(const char *one, const char *other, uint16_t queues, uint32_t slots);
/*
 * Configures and starts a port: so many queues each way, of so many slots, for packets up to so many bytes,
 * their Ethernet header not counted.
 */
int weir_dpdk_open(uint16_t port, uint16_t queues, uint32_t slots, uint32_t mtu);
/* A queue of an open port, or null without memory. */
struct weir_dpdk_queue *weir_dpdk_queue(uint16_t port, uint16_t queue);
/* Takes a frame: 1, or 0 where there is no room now. */
int weir_dpdk_push(struct weir_dpdk_queue *queue, const void *frame, uint32_t bytes);
/* Sends what was taken; how many frames are left. */
uint32_t weir_dpdk_flush(struct weir_dpdk_queue *queue);
/* Copies the oldest frame that came, as much of it as there is room for: its bytes there, or -1. */
int weir_dpdk_pop(struct weir_dpdk_queue *queue, void *into, uint32_t room);
/*
 * Takes frames where they lie, at most so many, and says where that is: how many. They stay the queue's; before
 * all of them were sent back there are no others.
 */
uint32_t weir_dpdk_take(struct weir_dpdk_queue *queue, struct weir_dpdk_frame *frames, uint32_t most);
/* Sends the frames back that were taken, as far as there is room; how many. */
uint32_t weir_dpdk_return(struct weir_dpdk_queue *queue);
/* Frames that came and were not taken; negative where the device cannot say. */
int weir_dpdk_waiting(struct weir_dpdk_queue *queue);
/* Frees what the queue holds, and the queue. */
void weir_dpdk_queue_free(struct weir_dpdk_queue *queue);
/* Stops and closes a port, and gives its device up. */
void weir_dpdk_close(uint16_t port);

#endif
