/* The judgement of one token: the order of the checks, and those about where it comes from. */
#include "oidc/verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/crypto.h"
#include "oidc/verify_internal.h"

#define DETAIL_MAX 1024

#define CHECK_ROW(sym, word, help) [sym] = {word, help},
const struct oidc_check_info oidc_checks[OIDC_CHECK_COUNT] = {OIDC_CHECK_TABLE(CHECK_ROW)};
#undef CHECK_ROW

enum oidc_reason refuse(struct checking *checking, enum oidc_reason reason, const char *format, ...)
{
    char *text = arena_alloc(checking->arena, DETAIL_MAX);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, DETAIL_MAX, format, args);
    va_end(args);
    checking->verdict->detail = text;
    return reason;
}

void add_warning(struct checking *checking, const char *text)
{
    struct oidc_verdict *verdict = checking->verdict;
    if (verdict->warning_count < OIDC_WARNINGS_MAX) {
        verdict->warnings[verdict->warning_count++] = text;
    }
}

bool list_has(const struct str_list *list, struct str item)
{
    for (size_t i = 0; i < list->count; i++) {
        if (str_eq(list->items[i], item)) {
            return true;
        }
    }
    return false;
}

enum oidc_reason read_claim(struct checking *checking, const char *name, struct str *ret)
{
    const json_t *value = json_object_get(checking->claims, name);
    struct str text = jose_text(value);
    if (value == NULL) {
        return refuse(checking, OIDC_CLAIM_MISSING, "The token has no %s.", name);
    }
    if (!json_is_string(value) || text.len == 0 || !jose_text_is_plain(text)) {
        return refuse(checking, OIDC_CLAIM_TYPE,
                      "%s must be text, not empty and without control characters.", name);
    }
    *ret = (struct str){arena_strndup(checking->arena, text.ptr, text.len), text.len};
    return OIDC_OK;
}

enum oidc_reason read_optional(struct checking *checking, const char *name, struct str *ret)
{
    *ret = (struct str){"", 0};
    return json_object_get(checking->claims, name) == NULL ? OIDC_OK
                                                           : read_claim(checking, name, ret);
}

/* ------------------------------------------------------------------ issuer */
static bool tenant_is_listed(const struct str_list *tenants, struct str tid)
{
    for (size_t i = 0; i < tenants->count; i++) {
        if (str_eq_nocase(tenants->items[i], tid)) {
            return true;
        }
    }
    return false;
}

static enum oidc_reason check_issuer(struct checking *checking)
{
    const struct oidc_issuer *issuer = checking->issuer;
    const json_t *value = json_object_get(checking->claims, "iss");
    struct str iss = jose_text(value);
    struct str tid = jose_text(json_object_get(checking->claims, "tid"));
    const char *shown = jose_quote(checking->arena, iss);

    if (!json_is_string(value)) {
        return refuse(checking, OIDC_ISS_MISMATCH, "The token names no issuer (iss).");
    }
    checking->verdict->issuer = str_of(shown);
    if (!oidc_issuer_matches(issuer, iss, tid)) {
        const char *hint = "";
        if (str_starts(iss, STR("https://sts.windows.net/"))) {
            hint = " This is a v1 token of Entra: set accessTokenAcceptedVersion=2 in the app's "
                   "manifest.";
        } else if (oidc_issuer_is_template(issuer->url) && issuer->entra_tenants.count == 0) {
            hint =
                " The issuer stands for several tenants: list the allowed ones in entra_tenants.";
        } else if (issuer->url.len + 1 == iss.len || iss.len + 1 == issuer->url.len) {
            hint = " A slash at the end counts.";
        }
        return refuse(checking, OIDC_ISS_MISMATCH, "iss is \"%s\", the issuer is \"%s\".%s", shown,
                      jose_quote(checking->arena, issuer->url), hint);
    }
    if (issuer->entra_tenants.count > 0 && !tenant_is_listed(&issuer->entra_tenants, tid)) {
        return refuse(checking, OIDC_TENANT_NOT_ALLOWED,
                      "The tenant \"%s\" is not in entra_tenants.",
                      jose_quote(checking->arena, tid));
    }
    checking->verdict->issuer =
        (struct str){arena_strndup(checking->arena, iss.ptr, iss.len), iss.len};
    return OIDC_OK;
}

