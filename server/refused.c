/* The audit rows of what was refused. */
#include "server/refused.h"

#include <string.h>

#include "base/log.h"
#include "server/bind.h"
#include "server/loop.h"

#define ARENA_CAP ((size_t)64 * 1024)

/* What is refused belongs into the log: no permission, a thing that is not the caller's, or a
 * decision that the state forbids. Mistakes in the form of a request do not. */
static bool is_audited(const struct request *rq)
{
    if (rq->err == ERR_FORBIDDEN || rq->err == ERR_NOT_FOUND || rq->err == ERR_ORG_SUSPENDED) {
        return true;
    }
    return (rq->route->flags & ROUTE_DECISION) != 0 &&
           (rq->err == ERR_CONFLICT || rq->err == ERR_PLAN_CHANGED);
}

static bool is_change(struct str method)
{
    return !str_eq_c(method, "GET") && !str_eq_c(method, "HEAD");
}

struct refused {
    struct db_call call;
    struct arena *arena;
};

static void on_written(struct db_call *call, enum err err, const struct db_rows *rows)
{
    struct refused *refused = call->ctx;
    (void)rows;
    if (err != ERR_NONE) {
        log_warning("a refused change by %s is not in the audit log: %s",
                    refused->call.args.values[0], err_info(err)->title);
    }
    arena_free(refused->arena);
}

/* "repair_approve" is the action "repair.approve". */
static const char *action_of(struct arena *arena, const char *operation)
{
    char *action = arena_strndup(arena, operation, strlen(operation));
    char *last = strrchr(action, '_');
    if (last != NULL) {
        *last = '.';
    }
    return action;
}

void refused_audit(struct request *rq)
{
    struct db_loop *db = loop_db(rq->loop);
    if (rq->err == ERR_NONE || rq->route == NULL || rq->caller.kind == CALLER_NONE ||
        !is_change(rq->method) || !is_audited(rq) || db == NULL) {
        return;
    }
    struct arena *arena = arena_new(ARENA_CAP);
    struct refused *refused = arena_zalloc(arena, sizeof(*refused));
    struct db_args *args = &refused->call.args;
    struct arena *of_request = rq->arena;
    refused->arena = arena;
    refused->call.sql = SQL_AUDIT_REFUSED;
    refused->call.verb = true;
    refused->call.has_org = true;
    refused->call.org = rq->caller.org;
    refused->call.done = on_written;
    refused->call.ctx = refused;
    /* The request may be gone before the row is written. */
    rq->arena = arena;
    bind_actor(rq, args);
    rq->arena = of_request;
    db_arg(args, action_of(arena, rq->route->operation));
    if (strchr(rq->route->path, '{') != NULL) {
        db_arg_uuid(args, arena, &rq->path_ids[0]);
    } else {
        db_arg(args, NULL);
    }
    db_arg(args, rq->err == ERR_FORBIDDEN || rq->err == ERR_ORG_SUSPENDED ? "denied" : "failed");
    db_arg(args, err_info(rq->err)->code);
    db_submit(db, &refused->call);
}
