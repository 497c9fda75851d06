/* Promises of base/decode.h. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/decode.h"

struct sample {
    struct str name;
    int64_t limit;
    double ratio;
    bool armed;
    bool has_armed;
    struct str id;
    int64_t since_us;
    struct str state;
    struct str label;
    struct str host;
    struct str_list tags;
    struct str settings;
    bool has_settings;
    struct str any;
};

static const char *const states[] = {"healthy", "unhealthy", NULL};

#define AT(member) offsetof(struct sample, member)

/* clang-format off */
static const struct field body_fields[] = {
    {"name", FIELD_STR, AT(name), 0, FIELD_REQUIRED, 1, 8, NULL},
    {"limit", FIELD_I64, AT(limit), 0, 0, 1, 200, NULL},
    {"ratio", FIELD_DOUBLE, AT(ratio), 0, 0, 0, 1, NULL},
    {"armed", FIELD_BOOL, AT(armed), AT(has_armed), 0, 0, 0, NULL},
    {"id", FIELD_UUID, AT(id), 0, 0, 0, 0, NULL},
    {"since", FIELD_TIME, AT(since_us), 0, 0, 0, 0, NULL},
    {"state", FIELD_ENUM, AT(state), 0, 0, 0, 0, states},
    {"label", FIELD_NAME, AT(label), 0, 0, 0, 0, NULL},
    {"host", FIELD_HOST, AT(host), 0, 0, 0, 0, NULL},
    {"tags", FIELD_STR_LIST, AT(tags), 0, 0, 0, 3, NULL},
    {"settings", FIELD_JSON, AT(settings), AT(has_settings), FIELD_OBJECT | FIELD_NULLABLE, 0, 64, NULL},
    {"any", FIELD_JSON, AT(any), 0, 0, 0, 0, NULL},
    {0},
};

static const struct field query_fields[] = {
    {"q", FIELD_STR, AT(name), 0, 0, 0, 0, NULL},
    {"limit", FIELD_I64, AT(limit), 0, 0, 1, 200, NULL},
    {"ratio", FIELD_DOUBLE, AT(ratio), 0, 0, 0, 0, NULL},
    {"armed", FIELD_BOOL, AT(armed), AT(has_armed), 0, 0, 0, NULL},
    {"since", FIELD_TIME, AT(since_us), 0, 0, 0, 0, NULL},
    {"state", FIELD_STR_LIST, AT(tags), 0, 0, 0, 2, states},
    {0},
};
/* clang-format on */

static struct arena *arena;
static struct sample sample;
static struct decode_errors errors;
static const char *detail;

static void begin(void)
{
    arena = arena_new(8 * 1024 * 1024);
}

static void end(void)
{
    arena_free(arena);
}

TestSuite(decode, .init = begin, .fini = end);

static enum err decode(struct str body)
{
    sample = (struct sample){0};
    detail = NULL;
    return decode_body(arena, body, body_fields, &sample, &errors, &detail);
}

static enum err query(struct str text)
{
    sample = (struct sample){0};
    return decode_query(arena, text, query_fields, &sample, &errors);
}

/* "pointer code" of all errors, one after the other. */
static const char *seen_errors(void)
{
    const char *text = "";

    for (size_t i = 0; i < errors.count; i++) {
        const struct field_error *item = &errors.items[i];

        cr_assert_not_null(item->detail);
        text = arena_printf(arena, "%s%s%s %s", text, i == 0 ? "" : ", ",
                            item->pointer != NULL ? item->pointer : item->parameter, item->code);
    }
    return text;
}