static enum oidc_reason check_signature(struct checking *checking)
{
    return jwk_set_verify(checking->keys, &checking->jws, checking->issuer->algs, checking->arena,
                          &checking->verdict->detail);
}

/* ------------------------------------------------------------------ audience, type, party */
static enum oidc_reason check_audience(struct checking *checking)
{
    const json_t *aud = json_object_get(checking->claims, "aud");
    const struct str_list *audiences = &checking->issuer->audiences;
    const char *first = "";
    size_t count = json_is_array(aud) ? json_array_size(aud) : 1;
    bool found = false;

    if (aud == NULL) {
        return refuse(checking, OIDC_AUD_MISMATCH, "The token names no audience (aud).");
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_is_array(aud) ? json_array_get(aud, i) : aud;
        if (!json_is_string(item)) {
            return refuse(checking, OIDC_CLAIM_TYPE, "aud must be text or a list of texts.");
        }
        if (i == 0) {
            first = jose_quote(checking->arena, jose_text(item));
        }
        found = found || list_has(audiences, jose_text(item));
    }
    if (!found) {
        return refuse(checking, OIDC_AUD_MISMATCH, "The token is for \"%s\"%s, not for us.", first,
                      count > 1 ? " and others" : "");
    }
    return OIDC_OK;
}

/* RFC 7515 4.1.9: a media type without "application/", in any case. */
static bool typ_is(const struct jws *jws, const char *name)
{
    struct str typ = jws->typ;
    struct str prefix = STR("application/");
    if (typ.len > prefix.len && str_eq_nocase((struct str){typ.ptr, prefix.len}, prefix)) {
        typ = (struct str){typ.ptr + prefix.len, typ.len - prefix.len};
    }
    return str_eq_nocase(typ, str_of(name));
}

/* OpenID Connect Back-Channel Logout 2.4 and 2.6. */
static enum oidc_reason check_logout(struct checking *checking)
{
    static const char event[] = "http://schemas.openid.net/event/backchannel-logout";
    const json_t *events = json_object_get(checking->claims, "events");
    enum oidc_reason reason = OIDC_OK;
    if (json_object_get(checking->claims, "nonce") != NULL) {
        return refuse(checking, OIDC_TYP_MISMATCH, "A logout token has no nonce.");
    }
    if (!json_is_object(json_object_get(events, event))) {
        return refuse(checking, OIDC_CLAIM_MISSING,
                      "A logout token has the logout event (events).");
    }
    if (json_object_get(checking->claims, "iat") == NULL) {
        return refuse(checking, OIDC_CLAIM_MISSING, "A logout token has iat.");
    }
    if ((reason = read_claim(checking, "jti", &checking->verdict->jti)) != OIDC_OK) {
        return reason;
    }
    if (json_object_get(checking->claims, "sub") == NULL) {
        return read_claim(checking, "sid", &checking->verdict->sid);
    }
    return OIDC_OK;
}

static enum oidc_reason check_type(struct checking *checking)
{
    static const char *const special[] = {[OIDC_ID_TOKEN] = "JWT",
                                          [OIDC_ACCESS_TOKEN] = "at+jwt",
                                          [OIDC_LOGOUT_TOKEN] = "logout+jwt"};
    enum oidc_use use = checking->question->use;
    const struct jws *jws = &checking->jws;
    if (jws->has_typ && !typ_is(jws, "JWT") && !typ_is(jws, special[use])) {
        return refuse(checking, OIDC_TYP_MISMATCH, "typ is \"%s\"; accepted here: none, JWT%s%s.",
                      jose_quote(checking->arena, jws->typ), use == OIDC_ID_TOKEN ? "" : ", ",
                      use == OIDC_ID_TOKEN ? "" : special[use]);
    }
    return use == OIDC_LOGOUT_TOKEN ? check_logout(checking) : OIDC_OK;
}

