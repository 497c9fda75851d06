/* Strict decoding of JSON bodies into structs, by tables; all errors at once. */
#include "base/decode.h"

#include <string.h>

#include "base/buf.h"
#include "base/decode_internal.h"
#include "base/encode.h"
#include "base/json.h"

/* A foreign key is shown in a pointer up to here. */
#define POINTER_KEY_BYTES 128

static bool holds_nul(struct str text)
{
    return text.len > 0 && memchr(text.ptr, '\0', text.len) != NULL;
}

static bool keeps_in_fragment(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._!$&'()*+,;=:@?", c) != NULL);
}

/* Adds "/key" to a pointer: RFC 6901 3 (~0, ~1) inside a URI fragment (its section 6). */
static void add_pointer_key(struct buf *pointer, struct str key)
{
    bool cut = key.len > POINTER_KEY_BYTES;

    buf_add_char(pointer, '/');
    for (size_t i = 0; i < (cut ? POINTER_KEY_BYTES : key.len); i++) {
        char c = key.ptr[i];

        if (c == '~') {
            buf_add_c(pointer, "~0");
        } else if (c == '/') {
            buf_add_c(pointer, "~1");
        } else if (keeps_in_fragment(c)) {
            buf_add_char(pointer, c);
        } else {
            buf_printf(pointer, "%%%02X", (unsigned)(uint8_t)c);
        }
    }
    if (cut) {
        buf_add_c(pointer, "...");
    }
}

static struct place place_of_key(struct decoding *decoding, struct str key)
{
    CLEANUP(buf_free) struct buf pointer = {0};

    buf_add_char(&pointer, '#');
    add_pointer_key(&pointer, key);
    return (struct place){.pointer = arena_strndup(decoding->arena, pointer.ptr, pointer.len)};
}

static struct place place_of_item(struct decoding *decoding, const struct field *field,
                                  size_t index)
{
    struct place list = place_of_key(decoding, str_of(field->name));

    return (struct place){.pointer = arena_printf(decoding->arena, "%s/%zu", list.pointer, index)};
}

static struct str json_text(const json_t *value)
{
    return (struct str){json_string_value(value), json_string_length(value)};
}

static void store_list(struct decoding *decoding, const struct field *field, json_t *value,
                       struct place place)
{
    struct str_list *list = decode_target(decoding, field);
    size_t count = json_array_size(value);

    if (count < (size_t)field->min || count > (size_t)decode_max(field)) {
        decode_fail(decoding, place, count < (size_t)field->min ? "too_short" : "too_long",
                    arena_printf(decoding->arena, "%lld to %lld items are expected.",
                                 (long long)field->min, (long long)decode_max(field)));
        return;
    }
    list->items = arena_alloc(decoding->arena, count * sizeof(*list->items));
    for (size_t i = 0; i < count; i++) {
        json_t *item = json_array_get(value, i);

        if (!json_is_string(item)) {
            decode_fail(decoding, place_of_item(decoding, field, i), "wrong_type",
                        "Text is expected.");
            continue;
        }
        if (decode_item(decoding, field, json_text(item), place_of_item(decoding, field, i),
                        &list->items[list->count])) {
            list->count++;
        }
    }
}

/* Writes a value compactly; false when a text in it holds U+0000. Recursion is bounded by the depth
 * check before parsing. */
static bool write_value(struct enc *enc, json_t *value)
{
    bool clean = true;
    const char *key;
    size_t key_len;
    size_t index;
    json_t *inner;

    switch (json_typeof(value)) {
    case JSON_OBJECT:
        enc_obj(enc);
        json_object_keylen_foreach(value, key, key_len, inner)
        {
            enc_key_str(enc, (struct str){key, key_len});
            clean = write_value(enc, inner) && clean;
        }
        enc_obj_end(enc);
        return clean;
    case JSON_ARRAY:
        enc_arr(enc);
        json_array_foreach (value, index, inner) {
            clean = write_value(enc, inner) && clean;
        }
        enc_arr_end(enc);
        return clean;
    case JSON_STRING:
        enc_str(enc, json_text(value));
        return !holds_nul(json_text(value));
    case JSON_INTEGER:
        enc_i64(enc, json_integer_value(value));
        return true;
    case JSON_REAL:
        enc_double_exact(enc, json_real_value(value));
        return true;
    case JSON_TRUE:
    case JSON_FALSE:
        enc_bool(enc, json_is_true(value));
        return true;
    case JSON_NULL:
    default:
        enc_null(enc);
        return true;
    }
}

