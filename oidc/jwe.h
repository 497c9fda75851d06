/* Encrypted tokens (JWE): opened with our own private keys, behind a short list of algorithms. */
#ifndef OIDC_JWE_H
#define OIDC_JWE_H

#include "base/arena.h"
#include "base/str.h"
#include "oidc/reason.h"

struct jwe_keys; /* private keys; never changed after they are read */

/*
 * Reads {"keys": [...]} of RSA (2048 to 8192 bits) and EC (P-256, P-384, P-521) private keys whose
 * use is enc or not said. Unlike an issuer's set one unusable key refuses all, because they are our
 * own. NULL with a static sentence.
 */
struct jwe_keys *jwe_keys_parse(struct str text, const char **ret_error) MUST_CHECK;
void jwe_keys_free(struct jwe_keys *keys); /* NULL is fine */

/* True when the text has the five parts of a compact JWE. */
bool jwe_is_one(struct str token);
/*
 * Opens a token. Key management: RSA-OAEP, RSA-OAEP-256, ECDH-ES, ECDH-ES+A128KW, +A192KW, +A256KW;
 * content: A128GCM, A192GCM, A256GCM, A128CBC-HS256, A192CBC-HS384, A256CBC-HS512. Anything else is
 * alg_not_allowed before a key is touched: RSA1_5 (an oracle), symmetric and password-based ones.
 * crit, zip and b64 are crit_unsupported. keys may be NULL (key_not_found). Every way to fail after
 * that is bad_signature with one sentence, so that nothing is learned from it. *ret_token is the
 * signed token inside, in the arena; it is not checked yet.
 */
enum oidc_reason jwe_open(struct arena *arena, const struct jwe_keys *keys, struct str token,
                          struct str *ret_token, const char **ret_detail) MUST_CHECK;

#endif
