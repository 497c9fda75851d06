/* Limits of repairs that start by themselves. */
#include "server/repair/admission.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"

static const char *const names[ADMIT_CODE_COUNT] = {
    [ADMIT_NO_EXECUTOR] = "no_executor",
    [ADMIT_NOT_JOINED] = "not_joined",
    [ADMIT_AUTOMATION_OFF] = "automation_off",
    [ADMIT_NODE_OFF] = "node_off",
    [ADMIT_CONCURRENCY] = "concurrency",
    [ADMIT_COOLDOWN] = "cooldown",
    [ADMIT_BUDGET] = "budget",
    [ADMIT_DOMAIN] = "domain",
};

/* 1,000 nodes never had more than 7 repairs at once in a month's model, so 2 % is ample. */
#define SHARE_PERCENT 2
#define RUNNING_CAP 20
#define DOWN_STOP_PERCENT 20

const char *admission_code_name(enum admission_code code)
{
    assert(code < ADMIT_CODE_COUNT);
    return names[code];
}

int64_t admission_max_running(int64_t nodes, int64_t down)
{
    if (nodes <= 0 || down * 100 >= nodes * DOWN_STOP_PERCENT) {
        return 0;
    }
    int64_t base = nodes * SHARE_PERCENT / 100;
    base = base < 1 ? 1 : base;
    base = base > RUNNING_CAP ? RUNNING_CAP : base;
    /* base * (1 - share / 20 %), rounded up so that a small cluster keeps its one until the stop */
    int64_t left = nodes * DOWN_STOP_PERCENT - down * 100;
    int64_t whole = nodes * DOWN_STOP_PERCENT;
    return (base * left + whole - 1) / whole;
}

/* The new reason's text, to be written. */
static char *add(struct admission *admission, enum admission_code code, bool hard)
{
    assert(admission->count < ADMIT_CODE_COUNT);
    struct admission_reason *reason = &admission->reasons[admission->count++];

    reason->code = code;
    reason->hard = hard;
    return reason->text;
}

void admission_decide(const struct admission_counters *counters, struct admission *ret_admission)
{
    const struct admission_counters *c = counters;
    struct admission *out = ret_admission;

    out->count = 0;
    out->max_running = admission_max_running(c->nodes, c->down);
    if (!c->has_executor) {
        (void)snprintf(add(out, ADMIT_NO_EXECUTOR, true), ADMISSION_TEXT_MAX,
                       "Nothing here can carry this action out.");
    }
    if (!c->node_joined) {
        (void)snprintf(add(out, ADMIT_NOT_JOINED, true), ADMISSION_TEXT_MAX,
                       "No agent has joined from this node.");
    }
    if (!c->automation) {
        (void)snprintf(add(out, ADMIT_AUTOMATION_OFF, false), ADMISSION_TEXT_MAX,
                       "Automation is off: a person decides.");
    }
    if (!c->auto_repair) {
        (void)snprintf(add(out, ADMIT_NODE_OFF, false), ADMISSION_TEXT_MAX,
                       "Automatic repair is switched off for this node.");
    }
    if (c->running >= out->max_running) {
        (void)snprintf(add(out, ADMIT_CONCURRENCY, false), ADMISSION_TEXT_MAX,
                       "%" PRId64 " repairs run in this cluster, at most %" PRId64
                       " may while %" PRId64 " of %" PRId64 " nodes are down.",
                       c->running, out->max_running, c->down, c->nodes);
    }
    if (c->ended_seconds_ago >= 0 && c->ended_seconds_ago < c->cooldown_seconds) {
        (void)snprintf(add(out, ADMIT_COOLDOWN, false), ADMISSION_TEXT_MAX,
                       "This node's last repair ended %" PRId64 " s ago; it rests for %" PRId64
                       " s.",
                       c->ended_seconds_ago, c->cooldown_seconds);
    }
    if (c->attempt > c->attempts_max) {
        (void)snprintf(add(out, ADMIT_BUDGET, false), ADMISSION_TEXT_MAX,
                       "This would be attempt %" PRId64 " in 7 days; at most %" PRId64
                       " start by themselves.",
                       c->attempt, c->attempts_max);
    }
    if (c->others_down > 0) {
        (void)snprintf(add(out, ADMIT_DOMAIN, false), ADMISSION_TEXT_MAX,
                       "%" PRId64 " other nodes of its rack or leaf are down.", c->others_down);
    }
}
