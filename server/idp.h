/* An identity provider as a sign-in needs it: its settings, addresses and keys, read from the
 * database and fetched where they are missing. */
#ifndef SERVER_IDP_H
#define SERVER_IDP_H

#include <stdbool.h>

#include "db/db.h"
#include "oidc/discovery.h"
#include "oidc/verify.h"

struct idp {
    struct uuid org;
    struct uuid id;
    bool sign_in; /* it is enabled, and people may sign in to the console with it */
    struct oidc_issuer issuer;
    struct str_list scopes;   /* at least openid */
    struct str client_secret; /* opened; ptr NULL = a public client */
    struct oidc_discovery discovery;
    bool has_discovery;
    struct jwk_set *keys; /* owned; NULL = none can be had */
};

/* All of these block and are for threads of a pool. Texts live in the arena. */

/* ERR_NOT_FOUND, ERR_UNAVAILABLE or ERR_INTERNAL (its settings or its secret cannot be read: the
 * log says why). Asks the issuer when nothing is known of it yet. */
enum err idp_open(struct db_conn *db, const struct uuid *org, const struct uuid *id,
                  struct arena *arena, struct idp *ret_idp) MUST_CHECK;
void idp_close(struct idp *idp); /* for CLEANUP too */

/* Judges a token; a key that is not known, or a signature that is wrong, is looked at once more
 * with fresh keys, at most one fetch in 30 s for all. */
void idp_verify(struct db_conn *db, struct idp *idp, struct arena *arena, struct str token,
                const struct oidc_question *question, struct oidc_verdict *ret_verdict);

/* What the token endpoint gave. */
struct idp_tokens {
    struct str id_token;      /* ptr NULL = none */
    struct str refresh_token; /* ptr NULL = none, or the one that was used goes on */
    int64_t expires_in_s;     /* of the access token; 0 = not said */
};
enum idp_outcome {
    IDP_GIVEN,
    IDP_REFUSED, /* the issuer answered and said no: error has its code */
    IDP_AWAY,    /* no answer, or none that can be used: try again later */
};
struct idp_grant {
    struct str code; /* with verifier and redirect_uri; or the refresh token below */
    const char *verifier;
    const char *redirect_uri;
    struct str refresh_token;
};
/* error: a code of RFC 6749 5.2 or a sentence for the log, never a secret. */
enum idp_outcome idp_redeem(const struct idp *idp, const struct idp_grant *grant,
                            struct arena *arena, struct idp_tokens *ret_tokens,
                            const char **ret_error) MUST_CHECK;

#endif
