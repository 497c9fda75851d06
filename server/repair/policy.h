/* A policy: which repairs start by themselves, when, and how many at once. Pure: text in, struct
 * out. */
#ifndef SERVER_REPAIR_POLICY_H
#define SERVER_REPAIR_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/decode.h"
#include "base/encode.h"
#include "base/str.h"
#include "server/repair/action.h"

enum policy_mode {
    POLICY_CONFIRM,   /* a person decides */
    POLICY_AUTOMATIC, /* the policy decides, when admission has no reason against it */
    POLICY_WARN       /* nothing starts by itself, and nobody is asked to hurry */
};

enum policy_idle {
    IDLE_NEVER_INTERRUPT, /* a job that outlives the wait ends the repair, not the job */
    IDLE_GRACE            /* after the wait the job has a grace period, then it is ended */
};

/* Days are bits, Monday is 1 << 0; minutes are of the day. to <= from ends on the next day. */
struct policy_window {
    unsigned days;
    int from;
    int to;
};

#define POLICY_WINDOWS_MAX 14
#define POLICY_FAULTS_MAX 64

/*
 * X(name in JSON and C, lowest, highest, default). A month of 1,000 nodes at the public failure
 * rates has at most 7 repairs at once and 4 starts in an hour, so the defaults bind only when
 * something is wrong; a bad check that flags every node over an hour is stopped by same_kind only.
 *
 * idle_wait: how long jobs may run on. concurrency: min(max(1, percent), max), shrinking to 0 at
 * unhealthy_stop. starts: an hour, max(min, percent). same_kind: that many nodes with the same
 * check and code hold their kind. domain_max: repairs at once in one rack or leaf. lemon: so many
 * incidents in so many days leave the node to a person. settle: from the fault to the first start,
 * so that neighbours can speak. attempts: in 7 days, for one node and check. breaker: that share of
 * the nodes newly unhealthy in the time, or so many failures of the last five automatic repairs
 * within six hours (0 = not looked at): a step of the ladder cures 4 to 7 of 10 faults, so that
 * three of five fail every other day is nothing unusual.
 */
#define POLICY_NUMBER_TABLE(X)               \
    X(idle_wait_seconds, 0, 2592000, 604800) \
    X(grace_seconds, 0, 86400, 300)          \
    X(concurrency_percent, 0, 100, 2)        \
    X(concurrency_max, 0, 1000, 20)          \
    X(unhealthy_stop_percent, 1, 100, 20)    \
    X(starts_percent, 0, 100, 1)             \
    X(starts_min, 0, 1000, 2)                \
    X(same_kind_permille, 1, 1000, 5)        \
    X(same_kind_min, 2, 1000, 5)             \
    X(same_kind_seconds, 60, 86400, 3600)    \
    X(domain_max, 1, 1000, 1)                \
    X(lemon_incidents, 1, 1000, 3)           \
    X(lemon_days, 1, 90, 30)                 \
    X(cooldown_seconds, 0, 604800, 1800)     \
    X(settle_seconds, 0, 3600, 90)           \
    X(attempts_reset_gpu, 0, 20, 2)          \
    X(attempts_reboot, 0, 20, 2)             \
    X(attempts_power_cycle, 0, 20, 1)        \
    X(attempts_reprovision, 0, 20, 1)        \
    X(attempts_failover, 0, 20, 1)           \
    X(breaker_percent, 1, 100, 20)           \
    X(breaker_floor, 1, 1000, 3)             \
    X(breaker_seconds, 10, 86400, 300)       \
    X(breaker_failures, 0, 5, 5)

struct policy {
    enum policy_mode mode; /* of faults that no list names */
    /* "check" or "check:code"; the latter is more specific and wins */
    struct str_list automatic;
    struct str_list confirm;
    struct str_list warn;
    unsigned actions; /* those that may start by themselves, bits 1 << enum repair_action */
    struct policy_window windows[POLICY_WINDOWS_MAX];
    size_t windows_count; /* 0 = always */
    struct str_list window_texts;
    struct str time_zone; /* IANA name */
    enum policy_idle idle;
    unsigned second_approver; /* actions that need two people, bits */
    bool dry_run;             /* decides and tells, starts nothing */
    bool broken;              /* it could not be read: nothing starts by it */
#define POLICY_MEMBER(name, low, high, fallback) int64_t name;
    POLICY_NUMBER_TABLE(POLICY_MEMBER)
};

/* What a body or a stored policy decodes into. */
struct policy_in {
    struct str cluster_id; /* only when it is made */
    struct str node_id;
    struct str mode;
    struct str_list automatic;
    struct str_list confirm;
    struct str_list warn;
    struct str_list actions;
    struct str_list windows;
    struct str time_zone;
    struct str idle;
    struct str_list second_approver;
    bool dry_run;
    POLICY_NUMBER_TABLE(POLICY_MEMBER)
#undef POLICY_MEMBER
#define POLICY_HAS(name, low, high, fallback) bool has_##name;
    POLICY_NUMBER_TABLE(POLICY_HAS)
#undef POLICY_HAS
    bool has_cluster_id;
    bool has_node_id;
    bool has_mode;
    bool has_automatic;
    bool has_confirm;
    bool has_warn;
    bool has_actions;
    bool has_windows;
    bool has_time_zone;
    bool has_idle;
    bool has_second_approver;
    bool has_dry_run;
};
extern const struct field policy_create_body[];
extern const struct field policy_update_body[]; /* the settings; also those that are stored */

/* What holds where nobody wrote a policy: people decide, with the default limits. */
struct policy policy_default(int64_t cooldown_seconds);
/* Lays what was given over *policy. Adds what is wrong to `errors` (pointers as in a body); false
 * then. Text lives in the arena. */
bool policy_apply(struct arena *arena, const struct policy_in *in, struct decode_errors *errors,
                  struct policy *policy) MUST_CHECK;
/* A stored policy. One that cannot be read is the default with `broken` set, and confirms. */
struct policy policy_read(struct arena *arena, struct str settings, int64_t cooldown_seconds);
/* All settings as one JSON object. */
void policy_write(struct enc *enc, const struct policy *policy);

/* In 7 days; a removal is never tried by itself. */
int64_t policy_attempts(const struct policy *policy, enum repair_action action);
/* A fault as lists name it, "gpu_xid:119" or "custom:fan": takes its check off and leaves its code.
 * False when there is none. */
bool policy_splits(struct str *rest, struct str *ret_check) MUST_CHECK;
enum policy_mode policy_mode_for(const struct policy *policy, struct str check_id, struct str code);
const char *policy_mode_name(enum policy_mode mode);
/* weekday 0 = Monday, minute of the day, both in the policy's time zone. */
bool policy_window_open(const struct policy *policy, int weekday, int minute);

#endif
