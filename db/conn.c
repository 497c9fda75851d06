/* Plain connections: one statement, or several in one transaction, and wait. */
#include "db/db.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "db/link.h"

#define UNITS_MAX 16
#define RETRY_PAUSE_MS 20

struct db_conn {
    struct link *link;
};

/* How long a caller may wait, above the role's statement_timeout where that is meant to end first.
 */
static const int64_t wait_us[] = {
    [DB_APP] = 5000000,
    [DB_INGEST] = 4000000, /* a report that waited for the batch before is still answered in 5 s */
    [DB_LOOP] = 31000000,
    [DB_MIGRATE] = 31000000,
};

struct db_conn *db_conn_new(enum db_role role)
{
    struct db_conn *conn = calloc(1, sizeof(*conn));
    if (conn == NULL) {
        abort();
    }
    conn->link = link_new(role);
    return conn;
}

void db_conn_free(struct db_conn *conn)
{
    if (conn != NULL) {
        link_free(conn->link);
        free(conn);
    }
}

const char *db_conn_error(const struct db_conn *conn)
{
    return conn->link->error;
}

/* Waits for the socket; false when the deadline passes first. */
static bool wait_socket(const struct link *link, int64_t deadline_us)
{
    for (;;) {
        int64_t left_us = deadline_us - clock_mono_us();
        if (left_us <= 0) {
            return false;
        }
        struct pollfd fd = {.fd = link_poll(link, &fd.events)};
        int rc = poll(&fd, 1, (int)(left_us / 1000) + 1);
        if (rc > 0) {
            return true;
        }
        if (rc < 0 && errno != EINTR) {
            return false;
        }
    }
}

/* A connection that was lost while idle is noticed before anything is sent on it. */
static bool ensure_up(struct link *link, int64_t deadline_us)
{
    if (link->state == LINK_UP) {
        link_read(link);
        if (link->broken || PQstatus(link->pg) == CONNECTION_BAD) {
            link_close(link);
        }
    }
    if (link->state == LINK_DOWN) {
        link_connect(link);
    }
    while (link->state == LINK_CONNECTING) {
        int64_t limit_us = link->deadline_us < deadline_us ? link->deadline_us : deadline_us;
        (void)wait_socket(link, limit_us);
        link_connect_step(link);
    }
    return link->state == LINK_UP;
}

static void free_rows(struct db_unit *units, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        db_rows_free(MOVE(units[i].rows));
    }
}

/* Takes events until the Sync. The first failure is kept; false when the connection broke. */
static bool collect(struct link *link, int64_t deadline_us, struct failure *failure)
{
    for (;;) {
        struct link_event event;
        while (link_next(link, &event)) {
            if (event.outcome == LINK_FAILED && failure->err == ERR_NONE) {
                *failure = event.failure;
            }
            if (event.command == LINK_SYNC) {
                return true;
            }
            if (event.outcome == LINK_OK) {
                ((struct db_unit *)event.tag)->rows = db_rows_new(event.result);
            }
        }
        if (link->broken) {
            return false;
        }
        if (!wait_socket(link, deadline_us)) {
            (void)snprintf(link->error, sizeof(link->error), "no answer from the database in time");
            return false;
        }
        if (link->flush_pending) {
            link_flush(link);
        }
        link_read(link);
    }
}

static struct failure run_units(struct link *link, struct db_unit *units, size_t count,
                                int64_t deadline_us)
{
    static const struct failure unavailable = {ERR_UNAVAILABLE, RETRY_NEVER, true};
    struct failure failure = {.err = ERR_NONE};
    if (!ensure_up(link, deadline_us)) {
        return unavailable;
    }
    for (size_t i = 0; i < count; i++) {
        link_send(link, units[i].sql, units[i].org, NULL, units[i].args, &units[i]);
    }
    link_sync(link, NULL);
    if (!collect(link, deadline_us, &failure)) {
        link_close(link);
        failure = unavailable;
    }
    if (failure.err != ERR_NONE) {
        free_rows(units, count);
    }
    return failure;
}

enum err db_exec_all(struct db_conn *conn, struct db_unit *units, size_t count)
{
    assert(count > 0 && count <= UNITS_MAX);
    int64_t deadline_us = clock_mono_us() + wait_us[conn->link->role];
    for (size_t i = 0; i < count; i++) {
        units[i].rows = NULL;
    }
    struct failure failure = run_units(conn->link, units, count, deadline_us);
    if (failure.err != ERR_NONE && failure.retry != RETRY_NEVER) {
        if (failure.retry == RETRY_ONCE) {
            /* The other side of a deadlock must get what it waits for first, or the two meet again.
             */
            (void)poll(NULL, 0, RETRY_PAUSE_MS);
        }
        failure = run_units(conn->link, units, count, deadline_us);
    }
    return failure.err;
}

enum err db_exec(struct db_conn *conn, enum sql_id sql, const struct uuid *org,
                 const struct db_args *args, struct db_rows **ret_rows)
{
    struct db_unit unit = {.sql = sql, .org = org, .args = args};
    enum err err = db_exec_all(conn, &unit, 1);
    if (err != ERR_NONE) {
        return err;
    }
    if (ret_rows == NULL) {
        db_rows_free(unit.rows);
    } else {
        *ret_rows = unit.rows;
    }
    return ERR_NONE;
}
