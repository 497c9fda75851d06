/* Strict decoding of query strings into structs, by the same tables as bodies. */
#include "base/decode.h"

#include <assert.h>
#include <string.h>

#include "base/decode_internal.h"

/* Far more than any operation takes; bounds the work before names are looked at. */
#define PARAMETERS_MAX 256
/* A foreign parameter's name is shown up to here. */
#define PARAMETER_NAME_BYTES 128

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* '+' is a space, as forms and URLSearchParams write it. NULL or what is wrong. */
static const char *percent_decode(struct arena *arena, struct str text, struct str *ret_text)
{
    char *decoded = arena_alloc(arena, text.len + 1);
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (c == '%') {
            if (text.len - i < 3 || hex_value(text.ptr[i + 1]) < 0 ||
                hex_value(text.ptr[i + 2]) < 0) {
                return "A % must be followed by two hexadecimal digits.";
            }
            c = (char)(hex_value(text.ptr[i + 1]) << 4 | hex_value(text.ptr[i + 2]));
            i += 2;
        } else if (c == '+') {
            c = ' ';
        }
        if (c == '\0') {
            return "The query may not hold a NUL byte.";
        }
        decoded[len++] = c;
    }
    decoded[len] = '\0';
    *ret_text = (struct str){decoded, len};
    return str_is_utf8(*ret_text) ? NULL : "The query is not valid UTF-8.";
}

static struct place place_of(struct decoding *decoding, struct str name)
{
    size_t len = name.len > PARAMETER_NAME_BYTES ? PARAMETER_NAME_BYTES : name.len;

    return (struct place){.parameter = arena_strndup(decoding->arena, name.ptr, len)};
}

/* Adds to the list; its room for decode_max() items was made at the first one. */
static void store_item(struct decoding *decoding, const struct field *field, struct str value,
                       struct place place)
{
    struct str_list *list = decode_target(decoding, field);
    int64_t max = decode_max(field);

    if (list->items == NULL) {
        size_t room = max > PARAMETERS_MAX ? PARAMETERS_MAX : (size_t)max;

        list->items = arena_alloc(decoding->arena, room * sizeof(*list->items));
    }
    decode_mark_present(decoding, field);
    if (list->count >= (size_t)max) {
        decode_fail(decoding, place, "too_long",
                    arena_printf(decoding->arena, "At most %lld are allowed.", (long long)max));
        return;
    }
    if (decode_item(decoding, field, value, place, &list->items[list->count])) {
        list->count++;
    }
}

static void store_parameter(struct decoding *decoding, const struct field *field, struct str value,
                            struct place place)
{
    int64_t number;
    double real;

    decode_mark_present(decoding, field);
    switch (field->type) {
    case FIELD_I64:
        if (!str_parse_i64(value, INT64_MIN, INT64_MAX, &number)) {
            decode_fail(decoding, place, "wrong_type", "A whole number is expected.");
            return;
        }
        decode_i64(decoding, field, number, place);
        return;
    case FIELD_DOUBLE:
        if (!str_parse_double(value, &real)) {
            decode_fail(decoding, place, "wrong_type", "A number is expected.");
            return;
        }
        decode_double(decoding, field, real, place);
        return;
    case FIELD_BOOL:
        if (!str_eq_c(value, "true") && !str_eq_c(value, "false")) {
            decode_fail(decoding, place, "wrong_type", "true or false is expected.");
            return;
        }
        *(bool *)decode_target(decoding, field) = value.len == 4;
        return;
    case FIELD_STR_LIST:
        store_item(decoding, field, value, place);
        return;
    case FIELD_STR:
    case FIELD_UUID:
    case FIELD_TIME:
    case FIELD_ENUM:
    case FIELD_NAME:
    case FIELD_HOST:
    case FIELD_JSON:
    default:
        assert(field->type != FIELD_JSON);
        decode_text(decoding, field, value, place);
        return;
    }
}

/* One "name=value"; false when its encoding is broken. */
static bool take_pair(struct decoding *decoding, struct str pair, bool *seen)
{
    struct str value = pair;
    struct str raw_name = {0};
    struct str name = {0};
    const struct field *field = decoding->fields;
    const char *error;
    struct place place;

    if (pair.ptr[0] == '=' || !str_split(&value, '=', &raw_name)) {
        raw_name.len = 0;
    }
    error = percent_decode(decoding->arena, raw_name, &name);
    if (error == NULL && name.len == 0) {
        error = "A parameter without a name stands in the query.";
    }
    place = place_of(decoding, error == NULL ? name : raw_name);
    if (error == NULL) {
        error = percent_decode(decoding->arena, value, &value);
    }
    if (error != NULL) {
        /* The caller is to see this one alone. */
        *decoding->errors = (struct decode_errors){0};
        decode_fail(decoding, place, "invalid_format", error);
        return false;
    }
    while (field->name != NULL && !str_eq_c(name, field->name)) {
        field++;
    }
    if (field->name == NULL) {
        decode_fail(decoding, place, "unknown_field", "There is no such parameter.");
        return true;
    }
    if (seen[field - decoding->fields] && field->type != FIELD_STR_LIST) {
        decode_fail(decoding, place, "duplicate", "This parameter may stand only once.");
        return true;
    }
    seen[field - decoding->fields] = true;
    store_parameter(decoding, field, value, place);
    return true;
}

static void check_missing(struct decoding *decoding, const bool *seen)
{
    for (const struct field *field = decoding->fields; field->name != NULL; field++) {
        struct place place = {.parameter = field->name};

        if (!seen[field - decoding->fields]) {
            decode_missing(decoding, field, place);
        } else if (field->type == FIELD_STR_LIST &&
                   ((struct str_list *)decode_target(decoding, field))->count <
                       (size_t)field->min) {
            decode_fail(decoding, place, "too_short",
                        arena_printf(decoding->arena, "At least %lld are expected.",
                                     (long long)field->min));
        }
    }
}

enum err decode_query(struct arena *arena, struct str query, const struct field *fields, void *out,
                      struct decode_errors *errors)
{
    struct decoding decoding = {.arena = arena, .fields = fields, .out = out, .errors = errors};
    bool seen[DECODE_FIELDS_MAX] = {false};
    struct str pair;
    size_t count = 0;

    (void)decode_field_count(fields);
    *errors = (struct decode_errors){0};
    while (str_split(&query, '&', &pair)) {
        if (pair.len == 0) {
            continue;
        }
        if (++count > PARAMETERS_MAX) {
            *errors = (struct decode_errors){0};
            decode_fail(&decoding, (struct place){.parameter = ""}, "too_long",
                        "At most 256 parameters are allowed.");
            return ERR_BAD_REQUEST;
        }
        if (!take_pair(&decoding, pair, seen)) {
            return ERR_BAD_REQUEST;
        }
    }
    check_missing(&decoding, seen);
    return errors->count > 0 ? ERR_INVALID_FIELDS : ERR_NONE;
}
