/* A compact JWS taken apart strictly; nothing in it is trusted yet. */
#ifndef OIDC_JOSE_H
#define OIDC_JOSE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "oidc/alg.h"
#include "oidc/reason.h"

#define JOSE_TOKEN_MAX 16384
/* What one token may need of an arena: its decoded parts, sentences, and 1,000 names of 1 KiB each
 * for groups and extra. A common token takes a few KiB. */
#define JOSE_ARENA_CAP (4U << 20)

struct jws {
    struct str alg_name; /* as the header says it; may be empty */
    enum jose_alg alg;
    bool has_kid;
    struct str kid;
    bool has_typ;
    struct str typ;
    struct str signing_input; /* "header.payload" inside the token */
    struct str payload;       /* decoded; any bytes, may be empty */
    struct str signature;     /* decoded */
};

/*
 * Accepts exactly header.payload.signature in strict base64url (RFC 7515 2 and 3.1), at most 16
 * KiB, the header an object without duplicate members. Unknown header members are ignored; jwk,
 * jku, x5u and x5c are never looked at. Any crit, and b64 other than true, are refused (RFC 7797
 * 6). An alg outside the table, or none at all, is alg_not_allowed; *ret is filled as far as it was
 * read. The token must live as long as *ret. *ret_detail is a sentence in the arena after a
 * refusal.
 */
enum oidc_reason jws_parse(struct arena *arena, struct str token, struct jws *ret,
                           const char **ret_detail) MUST_CHECK;

/* A JSON object without duplicate members; NULL with a sentence otherwise. Numbers are all reals,
 * and U+0000 in text is let through: who reads a text checks it (jose_text). Owned by the caller.
 */
json_t *jose_read_object(struct arena *arena, struct str text, const char **ret_detail) MUST_CHECK;
/* The text of a JSON string, not copied; len 0 for another type. */
struct str jose_text(const json_t *string);
/* True when the text has no control character (C0, DEL, C1), so that it may be shown and kept. */
bool jose_text_is_plain(struct str text);
/* Text from outside made fit to be quoted in a sentence: cut at 200 bytes, control characters as
 * '?'. In the arena. */
const char *jose_quote(struct arena *arena, struct str text);

#endif
