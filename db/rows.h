/* Results inside db/: rows around a libpq result, and what an error result means. */
#ifndef DB_ROWS_H
#define DB_ROWS_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "db/db.h"

struct db_rows {
    PGresult *result;
};

/* Owns the result from now on. */
struct db_rows *db_rows_new(PGresult *result);

enum retry {
    RETRY_NEVER,
    RETRY_ONCE,    /* run the same once more */
    RETRY_PREPARE, /* prepare it again, then run it once more */
};

/* What an error result means to the caller. */
struct failure {
    enum err err;
    enum retry retry;
    bool reconnect; /* this connection is of no more use: a standby, or the server goes away */
};

struct failure failure_of(const PGresult *result);
/* One line for the log: "node_get: 23505 duplicate key value ...". `name` is the statement's. */
void failure_describe(const PGresult *result, const char *name, char *text, size_t cap);

#endif
