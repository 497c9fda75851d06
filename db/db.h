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
/* Reads row 0. Absent columns give defaults, status 200; no row at all gives status 404. */
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

/* ---------------------------------------------------------------- pipelined connections (loops) */
/* One read and one verb connection, driven by its owner's poll, on the owner's thread only. */
struct db_loop;
struct db_call;
/* On an error `rows` is NULL and call->error says why, for the log. */
typedef void db_done(struct db_call *call, enum err err, const struct db_rows *rows);

struct db_call {
    enum sql_id sql;
    bool verb; /* false: shares a Sync with other reads; true: a Sync of its own, verb connection */
    bool has_org;
    struct uuid org;
    const char *scope; /* PostgreSQL's text of an array: the clusters and projects that may be read;
                          NULL = all of the org */
    struct db_args args;   /* text stays valid until done */
    const char *retry_key; /* idempotency key: a reply of status 409 is run once more; NULL = no */
    db_done *done; /* called on the loop's thread, exactly once, never from inside db_submit */
    void *ctx;
    const char *error;    /* set when done is called with an error; valid inside it */
    int64_t queued_us;    /* set by db_submit */
    struct db_call *next; /* private */
    unsigned attempts;    /* private */
};

struct db_loop *db_loop_new(void);
/* Ends waiting calls with ERR_UNAVAILABLE. Not from inside a callback. */
void db_loop_free(struct db_loop *loop);
/*
 * Ends with 0, with an error of db_exec's list, or ERR_OVERLOADED (more than 4,096 calls wait).
 * Whatever happens to the database, done is called about 5 s after this at the latest, and after
 * 1 s while the database has been away for longer than 5 s. After a lost connection reads run once
 * more; a verb that was sent ends with ERR_UNAVAILABLE, since nobody knows whether it took effect
 * (its caller repeats it with the same idempotency key).
 */
void db_submit(struct db_loop *loop, struct db_call *call);

/*
 * What the owner waits for. Ask before each wait. A descriptor is -1 while there is no connection.
 * While connecting, libpq may close a socket and open another with the same number: `generation`
 * differs then, and an epoll owner registers it anew (EPOLL_CTL_ADD, or MOD where it exists),
 * always level-triggered.
 */
struct db_poll {
    int fd;
    short events; /* POLLIN | POLLOUT */
    unsigned generation;
};
void db_loop_polls(struct db_loop *loop, struct db_poll polls[2]);
/* The owner's turn, after each wait and after submitting: reads what came, runs callbacks, sends
 * what was queued (one flush a connection), reconnects with a back-off of 50 ms to 1 s, ends calls
 * older than 5 s. Never blocks. */
void db_loop_turn(struct db_loop *loop);
int db_loop_timeout_ms(const struct db_loop *loop); /* longest wait; 0 = a turn is due */
bool db_loop_ready(const struct db_loop *loop);     /* both connections are up */
size_t db_loop_waiting(const struct db_loop *loop); /* calls that are not done */
/* Sentence for the log about the last failure of either connection; "" when there was none. */
const char *db_loop_error(const struct db_loop *loop);

/* ---------------------------------------------------------------- migrations (db/migrate.c) */
/* All three connect by DB_MIGRATE or the role they ask about, block, and are for start-up and the
 * command line. `error` is a sentence that says what to do. */

/* Applies what is missing as muster_owner: each file in one transaction with lock_timeout 1.5 s,
 * tried again while others hold locks; two at once take turns. *ret_applied: how many.
 * ERR_CONFLICT: the database is newer, or an applied file has changed since. */
enum err db_migrate(int *ret_applied, char *error, size_t error_cap) MUST_CHECK;
/* Compares the database's version with the binary's, as DB_APP: 0, or ERR_CONFLICT with the command
 * to run, or ERR_UNAVAILABLE. */
enum err db_check_version(char *error, size_t error_cap) MUST_CHECK;
/* ERR_FORBIDDEN when a runtime role is superuser, BYPASSRLS, owner of anything, may become one, or
 * may TRUNCATE. 0 with a sentence in `error`: the database is not durable (fsync,
 * synchronous_commit or full_page_writes is off); 0 with "": all is well. */
enum err db_check_roles(char *error, size_t error_cap) MUST_CHECK;

#endif