Test(decode, a_whole_body_fills_the_struct)
{
    cr_assert_eq(decode(STR("{\"name\":\"rack\",\"limit\":20,\"ratio\":0.5,\"armed\":false,"
                            "\"id\":\"018F3C1E-7B5A-7C3D-9E2F-0123456789AB\","
                            "\"since\":\"2026-12-01T12:00:00Z\",\"state\":\"healthy\","
                            "\"label\":\"row-7\",\"host\":\"gpu-1.example\","
                            "\"tags\":[\"a\",\"\"],\"settings\":{\"x\":[1,2.5,\"\\u00e4\"]},"
                            "\"any\":[true,null]}")),
                 ERR_NONE, "%s", seen_errors());
    cr_assert_str_eq(sample.name.ptr, "rack");
    cr_assert_eq(sample.limit, 20);
    cr_assert_eq(sample.ratio, 0.5);
    cr_assert(sample.has_armed);
    cr_assert_not(sample.armed);
    cr_assert_str_eq(sample.id.ptr, "018f3c1e-7b5a-7c3d-9e2f-0123456789ab");
    cr_assert_eq(sample.since_us, 1796126400000000);
    cr_assert_str_eq(sample.state.ptr, "healthy");
    cr_assert_str_eq(sample.label.ptr, "row-7");
    cr_assert_str_eq(sample.host.ptr, "gpu-1.example");
    cr_assert_eq(sample.tags.count, 2);
    cr_assert_str_eq(sample.tags.items[0].ptr, "a");
    cr_assert_str_eq(sample.settings.ptr, "{\"x\":[1,2.5,\"\xc3\xa4\"]}");
    cr_assert_str_eq(sample.any.ptr, "[true,null]");
}

Test(decode, absent_optional_fields_stay_zero)
{
    cr_assert_eq(decode(STR("{\"name\":\"a\"}")), ERR_NONE);
    cr_assert_not(sample.has_armed);
    cr_assert_eq(sample.limit, 0);
    cr_assert_null(sample.settings.ptr);
}

Test(decode, null_is_taken_only_where_it_may_stand)
{
    cr_assert_eq(decode(STR("{\"name\":\"a\",\"settings\":null}")), ERR_NONE);
    cr_assert(sample.has_settings);
    cr_assert_null(sample.settings.ptr);
    cr_assert_eq(decode(STR("{\"name\":null,\"any\":null}")), ERR_INVALID_FIELDS);
    cr_assert_str_eq(seen_errors(), "#/name wrong_type, #/any wrong_type");
}

Test(decode, all_errors_are_told_at_once)
{
    cr_assert_eq(decode(STR("{\"limit\":0,\"ratio\":1.5,\"armed\":1,\"id\":\"x\",\"since\":\"now\","
                            "\"state\":\"odd\",\"label\":\"A\",\"host\":\"-\",\"tags\":[1,\"a\"],"
                            "\"settings\":[],\"typo\":1}")),
                 ERR_INVALID_FIELDS);
    cr_assert_str_eq(seen_errors(),
                     "#/name required, #/limit out_of_range, #/ratio out_of_range, "
                     "#/armed wrong_type, #/id invalid_format, #/since invalid_format, "
                     "#/state not_allowed, #/label invalid_format, #/host invalid_format, "
                     "#/tags/0 wrong_type, #/settings wrong_type, #/typo unknown_field");
}

Test(decode, a_number_is_never_made_from_text_or_another_kind)
{
    static const char *const bad[] = {"\"5\"", "5.0", "5e0", "true", "[5]", "null", "{}"};

    for (size_t i = 0; i < COUNTOF(bad); i++) {
        const char *body = arena_printf(arena, "{\"name\":\"a\",\"limit\":%s}", bad[i]);

        cr_assert_eq(decode(str_of(body)), ERR_INVALID_FIELDS, "%s", body);
        cr_assert_str_eq(seen_errors(), "#/limit wrong_type", "%s", body);
    }
    cr_assert_eq(decode(STR("{\"name\":\"a\",\"ratio\":1}")), ERR_NONE,
                 "a whole number is a number");
}

