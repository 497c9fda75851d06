/* Promises of server/repair/fsm.h and action.h. */
#include <criterion/criterion.h>
#include <string.h>

#include "server/repair/action.h"
#include "server/repair/fsm.h"

/* clang-format off */
/* One row a state, one column an event, in the order of the enums: the state it leads to, or nothing. */
static const char *const expected[REPAIR_STATE_COUNT][REPAIR_EVENT_COUNT] = {
    [REPAIR_PROPOSED] = {[REPAIR_ON_APPROVE] = "approved", [REPAIR_ON_REJECT] = "rejected", [REPAIR_ON_CANCEL] = "cancelled", [REPAIR_ON_RESOLVE] = "resolved", [REPAIR_ON_RESTORE] = "unknown"},
    [REPAIR_APPROVED] = {[REPAIR_ON_BEGIN] = "cordoning", [REPAIR_ON_LAPSE] = "proposed", [REPAIR_ON_CANCEL] = "cancelled", [REPAIR_ON_RESOLVE] = "resolved", [REPAIR_ON_RESTORE] = "unknown"},
    [REPAIR_CORDONING] = {[REPAIR_ON_CORDONED] = "draining", [REPAIR_ON_CANCEL] = "cancelled", [REPAIR_ON_RESOLVE] = "resolved", [REPAIR_ON_WITHDRAW] = "cancelled", [REPAIR_ON_RESTORE] = "unknown"},
    [REPAIR_DRAINING] = {[REPAIR_ON_DRAINED] = "acting", [REPAIR_ON_CANCEL] = "cancelled", [REPAIR_ON_RESOLVE] = "resolved", [REPAIR_ON_WITHDRAW] = "cancelled", [REPAIR_ON_RESTORE] = "unknown"},
    [REPAIR_ACTING] = {[REPAIR_ON_ACTED] = "rejoining", [REPAIR_ON_OCCUPIED] = "draining", [REPAIR_ON_RESOLVE] = "resolved", [REPAIR_ON_WITHDRAW] = "cancelled", [REPAIR_ON_FAIL] = "failed", [REPAIR_ON_LOST] = "unknown", [REPAIR_ON_RESTORE] = "unknown"},
    [REPAIR_REJOINING] = {[REPAIR_ON_REJOINED] = "verifying", [REPAIR_ON_FAIL] = "failed", [REPAIR_ON_LOST] = "unknown", [REPAIR_ON_RESTORE] = "unknown"},
    [REPAIR_VERIFYING] = {[REPAIR_ON_VERIFIED] = "succeeded", [REPAIR_ON_FAIL] = "failed", [REPAIR_ON_LOST] = "unknown", [REPAIR_ON_RESTORE] = "unknown"},
    [REPAIR_UNKNOWN] = {[REPAIR_ON_REJOINED] = "verifying", [REPAIR_ON_FAIL] = "failed", [REPAIR_ON_SETTLE_SUCCEEDED] = "succeeded", [REPAIR_ON_SETTLE_FAILED] = "failed"},
};
/* clang-format on */

Test(repair_fsm, every_pair_of_state_and_event_is_answered_as_written_down)
{
    for (int s = 0; s < REPAIR_STATE_COUNT; s++) {
        for (int e = 0; e < REPAIR_EVENT_COUNT; e++) {
            enum repair_state to = REPAIR_STATE_COUNT;
            bool possible = repair_step((enum repair_state)s, (enum repair_event)e, &to);
            const char *want = expected[s][e];
            cr_assert_eq(possible, want != NULL, "%s + %s", repair_state_name((enum repair_state)s),
                         repair_event_name((enum repair_event)e));
            if (want != NULL) {
                cr_assert_str_eq(repair_state_name(to), want);
            } else {
                cr_assert_eq(to, REPAIR_STATE_COUNT, "a refused event changes nothing");
            }
        }
    }
}

Test(repair_fsm, every_state_is_reachable_from_proposed)
{
    bool seen[REPAIR_STATE_COUNT] = {[REPAIR_PROPOSED] = true};

    for (int round = 0; round < REPAIR_STATE_COUNT; round++) {
        for (int s = 0; s < REPAIR_STATE_COUNT; s++) {
            for (int e = 0; seen[s] && e < REPAIR_EVENT_COUNT; e++) {
                enum repair_state to;
                if (repair_step((enum repair_state)s, (enum repair_event)e, &to)) {
                    seen[to] = true;
                }
            }
        }
    }
    for (int s = 0; s < REPAIR_STATE_COUNT; s++) {
        cr_assert(seen[s], "%s", repair_state_name((enum repair_state)s));
    }
}

