/*
 * One pipelined, non-blocking connection: what plain connections and event loops both stand on.
 *
 * A unit is set_config('muster.org', org or '', true) and its statement, queued together: the org
 * of the unit before would otherwise stay set until the Sync. Statements are prepared at their
 * first use on a connection. Results come back as events, in order.
 */
#ifndef DB_LINK_H
#define DB_LINK_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/db.h"
#include "db/rows.h"

#define LINK_RING 4096u      /* commands in flight; a power of two */
#define LINK_UNIT_COMMANDS 4 /* at most: two prepares, the org, the statement */
#define LINK_ERROR_CAP 256

enum link_state { LINK_DOWN, LINK_CONNECTING, LINK_UP };

enum link_command { LINK_PREPARE, LINK_EXEC, LINK_SYNC };

enum link_outcome {
    LINK_OK,
    LINK_FAILED,
    LINK_ABORTED, /* an earlier unit of the same Sync failed; this one never ran */
};

/* What comes back for a statement (LINK_EXEC) or a Sync (LINK_SYNC). */
struct link_event {
    enum link_command command;
    void *tag; /* as given to link_send or link_sync */
    enum link_outcome outcome;
    PGresult *result;       /* rows of a LINK_EXEC that is LINK_OK; the receiver clears it */
    struct failure failure; /* when LINK_FAILED */
};

struct link_sent {
    void *tag;
    short slot; /* of `prepared` */
    uint8_t command;
    bool reports; /* an event is made of it */
};

enum link_prepared { LINK_NOT_PREPARED, LINK_PREPARING, LINK_PREPARED };

struct link {
    PGconn *pg; /* NULL when down */
    enum db_role role;
    enum link_state state;
    bool broken;                       /* set by any call below; the owner then calls link_close */
    bool flush_pending;                /* the socket did not take all */
    PostgresPollingStatusType polling; /* while connecting */
    int64_t deadline_us;               /* of connecting */
    int64_t progress_us;         /* when something last came back, or was sent to an idle server */
    PGresult *result;            /* of the command at the head of the ring, until its end */
    struct failure unit_failure; /* of a command that belongs to the coming statement */
    bool unit_failed;
    unsigned ends; /* empty results in a row: guards against a confused pipeline */
    uint32_t head; /* of the ring */
    uint32_t count;
    struct link_sent ring[LINK_RING];
    uint8_t prepared[SQL_COUNT + 1];    /* enum link_prepared; the last slot is the org's */
    uint16_t generation[SQL_COUNT + 1]; /* part of the prepared name */
    char error[LINK_ERROR_CAP];         /* about the last failure */
};

struct link *link_new(enum db_role role);
void link_free(struct link *link);

/* Begins to connect; after this the state is LINK_CONNECTING or LINK_DOWN. */
void link_connect(struct link *link);
/* Takes a step when the socket is ready for it; the state says what came out. */
void link_connect_step(struct link *link);
/* Forgets everything that was in flight and closes. */
void link_close(struct link *link);

/* What to wait for: a descriptor and poll(2) events; -1 when down. */
int link_poll(const struct link *link, short *ret_events);

/* True when another unit and its Sync fit. */
bool link_has_room(const struct link *link);
/* Queues a unit. `org` NULL only for global statements. Copies the arguments. */
void link_send(struct link *link, enum sql_id sql, const struct uuid *org, const char *scope,
               const struct db_args *args, void *tag);
/* Ends the units queued before as one transaction, and sends what the socket takes. */
void link_sync(struct link *link, void *tag);
void link_flush(struct link *link);
/* Takes in what the socket holds, without blocking. */
void link_read(struct link *link);
/* The next event, if one is complete. */
bool link_next(struct link *link, struct link_event *ret_event);

#endif
