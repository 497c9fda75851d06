/* Promises of server/repair/admission.h: each reason by its name and at its edge, and all at once.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "base/cleanup.h"
#include "server/repair/admission.h"

static const struct admission_counters fine = {
    .action = ACTION_REBOOT,
    .mode = POLICY_AUTOMATIC,
    .nodes = 1000,
    .down = 1,
    .same_kind = 1,
    .seen = 1000,
    .attempt = 1,
    .incidents = 1,
    .fault_seconds_ago = 5,
    .ended_seconds_ago = -1,
    .has_executor = true,
    .node_joined = true,
    .auto_repair = true,
};

static struct policy defaults(void)
{
    return policy_default(1800);
}

static bool held_by(const struct policy *policy, const struct admission_counters *counters,
                    enum admission_code code)
{
    struct admission admission;

    admission_decide(policy, counters, &admission);
    for (size_t i = 0; i < admission.count; i++) {
        if (admission.reasons[i].code == code) {
            return true;
        }
    }
    return false;
}

Test(admission, R7_the_limit_is_two_percent_at_least_one_at_most_twenty)
{
    static const struct {
        int64_t nodes;
        int64_t limit;
    } cases[] = {{0, 0}, {1, 1}, {49, 1}, {50, 1}, {100, 2}, {1000, 20}, {100000, 20}};
    struct policy p = defaults();

    for (size_t i = 0; i < COUNTOF(cases); i++) {
        cr_assert_eq(admission_max_running(&p, cases[i].nodes, 0), cases[i].limit, "%d nodes",
                     (int)cases[i].nodes);
    }
}

Test(admission, R7_the_limit_never_grows_with_the_share_that_is_down_and_is_zero_at_a_fifth)
{
    static const int64_t sizes[] = {1, 5, 10, 64, 1000, 9999};
    struct policy p = defaults();

    for (size_t i = 0; i < COUNTOF(sizes); i++) {
        int64_t before = admission_max_running(&p, sizes[i], 0);
        for (int64_t down = 0; down <= sizes[i]; down++) {
            int64_t limit = admission_max_running(&p, sizes[i], down);
            cr_assert_leq(limit, before);
            cr_assert_geq(limit, 0);
            cr_assert_eq(limit == 0, down * 5 >= sizes[i], "%d of %d down", (int)down,
                         (int)sizes[i]);
            before = limit;
        }
    }
    cr_assert_eq(admission_max_running(&p, 1000, 100), 10);
}

Test(admission, nothing_in_the_way_gives_no_reason)
{
    struct admission admission;
    struct policy p = defaults();

    admission_decide(&p, &fine, &admission);
    cr_assert_eq(admission.count, 0, "%s", admission.reasons[0].text);
    cr_assert_eq(admission.max_running, 20);
}

/* A field of the counters, the value at which it holds, and the nearest at which it does not. */
static const struct {
    enum admission_code code;
    size_t offset;
    int64_t held;
    int64_t free;
} edges[] = {
    {ADMIT_CONCURRENCY, offsetof(struct admission_counters, running), 20, 19},
    {ADMIT_CONCURRENCY, offsetof(struct admission_counters, down), 200, 199},
    {ADMIT_STARTS, offsetof(struct admission_counters, starts), 10, 9},
    {ADMIT_SAME_KIND, offsetof(struct admission_counters, same_kind), 5, 4},
    {ADMIT_CUT_OFF, offsetof(struct admission_counters, silent), 900, 899},
    {ADMIT_DOMAIN, offsetof(struct admission_counters, domain_running), 1, 0},
    {ADMIT_SHARED_SILENCE, offsetof(struct admission_counters, domain_silent), 3, 2},
    {ADMIT_BUDGET, offsetof(struct admission_counters, attempt), 3, 2},
    {ADMIT_LEMON, offsetof(struct admission_counters, incidents), 3, 2},
    {ADMIT_COOLDOWN, offsetof(struct admission_counters, ended_seconds_ago), 1799, 1800},
    {ADMIT_COOLDOWN, offsetof(struct admission_counters, ended_seconds_ago), 0, -1},
};

