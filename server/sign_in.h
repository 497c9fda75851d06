/* What a sign-in at an issuer is made of: the secrets of a try, its addresses and its cookies. */
#ifndef SERVER_SIGN_IN_H
#define SERVER_SIGN_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/crypto.h"
#include "base/str.h"

/*
 * A try to sign in. `state` goes to the issuer and comes back, `browser` stays in the cookie of the
 * browser that began. nonce and PKCE's verifier are derived from `browser`, so that the server
 * keeps hashes only, and only that browser can end what it began.
 */
#define SIGN_IN_SECONDS 600
#define SIGN_IN_SECRET_LEN 43 /* base64url of 256 bits */
#define SIGN_IN_TABS_MAX 8    /* tries that one browser may have open */
struct sign_in_try {
    char state[SIGN_IN_SECRET_LEN + 1];
    char browser[SIGN_IN_SECRET_LEN + 1];
    char nonce[SIGN_IN_SECRET_LEN + 1];
    char verifier[SIGN_IN_SECRET_LEN + 1];
    char challenge[SIGN_IN_SECRET_LEN + 1]; /* S256 of the verifier (RFC 7636 4.2) */
};
void sign_in_begin(struct sign_in_try *ret_try);
/* The rest of a try from its state and the cookie's secret. False when they cannot be ours. */
bool sign_in_resume(struct str state, struct str browser, struct sign_in_try *ret_try) MUST_CHECK;

/*
 * Where to go after signing in: a path of ours with its query, as it was asked for. Everything that
 * a browser could take for another host, and what is no page, becomes "/".
 */
#define SIGN_IN_RETURN_MAX 1024
struct str sign_in_return_to(struct str wanted);

/* What the issuer sends the browser back with; ptr NULL = absent. */
struct sign_in_answer {
    struct str code;
    struct str state;
    struct str iss;   /* RFC 9207 */
    struct str error; /* RFC 6749 4.1.2.1 */
};
/* False when the query is malformed or holds one of them twice (RFC 6749 3.1); others are ignored.
 */
bool sign_in_read_answer(struct arena *arena, struct str query,
                         struct sign_in_answer *ret_answer) MUST_CHECK;

struct sign_in_request {
    struct str endpoint; /* the issuer's; may have a query */
    struct str client_id;
    const char *redirect_uri;
    const struct str *scopes;
    size_t scope_count;
};
/* The address that the browser is sent to. */
void sign_in_write_url(const struct sign_in_request *request, const struct sign_in_try *attempt,
                       struct buf *url);

/* Adds name=value, percent-encoded, with & or ? in front where the text needs one: a query when the
 * text is an address (query true), else the body of a form. */
void sign_in_add_field(struct buf *text, bool query, const char *name, struct str value);
/* Percent-encodes all but unreserved characters (RFC 3986 2.3). */
void sign_in_add_escaped(struct buf *text, struct str value);

/* The cookie of a try; one a state, so that several tabs do not meet. */
#define SIGN_IN_COOKIE_NAME_MAX 64
void sign_in_cookie_name(struct str state, bool secure, char name[SIGN_IN_COOKIE_NAME_MAX]);
/* Its value out of a Cookie header; ptr NULL when it is absent or stands twice. */
struct str sign_in_cookie(struct str cookies, struct str state, bool secure);
/* Set-Cookie; max_age_s 0 clears it. */
const char *sign_in_set_cookie(struct arena *arena, const char *name, struct str value,
                               int64_t max_age_s, bool secure);
/* Names of cookies of older tries that are to be cleared, when there are too many. */
size_t sign_in_stale_cookies(struct str cookies, bool secure, struct str names[SIGN_IN_TABS_MAX]);

#endif
