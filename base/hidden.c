/* Finds control characters and those that turn the direction of writing. */
#include "base/hidden.h"

static bool is_line_part(const unsigned char *at, size_t left)
{
    return at[0] == '\n' || at[0] == '\t' || (at[0] == '\r' && left > 1 && at[1] == '\n');
}

/* U+202A to U+202E and U+2066 to U+2069: Unicode's embeddings, overrides and isolates (UAX 9). */
static bool turns_writing(const unsigned char *at, size_t left)
{
    return left >= 3 && at[0] == 0xe2 &&
           ((at[1] == 0x80 && at[2] >= 0xaa && at[2] <= 0xae) ||
            (at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9));
}

const char *hidden_find(struct str s, bool lines)
{
    const unsigned char *at = (const unsigned char *)s.ptr;

    for (size_t i = 0; i < s.len; i++) {
        size_t left = s.len - i;
        bool is_c1 = at[i] == 0xc2 && left >= 2 && at[i + 1] >= 0x80 && at[i + 1] <= 0x9f;
        if (at[i] == '\0') {
            return "Text may not hold U+0000.";
        }
        if (is_c1 || at[i] == 0x7f || (at[i] < 0x20 && !(lines && is_line_part(at + i, left)))) {
            return lines ? "Text may not hold control characters but line breaks and tabs."
                         : "Text may not hold control characters, line breaks and tabs included.";
        }
        if (turns_writing(at + i, left)) {
            return "Text may not hold characters that turn the direction of writing (U+202A to "
                   "U+202E, U+2066 to U+2069).";
        }
    }
    return NULL;
}
