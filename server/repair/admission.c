/* Limits of repairs that start by themselves, one function a reason, and the breaker's rules. */
#include "server/repair/admission.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"

/* Three silent neighbours are one switch or one power row rather than three broken nodes. */
#define SILENT_NEIGHBOURS 3
#define CUT_OFF_PERCENT 90

static const char *const reaches[] = {
    [REACH_NONE] = "",
    [REACH_PLATFORM] = "everywhere",
    [REACH_ORG] = "in this organization",
    [REACH_CLUSTER] = "in this cluster",
    [REACH_NODE] = "on this node",
};

int64_t admission_max_running(const struct policy *policy, int64_t nodes, int64_t down)
{
    int64_t stop = policy->unhealthy_stop_percent;

    if (nodes <= 0 || down * 100 >= nodes * stop) {
        return 0;
    }
    int64_t base = nodes * policy->concurrency_percent / 100;
    base = base < 1 ? 1 : base;
    base = base > policy->concurrency_max ? policy->concurrency_max : base;
    /* base * (1 - share / stop), rounded up so that a small cluster keeps its one until the stop */
    int64_t left = nodes * stop - down * 100;
    int64_t whole = nodes * stop;
    return (base * left + whole - 1) / whole;
}

int64_t admission_max_starts(const struct policy *policy, int64_t nodes)
{
    int64_t share = nodes * policy->starts_percent / 100;

    return share > policy->starts_min ? share : policy->starts_min;
}

int64_t admission_same_kind_hold(const struct policy *policy, int64_t nodes)
{
    int64_t share = (nodes * policy->same_kind_permille + 999) / 1000;

    return share > policy->same_kind_min ? share : policy->same_kind_min;
}

static bool is_listed(struct str rest, struct str check_id)
{
    struct str name;

    while (rest.len > 0 && str_split(&rest, ',', &name)) {
        if (str_eq(name, check_id)) {
            return true;
        }
    }
    return false;
}

bool admission_shared_cause(struct str check_id)
{
    return is_listed(STR(ADMISSION_SHARED_CAUSES), check_id);
}

bool admission_reinstallable(struct str check_id)
{
    return is_listed(STR(ADMISSION_REINSTALLS), check_id);
}

bool admission_cut_off(int64_t seen, int64_t silent)
{
    return seen > 1 && silent * 100 >= seen * CUT_OFF_PERCENT;
}

/* ------------------------------------------------------------------ reasons */
typedef bool holds(const struct policy *p, const struct admission_counters *c, char *text);

#define SAY(...) ((void)snprintf(text, ADMISSION_TEXT_MAX, __VA_ARGS__), true)

static bool no_executor(const struct policy *p, const struct admission_counters *c, char *text)
{
    (void)p;
    return !c->has_executor && SAY("Nothing here can carry this action out.");
}

static bool not_joined(const struct policy *p, const struct admission_counters *c, char *text)
{
    (void)p;
    return !c->node_joined && SAY("No agent has joined from this node.");
}

static bool no_spare(const struct policy *p, const struct admission_counters *c, char *text)
{
    (void)p;
    return c->action == ACTION_FAILOVER && c->has_executor && c->spares <= 0 &&
           SAY("No spare is left in this cluster's pool.");
}

static bool stopped(const struct policy *p, const struct admission_counters *c, char *text)
{
    (void)p;
    return c->stopped != REACH_NONE && SAY("A person stopped all repairs %s.", reaches[c->stopped]);
}

static bool policy_broken(const struct policy *p, const struct admission_counters *c, char *text)
{
    (void)c;
    return p->broken && SAY("The policy cannot be read. Save it again.");
}

static bool automation_off(const struct policy *p, const struct admission_counters *c, char *text)
{
    (void)p;
    return c->mode == POLICY_CONFIRM && SAY("Automation is off for this fault: a person decides.");
}

static bool warn_only(const struct policy *p, const struct admission_counters *c, char *text)
{
    (void)p;
    return c->mode == POLICY_WARN && SAY("The policy only warns of this fault.");
}

static bool action_held(const struct policy *p, const struct admission_counters *c, char *text)
{
    bool may = c->action != ACTION_REMOVE && (p->actions & (1u << c->action)) != 0;

    return !may && SAY("The policy starts no %s by itself.", action_info(c->action)->words);
}

