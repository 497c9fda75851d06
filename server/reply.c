/* A statement's reply row becomes the answer of a request. */
#include "server/reply.h"

#include <string.h>

#include "base/log.h"
#include "server/exchange.h"

/* An answer is built once more around its page or compressed beside it: half of the arena holds it.
 */
#define BODY_MAX (REQUEST_ARENA_CAP / 2)

static struct str keep(struct request *rq, struct str text)
{
    return text.ptr == NULL ? text
                            : (struct str){arena_strndup(rq->arena, text.ptr, text.len), text.len};
}

/* The kind of failure behind a status that SQL decided without naming a kind. */
static enum err err_of_status(int status)
{
    static const struct {
        int status;
        enum err err;
    } rows[] = {
        {400, ERR_BAD_REQUEST},    {401, ERR_UNAUTHENTICATED},
        {403, ERR_FORBIDDEN},      {404, ERR_NOT_FOUND},
        {409, ERR_CONFLICT},       {412, ERR_PRECONDITION_FAILED},
        {422, ERR_INVALID_FIELDS}, {428, ERR_PRECONDITION_REQUIRED},
        {429, ERR_RATE_LIMITED},   {503, ERR_UNAVAILABLE},
    };
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        if (rows[i].status == status) {
            return rows[i].err;
        }
    }
    return ERR_INTERNAL;
}

static enum err err_of_code(struct str code)
{
    for (int i = 1; i < ERR_COUNT; i++) {
        if (str_eq_c(code, err_info((enum err)i)->code)) {
            return (enum err)i;
        }
    }
    return ERR_INTERNAL;
}

static enum err apply_failure(struct request *rq, const struct db_reply *reply)
{
    enum err err =
        reply->problem.ptr != NULL ? err_of_code(reply->problem) : err_of_status(reply->status);
    if (err == ERR_INTERNAL) {
        return fail_log(rq, err, "the statement answered status %d, problem \"%.*s\"",
                        reply->status, STR_FMT(reply->problem));
    }
    rq->err = err;
    rq->version = reply->version;
    rq->conflict_state = keep(rq, reply->state);
    rq->detail = reply->detail.ptr != NULL ? keep(rq, reply->detail).ptr : NULL;
    if (reply->pointer.ptr != NULL) {
        decode_error_add(rq->arena, &rq->errors, keep(rq, reply->pointer).ptr, "not_allowed",
                         rq->detail != NULL ? rq->detail : "This value is not allowed.");
    }
    return err;
}

enum err reply_apply(struct request *rq, const struct db_rows *rows)
{
    struct db_reply reply;
    if (db_rows_count(rows) == 0) {
        return fail_log(rq, ERR_INTERNAL, "the statement answered no row");
    }
    enum err err = db_reply_read(rows, &reply);
    if (err != ERR_NONE) {
        return fail_log(rq, err, "the statement's row is no reply");
    }
    if (reply.status >= 400) {
        return apply_failure(rq, &reply);
    }
    if (reply.body.len > BODY_MAX) {
        return fail_log(rq, ERR_INTERNAL, "an answer of %zu bytes", reply.body.len);
    }
    rq->version = reply.version;
    rq->replayed = reply.replayed;
    if (rq->route != NULL && (rq->route->flags & ROUTE_LIST) != 0) {
        rq->next = keep(rq, reply.next);
    } else {
        rq->location = keep(rq, reply.next);
    }
    reply_json(rq, reply.status, keep(rq, reply.body));
    return ERR_NONE;
}

void reply_database_failed(struct request *rq, enum err err)
{
    rq->detail = NULL;
    rq->err = err;
    if (err == ERR_INVALID_FIELDS && rq->route != NULL && (rq->route->args & ARG_PAGE) != 0) {
        /* Only keys out of a forged cursor reach SQL unchecked. */
        rq->err = ERR_BAD_CURSOR;
    }
    if (err == ERR_UNAVAILABLE || err == ERR_OVERLOADED) {
        rq->retry_after_s = 1;
    }
}
