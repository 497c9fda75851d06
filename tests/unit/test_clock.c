/* Promises of base/clock.h. */
#include <criterion/criterion.h>
#include <time.h>

#include "base/clock.h"

Test(clock, wall_time_is_that_of_the_system)
{
    int64_t before = (int64_t)time(NULL) * 1000000;
    int64_t now = clock_wall_us();

    /* time() may lag by a tick behind the precise clock, never by a second. */
    cr_assert_geq(now, before);
    cr_assert_lt(now, before + (int64_t)60 * 1000000);
}

Test(clock, monotonic_time_never_goes_back)
{
    int64_t last = clock_mono_us();

    for (int i = 0; i < 10000; i++) {
        int64_t now = clock_mono_us();

        cr_assert_geq(now, last);
        last = now;
    }
}

Test(clock, a_test_moves_both_clocks_by_hand)
{
    clock_test_set(1000);
    cr_assert_eq(clock_wall_us(), 1000);
    clock_test_advance(500);
    cr_assert_eq(clock_wall_us(), 1500);
    cr_assert_eq(clock_mono_us(), 1500);
    clock_test_off();
    cr_assert_gt(clock_wall_us(), (int64_t)1600000000 * 1000000);
}
