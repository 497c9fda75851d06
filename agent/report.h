/* The body of POST /agent/v1/report. */
#ifndef AGENT_REPORT_H
#define AGENT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/act/act.h"
#include "agent/collect/collector.h"
#include "agent/collect/inventory.h"
#include "agent/collect/readings.h"
#include "agent/spool.h"

struct report {
    const char *boot_id;
    uint64_t seq;
    const char *nonce;
    bool ready;
    int64_t command_key;             /* number of the newest that is trusted; 0 = not said */
    const char *settings;            /* version that runs; NULL = not said */
    const char *settings_refused;    /* version that could not be used; "" = none */
    const struct readings *readings; /* NULL = none: events of an older boot only */
    struct collector *const *collectors;
    size_t collector_count;
    struct inventory *inventory; /* NULL = none */
    struct act *act;             /* NULL = none */
    struct spool *spool;
    size_t events_max; /* of each stream */
};

/* Appends the body and marks what it carries. ret_counts: events of each stream in it. */
void report_write(const struct report *report, struct buf *out, size_t ret_counts[SPOOL_STREAMS]);

#endif
