/* Text with a length, and strict parsers for what comes over the wire. */
#include "base/str.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

struct str str_of(const char *text)
{
    return (struct str){text, text == NULL ? 0 : strlen(text)};
}

bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

bool str_eq_c(struct str a, const char *b)
{
    return str_eq(a, str_of(b));
}

static char to_lower(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return (char)(c + ('a' - 'A'));
    }
    return c;
}

bool str_eq_nocase(struct str a, struct str b)
{
    if (a.len != b.len) {
        return false;
    }
    for (size_t i = 0; i < a.len; i++) {
        if (to_lower(a.ptr[i]) != to_lower(b.ptr[i])) {
            return false;
        }
    }
    return true;
}

bool str_starts(struct str s, struct str prefix)
{
    return s.len >= prefix.len && str_eq((struct str){s.ptr, prefix.len}, prefix);
}

bool str_ends(struct str s, struct str suffix)
{
    return s.len >= suffix.len &&
           (suffix.len == 0 || memcmp(s.ptr + s.len - suffix.len, suffix.ptr, suffix.len) == 0);
}

ptrdiff_t str_find(struct str s, struct str needle, size_t from)
{
    const char *found;

    if (from > s.len) {
        return -1;
    }
    if (needle.len == 0) {
        return (ptrdiff_t)from;
    }
    if (needle.len > s.len - from) {
        return -1;
    }
    found = memmem(s.ptr + from, s.len - from, needle.ptr, needle.len);
    return found == NULL ? -1 : found - s.ptr;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str s)
{
    while (s.len > 0 && is_space(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && is_space(s.ptr[s.len - 1])) {
        s.len--;
    }
    return s;
}

bool str_split(struct str *rest, char sep, struct str *ret_part)
{
    const char *found;

    if (rest->len == 0) {
        return false;
    }
    found = memchr(rest->ptr, sep, rest->len);
    if (found == NULL) {
        *ret_part = *rest;
        *rest = (struct str){rest->ptr + rest->len, 0};
        return true;
    }
    *ret_part = (struct str){rest->ptr, (size_t)(found - rest->ptr)};
    *rest = (struct str){found + 1, rest->len - ret_part->len - 1};
    return true;
}

/* The Unicode standard, table 3-7: the second byte's range depends on the first byte. */
size_t str_utf8_len(struct str s)
{
    const unsigned char *at = (const unsigned char *)s.ptr;
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    size_t len;

    if (s.len == 0) {
        return 0;
    }
    if (at[0] < 0x80) {
        return 1;
    }
    if (at[0] < 0xc2 || at[0] > 0xf4) {
        return 0;
    }
    len = at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    if (s.len < len) {
        return 0;
    }
    low = at[0] == 0xe0 ? 0xa0 : at[0] == 0xf0 ? 0x90 : low;
    high = at[0] == 0xed ? 0x9f : at[0] == 0xf4 ? 0x8f : high;
    if (at[1] < low || at[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < len; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return len;
}

bool str_is_utf8(struct str s)
{
    while (s.len > 0) {
        size_t len = str_utf8_len(s);

        if (len == 0 || s.ptr[0] == '\0') {
            return false;
        }
        s.ptr += len;
        s.len -= len;
    }
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
    char lower = to_lower(c);

    return is_digit(c) || (lower >= 'a' && lower <= 'z');
}

static bool is_host_label(struct str label)
{
    if (label.len < 1 || label.len > 63 || label.ptr[0] == '-' || label.ptr[label.len - 1] == '-') {
        return false;
    }
    for (size_t i = 0; i < label.len; i++) {
        if (!is_alnum(label.ptr[i]) && label.ptr[i] != '-') {
            return false;
        }
    }
    return true;
}

bool str_is_host_name(struct str s)
{
    struct str label;

    if (s.len < 1 || s.len > 253 || s.ptr[s.len - 1] == '.') {
        return false;
    }
    while (str_split(&s, '.', &label)) {
        if (!is_host_label(label)) {
            return false;
        }
    }
    return true;
}

bool str_is_dns_label(struct str s)
{
    if (!is_host_label(s) || is_digit(s.ptr[0])) {
        return false;
    }
    for (size_t i = 0; i < s.len; i++) {
        if (to_lower(s.ptr[i]) != s.ptr[i]) {
            return false;
        }
    }
    return true;
}

bool str_parse_u64(struct str s, uint64_t min, uint64_t max, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (s.len == 0) {
        return false;
    }
    for (size_t i = 0; i < s.len; i++) {
        if (!is_digit(s.ptr[i]) || __builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(s.ptr[i] - '0'), &value)) {
            return false;
        }
    }
    if (value < min || value > max) {
        return false;
    }
    *ret_value = value;
    return true;
}

bool str_parse_i64(struct str s, int64_t min, int64_t max, int64_t *ret_value)
{
    bool negative = s.len > 0 && s.ptr[0] == '-';
    uint64_t magnitude;
    int64_t value;

    if (negative) {
        s.ptr++;
        s.len--;
    }
    if (!str_parse_u64(s, 0, (uint64_t)INT64_MAX + (negative ? 1 : 0), &magnitude)) {
        return false;
    }
    /* Subtracting in unsigned keeps INT64_MIN exact. */
    value = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    if (value < min || value > max) {
        return false;
    }
    *ret_value = value;
    return true;
}

static int hex_value(char c)
{
    char lower = to_lower(c);

    if (is_digit(c)) {
        return c - '0';
    }
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

bool str_parse_hex_u64(struct str s, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (s.len >= 2 && s.ptr[0] == '0' && to_lower(s.ptr[1]) == 'x') {
        s.ptr += 2;
        s.len -= 2;
    }
    if (s.len < 1 || s.len > 16) {
        return false;
    }
    for (size_t i = 0; i < s.len; i++) {
        int digit = hex_value(s.ptr[i]);

        if (digit < 0) {
            return false;
        }
        value = value << 4 | (uint64_t)digit;
    }
    *ret_value = value;
    return true;
}

/* The C locale, so that no setlocale() elsewhere turns the point into a comma. */
static locale_t c_locale;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c_locale == (locale_t)0) {
        abort();
    }
}

/* Longest number taken; a double needs at most 17 digits, so this leaves ample room. */
#define NUMBER_LEN_MAX 127

static bool parse_with_library(struct str s, double *ret_value)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char text[NUMBER_LEN_MAX + 1];
    double value;

    if (s.len > NUMBER_LEN_MAX) {
        return false;
    }
    (void)pthread_once(&once, make_c_locale);
    memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    value = strtod_l(text, NULL, c_locale);
    if (!isfinite(value)) {
        return false;
    }
    *ret_value = value;
    return true;
}