static void store_json(struct decoding *decoding, const struct field *field, json_t *value,
                       struct place place)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;

    if ((field->flags & FIELD_OBJECT) != 0 && !json_is_object(value)) {
        decode_fail(decoding, place, "wrong_type", "An object is expected.");
        return;
    }
    enc_init(&enc, &text);
    if (!write_value(&enc, value)) {
        decode_fail(decoding, place, "invalid_format", "Text may not hold U+0000.");
        return;
    }
    if (text.len > (size_t)decode_max(field)) {
        decode_fail(decoding, place, "too_long",
                    arena_printf(decoding->arena, "At most %lld bytes of JSON are allowed.",
                                 (long long)decode_max(field)));
        return;
    }
    *(struct str *)decode_target(decoding, field) =
        (struct str){arena_strndup(decoding->arena, text.ptr, text.len), text.len};
}

/* What JSON type a field wants, for the sentence. */
static const char *expected_type(enum field_type type)
{
    switch (type) {
    case FIELD_I64:
        return "A whole number is expected.";
    case FIELD_DOUBLE:
        return "A number is expected.";
    case FIELD_BOOL:
        return "true or false is expected.";
    case FIELD_STR_LIST:
        return "An array of texts is expected.";
    case FIELD_JSON:
        return "A value other than null is expected.";
    case FIELD_STR:
    case FIELD_UUID:
    case FIELD_TIME:
    case FIELD_ENUM:
    case FIELD_NAME:
    case FIELD_HOST:
    default:
        return "Text is expected.";
    }
}

static bool fits_type(enum field_type type, const json_t *value)
{
    switch (type) {
    case FIELD_I64:
        return json_is_integer(value);
    case FIELD_DOUBLE:
        return json_is_number(value);
    case FIELD_BOOL:
        return json_is_boolean(value);
    case FIELD_STR_LIST:
        return json_is_array(value);
    case FIELD_JSON:
        return !json_is_null(value);
    case FIELD_STR:
    case FIELD_UUID:
    case FIELD_TIME:
    case FIELD_ENUM:
    case FIELD_NAME:
    case FIELD_HOST:
    default:
        return json_is_string(value);
    }
}

static void store_value(struct decoding *decoding, const struct field *field, json_t *value)
{
    struct place place = place_of_key(decoding, str_of(field->name));

    decode_mark_present(decoding, field);
    if (json_is_null(value) && (field->flags & FIELD_NULLABLE) != 0) {
        if (field->null_offset != 0) {
            *(bool *)((char *)decoding->out + field->null_offset) = true;
        }
        return;
    }
    if (!fits_type(field->type, value)) {
        decode_fail(decoding, place, "wrong_type", expected_type(field->type));
        return;
    }
    switch (field->type) {
    case FIELD_I64:
        decode_i64(decoding, field, json_integer_value(value), place);
        break;
    case FIELD_DOUBLE:
        decode_double(decoding, field, json_number_value(value), place);
        break;
    case FIELD_BOOL:
        *(bool *)decode_target(decoding, field) = json_is_true(value);
        break;
    case FIELD_STR_LIST:
        store_list(decoding, field, value, place);
        break;
    case FIELD_JSON:
        store_json(decoding, field, value, place);
        break;
    case FIELD_STR:
    case FIELD_UUID:
    case FIELD_TIME:
    case FIELD_ENUM:
    case FIELD_NAME:
    case FIELD_HOST:
    default:
        decode_text(decoding, field, json_text(value), place);
        break;
    }
}

static void store_object(struct decoding *decoding, json_t *root)
{
    const char *key;
    json_t *value;
    size_t key_len;

    if (!json_is_object(root)) {
        decode_fail(decoding, (struct place){.pointer = "#"}, "wrong_type",
                    "A JSON object is expected.");
        return;
    }
    for (const struct field *field = decoding->fields; field->name != NULL; field++) {
        value = json_object_get(root, field->name);
        if (value == NULL) {
            decode_missing(decoding, field, place_of_key(decoding, str_of(field->name)));
        } else {
            store_value(decoding, field, value);
        }
    }
    json_object_keylen_foreach(root, key, key_len, value)
    {
        const struct field *field = decoding->fields;

        while (field->name != NULL && !str_eq_c((struct str){key, key_len}, field->name)) {
            field++;
        }
        if (field->name == NULL) {
            /* Not through place_of_key first: a body may have thousands of them. */
            decode_fail(decoding,
                        decoding->errors->count < DECODE_ERRORS_MAX
                            ? place_of_key(decoding, (struct str){key, key_len})
                            : (struct place){0},
                        "unknown_field", "There is no such field.");
        }
    }
}

/* Passes over the string that begins at body.ptr[at]; the index after its closing quote. */
static size_t skip_string(struct str body, size_t at)
{
    for (at++; at < body.len && body.ptr[at] != '"'; at++) {
        if (body.ptr[at] == '\\') {
            at++;
        }
    }
    return at < body.len ? at + 1 : body.len;
}

