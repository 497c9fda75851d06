/* A small bounded pattern matcher for log lines: linear in practice, never exponential. */
#include "agent/rules/match.h"

#include <ctype.h>
#include <string.h>

struct cursor {
    const char *pattern;
    size_t at; /* in the text */
    size_t captures;
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || (c != '\0' && strchr("_./@-", c) != NULL);
}

static bool fits(char kind, char c)
{
    switch (kind) {
    case 'd':
        return c >= '0' && c <= '9';
    case 'x':
        return isxdigit((unsigned char)c) || c == 'x' || c == 'X';
    case 'p':
        return isxdigit((unsigned char)c) || c == ':' || c == '.';
    case 'w':
        return is_word(c);
    default:
        return !isspace((unsigned char)c);
    }
}

static size_t measure(char kind, struct str text, size_t at)
{
    size_t len = 0;

    while (at + len < text.len && fits(kind, text.ptr[at + len])) {
        len++;
    }
    if (kind == 'p') {
        /* "GPU 0000:09:00.0: GPU has": the last colon is punctuation. */
        while (len > 0 && (text.ptr[at + len - 1] == ':' || text.ptr[at + len - 1] == '.')) {
            len--;
        }
    }
    return len;
}

static bool same(char a, char b, bool nocase)
{
    return a == b || (nocase && tolower((unsigned char)a) == tolower((unsigned char)b));
}

/* One sign of the pattern at the cursor; false when it does not fit. */
static bool step(struct cursor *cursor, struct str text, bool nocase, struct match *match)
{
    char sign = cursor->pattern[0];

    if (sign == '%' && cursor->pattern[1] != '%') {
        size_t len = measure(cursor->pattern[1], text, cursor->at);

        if (len == 0) {
            return false;
        }
        if (cursor->captures < MATCH_CAPTURES_MAX) {
            match->captures[cursor->captures] = (struct str){text.ptr + cursor->at, len};
        }
        cursor->captures++;
        cursor->at += len;
        cursor->pattern += 2;
        return true;
    }
    if (cursor->at >= text.len || !same(sign, text.ptr[cursor->at], nocase)) {
        return false;
    }
    cursor->at++;
    cursor->pattern += sign == '%' ? 2 : 1;
    return true;
}

bool match_text(const char *pattern, struct str text, struct match *ret_match)
{
    bool nocase = strncmp(pattern, "(?i)", 4) == 0;
    struct cursor now = {.pattern = nocase ? pattern + 4 : pattern};
    struct cursor star = {.pattern = NULL};

    for (;;) {
        if (now.pattern[0] == '*') {
            now.pattern++;
            star = now;
            if (now.pattern[0] == '\0') {
                break;
            }
            continue;
        }
        if (now.pattern[0] == '\0' && now.at == text.len) {
            break;
        }
        if (now.pattern[0] != '\0' && step(&now, text, nocase, ret_match)) {
            continue;
        }
        if (star.pattern == NULL || star.at >= text.len) {
            return false;
        }
        star.at++;
        now = star;
    }
    ret_match->count = now.captures < MATCH_CAPTURES_MAX ? now.captures : MATCH_CAPTURES_MAX;
    return true;
}