/* OpenID Connect Core 3.1.3.7, 4 and 5. An access token may have been asked for by another client.
 */
static enum oidc_reason check_party(struct checking *checking)
{
    const struct oidc_issuer *issuer = checking->issuer;
    const json_t *azp = json_object_get(checking->claims, "azp");
    struct str party = jose_text(azp);
    if (checking->question->use != OIDC_ID_TOKEN) {
        return OIDC_OK;
    }
    if (azp == NULL) {
        if (json_array_size(json_object_get(checking->claims, "aud")) > 1) {
            return refuse(checking, OIDC_AZP_MISMATCH,
                          "The token has several audiences and no azp that names one client.");
        }
        return OIDC_OK;
    }
    bool ours = issuer->client_id.len > 0 ? str_eq(party, issuer->client_id)
                                          : list_has(&issuer->audiences, party);
    if (!json_is_string(azp) || !ours) {
        return refuse(checking, OIDC_AZP_MISMATCH, "The token was issued to \"%s\" (azp).",
                      jose_quote(checking->arena, party));
    }
    return OIDC_OK;
}

static enum oidc_reason check_nonce(struct checking *checking)
{
    const struct oidc_question *question = checking->question;
    const json_t *value = json_object_get(checking->claims, "nonce");
    struct str nonce = jose_text(value);
    if (!question->has_nonce) {
        return OIDC_OK;
    }
    if (!json_is_string(value) || nonce.len != question->nonce.len ||
        !crypto_equal(nonce.ptr, question->nonce.ptr, nonce.len)) {
        return refuse(checking, OIDC_NONCE_MISMATCH, "The nonce is not the one of this login.");
    }
    return OIDC_OK;
}

static enum oidc_reason check_subject(struct checking *checking)
{
    struct oidc_verdict *verdict = checking->verdict;
    bool needed = checking->question->use != OIDC_LOGOUT_TOKEN;
    enum oidc_reason reason = needed ? read_claim(checking, "sub", &verdict->subject)
                                     : read_optional(checking, "sub", &verdict->subject);
    if (reason == OIDC_OK && verdict->subject.len > OIDC_NAME_MAX) {
        reason = refuse(checking, OIDC_CLAIM_TYPE, "sub has more than %d bytes.", OIDC_NAME_MAX);
    }
    if (reason == OIDC_OK && verdict->sid.len == 0) {
        reason = read_optional(checking, "sid", &verdict->sid);
    }
    /* Some issuers number their tokens; only a text is kept. */
    const json_t *jti = json_object_get(checking->claims, "jti");
    if (reason == OIDC_OK && json_is_string(jti) && jose_text_is_plain(jose_text(jti))) {
        reason = read_optional(checking, "jti", &verdict->jti);
    }
    return reason;
}

/* ------------------------------------------------------------------ the walk */
static enum oidc_reason (*const check_table[OIDC_CHECK_COUNT])(struct checking *) = {
    [OIDC_CHECK_ISSUER] = check_issuer,     [OIDC_CHECK_SIGNATURE] = check_signature,
    [OIDC_CHECK_AUDIENCE] = check_audience, [OIDC_CHECK_TYPE] = check_type,
    [OIDC_CHECK_PARTY] = check_party,       [OIDC_CHECK_TIME] = check_time,
    [OIDC_CHECK_NONCE] = check_nonce,       [OIDC_CHECK_SUBJECT] = check_subject,
    [OIDC_CHECK_REQUIRED] = check_required, [OIDC_CHECK_EMAIL] = check_email,
    [OIDC_CHECK_USERNAME] = check_username, [OIDC_CHECK_GROUPS] = check_groups,
    [OIDC_CHECK_RESERVED] = check_reserved, [OIDC_CHECK_USER] = check_user,
};

/* A logout token names sessions, not a user. */
static bool applies(enum oidc_check check, enum oidc_use use)
{
    return use != OIDC_LOGOUT_TOKEN || check < OIDC_CHECK_REQUIRED;
}

