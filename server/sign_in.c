/* What a sign-in at an issuer is made of: all of it pure, so that it can be shown by unit tests. */
#include "server/sign_in.h"

#include <stdio.h>
#include <string.h>

#include "base/decode.h"

/* Parts the uses of the browser's secret. */
#define NONCE_LABEL "muster-sign-in-nonce"
#define VERIFIER_LABEL "muster-sign-in-verifier"
#define COOKIE_TLS "__Host-muster-login-"
#define COOKIE_PLAIN "muster_login_"
#define COOKIE_MARK_LEN 16

/* ------------------------------------------------------------------ secrets of a try */

static void derive(struct str secret, struct str label, char text[SIGN_IN_SECRET_LEN + 1])
{
    uint8_t mac[SHA256_LEN];
    crypto_hmac_sha256(secret, label, mac);
    crypto_b64(mac, sizeof mac, text);
}

static void derive_all(struct sign_in_try *attempt)
{
    uint8_t hash[SHA256_LEN];
    struct str browser = {attempt->browser, SIGN_IN_SECRET_LEN};
    derive(browser, STR(NONCE_LABEL), attempt->nonce);
    derive(browser, STR(VERIFIER_LABEL), attempt->verifier);
    crypto_sha256((struct str){attempt->verifier, SIGN_IN_SECRET_LEN}, hash);
    crypto_b64(hash, sizeof hash, attempt->challenge);
}

static void make_secret(char text[SIGN_IN_SECRET_LEN + 1])
{
    uint8_t random[SHA256_LEN];
    crypto_random(random, sizeof random);
    crypto_b64(random, sizeof random, text);
}

void sign_in_begin(struct sign_in_try *ret_try)
{
    make_secret(ret_try->state);
    make_secret(ret_try->browser);
    derive_all(ret_try);
}

static bool take_secret(struct str text, char ret_text[SIGN_IN_SECRET_LEN + 1])
{
    uint8_t bytes[SHA256_LEN];
    size_t len = 0;
    if (text.len != SIGN_IN_SECRET_LEN || !crypto_unb64(text, bytes, sizeof bytes, &len)) {
        return false;
    }
    memcpy(ret_text, text.ptr, SIGN_IN_SECRET_LEN);
    ret_text[SIGN_IN_SECRET_LEN] = '\0';
    return true;
}

bool sign_in_resume(struct str state, struct str browser, struct sign_in_try *ret_try)
{
    if (!take_secret(state, ret_try->state) || !take_secret(browser, ret_try->browser)) {
        return false;
    }
    derive_all(ret_try);
    return true;
}

/* ------------------------------------------------------------------ where to go afterwards */

/* Encoded slashes too: what undoes them on the way would make another host of it. */
static bool holds_slash(struct str path)
{
    static const char *const forms[] = {"%2f", "%2F", "%5c", "%5C"};
    for (size_t i = 0; i < COUNTOF(forms); i++) {
        if (str_find(path, str_of(forms[i]), 0) >= 0) {
            return true;
        }
    }
    return false;
}

static bool is_ours(struct str path)
{
    static const char *const no_pages[] = {"/auth/", "/api/", "/agent/", "/v1/"};
    for (size_t i = 0; i < COUNTOF(no_pages); i++) {
        if (str_starts(path, str_of(no_pages[i]))) {
            return false;
        }
    }
    return true;
}

struct str sign_in_return_to(struct str wanted)
{
    static const struct str root = {"/", 1};
    if (wanted.len == 0 || wanted.len > SIGN_IN_RETURN_MAX || wanted.ptr[0] != '/' ||
        (wanted.len > 1 && wanted.ptr[1] == '/')) {
        return root;
    }
    for (size_t i = 0; i < wanted.len; i++) {
        char c = wanted.ptr[i];
        if (c <= 0x20 || c >= 0x7f || c == '\\' || c == '"' || c == '<' || c == '>') {
            return root;
        }
    }
    struct str path = wanted;
    ptrdiff_t query = str_find(wanted, STR("?"), 0);
    if (query >= 0) {
        path.len = (size_t)query;
    }
    return holds_slash(path) || str_find(path, STR("//"), 0) >= 0 || !is_ours(path) ? root : wanted;
}

/* ------------------------------------------------------------------ what comes back */

static const struct field answer_fields[] = {
    {.name = "code",
     .type = FIELD_STR,
     .offset = offsetof(struct sign_in_answer, code),
     .max = 8192},
    {.name = "state",
     .type = FIELD_STR,
     .offset = offsetof(struct sign_in_answer, state),
     .max = 512},
    {.name = "iss", .type = FIELD_STR, .offset = offsetof(struct sign_in_answer, iss), .max = 2048},
    {.name = "error",
     .type = FIELD_STR,
     .offset = offsetof(struct sign_in_answer, error),
     .max = 512},
    {0},
};

