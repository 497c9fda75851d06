/* The issuers of all orgs with their keys, held in memory for every loop, and who keeps them fresh.
 */
#ifndef SERVER_ISSUERS_H
#define SERVER_ISSUERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/uuid.h"
#include "oidc/discovery.h"
#include "oidc/issuer.h"
#include "oidc/jwk.h"
#include "server/loop.h"

struct follow;

/* When an issuer's documents were tried last, over all replicas. Lives as long as the process. */
struct issuer_pulse {
    _Atomic int64_t tried_us; /* monotonic; INT64_MIN = never */
    atomic_bool fetching;
};

/* Constant once it is in a table, apart from what is atomic. */
struct issuer_entry {
    struct uuid org;
    struct uuid id;
    int64_t version;
    int64_t keys_version;
    struct arena *arena;
    struct oidc_issuer issuer; /* algorithms include what discovery announces */
    bool sign_in;
    bool bearer;
    int64_t not_before_us; /* 0 = none */
    bool has_discovery;
    struct oidc_discovery discovery;
    struct jwk_set *keys;          /* NULL = none were ever had */
    _Atomic int64_t keys_until_us; /* monotonic: 24 h after they were had */
    struct issuer_pulse *pulse;
    atomic_int holders;
};

/* Those that are enabled, in the order in which they were made. */
struct issuer_table {
    atomic_int holders;
    size_t count;
    struct issuer_entry *entries[];
};

/* The newest table, held until it is released; NULL before the first was read. Any thread. */
struct issuer_table *issuers_hold(void);
void issuers_release(struct issuer_table *table); /* NULL is fine */
void issuers_releasep(struct issuer_table **table);
/* True while its keys may be used: fetched not longer than 24 h ago. */
bool issuer_has_keys(const struct issuer_entry *entry);

/*
 * Waits for fresh keys. May return false: they were tried within issuer_refetch_seconds, so there
 * is nothing to wait for. Else `task.fn(task.arg)` is called on the loop's thread once, 8 s later
 * at the latest: hold the table anew and look again. Loop's thread; `wait` lives until then.
 */
struct issuer_wait {
    struct loop_task task;
    struct loop *loop;
    struct uuid issuer;
    int64_t since_us;         /* private */
    struct issuer_wait *next; /* private */
};
bool issuers_wait(struct issuer_wait *wait, const struct issuer_entry *entry) MUST_CHECK;

/* For the table of backgrounds. */
#define ISSUERS_CONNECTIONS 1
void issuers_start(struct follow *follow);
void issuers_stop(void);

#endif
