/*
 * Reading JSON without allocation: a bounded pull reader for the hot path (agents' reports).
 * People's API uses jansson through base/decode.h; docs/adr says why there are two.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum json_type {
    JSON_END, /* end of the enclosing object, array or document */
    JSON_ERROR,
    JSON_OBJ,
    JSON_ARR,
    JSON_STR,
    JSON_NUM,
    JSON_BOOL,
    JSON_NUL,
};

#define JSON_DEPTH_MAX 32

struct json_reader {
    const char *at;
    const char *end;
    const char *error; /* static text, NULL while all is well */
    int depth;
    uint8_t stack[JSON_DEPTH_MAX]; /* '{' or '[' */
    bool first;                    /* no member of the present container was read yet */
};

void json_open(struct json_reader *reader, struct str text);
/* In an object: the next key (raw bytes between the quotes; keys with escapes are an error) and the
 * type of its value, which the reader now stands on. In an array or at top level: ret_key is
 * ignored and may be NULL. JSON_END leaves the container. On JSON_OBJ and JSON_ARR the reader has
 * entered it. */
enum json_type json_next(struct json_reader *reader, struct str *ret_key);
/* The value the reader stands on. */
bool json_get_i64(struct json_reader *reader, int64_t *ret_value) MUST_CHECK;    /* integers only */
bool json_get_double(struct json_reader *reader, double *ret_value) MUST_CHECK;
bool json_get_bool(struct json_reader *reader, bool *ret_value) MUST_CHECK;
/* Raw bytes between the quotes, still escaped, checked for form; *ret_plain says there is no escape. */
bool json_get_raw_str(struct json_reader *reader, struct str *ret_raw, bool *ret_plain) MUST_CHECK;
/* Unescapes into buf (cap bytes); false when it does not fit or is not valid UTF-8. */
bool json_unescape(struct str raw, char *buf, size_t cap, struct str *ret_text) MUST_CHECK;
/* Passes over the value the reader stands on or has just entered. */
bool json_skip(struct json_reader *reader) MUST_CHECK;
/* The whole value the reader stands on or has just entered, as text; the reader is after it. */
bool json_get_raw(struct json_reader *reader, struct str *ret_text) MUST_CHECK;
/* True when the document was well formed and only white space is left. */
bool json_close(struct json_reader *reader) MUST_CHECK;

#endif
