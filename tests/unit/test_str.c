/* Promises of base/str.h. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hidden.h"
#include "base/str.h"

Test(str, equality_looks_at_length_and_bytes)
{
    cr_assert(str_eq(STR("a\0b"), STR("a\0b")));
    cr_assert_not(str_eq(STR("a\0b"), STR("a\0c")));
    cr_assert(str_eq((struct str){0}, STR("")));
    cr_assert(str_eq_c(STR("abc"), "abc"));
    cr_assert_not(str_eq_c(STR("abc"), "ab"));
    cr_assert(str_eq_c(str_of(NULL), ""));
}

Test(str, caseless_equality_is_ascii_only)
{
    cr_assert(str_eq_nocase(STR("If-Match"), STR("iF-mATCH")));
    cr_assert_not(str_eq_nocase(STR("[a"), STR("{a")));
    cr_assert_not(str_eq_nocase(STR("\xc4"), STR("\xe4")));
}

Test(str, prefix_suffix_and_find_respect_the_ends)
{
    cr_assert(str_starts(STR("abc"), STR("ab")));
    cr_assert(str_starts(STR("abc"), STR("")));
    cr_assert_not(str_starts(STR("ab"), STR("abc")));
    cr_assert(str_ends(STR("abc"), STR("bc")));
    cr_assert_not(str_ends(STR("bc"), STR("abc")));
    cr_assert_eq(str_find(STR("abcabc"), STR("bc"), 0), 1);
    cr_assert_eq(str_find(STR("abcabc"), STR("bc"), 2), 4);
    cr_assert_eq(str_find(STR("abcabc"), STR("bc"), 5), -1);
    cr_assert_eq(str_find(STR("abc"), STR("c"), 9), -1);
    cr_assert_eq(str_find(STR("abc"), STR("abcd"), 0), -1);
    cr_assert_eq(str_find((struct str){0}, STR(""), 0), 0);
}

Test(str, trim_takes_white_space_off_both_ends)
{
    cr_assert(str_eq_c(str_trim(STR(" \t a b \r\n")), "a b"));
    cr_assert_eq(str_trim(STR(" \n ")).len, 0);
}

Test(str, split_gives_each_part_and_no_empty_last_one)
{
    static const char *const expected[] = {"a", "", "b"};
    struct str rest = STR("a,,b,");
    struct str part;
    size_t count = 0;

    while (str_split(&rest, ',', &part)) {
        cr_assert_lt(count, COUNTOF(expected));
        cr_assert(str_eq_c(part, expected[count]), "part %zu", count);
        count++;
    }
    cr_assert_eq(count, COUNTOF(expected));
}

Test(str, utf8_is_strict)
{
    static const struct {
        const char *text;
        bool valid;
    } cases[] = {
        {"plain", true},
        {"", true},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", true},
        {"\xed\x9f\xbf\xee\x80\x80", true}, /* both sides of the surrogates */
        {"\xf4\x8f\xbf\xbf", true},         /* U+10FFFF */
        {"\xc0\x80", false},                /* overlong NUL */
        {"\xc1\xbf", false},
        {"\xe0\x9f\xbf", false},
        {"\xf0\x8f\xbf\xbf", false},
        {"\xed\xa0\x80", false}, /* surrogate */
        {"\xf4\x90\x80\x80", false},
        {"\xf5\x80\x80\x80", false},
        {"\x80", false},
        {"a\xc3", false},
        {"\xe2\x82", false},
        {"\xf0\x9f\x98", false},
        {"\xc3\x28", false},
        {"\xff", false},
    };

    for (size_t i = 0; i < COUNTOF(cases); i++) {
        cr_assert_eq(str_is_utf8(str_of(cases[i].text)), cases[i].valid, "case %zu", i);
    }
    cr_assert_not(str_is_utf8(STR("a\0b")));
}

Test(str, host_names_follow_rfc_1123)
{
    static const struct {
        const char *name;
        bool valid;
    } cases[] = {
        {"gpu-017", true},   {"a.b-c.D9", true}, {"3com.example", true}, {"", false},
        {"-a", false},       {"a-", false},      {"a..b", false},        {".a", false},
        {"a.", false},       {"a_b", false},     {"a b", false},         {"a.-b", false},
        {"\xc3\xa4", false},
    };
    char name[256];

    for (size_t i = 0; i < COUNTOF(cases); i++) {
        cr_assert_eq(str_is_host_name(str_of(cases[i].name)), cases[i].valid, "%s", cases[i].name);
    }
    for (size_t i = 0; i < sizeof(name); i++) {
        name[i] = i % 2 == 0 ? 'a' : '.';
    }
    cr_assert(str_is_host_name((struct str){name, 253}));
    cr_assert_not(str_is_host_name((struct str){name, 255}));
    memset(name, 'a', sizeof(name));
    cr_assert(str_is_host_name((struct str){name, 63}));
    cr_assert_not(str_is_host_name((struct str){name, 64}));
}

