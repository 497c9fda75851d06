/* Limits: a minute's worth at once, then evenly, each key for itself. */
#include <criterion/criterion.h>

#include "server/limits.h"

#define SECOND ((int64_t)1000000)

static struct limits *make(int64_t credential, int64_t org, int64_t sign_in)
{
    const int64_t per_minute[LIMIT_COUNT] = {credential, org, sign_in};
    return limits_new(per_minute);
}

static bool take(struct limits *limits, const char *key, int64_t now_us, struct limits_taken *taken)
{
    return limits_take(limits, LIMIT_CREDENTIAL, key, strlen(key), now_us, taken);
}

Test(limits, T8_a_minutes_worth_at_once_and_not_one_more)
{
    struct limits *limits = make(60, 0, 0);
    struct limits_taken taken = {0};
    for (int i = 0; i < 60; i++) {
        cr_assert(take(limits, "a", 5 * SECOND, &taken), "request %d", i);
        cr_assert_eq(taken.of[LIMIT_CREDENTIAL].left, 59 - i);
    }
    cr_assert_not(take(limits, "a", 5 * SECOND, &taken));
    cr_assert(taken.of[LIMIT_CREDENTIAL].refused);
    cr_assert_eq(taken.of[LIMIT_CREDENTIAL].wait_s, 1);
    cr_assert_eq(taken.of[LIMIT_CREDENTIAL].full_in_s, 60);
    limits_free(limits);
}

Test(limits, T8_the_bucket_fills_evenly_and_no_further_than_full)
{
    struct limits *limits = make(60, 0, 0);
    struct limits_taken taken = {0};
    while (take(limits, "a", 0, &taken)) {
    }
    cr_assert_not(take(limits, "a", SECOND - 1, &taken));
    cr_assert(take(limits, "a", SECOND, &taken));
    cr_assert_not(take(limits, "a", SECOND, &taken));
    int count = 0;
    while (take(limits, "a", 1000 * SECOND, &taken)) {
        count++;
    }
    cr_assert_eq(count, 60);
    limits_free(limits);
}

Test(limits, T8_one_key_takes_nothing_from_another)
{
    struct limits *limits = make(60, 60, 0);
    struct limits_taken taken = {0};
    while (take(limits, "a", 0, &taken)) {
    }
    cr_assert(take(limits, "b", 0, &taken));
    cr_assert(limits_take(limits, LIMIT_ORG, "a", 1, 0, &taken), "the same key of another limit");
    limits_free(limits);
}

Test(limits, T8_zero_is_no_limit)
{
    struct limits *limits = make(0, 0, 0);
    struct limits_taken taken = {0};
    for (int i = 0; i < 100000; i++) {
        cr_assert(take(limits, "a", 0, &taken));
    }
    cr_assert_not(taken.of[LIMIT_CREDENTIAL].used);
    limits_free(limits);
}

Test(limits, T8_addresses_of_one_ipv6_network_share_a_bucket)
{
    static const struct {
        const char *first;
        const char *second;
        bool shared;
    } rows[] = {{"192.0.2.1", "192.0.2.2", false},
                {"2001:db8::1", "2001:db8::ffff:2", true},
                {"2001:db8::1", "2001:db8:0:1::1", false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct limits *limits = make(0, 0, 1);
        struct limits_taken taken = {0};
        cr_assert(
            limits_take_address(limits, LIMIT_SIGN_IN, NULL, str_of(rows[i].first), 0, &taken));
        cr_assert_not(
            limits_take_address(limits, LIMIT_SIGN_IN, NULL, str_of(rows[i].first), 0, &taken));
        cr_assert_eq(
            limits_take_address(limits, LIMIT_SIGN_IN, NULL, str_of(rows[i].second), 0, &taken),
            !rows[i].shared, "row %zu", i);
        limits_free(limits);
    }
}

Test(limits, T8_an_address_has_a_bucket_for_each_thing_that_it_asks)
{
    const int64_t per_minute[LIMIT_COUNT] = {[LIMIT_LOGOUT] = 1};
    static const struct uuid one = {{1}};
    static const struct uuid other = {{2}};
    struct limits *limits = limits_new(per_minute);
    struct limits_taken taken = {0};
    struct str six = str_of("2001:db8::1");
    struct str four = str_of("192.0.2.1");
    cr_assert(limits_take_address(limits, LIMIT_LOGOUT, &one, four, 0, &taken));
    cr_assert_not(limits_take_address(limits, LIMIT_LOGOUT, &one, four, 0, &taken));
    cr_assert(limits_take_address(limits, LIMIT_LOGOUT, &other, four, 0, &taken));
    cr_assert(limits_take_address(limits, LIMIT_LOGOUT, &one, six, 0, &taken));
    cr_assert_not(limits_take_address(limits, LIMIT_LOGOUT, &one, six, 0, &taken));
    limits_free(limits);
}

Test(limits, T8_a_flood_of_keys_keeps_nobody_out)
{
    struct limits *limits = make(1, 0, 0);
    struct limits_taken taken = {0};
    for (uint32_t i = 0; i < 400000; i++) {
        cr_assert(limits_take(limits, LIMIT_CREDENTIAL, &i, sizeof(i), 0, &taken));
    }
    limits_free(limits);
}
