/* Whether a repair may start by itself: one pure function over counters, which gives all its
 * reasons. */
#ifndef SERVER_REPAIR_ADMISSION_H
#define SERVER_REPAIR_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/repair/policy.h"

/* How wide a stop or an open breaker reaches; later ones are narrower. */
enum admission_reach { REACH_NONE, REACH_PLATFORM, REACH_ORG, REACH_CLUSTER, REACH_NODE };

struct admission_counters {
    enum repair_action action;
    enum policy_mode mode;  /* of the fault, policy_mode_for; a person's request confirms */
    int64_t nodes;          /* of the cluster */
    int64_t down;           /* of them unhealthy or under repair */
    int64_t running;        /* repairs decided and not ended, in the cluster */
    int64_t starts;         /* repairs decided in the last hour, in the cluster */
    int64_t same_kind;      /* nodes with this check and code in the policy's time, this one too */
    int64_t seen;           /* nodes of the cluster that ever reported */
    int64_t silent;         /* of them not heard of for three intervals */
    int64_t domain_running; /* repairs decided and not ended in this rack or leaf, elsewhere */
    int64_t domain_silent;  /* silent nodes of this rack or leaf */
    int64_t attempt; /* this would be the n-th with this action on this node and check in 7 days */
    const char *follows;          /* a rung whose attempts are used up, in words; NULL = none */
    int64_t incidents;            /* node faults of this node in the policy's days, this one too */
    int64_t fault_seconds_ago;    /* since the oldest fault of the plan; -1 = no fault */
    int64_t ended_seconds_ago;    /* since the node's last repair ended; -1 = never */
    int weekday;                  /* 0 = Monday, in the policy's time zone */
    int minute;                   /* of the day */
    enum admission_reach stopped; /* by a person */
    enum admission_reach breaker_open; /* by a rule */
    bool waited;        /* proposed before a breaker was reset or a stop was lifted */
    bool shared_cause;  /* the fault may be a switch's or a file system's: neighbours speak first */
    bool held;          /* its faults belong to an open common cause */
    bool reinstallable; /* its fault is one of software or of a disk's content */
    int64_t spares;     /* free ones of the cluster's pool */
    bool last_of_role;  /* no other healthy node has this node's role */
    bool has_executor;
    bool node_joined;
    bool auto_repair; /* the node's own switch */
};

/* X(symbol, name in JSON, holds a person's approval too) */
#define ADMISSION_TABLE(X)                           \
    X(ADMIT_NO_EXECUTOR, "no_executor", true)        \
    X(ADMIT_NOT_JOINED, "not_joined", true)          \
    X(ADMIT_NO_SPARE, "no_spare", true)              \
    X(ADMIT_STOPPED, "stopped", true)                \
    X(ADMIT_POLICY_BROKEN, "policy_broken", false)   \
    X(ADMIT_AUTOMATION_OFF, "automation_off", false) \
    X(ADMIT_WARN_ONLY, "warn_only", false)           \
    X(ADMIT_ACTION, "action", false)                 \
    X(ADMIT_FAULT_KIND, "fault_kind", false)         \
    X(ADMIT_NODE_OFF, "node_off", false)             \
    X(ADMIT_BREAKER, "breaker", false)               \
    X(ADMIT_WAITED, "waited", false)                 \
    X(ADMIT_CUT_OFF, "cut_off", false)               \
    X(ADMIT_SHARED_SILENCE, "shared_silence", false) \
    X(ADMIT_SETTLING, "settling", false)             \
    X(ADMIT_COMMON_CAUSE, "common_cause", false)     \
    X(ADMIT_SAME_KIND, "same_kind", false)           \
    X(ADMIT_LEMON, "lemon", false)                   \
    X(ADMIT_WINDOW, "window", false)                 \
    X(ADMIT_CONCURRENCY, "concurrency", false)       \
    X(ADMIT_STARTS, "starts", false)                 \
    X(ADMIT_COOLDOWN, "cooldown", false)             \
    X(ADMIT_BUDGET, "budget", false)                 \
    X(ADMIT_DOMAIN, "domain", false)                 \
    X(ADMIT_LAST_OF_ROLE, "last_of_role", false)
enum admission_code {
#define ADMISSION_ENUM(sym, name, hard) sym,
    ADMISSION_TABLE(ADMISSION_ENUM)
#undef ADMISSION_ENUM
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

/* All reasons at once, in the order of the table, hard ones first. Pure. */
void admission_decide(const struct policy *policy, const struct admission_counters *counters,
                      struct admission *ret_admission);
const char *admission_code_name(enum admission_code code);
/* How many repairs may run at once: min(max(1, percent), max), shrinking linearly to 0 when
 * unhealthy_stop_percent of the nodes are down; a node under repair counts as down. */
int64_t admission_max_running(const struct policy *policy, int64_t nodes, int64_t down);
/* How many may start in an hour. */
int64_t admission_max_starts(const struct policy *policy, int64_t nodes);
/* So many nodes with the same check and code hold that kind. */
int64_t admission_same_kind_hold(const struct policy *policy, int64_t nodes);
/* Checks of the catalog behind which a switch, a file server, power or a scheduler may stand;
 * separated by commas. */
#define ADMISSION_SHARED_CAUSES \
    "ib_link,eth_link,nfs,gpu_power_brake,slurm_node_state,fabric_manager,node_silent"
bool admission_shared_cause(struct str check_id);
/* Checks whose faults an installation can mend: software, and what is on a disk. The others are
 * hardware. */
#define ADMISSION_REINSTALLS                                                                    \
    "gpu_init,driver_mismatch,driver_not_loaded,slurm_node_state,service,fs_error,fs_readonly," \
    "disk_full"
bool admission_reinstallable(struct str check_id);
/* Nearly all nodes are silent: it is rather us who are cut off. */
bool admission_cut_off(int64_t seen, int64_t silent);

/* ------------------------------------------------------------------ the breaker */
#define BREAKER_FAILURES_SECONDS 21600 /* a true month of 1,000 nodes has five acts a day */

struct breaker_counters {
    int64_t nodes;
    int64_t newly_unhealthy; /* in breaker_seconds, without shared causes, since the last reset */
    /* at most the last five that policies decided, within BREAKER_FAILURES_SECONDS, since the reset
     */
    int64_t automatic_ended;
    int64_t automatic_failed;
};

/* Whether the breaker opens; the sentence says why. It closes by a person's word only. Pure. */
bool breaker_trips(const struct policy *policy, const struct breaker_counters *counters,
                   char ret_text[ADMISSION_TEXT_MAX]);

#endif
