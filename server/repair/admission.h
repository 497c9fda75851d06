/* Whether a repair may start by itself: one pure function over counters, which gives all its
 * reasons. */
#ifndef SERVER_REPAIR_ADMISSION_H
#define SERVER_REPAIR_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct admission_counters {
    int64_t nodes;   /* of the cluster */
    int64_t down;    /* of them unhealthy or under repair */
    int64_t running; /* repairs decided and not ended, in the cluster */
    int64_t attempt; /* this would be the n-th with this action on this node in 7 days */
    int64_t attempts_max;
    int64_t ended_seconds_ago; /* since the node's last repair ended; -1 = never */
    int64_t cooldown_seconds;
    int64_t others_down; /* nodes of the same rack or leaf that are down */
    bool has_executor;
    bool node_joined;
    bool auto_repair; /* the node's own switch */
    bool automation;  /* the cluster's policy lets this action start by itself */
};

enum admission_code {
    ADMIT_NO_EXECUTOR, /* the only ones that hold a person's approval too */
    ADMIT_NOT_JOINED,
    ADMIT_AUTOMATION_OFF,
    ADMIT_NODE_OFF,
    ADMIT_CONCURRENCY,
    ADMIT_COOLDOWN,
    ADMIT_BUDGET,
    ADMIT_DOMAIN,
    ADMIT_CODE_COUNT
};

#define ADMISSION_TEXT_MAX 160

struct admission_reason {
    enum admission_code code;
    bool hard;                     /* holds a person's approval too */
    char text[ADMISSION_TEXT_MAX]; /* sentence */
};

struct admission {
    struct admission_reason reasons[ADMIT_CODE_COUNT];
    size_t count; /* 0 = it may start by itself */
    int64_t max_running;
};

/* All reasons at once, hard ones first. Pure. */
void admission_decide(const struct admission_counters *counters, struct admission *ret_admission);
const char *admission_code_name(enum admission_code code);
/* How many repairs may run at once: min(max(1, 2 %), 20), shrinking linearly to 0 when 20 % of the
 * nodes are down; a node under repair counts as down. */
int64_t admission_max_running(int64_t nodes, int64_t down);

#endif
