/* What handlers call: failures, answers, and statements that the request waits for. */
#include "server/request.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "server/exchange.h"
#include "server/follow.h"
#include "server/reply.h"

#define DETAIL_MAX 512

static const char *format_detail(struct request *rq, const char *format, va_list args)
{
    char text[DETAIL_MAX];
    int len = vsnprintf(text, sizeof(text), format, args);
    size_t kept = len < 0 ? 0 : (size_t)len;
    return arena_strndup(rq->arena, text, kept < sizeof(text) ? kept : sizeof(text) - 1);
}

enum err fail(struct request *rq, enum err err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    rq->err = err;
    rq->detail = format_detail(rq, format, args);
    va_end(args);
    return err;
}

enum err fail_log(struct request *rq, enum err err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    rq->err = err;
    rq->detail = NULL;
    log_error("%s %.*s: %s", rq->route != NULL ? rq->route->operation : "request",
              STR_FMT(rq->method), format_detail(rq, format, args));
    va_end(args);
    return err;
}

void reply_json(struct request *rq, int status, struct str body)
{
    rq->err = ERR_NONE;
    rq->status = status;
    rq->answer = body;
}

/* A single resource, read with the version that the client has, and Prefer: wait. */
static bool wants_to_wait(const struct exchange *ex)
{
    const struct request *rq = &ex->rq;
    return rq->wait_seconds > 0 && rq->err == ERR_NONE && rq->status == 200 && rq->version >= 0 &&
           rq->if_none_match.ptr != NULL && str_eq_c(rq->method, "GET") &&
           (rq->route->flags & (ROUTE_LIST | ROUTE_WEAK)) == 0 && exchange_is_unchanged(ex);
}

/* The rows are here, or will never be. */
static void on_rows(struct db_call *call, enum err err, const struct db_rows *rows)
{
    struct exchange *ex = call->ctx;
    struct request *rq = &ex->rq;
    log_context(rq->id, NULL);
    rq->suspended = false;
    if (err == ERR_NONE) {
        err = ex->then != NULL ? ex->then(rq, rows) : reply_apply(rq, rows);
        if (err != ERR_NONE && rq->err == ERR_NONE) {
            rq->err = err;
        }
        if (call->verb && rq->err == ERR_NONE) {
            /* What was committed wakes streams and loops now, not at the next poll. */
            follow_poke(loop_follow(rq->loop));
        }
    } else {
        reply_database_failed(rq, err);
    }
    log_context(NULL, NULL);
    if (rq->suspended) {
        return;
    }
    rq->suspended = true;
    if (ex->then != NULL || !wants_to_wait(ex) || !exchange_wait(ex)) {
        request_resume(rq);
    }
}

static enum err submit(struct request *rq, const struct uuid *org, enum sql_id sql, bool verb,
                       const struct db_args *args)
{
    struct exchange *ex = exchange_of(rq);
    assert(!rq->suspended);
    ex->call = (struct db_call){
        .sql = sql,
        .verb = verb,
        .has_org = org != NULL,
        .args = *args,
        /* Another org than the caller's is looked at by rules of its own. */
        .scope = org == &rq->caller.org ? rq->scope : NULL,
        .done = on_rows,
        .ctx = ex,
    };
    if (org != NULL) {
        ex->call.org = *org;
    }
    if (rq->idempotency_key.ptr != NULL) {
        ex->call.retry_key = rq->idempotency_key.ptr;
    }
    request_suspend(rq);
    db_submit(loop_db(rq->loop), &ex->call);
    return ERR_NONE;
}

enum err request_query_as(struct request *rq, const struct uuid *org, enum sql_id sql, bool verb,
                          const struct db_args *args, request_then *then)
{
    exchange_of(rq)->then = then;
    return submit(rq, org, sql, verb, args);
}

enum err request_query(struct request *rq, enum sql_id sql, bool verb, const struct db_args *args,
                       request_then *then)
{
    return request_query_as(rq, &rq->caller.org, sql, verb, args, then);
}

const struct uuid *caller_person(const struct caller *caller)
{
    return caller->kind == CALLER_SESSION || caller->kind == CALLER_TOKEN ? &caller->subject_id
                                                                          : NULL;
}
