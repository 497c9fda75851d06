/* A cluster in memory: the counters of admission without a database, for replays and simulations.
 */
#ifndef SERVER_REPAIR_FLEET_H
#define SERVER_REPAIR_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "server/repair/admission.h"

/* Times are seconds of any clock that only goes forward. */
#define FLEET_NEVER INT64_MIN
#define FLEET_ATTEMPTS 16 /* remembered of a node; more than any budget */
#define FLEET_INCIDENTS 32

struct fleet_attempt {
    int64_t at;
    uint32_t kind;
    enum repair_action action;
};

struct fleet_node {
    uint32_t rack; /* 0 = none named; likewise below */
    uint32_t leaf;
    uint32_t role;
    bool off;    /* its own switch: no automatic repair */
    bool silent; /* set by fleet_silence */
    /* kept by the calls below */
    bool faulty;
    bool repairing;
    uint32_t kind;
    int64_t fault_at;
    int64_t ended_at;
    int64_t proposed_at;
    struct fleet_attempt attempts[FLEET_ATTEMPTS];
    size_t attempts_count;
    int64_t incidents[FLEET_INCIDENTS];
    size_t incidents_count;
};

/* A growing list of moments, with the node each is about. */
struct fleet_moments {
    struct fleet_moment {
        int64_t at;
        uint32_t node;
        uint32_t kind;
    } * items;
    size_t count;
    size_t cap;
    size_t first; /* what is older was out of every window */
};

struct fleet {
    struct fleet_node *nodes;
    size_t count;
    int64_t down;
    int64_t running;
    int64_t silent;
    uint32_t *busy; /* nodes under repair */
    size_t busy_count;
    struct fleet_moments starts;
    struct fleet_moments faults;
    struct fleet_end {
        int64_t at;
        bool well;
    } ended[5]; /* the last automatic repairs, oldest first */
    size_t ended_count;
    int64_t breaker_reset_at;
    int64_t baseline_at; /* proposals from before do not start by themselves */
    bool breaker_open;
    bool stopped;
};

/* Kinds are small numbers from 1; the caller knows their checks and codes. */
struct fleet_kind {
    struct str check_id;
    struct str code;
};

void fleet_init(struct fleet *fleet, size_t count);
void fleet_free(struct fleet *fleet);

/* A fault; one that is open already stays as it is. */
void fleet_fault(struct fleet *fleet, uint32_t node, uint32_t kind, int64_t at);
void fleet_clear(struct fleet *fleet, uint32_t node);
void fleet_silence(struct fleet *fleet, uint32_t node, bool silent);
/* A repair of a node that is not under repair begins, and ends; the fault is cleared apart. */
void fleet_start(struct fleet *fleet, uint32_t node, enum repair_action action, int64_t at);
void fleet_end(struct fleet *fleet, uint32_t node, bool well, int64_t at);

/* What admission counts for this node and action now; weekday and minute are the caller's. */
struct admission_counters fleet_counters(struct fleet *fleet, const struct policy *policy,
                                         const struct fleet_kind *kind, uint32_t node,
                                         enum repair_action action, int64_t at);
/* Looks at the breaker's rules; true when it has just opened. */
bool fleet_look(struct fleet *fleet, const struct policy *policy, const struct fleet_kind *kinds,
                int64_t at, char ret_text[ADMISSION_TEXT_MAX]);
/* A person closes it; what was proposed before stays for people. */
void fleet_reset(struct fleet *fleet, int64_t at);
void fleet_stop(struct fleet *fleet, bool stopped, int64_t at);

#endif
