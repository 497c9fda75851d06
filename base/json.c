/* Reading JSON without allocation: a bounded pull reader for the hot path. */
#include "base/json.h"

#include <string.h>

static enum json_type fail(struct json_reader *reader, const char *error)
{
    if (reader->error == NULL) {
        reader->error = error;
    }
    reader->pending = JSON_END;
    return JSON_ERROR;
}

void json_open(struct json_reader *reader, struct str text)
{
    *reader = (struct json_reader){
        .at = text.ptr,
        .end = text.len == 0 ? text.ptr : text.ptr + text.len,
        .first = true,
        .pending = JSON_END,
    };
}

static void skip_space(struct json_reader *reader)
{
    const char *at = reader->at;

    while (at < reader->end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) {
        at++;
    }
    reader->at = at;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex_value(char c)
{
    if (is_digit(c)) {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The four digits after \u; -1 when they are not there. */
static int read_hex4(const char *at, const char *end)
{
    int value = 0;

    if (end - at < 4) {
        return -1;
    }
    for (int i = 0; i < 4; i++) {
        int digit = hex_value(at[i]);

        if (digit < 0) {
            return -1;
        }
        value = value << 4 | digit;
    }
    return value;
}

/*
 * Reads the escape that `at` stands on (a backslash). Gives its code point, or -1, and its length.
 * U+0000 and unpaired surrogates are refused: they are no text for a database.
 */
static int32_t read_escape(const char *at, const char *end, size_t *ret_len)
{
    static const char names[] = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";
    const char *found;
    int32_t high;
    int32_t low;

    if (end - at < 2) {
        return -1;
    }
    *ret_len = 2;
    if (at[1] != 'u') {
        found = at[1] == '\0' ? NULL : strchr(names, at[1]);
        return found == NULL ? -1 : values[found - names];
    }
    *ret_len = 6;
    high = read_hex4(at + 2, end);
    if (high <= 0 || (high >= 0xdc00 && high <= 0xdfff)) {
        return -1;
    }
    if (high < 0xd800 || high > 0xdfff) {
        return high;
    }
    if (end - at < 12 || at[6] != '\\' || at[7] != 'u') {
        return -1;
    }
    *ret_len = 12;
    low = read_hex4(at + 8, end);
    if (low < 0xdc00 || low > 0xdfff) {
        return -1;
    }
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

#define EVERY_BYTE(value) (UINT64_C(0x0101010101010101) * (value))

/* Sets the top bit of at least one byte when a byte of the word is under 0x20, a quote, a backslash
 * or not ASCII; gives 0 when all eight are plain. (Bits above the first hit may be wrong.) */
static uint64_t find_special(uint64_t word)
{
    uint64_t quote = word ^ EVERY_BYTE('"');
    uint64_t slash = word ^ EVERY_BYTE('\\');
    uint64_t hits = (word - EVERY_BYTE(0x20)) & ~word;

    hits |= (quote - EVERY_BYTE(1)) & ~quote;
    hits |= (slash - EVERY_BYTE(1)) & ~slash;
    return (hits | word) & EVERY_BYTE(0x80);
}

static const char *skip_plain(const char *at, const char *end)
{
    while (end - at >= 8) {
        uint64_t word;

        memcpy(&word, at, sizeof(word));
        if (find_special(word) != 0) {
            break;
        }
        at += 8;
    }
    while (at < end && (unsigned char)*at >= 0x20 && (unsigned char)*at < 0x80 && *at != '"' &&
           *at != '\\') {
        at++;
    }
    return at;
}

/* Takes the string whose opening quote the reader stands on. */
static bool take_string(struct json_reader *reader, struct str *ret_raw, bool *ret_plain)
{
    const char *start = reader->at + 1;
    const char *at = start;
    bool plain = true;
    size_t len = 0;

    for (;;) {
        at = skip_plain(at, reader->end);
        if (at == reader->end) {
            (void)fail(reader, "a string is not closed");
            return false;
        }
        if (*at == '"') {
            break;
        }
        if ((unsigned char)*at < 0x20) {
            (void)fail(reader, "a control character stands in a string");
            return false;
        }
        if (*at == '\\') {
            plain = false;
            if (read_escape(at, reader->end, &len) < 0) {
                (void)fail(reader, "an escape in a string is not valid");
                return false;
            }
            at += len;
            continue;
        }
        len = str_utf8_len((struct str){at, (size_t)(reader->end - at)});
        if (len == 0) {
            (void)fail(reader, "a string is not valid UTF-8");
            return false;
        }
        at += len;
    }
    reader->at = at + 1;
    *ret_raw = (struct str){start, (size_t)(at - start)};
    if (ret_plain != NULL) {
        *ret_plain = plain;
    }
    return true;
}

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && is_digit(*at)) {
        at++;
    }
    return at;
}

/* End of the number that starts at `at` by the grammar of RFC 8259 6; NULL when it is none. */
static const char *number_end(const char *at, const char *end)
{
    const char *start;

    if (at < end && *at == '-') {
        at++;
    }
    start = at;
    at = skip_digits(at, end);
    if (at == start || (*start == '0' && at - start > 1)) {
        return NULL;
    }
    if (at < end && *at == '.') {
        start = ++at;
        at = skip_digits(at, end);
        if (at == start) {
            return NULL;
        }
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-')) {
            at++;
        }
        start = at;
        at = skip_digits(at, end);
        if (at == start) {
            return NULL;
        }
    }
    return at;
}

static bool take_word(struct json_reader *reader, struct str word)
{
    if ((size_t)(reader->end - reader->at) < word.len ||
        memcmp(reader->at, word.ptr, word.len) != 0) {
        (void)fail(reader, "a value is expected");
        return false;
    }
    reader->at += word.len;
    reader->pending = JSON_END;
    return true;
}

static bool skip_number(struct json_reader *reader)
{
    const char *end = number_end(reader->at, reader->end);

    if (end == NULL) {
        (void)fail(reader, "a number is malformed");
        return false;
    }
    reader->at = end;
    reader->pending = JSON_END;
    return true;
}

static bool skip_bool(struct json_reader *reader)
{
    return take_word(reader, *reader->at == 't' ? STR("true") : STR("false"));
}

/* Passes over the scalar the reader stands on, checking it. */
static bool skip_scalar(struct json_reader *reader)
{
    struct str ignored;

    switch (reader->pending) {
    case JSON_STR:
        reader->pending = JSON_END;
        return take_string(reader, &ignored, NULL);
    case JSON_NUM:
        return skip_number(reader);
    case JSON_BOOL:
        return skip_bool(reader);
    case JSON_NUL:
        return take_word(reader, STR("null"));
    case JSON_END:
    case JSON_ERROR:
    case JSON_OBJ:
    case JSON_ARR:
    default:
        return reader->error == NULL;
    }
}

static enum json_type enter(struct json_reader *reader, enum json_type type)
{
    if (reader->depth == JSON_DEPTH_MAX) {
        return fail(reader, "the nesting is deeper than 32");
    }
    reader->stack[reader->depth++] = (uint8_t)*reader->at;
    reader->at++;
    reader->first = true;
    return type;
}

static enum json_type begin_value(struct json_reader *reader)
{
    if (reader->at == reader->end) {
        return fail(reader, "the text ends before a value");
    }
    reader->first = false;
    switch (*reader->at) {
    case '{':
        return enter(reader, JSON_OBJ);
    case '[':
        return enter(reader, JSON_ARR);
    case '"':
        reader->pending = JSON_STR;
        break;
    case 't':
    case 'f':
        reader->pending = JSON_BOOL;
        break;
    case 'n':
        reader->pending = JSON_NUL;
        break;
    default:
        if (*reader->at != '-' && !is_digit(*reader->at)) {
            return fail(reader, "a value is expected");
        }
        reader->pending = JSON_NUM;
        break;
    }
    return reader->pending;
}

static enum json_type next_at_top(struct json_reader *reader)
{
    if (reader->first) {
        return begin_value(reader);
    }
    if (reader->at != reader->end) {
        return fail(reader, "text stands after the value");
    }
    return JSON_END;
}

/* Takes `"key" :` and leaves the reader before the value. */
static bool take_key(struct json_reader *reader, struct str *ret_key, bool escapes)
{
    bool plain;

    if (reader->at == reader->end || *reader->at != '"') {
        (void)fail(reader, "a key in quotes is expected");
        return false;
    }
    if (!take_string(reader, ret_key, &plain)) {
        return false;
    }
    if (!plain && !escapes) {
        (void)fail(reader, "a key holds an escape");
        return false;
    }
    skip_space(reader);
    if (reader->at == reader->end || *reader->at != ':') {
        (void)fail(reader, "a colon is expected after a key");
        return false;
    }
    reader->at++;
    skip_space(reader);
    return true;
}

static enum json_type next_value(struct json_reader *reader, struct str *ret_key, bool escapes)
{
    struct str key = {0};
    bool in_object;

    if (reader->error != NULL || !skip_scalar(reader)) {
        return JSON_ERROR;
    }
    skip_space(reader);
    if (reader->depth == 0) {
        return next_at_top(reader);
    }
    in_object = reader->stack[reader->depth - 1] == '{';
    if (reader->at == reader->end) {
        return fail(reader, in_object ? "an object is not closed" : "an array is not closed");
    }
    if (*reader->at == (in_object ? '}' : ']')) {
        reader->at++;
        reader->depth--;
        reader->first = false;
        return JSON_END;
    }
    if (!reader->first) {
        if (*reader->at != ',') {
            return fail(reader, "a comma is expected");
        }
        reader->at++;
        skip_space(reader);
    }
    if (in_object) {
        if (!take_key(reader, &key, escapes)) {
            return JSON_ERROR;
        }
        if (ret_key != NULL) {
            *ret_key = key;
        }
    }
    return begin_value(reader);
}

enum json_type json_next(struct json_reader *reader, struct str *ret_key)
{
    return next_value(reader, ret_key, false);
}

bool json_get_i64(struct json_reader *reader, int64_t *ret_value)
{
    const char *at = reader->at;
    const char *start;
    bool negative;
    uint64_t magnitude = 0;

    if (reader->pending != JSON_NUM) {
        return false;
    }
    negative = *at == '-';
    start = negative ? at + 1 : at;
    for (at = start; at < reader->end && is_digit(*at); at++) {
        if (__builtin_mul_overflow(magnitude, (uint64_t)10, &magnitude) ||
            __builtin_add_overflow(magnitude, (uint64_t)(*at - '0'), &magnitude)) {
            return false;
        }
    }
    if (at == start || (*start == '0' && at - start > 1)) {
        (void)fail(reader, "a number is malformed");
        return false;
    }
    if ((at < reader->end && (*at == '.' || *at == 'e' || *at == 'E')) ||
        magnitude > (uint64_t)INT64_MAX + (negative ? 1 : 0)) {
        return false;
    }
    reader->at = at;
    reader->pending = JSON_END;
    *ret_value = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

bool json_get_double(struct json_reader *reader, double *ret_value)
{
    const char *end;

    if (reader->pending != JSON_NUM) {
        return false;
    }
    end = number_end(reader->at, reader->end);
    if (end == NULL) {
        (void)fail(reader, "a number is malformed");
        return false;
    }
    if (!str_parse_double((struct str){reader->at, (size_t)(end - reader->at)}, ret_value)) {
        return false;
    }
    reader->at = end;
    reader->pending = JSON_END;
    return true;
}

bool json_get_bool(struct json_reader *reader, bool *ret_value)
{
    bool value;

    if (reader->pending != JSON_BOOL) {
        return false;
    }
    value = *reader->at == 't';
    if (!skip_bool(reader)) {
        return false;
    }
    *ret_value = value;
    return true;
}

bool json_get_raw_str(struct json_reader *reader, struct str *ret_raw, bool *ret_plain)
{
    if (reader->pending != JSON_STR) {
        return false;
    }
    reader->pending = JSON_END;
    return take_string(reader, ret_raw, ret_plain);
}

/* Writes a code point as UTF-8; the length, 1 to 4. */
static size_t put_utf8(int32_t code, char *at)
{
    uint32_t c = (uint32_t)code;

    if (c < 0x80) {
        at[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        at[0] = (char)(0xc0 | c >> 6);
        at[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        at[0] = (char)(0xe0 | c >> 12);
        at[1] = (char)(0x80 | (c >> 6 & 0x3f));
        at[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    at[0] = (char)(0xf0 | c >> 18);
    at[1] = (char)(0x80 | (c >> 12 & 0x3f));
    at[2] = (char)(0x80 | (c >> 6 & 0x3f));
    at[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

bool json_unescape(struct str raw, char *buf, size_t cap, struct str *ret_text)
{
    const char *end = raw.len == 0 ? raw.ptr : raw.ptr + raw.len;
    size_t used = 0;

    for (const char *at = raw.ptr; at < end;) {
        char decoded[4];
        const char *from = at;
        size_t len = 0;
        size_t taken = 0;

        if (*at == '\\') {
            int32_t code = read_escape(at, end, &taken);

            if (code < 0) {
                return false;
            }
            from = decoded;
            len = put_utf8(code, decoded);
        } else {
            taken = str_utf8_len((struct str){at, (size_t)(end - at)});
            len = taken;
            if (taken == 0 || *at == '\0') {
                return false;
            }
        }
        if (len > cap - used) {
            return false;
        }
        memcpy(buf + used, from, len);
        used += len;
        at += taken;
    }
    *ret_text = (struct str){buf, used};
    return true;
}

bool json_skip(struct json_reader *reader)
{
    int outside = reader->depth - 1;

    if (reader->error != NULL) {
        return false;
    }
    if (reader->pending != JSON_END || reader->depth == 0) {
        return skip_scalar(reader);
    }
    while (reader->depth > outside) {
        if (next_value(reader, NULL, true) == JSON_ERROR) {
            return false;
        }
    }
    return true;
}

bool json_get_raw(struct json_reader *reader, struct str *ret_text)
{
    const char *start = reader->at;

    if (reader->error != NULL) {
        return false;
    }
    if (reader->pending == JSON_END) {
        /* Only a container that was just entered can still be given whole. */
        if (reader->depth == 0 || !reader->first) {
            return false;
        }
        start--;
    }
    if (!json_skip(reader)) {
        return false;
    }
    *ret_text = (struct str){start, (size_t)(reader->at - start)};
    return true;
}

bool json_close(struct json_reader *reader)
{
    if (reader->error != NULL || reader->depth != 0 || reader->first || !skip_scalar(reader)) {
        return false;
    }
    skip_space(reader);
    if (reader->at != reader->end) {
        (void)fail(reader, "text stands after the value");
        return false;
    }
    return true;
}
