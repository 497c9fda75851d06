/* What is wrong with a request before anybody looks at its meaning: address, method, headers,
 * framing. */
#include <string.h>

#include "server/exchange.h"

#define URI_MAX 8192
#define HEADER_VALUE_MAX 16384 /* an OIDC token may be this long */

static bool is_hex_pair(struct str text, size_t at, char *ret_byte)
{
    uint64_t value = 0;
    if (at + 2 > text.len) {
        return false;
    }
    for (size_t i = at; i < at + 2; i++) {
        char c = text.ptr[i];
        bool digit = c >= '0' && c <= '9';
        bool letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        if (!digit && !letter) {
            return false;
        }
        value = value * 16 + (uint64_t)(digit ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    *ret_byte = (char)value;
    return true;
}

/* A decoded byte of an address: control characters are refused, and in a path what would part it
 * anew. */
static const char *check_escape(char byte, bool in_path)
{
    unsigned char c = (unsigned char)byte;
    if (c < 0x20 || c == 0x7f) {
        return "The address holds an encoded control character.";
    }
    if (in_path && (c == '/' || c == '\\')) {
        return "The path holds an encoded slash.";
    }
    return NULL;
}

enum err refuse_uri(struct str uri, const char **ret_detail)
{
    bool in_path = true;
    if (uri.len > URI_MAX) {
        *ret_detail = "An address may have at most 8192 bytes.";
        return ERR_URI_TOO_LONG;
    }
    if (uri.len == 0 || uri.ptr[0] != '/') {
        *ret_detail = "The address must begin with a slash.";
        return ERR_BAD_REQUEST;
    }
    for (size_t i = 0; i < uri.len; i++) {
        unsigned char c = (unsigned char)uri.ptr[i];
        if (c <= 0x20 || c >= 0x7f || c == '#' || c == '\\') {
            *ret_detail = "The address holds a character that must be percent-encoded.";
            return ERR_BAD_REQUEST;
        }
        if (c == '?') {
            in_path = false;
        }
        if (c != '%') {
            continue;
        }
        char byte = 0;
        const char *wrong = is_hex_pair(uri, i + 1, &byte)
                                ? check_escape(byte, in_path)
                                : "A percent sign must be followed by two hexadecimal digits.";
        if (wrong != NULL) {
            *ret_detail = wrong;
            return ERR_BAD_REQUEST;
        }
    }
    return ERR_NONE;
}

enum err refuse_method(struct str method, const char **ret_detail)
{
    static const char *const known[] = {"GET",    "HEAD",    "POST",  "PUT",    "PATCH",
                                        "DELETE", "OPTIONS", "TRACE", "CONNECT"};
    for (size_t i = 0; i < COUNTOF(known); i++) {
        if (str_eq_c(method, known[i])) {
            return ERR_NONE;
        }
    }
    *ret_detail = "The methods are GET, HEAD, POST, PUT, PATCH and DELETE.";
    return ERR_METHOD_UNKNOWN;
}

static const struct {
    const char *name;
    bool single;
} header_rows[HEADER_COUNT] = {
#define HEADER_ROW(sym, name, single) [sym] = {name, single},
    HEADER_TABLE(HEADER_ROW)
#undef HEADER_ROW
};

static bool has_control(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return true;
        }
    }
    return false;
}

enum err refuse_header(struct str name, struct str value, struct str headers[HEADER_COUNT],
                       const char **ret_detail)
{
    if (has_control(value) || has_control(name)) {
        *ret_detail = "A header holds a control character.";
        return ERR_BAD_REQUEST;
    }
    if (value.len > HEADER_VALUE_MAX) {
        *ret_detail = "A header is longer than 16384 bytes.";
        return ERR_BAD_REQUEST;
    }
    for (size_t i = 0; i < HEADER_COUNT; i++) {
        if (!str_eq_nocase(name, str_of(header_rows[i].name))) {
            continue;
        }
        if (headers[i].ptr != NULL && header_rows[i].single) {
            *ret_detail = "A header that may stand once stands twice.";
            return ERR_BAD_REQUEST;
        }
        headers[i] = value.ptr != NULL ? value : STR("");
        break;
    }
    return ERR_NONE;
}

/* RFC 9110 7.2: a host and perhaps a port. */
static bool is_host(struct str host)
{
    if (host.len == 0 || host.len > 300) {
        return false;
    }
    for (size_t i = 0; i < host.len; i++) {
        char c = host.ptr[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!word && (c == '\0' || strchr("-._:[]", c) == NULL)) {
            return false;
        }
    }
    return true;
}

enum err refuse_framing(const struct str headers[HEADER_COUNT], const char **ret_detail)
{
    struct str length = headers[HEADER_CONTENT_LENGTH];
    struct str coding = headers[HEADER_TRANSFER_ENCODING];
    uint64_t value;

    if (headers[HEADER_HOST].ptr != NULL && !is_host(headers[HEADER_HOST])) {
        *ret_detail = "The Host header is not a host name with an optional port.";
        return ERR_BAD_REQUEST;
    }
    if (length.ptr != NULL && coding.ptr != NULL) {
        *ret_detail = "Content-Length and Transfer-Encoding exclude each other.";
        return ERR_BAD_REQUEST;
    }
    if (length.ptr != NULL && !str_parse_u64(length, 0, INT64_MAX, &value)) {
        *ret_detail = "Content-Length must be a number.";
        return ERR_BAD_REQUEST;
    }
    if (coding.ptr != NULL && !str_eq_nocase(coding, STR("chunked"))) {
        *ret_detail = "The only Transfer-Encoding is chunked.";
        return ERR_BAD_REQUEST;
    }
    if (headers[HEADER_CONTENT_ENCODING].ptr != NULL &&
        !str_eq_nocase(headers[HEADER_CONTENT_ENCODING], STR("identity"))) {
        *ret_detail = "Send the body without a Content-Encoding.";
        return ERR_MEDIA_TYPE;
    }
    return ERR_NONE;
}
