/* How much each credential, org and address may ask for: buckets in memory, shared by the loops. */
#ifndef SERVER_LIMITS_H
#define SERVER_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/uuid.h"

#define LIMITS_WINDOW_S 60

/* X(symbol, name as clients see it) */
#define LIMIT_TABLE(X)                                                                         \
    X(LIMIT_CREDENTIAL, "credential")                                                          \
    X(LIMIT_ORG, "org")                                                                        \
    X(LIMIT_SIGN_IN, "sign-in")               /* by address: one who is nobody yet */          \
    X(LIMIT_JOIN, "join")                     /* by address: agents that join or renew */      \
    X(LIMIT_LOGOUT, "logout")                 /* by issuer and address: back-channel logout */ \
    X(LIMIT_LOGOUT_ADDRESS, "logout-address") /* the same, whatever issuers it names */
enum limit {
#define LIMIT_ENUM(sym, name) sym,
    LIMIT_TABLE(LIMIT_ENUM)
#undef LIMIT_ENUM
        LIMIT_COUNT
};

/*
 * Each replica counts for itself: behind n of them a caller gets up to n times as much. A bucket
 * holds the requests of a minute (config rate_*_per_minute; 0 = no limit) and fills evenly.
 */
struct limits;
/* per_minute[LIMIT_COUNT]. Any thread may use it. */
struct limits *limits_new(const int64_t per_minute[LIMIT_COUNT]);
void limits_free(struct limits *limits); /* NULL is fine */

/* What a request took, for its RateLimit headers and its refusal. */
struct limits_taken {
    struct {
        bool used;
        bool refused;
        int64_t quota;     /* requests a minute */
        int64_t left;      /* requests at once from now on */
        int64_t full_in_s; /* until all of the quota is there again */
        int64_t wait_s;    /* refused: until one is */
    } of[LIMIT_COUNT];
};

/* Takes one; false when there is none (nothing is taken then). */
bool limits_take(struct limits *limits, enum limit limit, const void *key, size_t key_len,
                 int64_t now_us, struct limits_taken *taken);
/* The same for an address: of IPv6 the network of 64 bits that one customer gets. scope: what it
 * asks, where each thing has a bucket of its own; NULL = none. */
bool limits_take_address(struct limits *limits, enum limit limit, const struct uuid *scope,
                         struct str address, int64_t now_us, struct limits_taken *taken);
const char *limit_name(enum limit limit);

#endif
