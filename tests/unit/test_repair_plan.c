/* Promises of server/repair/plan.h. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <string.h>

#include "server/config.h"
#include "server/repair/plan.h"

struct config config;

static struct repair_facts facts_of_a_lost_gpu(void)
{
    struct repair_facts facts = {
        .has_boot = true,
        .node_name = STR("gpu-17-03"),
        .healthy_now = false,
        .joined = true,
        .auto_repair = true,
        .healthy_delay_s = 600,
        .begin_within_s = 1800,
        .rejoin_within_s = 1800,
        .nodes = 100,
        .healthy = 99,
        .down = 1,
        .ended_seconds_ago = -1,
        .incident_ids = STR("01970000-0000-7000-8000-000000000001"),
        .has_main = true,
        .wanted = ACTION_REBOOT,
        .failed = -1,
        .summary = STR("GPU 0000:bb:00 fell off the bus (Xid 79)"),
        .evidence = STR("[{\"no\":1}]"),
        .check_id = STR("gpu_lost"),
        .code = STR("79"),
        .policy_tag = STR("default"),
        .counters = {.nodes = 100,
                     .down = 1,
                     .ended_seconds_ago = -1,
                     .incidents = 1,
                     .node_joined = true,
                     .auto_repair = true},
    };
    facts.node_id.bytes[15] = 1;
    facts.boot_id.bytes[15] = 2;
    return facts;
}

static bool same_hash(const struct repair_facts *a, enum repair_action action_a,
                      const struct repair_facts *b, enum repair_action action_b)
{
    char hash_a[65];
    char hash_b[65];

    repair_plan_hash(a, action_a, hash_a);
    repair_plan_hash(b, action_b, hash_b);
    return strcmp(hash_a, hash_b) == 0;
}

static bool held_as(const struct admission *admission, enum admission_code code)
{
    for (size_t i = 0; i < admission->count; i++) {
        if (admission->reasons[i].code == code) {
            return true;
        }
    }
    return false;
}

Test(repair_plan, the_hash_changes_with_everything_a_decision_is_bound_to)
{
    struct repair_facts base = facts_of_a_lost_gpu();
    struct repair_facts f = base;

    cr_assert(same_hash(&base, ACTION_REBOOT, &f, ACTION_REBOOT));
    cr_assert_not(same_hash(&base, ACTION_REBOOT, &f, ACTION_POWER_CYCLE));
    f.node_id.bytes[0] ^= 1;
    cr_assert_not(same_hash(&base, ACTION_REBOOT, &f, ACTION_REBOOT));
    f = base;
    f.boot_id.bytes[0] ^= 1;
    cr_assert_not(same_hash(&base, ACTION_REBOOT, &f, ACTION_REBOOT));
    f = base;
    f.has_boot = false;
    cr_assert_not(same_hash(&base, ACTION_REBOOT, &f, ACTION_REBOOT));
    f = base;
    f.incident_ids = STR("01970000-0000-7000-8000-000000000002");
    cr_assert_not(same_hash(&base, ACTION_REBOOT, &f, ACTION_REBOOT));
    f = base;
    f.healthy_delay_s++;
    cr_assert_not(same_hash(&base, ACTION_REBOOT, &f, ACTION_REBOOT));
    f = base;
    f.begin_within_s++;
    cr_assert_not(same_hash(&base, ACTION_REBOOT, &f, ACTION_REBOOT));
    f = base;
    f.rejoin_within_s++;
    cr_assert_not(same_hash(&base, ACTION_REBOOT, &f, ACTION_REBOOT));
    f = base;
    f.policy_tag = STR("01970000-0000-7000-8000-000000000009 2");
    cr_assert_not(same_hash(&base, ACTION_REBOOT, &f, ACTION_REBOOT));
}

Test(repair_plan, the_hash_does_not_change_with_counts_and_limits)
{
    struct repair_facts base = facts_of_a_lost_gpu();
    struct repair_facts f = base;

    f.running = 7;
    f.healthy = 50;
    f.attempts[ACTION_REBOOT] = 2;
    f.evidence = STR("[{\"no\":1,\"count\":99}]");
    f.ended_seconds_ago = 5;
    cr_assert(same_hash(&base, ACTION_REBOOT, &f, ACTION_REBOOT));
}

Test(repair_plan, the_action_is_what_the_incidents_ask_for)
{
    struct repair_facts facts = facts_of_a_lost_gpu();
    struct policy policy = policy_default(1800);
    enum repair_action action;

    cr_assert(repair_action_choose(&facts, &policy, &action));
    cr_assert_eq(action, ACTION_REBOOT);
    facts.wanted = -1;
    cr_assert_not(repair_action_choose(&facts, &policy, &action));
}

Test(repair_plan, what_failed_is_followed_by_the_next_rung_and_then_by_a_person)
{
    struct repair_facts facts = facts_of_a_lost_gpu();
    struct policy policy = policy_default(1800);
    enum repair_action action;

    facts.failed = ACTION_REBOOT;
    cr_assert(repair_action_choose(&facts, &policy, &action));
    cr_assert_eq(action, ACTION_POWER_CYCLE);
    facts.failed = ACTION_POWER_CYCLE;
    cr_assert_not(repair_action_choose(&facts, &policy, &action));
    facts.wanted = ACTION_REMOVE; /* a worse fault came */
    cr_assert(repair_action_choose(&facts, &policy, &action));
    cr_assert_eq(action, ACTION_REMOVE);
}

