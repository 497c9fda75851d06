/* The pull reader against jansson: both must take the same texts and read the same numbers and
 * strings. */
#include "tests/fuzz/fuzz.h"

#include <jansson.h>
#include <string.h>

#include "base/json.h"

static bool skips(struct str text)
{
    struct json_reader reader;

    json_open(&reader, text);
    return json_next(&reader, NULL) != JSON_ERROR && json_skip(&reader) && json_close(&reader);
}

/* Compares a scalar with what jansson made of it; the reader may refuse a range, never differ. */
static void compare_scalar(struct json_reader *reader, enum json_type type, const json_t *value)
{
    char buf[4096];
    struct str raw;
    struct str text;
    int64_t number;
    double real;
    bool flag;

    switch (type) {
    case JSON_STR:
        FUZZ_CHECK(json_is_string(value));
        FUZZ_CHECK(json_get_raw_str(reader, &raw, NULL));
        if (json_unescape(raw, buf, sizeof(buf), &text)) {
            FUZZ_CHECK(text.len == json_string_length(value));
            FUZZ_CHECK(memcmp(text.ptr, json_string_value(value), text.len) == 0);
        } else {
            FUZZ_CHECK(raw.len > sizeof(buf));
        }
        break;
    case JSON_NUM:
        if (json_is_integer(value)) {
            FUZZ_CHECK(json_get_i64(reader, &number));
            FUZZ_CHECK(number == json_integer_value(value));
        } else {
            FUZZ_CHECK(json_is_real(value));
            FUZZ_CHECK(!json_get_i64(reader, &number));
            if (json_get_double(reader, &real)) {
                FUZZ_CHECK(real == json_real_value(value));
            }
        }
        break;
    case JSON_BOOL:
        FUZZ_CHECK(json_is_boolean(value));
        FUZZ_CHECK(json_get_bool(reader, &flag));
        FUZZ_CHECK(flag == json_is_true(value));
        break;
    case JSON_NUL:
        FUZZ_CHECK(json_is_null(value));
        break;
    case JSON_END:
    case JSON_ERROR:
    case JSON_OBJ:
    case JSON_ARR:
    default:
        abort();
    }
}

/* Walks an array and its arrays beside jansson's value; objects are passed over, since jansson
 * keeps only the last of two equal members. Depth is bounded by the reader. */
static void compare(struct json_reader *reader, enum json_type type, const json_t *value)
{
    size_t index = 0;

    if (type == JSON_OBJ) {
        FUZZ_CHECK(json_is_object(value));
        FUZZ_CHECK(json_skip(reader));
        return;
    }
    if (type != JSON_ARR) {
        compare_scalar(reader, type, value);
        return;
    }
    FUZZ_CHECK(json_is_array(value));
    for (;;) {
        enum json_type inner = json_next(reader, NULL);

        FUZZ_CHECK(inner != JSON_ERROR);
        if (inner == JSON_END) {
            break;
        }
        FUZZ_CHECK(index < json_array_size(value));
        compare(reader, inner, json_array_get(value, index++));
    }
    FUZZ_CHECK(index == json_array_size(value));
}

/* Uses the reader in an order that the input chooses: nothing may go wrong whatever is called. */
static void wander(struct str text)
{
    struct json_reader reader;
    struct str key;
    char buf[16];

    json_open(&reader, text);
    for (size_t i = 0; i < text.len * 2 + 4; i++) {
        uint8_t choice = text.len == 0 ? 0 : (uint8_t)text.ptr[i % text.len];
        struct str raw = {0};
        int64_t number;
        double real;
        bool flag;

        switch (choice % 8) {
        case 0:
            (void)!json_get_i64(&reader, &number);
            break;
        case 1:
            (void)!json_get_double(&reader, &real);
            break;
        case 2:
            (void)!json_get_bool(&reader, &flag);
            break;
        case 3:
            if (json_get_raw_str(&reader, &raw, &flag)) {
                (void)!json_unescape(raw, buf, sizeof(buf), &key);
            }
            break;
        case 4:
            (void)!json_skip(&reader);
            break;
        case 5:
            if (json_get_raw(&reader, &raw)) {
                FUZZ_CHECK(skips(raw));
            }
            break;
        default:
            (void)json_next(&reader, &key);
            break;
        }
        FUZZ_CHECK(reader.depth >= 0 && reader.depth <= JSON_DEPTH_MAX);
        FUZZ_CHECK(reader.at >= text.ptr && reader.at <= reader.end);
    }
    (void)!json_close(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    bool taken = skips(text);
    json_error_t error;
    json_t *value = json_loadb(text.ptr, text.len, JSON_DECODE_ANY, &error);

    if (memchr(text.ptr == NULL ? "" : text.ptr, '\0', text.len) != NULL) {
        /* jansson passes over a NUL byte behind a number; the reader refuses it everywhere. */
        FUZZ_CHECK(!taken);
        json_decref(value);
        wander(text);
        return 0;
    }
    if (value != NULL && taken) {
        struct json_reader reader;

        json_open(&reader, text);
        compare(&reader, json_next(&reader, NULL), value);
        FUZZ_CHECK(json_close(&reader));
    }
    if (value != NULL && !taken) {
        struct json_reader reader;

        /* The only text that jansson takes and the reader does not is a deeper one. */
        json_open(&reader, text);
        FUZZ_CHECK(json_next(&reader, NULL) != JSON_ERROR);
        FUZZ_CHECK(!json_skip(&reader));
        FUZZ_CHECK(reader.depth == JSON_DEPTH_MAX);
    }
    if (value == NULL && taken) {
        /* And the reverse: a number whose value jansson cannot hold. */
        FUZZ_CHECK(json_error_code(&error) == json_error_numeric_overflow);
    }
    json_decref(value);
    wander(text);
    return 0;
}
