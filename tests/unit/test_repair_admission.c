/* Promises of server/repair/admission.h. */
#include <criterion/criterion.h>

#include "server/repair/admission.h"

static const struct admission_counters fine = {
    .nodes = 1000,
    .down = 1,
    .attempt = 1,
    .attempts_max = 2,
    .ended_seconds_ago = -1,
    .cooldown_seconds = 1800,
    .has_executor = true,
    .node_joined = true,
    .auto_repair = true,
    .automation = true,
};

static bool held_by(const struct admission_counters *counters, enum admission_code code)
{
    struct admission admission;

    admission_decide(counters, &admission);
    for (size_t i = 0; i < admission.count; i++) {
        if (admission.reasons[i].code == code) {
            return true;
        }
    }
    return false;
}

Test(admission, the_limit_is_two_percent_at_least_one_at_most_twenty)
{
    static const struct {
        int64_t nodes;
        int64_t limit;
    } cases[] = {{0, 0}, {1, 1}, {49, 1}, {50, 1}, {100, 2}, {1000, 20}, {100000, 20}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_eq(admission_max_running(cases[i].nodes, 0), cases[i].limit, "%d nodes",
                     (int)cases[i].nodes);
    }
}

Test(admission, the_limit_never_grows_with_the_share_that_is_down_and_is_zero_at_a_fifth)
{
    static const int64_t sizes[] = {1, 5, 10, 64, 1000, 9999};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int64_t before = admission_max_running(sizes[i], 0);
        for (int64_t down = 0; down <= sizes[i]; down++) {
            int64_t limit = admission_max_running(sizes[i], down);
            cr_assert_leq(limit, before);
            cr_assert_geq(limit, 0);
            cr_assert_eq(limit == 0, down * 5 >= sizes[i], "%d of %d down", (int)down,
                         (int)sizes[i]);
            before = limit;
        }
    }
    cr_assert_eq(admission_max_running(1000, 100), 10);
}

Test(admission, nothing_in_the_way_gives_no_reason)
{
    struct admission admission;

    admission_decide(&fine, &admission);
    cr_assert_eq(admission.count, 0);
    cr_assert_eq(admission.max_running, 20);
}

Test(admission, each_limit_holds_by_its_own_name_at_its_edge)
{
    struct admission_counters c = fine;
    c.running = 19;
    cr_assert_not(held_by(&c, ADMIT_CONCURRENCY));
    c.running = 20;
    cr_assert(held_by(&c, ADMIT_CONCURRENCY));
    c = fine;
    c.ended_seconds_ago = 1799;
    cr_assert(held_by(&c, ADMIT_COOLDOWN));
    c.ended_seconds_ago = 1800;
    cr_assert_not(held_by(&c, ADMIT_COOLDOWN));
    c = fine;
    c.attempt = 2;
    cr_assert_not(held_by(&c, ADMIT_BUDGET));
    c.attempt = 3;
    cr_assert(held_by(&c, ADMIT_BUDGET));
    c = fine;
    c.others_down = 1;
    cr_assert(held_by(&c, ADMIT_DOMAIN));
    c = fine;
    c.auto_repair = false;
    cr_assert(held_by(&c, ADMIT_NODE_OFF));
    c = fine;
    c.automation = false;
    cr_assert(held_by(&c, ADMIT_AUTOMATION_OFF));
}

Test(admission, all_reasons_come_at_once_and_only_facts_bind_a_person)
{
    struct admission_counters c = {.nodes = 10,
                                   .down = 5,
                                   .running = 1,
                                   .attempt = 9,
                                   .attempts_max = 1,
                                   .ended_seconds_ago = 0,
                                   .cooldown_seconds = 10,
                                   .others_down = 2};
    struct admission admission;

    admission_decide(&c, &admission);
    cr_assert_eq(admission.count, ADMIT_CODE_COUNT);
    for (size_t i = 0; i < admission.count; i++) {
        enum admission_code code = admission.reasons[i].code;
        cr_assert_eq(admission.reasons[i].hard,
                     code == ADMIT_NO_EXECUTOR || code == ADMIT_NOT_JOINED);
        cr_assert_neq(admission.reasons[i].text[0], '\0');
        cr_assert_neq(admission_code_name(code)[0], '\0');
    }
}
