/* Text with a length, and strict parsers for what comes over the wire. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct str {
    const char *ptr; /* not NUL-terminated, may be NULL when len is 0 */
    size_t len;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})
#define STR_FMT(s) (int)(s).len, (s).ptr /* for "%.*s" */

struct str str_of(const char *text); /* NULL gives an empty str */
bool str_eq(struct str a, struct str b);
bool str_eq_c(struct str a, const char *b);
bool str_eq_nocase(struct str a, struct str b); /* ASCII only */
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
/* Position of the first occurrence at or after `from`; -1 when there is none. */
ptrdiff_t str_find(struct str s, struct str needle, size_t from);
struct str str_trim(struct str s); /* ASCII white space at both ends */
/* Cuts the text before the first `sep` off *rest; false when *rest is exhausted. A `sep` at the
 * very end closes the last part and does not begin an empty one: "a,,b," gives "a", "", "b". */
bool str_split(struct str *rest, char sep, struct str *ret_part);
/* Length in bytes (1 to 4) of the well-formed UTF-8 character that s begins with; 0 when there is
 * none: overlong forms, surrogates, beyond U+10FFFF, cut off, or s empty. A NUL byte counts as 1.
 */
size_t str_utf8_len(struct str s);
bool str_is_utf8(struct str s);      /* strict: no overlong forms, no surrogates, no NUL */
bool str_is_host_name(struct str s); /* RFC 1123, <= 253, lower or upper case */
bool str_is_dns_label(struct str s); /* ^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$ */

/* Whole-input parsers: false unless every byte belongs to the value and it is in range. */
bool str_parse_u64(struct str s, uint64_t min, uint64_t max, uint64_t *ret_value) MUST_CHECK;
bool str_parse_i64(struct str s, int64_t min, int64_t max, int64_t *ret_value) MUST_CHECK;
bool str_parse_hex_u64(struct str s, uint64_t *ret_value) MUST_CHECK; /* with or without 0x */
bool str_parse_double(struct str s, double *ret_value) MUST_CHECK;    /* finite only */
/* RFC 3339 with Z or an offset, to microseconds since 1970 UTC. */
bool str_parse_rfc3339(struct str s, int64_t *ret_us) MUST_CHECK;
/* "2026-12-01T12:00:00.123456Z"; buf holds at least STR_RFC3339_LEN + 1 bytes. */
#define STR_RFC3339_LEN 27
void str_format_rfc3339(int64_t us, char *buf);

#endif
