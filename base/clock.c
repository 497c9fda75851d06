/* Time, replaceable by tests. */
#include "base/clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

static atomic_bool test_mode;
static _Atomic int64_t test_us;

static int64_t read_clock(clockid_t id)
{
    struct timespec now;

    if (atomic_load_explicit(&test_mode, memory_order_relaxed)) {
        return atomic_load_explicit(&test_us, memory_order_relaxed);
    }
    /* Cannot fail for these two clocks on Linux. */
    (void)clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_wall_us(void)
{
    return read_clock(CLOCK_REALTIME);
}

int64_t clock_mono_us(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

void clock_test_set(int64_t us)
{
    atomic_store(&test_us, us);
    atomic_store(&test_mode, true);
}

void clock_test_advance(int64_t us)
{
    (void)atomic_fetch_add(&test_us, us);
}

void clock_test_off(void)
{
    atomic_store(&test_mode, false);
}
