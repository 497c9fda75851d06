/* Decoding tables: errors with a place, and text into typed fields. */
#include "base/decode.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/decode_internal.h"
#include "base/hidden.h"
#include "base/uuid.h"

#define DEFAULT_STR_BYTES 255
#define DEFAULT_LIST_ITEMS 100
#define DEFAULT_JSON_BYTES ((int64_t)16 * 1024)

void decode_fail(struct decoding *decoding, struct place place, const char *code,
                 const char *detail)
{
    struct decode_errors *errors = decoding->errors;

    if (errors->count == DECODE_ERRORS_MAX) {
        errors->dropped++;
        return;
    }
    errors->items[errors->count++] = (struct field_error){
        .pointer = place.pointer,
        .parameter = place.parameter,
        .code = code,
        .detail = detail,
    };
}

void decode_error_add(struct arena *arena, struct decode_errors *errors, const char *pointer,
                      const char *code, const char *detail)
{
    struct decoding decoding = {.arena = arena, .errors = errors};
    struct place place = {.pointer = arena_strndup(arena, pointer, strlen(pointer))};

    decode_fail(&decoding, place, arena_strndup(arena, code, strlen(code)),
                arena_strndup(arena, detail, strlen(detail)));
}

size_t decode_field_count(const struct field *fields)
{
    size_t count = 0;

    while (fields[count].name != NULL) {
        count++;
    }
    assert(count <= DECODE_FIELDS_MAX);
    return count;
}

void *decode_target(const struct decoding *decoding, const struct field *field)
{
    return (char *)decoding->out + field->offset;
}

void decode_mark_present(const struct decoding *decoding, const struct field *field)
{
    if (field->present_offset != 0) {
        *(bool *)(void *)((char *)decoding->out + field->present_offset) = true;
    }
}

int64_t decode_max(const struct field *field)
{
    if (field->max != 0) {
        return field->max;
    }
    switch (field->type) {
    case FIELD_STR:
        return DEFAULT_STR_BYTES;
    case FIELD_STR_LIST:
        return DEFAULT_LIST_ITEMS;
    case FIELD_JSON:
        return DEFAULT_JSON_BYTES;
    case FIELD_I64:
    case FIELD_DOUBLE:
    case FIELD_BOOL:
    case FIELD_UUID:
    case FIELD_TIME:
    case FIELD_ENUM:
    case FIELD_NAME:
    case FIELD_HOST:
    default:
        return INT64_MAX;
    }
}

/* "One of a, b, c is expected." */
static const char *list_names(struct arena *arena, const char *const *names)
{
    const char *text = "";

    for (size_t i = 0; names[i] != NULL; i++) {
        text = arena_printf(arena, "%s%s%s", text, i == 0 ? "" : ", ", names[i]);
    }
    return arena_printf(arena, "One of %s is expected.", text);
}

static bool is_listed(struct str text, const char *const *names)
{
    for (size_t i = 0; names[i] != NULL; i++) {
        if (str_eq_c(text, names[i])) {
            return true;
        }
    }
    return false;
}

static struct str copy_text(struct decoding *decoding, struct str text)
{
    return (struct str){arena_strndup(decoding->arena, text.ptr, text.len), text.len};
}

/* Length in bytes and nothing hidden: the rules of every text that is not parsed further. */
static bool check_text(struct decoding *decoding, struct str text, const struct field *field,
                       struct place place)
{
    bool item = field->type == FIELD_STR_LIST;
    int64_t min = item ? 0 : field->min;
    int64_t max = item ? DEFAULT_STR_BYTES : decode_max(field);
    const char *hidden = hidden_find(text, (field->flags & FIELD_LINES) != 0);
    if (hidden != NULL) {
        decode_fail(decoding, place, "invalid_format", hidden);
        return false;
    }
    if ((uint64_t)text.len < (uint64_t)min) {
        decode_fail(decoding, place, "too_short",
                    min == 1 ? "Text is expected; it is empty."
                             : arena_printf(decoding->arena, "At least %lld bytes are expected.",
                                            (long long)min));
        return false;
    }
    if ((uint64_t)text.len > (uint64_t)max) {
        decode_fail(
            decoding, place, "too_long",
            arena_printf(decoding->arena, "At most %lld bytes are allowed.", (long long)max));
        return false;
    }
    return true;
}