Test(admission, each_limit_holds_by_its_own_name_at_its_edge)
{
    struct policy p = defaults();

    for (size_t i = 0; i < COUNTOF(edges); i++) {
        struct admission_counters c = fine;
        int64_t *field = (int64_t *)((char *)&c + edges[i].offset);
        *field = edges[i].held;
        cr_assert(held_by(&p, &c, edges[i].code), "row %zu holds", i);
        *field = edges[i].free;
        cr_assert_not(held_by(&p, &c, edges[i].code), "row %zu is free", i);
    }
}

static const struct {
    enum admission_code code;
    size_t offset;
    bool held;
} switches[] = {
    {ADMIT_NO_EXECUTOR, offsetof(struct admission_counters, has_executor), false},
    {ADMIT_NOT_JOINED, offsetof(struct admission_counters, node_joined), false},
    {ADMIT_NODE_OFF, offsetof(struct admission_counters, auto_repair), false},
    {ADMIT_WAITED, offsetof(struct admission_counters, waited), true},
    {ADMIT_LAST_OF_ROLE, offsetof(struct admission_counters, last_of_role), true},
    {ADMIT_SETTLING, offsetof(struct admission_counters, shared_cause), true},
    {ADMIT_COMMON_CAUSE, offsetof(struct admission_counters, held), true},
};

Test(admission, each_switch_holds_by_its_own_name)
{
    struct policy p = defaults();

    for (size_t i = 0; i < COUNTOF(switches); i++) {
        struct admission_counters c = fine;
        bool *field = (bool *)((char *)&c + switches[i].offset);
        *field = switches[i].held;
        cr_assert(held_by(&p, &c, switches[i].code), "row %zu", i);
        cr_assert_not(held_by(&p, &fine, switches[i].code), "row %zu", i);
    }
}

Test(admission, R9_R13_a_stop_and_an_open_breaker_hold_at_every_reach)
{
    struct policy p = defaults();

    for (int reach = REACH_PLATFORM; reach <= REACH_NODE; reach++) {
        struct admission_counters c = fine;
        c.stopped = (enum admission_reach)reach;
        cr_assert(held_by(&p, &c, ADMIT_STOPPED));
        c = fine;
        c.breaker_open = (enum admission_reach)reach;
        cr_assert(held_by(&p, &c, ADMIT_BREAKER));
    }
}

Test(admission, only_the_automatic_mode_starts_anything)
{
    struct policy p = defaults();
    struct admission_counters c = fine;

    c.mode = POLICY_CONFIRM;
    cr_assert(held_by(&p, &c, ADMIT_AUTOMATION_OFF));
    c.mode = POLICY_WARN;
    cr_assert(held_by(&p, &c, ADMIT_WARN_ONLY));
    p.broken = true;
    cr_assert(held_by(&p, &fine, ADMIT_POLICY_BROKEN));
}

Test(admission, R12_what_loses_data_needs_a_person_and_a_removal_always_does)
{
    struct policy p = defaults();
    struct admission_counters c = fine;

    c.action = ACTION_REPROVISION;
    cr_assert(held_by(&p, &c, ADMIT_ACTION));
    c.action = ACTION_FAILOVER;
    cr_assert(held_by(&p, &c, ADMIT_ACTION));
    p.actions = ACTION_ALL;
    cr_assert_not(held_by(&p, &c, ADMIT_ACTION));
    c.action = ACTION_REMOVE;
    cr_assert(held_by(&p, &c, ADMIT_ACTION));
    cr_assert(held_by(&p, &c, ADMIT_BUDGET), "no removal is within any budget");
}

