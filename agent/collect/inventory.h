/* What the machine is made of: sent when it changed. */
#ifndef AGENT_COLLECT_INVENTORY_H
#define AGENT_COLLECT_INVENTORY_H

#include "agent/collect/collector.h"
#include "agent/collect/readings.h"
#include "agent/options.h"
#include "base/buf.h"

struct inventory {
    struct collector collector;
    struct buf json; /* as last built */
    bool news;       /* the server does not have it */
    bool in_report;
    int64_t built_us; /* 0 = never */
};

void inventory_init(struct inventory *inventory);
void inventory_free(struct inventory *inventory);
/* Builds it anew; a difference is news. */
void inventory_collect(struct inventory *inventory, const struct options *options,
                       const struct readings *readings, int64_t now_us);

#endif
