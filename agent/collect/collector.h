/* One source of facts: its state, heartbeat and back-off, apart from what it reads. */
#ifndef AGENT_COLLECT_COLLECTOR_H
#define AGENT_COLLECT_COLLECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

enum collector_state {
    COLLECTOR_OK,
    COLLECTOR_ABSENT,  /* this machine has no such thing */
    COLLECTOR_UNKNOWN, /* it cannot be read: neither a fault nor health */
};

struct collector {
    const char *name;
    enum collector_state state;
    char reason[160];
    bool finished_once; /* a first round ended, whatever it found */
    bool news;          /* the server does not know the state yet */
    bool in_report;
    int64_t heartbeat_us; /* clock of the last finished round */
    int64_t retry_us;     /* not tried again before */
    unsigned failures;    /* in a row */
};

void collector_init(struct collector *collector, const char *name);
void collector_ok(struct collector *collector, int64_t now_us);
void collector_absent(struct collector *collector, int64_t now_us, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* Sets the back-off too: 1 s, doubled for each failure in a row, at most 5 minutes. */
void collector_unknown(struct collector *collector, int64_t now_us, const char *format, ...)
    PRINTF_LIKE(3, 4);
bool collector_may_try(const struct collector *collector, int64_t now_us);
const char *collector_state_name(enum collector_state state);

#endif