static bool is_too_deep(struct str body)
{
    size_t depth = 0;

    for (size_t at = 0; at < body.len;) {
        char c = body.ptr[at];

        if (c == '"') {
            at = skip_string(body, at);
            continue;
        }
        if (c == '{' || c == '[') {
            depth++;
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        }
        if (depth > JSON_DEPTH_MAX) {
            return true;
        }
        at++;
    }
    return false;
}

/* One level of the path to a place in the text. */
struct level {
    bool is_object;
    bool wants_key; /* the next string is a key */
    size_t index;
    struct str raw_key;
};

/* The path at an offset of a text whose form is good up to there. */
static size_t find_path(struct str body, size_t position, struct level levels[JSON_DEPTH_MAX])
{
    size_t depth = 0;

    for (size_t at = 0; at < body.len && at < position;) {
        struct level *level = depth > 0 ? &levels[depth - 1] : NULL;
        char c = body.ptr[at];

        if (c == '"') {
            size_t end = skip_string(body, at);

            if (level != NULL && level->wants_key && end >= at + 2) {
                level->raw_key = (struct str){body.ptr + at + 1, end - at - 2};
                level->wants_key = false;
            }
            at = end;
            continue;
        }
        if (c == '{' || c == '[') {
            if (depth == JSON_DEPTH_MAX) {
                break;
            }
            levels[depth++] = (struct level){.is_object = c == '{', .wants_key = c == '{'};
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        } else if (c == ',' && level != NULL) {
            level->index++;
            level->wants_key = level->is_object;
        }
        at++;
    }
    return depth;
}

static struct place find_place(struct decoding *decoding, struct str body, size_t position)
{
    CLEANUP(buf_free) struct buf pointer = {0};
    struct level levels[JSON_DEPTH_MAX];
    size_t depth = find_path(body, position, levels);

    buf_add_char(&pointer, '#');
    for (size_t i = 0; i < depth; i++) {
        struct str raw = levels[i].raw_key;
        struct str key = raw;

        if (!levels[i].is_object) {
            buf_printf(&pointer, "/%zu", levels[i].index);
            continue;
        }
        if (!json_unescape(raw, arena_alloc(decoding->arena, raw.len), raw.len, &key)) {
            key = raw;
        }
        add_pointer_key(&pointer, key);
    }
    return (struct place){.pointer = arena_strndup(decoding->arena, pointer.ptr, pointer.len)};
}

/* The errors of the parser that are about meaning, not form. */
static const struct parser_error {
    enum json_error_code parser_code;
    const char *code;
    const char *detail;
} parser_errors[] = {
    {json_error_duplicate_key, "duplicate", "This member stands twice in its object."},
    {json_error_numeric_overflow, "out_of_range", "This number is too large."},
    {json_error_null_byte_in_key, "invalid_format", "A member's name may not hold U+0000."},
};

static json_t *parse_body(struct decoding *decoding, struct str body, const char **ret_detail)
{
    const size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL;
    json_error_t error;
    json_t *root = json_loadb(body.ptr, body.len, flags | JSON_REJECT_DUPLICATES, &error);

    if (root != NULL) {
        return root;
    }
    for (size_t i = 0; i < COUNTOF(parser_errors); i++) {
        if (json_error_code(&error) == parser_errors[i].parser_code) {
            decode_fail(decoding, find_place(decoding, body, (size_t)error.position),
                        parser_errors[i].code, parser_errors[i].detail);
            /* Without the check for duplicates the other errors can be told in the same answer. */
            return i == 0 ? json_loadb(body.ptr, body.len, flags, &error) : NULL;
        }
    }
    *ret_detail = arena_printf(decoding->arena, "Line %d, column %d: %s.", error.line, error.column,
                               error.text);
    return NULL;
}

enum err decode_body(struct arena *arena, struct str body, const struct field *fields, void *out,
                     struct decode_errors *errors, const char **ret_detail)
{
    struct decoding decoding = {.arena = arena, .fields = fields, .out = out, .errors = errors};

    (void)decode_field_count(fields);
    *errors = (struct decode_errors){0};
    if (str_trim(body).len == 0) {
        *ret_detail = "The body is empty; a JSON object is expected.";
        return ERR_BAD_JSON;
    }
    if (holds_nul(body)) {
        /* jansson passes over a NUL byte behind a number. */
        *ret_detail = "The body holds a NUL byte.";
        return ERR_BAD_JSON;
    }
    if (is_too_deep(body)) {
        *ret_detail = "The body is nested deeper than 32 levels.";
        return ERR_BAD_JSON;
    }

    json_auto_t *root = parse_body(&decoding, body, ret_detail);
    if (root == NULL) {
        return errors->count > 0 ? ERR_INVALID_FIELDS : ERR_BAD_JSON;
    }
    store_object(&decoding, root);
    return errors->count > 0 ? ERR_INVALID_FIELDS : ERR_NONE;
}
