/* The signature algorithms that are ever accepted, one row each; symmetric ones and none are not.
 */
#ifndef OIDC_ALG_H
#define OIDC_ALG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

enum jose_kty { JOSE_RSA, JOSE_EC, JOSE_OKP };

/* X(symbol, name, key type, curve ("" = none), hash ("" = the algorithm's own), RSA-PSS) */
#define JOSE_ALG_TABLE(X)                                     \
    X(JOSE_RS256, "RS256", JOSE_RSA, "", "SHA256", false)     \
    X(JOSE_RS384, "RS384", JOSE_RSA, "", "SHA384", false)     \
    X(JOSE_RS512, "RS512", JOSE_RSA, "", "SHA512", false)     \
    X(JOSE_PS256, "PS256", JOSE_RSA, "", "SHA256", true)      \
    X(JOSE_PS384, "PS384", JOSE_RSA, "", "SHA384", true)      \
    X(JOSE_PS512, "PS512", JOSE_RSA, "", "SHA512", true)      \
    X(JOSE_ES256, "ES256", JOSE_EC, "P-256", "SHA256", false) \
    X(JOSE_ES384, "ES384", JOSE_EC, "P-384", "SHA384", false) \
    X(JOSE_ES512, "ES512", JOSE_EC, "P-521", "SHA512", false) \
    X(JOSE_EDDSA, "EdDSA", JOSE_OKP, "Ed25519", "", false)

#define JOSE_ALG_ENUM(sym, name, kty, crv, hash, pss) sym,
enum jose_alg { JOSE_ALG_TABLE(JOSE_ALG_ENUM) JOSE_ALG_COUNT };
#undef JOSE_ALG_ENUM

#define JOSE_ALG_BIT(alg) (1U << (alg))
#define JOSE_ALGS_ALL ((1U << JOSE_ALG_COUNT) - 1)

struct jose_alg_info {
    const char *name;
    const char *crv;
    const char *hash;
    enum jose_kty kty;
    bool pss;
};

extern const struct jose_alg_info jose_algs[JOSE_ALG_COUNT];

/* False for everything that is not in the table; names are case sensitive (RFC 7515 4.1.1). */
bool jose_alg_find(struct str name, enum jose_alg *ret_alg) MUST_CHECK;
/* The algorithms that a key of this type and curve can check, as bits; 0 for an unknown curve. */
unsigned jose_algs_of_key(enum jose_kty kty, struct str crv);

#endif
