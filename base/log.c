/* The log: one JSON object a line on standard error, or plain text on a terminal. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

/* PIPE_BUF: up to this length one write into a pipe is never mixed with another's. */
#define LINE_MAX_BYTES 4096
/* Room kept at the end of a line for the mark of a cut, the closing quote and the newline. */
#define TAIL_BYTES 16

struct line {
    char text[LINE_MAX_BYTES];
    size_t len;
    bool cut;
};

static const char *program_name = "muster";
static enum log_level lowest_level = LOG_INFO;
static bool as_json;

static _Thread_local const char *context_request_id;
static _Thread_local const char *context_org_id;

static const char *const level_names[] = {"debug", "info", "warning", "error"};

void log_setup(const char *program, enum log_level lowest, bool json)
{
    program_name = program;
    lowest_level = lowest;
    as_json = json;
}

bool log_level_parse(const char *name, enum log_level *ret_level)
{
    for (size_t i = 0; i < COUNTOF(level_names); i++) {
        if (strcmp(name, level_names[i]) == 0) {
            *ret_level = (enum log_level)i;
            return true;
        }
    }
    return false;
}

void log_context(const char *request_id, const char *org_id)
{
    context_request_id = request_id;
    context_org_id = org_id;
}

/* Adds all of text or, when it does not fit, nothing and marks the line as cut. */
static void add(struct line *line, const char *text, size_t len)
{
    if (line->cut || len > sizeof(line->text) - TAIL_BYTES - line->len) {
        line->cut = true;
        return;
    }
    memcpy(line->text + line->len, text, len);
    line->len += len;
}

static void add_c(struct line *line, const char *text)
{
    add(line, text, strlen(text));
}

static uint32_t code_point(const char *at, size_t len)
{
    static const uint8_t masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = (uint8_t)at[0] & masks[len];

    for (size_t i = 1; i < len; i++) {
        code = code << 6 | ((uint8_t)at[i] & 0x3f);
    }
    return code;
}

/* Characters that would let a line forge another one or reorder what a person sees on a terminal.
 */
static bool is_harmful(uint32_t code)
{
    static const struct {
        uint32_t first;
        uint32_t last;
    } ranges[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     {0x061c, 0x061c}, {0x200e, 0x200f},
        {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff},
    };

    for (size_t i = 0; i < COUNTOF(ranges); i++) {
        if (code >= ranges[i].first && code <= ranges[i].last) {
            return true;
        }
    }
    return false;
}

static void add_code_escape(struct line *line, uint32_t code)
{
    char text[16];
    int len;

    switch (code) {
    case '\n':
        add(line, "\\n", 2);
        return;
    case '\t':
        add(line, "\\t", 2);
        return;
    case '\r':
        add(line, "\\r", 2);
        return;
    default:
        /* All harmful characters lie in the basic plane: four digits hold them. */
        len = snprintf(text, sizeof(text), "\\u%04x", (unsigned)code);
        add(line, text, (size_t)len);
        return;
    }
}

/* In JSON quotes and backslashes are escaped too, and an odd byte becomes U+FFFD; plain text shows
 * the byte. */
static void add_escaped(struct line *line, struct str s, bool json)
{
    while (s.len > 0 && !line->cut) {
        size_t len = str_utf8_len(s);
        uint32_t code = len == 0 ? 0 : code_point(s.ptr, len);
        char text[8];

        if (len == 0) {
            int printed = snprintf(text, sizeof(text), json ? "\\ufffd" : "\\x%02x",
                                   (unsigned)(uint8_t)s.ptr[0]);
            add(line, text, (size_t)printed);
            len = 1;
        } else if (is_harmful(code)) {
            add_code_escape(line, code);
        } else if (json && (code == '"' || code == '\\')) {
            add(line, (char[2]){'\\', s.ptr[0]}, 2);
        } else {
            add(line, s.ptr, len);
        }
        s.ptr += len;
        s.len -= len;
    }
}

static void add_member(struct line *line, const char *name, const char *value)
{
    add_c(line, ",\"");
    add_c(line, name);
    add_c(line, "\":\"");
    add_escaped(line, str_of(value), true);
    add_c(line, "\"");
}

static void write_json(struct line *line, enum log_level level, struct str message)
{
    char at[STR_RFC3339_LEN + 1];

    str_format_rfc3339(clock_wall_us(), at);
    add_c(line, "{\"at\":\"");
    add_c(line, at);
    add_c(line, "\"");
    add_member(line, "level", level_names[level]);
    add_member(line, "program", program_name);
    if (context_request_id != NULL) {
        add_member(line, "request_id", context_request_id);
    }
    if (context_org_id != NULL) {
        add_member(line, "org_id", context_org_id);
    }
    add_c(line, ",\"message\":\"");
    add_escaped(line, message, true);
}

static void write_plain(struct line *line, enum log_level level, struct str message)
{
    char at[STR_RFC3339_LEN + 1];
    char head[32];
    int len;

    str_format_rfc3339(clock_wall_us(), at);
    len = snprintf(head, sizeof(head), "%.8s %-7s ", at + 11, level_names[level]);
    add(line, head, (size_t)len);
    add_escaped(line, message, false);
    if (context_request_id != NULL) {
        add_c(line, " request_id=");
        add_escaped(line, str_of(context_request_id), false);
    }
}

static void finish(struct line *line)
{
    const char *tail = line->cut ? (as_json ? "...\"}\n" : "...\n") : (as_json ? "\"}\n" : "\n");
    size_t len = strlen(tail);

    memcpy(line->text + line->len, tail, len);
    line->len += len;
}

void log_write(enum log_level level, const char *format, ...)
{
    int saved = errno;
    char message[LINE_MAX_BYTES];
    struct line line;
    va_list args;
    int len;

    if (level < lowest_level || (size_t)level >= COUNTOF(level_names)) {
        return;
    }
    line.len = 0;
    line.cut = false;
    va_start(args, format);
    len = vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    if (len < 0) {
        len = 0;
    }
    struct str text = {message, (size_t)len};
    if (text.len >= sizeof(message)) {
        text.len = sizeof(message) - 1;
    }
    if (as_json) {
        write_json(&line, level, text);
    } else {
        write_plain(&line, level, text);
    }
    finish(&line);
    /* A log that cannot be written has nowhere to complain. */
    if (write(STDERR_FILENO, line.text, line.len) < 0) {
        errno = saved;
    }
    errno = saved;
}