Test(decode, lengths_are_counted_in_bytes)
{
    cr_assert_eq(decode(STR("{\"name\":\"12345678\"}")), ERR_NONE);
    cr_assert_eq(decode(STR("{\"name\":\"1234567\xc3\xa4\"}")), ERR_INVALID_FIELDS);
    cr_assert_str_eq(seen_errors(), "#/name too_long");
    cr_assert_eq(decode(STR("{\"name\":\"\"}")), ERR_INVALID_FIELDS);
    cr_assert_str_eq(seen_errors(), "#/name too_short");
    cr_assert_eq(decode(STR("{\"name\":\"a\",\"tags\":[\"\",\"\",\"\",\"\"]}")),
                 ERR_INVALID_FIELDS);
    cr_assert_str_eq(seen_errors(), "#/tags too_long");
    cr_assert_eq(decode(STR("{\"name\":\"a\",\"settings\":{\"k\":\"" /* 64 bytes are allowed */
                            "123456789012345678901234567890123456789012345678901234567\"}}")),
                 ERR_INVALID_FIELDS);
    cr_assert_str_eq(seen_errors(), "#/settings too_long");
}

Test(decode, duplicates_are_found_at_any_depth_and_in_any_spelling)
{
    static const struct {
        const char *body;
        const char *errors;
    } cases[] = {
        {"{\"name\":\"a\",\"name\":\"b\"}", "#/name duplicate"},
        {"{\"name\":\"a\",\"n\\u0061me\":\"b\"}", "#/name duplicate"},
        {"{\"name\":\"a\",\"any\":[0,{\"x\":1,\"y\":{\"k~/\":1,\"k~\\/\":2}}]}",
         "#/any/1/y/k~0~1 duplicate"},
        {"{\"name\":\"a\",\"any\":{\"s\":\"{\\\"x\\\":1,\",\"x\":[1,2],\"x\":2}}",
         "#/any/x duplicate"},
        {"{\"name\":1,\"limit\":5,\"limit\":6,\"odd\":1}",
         "#/limit duplicate, #/name wrong_type, #/odd unknown_field"},
    };

    for (size_t i = 0; i < COUNTOF(cases); i++) {
        cr_assert_eq(decode(str_of(cases[i].body)), ERR_INVALID_FIELDS, "%s", cases[i].body);
        cr_assert_str_eq(seen_errors(), cases[i].errors, "%s gave %s", cases[i].body,
                         seen_errors());
    }
    cr_assert_eq(decode(STR("{\"name\":\"a\",\"any\":[{\"x\":1},{\"x\":2}]}")), ERR_NONE);
}

Test(decode, text_that_is_no_json_is_refused_with_its_place)
{
    static const char *const bad[] = {"{",
                                      "{\"name\":\"a\"",
                                      "{\"name\":\"a\",}",
                                      "{name:1}",
                                      "{} {}",
                                      "nul",
                                      "{\"name\":\"\xff\"}",
                                      "\xef\xbb\xbf{}",
                                      "{\"name\":\"\\ud800\"}",
                                      "{\"name\":01}",
                                      "// x\n{}"};

    for (size_t i = 0; i < COUNTOF(bad); i++) {
        cr_assert_eq(decode(str_of(bad[i])), ERR_BAD_JSON, "%s", bad[i]);
        cr_assert_not_null(detail);
        cr_assert(str_starts(str_of(detail), STR("Line ")), "%s", detail);
    }
}

Test(decode, an_empty_body_says_what_is_expected)
{
    cr_assert_eq(decode(STR("")), ERR_BAD_JSON);
    cr_assert_not_null(strstr(detail, "empty"));
    cr_assert_eq(decode((struct str){0}), ERR_BAD_JSON);
    cr_assert_eq(decode(STR(" \n")), ERR_BAD_JSON);
}

Test(decode, a_body_that_is_no_object_is_a_wrong_type)
{
    static const char *const bad[] = {"[]", "1", "\"x\"", "null", "true"};

    for (size_t i = 0; i < COUNTOF(bad); i++) {
        cr_assert_eq(decode(str_of(bad[i])), ERR_INVALID_FIELDS, "%s", bad[i]);
        cr_assert_str_eq(seen_errors(), "# wrong_type");
    }
}

