/* What a policy would have done with the faults that really came: pure, over facts in memory. */
#ifndef SERVER_REPAIR_REPLAY_H
#define SERVER_REPAIR_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "server/repair/admission.h"
#include "server/repair/policy.h"

enum replay_end {
    REPLAY_HELD,   /* it waited for a person until its fault closed, or waits yet */
    REPLAY_CLOSED, /* the fault closed by itself before its turn came */
    REPLAY_STARTED
};

/* A fault that asked for an action. Those of one cluster stand together, in the order of their
 * time. Times are seconds. */
struct replay_fault {
    uint32_t node; /* from 0, without gaps within its cluster */
    uint32_t rack; /* 0 = none named; likewise */
    uint32_t leaf;
    struct str check_id;
    struct str code;
    enum repair_action action;
    int64_t at;
    int64_t closed_at; /* INT64_MAX = open yet */
    int64_t offset;    /* of the policy's time zone from UTC at that time */
    bool off;          /* the node's own switch */
    bool busy;         /* its GPUs were in use shortly before */
    /* what came of it */
    enum replay_end end;
    int64_t started_at;
    unsigned reasons; /* bits 1 << enum admission_code, of the last look; 0 where it started */
};

struct replay_sum {
    int64_t starts;
    int64_t busy; /* of them with GPUs in use */
    int64_t closed;
    int64_t trips; /* of the breaker; a person is taken to reset it after four hours */
    bool cut;      /* there was too much to look at; the rest was taken to wait */
    int64_t by_action[ACTION_COUNT];
    int64_t by_reason[ADMIT_CODE_COUNT]; /* faults that a reason held at the last look */
};

/*
 * Plays one cluster of so many nodes. A repair is taken to last as long as its action is expected
 * to and to succeed; later faults are taken to have come all the same. Adds to *sum.
 */
void replay_cluster(struct arena *arena, const struct policy *policy, size_t nodes,
                    struct replay_fault *faults, size_t count, struct replay_sum *sum);

#endif
