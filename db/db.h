/*
 * The database, as the rest of the server sees it. Only this folder includes libpq.
 *
 * Statements live in db/sql/<noun>.sql and are embedded at build:
 *
 *   -- name: node_get
 *   -- role: app                     (app, ingest, loop or several: `app, loop`; app when absent)
 *   -- scope: global                 (only where no org is known: reviewed by name)
 *   SELECT ... WHERE org_id = $1 ...
 *
 * Each becomes enum sql_id SQL_NODE_GET. A statement without `scope: global` has the org as $1 and
 * must name `org_id = $1` (or insert it: `INSERT INTO t (org_id, ...) VALUES ($1, ...)`); the
 * embedder refuses others. The org is also set for row security (set_config('muster.org', $1,
 * true)) in the same unit, so that neither belt depends on the other.
 *
 * The org is given beside the arguments and becomes $1 by itself: `args` starts at $2. A global
 * statement's args start at $1; an org given with one is set for row security only (creating an
 * org, redeeming a join token). A wrong count of args or a role that may not run it is an assert.
 *
 * A request's statement answers one row `status int, version bigint, next text, body text`
 * (struct db_reply); other columns are read by name or position through struct db_rows.
 */
#ifndef DB_DB_H
#define DB_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/uuid.h"
#include "db/sql_ids.h" /* generated: enum sql_id */

#define DB_ARGS_MAX 24

/* Parameters in text form, NUL-terminated, owned by the caller until the call is done. NULL = SQL
 * NULL. */
struct db_args {
    int count;
    const char *values[DB_ARGS_MAX];
};

void db_arg(struct db_args *args, const char *value);
void db_arg_str(struct db_args *args, struct arena *arena, struct str value); /* NULL ptr = NULL */
void db_arg_uuid(struct db_args *args, struct arena *arena, const struct uuid *value);
void db_arg_i64(struct db_args *args, struct arena *arena, int64_t value);
void db_arg_bool(struct db_args *args, bool value);
void db_arg_bytes(struct db_args *args, struct arena *arena, const void *data,
                  size_t len); /* bytea */
void db_arg_time(struct db_args *args, struct arena *arena, int64_t us);

/* Rows of a result; valid until db_rows_free (sync calls) or the end of the callback (async calls).
 */
struct db_rows;
int db_rows_count(const struct db_rows *rows);
int db_rows_col(const struct db_rows *rows, const char *name); /* asserts that it exists */
bool db_is_null(const struct db_rows *rows, int row, int col);
struct str db_text(const struct db_rows *rows, int row,
                   int col);                                  /* empty for NULL; points into rows */
int64_t db_i64(const struct db_rows *rows, int row, int col); /* 0 for NULL */
double db_double(const struct db_rows *rows, int row, int col);
bool db_bool(const struct db_rows *rows, int row, int col);
bool db_uuid(const struct db_rows *rows, int row, int col,
             struct uuid *ret_uuid);                              /* false for NULL */
int64_t db_time_us(const struct db_rows *rows, int row, int col); /* timestamptz; 0 for NULL */
size_t db_bytes(const struct db_rows *rows, int row, int col, void *data, size_t cap); /* bytea */
void db_rows_free(struct db_rows *rows);

/*
 * The row that verbs and reads answer with. Each column is found by its name and may be absent.
 *
 * status  version  next                       body                  other columns
 * 200..   ETag     lists: cursor of the next  JSON text             replayed: an Idempotency-Key
 * was page, NULL on the last;                          answered from its store 201: the path for
 * Location 404     -        -                          ignored 409     ETag     - ignored state:
 * the present one; problem 412     ETag     -                          ignored 422     -        -
 * ignored               pointer: the field ("#/project_id")
 *
 * Lists answer `version` = org_head.event_seq + org_head.rollup_version, which is their weak ETag,
 * and a body without `next_cursor`: respond.c adds it. On every status of 400 and more `problem` (a
 * code of base/err.h) says which kind where the status alone does not, and `detail` is the sentence
 * for the caller.
 */
struct db_reply {
    int status;         /* HTTP status decided by SQL */
    int64_t version;    /* -1 = none; ETag */
    struct str next;    /* cursor payload or Location; ptr NULL = none */
    struct str body;    /* JSON text; ptr NULL = none */
    bool replayed;      /* false when the column is absent */
    struct str problem; /* ptr NULL = by the status */
    struct str detail;  /* ptr NULL = none */
    struct str state;   /* 409: the present state; ptr NULL = none */
    struct str pointer; /* 422: JSON pointer; ptr NULL = none */
};
/* Reads it from row 0 by the names status, version, next, body (absent columns give defaults;
 * status 200). */
