/* Migrations: each file in one transaction, as the owner, one program at a time. */
#include "db/db.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "db/setup.h"
#include "db/statements.h"

#define TRIES 60         /* of one file while others hold locks: about two minutes */
#define TRY_AGAIN_MS 500 /* writers that queued behind our lock go on meanwhile */
#define LOCK_KEY "hashtext('muster.migrate')"

/*
 * The owner reads every org's rows by its own policy on each table (a catalogue test asks for it).
 * row_security = off would not do: it refuses all tables that force row security on their owner.
 * Others that migrate are waited for, ten minutes at most.
 */
static const char begin_session[] = "SET statement_timeout = 0; SET client_min_messages = warning; "
                                    "SET lock_timeout = '600s'; "
                                    "SELECT pg_advisory_lock(" LOCK_KEY ");";

static const char create_table[] =
    "CREATE TABLE IF NOT EXISTS muster.schema_migration ("
    " version integer PRIMARY KEY,"
    " name text NOT NULL,"
    " sha256 text NOT NULL,"
    " applied_at timestamptz NOT NULL DEFAULT now());"
    "GRANT SELECT ON muster.schema_migration TO muster_app, muster_loop;";

struct migrator {
    PGconn *pg;
    char *error;
    size_t error_cap;
};

static void clear_result(PGresult **result)
{
    PQclear(*result);
}

static void close_pg(PGconn **pg)
{
    PQfinish(*pg);
}

static enum err wait_connected(PGconn *pg)
{
    int64_t deadline_us = clock_mono_us() + DB_CONNECT_US;
    PostgresPollingStatusType polling = PGRES_POLLING_WRITING;
    while (polling != PGRES_POLLING_OK) {
        int64_t left_us = deadline_us - clock_mono_us();
        if (polling == PGRES_POLLING_FAILED || left_us <= 0) {
            return ERR_UNAVAILABLE;
        }
        struct pollfd fd = {.fd = PQsocket(pg),
                            .events = polling == PGRES_POLLING_READING ? POLLIN : POLLOUT};
        if (poll(&fd, 1, (int)(left_us / 1000) + 1) > 0) {
            polling = PQconnectPoll(pg);
        }
    }
    return ERR_NONE;
}

