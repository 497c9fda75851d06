/* Log lines as the kernel, journald and syslog write them, cut into their parts. */
#include "agent/rules/log_line.h"

#include <ctype.h>
#include <string.h>

#include "agent/rules/match.h"

#define PREFIXES_MAX 6

static struct str skip(struct str text, size_t len)
{
    return (struct str){text.ptr + len, text.len - len};
}

bool kmsg_parse(struct str record, struct kmsg_record *ret_record)
{
    ptrdiff_t semicolon = str_find(record, STR(";"), 0);
    struct str head;
    struct str part;
    uint64_t numbers[3];
    ptrdiff_t end;

    if (semicolon < 0 || semicolon > 200) {
        return false;
    }
    head = (struct str){record.ptr, (size_t)semicolon};
    for (size_t i = 0; i < COUNTOF(numbers); i++) {
        if (!str_split(&head, ',', &part) || !str_parse_u64(part, 0, INT64_MAX, &numbers[i])) {
            return false;
        }
    }
    if (numbers[0] > 2048 || !str_split(&head, ',', &part) || part.len != 1) {
        return false;
    }
    ret_record->priority = (unsigned)numbers[0] & 7;
    ret_record->facility = (unsigned)numbers[0] >> 3;
    ret_record->seq = numbers[1];
    ret_record->uptime_us = (int64_t)numbers[2];
    ret_record->continues = part.ptr[0] == 'c';
    ret_record->text = skip(record, (size_t)semicolon + 1);
    end = str_find(ret_record->text, STR("\n"), 0);
    if (end >= 0) {
        ret_record->text.len = (size_t)end;
    }
    return true;
}

struct str kmsg_unescape(struct str text, char *buf, size_t cap)
{
    size_t len = 0;

    for (size_t i = 0; i < text.len && len < cap; i++) {
        uint64_t value;

        if (text.ptr[i] == '\\' && text.len - i >= 4 && text.ptr[i + 1] == 'x' &&
            isxdigit((unsigned char)text.ptr[i + 2]) &&
            str_parse_hex_u64((struct str){text.ptr + i + 2, 2}, &value)) {
            buf[len++] = (char)value;
            i += 3;
        } else {
            buf[len++] = text.ptr[i];
        }
    }
    return (struct str){buf, len};
}

/* "[ 1843.308145]", "[123]" */
static bool parse_uptime(struct str inner, int64_t *ret_us)
{
    struct str whole;
    uint64_t seconds;
    uint64_t fraction = 0;

    inner = str_trim(inner);
    if (!str_split(&inner, '.', &whole) || !str_parse_u64(whole, 0, UINT32_MAX, &seconds)) {
        return false;
    }
    if (inner.len > 0 && (inner.len != 6 || !str_parse_u64(inner, 0, 999999, &fraction))) {
        return false;
    }
    *ret_us = (int64_t)(seconds * 1000000 + fraction);
    return true;
}

/* A time in brackets at the front; other brackets belong to the text. */
static bool cut_brackets(struct str *text, int64_t *uptime_us)
{
    struct match match;
    ptrdiff_t close = str_find(*text, STR("]"), 0);

    if (text->len == 0 || text->ptr[0] != '[' || close < 0) {
        return false;
    }
    struct str inner = {text->ptr + 1, (size_t)close - 1};
    if (!parse_uptime(inner, uptime_us) && !str_eq_c(inner, "...") &&
        !match_text("%w %w *%d:%d:%d*", inner, &match) &&
        !match_text("%d-%d-%w:*", inner, &match)) {
        return false;
    }
    *text = skip(*text, (size_t)close + 1);
    if (text->len > 0 && text->ptr[0] == ':') {
        *text = skip(*text, 1);
    }
    *text = str_trim(*text);
    return true;
}

/* "Feb 23 03:28:16 " */
static bool cut_date(struct str *text)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char month[4] = "";

    if (text->len < 16 || text->ptr[3] != ' ' || text->ptr[6] != ' ' || text->ptr[9] != ':' ||
        text->ptr[12] != ':' || text->ptr[15] != ' ') {
        return false;
    }
    memcpy(month, text->ptr, 3);
    const char *found = strstr(months, month);
    if (found == NULL || (found - months) % 3 != 0) {
        return false;
    }
    *text = str_trim(skip(*text, 16));
    return true;
}

static bool cut_rfc3339(struct str *text)
{
    struct str rest = *text;
    struct str word;
    int64_t at;

    if (!str_split(&rest, ' ', &word) || !str_parse_rfc3339(word, &at)) {
        return false;
    }
    *text = str_trim(rest);
    return true;
}

/* Who wrote it: "kernel: ", "host kernel: ", "host service[812]: ", "service[812]: ". A host name
 * is believed only behind a time. */
static bool cut_ident(struct str *text, bool host_too, struct str *ret_ident)
{
    struct str rest = *text;
    struct str word;

    for (int i = 0; i < (host_too ? 2 : 1); i++) {
        if (!str_split(&rest, ' ', &word) || word.len == 0) {
            return false;
        }
        if (word.ptr[word.len - 1] != ':') {
            continue;
        }
        if (word.len == 1) {
            return false;
        }
        word.len--;
        ptrdiff_t bracket = str_find(word, STR("["), 0);
        if (bracket > 0) {
            word.len = (size_t)bracket;
        }
        *ret_ident = word;
        *text = str_trim(rest);
        return true;
    }
    return false;
}

static bool cut_kernel(struct str *text, bool host_too)
{
    struct str rest = *text;
    struct str ident;

    if (!cut_ident(&rest, host_too, &ident) || !str_eq_c(ident, "kernel")) {
        return false;
    }
    *text = rest;
    return true;
}

/* "kern: warning: " (Talos) */
static bool cut_facility(struct str *text)
{
    struct match match;

    if (!match_text("kern: %w: *", *text, &match)) {
        return false;
    }
    *text = str_trim(
        skip(*text, (size_t)(match.captures[0].ptr - text->ptr) + match.captures[0].len + 1));
    return true;
}

void kernel_line_parse(struct str line, struct log_line *ret_line)
{
    bool time_seen = false;

    *ret_line = (struct log_line){.ident = STR("kernel"), .uptime_us = -1};
    if (kmsg_parse(line, &ret_line->raw)) {
        ret_line->is_raw = true;
        ret_line->uptime_us = ret_line->raw.uptime_us;
        ret_line->text = ret_line->raw.text;
        return;
    }
    line = str_trim(line);
    for (int i = 0; i < PREFIXES_MAX; i++) {
        if (cut_brackets(&line, &ret_line->uptime_us) || cut_date(&line) || cut_rfc3339(&line)) {
            time_seen = true;
        } else if (!cut_facility(&line) && !cut_kernel(&line, time_seen)) {
            break;
        }
    }
    ret_line->text = line;
}

void syslog_line_parse(struct str line, struct log_line *ret_line)
{
    struct match match;
    bool time_seen;

    *ret_line = (struct log_line){.uptime_us = -1};
    line = str_trim(line);
    if (match_text("<%d>*", line, &match)) {
        line = skip(line, match.captures[0].len + 2);
    }
    time_seen = cut_date(&line) || cut_rfc3339(&line);
    if (!cut_ident(&line, time_seen, &ret_line->ident)) {
        ret_line->ident = (struct str){NULL, 0};
    }
    if (str_eq_c(ret_line->ident, "kernel")) {
        (void)cut_brackets(&line, &ret_line->uptime_us);
    }
    ret_line->text = line;
}
