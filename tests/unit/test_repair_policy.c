/* Promises of server/repair/policy.h. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/buf.h"
#include "server/repair/policy.h"

static struct policy read_text(struct arena *arena, const char *text)
{
    return policy_read(arena, str_of(text), 1800);
}

Test(policy, without_one_people_decide_and_the_limits_are_the_default_ones)
{
    struct arena *arena = arena_new(1 << 20);
    struct policy p = policy_read(arena, STR(""), 900);

    cr_assert_eq(p.mode, POLICY_CONFIRM);
    cr_assert_eq(p.concurrency_percent, 2);
    cr_assert_eq(p.concurrency_max, 20);
    cr_assert_eq(p.cooldown_seconds, 900);
    cr_assert_eq(policy_attempts(&p, ACTION_REBOOT), 2);
    cr_assert_eq(policy_attempts(&p, ACTION_POWER_CYCLE), 1);
    cr_assert_eq(policy_attempts(&p, ACTION_REMOVE), 0);
    cr_assert_eq(p.actions & (1u << ACTION_REPROVISION), 0);
    cr_assert_not(p.broken);
    arena_free(arena);
}

Test(policy, R17_what_is_written_is_read_back_the_same)
{
    struct arena *arena = arena_new(1 << 20);
    CLEANUP(buf_free) struct buf first = {0};
    CLEANUP(buf_free) struct buf again = {0};
    struct enc enc;
    struct policy p = read_text(
        arena, "{\"mode\":\"warn\",\"automatic\":[\"gpu_lost\",\"gpu_xid:119\"],"
               "\"windows\":[\"mon-fri 22:00-06:00\"],\"time_zone\":\"Europe/Berlin\","
               "\"actions\":[\"reboot\"],\"second_approver\":[\"remove\"],\"dry_run\":true,"
               "\"idle\":\"grace\",\"concurrency_max\":7}");

    cr_assert_not(p.broken);
    enc_init(&enc, &first);
    policy_write(&enc, &p);
    struct policy q = read_text(arena, first.ptr);
    cr_assert_not(q.broken);
    enc_init(&enc, &again);
    policy_write(&enc, &q);
    cr_assert_str_eq(first.ptr, again.ptr);
    cr_assert_eq(q.concurrency_max, 7);
    cr_assert_eq(q.actions, 1u << ACTION_REBOOT);
    cr_assert(q.dry_run);
    arena_free(arena);
}

/* A blank or damaged policy once took a whole service down; here it only stops itself. */
Test(policy, R17_one_that_cannot_be_read_starts_nothing)
{
    static const char *const bad[] = {"null",
                                      "[]",
                                      "{",
                                      "{\"mode\":null}",
                                      "{\"mode\":\"always\"}",
                                      "{\"concurrency_max\":-1}",
                                      "{\"automatic\":[\"gpu lost\"]}",
                                      "{\"windows\":[\"always\"]}",
                                      "{\"unknown\":1}",
                                      "{\"actions\":[\"remove\"]}"};
    struct arena *arena = arena_new(1 << 20);

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct policy p = read_text(arena, bad[i]);
        cr_assert(p.broken, "%s", bad[i]);
        cr_assert_eq(p.mode, POLICY_CONFIRM);
    }
    arena_free(arena);
}

Test(policy, the_more_specific_name_wins_and_of_two_the_more_careful_one)
{
    struct arena *arena = arena_new(1 << 20);
    struct policy p =
        read_text(arena, "{\"mode\":\"confirm\",\"automatic\":[\"gpu_xid\",\"gpu_lost\"],"
                         "\"confirm\":[\"gpu_lost\"],\"warn\":[\"gpu_xid:13\"]}");

    cr_assert_eq(policy_mode_for(&p, STR("gpu_xid"), STR("119")), POLICY_AUTOMATIC);
    cr_assert_eq(policy_mode_for(&p, STR("gpu_xid"), STR("13")), POLICY_WARN);
    cr_assert_eq(policy_mode_for(&p, STR("gpu_lost"), STR("79")), POLICY_CONFIRM);
    cr_assert_eq(policy_mode_for(&p, STR("disk_nvme"), STR("")), POLICY_CONFIRM);
    cr_assert_eq(policy_mode_for(&p, STR("gpu_xi"), STR("119")), POLICY_CONFIRM);
    arena_free(arena);
}

Test(policy, windows_are_read_strictly)
{
    static const char *const good[] = {"mon 00:00-24:00", "mon-fri 22:00-06:00",
                                       "sat,sun 08:30-09:00", "fri-mon 12:00-12:00"};
    static const char *const bad[] = {"",
                                      "mon",
                                      "mon 1:00-2:00",
                                      "mon 00:00-24:01",
                                      "mun 00:00-01:00",
                                      "mon- 00:00-01:00",
                                      "mon 24:00-01:00",
                                      "mon  00:00-01:00",
                                      "mon 00:00-01:00 x"};
    struct arena *arena = arena_new(1 << 20);
    char text[128];

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        (void)snprintf(text, sizeof text, "{\"windows\":[\"%s\"]}", good[i]);
        cr_assert_not(read_text(arena, text).broken, "%s", good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        (void)snprintf(text, sizeof text, "{\"windows\":[\"%s\"]}", bad[i]);
        cr_assert(read_text(arena, text).broken, "%s", bad[i]);
    }
    arena_free(arena);
}

Test(policy, a_window_over_the_end_of_the_week_is_open_on_both_days)
{
    struct arena *arena = arena_new(1 << 20);
    struct policy p = read_text(arena, "{\"windows\":[\"sun 22:00-06:00\"]}");
    int open = 0;

    for (int day = 0; day < 7; day++) {
        for (int minute = 0; minute < 24 * 60; minute++) {
            bool is = policy_window_open(&p, day, minute);
            cr_assert_eq(is, (day == 6 && minute >= 22 * 60) || (day == 0 && minute < 6 * 60));
            open += is;
        }
    }
    cr_assert_eq(open, 8 * 60);
    arena_free(arena);
}
