/* Promises of base/uuid.h. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/clock.h"
#include "base/uuid.h"

Test(uuid, version_seven_carries_the_milliseconds_of_the_clock)
{
    struct uuid uuid;
    uint64_t ms = 0;

    clock_test_set((int64_t)0x0123456789ab * 1000 + 999);
    uuid = uuid_v7();
    for (int i = 0; i < 6; i++) {
        ms = ms << 8 | uuid.bytes[i];
    }
    cr_assert_eq(ms, 0x0123456789ab);
    cr_assert_eq(uuid.bytes[6] >> 4, 7);
    cr_assert_eq(uuid.bytes[8] >> 6, 2);
}

Test(uuid, version_seven_sorts_by_microsecond)
{
    struct uuid last;

    clock_test_set((int64_t)1700000000 * 1000000);
    last = uuid_v7();
    for (int i = 0; i < 5000; i++) {
        struct uuid next;

        clock_test_advance(1);
        next = uuid_v7();
        cr_assert_lt(memcmp(last.bytes, next.bytes, 16), 0, "step %d", i);
        last = next;
    }
}

Test(uuid, version_four_says_so)
{
    struct uuid a = uuid_v4();
    struct uuid b = uuid_v4();

    cr_assert_eq(a.bytes[6] >> 4, 4);
    cr_assert_eq(a.bytes[8] >> 6, 2);
    cr_assert_not(uuid_eq(&a, &b));
}

Test(uuid, text_comes_back_the_same_in_lower_case)
{
    struct uuid uuid;
    char text[UUID_TEXT_LEN + 1];

    cr_assert(uuid_parse(STR("018F3C1E-7b5a-7C3D-9e2f-0123456789AB"), &uuid));
    uuid_format(&uuid, text);
    cr_assert_str_eq(text, "018f3c1e-7b5a-7c3d-9e2f-0123456789ab");
}

Test(uuid, other_shapes_are_refused)
{
    static const char *const bad[] = {
        "",
        "018f3c1e-7b5a-7c3d-9e2f-0123456789a",
        "018f3c1e-7b5a-7c3d-9e2f-0123456789abc",
        "018f3c1e07b5a-7c3d-9e2f-0123456789ab",
        "018f3c1e-7b5a-7c3d-9e2f-0123456789ag",
        "{18f3c1e-7b5a-7c3d-9e2f-0123456789a}",
        "018f3c1e7b5a7c3d9e2f0123456789ab",
        "018f3c1e-7b5a-7c3d-9e2f-0123456789-b",
        "-18f3c1e-7b5a-7c3d-9e2f-0123456789ab",
    };

    for (size_t i = 0; i < COUNTOF(bad); i++) {
        struct uuid uuid = {{1}};

        cr_assert_not(uuid_parse(str_of(bad[i]), &uuid), "%s", bad[i]);
        cr_assert_eq(uuid.bytes[0], 1, "the result must stay untouched");
    }
}

Test(uuid, only_the_nil_uuid_is_zero)
{
    struct uuid zero = {0};
    struct uuid one = {.bytes[15] = 1};

    cr_assert(uuid_is_zero(&zero));
    cr_assert_not(uuid_is_zero(&one));
}
