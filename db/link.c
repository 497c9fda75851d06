/* One pipelined, non-blocking connection. */
#include "db/link.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "db/setup.h"
#include "db/statements.h"

#define ORG_SLOT SQL_COUNT
#define ORG_SQL "SELECT set_config('muster.org', $1, true), set_config('muster.scope', $2, true)"
#define NAME_CAP 96

struct link *link_new(enum db_role role)
{
    struct link *link = calloc(1, sizeof(*link));
    if (link == NULL) {
        abort();
    }
    link->role = role;
    return link;
}

void link_free(struct link *link)
{
    if (link != NULL) {
        link_close(link);
        free(link);
    }
}

void link_close(struct link *link)
{
    PQclear(link->result);
    link->result = NULL;
    PQfinish(link->pg);
    link->pg = NULL;
    link->state = LINK_DOWN;
    link->broken = false;
    link->flush_pending = false;
    link->unit_failed = false;
    link->ends = 0;
    link->head = 0;
    link->count = 0;
    memset(link->prepared, LINK_NOT_PREPARED, sizeof(link->prepared));
}

/* libpq's sentence, one line of it. */
static void note_error(struct link *link, const char *what)
{
    const char *message = link->pg == NULL ? "out of memory" : PQerrorMessage(link->pg);
    int len = (int)strcspn(message, "\n");
    (void)snprintf(link->error, sizeof(link->error), "%s: %.*s", what, len, message);
}

static void break_link(struct link *link, const char *what)
{
    if (!link->broken) {
        note_error(link, what);
        link->broken = true;
    }
}

/*
 * libpq prints notices to standard error unless told otherwise. An idle connection learns by one of
 * them (57P01: the server stops) that it must not be used any more, before the socket is closed.
 */
static void take_notice(void *ctx, const PGresult *result)
{
    struct link *link = ctx;
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (code != NULL && strncmp(code, "57P", 3) == 0) {
        failure_describe(result, "idle", link->error, sizeof(link->error));
        link->broken = true;
    }
}

void link_connect(struct link *link)
{
    assert(link->state == LINK_DOWN);
    link->pg = setup_connect_start(link->role);
    if (link->pg == NULL || PQstatus(link->pg) == CONNECTION_BAD) {
        note_error(link, "connect");
        link_close(link);
        return;
    }
    PQsetNoticeReceiver(link->pg, take_notice, link);
    link->state = LINK_CONNECTING;
    link->polling = PGRES_POLLING_WRITING;
    link->deadline_us = clock_mono_us() + DB_CONNECT_US;
}

static bool is_socket_ready(const struct link *link)
{
    struct pollfd fd = {.fd = link_poll(link, &fd.events)};
    return poll(&fd, 1, 0) > 0;
}

void link_connect_step(struct link *link)
{
    assert(link->state == LINK_CONNECTING);
    if (is_socket_ready(link)) {
        link->polling = PQconnectPoll(link->pg);
    }
    if (link->polling == PGRES_POLLING_OK) {
        if (PQsetnonblocking(link->pg, 1) == 0 && PQenterPipelineMode(link->pg) == 1) {
            link->state = LINK_UP;
            return;
        }
        link->polling = PGRES_POLLING_FAILED;
    }
    if (link->polling == PGRES_POLLING_FAILED) {
        note_error(link, "connect");
        link_close(link);
    } else if (clock_mono_us() >= link->deadline_us) {
        (void)snprintf(link->error, sizeof(link->error), "connect: no answer from the database");
        link_close(link);
    }
}

int link_poll(const struct link *link, short *ret_events)
{
    *ret_events = 0;
    if (link->state == LINK_DOWN) {
        return -1;
    }
    if (link->state == LINK_CONNECTING) {
        *ret_events = link->polling == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    } else {
        *ret_events = link->flush_pending ? POLLIN | POLLOUT : POLLIN;
    }
    return PQsocket(link->pg);
}

