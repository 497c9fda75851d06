/*
 * What turns findings of a look at the node into told faults, as a table: how often a finding must
 * be seen before it is told, over what time a look sees, and how it ends.
 */
#ifndef AGENT_RULES_STATES_H
#define AGENT_RULES_STATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/rules/finding.h"

enum state_kind {
    STATE_READING, /* bad until it reads good: ends by the agent's word */
    STATE_EVENT,   /* happened: told at once with its count, ends by its own clear rule */
};

/* When a finding is held back, until a deadline (grace.h). */
enum state_grace {
    GRACE_NONE,
    GRACE_BOOT,   /* while the node comes up */
    GRACE_DRIVER, /* then, and while NVIDIA's driver is being exchanged */
};

struct state_row {
    const char *source; /* the collector */
    const char *check;
    const char *code; /* codes that begin so; NULL = every code; the first row that fits wins */
    enum state_kind kind;
    uint8_t raise_rounds; /* so many looks in a row must find it */
    uint8_t clear_rounds; /* so many in a row must not, before it ends; 0 with STATE_EVENT */
    uint32_t window_s;    /* what one look sees: the time between two, or that of a rate */
    enum state_grace grace;
    bool instead_of_nvml; /* judged only while NVML does not answer */
};

extern const struct state_row state_rows[];
extern const size_t state_row_count;

/* The code under which a finding folds. */
const char *finding_fold(const struct finding *finding);
/* NULL = that source has no such finding. */
const struct state_row *state_row_find(const char *source, const char *check, const char *code);

#endif
