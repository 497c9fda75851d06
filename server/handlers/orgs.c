/* Handlers of organizations: those of a person, making one, suspending one. */
#include "server/handlers/orgs.h"

#include "base/crypto.h"
#include "server/bind.h"
#include "server/fields.h"
#include "server/fields_identity.h"
#include "server/follow.h"
#include "server/loop.h"
#include "server/reply.h"
#include "server/wake.h"

enum err org_list(struct request *rq)
{
    struct db_args args = {0};
    db_arg_uuid(&args, rq->arena, caller_person(&rq->caller));
    db_arg_i64(&args, rq->arena, rq->page_limit);
    db_arg_str(&args, rq->arena, rq->page_keys);
    return request_query(rq, SQL_ORG_LIST, false, &args, NULL);
}

/* The answer stands since the statement before. */
static enum err keep_answer(struct request *rq, const struct db_rows *rows)
{
    (void)rq;
    (void)rows;
    return ERR_NONE;
}

/* The key belongs to the caller's org, the effect to the new one: two statements. Between them the
 * name, which is unique, keeps a twin from making a second org. */
static enum err on_created(struct request *rq, const struct db_rows *rows)
{
    struct db_args args = {0};
    enum err err = reply_apply(rq, rows);
    if (err != ERR_NONE || rq->idempotency_key.ptr == NULL) {
        return err;
    }
    bind_key(rq, &args);
    db_arg_i64(&args, rq->arena, rq->status);
    db_arg_str(&args, rq->arena, rq->answer);
    return request_query(rq, SQL_IDEMPOTENCY_KEEP, true, &args, keep_answer);
}

static enum err create(struct request *rq)
{
    struct uuid id = uuid_v7();
    struct db_args args = {0};
    db_arg_uuid(&args, rq->arena, &id);
    bind_fields(rq, org_create_body, rq->in, &args);
    db_arg_uuid(&args, rq->arena, caller_person(&rq->caller));
    bind_actor(rq, &args);
    return request_query_as(rq, &id, SQL_ORG_CREATE, true, &args, on_created);
}

static struct str keep(struct request *rq, struct str text)
{
    return (struct str){arena_strndup(rq->arena, text.ptr, text.len), text.len};
}

static enum err on_seen(struct request *rq, const struct db_rows *rows)
{
    if (db_rows_count(rows) == 0) {
        return create(rq);
    }
    if (!db_bool(rows, 0, db_rows_col(rows, "same"))) {
        return fail(rq, ERR_KEY_REUSED, "Send a new Idempotency-Key with a new request.");
    }
    rq->replayed = true;
    rq->version = db_i64(rows, 0, db_rows_col(rows, "version"));
    rq->location = keep(rq, db_text(rows, 0, db_rows_col(rows, "location")));
    reply_json(rq, (int)db_i64(rows, 0, db_rows_col(rows, "status")),
               keep(rq, db_text(rows, 0, db_rows_col(rows, "body"))));
    return ERR_NONE;
}

enum err org_create(struct request *rq)
{
    struct db_args args = {0};
    if (rq->idempotency_key.ptr == NULL) {
        return create(rq);
    }
    bind_key(rq, &args);
    return request_query(rq, SQL_IDEMPOTENCY_GET, false, &args, on_seen);
}

/* ------------------------------------------------------------------ suspending */

static enum err on_suspended(struct request *rq, const struct db_rows *rows)
{
    enum err err = reply_apply(rq, rows);
    if (err == ERR_NONE) {
        wake_org(&rq->path_ids[0], WAKE_REPAIR);
        follow_poke(loop_follow(rq->loop));
    }
    return err;
}

static enum err suspend(struct request *rq, bool suspends)
{
    const struct org_suspend_in *in = rq->in;
    struct db_args args = {0};
    bind_key(rq, &args);
    bind_actor(rq, &args);
    db_arg_str(&args, rq->arena, in->reason);
    db_arg_bool(&args, suspends);
    return request_query_as(rq, &rq->path_ids[0], SQL_ORG_SUSPEND, true, &args, on_suspended);
}

enum err org_suspend(struct request *rq)
{
    return suspend(rq, true);
}

enum err org_resume(struct request *rq)
{
    return suspend(rq, false);
}