bool sign_in_read_answer(struct arena *arena, struct str query, struct sign_in_answer *ret_answer)
{
    struct decode_errors errors;
    *ret_answer = (struct sign_in_answer){0};
    enum err err = decode_query(arena, query, answer_fields, ret_answer, &errors);
    if (err == ERR_NONE) {
        return true;
    }
    /* Issuers add parameters of their own: session_state, scope, hd. */
    bool good = err == ERR_INVALID_FIELDS && errors.dropped == 0;
    for (size_t i = 0; good && i < errors.count; i++) {
        good = strcmp(errors.items[i].code, "unknown_field") == 0;
    }
    return good;
}

/* ------------------------------------------------------------------ addresses */

void sign_in_add_escaped(struct buf *text, struct str value)
{
    for (size_t i = 0; i < value.len; i++) {
        char c = value.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '.' || c == '_' || c == '~';
        if (plain) {
            buf_add_char(text, c);
        } else {
            buf_printf(text, "%%%02X", (unsigned)(uint8_t)c);
        }
    }
}

void sign_in_add_field(struct buf *text, bool query, const char *name, struct str value)
{
    if (query) {
        bool first = text->len == 0 || memchr(text->ptr, '?', text->len) == NULL;
        buf_add_char(text, first ? '?' : '&');
    } else if (text->len > 0) {
        buf_add_char(text, '&');
    }
    buf_printf(text, "%s=", name);
    sign_in_add_escaped(text, value);
}

void sign_in_write_url(const struct sign_in_request *request, const struct sign_in_try *attempt,
                       struct buf *url)
{
    CLEANUP(buf_free) struct buf scope = {0};
    for (size_t i = 0; i < request->scope_count; i++) {
        buf_printf(&scope, "%s%.*s", i > 0 ? " " : "", STR_FMT(request->scopes[i]));
    }
    buf_add(url, request->endpoint.ptr, request->endpoint.len);
    sign_in_add_field(url, true, "response_type", STR("code"));
    sign_in_add_field(url, true, "client_id", request->client_id);
    sign_in_add_field(url, true, "redirect_uri", str_of(request->redirect_uri));
    sign_in_add_field(url, true, "scope", buf_str(&scope));
    sign_in_add_field(url, true, "state", str_of(attempt->state));
    sign_in_add_field(url, true, "nonce", str_of(attempt->nonce));
    sign_in_add_field(url, true, "code_challenge", str_of(attempt->challenge));
    sign_in_add_field(url, true, "code_challenge_method", STR("S256"));
}

/* ------------------------------------------------------------------ cookies */

void sign_in_cookie_name(struct str state, bool secure, char name[SIGN_IN_COOKIE_NAME_MAX])
{
    uint8_t hash[SHA256_LEN];
    char mark[COOKIE_MARK_LEN + 1];
    crypto_sha256(state, hash);
    crypto_hex(hash, COOKIE_MARK_LEN / 2, mark);
    (void)snprintf(name, SIGN_IN_COOKIE_NAME_MAX, "%s%s", secure ? COOKIE_TLS : COOKIE_PLAIN, mark);
}

/* Walks the pairs of a Cookie header; false at its end. */
static bool next_cookie(struct str *rest, struct str *ret_name, struct str *ret_value)
{
    struct str part;
    while (str_split(rest, ';', &part)) {
        part = str_trim(part);
        if (str_split(&part, '=', ret_name)) {
            *ret_value = part.ptr != NULL ? part : STR("");
            return true;
        }
    }
    return false;
}

struct str sign_in_cookie(struct str cookies, struct str state, bool secure)
{
    char wanted[SIGN_IN_COOKIE_NAME_MAX];
    struct str found = {0};
    struct str name;
    struct str value;
    sign_in_cookie_name(state, secure, wanted);
    while (next_cookie(&cookies, &name, &value)) {
        if (str_eq_c(name, wanted)) {
            if (found.ptr != NULL) {
                return (struct str){0};
            }
            found = value;
        }
    }
    return found;
}

const char *sign_in_set_cookie(struct arena *arena, const char *name, struct str value,
                               int64_t max_age_s, bool secure)
{
    return arena_printf(arena, "%s=%.*s; Path=/; Max-Age=%lld; HttpOnly; SameSite=Lax%s", name,
                        STR_FMT(value), (long long)max_age_s, secure ? "; Secure" : "");
}

size_t sign_in_stale_cookies(struct str cookies, bool secure, struct str names[SIGN_IN_TABS_MAX])
{
    struct str prefix = secure ? STR(COOKIE_TLS) : STR(COOKIE_PLAIN);
    struct str rest = cookies;
    struct str name;
    struct str value;
    size_t count = 0;
    size_t stale = 0;
    while (next_cookie(&rest, &name, &value)) {
        count += str_starts(name, prefix) ? 1 : 0;
    }
    if (count < SIGN_IN_TABS_MAX) {
        return 0;
    }
    /* Browsers send the oldest first (RFC 6265 5.4); the coming one needs room too. */
    size_t many = count - SIGN_IN_TABS_MAX + 1;
    many = many > SIGN_IN_TABS_MAX ? SIGN_IN_TABS_MAX : many;
    while (stale < many && next_cookie(&cookies, &name, &value)) {
        if (str_starts(name, prefix) && name.len < SIGN_IN_COOKIE_NAME_MAX) {
            names[stale++] = name;
        }
    }
    return stale;
}
