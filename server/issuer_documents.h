/* An issuer's discovery document and key set, fetched and read. */
#ifndef SERVER_ISSUER_DOCUMENTS_H
#define SERVER_ISSUER_DOCUMENTS_H

#include "oidc/discovery.h"
#include "oidc/issuer.h"
#include "oidc/jwk.h"

/* What was fetched, and how far it went. The texts live in the arena, the set is the caller's. */
struct issuer_documents {
    struct str discovery_text; /* ptr NULL = the stored one was used */
    struct oidc_discovery discovery;
    bool has_discovery;
    bool reached; /* something answered for the discovery document */
    enum oidc_reason discovery_reason;
    struct str keys_text;
    struct jwk_set *keys; /* NULL = not had */
    long keep_s;          /* by Cache-Control, 60 s to 24 h, 10 min unless said */
    const char *error;    /* the sentence of the first step that failed; NULL = all is had */
};

/*
 * Blocks, at most three times 5 s; threads of a pool only. `stored` is a discovery document that is
 * young enough, or empty: it is used, and fetched anew when the key set cannot be had by it.
 * Nothing of an answer's body is in `error`. The arena needs 4 MiB of room.
 */
void issuer_documents_fetch(struct arena *arena, const struct oidc_issuer *issuer,
                            struct str stored, struct issuer_documents *ret);
/* The keys that are left out, as JSON: [{"kid","reason"}], 32 at most. In the arena. */
struct str issuer_documents_unusable(struct arena *arena, const struct jwk_set *keys);

#endif