/* Two reboots helped for a while, and the fault is back. */
static struct repair_facts facts_of_a_fault_that_returns(void)
{
    struct repair_facts facts = facts_of_a_lost_gpu();

    facts.owner = MACHINE_OF_CONTROLLER;
    facts.attempts[ACTION_REBOOT] = 2;
    return facts;
}

Test(repair_plan, used_up_attempts_lead_to_the_next_rung_that_something_can_carry_out)
{
    struct repair_facts facts = facts_of_a_fault_that_returns();
    struct policy policy = policy_default(1800);
    enum repair_action action;

    cr_assert(repair_action_choose(&facts, &policy, &action));
    cr_assert_eq(action, ACTION_POWER_CYCLE);
    facts.owner = MACHINE_OF_NOBODY;
    cr_assert(repair_action_choose(&facts, &policy, &action));
    cr_assert_eq(action, ACTION_REBOOT, "nothing here can cut its power");
    facts.owner = MACHINE_OF_CONTROLLER;
    policy.attempts_reboot = 0;
    cr_assert(repair_action_choose(&facts, &policy, &action));
    cr_assert_eq(action, ACTION_REBOOT, "never by itself is not used up");
}

Test(repair_plan, the_rungs_end_and_the_last_is_a_persons)
{
    struct repair_facts facts = facts_of_a_fault_that_returns();
    struct policy policy = policy_default(1800);
    struct admission admission;
    enum repair_action action;

    facts.wanted = ACTION_RESET_GPU;
    facts.attempts[ACTION_RESET_GPU] = 2;
    facts.attempts[ACTION_POWER_CYCLE] = 1;
    cr_assert(repair_action_choose(&facts, &policy, &action));
    cr_assert_eq(action, ACTION_POWER_CYCLE);
    repair_judge(&facts, &policy, action, &admission);
    cr_assert(held_as(&admission, ADMIT_BUDGET));
}

Test(repair_plan, what_follows_used_up_attempts_never_starts_by_itself)
{
    struct repair_facts facts = facts_of_a_fault_that_returns();
    struct policy policy = policy_default(1800);
    struct admission admission;

    repair_judge(&facts, &policy, ACTION_POWER_CYCLE, &admission);
    cr_assert(held_as(&admission, ADMIT_BUDGET));
    facts.has_open = true;
    facts.open_requested_by = STR("muster");
    facts.attempts[ACTION_REBOOT] = 0;
    repair_judge(&facts, &policy, ACTION_POWER_CYCLE, &admission);
    cr_assert(held_as(&admission, ADMIT_BUDGET), "not after the 7 days either");
    facts.failed = ACTION_REBOOT;
    repair_judge(&facts, &policy, ACTION_POWER_CYCLE, &admission);
    cr_assert_not(held_as(&admission, ADMIT_BUDGET), "the reboot failed: it is its turn");
}

Test(repair_plan, a_plan_says_whose_attempts_are_used_up)
{
    struct arena *arena = arena_new(1 << 20);
    struct repair_facts facts = facts_of_a_fault_that_returns();
    struct repair_plan plan;

    repair_plan_build(arena, &facts, ACTION_POWER_CYCLE, 1800, 0, &plan);
    cr_assert_not_null(strstr(plan.reason, "used up: reboot. A person decides."), "%s",
                       plan.reason);
    facts.attempts[ACTION_REBOOT] = 1;
    repair_plan_build(arena, &facts, ACTION_REBOOT, 1800, 0, &plan);
    cr_assert_null(strstr(plan.reason, "used up"), "%s", plan.reason);
    arena_free(arena);
}

Test(repair_plan, the_plan_is_json_with_everything_that_is_shown)
{
    struct repair_facts facts = facts_of_a_lost_gpu();
    struct arena *arena = arena_new(1 << 20);
    struct repair_plan plan;

    facts.attempts[ACTION_REBOOT] = 1;
    repair_plan_build(arena, &facts, ACTION_REBOOT, 1800, 0, &plan);
    cr_assert_eq(plan.attempt, 2);
    cr_assert_str_eq(plan.executor, "agent");
    cr_assert_eq(strlen(plan.hash), 64);
    json_t *json = json_loads(plan.json.ptr, 0, NULL);
    cr_assert_not_null(json);
    static const char *const keys[] = {
        "node",     "boot_id", "action", "keeps", "loses",   "evidence", "jobs",
        "capacity", "domain",  "limits", "rule",  "made_at", "policy",   "seconds_expected"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        cr_assert_not_null(json_object_get(json, keys[i]), "%s", keys[i]);
    }
    cr_assert(json_is_null(json_object_get(json, "loses")));
    json_t *limits = json_object_get(json, "limits");
    cr_assert_eq(json_integer_value(json_object_get(limits, "attempt")), 2);
    json_t *first = json_array_get(json_object_get(limits, "why_not"), 0);
    cr_assert_str_eq(json_string_value(json_object_get(first, "code")), "automation_off");
    json_decref(json);
    arena_free(arena);
}

Test(repair_plan, an_action_without_executor_says_so)
{
    struct repair_facts facts = facts_of_a_lost_gpu();
    struct arena *arena = arena_new(1 << 20);
    struct repair_plan plan;

    repair_plan_build(arena, &facts, ACTION_POWER_CYCLE, 1800, 0, &plan);
    cr_assert_null(plan.executor);
    arena_free(arena);
}
