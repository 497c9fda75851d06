/* Bytes through Ethernet ports, from /sys/class/net. */
#ifndef AGENT_COLLECT_NETWORK_H
#define AGENT_COLLECT_NETWORK_H

#include "agent/collect/collector.h"
#include "agent/collect/readings.h"
#include "agent/options.h"

struct network {
    struct collector collector;
    uint64_t rx_bytes; /* sums of the round before */
    uint64_t tx_bytes;
    unsigned ports;
    int64_t at_us; /* 0 = no round yet */
};

void network_init(struct network *network);
/* Sums over the ports with hardware behind them (in a container, which has none, over all but lo).
 */
void network_collect(struct network *network, const struct options *options,
                     struct readings *readings, int64_t now_us);
/* Mbit/s from a difference of bytes; READING_NONE when the counter went back or no time passed. */
double network_rate(uint64_t before, uint64_t now, int64_t elapsed_us);

#endif
