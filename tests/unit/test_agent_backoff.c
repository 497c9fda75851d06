/* Promises of agent/backoff.h, one agent and 10,000 of them. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "agent/backoff.h"

#define AGENTS 10000
#define INTERVAL_US INT64_C(10000000)
#define BIN_US INT64_C(100000)
#define STEADY (AGENTS / 100) /* reports in a bin when nothing is wrong */

static uint64_t dice;

static double share(void)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (double)(dice >> 11) / (double)(UINT64_C(1) << 53);
}

Test(agent_backoff, a_wait_grows_to_a_minute_and_any_part_of_it_may_be_drawn)
{
    cr_assert_eq(backoff_us(0, 1.0, 0.3, 0), 1000000);
    cr_assert_eq(backoff_us(3, 1.0, 0.3, 0), 8000000);
    cr_assert_eq(backoff_us(6, 1.0, 0.3, 0), 60000000);
    cr_assert_eq(backoff_us(4000000000u, 0.5, 10.0, 0), 30000000,
                 "the chance is drawn after the cap");
    cr_assert_eq(backoff_us(4000000000u, 0.0, 10.0, 0), 0);
}

Test(agent_backoff, the_first_try_is_drawn_from_a_whole_interval)
{
    cr_assert_eq(backoff_us(0, 1.0, 10.0, 0), 10000000);
    cr_assert_eq(backoff_us(0, 1.0, 300.0, 0), 60000000);
}

Test(agent_backoff, what_the_server_asks_for_is_waited_for_beside_it)
{
    cr_assert_eq(backoff_us(1, 0.5, 0.3, 30), 31000000);
    cr_assert_eq(backoff_us(1, 0.0, 10.0, 86400), INT64_C(3600) * 1000000);
}

struct agent {
    int64_t next_us;
    unsigned failures;
};

struct herd {
    struct agent agents[AGENTS];
    int admitted;    /* in a bin; the rest is answered 503 with Retry-After: 1 */
    int most;        /* tries in one bin since the server is back */
    int64_t last_us; /* when the last one was back */
};

/* One tenth of a second. */
static int herd_step(struct herd *herd, int64_t now_us, bool up)
{
    int tries = 0;
    int taken = 0;

    for (size_t i = 0; i < AGENTS; i++) {
        struct agent *agent = &herd->agents[i];
        if (agent->next_us > now_us) {
            continue;
        }
        tries++;
        bool shed = up && taken >= herd->admitted;
        if (up && !shed) {
            taken++;
            herd->last_us = agent->failures > 0 ? now_us : herd->last_us;
            agent->failures = 0;
            agent->next_us = now_us + INTERVAL_US;
        } else {
            agent->next_us = now_us + backoff_us(agent->failures++, share(), 10.0, shed ? 1 : 0);
        }
    }
    return tries;
}

/* An outage of so many seconds, and three minutes after it. */
static void herd_run(struct herd *herd, int64_t outage_s, int admitted)
{
    int64_t back_us = 30000000 + outage_s * 1000000;

    dice = 88172645463325252u;
    *herd = (struct herd){.admitted = admitted};
    for (size_t i = 0; i < AGENTS; i++) {
        herd->agents[i].next_us = (int64_t)(share() * (double)INTERVAL_US);
    }
    for (int64_t now_us = 0; now_us < back_us + 180000000; now_us += BIN_US) {
        bool up = now_us < 30000000 || now_us >= back_us;
        int tries = herd_step(herd, now_us, up);
        if (now_us >= back_us && tries > herd->most) {
            herd->most = tries;
        }
    }
    herd->last_us -= back_us;
}

Test(agent_backoff, O1_ten_thousand_agents_come_back_without_a_herd, .timeout = 120)
{
    static const int64_t outages_s[] = {5, 60, 1680};
    struct herd *herd = calloc(1, sizeof *herd);

    cr_assert_not_null(herd);
    for (size_t i = 0; i < sizeof outages_s / sizeof outages_s[0]; i++) {
        herd_run(herd, outages_s[i], AGENTS);
        cr_assert_lt(herd->most, 3 * STEADY, "%lld s: %d tries in a tenth of a second",
                     (long long)outages_s[i], herd->most);
        cr_assert_leq(herd->last_us, 61 * INT64_C(1000000), "%lld s", (long long)outages_s[i]);
    }
    free(herd);
}

Test(agent_backoff, O1_a_server_that_admits_less_than_all_has_all_back_within_minutes,
     .timeout = 120)
{
    struct herd *herd = calloc(1, sizeof *herd);

    cr_assert_not_null(herd);
    herd_run(herd, 60, STEADY + STEADY / 5);
    cr_assert_lt(herd->most, 3 * STEADY, "%d tries in a tenth of a second", herd->most);
    cr_assert_leq(herd->last_us, 180 * INT64_C(1000000));
    for (size_t i = 0; i < AGENTS; i++) {
        cr_assert_leq(herd->agents[i].failures, 12, "agent %zu is refused for ever", i);
    }
    free(herd);
}