Test(str, dns_labels_are_lower_case_and_begin_with_a_letter)
{
    cr_assert(str_is_dns_label(STR("a")));
    cr_assert(str_is_dns_label(STR("rack-7b")));
    cr_assert_not(str_is_dns_label(STR("7b")));
    cr_assert_not(str_is_dns_label(STR("Rack")));
    cr_assert_not(str_is_dns_label(STR("a-")));
    cr_assert_not(str_is_dns_label(STR("a.b")));
    cr_assert_not(str_is_dns_label(STR("")));
}

Test(str, whole_numbers_are_taken_whole_and_in_range)
{
    static const struct {
        const char *text;
        bool valid;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"007", true, 7},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999999999", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {"+1", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"1.0", false, 0},
        {"0x1", false, 0},
        {"--1", false, 0},
    };
    int64_t value;

    for (size_t i = 0; i < COUNTOF(cases); i++) {
        value = 42;
        cr_assert_eq(str_parse_i64(str_of(cases[i].text), INT64_MIN, INT64_MAX, &value),
                     cases[i].valid, "%s", cases[i].text);
        cr_assert_eq(value, cases[i].valid ? cases[i].value : 42, "%s", cases[i].text);
    }
    cr_assert_not(str_parse_i64(STR("-1"), 0, 10, &value));
    cr_assert_not(str_parse_i64(STR("11"), 0, 10, &value));
    cr_assert(str_parse_i64(STR("10"), 0, 10, &value));
}

Test(str, unsigned_numbers_reach_64_bits)
{
    uint64_t value;

    cr_assert(str_parse_u64(STR("18446744073709551615"), 0, UINT64_MAX, &value));
    cr_assert_eq(value, UINT64_MAX);
    cr_assert_not(str_parse_u64(STR("18446744073709551616"), 0, UINT64_MAX, &value));
    cr_assert_not(str_parse_u64(STR("-1"), 0, UINT64_MAX, &value));
}

Test(str, hexadecimal_with_or_without_prefix)
{
    uint64_t value;

    cr_assert(str_parse_hex_u64(STR("0xDeadBeef"), &value));
    cr_assert_eq(value, 0xdeadbeef);
    cr_assert(str_parse_hex_u64(STR("ffffffffffffffff"), &value));
    cr_assert_eq(value, UINT64_MAX);
    cr_assert_not(str_parse_hex_u64(STR("0x"), &value));
    cr_assert_not(str_parse_hex_u64(STR(""), &value));
    cr_assert_not(str_parse_hex_u64(STR("10000000000000000"), &value));
    cr_assert_not(str_parse_hex_u64(STR("0xg"), &value));
}

Test(str, doubles_equal_those_of_the_library)
{
    unsigned state = 99;

    for (int i = 0; i < 20000; i++) {
        char text[48];
        double value;
        double expected;

        state = state * 1103515245 + 12345;
        expected = ((double)state - 2e9) / pow(10, state % 13);
        (void)snprintf(text, sizeof(text), "%.*f", (int)(state >> 8) % 9, expected);
        expected = strtod(text, NULL);
        cr_assert(str_parse_double(str_of(text), &value), "%s", text);
        cr_assert_eq(memcmp(&value, &expected, sizeof(value)), 0, "%s", text);
    }
}

Test(str, doubles_take_plain_decimal_forms_only)
{
    static const struct {
        const char *text;
        bool valid;
        double value;
    } cases[] = {
        {"0", true, 0},
        {"1.5", true, 1.5},
        {"-2.5e3", true, -2500},
        {"1E+2", true, 100},
        {"1e-400", true, 0},
        {"0.1", true, 0.1},
        {"123456789012345678", true, 123456789012345678.0},
        {"0.30000000000000004", true, 0.30000000000000004},
        {"1.7976931348623157e308", true, 1.7976931348623157e308},
        {"0.00000000000000000000000000001", true, 1e-29},
        {"1e309", false, 0},
        {"nan", false, 0},
        {"inf", false, 0},
        {"0x1p3", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {".5", false, 0},
        {"1.", false, 0},
        {"1e", false, 0},
        {"1e+", false, 0},
        {"1,5", false, 0},
        {" 1", false, 0},
        {"+1", false, 0},
        {"1 ", false, 0},
    };

    for (size_t i = 0; i < COUNTOF(cases); i++) {
        double value = 7;

        cr_assert_eq(str_parse_double(str_of(cases[i].text), &value), cases[i].valid, "%s",
                     cases[i].text);
        cr_assert_eq(value, cases[i].valid ? cases[i].value : 7, "%s", cases[i].text);
    }
}

Test(str, times_are_read_to_the_microsecond)
{
    static const struct {
        const char *text;
        int64_t us;
    } cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1969-12-31T23:59:59.999999Z", -1},
        {"2026-12-01T12:00:00Z", 1796126400000000},
        {"2026-12-01t12:00:00.5z", 1796126400500000},
        {"2026-12-01T14:00:00.000001+02:00", 1796126400000001},
        {"2026-12-01T06:30:00-05:30", 1796126400000000},
        {"2026-12-01T12:00:00.123456789Z", 1796126400123456},
        {"2024-02-29T00:00:00Z", 1709164800000000},
        {"2000-02-29T00:00:00Z", 951782400000000},
        {"2016-12-31T23:59:60Z", 1483228800000000},
        {"0000-01-01T00:00:00Z", -62167219200000000},
        {"9999-12-31T23:59:59.999999Z", 253402300799999999},
    };

    for (size_t i = 0; i < COUNTOF(cases); i++) {
        int64_t us = 1;

        cr_assert(str_parse_rfc3339(str_of(cases[i].text), &us), "%s", cases[i].text);
        cr_assert_eq(us, cases[i].us, "%s gave %lld", cases[i].text, (long long)us);
    }
}

