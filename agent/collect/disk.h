/* Space on local file systems, asked for in a child: a dying disk may never answer. */
#ifndef AGENT_COLLECT_DISK_H
#define AGENT_COLLECT_DISK_H

#include "agent/collect/collector.h"
#include "agent/collect/probe.h"
#include "agent/collect/readings.h"
#include "agent/faults.h"
#include "agent/options.h"

#define DISK_MOUNTS_MAX 64

struct disk_mount {
    char path[120];
    uint64_t total_mib;
    uint64_t free_mib; /* for everybody, without root's reserve */
};

struct disk_answer {
    int failed; /* errno of reading the mount table */
    unsigned count;
    struct disk_mount mounts[DISK_MOUNTS_MAX];
};

struct disk {
    struct collector collector;
    struct probe probe;
};

void disk_init(struct disk *disk, const struct options *options);
/* What became of a question: sets the reading, the collector's state and the faults of full file
 * systems. */
void disk_news(struct disk *disk, enum probe_news news, struct readings *readings,
               struct faults *faults, int64_t now_us);
/* The mount points of local file systems with a device behind them, out of /proc/mounts; each
 * device once. Returns how many. For tests. */
unsigned disk_parse_mounts(struct str text, struct disk_mount *mounts, unsigned cap);

#endif
