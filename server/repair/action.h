/* What can be done to a node: each action's weight, cost, limits and words, as one table. */
#ifndef SERVER_REPAIR_ACTION_H
#define SERVER_REPAIR_ACTION_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/str.h"

/* In the order of their weight: a later one interrupts or loses more. */
enum repair_action {
    ACTION_RESET_GPU,
    ACTION_REBOOT,
    ACTION_POWER_CYCLE,
    ACTION_REPROVISION,
    ACTION_FAILOVER,
    ACTION_REMOVE,
    ACTION_COUNT
};

struct action_info {
    const char *name;     /* in SQL and JSON */
    const char *words;    /* in sentences */
    const char *keeps;    /* sentence */
    const char *loses;    /* sentence about data that is gone afterwards; NULL = none */
    int seconds_expected; /* from the act until the node is back */
    int attempts_max;     /* on one node in 7 days, before only a person decides */
    int next;             /* what to try when it failed: an action, -1 = a person decides */
};

/* Never NULL. */
const struct action_info *action_info(enum repair_action action);
bool action_parse(struct str name, enum repair_action *ret_action) MUST_CHECK;

/* PostgreSQL array texts for SQL parameters. */
#define ACTION_LIST_MAX 96
struct action_list {
    char text[ACTION_LIST_MAX];
};
struct action_list action_list_of(unsigned mask); /* bits 1 << enum repair_action, in order */
#define ACTION_ALL ((1u << ACTION_COUNT) - 1)
/* Those after whose failure a person decides. */
struct action_list action_list_last(void);

#endif
