/* A compact JWS taken apart strictly; nothing in it is trusted yet. */
#include "oidc/jose.h"

#include <string.h>

#include "base/crypto.h"

#define SEGMENTS 3
#define QUOTE_MAX 200

struct str jose_text(const json_t *string)
{
    return (struct str){json_string_value(string), json_string_length(string)};
}

bool jose_text_is_plain(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = (uint8_t)text.ptr[i];
        bool c1 = c == 0xc2 && i + 1 < text.len && (uint8_t)text.ptr[i + 1] < 0xa0;
        if (c < 0x20 || c == 0x7f || c1) {
            return false;
        }
    }
    return true;
}

const char *jose_quote(struct arena *arena, struct str text)
{
    struct str rest = text;
    size_t len = 0;
    char copy[QUOTE_MAX + 8];
    while (rest.len > 0) {
        size_t step = str_utf8_len(rest);
        bool plain = step > 0 && jose_text_is_plain((struct str){rest.ptr, step});
        step = step == 0 ? 1 : step;
        if (len + step > QUOTE_MAX) {
            copy[len++] = '.';
            copy[len++] = '.';
            copy[len++] = '.';
            break;
        }
        if (plain) {
            memcpy(copy + len, rest.ptr, step);
            len += step;
        } else {
            copy[len++] = '?';
        }
        rest.ptr += step;
        rest.len -= step;
    }
    return arena_strndup(arena, copy, len);
}

json_t *jose_read_object(struct arena *arena, struct str text, const char **ret_detail)
{
    json_error_t error;
    /* jansson passes over a NUL byte behind a number. */
    if (text.len == 0 || memchr(text.ptr, '\0', text.len) != NULL) {
        *ret_detail = text.len == 0 ? "it is empty" : "it holds a NUL byte";
        return NULL;
    }
    /* Reals only: an integer beyond 64 bits is then a value that can be judged, not a broken text.
     */
    json_t *root = json_loadb(text.ptr, text.len,
                              JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY |
                                  JSON_DECODE_INT_AS_REAL,
                              &error);
    if (root == NULL) {
        *ret_detail = arena_printf(arena, "%s", jose_quote(arena, str_of(error.text)));
        return NULL;
    }
    if (!json_is_object(root)) {
        json_decref(root);
        *ret_detail = "it is not a JSON object";
        return NULL;
    }
    return root;
}

/* Cuts the token at its dots without looking at more than it needs: a flood of dots costs a scan of
 * at most 16 KiB and no memory. */
static enum oidc_reason split_token(struct arena *arena, struct str token,
                                    struct str parts[SEGMENTS], const char **ret_detail)
{
    size_t end = token.len > JOSE_TOKEN_MAX ? JOSE_TOKEN_MAX + 1 : token.len;
    size_t count = 0;
    size_t begin = 0;
    for (size_t i = 0; i < end; i++) {
        if (token.ptr[i] != '.') {
            continue;
        }
        if (count == SEGMENTS - 1) {
            *ret_detail = "The token has more than three parts.";
            return OIDC_BAD_FORMAT;
        }
        parts[count++] = (struct str){token.ptr + begin, i - begin};
        begin = i + 1;
    }
    if (token.len > JOSE_TOKEN_MAX) {
        *ret_detail = arena_printf(arena, "The token has more than %d bytes.", JOSE_TOKEN_MAX);
        return OIDC_TOO_LARGE;
    }
    parts[count++] = (struct str){token.ptr + begin, token.len - begin};
    if (count != SEGMENTS) {
        *ret_detail = arena_printf(arena,
                                   "The token has %zu of three parts; the compact form is "
                                   "header.payload.signature.",
                                   count);
        return OIDC_BAD_FORMAT;
    }
    return OIDC_OK;
}

static bool decode_part(struct arena *arena, struct str part, struct str *ret_bytes)
{
    size_t len;
    char *bytes = arena_alloc(arena, part.len + 1);
    if (!crypto_unb64(part, bytes, part.len, &len)) {
        return false;
    }
    bytes[len] = '\0';
    *ret_bytes = (struct str){bytes, len};
    return true;
}

/* An optional text of the header; false when it is there and no plain text. */
static bool read_text(struct arena *arena, const json_t *header, const char *name, bool *ret_there,
                      struct str *ret_text)
{
    const json_t *value = json_object_get(header, name);
    *ret_there = value != NULL;
    if (value == NULL) {
        return true;
    }
    struct str text = jose_text(value);
    if (!json_is_string(value) || !jose_text_is_plain(text)) {
        return false;
    }
    *ret_text = (struct str){arena_strndup(arena, text.ptr, text.len), text.len};
    return true;
}

static enum oidc_reason read_header(struct arena *arena, const json_t *header, struct jws *jws,
                                    const char **ret_detail)
{
    bool has_alg;
    const json_t *b64 = json_object_get(header, "b64");
    if (json_object_get(header, "crit") != NULL || (b64 != NULL && !json_is_true(b64))) {
        *ret_detail = "The header has crit or b64; no extension is supported.";
        return OIDC_CRIT_UNSUPPORTED;
    }
    if (!read_text(arena, header, "alg", &has_alg, &jws->alg_name) ||
        !read_text(arena, header, "kid", &jws->has_kid, &jws->kid) ||
        !read_text(arena, header, "typ", &jws->has_typ, &jws->typ)) {
        *ret_detail = "alg, kid and typ in the header must be plain text.";
        return OIDC_BAD_FORMAT;
    }
    if (!jose_alg_find(jws->alg_name, &jws->alg)) {
        *ret_detail = has_alg ? arena_printf(arena, "The algorithm \"%s\" is never accepted.",
                                             jose_quote(arena, jws->alg_name))
                              : "The header names no algorithm.";
        return OIDC_ALG_NOT_ALLOWED;
    }
    return OIDC_OK;
}

enum oidc_reason jws_parse(struct arena *arena, struct str token, struct jws *ret,
                           const char **ret_detail)
{
    static const char *const names[SEGMENTS] = {"header", "payload", "signature"};
    struct str parts[SEGMENTS];
    struct str decoded[SEGMENTS];
    const char *why = "";

    *ret = (struct jws){0};
    enum oidc_reason reason = split_token(arena, token, parts, ret_detail);
    if (reason != OIDC_OK) {
        return reason;
    }
    for (size_t i = 0; i < SEGMENTS; i++) {
        if (!decode_part(arena, parts[i], &decoded[i])) {
            *ret_detail = arena_printf(
                arena, "The %s is not base64url without padding%s.", names[i],
                str_ends(token, STR("\n")) ? " (the token ends with a line break)" : "");
            return OIDC_BAD_FORMAT;
        }
    }
    json_t *header = jose_read_object(arena, decoded[0], &why);
    if (header == NULL) {
        *ret_detail = arena_printf(arena, "The header is not acceptable JSON: %s.", why);
        return OIDC_BAD_FORMAT;
    }
    ret->signing_input = (struct str){token.ptr, parts[0].len + 1 + parts[1].len};
    ret->payload = decoded[1];
    ret->signature = decoded[2];
    reason = read_header(arena, header, ret, ret_detail);
    json_decref(header);
    return reason;
}