static bool fault_kind(const struct policy *p, const struct admission_counters *c, char *text)
{
    (void)p;
    return c->action == ACTION_REPROVISION && !c->reinstallable &&
           SAY("An installation mends software and what is on a disk, no hardware.");
}

static bool node_off(const struct policy *p, const struct admission_counters *c, char *text)
{
    (void)p;
    return !c->auto_repair && SAY("Automatic repair is switched off for this node.");
}

static bool breaker(const struct policy *p, const struct admission_counters *c, char *text)
{
    (void)p;
    return c->breaker_open != REACH_NONE &&
           SAY("The breaker is open %s.", reaches[c->breaker_open]);
}

static bool waited(const struct policy *p, const struct admission_counters *c, char *text)
{
    (void)p;
    return c->waited && SAY("It was proposed before the breaker was reset or the stop was lifted.");
}

static bool cut_off(const struct policy *p, const struct admission_counters *c, char *text)
{
    (void)p;
    return admission_cut_off(c->seen, c->silent) &&
           SAY("%" PRId64 " of %" PRId64 " nodes are silent: rather the server is cut off.",
               c->silent, c->seen);
}

static bool shared_silence(const struct policy *p, const struct admission_counters *c, char *text)
{
    (void)p;
    return c->domain_silent >= SILENT_NEIGHBOURS &&
           SAY("%" PRId64 " nodes of its rack or leaf are silent: rather a shared cause.",
               c->domain_silent);
}

static bool settling(const struct policy *p, const struct admission_counters *c, char *text)
{
    return c->shared_cause && c->fault_seconds_ago >= 0 &&
           c->fault_seconds_ago < p->settle_seconds &&
           SAY("The fault is %" PRId64 " s old; its cause may be shared, so %" PRId64
               " s are waited for neighbours.",
               c->fault_seconds_ago, p->settle_seconds);
}

static bool common_cause(const struct policy *p, const struct admission_counters *c, char *text)
{
    (void)p;
    return c->held &&
           SAY("Its fault belongs to a cause that many nodes share; that is mended first.");
}

static bool same_kind(const struct policy *p, const struct admission_counters *c, char *text)
{
    int64_t hold = admission_same_kind_hold(p, c->nodes);

    return c->same_kind >= hold && SAY("%" PRId64 " nodes have this fault within %" PRId64
                                       " s; from %" PRId64 " on its kind is held.",
                                       c->same_kind, p->same_kind_seconds, hold);
}

static bool lemon(const struct policy *p, const struct admission_counters *c, char *text)
{
    return c->incidents >= p->lemon_incidents &&
           SAY("%" PRId64 " faults of this node in %" PRId64 " days: a person decides.",
               c->incidents, p->lemon_days);
}

static bool window(const struct policy *p, const struct admission_counters *c, char *text)
{
    return !policy_window_open(p, c->weekday, c->minute) &&
           SAY("It is outside the policy's hours (%.*s).", STR_FMT(p->time_zone));
}

static bool concurrency(const struct policy *p, const struct admission_counters *c, char *text)
{
    int64_t max = admission_max_running(p, c->nodes, c->down);

    return c->running >= max && SAY("%" PRId64 " repairs run in this cluster, at most %" PRId64
                                    " may while %" PRId64 " of %" PRId64 " nodes are down.",
                                    c->running, max, c->down, c->nodes);
}

static bool starts(const struct policy *p, const struct admission_counters *c, char *text)
{
    int64_t max = admission_max_starts(p, c->nodes);

    return c->starts >= max &&
           SAY("%" PRId64 " repairs started within an hour, at most %" PRId64 " may.", c->starts,
               max);
}

static bool cooldown(const struct policy *p, const struct admission_counters *c, char *text)
{
    return c->ended_seconds_ago >= 0 && c->ended_seconds_ago < p->cooldown_seconds &&
           SAY("This node's last repair ended %" PRId64 " s ago; it rests for %" PRId64 " s.",
               c->ended_seconds_ago, p->cooldown_seconds);
}

