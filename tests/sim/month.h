/* Kinds of faults for a month of a simulated cluster; the table is made from bench/sim.json. */
#ifndef TESTS_SIM_MONTH_H
#define TESTS_SIM_MONTH_H

#include <stdbool.h>
#include <stddef.h>

#include "server/repair/action.h"

enum month_cure {
    CURE_SELF,
    CURE_SERVICE,
    CURE_RESET,
    CURE_REBOOT,
    CURE_POWER,
    CURE_REPROVISION,
    CURE_REPLACE,
    CURE_COUNT
};

struct month_kind {
    const char *id;
    const char *check_id;
    const char *code;
    double rate; /* a day and 1,000 nodes */
    enum repair_action action;
    bool node_fault;         /* one that the ladder or a person acts on */
    bool lemon;              /* comes more often on a few nodes */
    double job_kill;         /* probability that a running job ends with it */
    double cure[CURE_COUNT]; /* the least that cures it; sums to 1 */
};

extern const struct month_kind month_kinds[];
extern const size_t month_kinds_count;

#endif
