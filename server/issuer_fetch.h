/* A fetch of one issuer's documents: claimed among all replicas, stored, or its failure noted. */
#ifndef SERVER_ISSUER_FETCH_H
#define SERVER_ISSUER_FETCH_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/uuid.h"
#include "db/db.h"

/* `done` is called on a thread of the pool, whatever came of it. */
struct issuer_fetch {
    struct uuid org;
    struct uuid id;
    void (*done)(void *ctx);
    void *ctx;
};
/* False when the pool takes no more; done is not called then. Any thread. */
bool issuer_fetch_start(const struct issuer_fetch *fetch) MUST_CHECK;

/* The same at once, on a thread of the pool. *ret_claimed: nobody had tried within
 * issuer_refetch_seconds. An error is the database's. */
enum err issuer_fetch_now(struct db_conn *db, const struct uuid *org, const struct uuid *id,
                          bool *ret_claimed) MUST_CHECK;

#endif
