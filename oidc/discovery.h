/* An issuer's discovery document, read and compared; fetching it is somebody else's work. */
#ifndef OIDC_DISCOVERY_H
#define OIDC_DISCOVERY_H

#include "oidc/issuer.h"
#include "oidc/reason.h"

#define DISCOVERY_MAX_BYTES (256U << 10)

struct oidc_discovery {
    struct str jwks_uri;
    struct str authorization_endpoint; /* this and the following may be empty */
    struct str token_endpoint;
    struct str userinfo_endpoint;
    struct str end_session_endpoint;
    struct str device_authorization_endpoint;
    struct str revocation_endpoint;
    unsigned algs;       /* announced and acceptable; RS256 when none is announced */
    bool announces_iss;  /* RFC 9207: the callback carries iss, so it must be checked */
    bool announces_s256; /* PKCE with S256 */
    bool announces_backchannel_logout;
    bool client_basic; /* client_secret_basic at the token endpoint; also when nothing is said */
    bool client_post;  /* client_secret_post */
};

/* issuer + "/.well-known/openid-configuration", with one slash at the issuer's end left out. */
const char *oidc_discovery_url(struct arena *arena, struct str issuer);

/*
 * Reads the document of the issuer. Its own issuer must be the configured one, byte for byte
 * (OpenID Connect Discovery 4.3), or Entra's template when entra_tenants are listed. Every address
 * must be https; unless allow_http, which only tests and an operator's allow-list set. Returns
 * OIDC_OK, iss_mismatch, or idp_unavailable for a document that cannot be used, with a sentence.
 */
enum oidc_reason oidc_discovery_read(struct arena *arena, const struct oidc_issuer *issuer,
                                     struct str text, bool allow_http, struct oidc_discovery *ret,
                                     const char **ret_detail) MUST_CHECK;

#endif
