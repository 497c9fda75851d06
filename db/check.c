/* What start-up checks: the database's version, the roles' rights, and durability. */
#include "db/db.h"

#include <inttypes.h>
#include <stdio.h>

#include "db/statements.h"

static void free_conn(struct db_conn **conn)
{
    db_conn_free(*conn);
}

static void free_rows(struct db_rows **rows)
{
    db_rows_free(*rows);
}

/* Runs a global statement without arguments. */
static enum err ask(struct db_conn *conn, enum sql_id sql, struct db_rows **ret_rows, char *error,
                    size_t error_cap)
{
    enum err err = db_exec(conn, sql, NULL, NULL, ret_rows);
    if (err != ERR_NONE) {
        (void)snprintf(error, error_cap, "The database cannot be asked: %s.", db_conn_error(conn));
    }
    return err;
}

enum err db_check_version(char *error, size_t error_cap)
{
    CLEANUP(free_conn) struct db_conn *conn = db_conn_new(DB_APP);
    CLEANUP(free_rows) struct db_rows *present = NULL;
    CLEANUP(free_rows) struct db_rows *rows = NULL;
    enum err err = ask(conn, SQL_SCHEMA_EXISTS, &present, error, error_cap);
    if (err != ERR_NONE) {
        return err;
    }
    if (!db_bool(present, 0, 0)) {
        (void)snprintf(error, error_cap, "The database is empty: run `musterd migrate`.");
        return ERR_CONFLICT;
    }
    err = ask(conn, SQL_SCHEMA_VERSION, &rows, error, error_cap);
    if (err != ERR_NONE) {
        return err;
    }
    int64_t version = db_i64(rows, 0, 0);
    if (version < migrations_count) {
        (void)snprintf(error, error_cap,
                       "The database is at version %" PRId64
                       ", this musterd needs %d: run `musterd migrate`.",
                       version, migrations_count);
        return ERR_CONFLICT;
    }
    if (version > migrations_count) {
        (void)snprintf(error, error_cap,
                       "This musterd is older than its database (it knows version %d, the database "
                       "is at %" PRId64 "): install the newer release.",
                       migrations_count, version);
        return ERR_CONFLICT;
    }
    error[0] = '\0';
    return ERR_NONE;
}

/* Rights that no runtime role may have; the columns of role_check. */
static const struct {
    const char *column;
    const char *sentence; /* after "The database role X " */
} refusals[] = {
    {"superuser", "is a superuser or may become one, so row security would not hold"},
    {"bypass", "may bypass row security"},
    {"owner", "owns the tables or may become their owner, so row security would not hold"},
    {"truncates", "may TRUNCATE a table, which row security does not stop"},
    {"creates", "may create objects in the schema muster"},
};

static const char *const durable[] = {"fsync", "synchronous_commit", "full_page_writes"};

static enum err check_role(enum db_role role, char *error, size_t error_cap)
{
    CLEANUP(free_conn) struct db_conn *conn = db_conn_new(role);
    CLEANUP(free_rows) struct db_rows *rows = NULL;
    enum err err = ask(conn, SQL_ROLE_CHECK, &rows, error, error_cap);
    if (err != ERR_NONE) {
        return err;
    }
    for (size_t i = 0; i < COUNTOF(refusals); i++) {
        if (db_bool(rows, 0, db_rows_col(rows, refusals[i].column))) {
            struct str name = db_text(rows, 0, db_rows_col(rows, "role"));
            (void)snprintf(error, error_cap,
                           "The database role %.*s %s: use the roles of "
                           "deploy/postgresql/roles.sql.",
                           STR_FMT(name), refusals[i].sentence);
            return ERR_FORBIDDEN;
        }
    }
    for (size_t i = 0; i < COUNTOF(durable); i++) {
        if (str_eq_c(db_text(rows, 0, db_rows_col(rows, durable[i])), "off")) {
            (void)snprintf(error, error_cap,
                           "The database is not durable: %s is off, so what was acknowledged can "
                           "be lost in a crash.",
                           durable[i]);
        }
    }
    return ERR_NONE;
}

enum err db_check_roles(char *error, size_t error_cap)
{
    static const enum db_role roles[] = {DB_APP, DB_INGEST, DB_LOOP};
    error[0] = '\0';
    for (size_t i = 0; i < COUNTOF(roles); i++) {
        enum err err = check_role(roles[i], error, error_cap);
        if (err != ERR_NONE) {
            return err;
        }
    }
    return ERR_NONE;
}