Test(repair_fsm, ended_states_are_closed_and_open_ones_have_a_way_out)
{
    for (int s = 0; s < REPAIR_STATE_COUNT; s++) {
        bool ended = (repair_state_traits((enum repair_state)s) & REPAIR_ENDED) != 0;
        int ways = 0;
        for (int e = 0; e < REPAIR_EVENT_COUNT; e++) {
            enum repair_state to;
            ways += repair_step((enum repair_state)s, (enum repair_event)e, &to);
        }
        cr_assert_eq(ways == 0, ended, "%s", repair_state_name((enum repair_state)s));
    }
}

Test(repair_fsm, each_event_leads_to_one_state_and_its_list_names_where_it_is_possible)
{
    for (int e = 0; e < REPAIR_EVENT_COUNT; e++) {
        struct repair_list list = repair_event_from((enum repair_event)e);
        cr_assert_gt(strlen(list.text), 2, "%s happens nowhere",
                     repair_event_name((enum repair_event)e));
        for (int s = 0; s < REPAIR_STATE_COUNT; s++) {
            enum repair_state to;
            bool possible = repair_step((enum repair_state)s, (enum repair_event)e, &to);
            if (possible) {
                cr_assert_eq(to, repair_event_to((enum repair_event)e));
            }
            cr_assert_eq(strstr(list.text, repair_state_name((enum repair_state)s)) != NULL,
                         possible, "%s in %s", repair_state_name((enum repair_state)s), list.text);
        }
    }
}

Test(repair_fsm, nothing_irreversible_can_be_cancelled)
{
    for (int s = 0; s < REPAIR_STATE_COUNT; s++) {
        enum repair_state to;
        if ((repair_state_traits((enum repair_state)s) & REPAIR_ACTED) != 0) {
            cr_assert_not(repair_step((enum repair_state)s, REPAIR_ON_CANCEL, &to));
        }
    }
}

Test(repair_fsm, names_are_parsed_back_and_nothing_else_is)
{
    enum repair_state state;

    for (int s = 0; s < REPAIR_STATE_COUNT; s++) {
        cr_assert(repair_state_parse(str_of(repair_state_name((enum repair_state)s)), &state));
        cr_assert_eq((int)state, s);
    }
    cr_assert_not(repair_state_parse(STR("Proposed"), &state));
    cr_assert_not(repair_state_parse(STR(""), &state));
}

Test(repair_fsm, lists_of_states_are_postgresql_arrays)
{
    cr_assert_str_eq(repair_states_with(REPAIR_WAITING).text, "{proposed}");
    cr_assert_str_eq(repair_states_with(0).text, "{}");
    cr_assert_str_eq(repair_states_with(REPAIR_WORKING).text,
                     "{cordoning,draining,acting,rejoining,verifying}");
}

Test(action, the_ladder_goes_up_and_ends_with_a_person)
{
    for (int a = 0; a < ACTION_COUNT; a++) {
        int steps = 0;
        for (int at = a; at >= 0; at = action_info((enum repair_action)at)->next) {
            int next = action_info((enum repair_action)at)->next;
            cr_assert(next < 0 || next > at);
            cr_assert_lt(steps++, ACTION_COUNT);
        }
    }
    cr_assert_eq(action_info(ACTION_RESET_GPU)->next, ACTION_REBOOT);
    cr_assert_eq(action_info(ACTION_REBOOT)->next, ACTION_POWER_CYCLE);
    cr_assert_str_eq(action_list_last().text, "{power_cycle,reprovision,failover,remove}");
}

Test(action, each_says_what_it_keeps_and_only_data_loss_is_a_loss)
{
    for (int a = 0; a < ACTION_COUNT; a++) {
        const struct action_info *info = action_info((enum repair_action)a);
        cr_assert_gt(strlen(info->keeps), 0);
        cr_assert_gt(info->seconds_expected, 0);
        cr_assert_gt(info->attempts_max, 0);
        cr_assert_eq(info->loses != NULL, a >= ACTION_REPROVISION, "%s", info->name);
    }
    cr_assert_str_eq(action_list_of(1u << ACTION_RESET_GPU | 1u << ACTION_REBOOT).text,
                     "{reset_gpu,reboot}");
    cr_assert_str_eq(action_list_of(0).text, "{}");
}