bool link_has_room(const struct link *link)
{
    return link->count + LINK_UNIT_COMMANDS + 1 <= LINK_RING;
}

static void push_sent(struct link *link, enum link_command command, int slot, void *tag)
{
    assert(link->count < LINK_RING);
    if (link->count == 0) {
        link->progress_us = clock_mono_us();
    }
    link->ring[(link->head + link->count) % LINK_RING] = (struct link_sent){
        .tag = tag,
        .slot = (short)slot,
        .command = (uint8_t)command,
        .reports = command == LINK_SYNC || (command == LINK_EXEC && slot != ORG_SLOT),
    };
    link->count++;
}

/* The server's name of a statement; it changes when the statement has to be prepared anew. */
static void name_slot(const struct link *link, int slot, char name[NAME_CAP])
{
    const char *base = slot == ORG_SLOT ? "muster_org" : statements[slot].name;
    if (link->generation[slot] == 0) {
        (void)snprintf(name, NAME_CAP, "%s", base);
    } else {
        (void)snprintf(name, NAME_CAP, "%s:%u", base, (unsigned)link->generation[slot]);
    }
}

static void send_command(struct link *link, int slot, int count, const char *const *values,
                         void *tag)
{
    char name[NAME_CAP];
    name_slot(link, slot, name);
    if (link->prepared[slot] == LINK_NOT_PREPARED) {
        const char *text = slot == ORG_SLOT ? ORG_SQL : statements[slot].text;
        if (PQsendPrepare(link->pg, name, text, 0, NULL) != 1) {
            break_link(link, "send");
            return;
        }
        link->prepared[slot] = LINK_PREPARING;
        push_sent(link, LINK_PREPARE, slot, NULL);
    }
    if (PQsendQueryPrepared(link->pg, name, count, values, NULL, NULL, 0) != 1) {
        break_link(link, "send");
        return;
    }
    push_sent(link, LINK_EXEC, slot, tag);
}

void link_send(struct link *link, enum sql_id sql, const struct uuid *org, const char *scope,
               const struct db_args *args, void *tag)
{
    static const struct db_args none = {.count = 0};
    const struct statement *statement = &statements[sql];
    const char *values[DB_ARGS_MAX + 1];
    char org_text[UUID_TEXT_LEN + 1] = "";
    int count = 0;
    if (args == NULL) {
        args = &none;
    }
    if (org != NULL) {
        uuid_format(org, org_text);
    }
    if (!statement->is_global) {
        assert(org != NULL);
        values[count++] = org_text;
    }
    for (int i = 0; i < args->count; i++) {
        values[count++] = args->values[i];
    }
    assert(count == statement->parameters);
    assert((statement->roles & (1 << link->role)) != 0);
    if (link->broken) {
        return;
    }
    const char *const unit[] = {org_text, scope != NULL ? scope : ""};
    send_command(link, ORG_SLOT, COUNTOF(unit), unit, NULL);
    if (!link->broken) {
        send_command(link, (int)sql, count, values, tag);
    }
}

void link_sync(struct link *link, void *tag)
{
    if (link->broken) {
        return;
    }
    if (PQpipelineSync(link->pg) != 1) {
        break_link(link, "send");
        return;
    }
    push_sent(link, LINK_SYNC, ORG_SLOT, tag);
    link_flush(link);
}

void link_flush(struct link *link)
{
    if (link->broken) {
        return;
    }
    int rc = PQflush(link->pg);
    if (rc < 0) {
        break_link(link, "send");
    }
    link->flush_pending = rc == 1;
}

void link_read(struct link *link)
{
    if (!link->broken && PQconsumeInput(link->pg) != 1) {
        break_link(link, "receive");
    } else if (link->count == 0) {
        (void)PQisBusy(link->pg); /* looks at what came unasked, see take_notice */
    }
}

static void drop_head(struct link *link)
{
    link->head = (link->head + 1) % LINK_RING;
    link->count--;
    link->ends = 0;
    link->progress_us = clock_mono_us();
}

