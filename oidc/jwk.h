/* An issuer's published keys: read once, each key judged alone, then only used. */
#ifndef OIDC_JWK_H
#define OIDC_JWK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"
#include "oidc/alg.h"
#include "oidc/jose.h"
#include "oidc/reason.h"

#define JWK_SET_MAX_BYTES (1U << 20)
#define JWK_SET_MAX_KEYS 128

/* X(symbol, word): why a key of a set is not used; the word is a metric's label too. A short key is
 * weak; one that lets anybody sign (exponent 1, ROCA, a point off its curve) is forgeable. */
#define JWK_SKIP_TABLE(X)                \
    X(JWK_SKIP_NOT_OBJECT, "not_object") \
    X(JWK_SKIP_KTY, "kty")               \
    X(JWK_SKIP_CRV, "crv")               \
    X(JWK_SKIP_USE, "use")               \
    X(JWK_SKIP_KEY_OPS, "key_ops")       \
    X(JWK_SKIP_ALG, "alg")               \
    X(JWK_SKIP_SECRET, "secret")         \
    X(JWK_SKIP_WEAK, "weak_key")         \
    X(JWK_SKIP_FORGEABLE, "weak_key")    \
    X(JWK_SKIP_MALFORMED, "malformed")   \
    X(JWK_SKIP_TOO_MANY, "too_many")

#define JWK_SKIP_ENUM(sym, word) sym,
enum jwk_skip { JWK_SKIP_NONE = 0, JWK_SKIP_TABLE(JWK_SKIP_ENUM) JWK_SKIP_COUNT };
#undef JWK_SKIP_ENUM

const char *jwk_skip_word(enum jwk_skip skip);

struct evp_pkey_st;

struct jwk {
    bool has_kid;
    struct str kid;
    enum jose_kty kty;
    unsigned algs; /* JOSE_ALG_BIT of all that may be checked with it; never 0 */
    struct evp_pkey_st *pkey;
};

struct jwk_skipped {
    struct str kid; /* empty when there was none that can be shown */
    enum jwk_skip skip;
    const char *detail;
};

struct jwk_set {
    struct arena *arena;
    struct jwk *keys;
    size_t count;
    struct jwk_skipped *skipped;
    size_t skipped_count;
    size_t duplicate_kids; /* keys whose kid and type another usable key has too */
};

/*
 * Reads {"keys": [...]} of at most 1 MiB. One key that cannot be used never spoils the set: it is
 * left out with its reason (unknown kty or curve, use other than sig, key_ops without verify, an
 * alg that does not fit, private or symmetric parts, RSA under 2048 bits or with a bad exponent or
 * ROCA's mark, a point off its curve). NULL when the text as a whole is no key set; *ret_error is a
 * static sentence then. The set is not changed afterwards: any number of threads may use it.
 */
struct jwk_set *jwk_set_parse(struct str text, const char **ret_error) MUST_CHECK;
void jwk_set_free(struct jwk_set *set); /* NULL is fine */
void jwk_set_freep(struct jwk_set **set);

/*
 * Checks the signature with the key whose kid the header names, or without a kid with each key that
 * fits the algorithm (at most 16 tries). `allowed` holds the issuer's algorithms as bits.
 * Refusals: alg_not_allowed, key_not_found, alg_key_mismatch, bad_signature, and weak_key when the
 * key that would have been used is forgeable; the sentence in *ret_detail (in the arena) names the
 * key that was left out, where there is one.
 */
enum oidc_reason jwk_set_verify(const struct jwk_set *set, const struct jws *jws, unsigned allowed,
                                struct arena *arena, const char **ret_detail) MUST_CHECK;

#endif