/* Expressions work in an arena of their own, so that their budget never meets the caller's. */
static bool uses_expressions(const struct oidc_issuer *issuer)
{
    return issuer->username.expression != NULL || issuer->groups.expression != NULL ||
           issuer->uid.expression != NULL || issuer->claim_rule_count > 0 ||
           issuer->user_rule_count > 0 || issuer->extra_count > 0;
}

static enum oidc_reason run_checks(struct checking *checking, enum oidc_check *ret_stopped)
{
    for (unsigned i = OIDC_CHECK_ISSUER; i < OIDC_CHECK_COUNT; i++) {
        enum oidc_check check = (enum oidc_check)i;
        if (applies(check, checking->question->use)) {
            enum oidc_reason reason = check_table[check](checking);
            if (reason != OIDC_OK) {
                *ret_stopped = check;
                return reason;
            }
        }
    }
    *ret_stopped = OIDC_CHECK_COUNT;
    return OIDC_OK;
}

static enum oidc_reason read_token(struct checking *checking, struct str token, json_t **ret_claims)
{
    const char *why = "";
    enum oidc_reason reason = OIDC_OK;
    if (jwe_is_one(token)) {
        reason = jwe_open(checking->arena, checking->question->decrypt, token, &token,
                          &checking->verdict->detail);
        if (reason != OIDC_OK) {
            return reason;
        }
    }
    reason = jws_parse(checking->arena, token, &checking->jws, &checking->verdict->detail);
    checking->verdict->alg = checking->jws.alg_name;
    checking->verdict->kid = checking->jws.kid;
    if (reason != OIDC_OK) {
        return reason;
    }
    *ret_claims = jose_read_object(checking->arena, checking->jws.payload, &why);
    if (*ret_claims == NULL) {
        return refuse(checking, OIDC_BAD_FORMAT, "The payload is not acceptable JSON: %s.", why);
    }
    return OIDC_OK;
}

void oidc_verify(struct arena *arena, const struct oidc_issuer *issuer, const struct jwk_set *keys,
                 struct str token, const struct oidc_question *question, struct oidc_verdict *ret)
{
    struct checking checking = {
        .arena = arena, .issuer = issuer, .keys = keys, .question = question, .verdict = ret};
    json_t *claims = NULL;
    struct arena *scratch = NULL;

    *ret = (struct oidc_verdict){.detail = "", .stopped = OIDC_CHECK_FORMAT};
    ret->reason = read_token(&checking, token, &claims);
    if (ret->reason == OIDC_OK) {
        checking.claims = claims;
        if (uses_expressions(issuer)) {
            scratch = arena_new(CEL_ARENA_CAP);
            cel_run_init(&checking.run, scratch);
        }
        ret->reason = run_checks(&checking, &ret->stopped);
    }
    json_decref(claims);
    arena_free(scratch);
}

bool oidc_token_names(struct arena *arena, const struct jwe_keys *decrypt, struct str token,
                      struct str *ret_iss, struct str *ret_tid)
{
    struct jws jws;
    const char *detail = "";
    if ((jwe_is_one(token) && jwe_open(arena, decrypt, token, &token, &detail) != OIDC_OK) ||
        jws_parse(arena, token, &jws, &detail) != OIDC_OK) {
        return false;
    }
    json_t *claims = jose_read_object(arena, jws.payload, &detail);
    struct str iss = jose_text(json_object_get(claims, "iss"));
    struct str tid = jose_text(json_object_get(claims, "tid"));
    *ret_iss = (struct str){arena_strndup(arena, iss.ptr, iss.len), iss.len};
    *ret_tid = (struct str){arena_strndup(arena, tid.ptr, tid.len), tid.len};
    bool read = claims != NULL;
    json_decref(claims);
    return read;
}

const struct oidc_issuer *oidc_find_issuer(struct arena *arena, const struct oidc_issuer *issuers,
                                           size_t count, const struct jwe_keys *decrypt,
                                           struct str token)
{
    struct str iss;
    struct str tid;
    if (!oidc_token_names(arena, decrypt, token, &iss, &tid)) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (oidc_issuer_matches(&issuers[i], iss, tid)) {
            return &issuers[i];
        }
    }
    return NULL;
}
