/* Strict decoding of JSON bodies and query strings into structs, by tables; all errors at once. */
#ifndef BASE_DECODE_H
#define BASE_DECODE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

enum field_type {
    FIELD_STR,      /* struct str; min/max are lengths in bytes */
    FIELD_I64,      /* int64_t; min/max are values */
    FIELD_DOUBLE,   /* double */
    FIELD_BOOL,     /* bool */
    FIELD_UUID,     /* struct str holding the 36 characters, lower case */
    FIELD_TIME,     /* int64_t microseconds, from RFC 3339 */
    FIELD_ENUM,     /* struct str; one of the names in `names` */
    FIELD_NAME,     /* struct str; a DNS label */
    FIELD_HOST,     /* struct str; an RFC 1123 host name */
    FIELD_STR_LIST, /* struct str_list; min/max are item counts, names (when set) the allowed items
                     */
    FIELD_JSON,     /* struct str: the value's compact JSON text; max is bytes */
};

enum field_flag {
    FIELD_REQUIRED = 1 << 0,
    FIELD_NULLABLE = 1 << 1, /* null is allowed and leaves the zero value with present = true */
    FIELD_OBJECT = 1 << 2,   /* FIELD_JSON only: must be an object */
    FIELD_LINES = 1 << 3,    /* texts only: they may have line breaks and tabs */
};

struct str_list {
    struct str *items;
    size_t count;
};

struct field {
    const char *name;
    enum field_type type;
    size_t offset;         /* offsetof(struct x, member) */
    size_t present_offset; /* offsetof of a bool set when the field was there; 0 = none */
    unsigned flags;
    int64_t min;
    int64_t max; /* 0 = the type's own default: 255 bytes, INT64_MAX, 100 items, 16 KiB */
    const char *const *names; /* NULL-terminated */
    size_t null_offset;       /* offsetof of a bool set when the field was null; 0 = none */
};

struct field_error {
    const char *pointer;   /* JSON pointer with #, e.g. "#/name"; NULL for a query parameter */
    const char *parameter; /* query parameter's name; NULL for a body */
    const char *code; /* required unknown_field duplicate wrong_type too_long too_short out_of_range
                         not_allowed invalid_format */
    const char *detail; /* says what is expected */
};

#define DECODE_ERRORS_MAX 16

struct decode_errors {
    struct field_error items[DECODE_ERRORS_MAX];
    size_t count; /* errors past the 16th are counted in dropped */
    size_t dropped;
};

/*
 * Body: ERR_BAD_JSON (not parseable; detail in *ret_detail), ERR_INVALID_FIELDS (see errors), or 0.
 * Unknown fields, duplicate members (by any spelling, at any depth; the first of several), wrong
 * types, ranges and missing fields are all reported. Depth is at most 32; U+0000 is refused in
 * text, and in FIELD_STR and FIELD_STR_LIST what hidden_find finds. `fields` (at most 64) ends
 * with a row whose name is NULL. The caller has zeroed *out; its content means nothing after an
 * error. Text in *out lives in the arena and ends with a NUL byte. The pointer is an RFC 6901 URI
 * fragment; "#" is the body itself.
 */
enum err decode_body(struct arena *arena, struct str body, const struct field *fields, void *out,
                     struct decode_errors *errors, const char **ret_detail) MUST_CHECK;
/* Query string without '?'; percent-decoding is strict, %00 is refused, '+' is a space; a repeated
 * parameter is a duplicate unless FIELD_STR_LIST. ERR_BAD_REQUEST (encoding; then one error says
 * where), ERR_INVALID_FIELDS, or 0. FIELD_JSON and FIELD_NULLABLE make no sense here. */
enum err decode_query(struct arena *arena, struct str query, const struct field *fields, void *out,
                      struct decode_errors *errors) MUST_CHECK;
/* Adds an error found by a handler. */
void decode_error_add(struct arena *arena, struct decode_errors *errors, const char *pointer,
                      const char *code, const char *detail);

#endif