Test(admission, windows_hold_outside_their_hours)
{
    struct policy p = defaults();
    struct admission_counters c = fine;

    p.windows[0] = (struct policy_window){.days = 1u << 4, .from = 22 * 60, .to = 6 * 60};
    p.windows_count = 1;
    c.weekday = 4;
    c.minute = 22 * 60;
    cr_assert_not(held_by(&p, &c, ADMIT_WINDOW));
    c.minute = 22 * 60 - 1;
    cr_assert(held_by(&p, &c, ADMIT_WINDOW));
    c.weekday = 5;
    c.minute = 6 * 60 - 1;
    cr_assert_not(held_by(&p, &c, ADMIT_WINDOW), "it began on the day before");
    c.minute = 6 * 60;
    cr_assert(held_by(&p, &c, ADMIT_WINDOW));
}

Test(admission, all_reasons_come_at_once_and_only_facts_and_stops_bind_a_person)
{
    struct policy p = defaults();
    struct admission admission;
    struct admission_counters c = {.action = ACTION_REMOVE,
                                   .held = true,
                                   .mode = POLICY_WARN,
                                   .nodes = 10,
                                   .down = 5,
                                   .running = 1,
                                   .starts = 99,
                                   .same_kind = 9,
                                   .seen = 10,
                                   .silent = 10,
                                   .domain_running = 2,
                                   .domain_silent = 4,
                                   .attempt = 9,
                                   .incidents = 9,
                                   .stopped = REACH_ORG,
                                   .breaker_open = REACH_CLUSTER,
                                   .waited = true,
                                   .shared_cause = true,
                                   .last_of_role = true};

    p.broken = true;
    p.windows[0] = (struct policy_window){.days = 1u << 3, .from = 0, .to = 1};
    p.windows_count = 1;
    admission_decide(&p, &c, &admission);
    /* a fault has one mode; spares are asked for a failover, the fault's kind for an installation */
    cr_assert_eq(admission.count, ADMIT_CODE_COUNT - 3);
    for (size_t i = 0; i < admission.count; i++) {
        enum admission_code code = admission.reasons[i].code;
        bool hard = code == ADMIT_NO_EXECUTOR || code == ADMIT_NOT_JOINED || code == ADMIT_STOPPED;
        cr_assert_eq(admission.reasons[i].hard, hard);
        cr_assert_neq(admission.reasons[i].text[0], '\0');
        cr_assert_lt(strlen(admission.reasons[i].text), ADMISSION_TEXT_MAX - 1, "%s is cut",
                     admission_code_name(code));
        cr_assert(i == 0 || code > admission.reasons[i - 1].code);
    }
}

Test(admission, R9_the_breaker_opens_at_its_share_but_not_below_its_floor)
{
    struct policy p = defaults();
    char why[ADMISSION_TEXT_MAX];
    static const struct {
        int64_t nodes;
        int64_t unhealthy;
        bool trips;
    } cases[] = {{1000, 199, false}, {1000, 200, true}, {5, 2, false}, {5, 3, true},
                 {15, 2, false},     {15, 3, true},     {16, 3, false}};

    for (size_t i = 0; i < COUNTOF(cases); i++) {
        struct breaker_counters c = {.nodes = cases[i].nodes,
                                     .newly_unhealthy = cases[i].unhealthy};
        cr_assert_eq(breaker_trips(&p, &c, why), cases[i].trips, "case %zu", i);
    }
}

Test(admission, R9_failures_of_the_last_automatic_repairs_open_the_breaker)
{
    struct policy p = defaults();
    char why[ADMISSION_TEXT_MAX];
    struct breaker_counters c = {.nodes = 1000, .automatic_ended = 5, .automatic_failed = 4};

    cr_assert_not(breaker_trips(&p, &c, why));
    c.automatic_failed = 5;
    cr_assert(breaker_trips(&p, &c, why));
    p.breaker_failures = 0;
    cr_assert_not(breaker_trips(&p, &c, why), "it is not looked at");
}
