/* Promises of base/json.h. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

static bool is_accepted(struct str text)
{
    struct json_reader reader;

    json_open(&reader, text);
    return json_next(&reader, NULL) != JSON_ERROR && json_skip(&reader) && json_close(&reader);
}

Test(json, values_are_read_in_order)
{
    struct json_reader reader;
    struct str key;
    struct str raw;
    int64_t number;
    double real;
    bool flag;
    bool plain;

    json_open(&reader, STR(" {\"n\" : -12 , \"a\":[1.5, true,null], \"s\":\"x\\ny\", \"o\":{}} "));
    cr_assert_eq(json_next(&reader, NULL), JSON_OBJ);
    cr_assert_eq(json_next(&reader, &key), JSON_NUM);
    cr_assert(str_eq_c(key, "n"));
    cr_assert(json_get_i64(&reader, &number));
    cr_assert_eq(number, -12);
    cr_assert_eq(json_next(&reader, &key), JSON_ARR);
    cr_assert_eq(json_next(&reader, NULL), JSON_NUM);
    cr_assert(json_get_double(&reader, &real));
    cr_assert_eq(real, 1.5);
    cr_assert_eq(json_next(&reader, NULL), JSON_BOOL);
    cr_assert(json_get_bool(&reader, &flag));
    cr_assert(flag);
    cr_assert_eq(json_next(&reader, NULL), JSON_NUL);
    cr_assert_eq(json_next(&reader, NULL), JSON_END);
    cr_assert_eq(json_next(&reader, &key), JSON_STR);
    cr_assert(json_get_raw_str(&reader, &raw, &plain));
    cr_assert(str_eq_c(raw, "x\\ny"));
    cr_assert_not(plain);
    cr_assert_eq(json_next(&reader, &key), JSON_OBJ);
    cr_assert_eq(json_next(&reader, &key), JSON_END);
    cr_assert_eq(json_next(&reader, &key), JSON_END);
    cr_assert(json_close(&reader));
}

Test(json, a_value_not_asked_for_is_passed_over)
{
    struct json_reader reader;
    struct str key;
    int64_t number;

    json_open(&reader, STR("{\"s\":\"}\",\"t\":true,\"x\":[[1,{\"a\":\"]\"}]],\"n\":7}"));
    cr_assert_eq(json_next(&reader, NULL), JSON_OBJ);
    cr_assert_eq(json_next(&reader, &key), JSON_STR);
    cr_assert_eq(json_next(&reader, &key), JSON_BOOL);
    cr_assert_eq(json_next(&reader, &key), JSON_ARR);
    cr_assert(json_skip(&reader));
    cr_assert_eq(json_next(&reader, &key), JSON_NUM);
    cr_assert(str_eq_c(key, "n"));
    cr_assert(json_get_i64(&reader, &number));
    cr_assert_eq(number, 7);
    cr_assert_eq(json_next(&reader, &key), JSON_END);
    cr_assert(json_close(&reader));
}

Test(json, skip_leaves_a_container_that_was_read_in_part)
{
    struct json_reader reader;

    json_open(&reader, STR("[[1,2,3],4]"));
    cr_assert_eq(json_next(&reader, NULL), JSON_ARR);
    cr_assert_eq(json_next(&reader, NULL), JSON_ARR);
    cr_assert_eq(json_next(&reader, NULL), JSON_NUM);
    cr_assert(json_skip(&reader));
    cr_assert(json_skip(&reader));
    cr_assert_eq(json_next(&reader, NULL), JSON_NUM);
    cr_assert_eq(json_next(&reader, NULL), JSON_END);
    cr_assert(json_close(&reader));
}

Test(json, text_outside_rfc_8259_is_refused)
{
    static const char *const bad[] = {
        "",
        " ",
        "{",
        "}",
        "[",
        "]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1\"a\"]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{'a':1}",
        "{\"a\" 1}",
        "{1:2}",
        "[1}",
        "{\"a\":1]",
        "01",
        "-",
        "-01",
        "1.",
        ".5",
        "1e",
        "1e+",
        "+1",
        "0x10",
        "NaN",
        "Infinity",
        "tru",
        "trueX",
        "nul",
        "True",
        "\"",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\n\"",
        "\"\t\"",
        "\"\x7f",
        "\"\xff\"",
        "\"\xc0\x80\"",
        "\"\xed\xa0\x80\"",
        "1 2",
        "{} {}",
        "\xef\xbb\xbf{}",
        "// c\n1",
        "[1,/**/2]",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"\\u0000\"",
        "[1,,2]",
        "{\"a\":1 \"b\":2}",
        "{\"a\":1,,\"b\":2}",
        "\v1",
    };

    for (size_t i = 0; i < COUNTOF(bad); i++) {
        cr_assert_not(is_accepted(str_of(bad[i])), "case %zu: %s", i, bad[i]);
    }
    cr_assert_not(is_accepted(STR("\"a\0b\"")));
    cr_assert_not(is_accepted(STR("1\0")));
}

