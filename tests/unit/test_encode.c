/* Promises of base/encode.h. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>

#include "base/encode.h"

Test(encode, commas_stand_between_values_only)
{
    CLEANUP(buf_free) struct buf buf = {0};
    struct enc enc;

    enc_init(&enc, &buf);
    enc_obj(&enc);
    enc_key(&enc, "a");
    enc_arr(&enc);
    enc_i64(&enc, 1);
    enc_arr(&enc);
    enc_arr_end(&enc);
    enc_obj(&enc);
    enc_obj_end(&enc);
    enc_null(&enc);
    enc_arr_end(&enc);
    enc_key(&enc, "b");
    enc_bool(&enc, true);
    enc_key(&enc, "c");
    enc_raw(&enc, STR("{\"x\":1}"));
    enc_key_str(&enc, STR("d\"\n"));
    enc_cstr(&enc, NULL);
    enc_obj_end(&enc);
    cr_assert_str_eq(buf.ptr,
                     "{\"a\":[1,[],{},null],\"b\":true,\"c\":{\"x\":1},\"d\\\"\\n\":null}");
}

Test(encode, it_appends_to_what_the_buf_holds)
{
    CLEANUP(buf_free) struct buf buf = {0};
    struct enc enc;

    buf_add_c(&buf, "data: ");
    enc_init(&enc, &buf);
    enc_i64(&enc, -5);
    cr_assert_str_eq(buf.ptr, "data: -5");
}

Test(encode, text_is_escaped_and_invalid_utf8_replaced)
{
    static const struct {
        struct str text;
        const char *json;
    } cases[] = {
        {{"", 0}, "\"\""},
        {{"a\"\\/b", 5}, "\"a\\\"\\\\/b\""},
        {{"\b\f\n\r\t\0\x01\x1f\x7f", 9}, "\"\\b\\f\\n\\r\\t\\u0000\\u0001\\u001f\x7f\""},
        {{"\xc3\xa4\xf0\x9f\x98\x80", 6}, "\"\xc3\xa4\xf0\x9f\x98\x80\""},
        {{"a\xff"
          "b\xc3",
          4},
         "\"a\xef\xbf\xbd"
         "b\xef\xbf\xbd\""},
    };

    for (size_t i = 0; i < COUNTOF(cases); i++) {
        CLEANUP(buf_free) struct buf buf = {0};
        struct enc enc;

        enc_init(&enc, &buf);
        enc_str(&enc, cases[i].text);
        cr_assert_str_eq(buf.ptr, cases[i].json, "case %zu", i);
    }
}

static void check_i64(int64_t value, const char *expected)
{
    CLEANUP(buf_free) struct buf buf = {0};
    struct enc enc;

    enc_init(&enc, &buf);
    enc_i64(&enc, value);
    cr_assert_str_eq(buf.ptr, expected);
}

Test(encode, whole_numbers_are_exact_at_the_ends)
{
    check_i64(0, "0");
    check_i64(INT64_MAX, "9223372036854775807");
    check_i64(INT64_MIN, "-9223372036854775808");
}

static void check_double(double value, int decimals, const char *expected)
{
    CLEANUP(buf_free) struct buf buf = {0};
    struct enc enc;

    enc_init(&enc, &buf);
    if (decimals < 0) {
        enc_double_exact(&enc, value);
    } else {
        enc_double(&enc, value, decimals);
    }
    cr_assert_str_eq(buf.ptr, expected);
}

Test(encode, doubles_have_the_decimals_asked_for_and_never_break_json)
{
    check_double(98.649, 1, "98.6");
    check_double(-0.5, 0, "-0");
    check_double(3, 2, "3.00");
    check_double((double)NAN, 1, "null");
    check_double((double)INFINITY, 1, "null");
}

Test(encode, the_largest_double_fits)
{
    CLEANUP(buf_free) struct buf buf = {0};
    struct enc enc;

    enc_init(&enc, &buf);
    enc_double(&enc, -DBL_MAX, 17);
    cr_assert_eq(buf.len, 1 + 309 + 1 + 17);
}

Test(encode, exact_doubles_are_short_and_read_back)
{
    check_double(0.1, -1, "0.1");
    check_double(0.1 + 0.2, -1, "0.30000000000000004");
    check_double(1e300, -1, "1e+300");
    check_double(5, -1, "5");
    check_double((double)NAN, -1, "null");
}

Test(encode, ids_and_times_are_quoted)
{
    CLEANUP(buf_free) struct buf buf = {0};
    struct uuid uuid = {{0x01, 0x8f, [15] = 0xff}};
    struct enc enc;

    enc_init(&enc, &buf);
    enc_arr(&enc);
    enc_uuid(&enc, &uuid);
    enc_time(&enc, 1796126400123456);
    enc_arr_end(&enc);
    cr_assert_str_eq(buf.ptr,
                     "[\"018f0000-0000-0000-0000-0000000000ff\",\"2026-12-01T12:00:00.123456Z\"]");
}