static bool is_good(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* True when another try may succeed: somebody holds a lock. */
static bool is_locked(const PGresult *result)
{
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return code != NULL && (strcmp(code, "55P03") == 0 || strcmp(code, "40P01") == 0);
}

static enum err fail_sql(struct migrator *m, const char *what, const PGresult *result)
{
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (message == NULL) {
        message = PQerrorMessage(m->pg);
    }
    (void)snprintf(m->error, m->error_cap, "%s failed: %.*s.", what, (int)strcspn(message, "\n"),
                   message);
    return PQstatus(m->pg) == CONNECTION_BAD ? ERR_UNAVAILABLE : ERR_INTERNAL;
}

static enum err run_sql(struct migrator *m, const char *what, const char *sql)
{
    CLEANUP(clear_result) PGresult *result = PQexec(m->pg, sql);
    return is_good(result) ? ERR_NONE : fail_sql(m, what, result);
}

/* Compares a row of schema_migration with what this program holds. */
static enum err compare_row(struct migrator *m, int64_t version, const char *sha256)
{
    if (version > migrations_count) {
        (void)snprintf(m->error, m->error_cap,
                       "This musterd is older than its database (it knows version %d, the database "
                       "is at %" PRId64 "): install the newer release.",
                       migrations_count, version);
        return ERR_CONFLICT;
    }
    if (version < 1 || strcmp(migrations[version - 1].sha256, sha256) != 0) {
        (void)snprintf(m->error, m->error_cap,
                       "Migration %" PRId64 " was applied to this database with another text: use "
                       "the release that belongs to this database.",
                       version);
        return ERR_CONFLICT;
    }
    return ERR_NONE;
}

/* The version that the database is at; 0 when it is empty. */
static enum err read_version(struct migrator *m, int *ret_version)
{
    CLEANUP(clear_result)
    PGresult *present = PQexec(m->pg, "SELECT to_regclass('muster.schema_migration') IS NOT NULL");
    if (!is_good(present)) {
        return fail_sql(m, "Reading the version", present);
    }
    *ret_version = 0;
    if (strcmp(PQgetvalue(present, 0, 0), "t") != 0) {
        return ERR_NONE;
    }
    CLEANUP(clear_result)
    PGresult *rows = PQexec(m->pg, "SELECT version, sha256 FROM muster.schema_migration "
                                   "ORDER BY version DESC");
    if (!is_good(rows)) {
        return fail_sql(m, "Reading the version", rows);
    }
    for (int i = 0; i < PQntuples(rows); i++) {
        int64_t version = 0;
        struct str text = str_of(PQgetvalue(rows, i, 0));
        if (!str_parse_i64(text, INT32_MIN, INT32_MAX, &version)) {
            return ERR_INTERNAL;
        }
        enum err err = compare_row(m, version, PQgetvalue(rows, i, 1));
        if (err != ERR_NONE) {
            return err;
        }
        if (version > *ret_version) {
            *ret_version = (int)version;
        }
    }
    return ERR_NONE;
}

static PGresult *note_applied(struct migrator *m, const struct migration *migration)
{
    char version[16];
    (void)snprintf(version, sizeof(version), "%d", migration->version);
    const char *values[] = {version, migration->name, migration->sha256};
    return PQexecParams(m->pg,
                        "INSERT INTO muster.schema_migration (version, name, sha256) "
                        "VALUES ($1, $2, $3)",
                        3, NULL, values, NULL, NULL, 0);
}

/* One try of one file. *ret_locked: it may succeed later. */
static enum err try_file(struct migrator *m, const struct migration *migration, bool *ret_locked)
{
    /* Above deadlock_timeout (1 s), which makes an autovacuum give way; below the 2 s that the
     * runtime roles wait for a lock, so that those who queue behind us do not fail. */
    static const char begin[] = "BEGIN; SET LOCAL lock_timeout = '1500ms'";
    char what[128];
    (void)snprintf(what, sizeof(what), "Migration %04d_%s", migration->version, migration->name);
    const char *steps[] = {begin, migration->text, create_table, NULL, "COMMIT"};
    *ret_locked = false;
    for (size_t i = 0; i < COUNTOF(steps); i++) {
        CLEANUP(clear_result)
        PGresult *result = steps[i] == NULL ? note_applied(m, migration) : PQexec(m->pg, steps[i]);
        if (!is_good(result)) {
            enum err err = fail_sql(m, what, result);
            *ret_locked = is_locked(result);
            PQclear(PQexec(m->pg, "ROLLBACK"));
            return err;
        }
    }
    return ERR_NONE;
}

static enum err apply_file(struct migrator *m, const struct migration *migration)
{
    for (int i = 0; i < TRIES; i++) {
        bool is_locked_out = false;
        enum err err = try_file(m, migration, &is_locked_out);
        if (!is_locked_out) {
            return err;
        }
        log_debug("migration %d waits for a lock", migration->version);
        struct timespec pause = {.tv_nsec = TRY_AGAIN_MS * 1000000L};
        (void)nanosleep(&pause, NULL);
    }
    (void)snprintf(m->error, m->error_cap,
                   "Migration %04d_%s found no moment without locks in %d tries: end long "
                   "transactions and run it again.",
                   migration->version, migration->name, TRIES);
    return ERR_UNAVAILABLE;
}

enum err db_migrate(int *ret_applied, char *error, size_t error_cap)
{
    CLEANUP(close_pg) PGconn *pg = setup_connect_start(DB_MIGRATE);
    struct migrator m = {.pg = pg, .error = error, .error_cap = error_cap};
    if (pg == NULL || PQstatus(pg) == CONNECTION_BAD || wait_connected(pg) != ERR_NONE) {
        const char *message = pg == NULL ? "out of memory" : PQerrorMessage(pg);
        (void)snprintf(error, error_cap, "The database cannot be reached: %.*s.",
                       (int)strcspn(message, "\n"), message);
        return ERR_UNAVAILABLE;
    }
    int version = 0;
    enum err err = run_sql(&m, "Becoming muster_owner", begin_session);
    if (err == ERR_NONE) {
        err = read_version(&m, &version);
    }
    if (err != ERR_NONE) {
        return err;
    }
    int applied = 0;
    for (int i = version; i < migrations_count; i++) {
        err = apply_file(&m, &migrations[i]);
        if (err != ERR_NONE) {
            return err;
        }
        applied++;
    }
    error[0] = '\0';
    *ret_applied = applied;
    return ERR_NONE;
}