Test(decode, nesting_over_32_levels_is_refused_before_parsing)
{
    CLEANUP(buf_free) struct buf body = {0};

    buf_add_c(&body, "{\"name\":\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\",\"any\":");
    cr_assert_str_eq(body.ptr + body.len - 6, "\"any\":", "brackets in text do not count");
    for (int i = 0; i < 31; i++) {
        buf_add_char(&body, '[');
    }
    for (int i = 0; i < 31; i++) {
        buf_add_char(&body, ']');
    }
    buf_add_char(&body, '}');
    cr_assert_eq(decode(buf_str(&body)), ERR_INVALID_FIELDS);
    cr_assert_str_eq(seen_errors(), "#/name too_long");

    buf_clear(&body);
    for (int i = 0; i < 500000; i++) {
        buf_add_char(&body, '[');
    }
    cr_assert_eq(decode(buf_str(&body)), ERR_BAD_JSON);
    cr_assert_not_null(strstr(detail, "32"));
}

Test(decode, a_nul_in_text_is_refused_everywhere)
{
    cr_assert_eq(decode(STR("{\"name\":\"a\\u0000b\"}")), ERR_INVALID_FIELDS);
    cr_assert_str_eq(seen_errors(), "#/name invalid_format");
    cr_assert_eq(decode(STR("{\"name\":\"a\",\"tags\":[\"\\u0000\"]}")), ERR_INVALID_FIELDS);
    cr_assert_str_eq(seen_errors(), "#/tags/0 invalid_format");
    cr_assert_eq(decode(STR("{\"name\":\"a\",\"any\":[{\"x\":\"\\u0000\"}]}")), ERR_INVALID_FIELDS);
    cr_assert_str_eq(seen_errors(), "#/any invalid_format");
    cr_assert_eq(decode(STR("{\"name\":\"a\",\"any\":{\"\\u0000\":1}}")), ERR_INVALID_FIELDS);
    cr_assert_str_eq(errors.items[0].code, "invalid_format");
    cr_assert_eq(decode(STR("{\"name\":\"a\0b\"}")), ERR_BAD_JSON, "a bare NUL is no JSON");
    cr_assert_eq(decode(STR("{\"name\":\"a\",\"limit\":5\0}")), ERR_BAD_JSON);
    cr_assert_eq(decode(STR("{\"state\":\"healthy\\u0000\",\"name\":\"a\"}")), ERR_INVALID_FIELDS);
    cr_assert_str_eq(seen_errors(), "#/state not_allowed");
}

Test(decode, a_number_beyond_64_bits_is_out_of_range)
{
    cr_assert_eq(decode(STR("{\"name\":\"a\",\"limit\":99999999999999999999}")),
                 ERR_INVALID_FIELDS);
    cr_assert_str_eq(seen_errors(), "#/limit out_of_range");
    cr_assert_eq(decode(STR("{\"name\":\"a\",\"any\":[1,[2,1e999]]}")), ERR_INVALID_FIELDS);
    cr_assert_str_eq(seen_errors(), "#/any/1/1 out_of_range");
}

Test(decode, sixteen_errors_are_kept_and_the_rest_counted)
{
    CLEANUP(buf_free) struct buf body = {0};

    buf_add_c(&body, "{\"name\":\"a\"");
    for (int i = 0; i < 20; i++) {
        buf_printf(&body, ",\"odd%d\":1", i);
    }
    buf_add_char(&body, '}');
    cr_assert_eq(decode(buf_str(&body)), ERR_INVALID_FIELDS);
    cr_assert_eq(errors.count, DECODE_ERRORS_MAX);
    cr_assert_eq(errors.dropped, 4);
}