/* What a decimal text is made of. */
struct decimal {
    uint64_t digits; /* all digits, point left out */
    size_t count;    /* significant digits: leading zeros do not count */
    size_t fraction; /* digits after the point */
    bool negative;
    bool has_exponent;
};

static size_t take_digits(struct str s, size_t at, struct decimal *decimal)
{
    while (at < s.len && is_digit(s.ptr[at])) {
        if (decimal->count < 19) {
            decimal->digits = decimal->digits * 10 + (uint64_t)(s.ptr[at] - '0');
        }
        decimal->count += decimal->digits > 0 ? 1 : 0;
        at++;
    }
    return at;
}

/* -?digits[.digits][(e|E)[+-]digits], whole input. */
static bool scan_decimal(struct str s, struct decimal *decimal)
{
    size_t at = 0;
    size_t start;

    if (at < s.len && s.ptr[at] == '-') {
        decimal->negative = true;
        at++;
    }
    start = at;
    at = take_digits(s, at, decimal);
    if (at == start) {
        return false;
    }
    if (at < s.len && s.ptr[at] == '.') {
        start = ++at;
        at = take_digits(s, at, decimal);
        decimal->fraction = at - start;
        if (at == start) {
            return false;
        }
    }
    if (at < s.len && to_lower(s.ptr[at]) == 'e') {
        decimal->has_exponent = true;
        at++;
        if (at < s.len && (s.ptr[at] == '+' || s.ptr[at] == '-')) {
            at++;
        }
        start = at;
        while (at < s.len && is_digit(s.ptr[at])) {
            at++;
        }
        if (at == start) {
            return false;
        }
    }
    return at == s.len;
}

bool str_parse_double(struct str s, double *ret_value)
{
    /* 10^22 is the largest power of ten that a double holds exactly. */
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    struct decimal decimal = {0};
    double value;

    if (!scan_decimal(s, &decimal)) {
        return false;
    }
    /* Up to 15 digits are exact in a double, and one division of two exact values is rounded once:
     * the same result as strtod without its cost. */
    if (decimal.has_exponent || decimal.count > 15 || decimal.fraction >= COUNTOF(powers)) {
        return parse_with_library(s, ret_value);
    }
    value = (double)decimal.digits / powers[decimal.fraction];
    *ret_value = decimal.negative ? -value : value;
    return true;
}

static bool take_number(struct str *s, size_t digits, int64_t *ret_value)
{
    int64_t value = 0;

    if (s->len < digits) {
        return false;
    }
    for (size_t i = 0; i < digits; i++) {
        if (!is_digit(s->ptr[i])) {
            return false;
        }
        value = value * 10 + (s->ptr[i] - '0');
    }
    s->ptr += digits;
    s->len -= digits;
    *ret_value = value;
    return true;
}

static bool take_char(struct str *s, char lower)
{
    if (s->len == 0 || to_lower(s->ptr[0]) != lower) {
        return false;
    }
    s->ptr++;
    s->len--;
    return true;
}

