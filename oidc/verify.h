/* The judgement of one token: pure, from the issuer, its keys, the token and the time. */
#ifndef OIDC_VERIFY_H
#define OIDC_VERIFY_H

#include "oidc/issuer.h"
#include "oidc/jose.h"
#include "oidc/jwe.h"
#include "oidc/jwk.h"
#include "oidc/reason.h"

/* What the token is shown for; each use accepts its own typ. */
enum oidc_use {
    OIDC_ID_TOKEN,     /* a login, kubectl: typ absent or JWT */
    OIDC_ACCESS_TOKEN, /* a bearer of the API: also at+jwt (RFC 9068) */
    OIDC_LOGOUT_TOKEN, /* back-channel logout: also logout+jwt */
};

struct oidc_question {
    enum oidc_use use;
    int64_t now_s;
    bool has_nonce;
    struct str nonce;               /* compared when has_nonce */
    const struct jwe_keys *decrypt; /* our private keys for encrypted tokens; NULL = none */
};

/* The checks in the order in which they are made, for a page that shows each as a line. */
#define OIDC_CHECK_TABLE(X)                                             \
    X(OIDC_CHECK_FORMAT, "format", "Three strictly encoded parts")      \
    X(OIDC_CHECK_ISSUER, "issuer", "iss is the issuer, byte for byte")  \
    X(OIDC_CHECK_SIGNATURE, "signature", "Signed by the issuer's key")  \
    X(OIDC_CHECK_AUDIENCE, "audience", "Meant for us")                  \
    X(OIDC_CHECK_TYPE, "type", "The right type of token")               \
    X(OIDC_CHECK_PARTY, "party", "Issued to our client")                \
    X(OIDC_CHECK_TIME, "time", "Valid now, and not for too long")       \
    X(OIDC_CHECK_NONCE, "nonce", "Belongs to this login")               \
    X(OIDC_CHECK_SUBJECT, "subject", "Names whom it is about")          \
    X(OIDC_CHECK_REQUIRED, "required", "Has the claims that are asked") \
    X(OIDC_CHECK_EMAIL, "email", "The email address is verified")       \
    X(OIDC_CHECK_USERNAME, "username", "Gives a user name")             \
    X(OIDC_CHECK_GROUPS, "groups", "Gives the groups")                  \
    X(OIDC_CHECK_RESERVED, "reserved", "No name is reserved")           \
    X(OIDC_CHECK_USER, "user", "The user passes the issuer's rules")

#define OIDC_CHECK_ENUM(sym, word, help) sym,
enum oidc_check { OIDC_CHECK_TABLE(OIDC_CHECK_ENUM) OIDC_CHECK_COUNT };
#undef OIDC_CHECK_ENUM

struct oidc_check_info {
    const char *word;
    const char *help;
};
extern const struct oidc_check_info oidc_checks[OIDC_CHECK_COUNT];

#define OIDC_WARNINGS_MAX 4

struct oidc_verdict {
    enum oidc_reason reason; /* OIDC_OK = valid */
    const char *detail;      /* for the log and for whoever configures, not for the bearer */
    enum oidc_check stopped; /* the check that failed; OIDC_CHECK_COUNT when valid */
    const char *warnings[OIDC_WARNINGS_MAX];
    size_t warning_count;
    /* From here on as far as the checks went; nothing of it may be trusted unless valid. */
    struct str alg;
    struct str kid;
    struct str issuer;
    struct str subject;
    struct str jti;
    struct str sid;
    struct str email;
    int64_t exp_s;
    int64_t iat_s; /* 0 = none */
    struct str username;
    struct str uid;
    struct str_list groups;
    struct oidc_pair *extra; /* a key may come several times */
    size_t extra_count;
};

/*
 * Never blocks, never allocates outside the arena (which needs JOSE_ARENA_CAP of room; an issuer
 * with expressions takes a second arena for the time of the call). The token must outlive *ret.
 * Thread safe. key_not_found and bad_signature may mean that the keys have been replaced since.
 */
void oidc_verify(struct arena *arena, const struct oidc_issuer *issuer, const struct jwk_set *keys,
                 struct str token, const struct oidc_question *question, struct oidc_verdict *ret);

/* What a token says itself, unchecked: its iss and tid, in the arena; empty where they are no text.
 * False for what is no token. */
bool oidc_token_names(struct arena *arena, const struct jwe_keys *decrypt, struct str token,
                      struct str *ret_iss, struct str *ret_tid) MUST_CHECK;
/* The issuer of a token out of several, by what it says itself, unchecked; NULL when none fits. */
const struct oidc_issuer *oidc_find_issuer(struct arena *arena, const struct oidc_issuer *issuers,
                                           size_t count, const struct jwe_keys *decrypt,
                                           struct str token);

#endif