static bool budget(const struct policy *p, const struct admission_counters *c, char *text)
{
    int64_t max = policy_attempts(p, c->action);

    if (c->follows != NULL) {
        return SAY("It comes after used-up attempts to %s in 7 days: a person decides.",
                   c->follows);
    }
    return c->attempt > max && SAY("This would be attempt %" PRId64 " in 7 days; at most %" PRId64
                                   " start by themselves.",
                                   c->attempt, max);
}

static bool domain(const struct policy *p, const struct admission_counters *c, char *text)
{
    return c->domain_running >= p->domain_max &&
           SAY("%" PRId64 " repairs run in its rack or leaf, at most %" PRId64 " may.",
               c->domain_running, p->domain_max);
}

static bool last_of_role(const struct policy *p, const struct admission_counters *c, char *text)
{
    (void)p;
    return c->last_of_role && SAY("No other healthy node has its role.");
}

static const struct {
    const char *name;
    bool hard;
} rows[ADMIT_CODE_COUNT] = {
#define ADMISSION_ROW(sym, name, hard) [sym] = {name, hard},
    ADMISSION_TABLE(ADMISSION_ROW)
#undef ADMISSION_ROW
};

static holds *const rules[ADMIT_CODE_COUNT] = {
    [ADMIT_NO_EXECUTOR] = no_executor,
    [ADMIT_NOT_JOINED] = not_joined,
    [ADMIT_NO_SPARE] = no_spare,
    [ADMIT_STOPPED] = stopped,
    [ADMIT_POLICY_BROKEN] = policy_broken,
    [ADMIT_AUTOMATION_OFF] = automation_off,
    [ADMIT_WARN_ONLY] = warn_only,
    [ADMIT_ACTION] = action_held,
    [ADMIT_FAULT_KIND] = fault_kind,
    [ADMIT_NODE_OFF] = node_off,
    [ADMIT_BREAKER] = breaker,
    [ADMIT_WAITED] = waited,
    [ADMIT_CUT_OFF] = cut_off,
    [ADMIT_SHARED_SILENCE] = shared_silence,
    [ADMIT_SETTLING] = settling,
    [ADMIT_COMMON_CAUSE] = common_cause,
    [ADMIT_SAME_KIND] = same_kind,
    [ADMIT_LEMON] = lemon,
    [ADMIT_WINDOW] = window,
    [ADMIT_CONCURRENCY] = concurrency,
    [ADMIT_STARTS] = starts,
    [ADMIT_COOLDOWN] = cooldown,
    [ADMIT_BUDGET] = budget,
    [ADMIT_DOMAIN] = domain,
    [ADMIT_LAST_OF_ROLE] = last_of_role,
};

const char *admission_code_name(enum admission_code code)
{
    assert(code < ADMIT_CODE_COUNT);
    return rows[code].name;
}

void admission_decide(const struct policy *policy, const struct admission_counters *counters,
                      struct admission *ret_admission)
{
    struct admission *out = ret_admission;

    out->count = 0;
    out->max_running = admission_max_running(policy, counters->nodes, counters->down);
    for (size_t i = 0; i < ADMIT_CODE_COUNT; i++) {
        struct admission_reason *reason = &out->reasons[out->count];
        if (rules[i](policy, counters, reason->text)) {
            reason->code = (enum admission_code)i;
            reason->hard = rows[i].hard;
            out->count++;
        }
    }
}

bool breaker_trips(const struct policy *policy, const struct breaker_counters *counters,
                   char ret_text[ADMISSION_TEXT_MAX])
{
    const struct breaker_counters *c = counters;
    char *text = ret_text;

    if (c->newly_unhealthy >= policy->breaker_floor &&
        c->newly_unhealthy * 100 >= c->nodes * policy->breaker_percent) {
        return SAY("%" PRId64 " of %" PRId64 " nodes became unhealthy within %" PRId64 " s.",
                   c->newly_unhealthy, c->nodes, policy->breaker_seconds);
    }
    if (policy->breaker_failures > 0 && c->automatic_failed >= policy->breaker_failures) {
        return SAY("%" PRId64 " of the last %" PRId64 " automatic repairs failed.",
                   c->automatic_failed, c->automatic_ended);
    }
    return false;
}