Test(json, text_inside_rfc_8259_is_taken)
{
    static const char *const good[] = {
        "0",
        "-0",
        "1e5",
        "-1.25E-3",
        "1e999999",
        "true",
        "null",
        "\"\"",
        "[]",
        "{}",
        " [ ] ",
        "[1]",
        "\r\n\t {\"\":0}",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\"",
        "\"\\ud83d\\ude00\"",
        "\"\x7f\"",
        "\"\xf0\x9f\x98\x80 and more than eight bytes\"",
        "{\"a\":1,\"a\":2}",
        "[[[[]]]]",
        "{\"k\\n\":1}",
    };

    for (size_t i = 0; i < COUNTOF(good); i++) {
        cr_assert(is_accepted(str_of(good[i])), "case %zu: %s", i, good[i]);
    }
}

Test(json, nesting_ends_at_32)
{
    char text[66];

    memset(text, '[', 33);
    memset(text + 33, ']', 33);
    cr_assert(is_accepted((struct str){text + 1, 64}));
    cr_assert_not(is_accepted((struct str){text, 66}));
}

Test(json, a_special_byte_is_seen_at_every_place_of_a_long_string)
{
    static const char specials[] = {'\x1f', '\n', '\0', '\\', '\xff', '\x80'};

    for (size_t place = 1; place < 40; place++) {
        for (size_t i = 0; i < COUNTOF(specials); i++) {
            char text[42];

            memset(text, 'z', sizeof(text));
            text[0] = '"';
            text[41] = '"';
            cr_assert(is_accepted((struct str){text, sizeof(text)}));
            text[place] = specials[i];
            cr_assert_not(is_accepted((struct str){text, sizeof(text)}), "%d at %zu", specials[i],
                          place);
        }
    }
}

Test(json, integers_are_exact_or_refused)
{
    static const struct {
        const char *text;
        bool valid;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"123456789012345678901234567890", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
        {"\"1\"", false, 0},
        {"true", false, 0},
    };

    for (size_t i = 0; i < COUNTOF(cases); i++) {
        struct json_reader reader;
        int64_t value = 42;

        json_open(&reader, str_of(cases[i].text));
        cr_assert_neq(json_next(&reader, NULL), JSON_ERROR);
        cr_assert_eq(json_get_i64(&reader, &value), cases[i].valid, "%s", cases[i].text);
        cr_assert_eq(value, cases[i].valid ? cases[i].value : 42);
        cr_assert(json_close(&reader), "a refused value of another type can be passed over");
    }
}

Test(json, doubles_are_read_and_infinite_ones_refused)
{
    struct json_reader reader;
    double value = 0;

    json_open(&reader, STR("[3, 98.6, -1.5e-3, 1e999]"));
    cr_assert_eq(json_next(&reader, NULL), JSON_ARR);
    cr_assert_eq(json_next(&reader, NULL), JSON_NUM);
    cr_assert(json_get_double(&reader, &value));
    cr_assert_eq(value, 3);
    cr_assert_eq(json_next(&reader, NULL), JSON_NUM);
    cr_assert(json_get_double(&reader, &value));
    cr_assert_eq(value, 98.6);
    cr_assert_eq(json_next(&reader, NULL), JSON_NUM);
    cr_assert(json_get_double(&reader, &value));
    cr_assert_eq(value, -1.5e-3);
    cr_assert_eq(json_next(&reader, NULL), JSON_NUM);
    cr_assert_not(json_get_double(&reader, &value));
    cr_assert_null(reader.error);
    cr_assert_eq(json_next(&reader, NULL), JSON_END);
    cr_assert(json_close(&reader));
}

