/* The checks of a token's times and of the claims that an issuer asks for. */
#include <math.h>
#include <string.h>

#include "oidc/verify_internal.h"

/* 9999-12-31T23:59:59Z; what is beyond is no time, and above 2^53 no exact number either. */
#define TIME_MAX_S 253402300799.0

/* A number of seconds, cut to whole ones; *ret_there false when the claim is missing. */
static enum oidc_reason read_time(struct checking *checking, const char *name, bool *ret_there,
                                  int64_t *ret_s)
{
    const json_t *value = json_object_get(checking->claims, name);
    double seconds = json_number_value(value);
    *ret_there = value != NULL;
    if (value == NULL) {
        return OIDC_OK;
    }
    if (!json_is_number(value) || !(seconds >= 0 && seconds <= TIME_MAX_S)) {
        return refuse(checking, OIDC_CLAIM_TYPE, "%s must be a number of seconds since 1970.",
                      name);
    }
    *ret_s = (int64_t)floor(seconds);
    return OIDC_OK;
}

static enum oidc_reason check_end(struct checking *checking, int64_t exp_s)
{
    int64_t now_s = checking->question->now_s;
    if (now_s - checking->issuer->leeway_s >= exp_s) {
        return refuse(checking, OIDC_EXPIRED, "The token ended %lld s ago (%lld s are forgiven).",
                      (long long)(now_s - exp_s), (long long)checking->issuer->leeway_s);
    }
    if (checking->issuer->for_kubernetes && now_s >= exp_s) {
        add_warning(checking,
                    "kube-apiserver forgives no second after exp: it refuses this token.");
    }
    return OIDC_OK;
}

enum oidc_reason check_time(struct checking *checking)
{
    const struct oidc_issuer *issuer = checking->issuer;
    int64_t now_s = checking->question->now_s;
    int64_t exp_s = 0;
    int64_t nbf_s = 0;
    int64_t iat_s = 0;
    bool has_exp;
    bool has_nbf;
    bool has_iat;
    enum oidc_reason reason;

    if ((reason = read_time(checking, "exp", &has_exp, &exp_s)) != OIDC_OK ||
        (reason = read_time(checking, "nbf", &has_nbf, &nbf_s)) != OIDC_OK ||
        (reason = read_time(checking, "iat", &has_iat, &iat_s)) != OIDC_OK) {
        return reason;
    }
    checking->verdict->exp_s = exp_s;
    checking->verdict->iat_s = iat_s;
    if (!has_exp) {
        return refuse(checking, OIDC_EXP_MISSING, "The token has no end (exp).");
    }
    if ((reason = check_end(checking, exp_s)) != OIDC_OK) {
        return reason;
    }
    if (has_nbf && nbf_s > now_s + issuer->leeway_s) {
        return refuse(checking, OIDC_NOT_YET_VALID, "The token begins in %lld s (nbf).",
                      (long long)(nbf_s - now_s));
    }
    if (has_iat && iat_s > now_s + issuer->leeway_s) {
        return refuse(checking, OIDC_IAT_FUTURE,
                      "The token was issued %lld s in the future: compare the clocks.",
                      (long long)(iat_s - now_s));
    }
    int64_t begin_s = has_iat ? iat_s : has_nbf ? nbf_s : now_s;
    if (exp_s - begin_s > issuer->max_lifetime_s) {
        return refuse(checking, OIDC_LIFETIME_TOO_LONG, "The token lives %lld s; %lld are allowed.",
                      (long long)(exp_s - begin_s), (long long)issuer->max_lifetime_s);
    }
    return OIDC_OK;
}

/* ------------------------------------------------------------------ required claims and rules */
static enum oidc_reason check_pair(struct checking *checking, const struct oidc_pair *pair)
{
    const char *name = arena_strndup(checking->arena, pair->name.ptr, pair->name.len);
    const json_t *value = json_object_get(checking->claims, name);
    if (value == NULL) {
        return refuse(checking, OIDC_REQUIRED_CLAIM, "The claim %s is required and missing.",
                      jose_quote(checking->arena, pair->name));
    }
    if (!json_is_string(value) || !str_eq(jose_text(value), pair->value)) {
        return refuse(checking, OIDC_REQUIRED_CLAIM, "The claim %s must be \"%s\".",
                      jose_quote(checking->arena, pair->name),
                      jose_quote(checking->arena, pair->value));
    }
    return OIDC_OK;
}

