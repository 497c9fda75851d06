/* One signature against one key, on OpenSSL. */
#ifndef OIDC_SIGNATURE_H
#define OIDC_SIGNATURE_H

#include <stdbool.h>

#include "oidc/jwk.h"

/* The algorithm must be one of the key's. False for whatever is not exactly right: length, range,
 * padding. Thread safe. */
bool signature_check(const struct jwk *key, enum jose_alg alg, struct str data,
                     struct str signature) MUST_CHECK;

#endif
