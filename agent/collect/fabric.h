/* InfiniBand ports from /sys/class/infiniband, read in a child: the files ask the adapter's
 * firmware. */
#ifndef AGENT_COLLECT_FABRIC_H
#define AGENT_COLLECT_FABRIC_H

#include "agent/collect/collector.h"
#include "agent/collect/probe.h"
#include "agent/collect/readings.h"
#include "agent/faults.h"
#include "agent/options.h"

#define FABRIC_PORTS_MAX 64

struct fabric_port {
    char name[48];  /* "mlx5_4/1" */
    int state;      /* 4 = active (IBTA 14.2.5.6), -1 = not readable */
    int phys_state; /* 5 = link up */
    bool counted;
    uint64_t rx_words; /* of four bytes */
    uint64_t tx_words;
};

struct fabric_answer {
    int failed; /* errno of the folder */
    unsigned count;
    struct fabric_port ports[FABRIC_PORTS_MAX];
};

/* What is remembered of a port. */
struct fabric_memory {
    char name[48];
    bool was_active;       /* in the life of this agent */
    int64_t down_since_us; /* 0 = not down */
    int64_t up_since_us;
};

struct fabric {
    struct collector collector;
    struct probe probe;
    const struct options *options;
    uint64_t rx_words;
    uint64_t tx_words;
    unsigned counted;
    int64_t at_us;
    struct fabric_memory memory[FABRIC_PORTS_MAX];
    size_t memory_count;
    int64_t quiet_until_us; /* counters are left alone: reading them made the driver complain */
};

void fabric_init(struct fabric *fabric, const struct options *options);
/* Asks, unless this machine has no InfiniBand. */
void fabric_ask(struct fabric *fabric, int64_t now_us);
void fabric_news(struct fabric *fabric, enum probe_news news, struct readings *readings,
                 struct faults *faults, int64_t now_us);
/* The driver wrote that a counter may not be read: leave them alone for a day. */
void fabric_hush(struct fabric *fabric, int64_t now_us);

#endif