/* Where one statement is gone or stale, others are: after a reset of the session, after a
 * migration. */
static void forget_prepared(struct link *link)
{
    for (size_t slot = 0; slot < COUNTOF(link->prepared); slot++) {
        if (link->prepared[slot] == LINK_PREPARED) {
            link->prepared[slot] = LINK_NOT_PREPARED;
            link->generation[slot]++;
        }
    }
}

/* Keeps a failure for the statement that it belongs to. */
static void note_failure(struct link *link, const struct link_sent *sent)
{
    struct failure failure = failure_of(link->result);
    const char *name = sent->command == LINK_SYNC ? "commit"
                       : sent->slot == ORG_SLOT   ? "org"
                                                  : statements[sent->slot].name;
    failure_describe(link->result, name, link->error, sizeof(link->error));
    if (failure.reconnect) {
        link->broken = true;
    }
    if (failure.retry == RETRY_PREPARE) {
        forget_prepared(link);
    }
    if (!link->unit_failed) {
        link->unit_failed = true;
        link->unit_failure = failure;
    }
}

/* The command at the head is complete: true when an event came of it. */
static bool end_command(struct link *link, struct link_event *event)
{
    struct link_sent sent = link->ring[link->head];
    ExecStatusType status = PQresultStatus(link->result);
    bool is_ok = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
    if (!is_ok && status != PGRES_PIPELINE_ABORTED) {
        note_failure(link, &sent);
        if (link->broken) {
            return false;
        }
    }
    if (sent.command == LINK_PREPARE && link->prepared[sent.slot] == LINK_PREPARING) {
        link->prepared[sent.slot] = is_ok ? LINK_PREPARED : LINK_NOT_PREPARED;
    }
    if (sent.reports) {
        *event = (struct link_event){.command = LINK_EXEC, .tag = sent.tag};
        event->outcome = is_ok ? LINK_OK : link->unit_failed ? LINK_FAILED : LINK_ABORTED;
        event->failure = link->unit_failed ? link->unit_failure
                                           : (struct failure){ERR_INTERNAL, RETRY_ONCE, false};
        if (is_ok) {
            event->result = MOVE(link->result);
        }
        link->unit_failed = false;
    }
    PQclear(link->result);
    link->result = NULL;
    drop_head(link);
    return sent.reports;
}

/* A Sync came back. An error that came in its place (the commit failed) is its failure. */
static void end_sync(struct link *link, struct link_event *event)
{
    *event = (struct link_event){.command = LINK_SYNC, .tag = link->ring[link->head].tag};
    event->outcome = link->unit_failed ? LINK_FAILED : LINK_OK;
    event->failure = link->unit_failure;
    link->unit_failed = false;
    drop_head(link);
}

/* Takes one result. True when an event came of it. */
static bool take_result(struct link *link, PGresult *result, struct link_event *event)
{
    const struct link_sent *sent = &link->ring[link->head];
    if (result == NULL) {
        /* The end of a command's results. */
        if (sent->command != LINK_SYNC && link->result != NULL) {
            return end_command(link, event);
        }
        if (++link->ends > 2) {
            break_link(link, "the pipeline is out of step");
        }
        return false;
    }
    if (PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
        PQclear(result);
        if (sent->command != LINK_SYNC) {
            break_link(link, "the pipeline is out of step");
            return false;
        }
        end_sync(link, event);
        return true;
    }
    PQclear(link->result);
    link->result = result;
    if (sent->command == LINK_SYNC) {
        note_failure(link, sent);
        PQclear(link->result);
        link->result = NULL;
    }
    return false;
}

bool link_next(struct link *link, struct link_event *ret_event)
{
    while (!link->broken && link->count > 0 && !PQisBusy(link->pg)) {
        bool has_event = take_result(link, PQgetResult(link->pg), ret_event);
        if (PQstatus(link->pg) == CONNECTION_BAD) {
            break_link(link, "receive");
        }
        if (has_event) {
            return true;
        }
    }
    return false;
}
