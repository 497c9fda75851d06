/* Who is calling: tokens, cookies, the cache of credentials, and the rules for browsers. */
#ifndef SERVER_AUTH_H
#define SERVER_AUTH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "db/db.h"
#include "server/request.h"

/*
 * A token is stored as the SHA-256 of its whole text, prefix included. Prefixes: mst_ service,
 * mat_ agent, mss_ session (in the cookie), mpt_ a person's session that a program holds, msl_
 * sign-in link, mjt_ join token, mdc_ device code (these three in bodies only).
 */
#define AUTH_PREFIX_SERVICE "mst_"
#define AUTH_PREFIX_AGENT "mat_"
#define AUTH_PREFIX_SESSION "mss_"
#define AUTH_PREFIX_LINK "msl_"
#define AUTH_PREFIX_JOIN "mjt_"
#define AUTH_PREFIX_PERSON "mpt_"
#define AUTH_PREFIX_DEVICE "mdc_"
#define AUTH_TOKEN_MAX 128 /* bytes; longer is no token of ours */

#define AUTH_COOKIE_TLS "__Host-muster"
#define AUTH_COOKIE_PLAIN "muster_session"

/* AUTH_ISSUER: a JWT, which an issuer may have made. */
enum auth_source { AUTH_NONE, AUTH_BEARER, AUTH_COOKIE, AUTH_ISSUER };

/* The token of a request: the Authorization header wins over the cookie. ERR_UNAUTHENTICATED when
 * an Authorization header is there and is neither a Bearer token of ours nor a JWT. */
enum err auth_token(struct str authorization, struct str cookie, bool secure,
                    enum auth_source *ret_source, struct str *ret_token) MUST_CHECK;

/*
 * The cache: callers by hash of agents', services' and issuers' tokens, one a loop, at most
 * AUTH_CACHE_MAX. An entry lives 60 s and never past its own expiry; all go when the epoch moves (a
 * revocation). Sessions are not kept: they may change their org.
 */
#define AUTH_CACHE_MAX 131072
struct auth_cache;
struct auth_cache *auth_cache_new(void);
void auth_cache_free(struct auth_cache *cache);
/* epoch from follow_auth_epoch. */
/* The caller's name and grants point into the cache: copy them before the next call. */
bool auth_cache_get(struct auth_cache *cache, const uint8_t hash[32], int64_t epoch,
                    struct caller *ret_caller);
void auth_cache_put(struct auth_cache *cache, const uint8_t hash[32], int64_t epoch,
                    const struct caller *caller);

/* True at most once in five minutes for a credential: its last use should be written. */
bool auth_touch_due(struct auth_cache *cache, const uint8_t hash[32]);

/* The caller in row 0 of auth_lookup; false when there is no row. The name is copied into the
 * arena. */
bool auth_caller_read(struct arena *arena, const struct db_rows *rows,
                      struct caller *ret_caller) MUST_CHECK;

/* ERR_UNAUTHENTICATED or ERR_FORBIDDEN when the caller lacks perm (one bit, or PERM_PUBLIC). */
enum err auth_permit(const struct caller *caller, unsigned perm) MUST_CHECK;

/*
 * The same for a caller who may have the permission in parts of the org only. ret_scope: NULL where
 * it holds for the whole org, else the clusters and projects it holds for, as PostgreSQL's text of
 * an array, in the arena. org_wide: only the whole org will do. What may be read includes the
 * project of a cluster.
 */
enum err auth_permit_scoped(struct arena *arena, const struct caller *caller, unsigned perm,
                            bool org_wide, const char **ret_scope) MUST_CHECK;
/* True when an id (36 characters, lower case) is in such a text, or the text is NULL. */
bool auth_in_scope(const char *scope, struct str id);

/* What a browser tells about where a request comes from. */
struct auth_browser {
    struct str content_type;
    struct str sec_fetch_site;
    struct str origin;
    struct str host;
};
/* A change asked for with a cookie: JSON only (ERR_MEDIA_TYPE), from our own pages only
 * (ERR_FORBIDDEN). */
enum err auth_same_origin(const struct auth_browser *browser, bool secure) MUST_CHECK;

/* Set-Cookie for the session, by rq->secure. max_age_s 0 clears the cookie. */
void auth_cookie_set(struct request *rq, struct str token, int64_t max_age_s);

#endif