Test(str, times_in_other_forms_are_refused)
{
    static const char *const bad[] = {
        "",
        "2026-12-01",
        "2026-12-01T12:00:00",
        "2026-12-01 12:00:00Z",
        "2026-13-01T12:00:00Z",
        "2026-00-01T12:00:00Z",
        "2026-02-29T12:00:00Z",
        "1900-02-29T12:00:00Z",
        "2026-04-31T12:00:00Z",
        "2026-12-00T12:00:00Z",
        "2026-12-01T24:00:00Z",
        "2026-12-01T12:60:00Z",
        "2026-12-01T12:00:61Z",
        "2026-12-01T12:00:60Z",
        "2026-12-01T12:00:00.Z",
        "2026-12-01T12:00:00.0123456789Z",
        "2026-12-01T12:00:00+2:00",
        "2026-12-01T12:00:00+24:00",
        "2026-12-01T12:00:00+0200",
        "2026-12-01T12:00:00Z ",
        "26-12-01T12:00:00Z",
        "2026-12-01T12:00Z",
        "-026-12-01T12:00:00Z",
    };

    for (size_t i = 0; i < COUNTOF(bad); i++) {
        int64_t us = 5;

        cr_assert_not(str_parse_rfc3339(str_of(bad[i]), &us), "%s", bad[i]);
        cr_assert_eq(us, 5);
    }
}

Test(str, a_written_time_reads_back_over_all_years)
{
    /* A step that shares no factor with a day meets all months, days and hours. */
    const int64_t step = (int64_t)86399 * 1000003 * 11;

    for (int64_t us = -62167219200000000; us <= 253402300799999999; us += step) {
        char text[STR_RFC3339_LEN + 1];
        int64_t back;

        str_format_rfc3339(us, text);
        cr_assert_eq(strlen(text), STR_RFC3339_LEN);
        cr_assert(str_parse_rfc3339(str_of(text), &back), "%s", text);
        cr_assert_eq(back, us, "%s", text);
    }
}

Test(str, a_time_outside_four_digit_years_is_written_as_the_nearest)
{
    char text[STR_RFC3339_LEN + 1];

    str_format_rfc3339(INT64_MIN, text);
    cr_assert_str_eq(text, "0000-01-01T00:00:00.000000Z");
    str_format_rfc3339(INT64_MAX, text);
    cr_assert_str_eq(text, "9999-12-31T23:59:59.999999Z");
}

Test(str, characters_that_do_not_show_as_themselves_are_found)
{
    static const struct {
        const char *text; /* no NUL in it */
        bool lines;
        bool hidden;
    } cases[] = {
        {"node-1", false, false},
        {"gr\303\274n \342\200\223 \360\237\232\200", false, false},
        {"a\tb", false, true},
        {"a\n\tb\r\nc", true, false},
        {"a\rb", true, true},
        {"a\033[2J", true, true},
        {"a\177", true, true},
        {"a\302\205", true, true},     /* U+0085 */
        {"a\302\240b", false, false},  /* U+00A0 */
        {"\342\200\256", true, true},  /* U+202E */
        {"\342\200\251", true, false}, /* U+2029 */
        {"\342\201\247", true, true},  /* U+2067 */
        {"\342\201\252", true, false}, /* U+206A */
        {"", false, false},
    };
    for (size_t i = 0; i < COUNTOF(cases); i++) {
        cr_assert_eq(hidden_find(str_of(cases[i].text), cases[i].lines) != NULL,
                     cases[i].hidden, "case %zu", i);
    }
    cr_assert_not_null(hidden_find((struct str){"a\0b", 3}, true));
}
