/* Writing JSON: a small writer over a buf that keeps commas and escapes right. */
#include "base/encode.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void enc_init(struct enc *enc, struct buf *buf)
{
    enc->buf = buf;
    enc->need_comma = false;
}

static void begin_value(struct enc *enc)
{
    if (enc->need_comma) {
        buf_add_char(enc->buf, ',');
    }
    enc->need_comma = true;
}

void enc_obj(struct enc *enc)
{
    begin_value(enc);
    buf_add_char(enc->buf, '{');
    enc->need_comma = false;
}

void enc_obj_end(struct enc *enc)
{
    buf_add_char(enc->buf, '}');
    enc->need_comma = true;
}

void enc_arr(struct enc *enc)
{
    begin_value(enc);
    buf_add_char(enc->buf, '[');
    enc->need_comma = false;
}

void enc_arr_end(struct enc *enc)
{
    buf_add_char(enc->buf, ']');
    enc->need_comma = true;
}

void enc_key(struct enc *enc, const char *key)
{
    size_t len = strlen(key);

    buf_reserve(enc->buf, len + 4);
    begin_value(enc);
    buf_add_char(enc->buf, '"');
    buf_add(enc->buf, key, len);
    buf_add(enc->buf, "\":", 2);
    enc->need_comma = false;
}

/* The two-character escapes of RFC 8259 7; 0 for those that need \u00xx. */
static char short_escape(unsigned char c)
{
    switch (c) {
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    case '"':
    case '\\':
        return (char)c;
    default:
        return '\0';
    }
}

void enc_key_str(struct enc *enc, struct str key)
{
    enc_str(enc, key);
    buf_add_char(enc->buf, ':');
    enc->need_comma = false;
}

static void add_escape(struct buf *buf, unsigned char c)
{
    static const char digits[] = "0123456789abcdef";
    char text[6] = {'\\', short_escape(c)};

    if (text[1] != '\0') {
        buf_add(buf, text, 2);
        return;
    }
    text[1] = 'u';
    text[2] = '0';
    text[3] = '0';
    text[4] = digits[c >> 4];
    text[5] = digits[c & 0x0f];
    buf_add(buf, text, sizeof(text));
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

void enc_str(struct enc *enc, struct str value)
{
    struct buf *buf = enc->buf;
    size_t i = 0;

    begin_value(enc);
    buf_reserve(buf, value.len + 2);
    buf_add_char(buf, '"');
    while (i < value.len) {
        size_t start = i;
        size_t len;

        while (i < value.len && is_plain((unsigned char)value.ptr[i])) {
            i++;
        }
        buf_add(buf, value.ptr + start, i - start);
        if (i == value.len) {
            break;
        }
        if ((unsigned char)value.ptr[i] < 0x80) {
            add_escape(buf, (unsigned char)value.ptr[i]);
            i++;
            continue;
        }
        len = str_utf8_len((struct str){value.ptr + i, value.len - i});
        if (len == 0) {
            buf_add(buf, "\xef\xbf\xbd", 3);
            i++;
            continue;
        }
        buf_add(buf, value.ptr + i, len);
        i += len;
    }
    buf_add_char(buf, '"');
}

void enc_cstr(struct enc *enc, const char *value)
{
    if (value == NULL) {
        enc_null(enc);
        return;
    }
    enc_str(enc, str_of(value));
}

void enc_i64(struct enc *enc, int64_t value)
{
    char text[24];
    size_t at = sizeof(text);
    /* The magnitude as unsigned: INT64_MIN has no positive twin. */
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

    do {
        text[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0) {
        text[--at] = '-';
    }
    begin_value(enc);
    buf_add(enc->buf, text + at, sizeof(text) - at);
}

void enc_double(struct enc *enc, double value, int decimals)
{
    /* 309 digits before the point for DBL_MAX, 17 after it. */
    char text[352];
    int len;

    if (!isfinite(value)) {
        enc_null(enc);
        return;
    }
    if (decimals < 0) {
        decimals = 0;
    } else if (decimals > 17) {
        decimals = 17;
    }
    len = snprintf(text, sizeof(text), "%.*f", decimals, value);
    begin_value(enc);
    buf_add(enc->buf, text, (size_t)len);
}

void enc_double_exact(struct enc *enc, double value)
{
    char text[40];
    double back = 0;
    int len = 0;

    if (!isfinite(value)) {
        enc_null(enc);
        return;
    }
    /* 15 digits always survive text -> double -> text, 17 always survive double -> text -> double.
     */
    for (int digits = 15; digits <= 17; digits++) {
        len = snprintf(text, sizeof(text), "%.*g", digits, value);
        if (str_parse_double((struct str){text, (size_t)len}, &back) && back == value) {
            break;
        }
    }
    begin_value(enc);
    buf_add(enc->buf, text, (size_t)len);
}

void enc_bool(struct enc *enc, bool value)
{
    begin_value(enc);
    buf_add_c(enc->buf, value ? "true" : "false");
}

void enc_null(struct enc *enc)
{
    begin_value(enc);
    buf_add(enc->buf, "null", 4);
}

void enc_raw(struct enc *enc, struct str json)
{
    begin_value(enc);
    buf_add(enc->buf, json.ptr, json.len);
}

void enc_uuid(struct enc *enc, const struct uuid *value)
{
    char text[UUID_TEXT_LEN + 1];

    uuid_format(value, text);
    begin_value(enc);
    buf_add_char(enc->buf, '"');
    buf_add(enc->buf, text, UUID_TEXT_LEN);
    buf_add_char(enc->buf, '"');
}

void enc_time(struct enc *enc, int64_t us)
{
    char text[STR_RFC3339_LEN + 1];

    str_format_rfc3339(us, text);
    begin_value(enc);
    buf_add_char(enc->buf, '"');
    buf_add(enc->buf, text, STR_RFC3339_LEN);
    buf_add_char(enc->buf, '"');
}