enum err db_reply_read(const struct db_rows *rows, struct db_reply *ret_reply) MUST_CHECK;

/* ------------------------------------------------------------------ plain connections (threads) */
enum db_role { DB_APP, DB_INGEST, DB_LOOP, DB_MIGRATE };

struct db_conn;
/* conninfo of each role is set once by db_setup. Never fails: it connects at first use and again
 * after a loss. One thread at a time. */
void db_setup(const char *const conninfo[4]);
struct db_conn *db_conn_new(enum db_role role);
void db_conn_free(struct db_conn *conn);

/*
 * Runs one statement (with its org unit) and waits. org NULL only for `scope: global`.
 * 0, or: ERR_UNAVAILABLE (no connection, time-out, disk full), ERR_CONFLICT / ERR_NAME_TAKEN
 * (keys), ERR_INVALID_FIELDS (a check we named), ERR_INTERNAL. 40001, 40P01 and 0A000 are retried
 * once inside.
 */
enum err db_exec(struct db_conn *conn, enum sql_id sql, const struct uuid *org,
                 const struct db_args *args, struct db_rows **ret_rows) MUST_CHECK;

/*
 * Runs several statements in one transaction and one round trip (one Sync). Row sets come back in
 * order; on an error none is kept and none took effect. count <= 16.
 */
struct db_unit {
    enum sql_id sql;
    const struct uuid *org; /* NULL = global */
    const struct db_args *args;
    struct db_rows *rows; /* out; caller frees */
};
enum err db_exec_all(struct db_conn *conn, struct db_unit *units, size_t count) MUST_CHECK;
/* Sentence for the log about the last failure of this connection. */
const char *db_conn_error(const struct db_conn *conn);

/* ------------------------------------------------------------------ pipelined connections (event
 * loops) */
struct db_loop; /* one read and one verb connection, driven by the owner's poll; owner's thread only
                 */
struct db_call;
typedef void db_done(struct db_call *call, enum err err, const struct db_rows *rows);

struct db_call {
    enum sql_id sql;
    bool verb; /* false: may share a Sync with other reads; true: its own Sync on the verb
                  connection */
    bool has_org;
    struct uuid org;
    struct db_args args;   /* text stays valid until done */
    const char *retry_key; /* idempotency key: a reply of status 409 is run once more; NULL = no */
    db_done *done; /* called on the loop's thread, exactly once, never from inside db_submit */
    void *ctx;
    int64_t queued_us;    /* set by db_submit */
    struct db_call *next; /* private */
    int attempts;         /* private */
};

struct db_loop *db_loop_new(void);
void db_loop_free(struct db_loop *loop); /* ends waiting calls with ERR_UNAVAILABLE */
void db_submit(struct db_loop *loop, struct db_call *call);
/* The owner's turn: register these descriptors for the events, then call db_loop_turn after poll.
 * A descriptor is -1 while there is no connection. */
struct db_poll {
    int fd;
    short events; /* POLLIN | POLLOUT */
};
void db_loop_polls(struct db_loop *loop, struct db_poll polls[2]);
/* Sends what was queued (one flush a connection), reads what came, runs callbacks, reconnects with
 * back-off, ends calls older than 5 s with ERR_UNAVAILABLE. */
void db_loop_turn(struct db_loop *loop);
int db_loop_timeout_ms(const struct db_loop *loop); /* -1 = nothing to wait for */
bool db_loop_ready(const struct db_loop *loop);     /* both connections are up */
size_t db_loop_waiting(const struct db_loop *loop);

/* ------------------------------------------------------------------ migrations (db/migrate.c) */
/* Applies what is missing as muster_owner, each file in one transaction with lock_timeout and
 * retry. Embedded at build. */
enum err db_migrate(char *error, size_t error_cap) MUST_CHECK;
/* Compares the database's version with the binary's: 0, or ERR_CONFLICT with the command to run in
 * error. */
enum err db_check_version(char *error, size_t error_cap) MUST_CHECK;
/* Refuses superuser, owner or BYPASSRLS behind any runtime role, and
 * fsync/synchronous_commit/full_page_writes off. */
enum err db_check_roles(char *error, size_t error_cap) MUST_CHECK;

#endif