Test(json, a_key_with_an_escape_is_an_error_where_keys_are_read)
{
    struct json_reader reader;
    struct str key;

    json_open(&reader, STR("{\"\\u0061\":1}"));
    cr_assert_eq(json_next(&reader, NULL), JSON_OBJ);
    cr_assert_eq(json_next(&reader, &key), JSON_ERROR);
    cr_assert_not_null(reader.error);
    cr_assert_eq(json_next(&reader, &key), JSON_ERROR, "an error stays");
    cr_assert_not(json_close(&reader));
}

Test(json, raw_gives_a_value_as_it_stands)
{
    struct json_reader reader;
    struct str key;
    struct str raw;

    json_open(&reader, STR("{\"a\": { \"x\" : [1, \"}\"] } ,\"b\":\"q\\\"\",\"c\":-1}"));
    cr_assert_eq(json_next(&reader, NULL), JSON_OBJ);
    cr_assert_eq(json_next(&reader, &key), JSON_OBJ);
    cr_assert(json_get_raw(&reader, &raw));
    cr_assert(str_eq_c(raw, "{ \"x\" : [1, \"}\"] }"));
    cr_assert_eq(json_next(&reader, &key), JSON_STR);
    cr_assert(json_get_raw(&reader, &raw));
    cr_assert(str_eq_c(raw, "\"q\\\"\""));
    cr_assert_eq(json_next(&reader, &key), JSON_NUM);
    cr_assert(json_get_raw(&reader, &raw));
    cr_assert(str_eq_c(raw, "-1"));
    cr_assert_not(json_get_raw(&reader, &raw), "there is no value to give");
    cr_assert_eq(json_next(&reader, &key), JSON_END);
    cr_assert(json_close(&reader));
}

Test(json, unescape_turns_escapes_into_utf8)
{
    char buf[64];
    struct str text;

    cr_assert(
        json_unescape(STR("a\\n\\u00e4\\u20ac\\ud83d\\ude00\\/\xc3\xb6"), buf, sizeof(buf), &text));
    cr_assert(str_eq_c(text, "a\n\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80/\xc3\xb6"));
}

Test(json, unescape_refuses_what_does_not_fit_or_is_no_text)
{
    static const char *const bad[] = {"\\",      "\\u", "\\u12", "\\ud800",   "\\udc00",
                                      "\\u0000", "\\q", "\xff",  "\\ud800\\n"};
    char buf[4];
    struct str text;

    for (size_t i = 0; i < COUNTOF(bad); i++) {
        cr_assert_not(json_unescape(str_of(bad[i]), buf, sizeof(buf), &text), "%s", bad[i]);
    }
    cr_assert(json_unescape(STR("abcd"), buf, sizeof(buf), &text));
    cr_assert_not(json_unescape(STR("abcde"), buf, sizeof(buf), &text));
    cr_assert_not(json_unescape(STR("abc\\u00e4"), buf, sizeof(buf), &text));
}

Test(json, every_cut_of_a_document_is_an_error)
{
    struct str whole =
        STR("{\"a\":[1,-2.5e3,true,false,null],\"b\":{\"c\":\"\\u00e4\xc3\xa4\"},\"d\":\"\"}");

    cr_assert(is_accepted(whole));
    for (size_t len = 0; len < whole.len; len++) {
        /* A heap copy lets the sanitizer see a read past the cut. */
        char *copy = malloc(len + 1);

        memcpy(copy, whole.ptr, len);
        copy = realloc(copy, len == 0 ? 1 : len);
        cr_assert_not(is_accepted((struct str){copy, len}), "length %zu", len);
        free(copy);
    }
}
