/* CPU time from /proc/stat. */
#ifndef AGENT_COLLECT_CPU_H
#define AGENT_COLLECT_CPU_H

#include "agent/collect/collector.h"
#include "agent/collect/readings.h"
#include "agent/options.h"

struct cpu {
    struct collector collector;
    uint64_t busy; /* of the round before, in ticks */
    uint64_t total;
};

void cpu_init(struct cpu *cpu);
/* The share of time not idle since the last round; the first round has none. */
void cpu_collect(struct cpu *cpu, const struct options *options, struct readings *readings,
                 int64_t now_us);
/* The "cpu" line of /proc/stat; iowait counts as idle. */
bool cpu_parse(struct str text, uint64_t *ret_busy, uint64_t *ret_total) MUST_CHECK;

#endif
