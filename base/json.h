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
    enum json_type pending;        /* the scalar the reader stands on; JSON_END = none */
};

/*
 * Strict RFC 8259. On top of it strings are refused when they hold \u0000 or half a surrogate pair,
 * because PostgreSQL's jsonb refuses them; duplicate keys are seen one after the other. A scalar
 * that the caller does not get is checked and passed over by the next json_next. A getter that
 * returns false because the value has another type or range leaves `error` NULL and the reader in
 * place, so that the value can be skipped; malformed text sets `error` for good.
 */

void json_open(struct json_reader *reader, struct str text);
/* In an object: the next key (raw bytes between the quotes; keys with escapes are an error) and the
 * type of its value, which the reader now stands on. In an array or at top level: ret_key is
 * ignored and may be NULL. JSON_END leaves the container. On JSON_OBJ and JSON_ARR the reader has
 * entered it. */
enum json_type json_next(struct json_reader *reader, struct str *ret_key);
/* The value the reader stands on. */
bool json_get_i64(struct json_reader *reader, int64_t *ret_value) MUST_CHECK; /* integers only */
bool json_get_double(struct json_reader *reader,
                     double *ret_value) MUST_CHECK; /* finite; <= 127 characters */
bool json_get_bool(struct json_reader *reader, bool *ret_value) MUST_CHECK;
/* Raw bytes between the quotes, still escaped, checked for form; *ret_plain says there is no escape
 * (it may be NULL). */
bool json_get_raw_str(struct json_reader *reader, struct str *ret_raw, bool *ret_plain) MUST_CHECK;
/* Unescapes into buf (cap bytes); false when it does not fit or is not valid UTF-8. */
bool json_unescape(struct str raw, char *buf, size_t cap, struct str *ret_text) MUST_CHECK;
/* Passes over the value the reader stands on, else to the end of the container the reader is in. */
bool json_skip(struct json_reader *reader) MUST_CHECK;
/* The whole value the reader stands on or has just entered, as text; the reader is after it. */
bool json_get_raw(struct json_reader *reader, struct str *ret_text) MUST_CHECK;
/* True when the document was well formed and only white space is left. */
bool json_close(struct json_reader *reader) MUST_CHECK;

#endif
