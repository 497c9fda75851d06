/* A power cycle over a controller that does as a test says. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "server/repair/executors/machine.h"

static const struct machine_times times = {.seen_ms = 50, .poll_ms = 1, .rest_ms = 1};

static struct {
    bool on;
    bool unreadable;
    bool ignores;           /* takes every order and does nothing */
    bool refuses_off;       /* definitely */
    bool dead_after_off;    /* it never powers on again */
    int lost_on;            /* so many answers to `on` come as unclear, without an effect */
    enum machine_said said; /* of what it carries out */
    int offs;               /* effects */
    int ons;
    int orders;
} bmc;

static enum machine_power fake_read(const struct machine *machine, char serial[64],
                                    char error[MACHINE_ERROR_MAX])
{
    (void)machine;
    (void)snprintf(serial, 64, "SN-1");
    if (bmc.unreadable) {
        (void)snprintf(error, MACHINE_ERROR_MAX, "no answer");
        return POWER_UNKNOWN;
    }
    return bmc.on ? POWER_ON : POWER_OFF;
}

static enum machine_said fake_set(const struct machine *machine, bool on,
                                  char error[MACHINE_ERROR_MAX])
{
    (void)machine;
    (void)snprintf(error, MACHINE_ERROR_MAX, "so it is");
    bmc.orders++;
    if (bmc.ignores) {
        return MACHINE_ACCEPTED;
    }
    if (!on && bmc.refuses_off) {
        return MACHINE_REFUSED;
    }
    if (on && (bmc.dead_after_off || bmc.lost_on-- > 0)) {
        return MACHINE_UNCLEAR;
    }
    bmc.offs += bmc.on && !on;
    bmc.ons += !bmc.on && on;
    bmc.on = on;
    return bmc.said;
}

static const struct machine_driver fake = {.kind = "fake", .read = fake_read, .set = fake_set};
static const struct machine machine = {.driver = &fake};
static char detail[MACHINE_ERROR_MAX];

static enum machine_end cycle(const char *serial)
{
    return machine_cycle(&machine, str_of(serial), &times, detail);
}

static void fresh(void)
{
    memset(&bmc, 0, sizeof bmc);
    bmc.on = true;
}

Test(machine, a_cycle_is_one_off_and_one_on)
{
    fresh();
    cr_assert_eq(cycle("sn-1"), MACHINE_CYCLED);
    cr_assert(bmc.on);
    cr_assert_eq(bmc.offs, 1);
    cr_assert_eq(bmc.ons, 1);
}

Test(machine, one_that_is_off_is_powered_on)
{
    fresh();
    bmc.on = false;
    cr_assert_eq(cycle(""), MACHINE_CYCLED);
    cr_assert_eq(bmc.offs, 0);
    cr_assert_eq(bmc.ons, 1);
}

Test(machine, another_machine_is_left_alone)
{
    fresh();
    cr_assert_eq(cycle("SN-2"), MACHINE_KEPT);
    cr_assert_eq(bmc.orders, 0);
    cr_assert(strstr(detail, "SN-1") != NULL, "%s", detail);
}

Test(machine, nothing_is_done_to_what_cannot_be_read_or_refuses)
{
    fresh();
    bmc.unreadable = true;
    cr_assert_eq(cycle(""), MACHINE_KEPT);
    cr_assert_eq(bmc.orders, 0);
    fresh();
    bmc.refuses_off = true;
    cr_assert_eq(cycle(""), MACHINE_KEPT);
    cr_assert_eq(bmc.offs, 0);
}

static enum machine_leave give(void *arg, char ret_detail[MACHINE_ERROR_MAX])
{
    (void)snprintf(ret_detail, MACHINE_ERROR_MAX, "A job began.");
    return *(const enum machine_leave *)arg;
}

Test(machine, R15_what_must_be_true_is_asked_right_before_the_effect)
{
    static const struct {
        enum machine_leave leave;
        enum machine_end end;
        int orders;
    } cases[] = {
        {LEAVE_GIVEN, MACHINE_CYCLED, 2},
        {LEAVE_REFUSED, MACHINE_HELD, 0},
        {LEAVE_LOST, MACHINE_LOST, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        enum machine_leave leave = cases[i].leave;
        struct machine_times asking = times;
        asking.leave = give;
        asking.arg = &leave;
        fresh();
        cr_assert_eq(machine_cycle(&machine, STR(""), &asking, detail), cases[i].end, "%zu", i);
        cr_assert_eq(bmc.orders, cases[i].orders, "%zu", i);
        cr_assert(bmc.on);
    }
}

Test(machine, an_unclear_answer_is_settled_by_the_power)
{
    fresh();
    bmc.said = MACHINE_UNCLEAR;
    cr_assert_eq(cycle(""), MACHINE_CYCLED);
    cr_assert_eq(bmc.offs, 1);
    cr_assert_eq(bmc.ons, 1);
}

Test(machine, accepted_is_not_done)
{
    fresh();
    bmc.ignores = true;
    cr_assert_eq(cycle(""), MACHINE_UNKNOWN);
    cr_assert(bmc.on);
}

Test(machine, an_own_off_is_followed_by_an_on_however_often_it_is_lost)
{
    fresh();
    bmc.lost_on = 2;
    cr_assert_eq(cycle(""), MACHINE_CYCLED);
    cr_assert(bmc.on);
    fresh();
    bmc.dead_after_off = true;
    cr_assert_eq(cycle(""), MACHINE_FAILED);
    cr_assert(strstr(detail, "does not power on") != NULL, "%s", detail);
}

Test(machine, what_a_crash_left_off_is_powered_on)
{
    fresh();
    bmc.on = false;
    cr_assert(machine_heal(&machine, &times, detail));
    cr_assert_eq(bmc.ons, 1);
    cr_assert(machine_heal(&machine, &times, detail));
    cr_assert_eq(bmc.orders, 1);
    bmc.unreadable = true;
    cr_assert_not(machine_heal(&machine, &times, detail));
}
