/* The signature algorithms that are ever accepted, one row each. */
#include "oidc/alg.h"

#define ALG_ROW(sym, name, kty, crv, hash, pss) [sym] = {name, crv, hash, kty, pss},
const struct jose_alg_info jose_algs[JOSE_ALG_COUNT] = {JOSE_ALG_TABLE(ALG_ROW)};
#undef ALG_ROW

bool jose_alg_find(struct str name, enum jose_alg *ret_alg)
{
    for (unsigned i = 0; i < JOSE_ALG_COUNT; i++) {
        if (str_eq_c(name, jose_algs[i].name)) {
            *ret_alg = (enum jose_alg)i;
            return true;
        }
    }
    return false;
}

unsigned jose_algs_of_key(enum jose_kty kty, struct str crv)
{
    unsigned algs = 0;
    for (unsigned i = 0; i < JOSE_ALG_COUNT; i++) {
        if (jose_algs[i].kty == kty && str_eq_c(crv, jose_algs[i].crv)) {
            algs |= JOSE_ALG_BIT(i);
        }
    }
    return algs;
}