Test(decode, a_foreign_name_is_escaped_and_cut_in_the_pointer)
{
    CLEANUP(buf_free) struct buf body = {0};

    cr_assert_eq(decode(STR("{\"name\":\"a\",\"x/~ %\xc3\xa4\\n\":1}")), ERR_INVALID_FIELDS);
    cr_assert_str_eq(seen_errors(), "#/x~1~0%20%25%C3%A4%0A unknown_field");
    buf_printf(&body, "{\"name\":\"a\",\"%0*d\":1}", 60000, 0);
    cr_assert_eq(decode(buf_str(&body)), ERR_INVALID_FIELDS);
    cr_assert_lt(strlen(errors.items[0].pointer), 200);
}

Test(decode, a_query_fills_the_struct)
{
    cr_assert_eq(query(STR("q=a%20b%2fc+d&limit=20&ratio=0.5&armed=true&state=healthy&"
                           "since=2026-12-01T12:00:00%2B00:00&state=unhealthy")),
                 ERR_NONE, "%s", seen_errors());
    cr_assert_str_eq(sample.name.ptr, "a b/c d");
    cr_assert_eq(sample.limit, 20);
    cr_assert_eq(sample.ratio, 0.5);
    cr_assert(sample.armed);
    cr_assert(sample.has_armed);
    cr_assert_eq(sample.since_us, 1796126400000000);
    cr_assert_eq(sample.tags.count, 2);
    cr_assert_str_eq(sample.tags.items[1].ptr, "unhealthy");
}

Test(decode, an_empty_query_is_fine)
{
    cr_assert_eq(query(STR("")), ERR_NONE);
    cr_assert_eq(query((struct str){0}), ERR_NONE);
    cr_assert_eq(query(STR("&&")), ERR_NONE);
    cr_assert_eq(query(STR("q")), ERR_NONE);
    cr_assert_eq(query(STR("q=")), ERR_NONE);
}

Test(decode, all_errors_of_a_query_name_their_parameter)
{
    cr_assert_eq(query(STR("limit=x&ratio=nan&armed=1&since=now&state=odd&typo=1&li%6Dit=2&"
                           "state=healthy&state=healthy&state=healthy")),
                 ERR_INVALID_FIELDS);
    cr_assert_str_eq(seen_errors(), "limit wrong_type, ratio wrong_type, armed wrong_type, "
                                    "since invalid_format, state not_allowed, typo unknown_field, "
                                    "limit duplicate, state too_long");
    cr_assert_null(errors.items[0].pointer);
}

Test(decode, a_query_with_broken_encoding_is_a_bad_request)
{
    CLEANUP(buf_free) struct buf many = {0};
    static const char *const bad[] = {"q=%",   "q=%4",     "q=%zz", "q=%00",   "%00=1",
                                      "q=%ff", "q=%c0%80", "=1",    "q=a&q%=1"};

    for (size_t i = 0; i < COUNTOF(bad); i++) {
        cr_assert_eq(query(str_of(bad[i])), ERR_BAD_REQUEST, "%s", bad[i]);
        cr_assert_eq(errors.count, 1, "%s", bad[i]);
    }
    for (int i = 0; i < 20; i++) {
        buf_printf(&many, "x%d=1&", i);
    }
    buf_add_c(&many, "q=%");
    cr_assert_eq(query(buf_str(&many)), ERR_BAD_REQUEST);
    cr_assert_str_eq(seen_errors(), "q invalid_format", "also behind many other errors");
    cr_assert_eq(errors.dropped, 0);
}

Test(decode, too_many_parameters_are_a_bad_request)
{
    CLEANUP(buf_free) struct buf text = {0};

    for (int i = 0; i < 300; i++) {
        buf_printf(&text, "x%d=1&", i);
    }
    cr_assert_eq(query(buf_str(&text)), ERR_BAD_REQUEST);
}

Test(decode, a_handler_can_add_its_own_error)
{
    char pointer[16] = "#/items/3";

    errors = (struct decode_errors){0};
    decode_error_add(arena, &errors, pointer, "not_allowed", "It is reserved.");
    memset(pointer, 'x', sizeof(pointer) - 1);
    cr_assert_str_eq(seen_errors(), "#/items/3 not_allowed", "the texts are copied");
}