static void store_uuid(struct decoding *decoding, const struct field *field, struct str text,
                       struct place place)
{
    char lower[UUID_TEXT_LEN + 1];
    struct uuid uuid;

    if (!uuid_parse(text, &uuid)) {
        decode_fail(decoding, place, "invalid_format",
                    "A UUID of 36 characters is expected, like "
                    "018f3c1e-7b5a-7c3d-9e2f-0123456789ab.");
        return;
    }
    uuid_format(&uuid, lower);
    *(struct str *)decode_target(decoding, field) =
        copy_text(decoding, (struct str){lower, UUID_TEXT_LEN});
}

static void store_time(struct decoding *decoding, const struct field *field, struct str text,
                       struct place place)
{
    int64_t us;

    if (!str_parse_rfc3339(text, &us)) {
        decode_fail(decoding, place, "invalid_format",
                    "An RFC 3339 time is expected, like 2026-12-01T12:00:00Z.");
        return;
    }
    *(int64_t *)decode_target(decoding, field) = us;
}

void decode_text(struct decoding *decoding, const struct field *field, struct str text,
                 struct place place)
{
    struct str *target = decode_target(decoding, field);

    decode_mark_present(decoding, field);
    switch (field->type) {
    case FIELD_UUID:
        store_uuid(decoding, field, text, place);
        return;
    case FIELD_TIME:
        store_time(decoding, field, text, place);
        return;
    case FIELD_ENUM:
        if (!is_listed(text, field->names)) {
            decode_fail(decoding, place, "not_allowed", list_names(decoding->arena, field->names));
            return;
        }
        break;
    case FIELD_NAME:
        if (!str_is_dns_label(text)) {
            decode_fail(decoding, place, "invalid_format",
                        "A name of 1 to 63 lower-case letters, digits and - is expected, beginning "
                        "with a letter and not ending with -.");
            return;
        }
        break;
    case FIELD_HOST:
        if (!str_is_host_name(text)) {
            decode_fail(decoding, place, "invalid_format",
                        "A host name of at most 253 characters is expected (RFC 1123).");
            return;
        }
        break;
    case FIELD_STR:
    case FIELD_I64:
    case FIELD_DOUBLE:
    case FIELD_BOOL:
    case FIELD_STR_LIST:
    case FIELD_JSON:
    default:
        assert(field->type == FIELD_STR);
        if (!check_text(decoding, text, field, place)) {
            return;
        }
        break;
    }
    *target = copy_text(decoding, text);
}

bool decode_item(struct decoding *decoding, const struct field *field, struct str text,
                 struct place place, struct str *ret_item)
{
    if (field->names != NULL && !is_listed(text, field->names)) {
        decode_fail(decoding, place, "not_allowed", list_names(decoding->arena, field->names));
        return false;
    }
    if (!check_text(decoding, text, field, place)) {
        return false;
    }
    *ret_item = copy_text(decoding, text);
    return true;
}

void decode_i64(struct decoding *decoding, const struct field *field, int64_t value,
                struct place place)
{
    int64_t max = decode_max(field);

    if (value < field->min || value > max) {
        decode_fail(
            decoding, place, "out_of_range",
            max == INT64_MAX
                ? arena_printf(decoding->arena, "A whole number of at least %lld is expected.",
                               (long long)field->min)
                : arena_printf(decoding->arena, "A whole number from %lld to %lld is expected.",
                               (long long)field->min, (long long)max));
        return;
    }
    *(int64_t *)decode_target(decoding, field) = value;
}

void decode_double(struct decoding *decoding, const struct field *field, double value,
                   struct place place)
{
    bool ranged = field->min != 0 || field->max != 0;

    if (!isfinite(value) || (ranged && (value < (double)field->min ||
                                        (field->max != 0 && value > (double)field->max)))) {
        decode_fail(decoding, place, "out_of_range",
                    field->max == 0
                        ? arena_printf(decoding->arena, "A number of at least %lld is expected.",
                                       (long long)field->min)
                        : arena_printf(decoding->arena, "A number from %lld to %lld is expected.",
                                       (long long)field->min, (long long)field->max));
        return;
    }
    *(double *)decode_target(decoding, field) = value;
}

void decode_missing(struct decoding *decoding, const struct field *field, struct place place)
{
    if ((field->flags & FIELD_REQUIRED) != 0) {
        decode_fail(decoding, place, "required", "This is required.");
    }
}
