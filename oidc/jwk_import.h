/* One JSON Web Key judged and made ready for OpenSSL. */
#ifndef OIDC_JWK_IMPORT_H
#define OIDC_JWK_IMPORT_H

#include "oidc/jwk.h"

/* Fills *ret; on a skip its kid is set where it can be shown, pkey is NULL, and *ret_detail is a
 * sentence that lives as long as the arena. The caller frees pkey. */
enum jwk_skip jwk_import(struct arena *arena, const json_t *item, struct jwk *ret,
                         const char **ret_detail) MUST_CHECK;

#endif