static bool is_leap_year(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int64_t days_in_month(int64_t year, int64_t month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return days[month - 1] + (month == 2 && is_leap_year(year) ? 1 : 0);
}

/* Days from 1970-01-01 in the Gregorian calendar, counting years from March so that the leap day is
 * the last; year >= 0. */
static int64_t days_from_date(int64_t year, int64_t month, int64_t day)
{
    int64_t shifted = month <= 2 ? year + 399 : year + 400; /* +400 keeps it positive */
    int64_t era = shifted / 400;
    int64_t year_of_era = shifted % 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

    return era * 146097 + day_of_era - 719468 - 146097;
}

static bool take_date(struct str *s, int64_t *ret_days)
{
    int64_t year;
    int64_t month;
    int64_t day;

    if (!take_number(s, 4, &year) || !take_char(s, '-') || !take_number(s, 2, &month) ||
        !take_char(s, '-') || !take_number(s, 2, &day)) {
        return false;
    }
    if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month)) {
        return false;
    }
    *ret_days = days_from_date(year, month, day);
    return true;
}

static bool take_fraction(struct str *s, int64_t *ret_us)
{
    int64_t us = 0;
    size_t digits = 0;

    if (!take_char(s, '.')) {
        *ret_us = 0;
        return true;
    }
    /* Nanoseconds are common; what is under a microsecond is cut. */
    while (digits < 9 && s->len > 0 && is_digit(s->ptr[0])) {
        if (digits < 6) {
            us = us * 10 + (s->ptr[0] - '0');
        }
        s->ptr++;
        s->len--;
        digits++;
    }
    if (digits == 0) {
        return false;
    }
    for (size_t i = digits; i < 6; i++) {
        us *= 10;
    }
    *ret_us = us;
    return true;
}

/* Seconds to subtract to come to UTC. */
static bool take_offset(struct str *s, int64_t *ret_s)
{
    bool west;
    int64_t hours;
    int64_t minutes;

    if (take_char(s, 'z')) {
        *ret_s = 0;
        return true;
    }
    west = take_char(s, '-');
    if (!west && !take_char(s, '+')) {
        return false;
    }
    if (!take_number(s, 2, &hours) || !take_char(s, ':') || !take_number(s, 2, &minutes) ||
        hours > 23 || minutes > 59) {
        return false;
    }
    *ret_s = (hours * 3600 + minutes * 60) * (west ? -1 : 1);
    return true;
}

bool str_parse_rfc3339(struct str s, int64_t *ret_us)
{
    int64_t days;
    int64_t hour;
    int64_t minute;
    int64_t second;
    int64_t fraction_us;
    int64_t offset_s;
    int64_t total_s;

    if (!take_date(&s, &days) || !take_char(&s, 't') || !take_number(&s, 2, &hour) ||
        !take_char(&s, ':') || !take_number(&s, 2, &minute) || !take_char(&s, ':') ||
        !take_number(&s, 2, &second) || !take_fraction(&s, &fraction_us) ||
        !take_offset(&s, &offset_s) || s.len != 0) {
        return false;
    }
    if (hour > 23 || minute > 59 || second > 60) {
        return false;
    }
    total_s = days * 86400 + hour * 3600 + minute * 60 + second - offset_s;
    /* RFC 3339 5.7: second 60 exists only as the leap second at the end of a UTC day. Unix time has
     * no place for it, so it counts as the first second of the next day. */
    if (second == 60 && total_s % 86400 != 0) {
        return false;
    }
    *ret_us = total_s * 1000000 + fraction_us;
    return true;
}

static void put_digits(char *at, int64_t value, size_t digits)
{
    while (digits > 0) {
        at[--digits] = (char)('0' + value % 10);
        value /= 10;
    }
}

/* 0000-01-01 and the end of 9999: four digits of year are all that RFC 3339 has. */
#define FIRST_US (-62167219200 * (int64_t)1000000)
#define LAST_US (253402300799 * (int64_t)1000000 + 999999)

void str_format_rfc3339(int64_t us, char *buf)
{
    static const char shape[] = "0000-00-00T00:00:00.000000Z";
    int64_t from_first;
    int64_t days;
    int64_t in_day_s;
    int64_t day_of_era;
    int64_t year_of_era;
    int64_t day_of_year;
    int64_t month;

    us = us < FIRST_US ? FIRST_US : us > LAST_US ? LAST_US : us;
    from_first = us - FIRST_US;
    in_day_s = from_first / 1000000 % 86400;
    /* Days from 0000-03-01, moved by one era of 400 years so that January and February of the year
     * 0 stay positive. */
    days = from_first / 1000000 / 86400 - 60 + 146097;
    day_of_era = days % 146097;
    year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    month = (5 * day_of_year + 2) / 153;

    memcpy(buf, shape, sizeof(shape));
    put_digits(buf, days / 146097 * 400 + year_of_era - 400 + (month >= 10 ? 1 : 0), 4);
    put_digits(buf + 5, month < 10 ? month + 3 : month - 9, 2);
    put_digits(buf + 8, day_of_year - (153 * month + 2) / 5 + 1, 2);
    put_digits(buf + 11, in_day_s / 3600, 2);
    put_digits(buf + 14, in_day_s / 60 % 60, 2);
    put_digits(buf + 17, in_day_s % 60, 2);
    put_digits(buf + 20, from_first % 1000000, 6);
}
