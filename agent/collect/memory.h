/* Memory from /proc/meminfo. */
#ifndef AGENT_COLLECT_MEMORY_H
#define AGENT_COLLECT_MEMORY_H

#include "agent/collect/collector.h"
#include "agent/collect/readings.h"
#include "agent/options.h"

struct memory {
    struct collector collector;
};

void memory_init(struct memory *memory);
/* Used = total - available. */
void memory_collect(struct memory *memory, const struct options *options, struct readings *readings,
                    int64_t now_us);
bool memory_parse(struct str text, int64_t *ret_total_kib, int64_t *ret_available_kib) MUST_CHECK;

#endif