enum oidc_reason check_required(struct checking *checking)
{
    const struct oidc_issuer *issuer = checking->issuer;
    for (size_t i = 0; i < issuer->required_count; i++) {
        enum oidc_reason reason = check_pair(checking, &issuer->required[i]);
        if (reason != OIDC_OK) {
            return reason;
        }
    }
    if (checking->run.arena != NULL &&
        !cel_from_json(&checking->run, checking->claims, &checking->run.claims)) {
        return refuse(checking, OIDC_CLAIM_TYPE, "The claims cannot be used: %s.",
                      checking->run.error);
    }
    for (size_t i = 0; i < issuer->claim_rule_count; i++) {
        const struct oidc_rule *rule = &issuer->claim_rules[i];
        struct cel_value value;
        if (!cel_eval(&checking->run, rule->expression, &value)) {
            return refuse(checking, OIDC_REQUIRED_CLAIM, "The rule %s fails: %s.",
                          jose_quote(checking->arena, rule->text), checking->run.error);
        }
        if (value.kind != CEL_BOOL || !value.flag) {
            return refuse(checking, OIDC_REQUIRED_CLAIM, "%s",
                          rule->message.len > 0 ? jose_quote(checking->arena, rule->message)
                                                : jose_quote(checking->arena, rule->text));
        }
    }
    return OIDC_OK;
}

/* ------------------------------------------------------------------ email */
/* local@domain, one @ only: an address with two would be cut differently by two readers. */
static bool split_email(struct str email, struct str *ret_domain)
{
    ptrdiff_t at = str_find(email, STR("@"), 0);
    if (at <= 0 || (size_t)at + 1 >= email.len || str_find(email, STR("@"), (size_t)at + 1) >= 0 ||
        str_find(email, STR(" "), 0) >= 0) {
        return false;
    }
    *ret_domain = (struct str){email.ptr + at + 1, email.len - (size_t)at - 1};
    return true;
}

static enum oidc_reason check_verified(struct checking *checking)
{
    const json_t *value = json_object_get(checking->claims, "email_verified");
    unsigned quirks = checking->issuer->quirks;
    if (value == NULL) {
        return (quirks & OIDC_QUIRK_EMAIL_VERIFIED_ABSENT) != 0
                   ? OIDC_OK
                   : refuse(checking, OIDC_EMAIL_UNVERIFIED,
                            "The token does not say email_verified; if this issuer never does and "
                            "is trusted, set the quirk email_verified_absent.");
    }
    if (json_is_true(value) || ((quirks & OIDC_QUIRK_EMAIL_VERIFIED_STRING) != 0 &&
                                str_eq(jose_text(value), STR("true")))) {
        return OIDC_OK;
    }
    if (json_is_false(value)) {
        return refuse(checking, OIDC_EMAIL_UNVERIFIED, "The email address is not verified.");
    }
    return refuse(checking, OIDC_CLAIM_TYPE, "email_verified must be true or false%s.",
                  json_is_string(value)
                      ? "; for an issuer that sends text set the quirk email_verified_string"
                      : "");
}

enum oidc_reason check_email(struct checking *checking)
{
    const struct oidc_issuer *issuer = checking->issuer;
    bool is_name = issuer->username.path_len == 1 && str_eq_c(issuer->username.path[0], "email");
    struct str domain;
    enum oidc_reason reason;
    if (!is_name && issuer->allowed_domains.count == 0) {
        return OIDC_OK;
    }
    if ((reason = read_claim(checking, "email", &checking->verdict->email)) != OIDC_OK) {
        return reason;
    }
    if (!split_email(checking->verdict->email, &domain)) {
        return refuse(checking, OIDC_CLAIM_TYPE, "email must be one address with one @.");
    }
    if ((reason = check_verified(checking)) != OIDC_OK) {
        return reason;
    }
    for (size_t i = 0; i < issuer->allowed_domains.count; i++) {
        if (str_eq_nocase(issuer->allowed_domains.items[i], domain)) {
            return OIDC_OK;
        }
    }
    return issuer->allowed_domains.count == 0
               ? OIDC_OK
               : refuse(checking, OIDC_REQUIRED_CLAIM, "The email domain \"%s\" is not allowed.",
                        jose_quote(checking->arena, domain));
}
